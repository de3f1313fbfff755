//! RPCSEC_GSS and TLS (RFC 9289) on one server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anabranch_nfs_server::{Demand, Tls};
use krb5::Enctype;
use nfs_wire::gss::Service;
use nfs_wire::mount;
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Denied, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v3::{self, Procedure, getattr};
use nfs_wire::xdr::{Decode, Encode, Reader};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use share::{Squash, Terms};

use crate::authority::Authority;
use crate::client::{Context, NFS, NULL, Outcome, begin, ticket, token, use_keys};
use crate::server::{Client, TestServer, call_record, export};

const GETATTR: (u32, u32, u32) = (v3::PROGRAM, v3::VERSION, Procedure::GetAttr as u32);
const MNT: (u32, u32, u32) = (mount::PROGRAM, mount::VERSION, mount::Procedure::Mnt as u32);
const SERVICES: [Service; 3] = [Service::None, Service::Integrity, Service::Privacy];

fn server(authority: &Authority, demand: Demand) -> TestServer {
    let tls = Tls::new(demand, authority.server(None));
    let server =
        TestServer::with(Arc::default(), export(Squash::None), 1, |_| {}, |config| config.tls = Some(tls));
    use_keys(&server, &NFS, Enctype::Aes256Sha1);
    server
}

/// A connection with TLS.
struct Encrypted {
    stream: StreamOwned<ClientConnection, TcpStream>,
    credential: Vec<u8>,
}

impl Encrypted {
    fn begin(server: &TestServer, authority: &Authority) -> Self {
        let mut client = server.client();
        client.send_record(&call_record(9, NULL, OpaqueAuth { flavor: flavor::AUTH_TLS, body: &[] }, &()));
        client.receive_record();
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(authority.client(None, &[]), name).unwrap();
        let credential = client.credential().unwrap();
        Self { stream: StreamOwned::new(session, client.stream), credential }
    }

    fn exchange(&mut self, record: &[u8]) -> Vec<u8> {
        let mark = Mark::whole_record(record.len()).to_bytes();
        self.stream.write_all(&[&mark[..], record].concat()).unwrap();
        let mut mark = [0; MARK_BYTES];
        self.stream.read_exact(&mut mark).unwrap();
        let mut reply = vec![0; Mark::from_bytes(mark).length as usize];
        self.stream.read_exact(&mut reply).unwrap();
        reply
    }

    /// The results of a call of AUTH_SYS; None: it was denied as too weak.
    fn call(&mut self, ids: (u32, u32, u32), args: &impl Encode) -> Option<Vec<u8>> {
        let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body: &self.credential };
        let record = call_record(7, ids, credential, args);
        let reply = self.exchange(&record);
        let mut reader = Reader::new(&reply);
        match Reply::decode(&mut reader).unwrap().body {
            ReplyBody::Accepted { status: AcceptStatus::Success, .. } => Some(reader.rest().to_vec()),
            ReplyBody::Denied(Denied::AuthError(AuthStatus::TooWeak)) => None,
            other => panic!("{other:?}"),
        }
    }
}

/// Whether a call ran. Otherwise it was too weak.
fn ran(outcome: &Outcome) -> bool {
    let ran = matches!(outcome, Outcome::Ran(_));
    assert!(ran || *outcome == Outcome::Denied(AuthStatus::TooWeak), "{outcome:?}");
    ran
}

/// The flavors that MOUNT names plainly; None: the mount is refused.
fn named_plainly(client: &mut Client) -> Option<Vec<u32>> {
    client.mount("/data").ok().map(|mounted| mounted.auth_flavors)
}

#[test]
fn a_share_that_requires_encryption_is_served_with_krb5p_and_over_tls() {
    let authority = Authority::new();
    let server = server(&authority, Demand::Offered);
    let (mut plain, root) = server.mounted();
    let below = plain.make_dir(root, "below", 0o755);
    let args = getattr::Args { object: below };
    let context = Context::begin(&mut plain, &ticket(&["alice"]), Service::None);
    let mut encrypted = Encrypted::begin(&server, &authority);
    let all = [1, 390_003, 390_004, 390_005];
    let mut sequence = 1;
    // The flavors over a plain connection, and those over TLS. Without any, the share cannot be mounted.
    for (terms, plainly, over_tls) in [
        (Terms::empty(), &all[..], &all[..]),
        (Terms::ENCRYPTED, &all[3..], &all[..]),
        (Terms::ENCRYPTED | Terms::RPC_SYS, &[], &all[..1]),
        (Terms::ENCRYPTED | Terms::RPC_KRB5P, &all[3..], &all[3..]),
        (Terms::ENCRYPTED | Terms::TLS, &[], &all[..]),
        (Terms::TLS | Terms::RPC_KRB5P, &[], &all[3..]),
    ] {
        server.data.set_terms(terms);
        let named = (!plainly.is_empty()).then(|| plainly.to_vec());
        assert_eq!(named_plainly(&mut plain), named, "{terms:?}");
        let mounted = encrypted.call(MNT, &mount::DirPath(b"/data")).unwrap();
        let mounted = mount::MntRes::from_bytes(&mounted).unwrap().unwrap();
        assert_eq!(mounted.auth_flavors, over_tls, "{terms:?}");
        let (body, _) = plain.exchange(GETATTR, &args);
        assert_eq!(body == ReplyBody::accepted(AcceptStatus::Success), plainly.contains(&1), "{terms:?}");
        assert_eq!(encrypted.call(GETATTR, &args).is_some(), over_tls.contains(&1), "{terms:?}");
        for (service, flavor) in SERVICES.into_iter().zip(&all[1..]) {
            let mut context = Context { sequence, ..context.with(service) };
            let outcome = context.exchange(&mut plain, GETATTR, &args);
            assert_eq!(ran(&outcome), plainly.contains(flavor), "{terms:?} {service:?}");
            let reply = encrypted.exchange(&context.call(5, GETATTR, &args));
            let outcome = context.read(&reply, 5, sequence + 1);
            assert_eq!(ran(&outcome), over_tls.contains(flavor), "{terms:?} {service:?} over TLS");
            sequence += 2;
        }
    }
}

#[test]
fn where_tls_is_required_a_ticket_is_no_substitute() {
    let authority = Authority::new();
    let server = server(&authority, Demand::Required);
    let too_weak = ReplyBody::Denied(Denied::AuthError(AuthStatus::TooWeak));
    let begun = begin(&mut server.client(), &token(&ticket(&["alice"])));
    assert_eq!(begun.err(), Some(too_weak));
}
