//! RPC with TLS (RFC 9289): the client is rustls.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_nfs_server::{APPLICATION_PROTOCOL, Config, ConnectionReport, Demand, Tls};
use nfs_wire::mount;
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Denied, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, StableHow};
use nfs_wire::v3::{self, Procedure, create, getattr, mkdir, read, write};
use nfs_wire::v4::status::Status as V4Status;
use nfs_wire::xdr::{Decode, Encode, Reader};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, StreamOwned};
use share::{Rules, Squash, Terms};

use crate::authority::{Authority, Identity};
use crate::client::{Client, Raw, TestServer, call_record, export, place, with_mode};

const NULL: (u32, u32, u32) = (v3::PROGRAM, v3::VERSION, 0);
const GETATTR: (u32, u32, u32) = (v3::PROGRAM, v3::VERSION, 1);

/// A socket that sends one byte in each segment.
struct Trickling(TcpStream);

impl Read for Trickling {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Trickling {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A connection with TLS.
struct Encrypted<S: Read + Write> {
    stream: StreamOwned<ClientConnection, S>,
    credential: Vec<u8>,
    xid: u32,
}

impl<S: Read + Write> Encrypted<S> {
    fn over(client: &Client, socket: S, config: Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let stream = StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket);
        Self { stream, credential: client.credential().unwrap(), xid: 100 }
    }

    /// Sends a call, and returns how it was received, and its results.
    fn exchange(
        &mut self,
        ids: (u32, u32, u32),
        args: &impl Encode,
    ) -> std::io::Result<(ReplyBody<'static>, Vec<u8>)> {
        self.xid += 1;
        let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body: &self.credential };
        let record = call_record(self.xid, ids, credential, args);
        let mark = Mark::whole_record(record.len()).to_bytes();
        self.stream.write_all(&[&mark[..], &record].concat())?;
        let mut mark = [0; MARK_BYTES];
        self.stream.read_exact(&mut mark)?;
        let mut record = vec![0; Mark::from_bytes(mark).length as usize];
        self.stream.read_exact(&mut record)?;
        let mut reader = Reader::new(&record);
        let reply = Reply::decode(&mut reader).unwrap();
        assert_eq!(reply.xid, self.xid);
        let body = match reply.body {
            ReplyBody::Accepted { status, .. } => ReplyBody::accepted(status),
            ReplyBody::Denied(denied) => ReplyBody::Denied(denied),
        };
        Ok((body, reader.rest().to_vec()))
    }

    fn nfs<R: for<'a> Decode<'a>>(&mut self, procedure: Procedure, args: &impl Encode) -> R {
        let (body, results) = self.exchange((v3::PROGRAM, v3::VERSION, procedure as u32), args).unwrap();
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
        R::from_bytes(&results).unwrap()
    }

    fn mount(&mut self, path: &[u8]) -> FileHandle {
        let ids = (mount::PROGRAM, mount::VERSION, mount::Procedure::Mnt as u32);
        let (_, results) = self.exchange(ids, &mount::DirPath(path)).unwrap();
        mount::MntRes::from_bytes(&results).unwrap().unwrap().file_handle
    }
}

fn probe_record(ids: (u32, u32, u32), body: &[u8]) -> Vec<u8> {
    call_record(9, ids, OpaqueAuth { flavor: flavor::AUTH_TLS, body }, &())
}

/// Asks for TLS. Returns the verifier's body, or why it was denied.
fn probe(client: &mut Client, ids: (u32, u32, u32), body: &[u8]) -> Result<Vec<u8>, Denied> {
    client.send_record(&probe_record(ids, body));
    let record = client.receive_record();
    match Reply::from_bytes(&record).unwrap().body {
        ReplyBody::Accepted { verifier, status } => {
            assert_eq!((verifier.flavor, status), (flavor::AUTH_NONE, AcceptStatus::Success));
            Ok(verifier.body.to_vec())
        }
        ReplyBody::Denied(denied) => Err(denied),
    }
}

fn server(demand: Demand, config: &Arc<ServerConfig>, terms: Terms) -> TestServer {
    let of_server = |server: &mut Config| server.tls = Some(Tls::new(demand, Arc::clone(config)));
    let server = TestServer::with(Arc::default(), export(Squash::None), 1, |_| {}, of_server);
    server.data.set_terms(terms);
    server
}

/// A connection whose client has asked for TLS and been told to begin.
fn started(server: &TestServer) -> Client {
    let mut client = server.client();
    assert_eq!(probe(&mut client, NULL, b"").unwrap(), b"STARTTLS");
    client
}

fn encrypted(server: &TestServer, config: Arc<ClientConfig>) -> Encrypted<TcpStream> {
    let client = started(server);
    let socket = client.stream.try_clone().unwrap();
    Encrypted::over(&client, socket, config)
}

fn too_weak() -> ReplyBody<'static> {
    ReplyBody::Denied(Denied::AuthError(AuthStatus::TooWeak))
}

#[test]
fn a_client_that_asks_is_encrypted_and_others_are_served_as_before() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    let mut client = encrypted(&server, authority.client(None, &[]));
    let root = client.mount(b"/data");
    let how = create::How::Guarded(with_mode(0o644));
    let made: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(root, "f"), how });
    let file = made.unwrap().object.unwrap();
    let data: Vec<u8> = (0..1_u32 << 20).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let (count, stable) = (1 << 20, StableHow::Unstable);
    for offset in [0, 1 << 20] {
        let args = write::Args { file, offset, count, stable, data: &data };
        assert_eq!(client.nfs::<write::Res>(Procedure::Write, &args).unwrap().count, count);
        let args = read::Args { file, offset, count };
        let (_, results) =
            client.exchange((v3::PROGRAM, v3::VERSION, Procedure::Read as u32), &args).unwrap();
        assert!(results.ends_with(&data), "what is read is what was written");
    }
    let (mut plain, root) = server.mounted();
    assert_eq!(plain.attributes(root).mode, 0o777);
}

#[test]
fn a_server_without_tls_says_so_by_its_verifier() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(probe(&mut client, NULL, b"").unwrap(), b"");
    client.exchange(NULL, &());
}

/// RFC 9289 4.1.
#[test]
fn a_probe_is_a_null_call_outside_of_tls_with_nothing_in_its_credential() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    let mut client = server.client();
    let bad = Err(Denied::AuthError(AuthStatus::BadCredential));
    assert_eq!(probe(&mut client, GETATTR, b""), bad);
    assert_eq!(probe(&mut client, NULL, b"any."), bad);
    assert_eq!(probe(&mut client, (mount::PROGRAM, mount::VERSION, 0), b"").unwrap(), b"STARTTLS");
    let socket = client.stream.try_clone().unwrap();
    let mut client = Encrypted::over(&client, socket, authority.client(None, &[]));
    let record = probe_record(NULL, b"");
    let mark = Mark::whole_record(record.len()).to_bytes();
    client.stream.write_all(&[&mark[..], &record].concat()).unwrap();
    let mut reply = [0; 24];
    client.stream.read_exact(&mut reply).unwrap();
    let body = ReplyBody::Denied(Denied::AuthError(AuthStatus::BadCredential));
    assert_eq!(Reply::from_bytes(&reply[MARK_BYTES..]).unwrap(), Reply { xid: 9, body });
}

#[test]
fn where_tls_is_required_only_null_is_answered_plainly() {
    let authority = Authority::new();
    let server = server(Demand::Required, &authority.server(None), Terms::empty());
    let mut client = server.client();
    assert_eq!(client.exchange(NULL, &()).0, ReplyBody::accepted(AcceptStatus::Success));
    assert_eq!(client.exchange(GETATTR, &Raw(&[0; 4])).0, too_weak());
    assert_eq!(client.exchange((100_003, 4, 1), &Raw(&[0; 12])).0, too_weak());
    assert_eq!(client.exchange((mount::PROGRAM, 3, 1), &mount::DirPath(b"/data")).0, too_weak());
    let mut client = encrypted(&server, authority.client(None, &[APPLICATION_PROTOCOL]));
    client.mount(b"/data");
}

#[test]
fn a_share_that_requires_encryption_is_served_over_tls_only() {
    let authority = Authority::new();
    for terms in [Terms::ENCRYPTED, Terms::TLS] {
        let server = server(Demand::Offered, &authority.server(None), terms);
        let mut client = encrypted(&server, authority.client(None, &[]));
        let root = client.mount(b"/data");
        let args = getattr::Args { object: root };
        let attributes: getattr::Res = client.nfs(Procedure::GetAttr, &args);
        assert_eq!(attributes.unwrap().object_attributes.mode, 0o777);

        let mut plain = server.client();
        assert_eq!(plain.mount("/data").unwrap_err(), mount::Status::Acces);
        assert_eq!(plain.exchange(GETATTR, &args).0, too_weak());
        // NFSv4.0, no tag: PUTROOTFH (24), LOOKUP (15) of "data"
        let lookup = [&[0_u32, 0, 2, 24, 15, 4].map(u32::to_be_bytes).concat()[..], b"data"].concat();
        let (_, results) = plain.exchange((100_003, 4, 1), &Raw(&lookup));
        assert_eq!(results[..4], (V4Status::WrongSec as u32).to_be_bytes());
        let (_, results) = client.exchange((100_003, 4, 1), &Raw(&lookup)).unwrap();
        assert_eq!(results[..4], [0; 4]);
    }
    // Without TLS, such a share is not there.
    let server = TestServer::start();
    server.data.set_terms(Terms::ENCRYPTED);
    assert_eq!(server.client().mount("/data").unwrap_err(), mount::Status::Acces);
}

#[test]
fn where_clients_must_have_certificates_no_other_is_served() {
    let (authority, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let server = server(Demand::Required, &authority.server(Some(&clients)), Terms::empty());
    let is_served =
        |own: Option<Identity>| encrypted(&server, authority.client(own, &[])).exchange(NULL, &()).is_ok();
    assert!(is_served(Some(clients.issue("client.example.org", 2096))));
    assert!(!is_served(None), "no certificate");
    assert!(!is_served(Some(others.issue("client.example.org", 2096))), "of another authority");
    assert!(!is_served(Some(clients.issue("client.example.org", 2021))), "expired");
    assert!(is_served(Some(clients.issue("other.example.org", 2096))));
}

#[test]
fn a_client_list_names_the_certificates_of_clients() {
    let (authority, clients) = (Authority::new(), Authority::new());
    // A certificate is asked for, and a client may have none.
    let server = server(Demand::Offered, &authority.server_that_asks(&clients), Terms::empty());
    let rules = |list: &[&str]| {
        let clients = list.iter().map(|rule| rule.parse().unwrap()).collect();
        server.data.set_rules(Rules { clients, ..Rules::default() });
    };
    rules(&["cert:*.lab.test access=ro", "cert:build.example.org"]);
    let connect = |name: &str| encrypted(&server, authority.client(Some(clients.issue(name, 2096)), &[]));
    let mut in_domain = connect("A.Lab.Test");
    let mut named = connect("build.example.org");
    let mut others = [
        connect("a.b.lab.test"),
        connect("other.example.org"),
        encrypted(&server, authority.client(None, &[])),
    ];
    let (root, _) = (in_domain.mount(b"/data"), named.mount(b"/data"));
    for other in &mut others {
        let ids = (mount::PROGRAM, mount::VERSION, mount::Procedure::Mnt as u32);
        let (_, results) = other.exchange(ids, &mount::DirPath(b"/data")).unwrap();
        assert_eq!(mount::MntRes::from_bytes(&results).unwrap().unwrap_err().status, mount::Status::Acces);
    }
    assert_eq!(server.client().mount("/data").unwrap_err(), mount::Status::Acces, "it has no certificate");
    let make = |client: &mut Encrypted<TcpStream>, name| {
        let made: mkdir::Res = client
            .nfs(Procedure::MkDir, &mkdir::Args { place: place(root, name), attributes: with_mode(0o755) });
        made.map(|_| ()).map_err(|failure| failure.status)
    };
    assert_eq!(make(&mut in_domain, "a"), Err(Status::RoFs));
    assert_eq!(make(&mut named, "b"), Ok(()));
    let is_shown = |report: &ConnectionReport| {
        let certificate = report.secured.as_ref().and_then(|shown| shown.certificate.as_ref());
        certificate.is_some_and(|shown| shown.names == ["a.lab.test"]) && report.security == ["sys"]
    };
    assert!(server.server.connections().iter().any(is_shown));
    // What the list says counts from the next call on, also for connections that are there.
    rules(&["cert:build.lab.test", "cert:*.lab.test"]);
    assert_eq!(make(&mut in_domain, "a"), Ok(()));
    assert_eq!(make(&mut named, "c"), Err(Status::Acces));
}

#[test]
fn a_connection_is_another_client_once_it_has_shown_its_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = server(Demand::Offered, &authority.server_that_asks(&clients), Terms::empty());
    let rule = "cert:client.example.org".parse().unwrap();
    server.data.set_rules(Rules { clients: vec![rule], ..Rules::default() });
    let mut client = server.client();
    assert_eq!(client.mount("/data").unwrap_err(), mount::Status::Acces);
    assert_eq!(probe(&mut client, NULL, b"").unwrap(), b"STARTTLS");
    let socket = client.stream.try_clone().unwrap();
    let own = Some(clients.issue("client.example.org", 2096));
    Encrypted::over(&client, socket, authority.client(own, &[])).mount(b"/data");
}

#[test]
fn a_client_that_wants_another_protocol_is_refused() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    let is_served = |protocols: &[&[u8]]| {
        encrypted(&server, authority.client(None, protocols)).exchange(NULL, &()).is_ok()
    };
    assert!(is_served(&[]) && is_served(&[b"h2", b"sunrpc"]));
    assert!(!is_served(&[b"h2"]));
}

#[test]
fn bytes_that_come_one_by_one_are_put_together() {
    let authority = Authority::new();
    let server = server(Demand::Required, &authority.server(None), Terms::empty());
    let client = started(&server);
    let socket = Trickling(client.stream.try_clone().unwrap());
    let mut client = Encrypted::over(&client, socket, authority.client(None, &[]));
    client.mount(b"/data");
}

#[test]
fn a_handshake_that_does_not_end_is_ended() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    let begun = Instant::now();
    let mut silent = started(&server);
    let mut slow = started(&server);
    // The head of a handshake record, and of a ClientHello that does not come.
    slow.stream.write_all(&[22, 3, 1, 1, 0, 1, 0, 0, 252]).unwrap();
    assert!(silent.is_closed() && slow.is_closed());
    assert!(begun.elapsed() > Duration::from_secs(5), "others that are slow are served");
    server.client().exchange(NULL, &());
}

#[test]
fn what_is_no_tls_ends_the_connection() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 64], &[23, 3, 3, 0xff, 0xff, 0, 0]] {
        let mut client = started(&server);
        client.stream.write_all(garbage).unwrap();
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest); // an alert, perhaps
        assert!(rest.len() < 64, "{rest:?}");
    }
    // Also within the session.
    let mut client = encrypted(&server, authority.client(None, &[]));
    client.exchange(NULL, &()).unwrap();
    client.stream.sock.write_all(&[23, 3, 3, 0, 32]).unwrap();
    client.stream.sock.write_all(&[7; 32]).unwrap();
    assert!(client.exchange(NULL, &()).is_err());
    server.client().exchange(NULL, &());
}

/// What follows the probe would be carried out as if it had come encrypted (CVE-2011-0411 and many others).
#[test]
fn plain_calls_behind_the_probe_are_not_carried_out() {
    let authority = Authority::new();
    let server = server(Demand::Offered, &authority.server(None), Terms::empty());
    let (mut other, root) = server.mounted();
    let call = |name| {
        let credential = other.credential().unwrap();
        let args = mkdir::Args { place: place(root, name), attributes: with_mode(0o755) };
        let ids = (v3::PROGRAM, v3::VERSION, Procedure::MkDir as u32);
        call_record(10, ids, OpaqueAuth { flavor: flavor::AUTH_SYS, body: &credential }, &args)
    };
    let marked = |record: &[u8]| [&Mark::whole_record(record.len()).to_bytes()[..], record].concat();
    let injected = marked(&call("injected"));
    // With the probe, and after its reply.
    let mut client = server.client();
    client.stream.write_all(&[marked(&probe_record(NULL, b"")), injected.clone()].concat()).unwrap();
    let _ = client.stream.read_to_end(&mut Vec::new());
    let mut client = started(&server);
    client.stream.write_all(&injected).unwrap();
    let _ = client.stream.read_to_end(&mut Vec::new());
    assert!(other.lookup(root, "injected").is_err());
    // The same call does its work where it may.
    client = server.client();
    client.stream.write_all(&injected).unwrap();
    client.receive_record();
    assert!(other.lookup(root, "injected").is_ok());
}

#[test]
fn another_certificate_is_shown_to_new_connections_and_ends_none() {
    let (before, after) = (Authority::new(), Authority::new());
    let tls = Tls::new(Demand::Required, before.server(None));
    let of_server = |server: &mut Config| server.tls = Some(Arc::clone(&tls));
    let server = TestServer::with(Arc::default(), export(Squash::None), 1, |_| {}, of_server);
    let mut old = encrypted(&server, before.client(None, &[]));
    old.exchange(NULL, &()).unwrap();
    assert!(encrypted(&server, after.client(None, &[])).exchange(NULL, &()).is_err());
    tls.replace(after.server(None));
    encrypted(&server, after.client(None, &[])).exchange(NULL, &()).unwrap();
    assert!(encrypted(&server, before.client(None, &[])).exchange(NULL, &()).is_err());
    old.mount(b"/data");
}
