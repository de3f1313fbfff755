//! The control address from outside: tokens with scopes, names, TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Server, flags, path, program};

struct Machine {
    directory: TempDir,
    server: Option<Server>,
}

impl Machine {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), server: None }
    }

    fn start(&mut self, more: &[&str]) {
        let flags = flags(&self.directory);
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.server = Some(Server::start(&flags));
    }

    fn stop(&mut self) {
        assert_eq!(self.server.take().unwrap().end_with("TERM"), Some(0));
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let state = path(&self.directory, "state");
        let Output { status, stdout, stderr } =
            program(arguments).args(["--state", &state]).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (status, said, errors) = self.run(arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {errors}");
        said
    }

    fn make_token(&self, name: &str, scope: &str) -> String {
        let made = self.done(&["token", "create", name, "--scope", scope, "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!((&made["name"], &made["scope"]), (&name.into(), &scope.into()));
        made["token"].as_str().unwrap().to_owned()
    }

    /// A certificate and its key, for localhost: the paths of their files.
    fn make_certificate(&self, name: &str) -> [String; 2] {
        self.make_certificate_until(name, 4000)
    }

    /// The same, until the beginning of a year.
    fn make_certificate_until(&self, name: &str, year: i32) -> [String; 2] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let files =
            [path(&self.directory, &format!("{name}.pem")), path(&self.directory, &format!("{name}.key"))];
        fs::write(&files[0], params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&files[1], key.serialize_pem()).unwrap();
        fs::set_permissions(&files[1], fs::Permissions::from_mode(0o600)).unwrap();
        files
    }

    fn control(&self) -> &str {
        self.server.as_ref().unwrap().address("control")
    }

    /// The status of the answer to a request with this token, and the answer.
    fn ask(&self, token: &str, method: &str, path: &str) -> (u16, String) {
        self.ask_with(&format!("Bearer {token}"), method, path)
    }

    /// The same with the value of the header Authorization.
    fn ask_with(&self, authorization: &str, method: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.server.as_ref().unwrap().address("control")).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

#[test]
fn a_token_does_what_its_scope_says_until_it_is_revoked() {
    let mut machine = Machine::new();
    let before = machine.make_token("early", "all");
    machine.start(&[]);
    assert_eq!(machine.ask(&before, "GET", "/v1/tokens").0, 200, "made before the server ran");
    let (read, shares) = (machine.make_token("look", "read"), machine.make_token("deploy", "shares"));
    for (token, method, path, status) in [
        (&read, "GET", "/v1/shares", 200),
        (&read, "DELETE", "/v1/shares/none", 403),
        (&read, "GET", "/v1/tokens", 403),
        (&shares, "DELETE", "/v1/shares/none", 404),
        (&shares, "DELETE", "/v1/users/none", 403),
        (&before, "DELETE", "/v1/users/none", 404),
    ] {
        let (answered, answer) = machine.ask(token, method, path);
        assert_eq!(answered, status, "{method} {path}: {answer}");
    }
    let (_, metrics) = machine.ask(&read, "GET", "/metrics");
    assert!(metrics.contains("anabranch_client_requests_total"), "{metrics}");

    let list = machine.done(&["token", "list"]);
    assert!(list.starts_with("TOKEN   SCOPE   CREATED\ndeploy  shares  "), "{list}");
    assert!(![&before, &read, &shares].iter().any(|token| list.contains(*token)), "{list}");
    assert_eq!(machine.done(&["token", "remove", "LOOK"]), "The token look was revoked.\n");
    assert_eq!(machine.ask(&read, "GET", "/v1/shares").0, 401, "at once");
    machine.stop();
    let database = fs::read(path(&machine.directory, "state/anabranch.redb")).unwrap();
    let is_in = |token: &str| database.windows(token.len()).any(|bytes| bytes == token.as_bytes());
    assert!(!is_in(&shares) && !is_in(&before), "a token is in the state database");
    machine.start(&[]);
    assert_eq!(machine.ask(&shares, "GET", "/v1/shares").0, 200, "over a restart");
    assert_eq!(machine.ask(&read, "GET", "/v1/shares").0, 401);
}

#[test]
fn administrators_use_it_with_their_passwords_until_they_have_others() {
    let mut machine = Machine::new();
    // otto is in the group root by its gid.
    let users = ["--user", "otto=1001:0:hush-hush", "--user", "eve=1002:hush-hush"];
    let admins = ["--admins", "anna:shares", "--admins", "@root:read", "--admins", "added"];
    machine.start(&[&users[..], &admins].concat());
    // NAME:hush-hush
    let (anna, otto, eve, added) = (
        "Basic YW5uYTpodXNoLWh1c2g=",
        "Basic b3R0bzpodXNoLWh1c2g=",
        "Basic ZXZlOmh1c2gtaHVzaA==",
        "Basic YWRkZWQ6aHVzaC1odXNo",
    );
    let status = |who, method, path| machine.ask_with(who, method, path).0;
    let of = |who| {
        [("GET", "/v1/shares"), ("DELETE", "/v1/shares/none"), ("GET", "/v1/users"), ("GET", "/v1/tokens")]
            .map(|(method, path)| status(who, method, path))
    };
    assert_eq!(of(anna), [200, 404, 200, 403]);
    assert_eq!(of(otto), [200, 403, 200, 403]);
    assert_eq!(of(eve), [401; 4]);
    assert_eq!(status(added, "GET", "/v1/tokens"), 401, "there is no such account");
    let state = path(&machine.directory, "state");
    let mut add = program(&["user", "add", "added", "--uid", "1003", "--state", &state]);
    let mut add = add.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"hush-hush\n").unwrap();
    assert!(add.wait().unwrap().success());
    assert_eq!(status(added, "GET", "/v1/tokens"), 200);
    machine.done(&["user", "set", "added", "--disable"]);
    assert_eq!(status(added, "GET", "/v1/tokens"), 401);
}

#[test]
fn tokens_that_cannot_be_are_refused_with_the_reason() {
    let mut machine = Machine::new();
    machine.start(&[]);
    machine.make_token("look", "read");
    let long = "n".repeat(65);
    for (arguments, word) in [
        (["token", "create", "Look"].as_slice(), "there is a token look already"),
        (&["token", "create", ""], "cannot be the name of a token"),
        (&["token", "create", "a/b"], "cannot be the name of a token"),
        (&["token", "create", &long], "1 to 64 letters"),
        (&["token", "remove", "none"], "there is no token none"),
    ] {
        let (status, said, errors) = machine.run(arguments);
        assert!(status == Some(7) && said.is_empty() && errors.contains(word), "{arguments:?}: {errors}");
    }
    assert_eq!(machine.run(&["token", "create", "x", "--scope", "some"]).0, Some(2));
}

#[test]
fn a_name_that_is_given_is_answered_to() {
    let mut machine = Machine::new();
    machine.start(&["--control-name", "files.example.org"]);
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(machine.server.as_ref().unwrap().address("control")).unwrap();
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for (host, status) in
        [("localhost", "200"), ("files.example.org:8080", "200"), ("rebind.example", "421"), ("", "400")]
    {
        let answer = ask(host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
}

/// What curl gets from this machine's control address, if it trusts this certificate.
fn curl(machine: &Machine, certificate: &str, path: &str) -> Output {
    curl_with(machine, certificate, path, &[])
}

fn curl_with(machine: &Machine, certificate: &str, path: &str, more: &[&str]) -> Output {
    let port = machine.control().rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}{path}");
    let patience = ["--silent", "--show-error", "--max-time", "60", "--noproxy", "*"];
    Command::new("curl").args(patience).args(["--cacert", certificate, &url]).args(more).output().unwrap()
}

#[test]
fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let mut machine = Machine::new();
    let [certificate, key] = machine.make_certificate("one");
    let [other, _] = machine.make_certificate("other");
    machine.start(&["--control-certificate", &certificate, "--control-key", &key]);
    let _silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(machine.control()).unwrap()).collect();

    for (path, word) in [("/healthz", "ok"), ("/metrics", "anabranch_uptime_seconds ")] {
        let Output { status, stdout, stderr } = curl(&machine, &certificate, path);
        let (said, errors) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(status.success() && said.contains(word), "{path}: {errors}");
    }
    assert!(!curl(&machine, &other, "/healthz").status.success(), "a certificate that nobody knows");
    let shown = format!("{{\"token\": \"{}\"}}", machine.make_token("admin", "all"));
    let signed_in = curl_with(&machine, &certificate, "/v1/sign-in", &["--include", "--json", &shown]);
    let said = String::from_utf8(signed_in.stdout).unwrap();
    assert!(said.contains("set-cookie: __Host-anabranch-") && said.contains("; Secure\r\n"), "{said}");
    let (status, answer) = machine.ask("none", "GET", "/healthz");
    assert!(status == 400 && answer.contains("speaks HTTPS"), "{answer}");

    assert!(machine.done(&["share", "list"]).contains("data"), "the commands know the certificate");
    fs::copy(&other, path(&machine.directory, "state/control-certificate.pem")).unwrap();
    let (status, said, errors) = machine.run(&["share", "list"]);
    assert!(
        status == Some(6) && said.is_empty() && errors.contains("certificate"),
        "another server: {errors}"
    );

    machine.stop();
    machine.start(&[]);
    assert!(machine.done(&["share", "list"]).contains("data"), "no certificate, no TLS");
}

#[test]
fn domain_status_says_that_the_certificate_has_expired() {
    let mut machine = Machine::new();
    let [certificate, key] = machine.make_certificate("good");
    machine.start(&["--control-certificate", &certificate, "--control-key", &key]);
    let said = machine.done(&["domain", "status"]);
    assert!(said.contains("numbers    domain-id-mapping = \"rid\"") && !said.contains("to do"), "{said}");
    machine.stop();
    let [certificate, key] = machine.make_certificate_until("old", 2020);
    machine.start(&["--control-certificate", &certificate, "--control-key", &key]);
    let said = machine.done(&["domain", "status"]);
    assert!(said.contains("* the certificate of the control address has expired; NFS over TLS"), "{said}");
    assert!(said.contains("to do: Put another one in its place (control-certificate"), "{said}");
}

/// What `openssl` prints of a certificate in a file, or of the one that a server shows.
fn openssl(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new("openssl").args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The SHA-256 of the certificate in a file.
fn fingerprint(certificate: &str) -> String {
    let printed = openssl(&["x509", "-in", certificate, "-noout", "-fingerprint", "-sha256"]);
    printed.trim_end().split_once('=').unwrap().1.to_owned()
}

#[test]
fn beyond_loopback_it_speaks_tls_with_a_certificate_of_its_own() {
    let machine = Machine::new();
    let log = path(&machine.directory, "log");
    let mut flags = flags(&machine.directory);
    let control = flags.iter().position(|flag| flag == "--control").unwrap();
    flags[control + 1] = "0.0.0.0:0".to_owned();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut fingerprints = Vec::new();
    for run in ["the first", "the second"] {
        let mut server = Server::start_logging(&flags, fs::File::create(&log).unwrap().into());
        let (host, port) = server.address("control").rsplit_once(':').unwrap();
        assert_eq!(host, "0.0.0.0", "{run}");
        let address = format!("127.0.0.1:{port}");

        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("speaks HTTPS"), "{run}: {answer}");

        // The certificate of the state directory is the one that the server shows, and the one in the log.
        let shown = path(&machine.directory, "shown.pem");
        fs::write(&shown, openssl(&["s_client", "-connect", &address, "-showcerts"])).unwrap();
        let own = path(&machine.directory, "state/control-certificate.pem");
        let printed = fingerprint(&own);
        assert_eq!(fingerprint(&shown), printed, "{run}");
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains(&format!("SHA-256 {printed}")), "{run}: {printed}: {said}");
        let url = format!("https://{address}/healthz");
        let curl = ["--silent", "--show-error", "--max-time", "60", "--noproxy", "*", "--cacert", &own, &url];
        let asked = Command::new("curl").args(curl).output().unwrap();
        assert!(asked.status.success(), "{run}: {}", String::from_utf8_lossy(&asked.stderr));
        assert!(
            machine.done(&["share", "list"]).contains("data"),
            "{run}: the commands know the certificate"
        );
        fingerprints.push(printed);
        assert_eq!(server.end_with("TERM"), Some(0), "{run}");
    }
    assert_eq!(fingerprints[0], fingerprints[1], "it is kept");

    // Another certificate in the state directory is not that of this server.
    let [other, _] = machine.make_certificate("other");
    let server = Server::start(&flags);
    fs::copy(&other, path(&machine.directory, "state/control-certificate.pem")).unwrap();
    let (status, said, errors) = machine.run(&["share", "list"]);
    assert!(status == Some(6) && said.is_empty() && errors.contains("certificate"), "{errors}");
    drop(server);
}

#[test]
fn a_certificate_that_cannot_be_used_ends_the_start() {
    let machine = Machine::new();
    let [certificate, key] = machine.make_certificate("one");
    let [other, _] = machine.make_certificate("other");
    let flags = flags(&machine.directory);
    let start = |more: &[&str]| {
        let Output { status, stderr, .. } = program(more).output().unwrap();
        (status.code(), String::from_utf8(stderr).unwrap())
    };
    for (files, word) in [
        (["--control-certificate", &certificate].as_slice(), "no key"),
        (&["--control-key", &key], "no certificate"),
        (&["--control-certificate", &key, "--control-key", &key], "cannot read the certificate"),
        (&["--control-certificate", &other, "--control-key", &key], "cannot be used"),
    ] {
        let all: Vec<&str> = flags.iter().map(String::as_str).chain(files.iter().copied()).collect();
        let (status, errors) = start(&all);
        assert!(status == Some(2) && errors.contains(word), "{files:?}: {errors}");
    }
}

#[test]
fn a_renewed_certificate_is_shown_when_the_configuration_is_read_again() {
    let mut machine = Machine::new();
    let [certificate, key] = machine.make_certificate("one");
    machine.start(&["--control-certificate", &certificate, "--control-key", &key]);
    let old = path(&machine.directory, "old.pem");
    fs::copy(&certificate, &old).unwrap();
    assert!(curl(&machine, &old, "/healthz").status.success());

    // A key of another certificate changes nothing.
    let [renewed, renewed_key] = machine.make_certificate("renewed");
    fs::copy(&renewed, &certificate).unwrap();
    let (status, _, errors) = machine.run(&["reload"]);
    assert!(status != Some(0) && errors.contains("cannot be used"), "{errors}");
    assert!(curl(&machine, &old, "/healthz").status.success());

    fs::copy(&renewed_key, &key).unwrap();
    machine.done(&["reload"]);
    assert!(curl(&machine, &renewed, "/healthz").status.success());
    assert!(!curl(&machine, &old, "/healthz").status.success());
    assert!(machine.done(&["share", "list"]).contains("data"), "the commands know the new certificate");
    machine.stop();
}
