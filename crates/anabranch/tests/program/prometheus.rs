//! A real Prometheus reads the metrics of a server under load: each expression of the dashboard and of the alert rules in
//! `packaging`, and of docs/metrics.md, finds something.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::needs;
use crate::server::{Server, flags, path, program};

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/anabranch.json");
const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus/anabranch.rules.yml");
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The expressions of the dashboard's panels, with its variables filled in, by the panels' titles.
fn of_dashboard() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| (title.to_owned(), target["expr"].as_str().unwrap().to_owned()))
    });
    targets
        .map(|(title, expr)| (title, expr.replace("$__rate_interval", "15s").replace("$share", ".*")))
        .collect()
}

/// The expression that another one compares with a number, if it does.
fn compared(expr: &str) -> Option<&str> {
    let parts = [" == ", " > ", " < "].iter().find_map(|compares| expr.rsplit_once(compares));
    parts.filter(|(_, number)| number.parse::<f64>().is_ok()).map(|(value, _)| value)
}

/// What the expressions of the alert rules compare with a number, by the rules' names.
fn of_rules() -> Vec<(String, String)> {
    let rules = fs::read_to_string(RULES).unwrap();
    let mut named = Vec::new();
    let mut name = String::new();
    for line in rules.lines() {
        let line = line.trim();
        if let Some(alert) = line.strip_prefix("- alert: ") {
            alert.clone_into(&mut name);
        } else if let Some(expr) = line.strip_prefix("expr: ") {
            let value = compared(expr).unwrap_or_else(|| panic!("{name} compares with no number"));
            named.push((name.clone(), value.to_owned()));
        }
    }
    named
}

/// The expressions of docs/metrics.md, by their questions.
fn of_questions() -> Vec<(String, String)> {
    let (_, table) = DOCUMENT.split_once("| question | expression |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let question = |row: &str| {
        let (question, expr) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
        let expr = expr.trim_matches('`').replace("\\|", "|");
        (question.to_owned(), compared(&expr).unwrap_or(&expr).to_owned())
    };
    rows.map(question).collect()
}

/// Prometheus, which reads the server's metrics every second. None where there is none.
fn prometheus(directory: &TempDir, server: &Server) -> Option<(Running, u16)> {
    let config = path(directory, "prometheus.yml");
    let (token, at) = (path(directory, "state/control-token"), server.address("control"));
    let certificate = path(directory, "certificate.pem");
    let text = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
         rule_files: [{RULES:?}]\n\
         scrape_configs:\n\
         - job_name: anabranch\n  scheme: https\n  tls_config: {{ ca_file: {certificate:?} }}\n  \
         authorization: {{ credentials_file: {token:?} }}\n  static_configs: [{{ targets: [{at:?}] }}]\n"
    );
    fs::write(&config, text).unwrap();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let started = Command::new("prometheus")
        .arg(format!("--config.file={config}"))
        .arg(format!("--storage.tsdb.path={}", path(directory, "tsdb")))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = needs::installed("prometheus", started)?;
    let log = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        // What it says of itself is shown if the test fails.
        BufReader::new(log).lines().map_while(Result::ok).for_each(|line| eprintln!("prometheus: {line}"));
    });
    Some((Running(child), port))
}

/// The values of an expression now. Empty as long as Prometheus does not answer.
fn values(port: u16, expr: &str) -> Vec<f64> {
    let escaped: String = expr.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Vec::new() };
    write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let Some((_, body)) = answer.split_once("\r\n\r\n") else { return Vec::new() };
    let Ok(body) = serde_json::from_str::<Value>(body) else { return Vec::new() };
    assert_ne!(body["errorType"], "bad_data", "{expr}: {}", body["error"]);
    let results = body["data"]["result"].as_array().cloned().unwrap_or_default();
    results.iter().map(|result| result["value"][1].as_str().unwrap().parse().unwrap()).collect()
}

/// The flags of a certificate for the control address, which is made.
fn certificate(directory: &TempDir) -> [String; 4] {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (path(directory, "certificate.pem"), path(directory, "key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    ["--control-certificate".to_owned(), certificate, "--control-key".to_owned(), key]
}

/// Creates a share whose plan has all kinds of limits that the dashboard shows.
fn create_limited(directory: &TempDir) {
    let (served, state) = (path(directory, "limited"), path(directory, "state"));
    fs::create_dir(&served).unwrap();
    let plan = "custom iops=200 burst-iops=400 burst-credits=1000000 capacity=1GiB";
    let created = program(&["share", "create", "limited", &served, "--plan", plan, "--state", &state])
        .output()
        .unwrap();
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
}

/// Creates a share with a snapshot policy, before the server runs: it need not have snapshots.
fn create_with_policy(directory: &TempDir) {
    let (served, state) = (path(directory, "kept"), path(directory, "state"));
    fs::create_dir(&served).unwrap();
    let policy = ["policy", "create", "office", "--hourly", ":05/1", "--state", &state];
    let share = ["share", "create", "kept", &served, "--snapshot-policy", "office", "--state", &state];
    for arguments in [&policy[..], &share] {
        let created = program(arguments).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    }
}

/// The flags of a server with a pool.
fn pool(directory: &TempDir) -> [String; 2] {
    let (config, pool) = (path(directory, "pool.toml"), path(directory, "pool"));
    fs::create_dir(&pool).unwrap();
    fs::write(&config, format!("[[pool]]\nname = \"fast\"\ndirectory = \"{pool}\"\n")).unwrap();
    ["--config".to_owned(), config]
}

/// Load on a share, for longer than the test takes.
fn load(target: &str, work: &[&str]) -> Running {
    let job = ["bench", "job", "--target", target, "--seconds", "100", "--repetitions", "5"];
    let arguments = [&job[..], work].concat();
    Running(program(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn every_expression_finds_something_while_load_runs() {
    let directory = TempDir::new().unwrap();
    let mut flags = flags(&directory);
    flags.extend(certificate(&directory));
    flags.extend(pool(&directory));
    create_with_policy(&directory);
    let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    create_limited(&directory);
    let Some((_prometheus, port)) = prometheus(&directory, &server) else { return };
    let (smb, nfs) = (server.address("smb"), server.address("nfs"));
    let data =
        ["--block-size", "4k", "--reads", "50", "--files", "2", "--queue-depth", "4", "--file-size", "1m"];
    let _data = [
        load(&format!("smb://anna:hush-hush@{smb}/limited"), &data),
        load(&format!("nfs://{nfs}/limited?vers=4.1"), &data),
    ];
    let _names = load(&format!("smb://anna:hush-hush@{smb}/data"), &["--metadata", "--threads", "1"]);
    let mut left = of_dashboard();
    left.extend(of_rules());
    left.extend(of_questions());
    assert!(left.len() > 40, "{left:?}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        left.retain(|(_, expr)| !values(port, expr).iter().any(|value| value.is_finite()));
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "nothing is found by {left:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn promtool_accepts_the_rules_and_the_metrics() {
    let checked = Command::new("promtool").args(["check", "rules", RULES]).output();
    let Some(checked) = needs::installed("promtool", checked) else { return };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(&flags(&directory).iter().map(String::as_str).collect::<Vec<_>>());
    let mut stream = TcpStream::connect(server.address("control")).unwrap();
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, metrics) = answer.split_once("\r\n\r\n").unwrap();
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(server.end_with("TERM"), Some(0));
}
