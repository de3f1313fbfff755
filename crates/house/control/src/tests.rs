mod gateways;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::*;
use crate::cluster::ClusterGateways;
use crate::tokens::{KnownToken, MadeToken, NewToken, Scope, TokenInfo, Tokens};

/// A short time for a connection.
const CONNECTION_TIME: Duration = Duration::from_millis(100);

/// An administration without shares or users.
#[derive(Debug)]
struct Nobody;

fn none<T>() -> Result<T, Refusal> {
    Err(Refusal::new(RefusalKind::NotFound, "there is none", "Make one."))
}

/// On the thread of the connections, nobody may wait for the state database.
fn wait_for_state() {
    assert_ne!(std::thread::current().name(), Some("control"), "connections would be held up");
}

impl Administration for Nobody {
    fn shares(&self) -> Result<shares::Shares, Refusal> {
        Ok(shares::Shares::default())
    }
    fn share(&self, _: &str) -> Result<shares::Share, Refusal> {
        none()
    }
    fn create_share(&self, new: shares::NewShare) -> Result<shares::Share, Refusal> {
        Err(Refusal::new(RefusalKind::NameTaken, new.name, ""))
    }
    fn change_share(&self, _: &str, _: shares::ShareChange) -> Result<shares::Share, Refusal> {
        none()
    }
    fn remove_share(&self, name: &str) -> Result<shares::Share, Refusal> {
        Err(Refusal::new(RefusalKind::Declared, name, ""))
    }
    fn deleted_shares(&self) -> Result<deleted_shares::DeletedShares, Refusal> {
        Ok(deleted_shares::DeletedShares::default())
    }
    fn undelete_share(&self, _: u32, _: &deleted_shares::Undelete) -> Result<shares::Share, Refusal> {
        none()
    }
    fn purge_share(&self, _: u32, _: deleted_shares::Purge) -> Result<deleted_shares::DeletedShare, Refusal> {
        none()
    }
    fn snapshots(&self, _: &str) -> Result<snapshots::Snapshots, Refusal> {
        Err(Refusal::new(RefusalKind::NoSnapshots, "there are none", ""))
    }
    fn take_snapshot(&self, _: &str, _: snapshots::NewSnapshot) -> Result<snapshots::Snapshot, Refusal> {
        Ok(snapshots::Snapshot {
            name: "anabranch.manual.1970-01-01T00:00:00Z".to_owned(),
            ..Default::default()
        })
    }
    fn change_snapshot(
        &self,
        _: &str,
        _: &str,
        _: snapshots::SnapshotChange,
    ) -> Result<snapshots::Snapshot, Refusal> {
        none()
    }
    fn remove_snapshot(&self, _: &str, name: &str) -> Result<snapshots::Snapshot, Refusal> {
        Err(Refusal::new(RefusalKind::Protected, name, ""))
    }
    fn revert_share(&self, _: &str, _: snapshots::SnapshotRevert) -> Result<snapshots::Snapshot, Refusal> {
        none()
    }
    fn restore(&self, _: &str) -> Result<restores::Restore, Refusal> {
        none()
    }
    fn begin_restore(&self, _: &str, _: restores::NewRestore) -> Result<restores::Restore, Refusal> {
        none()
    }
    fn cancel_restore(&self, _: &str) -> Result<restores::Restore, Refusal> {
        none()
    }
    fn replication(&self, _: &str) -> Result<replications::Replication, Refusal> {
        Ok(replications::Replication::default())
    }
    fn begin_replication(
        &self,
        _: &str,
        _: replications::NewReplication,
    ) -> Result<replications::Replication, Refusal> {
        none()
    }
    fn change_replication(
        &self,
        _: &str,
        _: replications::ReplicationAction,
    ) -> Result<replications::Replication, Refusal> {
        none()
    }
    fn end_replication(&self, _: &str) -> Result<replications::Replication, Refusal> {
        none()
    }
    fn replication_figures(&self) -> Option<Vec<replications::ReplicationFigures>> {
        wait_for_state();
        Some(Vec::new())
    }
    fn destinations(&self, _: &str) -> Result<replications::Destinations, Refusal> {
        Ok(replications::Destinations::default())
    }
    fn remove_destination(&self, _: &str, _: &str) -> Result<replications::Destination, Refusal> {
        none()
    }
    fn source_share(&self, share: &str) -> Result<replications::SourceShare, Refusal> {
        Ok(replications::SourceShare { share: share.to_owned(), version: 1, was_destination: None })
    }
    fn begin_transfer(
        &self,
        _: &str,
        _: &replications::NewTransfer,
    ) -> Result<replications::Transfer, Refusal> {
        none()
    }
    fn changes(&self, share: &str, _: &str) -> Result<replications::Contents, Refusal> {
        let said = share.repeat(100_000).into_bytes();
        Ok(Box::new(move |mut out| {
            // On a thread of its own, as a store's; and it takes longer than a connection may.
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                out.write_all(&said).and_then(|()| out.flush())
            });
        }))
    }
    fn objects(&self, _: &str, _: &str, _: &[u8]) -> Result<replications::Contents, Refusal> {
        none()
    }
    fn snapshot_figures(&self) -> Vec<snapshots::SnapshotFigures> {
        wait_for_state();
        Vec::new()
    }
    fn quotas(&self, _: &str) -> Result<quotas::Quotas, Refusal> {
        Ok(quotas::Quotas::default())
    }
    fn check_quotas(&self, _: &str) -> Result<quotas::Quotas, Refusal> {
        Ok(quotas::Quotas::default())
    }
    fn set_quota(&self, _: &str, _: &str, _: quotas::NewQuota) -> Result<quotas::Quota, Refusal> {
        Ok(quotas::Quota::default())
    }
    fn remove_quota(&self, _: &str, _: &str) -> Result<quotas::Quota, Refusal> {
        Ok(quotas::Quota::default())
    }
    fn ransomware_alarms(&self, _: &str) -> Result<ransomware::RansomwareAlarms, Refusal> {
        Ok(ransomware::RansomwareAlarms::default())
    }
    fn end_ransomware_alarm(&self, _: &str, _: u64) -> Result<ransomware::RansomwareAlarm, Refusal> {
        Ok(ransomware::RansomwareAlarm::default())
    }
    fn policies(&self) -> Result<policies::Policies, Refusal> {
        Ok(policies::Policies::default())
    }
    fn policy(&self, _: &str) -> Result<policies::Policy, Refusal> {
        none()
    }
    fn create_policy(&self, new: policies::NewPolicy) -> Result<policies::Policy, Refusal> {
        Err(Refusal::new(RefusalKind::Invalid, new.name, ""))
    }
    fn change_policy(&self, _: &str, _: policies::PolicyChange) -> Result<policies::Policy, Refusal> {
        none()
    }
    fn remove_policy(&self, name: &str) -> Result<policies::Policy, Refusal> {
        Err(Refusal::new(RefusalKind::InUse, name, ""))
    }
    fn cluster_gateways(&self) -> Result<Arc<dyn ClusterGateways>, Refusal> {
        Ok(Arc::new(Self))
    }
    fn pools(&self) -> Result<pools::Pools, Refusal> {
        Ok(pools::Pools::default())
    }
    fn pool_figures(&self) -> Vec<pools::Pool> {
        wait_for_state();
        Vec::new()
    }
    fn users(&self) -> Result<users::Users, Refusal> {
        Ok(users::Users::default())
    }
    fn user(&self, _: &str) -> Result<users::User, Refusal> {
        none()
    }
    fn add_user(&self, _: users::NewUser) -> Result<users::User, Refusal> {
        panic!("as a fault of the server would")
    }
    fn change_user(&self, _: &str, _: users::UserChange) -> Result<users::User, Refusal> {
        none()
    }
    fn remove_user(&self, _: &str) -> Result<users::User, Refusal> {
        none()
    }
    fn test_user(&self, _: &str) -> Result<identities::TestedUser, Refusal> {
        none()
    }
    fn domain(&self) -> Result<domain::Domain, Refusal> {
        none()
    }
    fn tokens(&self) -> Result<Tokens, Refusal> {
        Ok(Tokens::default())
    }
    fn make_token(&self, _: NewToken) -> Result<MadeToken, Refusal> {
        none()
    }
    fn remove_token(&self, _: &str) -> Result<TokenInfo, Refusal> {
        none()
    }
    fn configuration(&self) -> Result<configuration::Configuration, Refusal> {
        none()
    }
    fn reload(&self) -> Result<configuration::Reload, Refusal> {
        none()
    }
    fn reloads(&self) -> configuration::Reload {
        configuration::Reload { last_succeeded: true, ..configuration::Reload::default() }
    }
}

/// Clients that hold nothing.
impl Holdings for Nobody {
    fn files(&self, _: &files::Filter) -> Vec<files::OpenFile> {
        Vec::new()
    }
    fn locks(&self, _: &files::Filter) -> Vec<files::Lock> {
        Vec::new()
    }
    fn close(&self, _: files::FileId) -> Result<bool, Refusal> {
        Ok(false)
    }
    fn disconnect(&self, _: files::ClientName) -> Result<files::Disconnected, Refusal> {
        Ok(files::Disconnected::default())
    }
}

/// anna administers with a password; her sign-ins last as long as it does.
impl Administrators for Nobody {
    fn known(&self, name: &str, password: &str) -> Option<(Administrator, Scope)> {
        let anna = Administrator { name: "anna".to_owned(), password: Digest::of(b"correct horse") };
        ((name, password) == ("anna", "correct horse")).then_some((anna, Scope::Shares))
    }
    fn scope(&self, administrator: &Administrator) -> Option<Scope> {
        (administrator.name == "anna").then_some(Scope::Shares)
    }
}

/// A program with a log of one line.
impl Program for Nobody {
    fn lost_log_lines(&self) -> u64 {
        7
    }
    fn log(&self, after: u64) -> program::Log {
        let line = program::LogLine { number: 1, text: "hello".to_owned() };
        let lines = if after == 0 { vec![line] } else { Vec::new() };
        program::Log { lines, lost: 7 }
    }
    fn advise(&self, _: &str, _: u64) -> Result<program::Advices, Refusal> {
        none()
    }
}

pub(crate) fn about() -> Arc<About> {
    let subject = Subject {
        shares: Arc::default(),
        vservers: Box::new(Vec::new),
        administration: Arc::new(Nobody),
        holdings: Arc::new(Nobody),
        program: Arc::new(Nobody),
        clients: Box::new(Clients::default),
        counters: Box::new(Counters::default),
        lookups: Box::new(Vec::new),
        occupied: Box::new(Vec::new),
        stuck_shards: Box::new(Vec::new),
        is_unregistered: Arc::default(),
        tokens: Arc::new(KnownTokens::new(&Token::new([7; 32]), Vec::new())),
        administrators: Arc::new(Nobody),
        names: Vec::new(),
        tls: None,
        certificate_expires: Box::new(|| None),
        access_log: AccessLog::default(),
    };
    Arc::new(About::new(subject, Transport::Plain))
}

pub(crate) struct Served {
    pub(crate) control: Control,
    pub(crate) address: SocketAddr,
    token: Token,
    pub(crate) tokens: Arc<KnownTokens>,
}

pub(crate) fn serve() -> Served {
    serve_within(ControlLimits::default())
}

fn serve_within(limits: ControlLimits) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let token = Token::new([7; 32]);
    let of_scope = |(n, scope): (u8, Scope)| KnownToken {
        name: scope.name().to_owned(),
        scope,
        digest: Token::new([n; 32]).digest(),
    };
    let made = [(1, Scope::Read), (2, Scope::Shares), (3, Scope::All)].map(of_scope).to_vec();
    let tokens = Arc::new(KnownTokens::new(&token, made));
    let clients = || Clients {
        smb_offer: clients::SmbOffer { multichannel: true, max_channels: 4, interfaces: Vec::new() },
        ..Clients::default()
    };
    let subject = Subject {
        shares: Arc::default(),
        vservers: Box::new(Vec::new),
        administration: Arc::new(Nobody),
        holdings: Arc::new(Nobody),
        program: Arc::new(Nobody),
        clients: Box::new(clients),
        counters: Box::new(Counters::default),
        lookups: Box::new(Vec::new),
        occupied: Box::new(Vec::new),
        stuck_shards: Box::new(Vec::new),
        is_unregistered: Arc::default(),
        tokens: Arc::clone(&tokens),
        administrators: Arc::new(Nobody),
        names: vec!["files.example.org".to_owned()],
        tls: None,
        certificate_expires: Box::new(|| None),
        access_log: AccessLog::default(),
    };
    let control = Control::start_within(limits, listener, subject).unwrap();
    Served { control, address, token, tokens }
}

pub(crate) fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

pub(crate) fn ask(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

fn ask_with(address: SocketAddr, path: &str, authorization: &str) -> String {
    send(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"),
    )
}

pub(crate) fn error(answer: &str) -> String {
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str::<ApiError>(body).unwrap().error
}

#[test]
fn health_and_metrics_are_served_until_it_is_dropped() {
    let Served { control, address, .. } = serve();
    let answer = ask(address, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    let answer = ask(address, "/metrics");
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("\nanabranch_uptime_seconds "), "{answer}");
    assert!(ask(address, "/nothing").starts_with("HTTP/1.1 404 "));
    drop(control);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_answer_that_is_made_while_it_is_sent_may_take_long() {
    let limits = ControlLimits { connection_time: CONNECTION_TIME, ..ControlLimits::default() };
    let Served { control: _control, address, tokens, .. } = serve_within(limits);
    let token = Token::new([5; 32]);
    let (name, scope) = ("replicas".to_owned(), Scope::Replicate);
    tokens.take(KnownToken { name, scope, digest: token.digest() });
    let ask = |path: &str| {
        let head =
            format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {}", token.as_str());
        send(address, &format!("{head}\r\n\r\n"))
    };
    let answer = ask("/v1/replication/abc/transfers/x/changes");
    assert!(answer.starts_with("HTTP/1.0 200 "), "{}", &answer[..answer.len().min(200)]);
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, "abc".repeat(100_000));
    for path in ["/v1/shares", "/v1/status", "/v1/tokens", "/metrics"] {
        let answer = ask(path);
        assert!(answer.starts_with("HTTP/1.0 403 "), "{path}: {}", &answer[..answer.len().min(200)]);
    }
}

#[test]
fn a_call_on_vservers_may_take_long() {
    let limits = ControlLimits { connection_time: CONNECTION_TIME, ..ControlLimits::default() };
    let Served { control: _control, address, token, .. } = serve_within(limits);
    let ask = |method: &str, path: &str, body: &str| {
        let (token, length) = (token.as_str(), body.len());
        let head = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}");
        send(address, &format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"))
    };
    let answer = ask("POST", "/v1/vservers/files/move", "{\"gateway\": \"b\"}");
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.contains("\"gateway\":\"b\""), "{answer}");
    assert_eq!(ask("GET", "/v1/vservers", ""), "", "what only looks is cut off as everything else");
}

#[test]
fn a_keytab_may_be_long_and_other_bodies_may_not() {
    /// Three bytes are four letters of Base64.
    const LARGEST: usize = (1 << 20) - 1;
    let Served { control: _control, address, token, .. } = serve();
    let ask = |call: &str, key: &str, bytes: usize| {
        let (token, body) = (token.as_str(), format!("{{\"{key}\":\"{}\"}}", "A".repeat(bytes / 3 * 4)));
        let head = format!("{call} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}");
        send(address, &format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    };
    let is_served = |answer: &str| answer.starts_with("HTTP/1.0 200 ");
    let answer = ask("PUT /v1/vservers/files/keytab", "keytab", LARGEST);
    assert!(is_served(&answer) && answer.contains(&format!("\"epoch\":{LARGEST}")), "{answer}");
    assert!(is_served(&ask("POST /v1/vservers/files/move", "gateway", 3)));
    // What tells why may be lost on the way, because the rest of the body is not read.
    assert!(!is_served(&ask("PUT /v1/vservers/files/keytab", "keytab", 2 << 20)));
    assert!(!is_served(&ask("POST /v1/vservers/files/move", "gateway", LARGEST)));
}

#[test]
fn the_api_answers_who_shows_the_token() {
    let Served { control: _control, address, token, .. } = serve();
    let answer = ask_with(address, "/v1/clients", &format!("Bearer {}", token.as_str()));
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("cache-control: no-store"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let clients: Clients = serde_json::from_str(body).unwrap();
    assert_eq!(clients.smb_offer.max_channels, 4);
}

#[test]
fn nobody_else_learns_anything() {
    let Served { control: _control, address, token, .. } = serve();
    let whole = token.as_str();
    for path in ["/v1/clients", "/v1/nothing"] {
        let answer = ask(address, path);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
        assert_eq!(error(&answer), "no-token");
    }
    for wrong in [
        "Bearer".to_owned(),
        "Bearer x".to_owned(),
        format!("Basic {whole}"),
        format!("Bearer {}", &whole[..whole.len() - 1]),
        format!("Bearer {whole}0"),
        whole.to_owned(),
    ] {
        let answer = ask_with(address, "/v1/clients", &wrong);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{wrong}: {answer}");
        assert_eq!(error(&answer), "wrong-token");
        assert!(!answer.contains(whole), "the token is in {answer}");
    }
}

#[test]
fn what_there_is_not_is_refused_in_json() {
    let Served { control: _control, address, token, .. } = serve();
    let answer = ask_with(address, "/v1/nothing", &format!("Bearer {}", token.as_str()));
    assert!(answer.starts_with("HTTP/1.1 404 ") && error(&answer) == "no-such-call", "{answer}");
    let request = format!(
        "POST /v1/clients HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
        token.as_str()
    );
    let answer = send(address, &request);
    assert!(answer.starts_with("HTTP/1.1 405 ") && error(&answer) == "method-not-allowed", "{answer}");
}

#[test]
fn refusals_have_their_status_and_their_kind() {
    let Served { control: _control, address, token, .. } = serve();
    let call = |method: &str, path: &str, body: &str| {
        let (token, length) = (token.as_str(), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let answer = send(address, &request);
        (answer[9..12].to_owned(), error(&answer))
    };
    let expected = |status: &str, kind: &str| (status.to_owned(), kind.to_owned());
    assert_eq!(call("GET", "/v1/shares/a%20b", ""), expected("404", "not-found"));
    assert_eq!(call("GET", "/v1/shares/a/activity", ""), expected("404", "not-found"));
    let new = r#"{"name": "a", "directory": "/b"}"#;
    assert_eq!(call("POST", "/v1/shares", new), expected("409", "name-taken"));
    assert_eq!(call("DELETE", "/v1/shares/a", ""), expected("409", "declared"));
    for (method, path, status) in [
        ("DELETE", "/v1/files/1-2", "404"),
        ("DELETE", "/v1/files/a", "422"),
        ("DELETE", "/v1/clients/10.0.0.1", "404"),
        ("DELETE", "/v1/clients/0x1", "404"),
        ("DELETE", "/v1/clients/anna", "422"),
        ("GET", "/v1/files?share=a", "404"),
        ("GET", "/v1/files?client=anna", "422"),
        ("GET", "/v1/locks?path=a", "422"),
    ] {
        assert_eq!(call(method, path, "").0, status, "{method} {path}");
    }
    for nonsense in
        ["", "{", "[]", r#"{"directory": "/b"}"#, r#"{"name": "a", "directory": "/b", "quick": true}"#]
    {
        assert_eq!(call("POST", "/v1/shares", nonsense), expected("422", "invalid"), "{nonsense}");
    }
    let user = r#"{"name": "a", "password": "b"}"#;
    assert_eq!(call("POST", "/v1/users", user), expected("500", "failed"));
    assert_eq!(call("GET", "/v1/users/a", ""), expected("404", "not-found"), "it goes on");
}

#[test]
fn bodies_are_short_but_for_recorded_operations() {
    let Served { control: _control, address, token, .. } = serve();
    let status = |path: &str, bytes: usize| {
        let (token, body) = (token.as_str(), "x".repeat(bytes));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {bytes}"
        );
        // The answer may get lost where the server does not read the whole body.
        send(address, &format!("{head}\r\n\r\n{body}")).get(9..12).unwrap_or("413").to_owned()
    };
    let most = 64 * 1024;
    assert_eq!([status("/v1/shares", most), status("/v1/shares", most + 1)], ["422", "413"]);
    let most = simulation::BODY_BYTES_MAX;
    assert_eq!(status("/v1/simulations", most), "422");
    assert_ne!(status("/v1/simulations", most + 1), "422");
}

#[test]
fn requests_are_limited_and_those_who_say_nothing_keep_nobody_out() {
    let Served { control: _control, address, .. } = serve();
    let _silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let long = "x".repeat(64 * 1024);
    let answer = ask_with(address, "/v1/clients", &format!("Bearer {long}"));
    assert!(!answer.contains(" 200 "), "{answer}");
    let answer = ask(address, &format!("/{long}"));
    assert!(!answer.contains(" 200 "), "{answer}");
    assert!(ask(address, "/healthz").ends_with("ok\n"));
}

#[test]
fn who_asks_without_a_token_is_refused_while_too_many_wait_for_answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let answering = Arc::new(Semaphore::new(ANSWERS_MAX));
        let mut locks = Vec::new();
        for _ in 0..ANSWERS_MAX {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            locks.push(end);
            let of_task = Arc::clone(&answering);
            let task =
                tokio::spawn(async move { answer_on_thread(&of_task, move || _ = ended.recv()).await });
            tokio::task::yield_now().await;
            // Whoever asks goes away; the thread waits on.
            task.abort();
        }
        let refused = answer_on_thread::<()>(&answering, || panic!("no thread is begun")).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(locks);
        let all = u32::try_from(ANSWERS_MAX).unwrap();
        drop(Arc::clone(&answering).acquire_many_owned(all).await.unwrap());
        assert_eq!(answer_on_thread(&answering, || "ok").await.status(), StatusCode::OK);
    });
}

#[test]
fn who_asks_for_another_name_learns_nothing() {
    let Served { control: _control, address, token, .. } = serve();
    let ask_for = |host: &str, path: &str| {
        let token = token.as_str();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        send(address, &request)
    };
    for path in ["/healthz", "/metrics", "/v1/clients", "/nothing"] {
        let answer = ask_for("rebind.example:8080", path);
        assert!(answer.starts_with("HTTP/1.1 421 ") && error(&answer) == "wrong-host", "{path}: {answer}");
        assert!(answer.contains("--control-name rebind.example"), "{answer}");
    }
    for host in ["localhost:1", "files.example.org", &address.to_string()] {
        assert!(ask_for(host, "/v1/clients").starts_with("HTTP/1.1 200 "), "{host}");
    }
    assert!(send(address, "GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(send(address, "GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
}

#[test]
fn metrics_name_clients_to_who_shows_the_token() {
    let Served { control: _control, address, token, .. } = serve();
    const OF_CLIENTS: &str = "anabranch_client_requests_total";
    let answer = ask(address, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains(OF_CLIENTS), "{answer}");
    let answer = ask_with(address, "/metrics", &format!("Bearer {}", token.as_str()));
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(OF_CLIENTS), "{answer}");
    let answer = ask_with(address, "/metrics", "Bearer x");
    assert!(answer.starts_with("HTTP/1.1 401 ") && error(&answer) == "wrong-token", "{answer}");
}

#[test]
fn a_token_lets_in_as_far_as_its_scope_goes() {
    let Served { control: _control, address, .. } = serve();
    let call = |n: u8, method: &str, path: &str| {
        let token = Token::new([n; 32]);
        let token = token.as_str();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
        );
        send(address, &request)
    };
    let (read, shares, all) = (1, 2, 3);
    for (method, path, least) in [
        ("GET", "/v1/clients", read),
        ("GET", "/v1/shares", read),
        ("GET", "/v1/users", read),
        ("DELETE", "/v1/shares/a", shares),
        ("POST", "/v1/shares", shares),
        ("GET", "/v1/shares/a/trace", shares),
        ("DELETE", "/v1/users/a", all),
        ("GET", "/v1/tokens", all),
        ("DELETE", "/v1/tokens/a", all),
        ("GET", "/v1/configuration", read),
        ("POST", "/v1/configuration/reload", all),
        ("POST", "/v1/nothing", all),
    ] {
        for token in [read, shares, all] {
            let answer = call(token, method, path);
            assert!(!answer.starts_with("HTTP/1.1 401 "), "{answer}");
            let is_refused = answer.starts_with("HTTP/1.1 403 ");
            assert_eq!(is_refused, token < least, "{token}: {method} {path}: {answer}");
            if is_refused {
                assert_eq!(error(&answer), "scope");
                assert!(answer.contains("anabranch token create NAME --scope"), "{answer}");
            }
        }
    }
    let answer = call(9, "GET", "/v1/clients");
    assert!(answer.starts_with("HTTP/1.1 401 ") && error(&answer) == "wrong-token", "{answer}");
    assert!(call(read, "GET", "/metrics").contains("anabranch_client_requests_total"));
}

/// Reads until the connection ends, which must happen within a generous time.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
    let read = stream.read(&mut [0; 1024]);
    matches!(&read, Ok(0)) || read.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
}

#[test]
fn who_sends_no_whole_head_in_time_is_disconnected() {
    let limits = ControlLimits {
        head_time: Duration::from_millis(300),
        connection_time: Duration::MAX,
        ..ControlLimits::default()
    };
    let Served { control: _control, address, .. } = serve_within(limits);
    let mut silent = TcpStream::connect(address).unwrap();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
    assert!(is_closed(&mut silent) && is_closed(&mut slow));
}

#[test]
fn the_oldest_silent_connection_gives_way_and_the_others_stay() {
    let limits = ControlLimits { connections_max: 3, of_one_address_max: 3, ..ControlLimits::default() };
    let Served { control: _control, address, .. } = serve_within(limits);
    let mut silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(ask(address, "/healthz").contains("200 OK"), "there is room for who asks");
    assert!(is_closed(&mut silent[0]));
    silent[2].write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    silent[2].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
}
