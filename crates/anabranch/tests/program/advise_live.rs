//! `anabranch advise` on a client that works, on the machine, and changing a share of the server that runs.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::server::{Server, flags, path, program};
use serde_json::Value;
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(60);

/// A server with the share `data`, which the command line declares, and `made`, which a command has made.
struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    fn start(plan: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let flags = flags(&directory);
        let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        let running = Self { directory, server };
        std::fs::create_dir(running.directory.path().join("made")).unwrap();
        let made = path(&running.directory, "made");
        running.done(&["share", "create", "made", &made, "--plan", plan]);
        running
    }

    /// Asks the server by its state directory.
    fn run(&self, arguments: &[&str]) -> Output {
        let state = path(&self.directory, "state");
        program(&[arguments, &["--state", &state]].concat()).output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The exit status, and what was said.
    fn refused(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
        (status.code(), String::from_utf8(stderr).unwrap())
    }

    fn target(&self, share: &str) -> String {
        format!("smb://anna:hush-hush@{}/{share}", self.server.address("smb"))
    }

    fn plan(&self) -> String {
        self.json(&["share", "show", "made"])["plan"].as_str().unwrap().to_owned()
    }
}

/// A client that works until it is dropped.
struct Load(Child);

impl Load {
    fn start(target: &str, more: &[&str]) -> Self {
        let job =
            ["bench", "job", "--target", target, "--ramp", "0.1", "--seconds", "60", "--file-size", "1M"];
        let mut command = program(&[&job, more].concat());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What is said of the client of this name, once it reads and this rule applies.
fn advice_on(running: &Running, client: &str, rule: u64) -> Value {
    let arguments = ["advise", "--client", client, "--seconds", "1", "--json"];
    until("a client that reads", || {
        let Output { status, stdout, .. } = running.run(&arguments);
        let said: Value = serde_json::from_slice(&stdout).ok().filter(|_| status.success())?;
        (said[0]["facts"]["work"]["write-share"] == 0.0 && rules(&said[0]).contains(&rule))
            .then(|| said[0].clone())
    })
}

fn rules(said: &Value) -> Vec<u64> {
    said["advice"].as_array().unwrap().iter().map(|advice| advice["rule"].as_u64().unwrap()).collect()
}

#[test]
fn the_server_knows_what_an_smb_client_does() {
    let running = Running::start("unlimited");
    let more = ["--threads", "4", "--files", "2", "--queue-depth", "4", "--block-size", "8k"];
    let _load = Load::start(&running.target("made"), &more);
    let said = advice_on(&running, "anna", 1);
    assert_eq!((&said["share"], &said["facts"]["protocol"]), (&"made".into(), &"smb".into()), "{said:#}");
    let facts = &said["facts"];
    assert_eq!(
        (&facts["work"]["io-bytes"], &facts["work"]["files"]),
        (&8192.0.into(), &2.into()),
        "{facts:#}"
    );
    // The client has 16 under way, of which some are neither in the server nor on the way.
    let depth = facts["work"]["queue-depth"].as_f64().unwrap();
    assert!(depth > 0.0 && depth < 20.0, "{facts:#}");
    // How many are at work at a time depends on who else is.
    assert!((1..=16).contains(&facts["work"]["threads"].as_u64().unwrap()), "{facts:#}");
    assert_eq!(
        (&facts["path"]["connections"], &facts["reached"]["throttled-share"]),
        (&1.into(), &0.0.into())
    );
    let [whole, own] = ["end-to-end-us", "server-us"].map(|name| facts["latency"][name].as_f64().unwrap());
    assert!(whole > own && own > 0.0, "{facts:#}");
    assert!(facts["work"]["metadata-share"].as_f64().unwrap() < 0.1, "{facts:#}");
    let text = running.done(&["advise", "--client", "127.0.0.1", "--share", "made", "--seconds", "1"]);
    assert!(
        text.contains("reads and writes of 8 KiB on average, 100 % of them at most 16 KiB, 0 % writes"),
        "{text}"
    );
    let (status, said) =
        running.refused(&["advise", "--client", "anna", "--share", "data", "--seconds", "1"]);
    assert!(status == Some(7) && said.contains("has done nothing in the share data"), "{said}");
    let (status, said) = running.refused(&["advise", "--client", "nobody"]);
    assert!(status == Some(7) && said.contains("no client nobody is connected"), "{said}");
}

#[test]
fn a_throttled_nfs_client_is_told_so_and_its_plan_is_raised() {
    let running = Running::start("custom iops=30");
    let (_, port) = running.server.address("nfs").rsplit_once(':').unwrap();
    let target = format!("nfs://127.0.0.1:{port}/made?vers=3");
    let _load = Load::start(&target, &["--queue-depth", "8", "--block-size", "4k"]);
    let said = advice_on(&running, "127.0.0.1", 15);
    let facts = &said["facts"];
    assert_eq!((&facts["protocol"], &facts["limits"]["iops"]), (&"nfs3".into(), &30.0.into()), "{said:#}");
    assert!(facts["reached"]["throttled-share"].as_f64().unwrap() > 0.5, "{said:#}");
    assert_eq!(facts["work"]["threads"], Value::Null, "NFSv3 has no opens");
    let tried = running.json(&["advise", "--client", "127.0.0.1", "--seconds", "1", "--apply"]);
    assert_eq!((&tried["rule"], &tried["kept"]), (&15.into(), &true.into()), "{tried:#}");
    assert_eq!(
        tried["steps"].as_array().unwrap().len(),
        1,
        "it ends with the first change that helps: {tried:#}"
    );
    assert!(tried["stopped"].as_str().unwrap().starts_with("the change helps and is kept"), "{tried:#}");
    assert_eq!(
        (&tried["conclusion"], &tried["command"]),
        (&"higher".into(), &"anabranch share set made --plan 'custom iops=60'".into())
    );
    assert_eq!(running.plan(), "custom iops=60");
}

#[test]
fn a_change_without_effect_is_reverted() {
    // Twice of the one is held back by the other.
    let running = Running::start("custom iops=100 client-iops=100");
    let tried = running.json(&["advise", &running.target("made"), "--apply"]);
    assert_eq!((&tried["rule"], &tried["kept"]), (&15.into(), &false.into()), "{tried:#}");
    let steps = tried["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["kept"] == false && !step["before"].is_null()), "{tried:#}");
    let stopped = tried["stopped"].as_str().unwrap();
    assert!(stopped.ends_with("none surely helps; the share is as it was"), "{tried:#}");
    assert_eq!(running.plan(), "custom iops=100 client-iops=100");
}

#[test]
fn a_trial_that_is_interrupted_leaves_the_share_as_it_was() {
    let running = Running::start("custom iops=30");
    let state = path(&running.directory, "state");
    let mut trial = program(&["advise", &running.target("made"), "--apply", "--state", &state])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the plan is changed", || (running.plan() == "custom iops=60").then_some(()));
    let pid = trial.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let status = until("it ends", || trial.try_wait().unwrap());
    let said = std::io::read_to_string(trial.stderr.take().unwrap()).unwrap();
    assert!(status.code() == Some(8) && said.contains("the share made is unchanged"), "{status}: {said}");
    assert_eq!(running.plan(), "custom iops=30");
    assert_eq!(
        std::fs::read_dir(running.directory.path().join("made")).unwrap().count(),
        0,
        "nothing is left there"
    );
}

#[test]
fn what_is_not_to_be_changed_is_refused() {
    let running = Running::start("unlimited");
    let (status, said) = running.refused(&["advise", &running.target("data"), "--apply"]);
    assert!(status == Some(7) && said.contains("is declared in"), "{said}");
    let (status, said) = running.refused(&["advise", &running.target("none"), "--apply"]);
    assert!(status == Some(7) && said.contains("none"), "{said}");
    // The share of another server that has the same name.
    let other = Running::start("unlimited");
    let (status, said) = running.refused(&["advise", &other.target("made"), "--apply"]);
    assert!(
        status == Some(7) && said.contains("is not the share made of the server that runs here"),
        "{said}"
    );
    let text = running.done(&["advise", &running.target("made"), "--apply"]);
    assert!(text.contains("No advised change applies to the share made"), "{text}");
    let mut running = running;
    assert_eq!(running.server.end_with("TERM"), Some(0));
    let (status, said) = running.refused(&["advise", "--client", "anna"]);
    assert!(status == Some(6) && said.contains("no server is running"), "{said}");
}

#[test]
fn a_target_is_measured_when_it_is_asked_for() {
    let running = Running::start("unlimited");
    let target = running.target("made");
    let Output { status, stdout, .. } = program(&["advise", &target]).output().unwrap();
    let offer = String::from_utf8(stdout).unwrap();
    assert!(status.success() && offer.contains("--measure") && !offer.contains("hush-hush"), "{offer}");
    let Output { status, stdout, stderr } =
        program(&["advise", &target, "--measure", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&stdout).unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let all: Vec<u64> = said.as_array().unwrap().iter().flat_map(rules).collect();
    for rule in [1, 2, 3, 19] {
        assert!(all.contains(&rule), "R{rule} in {said:#}");
    }
    let text = said.to_string();
    assert!(text.contains("measured: "), "{text}");
}

#[test]
fn this_machine_is_looked_at() {
    let Output { status, stdout, .. } = program(&["advise", "host", "--json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&stdout).unwrap();
    let kernel =
        found.as_array().unwrap().iter().find(|f| f["about"].as_str().unwrap().starts_with("Linux "));
    assert!(status.success() && kernel.is_some(), "{found:#}");
    let Output { status, stdout, .. } = program(&["advise", "host"]).output().unwrap();
    assert!(status.success() && String::from_utf8_lossy(&stdout).contains("source: "));
}
