//! The flavors that a share admits, over NFSv3 and MOUNT: RFC 2623.

use krb5::Enctype;
use nfs_wire::gss::Service;
use nfs_wire::mount;
use nfs_wire::rpc::{AuthStatus, Denied, ReplyBody};
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{self, Procedure, fsinfo, getattr};
use nfs_wire::xdr::{Decode, Encode};
use share::Terms;

use crate::client::{Context, NFS, Outcome, server, ticket, use_keys};
use crate::server::{Client, TestServer};

const SYS: u32 = 1;
const KRB5: u32 = 390_003;
const KRB5I: u32 = 390_004;
const KRB5P: u32 = 390_005;
const ALL: [Service; 3] = [Service::None, Service::Integrity, Service::Privacy];

fn ids(procedure: Procedure) -> (u32, u32, u32) {
    (v3::PROGRAM, v3::VERSION, procedure as u32)
}

/// Whether a call of AUTH_SYS is denied as too weak.
fn is_too_weak(client: &mut Client, procedure: Procedure, args: &impl Encode) -> bool {
    let (body, _) = client.exchange(ids(procedure), args);
    body == ReplyBody::Denied(Denied::AuthError(AuthStatus::TooWeak))
}

/// A server with keys, and a directory below the root of `data`.
fn with_directory() -> (TestServer, FileHandle, FileHandle) {
    let server = server();
    let (mut client, root) = server.mounted();
    let below = client.make_dir(root, "below", 0o755);
    (server, root, below)
}

#[test]
fn mount_names_the_flavors_of_a_share() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut flavors = || client.mount("/data").map(|mounted| mounted.auth_flavors);
    assert_eq!(flavors(), Ok(vec![SYS]), "without keys");
    use_keys(&server, &["host", "files.lab.test"], Enctype::Aes256Sha1);
    assert_eq!(flavors(), Ok(vec![SYS]), "no client finds a server without the name nfs/HOST");
    use_keys(&server, &NFS, Enctype::Aes256Sha1);
    assert_eq!(flavors(), Ok(vec![SYS, KRB5, KRB5I, KRB5P]));
    for (terms, expected) in [
        (Terms::RPC_SYS, vec![SYS]),
        (Terms::RPC_KRB5I | Terms::RPC_KRB5P, vec![KRB5I, KRB5P]),
        (Terms::ENCRYPTED, vec![KRB5P]),
        (Terms::ENCRYPTED | Terms::RPC_SYS | Terms::RPC_KRB5P, vec![KRB5P]),
    ] {
        server.data.set_terms(terms);
        assert_eq!(flavors(), Ok(expected), "{terms:?}");
    }
    server.data.set_terms(Terms::ENCRYPTED | Terms::RPC_SYS);
    assert_eq!(flavors(), Err(mount::Status::Acces), "there is no flavor to come with");
    server.data.set_terms(Terms::ENCRYPTED);
    server.server.use_kerberos(None);
    assert_eq!(flavors(), Err(mount::Status::Acces));
}

#[test]
fn a_share_answers_the_flavors_that_it_admits() {
    let (server, _, below) = with_directory();
    let mut client = server.client();
    let args = getattr::Args { object: below };
    let context = Context::begin(&mut client, &ticket(&["alice"]), Service::None);
    let mut sequence = 1;
    for (terms, sys, services) in [
        (Terms::empty(), true, vec![Service::None, Service::Integrity, Service::Privacy]),
        (Terms::RPC_SYS, true, vec![]),
        (Terms::RPC_KRB5, false, vec![Service::None]),
        (Terms::RPC_KRB5I | Terms::RPC_KRB5P, false, vec![Service::Integrity, Service::Privacy]),
        (Terms::ENCRYPTED, false, vec![Service::Privacy]),
    ] {
        server.data.set_terms(terms);
        assert_eq!(is_too_weak(&mut client, Procedure::GetAttr, &args), !sys, "{terms:?}");
        for service in ALL {
            let mut context = Context { sequence, ..context.with(service) };
            sequence += 1;
            let outcome = context.exchange(&mut client, ids(Procedure::GetAttr), &args);
            let ran = matches!(outcome, Outcome::Ran(_));
            assert!(ran || outcome == Outcome::Denied(AuthStatus::TooWeak), "{outcome:?}");
            assert_eq!(ran, services.contains(&service), "{terms:?} {service:?}");
        }
    }
    // Another share is not concerned.
    let other = client.mount("/other").unwrap().file_handle;
    assert!(!is_too_weak(&mut client, Procedure::GetAttr, &getattr::Args { object: other }));
}

#[test]
fn a_client_that_mounts_may_ask_for_the_root_with_any_flavor() {
    let (server, root, below) = with_directory();
    server.data.set_terms(Terms::RPC_KRB5P);
    let mut client = server.client();
    let mounted = client.mount("/data/below").unwrap();
    assert_eq!((mounted.file_handle, mounted.auth_flavors), (below, vec![KRB5P]));
    for procedure in [Procedure::FsInfo, Procedure::PathConf, Procedure::GetAttr] {
        let weak = is_too_weak(&mut client, procedure, &fsinfo::Args { root });
        assert!(!weak, "{procedure:?}");
    }
    for (procedure, object) in
        [(Procedure::ReadDir, root), (Procedure::GetAttr, below), (Procedure::FsInfo, below)]
    {
        let mut args = fsinfo::Args { root: object }.encode_to_vec();
        if procedure == Procedure::ReadDir {
            args = v3::readdir::Args { dir: object, cookie: 0, cookie_verifier: [0; 8], count: 4096 }
                .encode_to_vec();
        }
        assert!(is_too_weak(&mut client, procedure, &crate::server::Raw(&args)), "{procedure:?}");
    }
}

#[test]
fn a_server_that_requires_encryption_answers_krb5p_alone() {
    let store = std::sync::Arc::new(storage::memory::MemoryStore::new());
    let export = crate::server::export(share::Squash::None);
    let server = TestServer::with(store, export, 1, |_| {}, |config| config.encryption_required = true);
    let mut client = server.client();
    assert_eq!(client.mount("/data").err(), Some(mount::Status::Acces));
    use_keys(&server, &NFS, Enctype::Aes256Sha1);
    let mounted = client.mount("/data").unwrap();
    assert_eq!(mounted.auth_flavors, [KRB5P]);
    let args = v3::readdirplus::Args {
        dir: mounted.file_handle,
        cookie: 0,
        cookie_verifier: [0; 8],
        dir_count: 4096,
        max_count: 4096,
    };
    assert!(is_too_weak(&mut client, Procedure::ReadDirPlus, &args));
    let mut context = Context::begin(&mut client, &ticket(&["alice"]), Service::Privacy);
    let listed: Vec<u8> = match context.exchange(&mut client, ids(Procedure::ReadDirPlus), &args) {
        Outcome::Ran(results) => results,
        other => panic!("{other:?}"),
    };
    assert!(v3::readdirplus::Res::from_bytes(&listed).unwrap().is_ok());
    let exports = client.mount_raw(mount::Procedure::Export, &());
    assert!(exports.windows(5).any(|bytes| bytes == b"/data"));
}
