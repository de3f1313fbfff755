//! `anabranch bench model`: machines, links and limits that are built for a measurement, and end with it. Building needs root.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench_peers::{is_root, processes};
use crate::needs;
use crate::server::program;

/// A load that goes on for so many repetitions. Each is long enough for an operation through a slow link on a busy machine.
/// No calibration decides whether there is one.
const LOAD: [&str; 7] = ["--uncalibrated", "--seconds", "1", "--ramp", "0.05", "--file-size", "256k"];
/// The most that goes at once where the kernel hands over segments that are not cut yet (GSO).
const SEGMENT_BYTES: f64 = 65536.0;

struct Described {
    directory: TempDir,
}

impl Described {
    /// A model with one client, and writes over one connection.
    fn new(client: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let text = format!(
            "name = \"small\"\nabout = \"one link\"\nscale = 1\n[[client]]\nname = \"vm\"\n{client}\n[[job]]\nover = \"smb\"\nclients = [1]\nconnections = [1]\nblock-size = \"64k\"\nreads = 0\nqueue-depth = 4\n"
        );
        fs::write(directory.path().join("model.toml"), text).unwrap();
        Self { directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("model.toml")
    }

    /// `bench model VERB FILE ...`
    fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = program(&["bench", "model", verb]);
        command.arg(self.file()).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Measures, and returns all that was found.
    fn run(&self, more: &[&str]) -> Value {
        let run = self.command("run", &[more, &["--json"]].concat()).output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{more:?}: {}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).unwrap()
    }

    /// Measures, and returns what passed a link.
    fn measured(&self, link: [&str; 2]) -> Value {
        let measured = self.run(&[&LOAD[..], &["--repetitions", "4"]].concat());
        let result = &measured["results"][0];
        assert_eq!(
            (&result["problems"], &result["environment"]["settings"]["model"]),
            (&json!([]), &json!("small"))
        );
        assert!(result["rows"][0]["measure"]["rate"]["median"].as_f64().unwrap() > 0.0, "{result:#}");
        let links = measured["links"].as_array().unwrap();
        let found = links.iter().find(|of| [&of["machine"], &of["direction"]] == link);
        found.unwrap().clone()
    }
}

fn figure(link: &Value, name: &str) -> f64 {
    link[name].as_f64().unwrap_or_else(|| panic!("{name} of {link}"))
}

#[test]
fn the_models_are_listed_and_shown() {
    let ran = |arguments: &[&str]| program(&[&["bench", "model"], arguments].concat()).output().unwrap();
    let list = String::from_utf8(ran(&["list"]).stdout).unwrap();
    let names: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.len(), 7, "{list}");
    for name in names {
        let shown: Value = serde_json::from_slice(&ran(&["show", name, "--json"]).stdout).unwrap();
        assert_eq!(shown["name"], *name);
        let parameters = shown["parameters"].as_array().unwrap();
        assert!(!parameters.is_empty() && parameters.iter().all(|p| p["source"].is_string()), "{shown:#}");
        let text = String::from_utf8(ran(&["show", name]).stdout).unwrap();
        assert!(text.contains("Speaks to:") && text.contains("PUBLISHED"), "{text}");
    }
    let refused = ran(&["show", "no-such-model"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("there is no model no-such-model") && said.contains("netapp-smb"), "{said}");
}

#[test]
fn what_is_wrong_in_a_description_is_said_with_its_line() {
    let described = Described::new("out = \"8 apples\"");
    for verb in ["show", "run", "shell"] {
        let refused = described.command(verb, &[]).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("model.toml: line 6: \"8 apples\" is no rate"), "{said}");
    }
}

/// A fact about what passed, not an expectation of speed: a busy machine may pass less.
#[test]
fn a_link_passes_no_more_than_its_limit() {
    if !is_root() {
        return;
    }
    let link = Described::new("out = \"8 MB/s\"").measured(["vm-1", "out"]);
    let (limit, bucket) = (figure(&link, "limit"), figure(&link, "bucket"));
    assert_eq!((limit, bucket), (8e6, 8e3));
    let most = limit * figure(&link, "busiest-seconds") + bucket;
    assert!(figure(&link, "busiest-bytes") <= most, "{link}");
    assert!(figure(&link, "bytes") > 1e6, "{link}");
}

/// What a machine carries is found before anything else; rows are measured where it is enough, and told otherwise. Whether it is
/// depends on what else the machine does.
#[test]
fn what_a_machine_carries_is_found_first() {
    if !is_root() {
        return;
    }
    let described = Described::new("out = \"8 MB/s\"");
    let measured = described.run(&["--quick", "--file-size", "256k"]);
    let calibrations = measured["calibration"].as_array().unwrap();
    assert_eq!(calibrations.len(), 1, "{measured:#}");
    let found = &calibrations[0];
    let about = ["clients", "connections", "direction", "limit"].map(|name| &found[name]);
    assert_eq!(about, [&json!(1), &json!(1), &json!("to-server"), &json!(8_000_000)]);
    assert!(found["wire"].as_u64().unwrap() > 0, "{found}");
    let count = |of: &Value| of.as_array().map_or(0, Vec::len);
    let counts = (count(&measured["unusable"]), count(&measured["results"]));
    let is_usable = found["finding"] == "usable";
    assert_eq!(counts, if is_usable { (0, 1) } else { (1, 0) }, "{measured:#}");
    if is_usable {
        let said = &measured["results"][0]["environment"]["settings"]["model calibrated"];
        assert!(said.as_str().unwrap().starts_with("links carry at least "), "{said}");
    }
}

/// Facts: a round trip has the delay twice at least, and frames are lost where the model says so and nowhere else.
#[test]
fn a_link_has_its_delay_and_its_losses() {
    if !is_root() {
        return;
    }
    let described = Described::new("out = \"8 MB/s\"\ndelay = \"2 ms\"\nloss = 0.01");
    let measured = described.run(&["--quick", "--file-size", "256k"]);
    let trip = &measured["round-trips"][0];
    assert_eq!((&trip["machine"], &trip["delay-micros"]), (&json!("vm-1"), &json!(2000)));
    assert!(
        trip["micros"].as_u64().unwrap() >= 4000 && trip["without-micros"].as_u64().unwrap() > 0,
        "{trip}"
    );
    let forwarded = measured["forwarded"].as_array().unwrap();
    let directions: Vec<&Value> = forwarded.iter().map(|of| &of["direction"]).collect();
    assert_eq!(directions, ["out", "in"]);
    assert!(forwarded.iter().all(|of| of["frames"].as_u64().unwrap() > 0), "{forwarded:?}");
    // Late rows are not measured.
    let rows = |of: &str| measured[of].as_array().map_or(0, Vec::len);
    assert_eq!(rows("unusable") + rows("results"), 1, "{measured:#}");
}

/// Facts: no access is faster than the storage, whichever server asks for it, and the file system that delays is gone with the model.
#[test]
fn a_storage_has_its_delays() {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return needs::not_tested("a storage with delays needs root and /dev/fuse");
    }
    let described = Described::new("");
    let text = fs::read_to_string(described.file()).unwrap();
    let server =
        "[server]\ndata-delay = \"20 ms\"\nmetadata-delay = \"2 ms\"\nmetadata-cache = false\n[[job]]";
    fs::write(described.file(), text.replace("[[job]]", server)).unwrap();
    let found = described.run(&["--quick", "--file-size", "256k"]);
    for (delay, (parameter, micros)) in found["storage-delays"]
        .as_array()
        .unwrap()
        .iter()
        .zip([("data-delay", 20_000), ("metadata-delay", 2_000)])
    {
        assert_eq!((&delay["parameter"], &delay["delay-micros"]), (&json!(parameter), &json!(micros)));
        let [with, without] = ["micros", "without-micros"].map(|name| delay[name].as_u64().unwrap());
        assert!(with >= micros && without > 0, "{delay}");
    }
    // Late rows are not measured.
    let rows = |of: &str| found[of].as_array().map_or(0, Vec::len);
    assert_eq!(rows("unusable") + rows("results"), 1, "{found:#}");
    for (server, over) in [("anabranch", "smb"), ("samba", "smb"), ("ganesha", "nfs4.1")] {
        let text = fs::read_to_string(described.file()).unwrap();
        let text = ["smb", "nfs4.1"].iter().fold(text, |text, old| text.replace(old, over));
        fs::write(described.file(), text.replace("reads = 0", "reads = 100")).unwrap();
        let measured = described.run(&[&LOAD[..], &["--server", server, "--repetitions", "2"]].concat());
        let result = &measured["results"][0];
        let row = &result["rows"][0]["measure"];
        assert!(row["rate"]["median"].as_f64().unwrap() > 0.0, "{server}: {result:#}");
        // A bin of the histogram is 1 % wide.
        assert!(row["latency"]["read"]["p50_us"].as_f64().unwrap() >= 19_500.0, "{server}: {row:#}");
        assert_eq!(result["environment"]["settings"]["metadata-cache"], "off");
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("anabranch-delay"), "{mounts}");
}

/// `bench delay` shows a directory until it is ended.
#[test]
fn a_directory_is_slow_until_that_is_ended() {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return needs::not_tested("a storage with delays needs root and /dev/fuse");
    }
    let (directory, at) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(directory.path().join("file"), "content").unwrap();
    let mut command = program(&["bench", "delay", "--data", "30ms", "--metadata", "10ms"]);
    let mut child =
        command.arg(directory.path()).arg("--at").arg(at.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("ready {}\n", at.path().display()));
    let begun = Instant::now();
    assert_eq!(fs::read_to_string(at.path().join("file")).unwrap(), "content");
    assert!(begun.elapsed() >= Duration::from_millis(40));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!at.path().join("file").exists() && directory.path().join("file").exists());
    let refused = program(&["bench", "delay", "/proc/self"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("cannot be shown with delays"), "{said}");
    let refused = program(&["bench", "delay", "/", "--data", "2"]).output().unwrap();
    assert!(String::from_utf8(refused.stderr).unwrap().contains("is no delay"));
}

/// Samba and Ganesha are served from a machine of the model, and measured through its links.
#[test]
fn a_peer_serves_in_a_model() {
    let is_installed = |program: &str, flag: &str| {
        needs::installed(program, Command::new(program).arg(flag).output()).is_some()
    };
    if !is_root() || !is_installed("smbd", "--version") || !is_installed("ganesha.nfsd", "-v") {
        return;
    }
    for (server, over, name) in [("samba", "smb", "Samba "), ("ganesha", "nfs3", "NFS-Ganesha ")] {
        let described = Described::new("out = \"8 MB/s\"");
        let text = fs::read_to_string(described.file()).unwrap();
        fs::write(described.file(), text.replace("over = \"smb\"", &format!("over = \"{over}\""))).unwrap();
        let measured = described.run(&[&LOAD[..], &["--server", server, "--repetitions", "2"]].concat());
        let result = &measured["results"][0];
        let shown = result["environment"]["server"].to_string();
        assert!(shown.contains(name), "{shown}");
        assert!(result["rows"][0]["measure"]["rate"]["median"].as_f64().unwrap() > 0.0, "{result:#}");
        let other = if server == "samba" { "ganesha" } else { "samba" };
        let refused = described.command("run", &["--server", other]).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains("over its protocol"), "{said}");
    }
}

/// One connection works; others of the client, by which files were made, may still send their last.
#[test]
fn a_connection_passes_no_more_than_its_limit() {
    if !is_root() {
        return;
    }
    let link = Described::new("flow = \"2 MB/s\"").measured(["vm-1", "out"]);
    assert_eq!(link["limit"], Value::Null);
    let most = 3.0 * (2e6 * figure(&link, "busiest-seconds") + 8e3 + SEGMENT_BYTES);
    assert!(figure(&link, "busiest-bytes") <= most && figure(&link, "bytes") > 0.0, "{link}");
}

#[test]
fn a_command_runs_on_a_machine_of_the_model() {
    if !is_root() {
        return;
    }
    let described = Described::new("count = 2");
    let script = "hostname && ip -o -4 addr show dev port && echo $SMB $NFS && exit 3";
    let ended = described.command("shell", &["--client", "vm-2", "--", "sh", "-c", script]).output().unwrap();
    let (out, said) = (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
    assert!(out.starts_with("vm-2\n") && out.contains(" 198.18.1.2/16 "), "{out}{said}");
    assert!(out.contains("@198.18.0.1:445/model nfs://198.18.0.1:2049/model?vers=4.1\n"), "{out}");
    assert!(said.contains("ended with exit status: 3"), "{said}");
    let refused = described.command("shell", &["--client", "vm-3", "--", "true"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("the model has no client vm-3"), "{said}");
}

/// A network namespace that is not the model's, with a name and an interface like its own.
struct Stranger {
    name: String,
}

impl Stranger {
    fn make() -> Self {
        let name = format!("vm-1-{}", std::process::id());
        let ip =
            |words: &[&str]| assert!(Command::new("ip").args(words).status().unwrap().success(), "{words:?}");
        ip(&["netns", "add", &name]);
        let stranger = Self { name };
        ip(&["-n", &stranger.name, "link", "add", "port", "type", "veth", "peer", "name", "vm-1"]);
        stranger
    }

    fn is_there(&self) -> bool {
        let shown = Command::new("ip").args(["-n", &self.name, "link", "show", "vm-1"]).output().unwrap();
        shown.status.success()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// The process and all that it has started.
fn family(of: u32) -> BTreeSet<u32> {
    let all = processes();
    let mut found = BTreeSet::from([of]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|(pid, parent, _)| found.contains(parent) && !found.contains(pid))
            .map(|p| p.0)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The namespaces of networks that processes are in.
fn networks(of: impl IntoIterator<Item = u32>) -> BTreeSet<PathBuf> {
    of.into_iter().filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok()).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A long run whose client makes load: its switch, its server and its client are there, and the program is in one network more.
fn begin(described: &Described) -> Child {
    let run = described.command("run", &[&LOAD[..], &["--repetitions", "500"]].concat()).spawn().unwrap();
    let is_client = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        words.first().is_some_and(|word| word.ends_with(b"anabranch")) && words.contains(&&b"worker"[..])
    };
    wait_until("the client works", || family(run.id()).iter().any(is_client));
    assert_eq!(networks(family(run.id())).len(), 4);
    run
}

/// However the program ends, what it made is gone, and nothing else is.
#[test]
fn nothing_of_a_model_is_left() {
    if !is_root() {
        return;
    }
    let (described, stranger) = (Described::new("out = \"8 MB/s\"\nflow = \"4 MB/s\""), Stranger::make());
    let own = networks([std::process::id()]);
    for signal in ["KILL", "TERM", "INT"] {
        let mut run = begin(&described);
        let made = family(run.id());
        let networks_made: BTreeSet<PathBuf> = networks(made.clone()).difference(&own).cloned().collect();
        let sent = Command::new("kill").args(["-s", signal, &run.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let status = run.wait().unwrap();
        assert_eq!(status.code(), if signal == "KILL" { None } else { Some(0) }, "{signal}");
        // A process that is in one of them holds it, and nothing else does: they have no names.
        let left = || networks(processes().into_iter().map(|p| p.0)).intersection(&networks_made).count();
        wait_until(&format!("{signal}: processes of {networks_made:?} have ended"), || left() == 0);
        assert!(stranger.is_there(), "{signal}");
    }
    let again = described.command("shell", &["--", "true"]).status().unwrap();
    assert!(again.success() && stranger.is_there());
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    if !is_root() {
        return;
    }
    let described = Described::new("out = \"8 MB/s\"");
    let refused = described.command("run", &[]).env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("unshare cannot be started") && said.contains("apt-get install util-linux"),
        "{said}"
    );
}
