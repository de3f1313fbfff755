//! What `anabranch bench` takes and gives besides loads and results of its own: recordings, fio's json+.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Server, flags, path, program};

fn start(directory: &TempDir) -> Server {
    let flags = flags(directory);
    Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs a job with these arguments; its result.
fn job(arguments: &[&str]) -> Value {
    let Output { status, stdout, stderr } =
        program(&[&["bench", "job", "--json"], arguments].concat()).output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// The reads and writes of a recording, and their bytes; and when the first and the last one came, in seconds.
fn recorded(path: &str) -> ([[u64; 2]; 2], f64) {
    let mut sums = [[0; 2]; 2];
    let mut times = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let bytes: u64 = fields[6].parse().unwrap_or(0);
        if bytes > 0 {
            let sum = &mut sums[usize::from(fields[1] == "Write")];
            *sum = [sum[0] + 1, sum[1] + bytes];
            times.push(fields[0].parse::<u64>().unwrap());
        }
    }
    let span = times.iter().max().unwrap() - times.iter().min().unwrap();
    (sums, std::time::Duration::from_micros(span).as_secs_f64())
}

fn replayed(result: &Value) -> [[u64; 2]; 2] {
    let operations = &result["rows"][0]["repetitions"][0]["operations"];
    ["read", "write"]
        .map(|kind| ["count", "bytes"].map(|field| operations[kind][field].as_u64().unwrap_or(0)))
}

#[test]
fn what_was_recorded_is_done_again() {
    let directory = TempDir::new().unwrap();
    let mut server = start(&directory);
    let (trace, state) = (path(&directory, "trace"), path(&directory, "state"));
    let smb = format!("smb://anna:hush-hush@{}/data", server.address("smb"));
    let record = [
        "share",
        "record",
        "data",
        "--out",
        &trace,
        "--seconds",
        "60",
        "--json",
        "--state",
        &state,
        "--operations-max",
        "150",
    ];
    let recording = program(&record).stdout(Stdio::piped()).spawn().unwrap();
    // The load goes on until there is enough of it in the recording.
    let load = ["--reads", "50", "--files", "3", "--block-size", "8k", "--rate", "300", "--queue-depth", "4"];
    let long = ["--seconds", "60", "--ramp", "0.1", "--repetitions", "1", "--file-size", "256k"];
    let mut load = program(&[&["bench", "job", "--target", &smb], &load[..], &long].concat());
    let mut load = load.stdout(Stdio::null()).spawn().unwrap();
    assert!(recording.wait_with_output().unwrap().status.success());
    let pid = load.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    assert!(load.wait().unwrap().success(), "it removes its folder");

    let (expected, seconds) = recorded(&trace);
    assert!(expected[0][0] > 0 && expected[1][0] > 0, "{expected:?}");
    let nfs = |version| format!("nfs://{}/data?vers={version}", server.address("nfs"));
    let local = format!("dir:{}", path(&directory, "data"));
    for target in [smb, nfs("3"), nfs("4.1"), local] {
        let result =
            job(&["--target", &target, "--trace", &trace, "--as-fast-as-possible", "--repetitions", "1"]);
        assert_eq!(replayed(&result), expected, "{target}");
        assert_eq!(result["rows"][0]["key"]["files"], 3, "{target}");
        assert_eq!(result["method"]["data_checked"], true, "{target}");
        let said = result["not_honoured"].to_string();
        assert!(said.contains("only reads and writes are replayed"), "{said}");
    }
    let paced = job(&["--target", &nfs("4.1"), "--trace", &trace, "--speed", "2", "--repetitions", "1"]);
    assert_eq!(replayed(&paced), expected);
    let took = paced["rows"][0]["repetitions"][0]["seconds"].as_f64().unwrap();
    // How much longer it took is a matter of the machine.
    println!("{took:.3} s at double speed, of a recording of {seconds:.3} s");
    assert!(took >= seconds / 2.0, "{took} s of a recording of {seconds} s");
    assert!(std::fs::read_dir(path(&directory, "data")).unwrap().next().is_none(), "something is left");
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn what_people_get_wrong_is_said_with_a_hint() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory);
    let (smb, nfs) = (server.address("smb"), server.address("nfs"));
    for (target, hint) in [
        (format!("smb://anna:wrong@{smb}/data"), "does not accept the password of anna"),
        (format!("smb://anna:hush-hush@{smb}/none"), "Check the name at the end"),
        (format!("smb://anna:hush-hush@{nfs}/data"), "the port of SMB?"),
        (format!("nfs://{smb}/data"), "the port of NFS?"),
        (format!("nfs://{nfs}/data?uid=1234&gid=1234"), "the user 1234 must be allowed to write"),
    ] {
        let family = if target.starts_with("smb") { "smb-mc-multifile" } else { "nfs-nconnect" };
        let Output { status, stderr, .. } =
            program(&["bench", "run", family, "--quick", "--target", &target]).output().unwrap();
        let errors = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(8) && errors.contains(hint), "{target}: {errors}");
        assert!(errors.contains("Nothing was measured."), "{target}: {errors}");
    }
}

#[test]
fn a_recording_that_is_none_is_refused() {
    let directory = TempDir::new().unwrap();
    let wrong = path(&directory, "wrong");
    std::fs::write(&wrong, "# anabranch trace 1\n0\tCreate\tsmb\tc\t-\t-\t-\n").unwrap();
    for (trace, words) in
        [("/nonexistent", "cannot read /nonexistent"), (&wrong, "there is no read and no write")]
    {
        let Output { status, stderr, .. } =
            program(&["bench", "job", "--target", "dir:/tmp", "--trace", trace]).output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(2) && said.contains(words), "{said}");
    }
}

#[test]
fn tools_made_for_fio_read_what_is_written_for_them() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory);
    let target = format!("nfs://{}/data?vers=3", server.address("nfs"));
    let (plus, job_file) = (path(&directory, "plus.json"), path(&directory, "job.fio"));
    std::fs::write(&job_file, "[global]\nbs=8k\niodepth=4\n[reads]\nrw=randread\n[both]\nrw=randrw\n")
        .unwrap();
    let short = ["--seconds", "0.2", "--ramp", "0.05", "--repetitions", "2", "--file-size", "1M"];
    let result =
        job(&[&["--target", &target, "--fio-job", &job_file, "--json-plus", &plus], &short[..]].concat());
    let written: Value = serde_json::from_slice(&std::fs::read(&plus).unwrap()).unwrap();
    let jobs = written["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    for (job, row) in jobs.iter().zip(result["rows"].as_array().unwrap()) {
        for direction in ["read", "write"] {
            let sum = |field: &str| -> u64 {
                let repetitions = row["repetitions"].as_array().unwrap();
                repetitions.iter().map(|r| r["operations"][direction][field].as_u64().unwrap_or(0)).sum()
            };
            let of_job = &job[direction];
            assert_eq!(of_job["total_ios"], sum("count"), "{job:#}");
            assert_eq!(of_job["io_bytes"], sum("bytes"));
            assert_eq!(of_job["clat_ns"]["N"], sum("count"));
            let bins = of_job["clat_ns"]["bins"]
                .as_object()
                .map_or(0, |bins| bins.values().filter_map(Value::as_u64).sum());
            assert_eq!(bins, sum("count"));
        }
        let (median, row) =
            (&job["read"]["clat_ns"]["percentile"]["50.000000"], &row["measure"]["latency"]["read"]);
        let ratio = median.as_f64().unwrap() / 1000.0 / row["p50_us"].as_f64().unwrap();
        assert!((0.99..1.01).contains(&ratio), "{median} ns, {row}");
    }
    read_with_tool_of_fio(&plus, &path(&directory, "plus.csv"));
}

/// fio's own converter makes tables of it and finds each bin in them.
fn read_with_tool_of_fio(json: &str, csv: &str) {
    const TOOL: &str = "fio_jsonplus_clat2csv";
    let mut said = String::new();
    for more in [&[][..], &["--validate"]] {
        match Command::new(TOOL).args([json, csv]).args(more).output() {
            Err(_) => {
                eprintln!("NOT CHECKED with {TOOL}: there is none here; it comes with fio");
                return;
            }
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                said = String::from_utf8(output.stdout).unwrap();
            }
        }
    }
    assert_eq!(said.matches("validated").count(), 2, "{said}");
}
