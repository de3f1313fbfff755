//! `anabranch bench` against a server that runs, and against one that lies.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::connections;
use crate::lying::{Liar, Lie};
use crate::server::{Server, flags, flags_with_plan, path, program};

struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    fn start(more: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let flags = flags_with_plan(&directory, "custom iops=1000");
        // Who changes bytes on the way is to be found by what is read, not by the signature.
        let unsigned = ["--smb-signing", "enabled"];
        let flags = flags.iter().map(String::as_str).chain(unsigned).chain(more.iter().copied());
        let server = Server::start(&flags.collect::<Vec<_>>());
        Self { directory, server }
    }

    fn smb(&self) -> String {
        format!("smb://anna:hush-hush@{}/data", self.server.address("smb"))
    }

    fn nfs(&self, version: &str) -> String {
        format!("nfs://{}/data?vers={version}", self.server.address("nfs"))
    }

    /// Starts the program and waits until its load is on: the run's folder is there then.
    fn begin(&self, arguments: &[&str]) -> std::process::Child {
        let mut command = program(arguments);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while self.is_clean() {
            assert!(std::time::Instant::now() < deadline, "nothing was made");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }

    /// Nothing of a run is left in the share.
    fn is_clean(&self) -> bool {
        std::fs::read_dir(Path::new(&path(&self.directory, "data"))).unwrap().next().is_none()
    }
}

/// A short job; its exit status, its result, and what it said.
fn job(target: &str, more: &[&str]) -> (i32, Value, String) {
    let short = [
        ("--seconds", "0.3"),
        ("--ramp", "0.05"),
        ("--repetitions", "2"),
        ("--file-size", "1M"),
        ("--target", target),
    ];
    let mut arguments = vec!["bench", "job", "--json"];
    arguments.extend(
        short.into_iter().filter(|(name, _)| !more.contains(name)).flat_map(|(name, value)| [name, value]),
    );
    arguments.extend(more);
    let Output { status, stdout, stderr } = program(&arguments).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    (status.code().unwrap(), serde_json::from_slice(&stdout).unwrap_or(Value::Null), said)
}

fn good(target: &str, more: &[&str]) -> Value {
    let (status, result, said) = job(target, more);
    assert_eq!(status, 0, "{target} {more:?}: {said}");
    assert!(result["rows"][0]["measure"]["rate"]["median"].as_f64().unwrap() > 0.0, "{result:#}");
    assert_eq!(result["outcome"], "complete");
    result
}

fn kinds(result: &Value) -> Vec<&str> {
    result["problems"].as_array().unwrap().iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

#[test]
fn every_protocol_reads_writes_and_makes_files() {
    let running = Running::start(&[]);
    let directory = format!("dir:{}", path(&running.directory, "data"));
    for target in [running.smb(), running.nfs("3"), running.nfs("4.1"), directory] {
        let data = good(
            &target,
            &["--reads", "50", "--files", "3", "--threads", "2", "--queue-depth", "4", "--block-size", "16k"],
        );
        let operations = &data["rows"][0]["repetitions"][0]["operations"];
        assert!(
            operations["read"]["count"].as_u64() > Some(0) && operations["write"]["count"].as_u64() > Some(0),
            "{target}"
        );
        let names = good(&target, &["--metadata", "--threads", "2"]);
        let operations = &names["rows"][0]["repetitions"][0]["operations"];
        for step in ["create", "open", "stat", "list", "delete", "cycle"] {
            assert!(operations[step]["count"].as_u64() > Some(0), "{target}: {step}: {operations}");
        }
        assert!(running.is_clean(), "{target}");
    }
}

#[test]
fn channels_and_connections_all_carry_load() {
    let running = Running::start(&[]);
    for target in [running.smb(), running.nfs("3"), running.nfs("4.1")] {
        let result = good(&target, &["--connections", "4", "--threads", "4", "--queue-depth", "4"]);
        let carried = result["rows"][0]["repetitions"][0]["connection_bytes"].as_array().unwrap();
        assert!(
            carried.len() == 4 && carried.iter().all(|bytes| bytes.as_u64() > Some(0)),
            "{target}: {carried:?}"
        );
        assert_eq!(result["environment"]["negotiated"]["connections"], 4);
        let clients = good(&target, &["--clients", "2", "--threads", "2"]);
        assert_eq!(clients["rows"][0]["repetitions"][0]["connections"], 2, "{target}");
    }
}

#[test]
fn each_signature_and_cipher_is_spoken() {
    let running = Running::start(&[]);
    for (asked, name) in
        [("hmac-sha256", "HMAC-SHA256"), ("aes128-cmac", "AES-CMAC"), ("aes128-gmac", "AES-GMAC")]
    {
        let result = good(&running.smb(), &["--security", asked, "--connections", "2", "--reads", "50"]);
        assert_eq!(result["environment"]["negotiated"]["signing"], name);
    }
    for name in ["AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"] {
        let asked = name.to_lowercase().replacen("aes-", "aes", 1);
        let result = good(&running.smb(), &["--security", &asked, "--connections", "2", "--reads", "50"]);
        assert_eq!(result["environment"]["negotiated"]["cipher"], name);
    }
}

/// A certificate that has signed itself, and its key, as files.
pub(crate) fn certify(directory: &TempDir, name: &str) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files =
        [(format!("{name}.pem"), made.cert.pem()), (format!("{name}.key"), made.signing_key.serialize_pem())];
    files.map(|(name, text)| {
        let file = path(directory, &name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    })
}

#[test]
fn nfs_over_tls_is_spoken_and_the_certificate_is_checked() {
    let pki = TempDir::new().unwrap();
    let ([certificate, key], [other, _]) = (certify(&pki, "server"), certify(&pki, "other"));
    let flags = ["--control-certificate", &certificate, "--control-key", &key, "--nfs-tls", "required"];
    let running = Running::start(&flags);
    for version in ["3", "4.1"] {
        let plain = running.nfs(version);
        let trusted = format!("{plain}&xprtsec=tls&ca={certificate}");
        let result = good(&trusted, &["--connections", "2", "--reads", "50", "--block-size", "256k"]);
        let cipher = result["environment"]["negotiated"]["cipher"].as_str().unwrap();
        assert!(cipher.starts_with("TLS_AES_") || cipher.starts_with("TLS_CHACHA20_"), "{cipher}");
        for (target, kind) in
            [(format!("{plain}&xprtsec=tls&ca={other}"), "wrong-signature"), (plain, "wrong-password")]
        {
            let (status, result, said) = job(&target, &[]);
            assert_eq!((status, kinds(&result)), (8, vec![kind]), "{target}: {said}");
        }
    }
    let (status, result, said) = job(&format!("{}&xprtsec=tls&ca=/nonexistent", running.nfs("3")), &[]);
    assert_eq!((status, kinds(&result)), (8, vec!["this-machine"]), "{said}");
    assert!(said.contains("/nonexistent") && said.contains("ca=/PATH"), "{said}");
}

#[test]
fn a_server_without_tls_gets_a_verdict() {
    let running = Running::start(&[]);
    let (status, result, said) = job(&format!("{}&xprtsec=tls", running.nfs("3")), &[]);
    assert_eq!((status, kinds(&result)), (8, vec!["refused"]), "{said}");
    assert!(said.contains("has no TLS for NFS"), "{said}");
}

/// A figure that was measured, and the right one.
#[derive(Debug, Clone, Copy)]
struct Figure {
    measured: f64,
    right: f64,
    /// What holds however busy the machine is.
    always: Always,
}

/// Which side of the right figure no machine can be on.
#[derive(Debug, Clone, Copy)]
enum Always {
    /// A stall of the machine makes it larger only.
    AtLeast,
    /// A stall of the machine makes it smaller, but for what comes late into the measurement: at most so much.
    AtMost(f64),
    /// A stall of the machine may move it either way.
    Either,
}

impl Figure {
    fn new(measured: f64, right: f64, always: Always) -> Self {
        Self { measured, right, always }
    }

    fn is_close(&self) -> bool {
        (self.measured / self.right - 1.0).abs() < 0.02
    }

    fn is_possible(&self) -> bool {
        match self.always {
            Always::AtLeast => self.measured > self.right * 0.98,
            Always::AtMost(more) => self.measured > 0.0 && self.measured < self.right * 1.02 + more,
            Always::Either => self.measured > 0.0,
        }
    }
}

/// Measures, and checks what no stall of the machine can change. With ANABRANCH_PUNCTUAL set (`cargo xtask bench known-answers`) all
/// figures must be within 2 % of what is right. On a machine that is busy with other things neither the liar nor the client is
/// punctual: then it is measured again, a few times.
fn is_right<const N: usize>(what: &str, mut measure: impl FnMut() -> [Figure; N]) {
    const ATTEMPTS: usize = 8;
    let figures = measure();
    println!("{what}: {figures:?}");
    assert!(figures.iter().all(Figure::is_possible), "{what}: {figures:?}");
    if std::env::var_os("ANABRANCH_PUNCTUAL").is_none() || figures.iter().all(Figure::is_close) {
        return;
    }
    let mut seen = vec![figures];
    let right = (1..ATTEMPTS).any(|_| {
        let figures = measure();
        seen.push(figures);
        figures.iter().all(Figure::is_close)
    });
    assert!(right, "{what}: {seen:?}");
}

fn rates(result: &Value) -> f64 {
    result["rows"][0]["measure"]["rate"]["median"].as_f64().unwrap()
}

fn of_reads(result: &Value, figure: &str) -> f64 {
    result["rows"][0]["measure"]["latency"]["read"][figure].as_f64().unwrap()
}

const ALL_FORMS: [(&str, &str); 3] = [
    ("nfs", "nfs://ADDRESS/data?vers=3"),
    ("nfs", "nfs://ADDRESS/data?vers=4.1"),
    ("smb", "smb://anna:hush-hush@ADDRESS/data"),
];

/// The target of a form behind a proxy that lies.
fn lying(running: &Running, (address, form): (&str, &str), lies: &[Lie]) -> (Liar, String) {
    let liar = Liar::before(running.server.address(address), lies);
    let target = form.replace("ADDRESS", &liar.address.to_string());
    (liar, target)
}

/// With so many replies under way that each come so late, the rate is known. A measurement lasts a whole number of replies' times,
/// so that its edges cut off as much as they add.
#[test]
fn a_known_latency_gives_known_figures() {
    const LATE: f64 = 0.1;
    let running = Running::start(&[]);
    for form in ALL_FORMS {
        let (_liar, target) = lying(&running, form, &[Lie::Late(Duration::from_secs_f64(LATE))]);
        is_right(&target, || {
            let result = good(&target, &["--queue-depth", "16", "--seconds", "2", "--repetitions", "1"]);
            [
                // All that are under way may come late into the measurement.
                Figure::new(rates(&result), 16.0 / LATE, Always::AtMost(16.0 / 2.0)),
                Figure::new(of_reads(&result, "p50_us"), LATE * 1e6, Always::AtLeast),
            ]
        });
    }
}

/// One reply of eight comes later than the others: percentiles are those of the two kinds, the mean and the rate are those of all.
#[test]
fn two_known_latencies_give_known_percentiles() {
    const MOST: f64 = 0.08;
    const SOME: f64 = 0.24;
    let running = Running::start(&[]);
    let lies =
        [Lie::Late(Duration::from_secs_f64(MOST)), Lie::SomeLate(8, Duration::from_secs_f64(SOME - MOST))];
    let mean = (7.0 * MOST + SOME) / 8.0;
    for form in ALL_FORMS {
        let (_liar, target) = lying(&running, form, &lies);
        is_right(&target, || {
            let result = good(&target, &["--queue-depth", "32", "--seconds", "3", "--repetitions", "1"]);
            [
                Figure::new(rates(&result), 32.0 / mean, Always::Either),
                Figure::new(of_reads(&result, "mean_us"), mean * 1e6, Always::Either),
                Figure::new(of_reads(&result, "p50_us"), MOST * 1e6, Always::AtLeast),
                Figure::new(of_reads(&result, "p90_us"), SOME * 1e6, Always::Either),
                Figure::new(of_reads(&result, "p99_us"), SOME * 1e6, Always::AtLeast),
            ]
        });
    }
}

/// A server that does so many operations a second has all that wait in line: each waits for those before it.
#[test]
fn a_server_of_known_rate_gives_known_figures() {
    const RATE: f64 = 200.0;
    let running = Running::start(&[]);
    for form in ALL_FORMS {
        let (_liar, target) = lying(&running, form, &[Lie::Paced(Duration::from_secs_f64(1.0 / RATE))]);
        is_right(&target, || {
            let result = good(&target, &["--queue-depth", "16", "--seconds", "2", "--repetitions", "1"]);
            [
                Figure::new(rates(&result), RATE, Always::AtMost(16.0 / 2.0)),
                Figure::new(of_reads(&result, "p50_us"), 16.0 / RATE * 1e6, Always::Either),
            ]
        });
    }
}

#[test]
fn a_known_rate_of_the_client_is_kept() {
    let running = Running::start(&[]);
    let directory = format!("dir:{}", path(&running.directory, "data"));
    for target in [running.smb(), running.nfs("3"), running.nfs("4.1"), directory] {
        is_right(&target, || {
            let result = good(&target, &["--rate", "400", "--queue-depth", "4", "--seconds", "1"]);
            // What was due while it warmed up may come late into the measurement.
            [Figure::new(rates(&result), 400.0, Always::AtMost(400.0))]
        });
    }
}

/// Reads and writes, no two at a time on one file. What is read while it is written may be a part of each, so that a wrong byte
/// which is the other one's at this place is none.
const EACH_ITS_OWN: [&str; 8] = ["--reads", "50", "--files", "4", "--threads", "4", "--block-size", "16k"];

#[test]
fn every_wrong_byte_is_found() {
    let running = Running::start(&[]);
    for form in ALL_FORMS {
        for load in [&["--queue-depth", "8"][..], &EACH_ITS_OWN] {
            let (liar, target) = lying(&running, form, &[Lie::WrongByte(7)]);
            let (status, result, said) = job(&target, load);
            assert_eq!((status, kinds(&result)), (8, vec!["wrong-data"]), "{said}");
            let found = result["problems"][0]["count"].as_u64().unwrap();
            assert_eq!(found, liar.lies(), "{target} {load:?}: {said}");
            assert!(found > 0 && said.contains("brought 1 wrong bytes") && running.is_clean(), "{said}");
            assert!(rates(&result) > 0.0, "the rest is kept");
        }
    }
}

#[test]
fn a_signed_reply_that_was_changed_ends_the_run() {
    let running = Running::start(&[]);
    let (_liar, target) = lying(&running, ALL_FORMS[2], &[Lie::WrongByte(20)]);
    for security in ["hmac-sha256", "aes128-gmac", "aes128-gcm"] {
        let (status, result, said) = job(&target, &["--security", security]);
        assert_eq!((status, kinds(&result)), (8, vec!["wrong-signature"]), "{said}");
        assert_eq!(result["outcome"], "failed");
    }
}

/// The server does so many operations a second, whether one of its replies is lost or not: the rate of the repetition in which
/// that happens is right, too.
#[test]
fn a_lost_reply_of_a_known_rate_is_missed_and_the_run_goes_on() {
    const RATE: f64 = 200.0;
    let running = Running::start(&[]);
    for form in ALL_FORMS {
        is_right(form.1, || {
            let result = with_a_lost_reply(&running, form, RATE);
            let rate = |n: usize| {
                let repetition = &result["rows"][0]["repetitions"][n];
                let count = repetition["operations"]["read"]["count"].as_f64().unwrap();
                Figure::new(count / repetition["seconds"].as_f64().unwrap(), RATE, Always::AtMost(16.0 / 2.0))
            };
            [rate(0), rate(1)]
        });
    }
}

/// The result of a run of two repetitions in which one reply was lost. A machine that stands still may lose more, or not come so far:
/// then it is tried again.
fn with_a_lost_reply(running: &Running, form: (&str, &str), rate: f64) -> Value {
    for _ in 0..20 {
        // The first pass, which is thrown away, has 410 of them.
        let lies = [Lie::Paced(Duration::from_secs_f64(1.0 / rate)), Lie::Lost(600)];
        let (liar, target) = lying(running, form, &lies);
        let (status, result, said) =
            job(&target, &["--timeout", "2", "--seconds", "2", "--queue-depth", "16"]);
        let repetitions = result["rows"][0]["repetitions"].as_array().map_or(0, Vec::len);
        if (liar.lies(), &result["problems"][0]["count"], repetitions) != (1, &1.into(), 2) {
            println!("tried again: {said}");
            continue;
        }
        assert_eq!((status, kinds(&result)), (8, vec!["no-reply"]), "{said}");
        assert!(said.contains("1 of ") && said.contains(" no answer within 2s"), "{said}");
        assert!(running.is_clean(), "{said}");
        return result;
    }
    panic!("the machine stands still again and again");
}

#[test]
fn a_connection_that_ends_early_is_made_again() {
    let running = Running::start(&[]);
    for form in ALL_FORMS {
        let (liar, target) = lying(&running, form, &[Lie::Close(20)]);
        let (status, result, said) = job(&target, &[]);
        assert_eq!((status, kinds(&result)), (8, vec!["closed"]), "{target}: {said}");
        assert_eq!((&result["outcome"], liar.lies()), (&"complete".into(), 1), "{target}: {said}");
        // It ends in the first repetition, or, on a machine that stands still meanwhile, in the second.
        let repetitions = result["rows"][0]["repetitions"].as_array().unwrap();
        let again: u64 = repetitions.iter().map(|one| one["reconnects"].as_u64().unwrap()).sum();
        assert_eq!((repetitions.len(), again), (2, 1), "{target}: {said}");
        assert!(running.is_clean(), "{target}");
    }
}

/// A share whose plan has less room than the files need.
#[test]
fn a_share_that_is_full_gets_a_verdict() {
    let directory = TempDir::new().unwrap();
    let (mut flags, config) = (flags(&directory), path(&directory, "c.toml"));
    let data = path(&directory, "data");
    let share =
        format!("[[share]]\nname = \"data\"\ndirectory = \"{data}\"\nplan = \"custom capacity=512KiB\"\n");
    std::fs::write(&config, share).unwrap();
    let share = flags.iter().position(|flag| flag == "--share").unwrap();
    flags.splice(share..share + 2, ["--config".to_owned(), config]);
    let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let running = Running { directory, server };
    for target in [running.smb(), running.nfs("3"), running.nfs("4.1")] {
        // The server counts what a share holds from the first write on.
        good(&target, &["--file-size", "256k"]);
        let (status, result, said) = job(&target, &[]);
        assert_eq!((status, kinds(&result)), (8, vec!["no-space"]), "{target}: {said}");
        assert!(said.contains("Nothing was measured") && running.is_clean(), "{target}: {said}");
    }
}

#[test]
fn a_share_that_becomes_full_leaves_what_was_measured() {
    let running = Running::start(&[]);
    // The file has one write for itself before the load.
    let (liar, target) = lying(&running, ALL_FORMS[2], &[Lie::Full(600)]);
    let (status, result, said) =
        job(&target, &["--reads", "0", "--rate", "400", "--seconds", "0.5", "--repetitions", "20"]);
    assert_eq!((status, kinds(&result)), (8, vec!["no-space"]), "{said}");
    assert_eq!((&result["outcome"], liar.lies()), (&"failed".into(), 1), "{said}");
    assert!(said.contains("DISK_FULL") && said.contains("the earlier measurements are kept"), "{said}");
    // Half a second each, the first thrown away, the third not whole.
    let repetitions = result["rows"][0]["repetitions"].as_array().unwrap();
    assert!(!repetitions.is_empty() && repetitions.len() < 20 && running.is_clean(), "{said}");
}

#[test]
fn what_cannot_be_measured_gets_a_verdict() {
    let running = Running::start(&[]);
    let (smb, nfs) = (running.server.address("smb"), running.server.address("nfs"));
    let cases = [
        (format!("smb://anna:wrong@{smb}/data"), "wrong-password"),
        (format!("smb://nobody:x@{smb}/data"), "wrong-password"),
        (format!("smb://anna:hush-hush@{smb}/other"), "no-such-share"),
        (format!("nfs://{nfs}/other?vers=3"), "no-such-share"),
        (format!("nfs://{nfs}/other?vers=4.1"), "no-such-share"),
        ("nfs://127.0.0.1:1/x?vers=4.1".to_owned(), "unreachable"),
        ("smb://a:b@127.0.0.1:1/x".to_owned(), "unreachable"),
        ("dir:/nonexistent".to_owned(), "no-such-share"),
    ];
    for (target, kind) in cases {
        let (status, result, said) = job(&target, &[]);
        assert_eq!((status, kinds(&result)), (8, vec![kind]), "{target}: {said}");
        assert!(said.starts_with("error: ") && said.contains("Nothing was measured"), "{said}");
        assert!(!said.contains("hush"), "{said}");
    }
}

#[test]
fn a_share_that_can_only_be_read_gets_a_verdict() {
    let directory = TempDir::new().unwrap();
    let mut flags = flags(&directory);
    let config = path(&directory, "c.toml");
    std::fs::write(
        &config,
        format!(
            "[[share]]\nname = \"data\"\ndirectory = \"{}\"\nread-only = true\n",
            path(&directory, "data")
        ),
    )
    .unwrap();
    let share = flags.iter().position(|flag| flag == "--share").unwrap();
    flags.splice(share..share + 2, ["--config".to_owned(), config]);
    let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    for target in [
        format!("smb://anna:hush-hush@{}/data", server.address("smb")),
        format!("nfs://{}/data?vers=3", server.address("nfs")),
        format!("nfs://{}/data?vers=4.1", server.address("nfs")),
    ] {
        let (status, result, said) = job(&target, &[]);
        assert_eq!((status, kinds(&result)), (8, vec!["read-only"]), "{target}: {said}");
    }
}

#[test]
fn a_family_compares_channels_and_writes_its_result() {
    let running = Running::start(&[]);
    // In a row so short, a machine that stands still completes no operation, and the result leaves the row out.
    let (text, result) = ["0.1", "1", "5"]
        .into_iter()
        .map(|seconds| family(&running, seconds))
        .find(|(_, result)| result["rows"].as_array().is_some_and(|rows| rows.len() == 8))
        .expect("8 rows");
    assert!(
        text.contains("connections=4 bs=64KiB op=randread files=10 threads=8 qd=8")
            && text.contains("first pass"),
        "{text}"
    );
    assert_eq!(result["comparisons"].as_array().unwrap().len(), 4);
    let mut rows = result["rows"].as_array().unwrap().iter();
    assert!(rows.all(|row| row["repetitions"].as_array().unwrap().len() == 3));
    assert!(running.is_clean());
}

/// What a run of a family printed, and the result that it wrote.
fn family(running: &Running, seconds: &str) -> (String, Value) {
    let (out, target) = (path(&running.directory, &format!("{seconds}.json")), running.smb());
    let mut arguments =
        vec!["bench", "run", "smb-mc-multifile", "--quick", "--target", &target, "--out", &out];
    arguments.extend(["--seconds", seconds, "--ramp", "0.02", "--file-size", "1M"]);
    let Output { status, stdout, stderr } = program(&arguments).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let result = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    (String::from_utf8(stdout).unwrap(), result)
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let running = Running::start(&[]);
    let target = running.nfs("3");
    let arguments = [
        "bench",
        "job",
        "--json",
        "--seconds",
        "60",
        "--repetitions",
        "3",
        "--file-size",
        "1M",
        "--target",
        &target,
    ];
    let child = running.begin(&arguments);
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(result["outcome"], "stopped");
    assert!(running.is_clean());
}

/// The documents' own lines (1.27, 3.16), made short.
#[test]
fn loads_of_other_tools_are_taken() {
    let running = Running::start(&[]);
    let line =
        r"diskspd.exe -W300 -C5 -r -w100 -b4k -t8 -o8 -Sh -d60 -L -c2G -Z1G z:\write0.dat z:\write1.dat";
    let result = good(&running.smb(), &["--diskspd", line, "--connections", "4"]);
    let key = &result["rows"][0]["key"];
    assert_eq!((&key["files"], &key["threads"], &key["queue_depth"]), (&2.into(), &16.into(), &8.into()));
    let said = result["not_honoured"].to_string();
    assert!(said.contains("-C5: ") && said.contains("-Z1G: "), "{said}");

    let job = path(&running.directory, "job.fio");
    std::fs::write(&job, "[global]\nbs=8k\niodepth=4\ndirect=1\n[reads]\nrw=randread\n[both]\nrw=randrw\n")
        .unwrap();
    let result = good(&running.nfs("3"), &["--fio-job", &job]);
    let rows = result["rows"].as_array().unwrap();
    assert!(rows.len() == 2 && rows[1]["key"]["settings"]["job"] == "both", "{rows:?}");
    let (status, _, said) = self::job(&running.nfs("3"), &["--fio", "fio --rw=trim"]);
    assert_eq!(status, 2, "{said}");
}

#[test]
fn a_server_that_ends_leaves_what_was_measured() {
    let mut running = Running::start(&[]);
    let target = running.nfs("4.1");
    let arguments = [
        "bench",
        "job",
        "--json",
        "--seconds",
        "0.2",
        "--repetitions",
        "500",
        "--file-size",
        "1M",
        "--target",
        &target,
    ];
    let child = running.begin(&arguments);
    connections::wait_for(running.server.address("nfs"), 20); // each repetition has its own
    running.server.end_with("TERM");
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!((status.code(), &result["outcome"]), (Some(8), &"failed".into()), "{said}");
    assert!(kinds(&result).contains(&"unreachable") && kinds(&result).contains(&"not-removed"), "{said}");
    assert!(!result["rows"][0]["repetitions"].as_array().unwrap().is_empty(), "{said}");
}
