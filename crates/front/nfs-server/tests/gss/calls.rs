//! Calls with each of the three services, and what of them is refused: RFC 2203 5.3.

use nfs_wire::gss::{Procedure as Control, Service, Signed};
use nfs_wire::rpc::{AcceptStatus, AuthStatus};
use nfs_wire::v3::{self, Procedure, create, getattr, mkdir, read, remove, rmdir, write};
use nfs_wire::xdr::{Decode, Encode};

use crate::client::{Context, NULL, Outcome, server, ticket};
use crate::server::{Client, TestServer, place, with_mode};

const SERVICES: [Service; 3] = [Service::None, Service::Integrity, Service::Privacy];
const NFS: u32 = v3::PROGRAM;

/// A directory in which anybody may write.
pub(crate) fn open_root(server: &TestServer) -> v3::types::FileHandle {
    let (mut client, root) = server.mounted();
    let args = v3::setattr::Args { object: root, new_attributes: with_mode(0o777), guard: None };
    let set: v3::setattr::Res = client.nfs(Procedure::SetAttr, &args);
    set.unwrap();
    root
}

#[test]
fn files_are_made_read_and_written_by_the_user_of_the_ticket() {
    let server = server();
    let root = open_root(&server);
    let mut client = server.client();
    for service in SERVICES {
        let name = format!("{service:?}");
        let mut context = Context::begin(&mut client, &ticket(&["alice"]), service);
        let how = create::How::Guarded(with_mode(0o640));
        let made: create::Res =
            context.nfs(&mut client, Procedure::Create, &create::Args { place: place(root, &name), how });
        let file = made.unwrap().object.unwrap();
        let found: getattr::Res =
            context.nfs(&mut client, Procedure::GetAttr, &getattr::Args { object: file });
        let attributes = found.unwrap().object_attributes;
        assert_eq!((attributes.uid, attributes.gid), (1000, 1000), "{service:?}");
        // Of lengths that need padding, and as large as they may be.
        for length in [0, 1, 2, 3, 5, 65_536, 1 << 20] {
            let data: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
            let (offset, stable) = (7, v3::types::StableHow::Unstable);
            let args = write::Args { file, offset, count: length, stable, data: &data };
            let written: write::Res = context.nfs(&mut client, Procedure::Write, &args);
            assert_eq!(written.unwrap().count, length, "{service:?}");
            let ids = (NFS, v3::VERSION, Procedure::Read as u32);
            let asked = read::Args { file, offset: 7, count: length };
            let Outcome::Ran(results) = context.exchange(&mut client, ids, &asked) else {
                panic!("{service:?}")
            };
            let ok = read::Res::from_bytes(&results).unwrap().unwrap();
            assert!(ok.data == data, "{service:?} {length}");
        }
    }
}

#[test]
fn each_caller_is_who_the_ticket_says_on_one_connection() {
    let server = server();
    let root = open_root(&server);
    let mut client = server.client_of(3000, 3000, &[]);
    let mut alice = Context::begin(&mut client, &ticket(&["alice"]), Service::Integrity);
    let mut bob = Context::begin(&mut client, &ticket(&["bob"]), Service::Integrity);
    let mut machine = Context::begin(&mut client, &ticket(&["host", "client.lab.test"]), Service::Integrity);
    let owner = |context: &mut Context, client: &mut Client, name: &str| {
        let args = mkdir::Args { place: place(root, name), attributes: with_mode(0o755) };
        let made: mkdir::Res = context.nfs(client, Procedure::MkDir, &args);
        let made = made.unwrap().object_attributes.unwrap();
        (made.uid, made.gid)
    };
    assert_eq!(owner(&mut alice, &mut client, "a"), (1000, 1000));
    assert_eq!(owner(&mut bob, &mut client, "b"), (2000, 2000));
    assert_eq!(owner(&mut alice, &mut client, "c"), (1000, 1000));
    assert_eq!(owner(&mut machine, &mut client, "m"), (5000, 5001), "a machine is nobody");
    let stated = client.make_dir(root, "stated", 0o755);
    assert_eq!(client.attributes(stated).uid, 3000);
}

#[test]
fn a_repetition_is_answered_once_and_only_to_its_own_user() {
    let server = server();
    let root = open_root(&server);
    let mut client = server.client();
    for service in SERVICES {
        let mut alice = Context::begin(&mut client, &ticket(&["alice"]), service);
        let args = mkdir::Args { place: place(root, "made"), attributes: with_mode(0o777) };
        let ids = (NFS, v3::VERSION, Procedure::MkDir as u32);
        client.xid = 500;
        let first = alice.exchange(&mut client, ids, &args);
        // Sent again: the same xid and arguments, and a number of its own (5.3.3.1).
        client.xid = 500;
        let again = alice.exchange(&mut client, ids, &args);
        assert!(matches!(&first, Outcome::Ran(results) if results[..4] == [0; 4]), "{first:?}");
        assert_eq!(first, again, "{service:?}");
        let mut bob = Context::begin(&mut client, &ticket(&["bob"]), service);
        client.xid = 500;
        let of_bob = bob.exchange(&mut client, ids, &args);
        assert_ne!(of_bob, first, "the reply to alice is not for bob");
        let removed: rmdir::Res =
            alice.nfs(&mut client, Procedure::RmDir, &rmdir::Args { object: place(root, "made") });
        removed.unwrap();
        // A context that replaces another is of the same user.
        let gone = remove::Args { object: place(root, "none") };
        let ids = (NFS, v3::VERSION, Procedure::Remove as u32);
        client.xid = 501;
        let first = alice.exchange(&mut client, ids, &gone);
        let mut next = Context::begin(&mut client, &ticket(&["alice"]), service);
        client.xid = 501;
        assert_eq!(next.exchange(&mut client, ids, &gone), first);
        client.xid = 1000 * service as u32;
    }
}

#[test]
fn changed_arguments_are_garbage() {
    let server = server();
    let root = open_root(&server);
    let mut client = server.client();
    let ids = (NFS, v3::VERSION, Procedure::GetAttr as u32);
    let args = getattr::Args { object: root };
    for service in [Service::Integrity, Service::Privacy] {
        let mut context = Context::begin(&mut client, &ticket(&["alice"]), service);
        let whole = context.call_of(1, 40, ids, &args);
        let header = context.header(40, ids, &context.credential(Control::Data, 1)).len();
        // A bit in each part of the body; what is cut off; a body of another call.
        for at in [header + 4, header + 9, header + 24, whole.len() - 5] {
            let sequence = context.sequence;
            context.sequence += 1;
            let mut call = context.call_of(sequence, 41, ids, &args);
            call[at] ^= 0x10;
            client.send_record(&call);
            let outcome = context.receive(&mut client, 41, sequence);
            assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?} at {at}");
        }
        for cut in [header, header + 4, whole.len() - 4] {
            let sequence = context.sequence;
            context.sequence += 1;
            let call = context.call_of(sequence, 42, ids, &args);
            client.send_record(&call[..cut]);
            let outcome = context.receive(&mut client, 42, sequence);
            assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?} cut at {cut}");
        }
        let sequence = context.sequence;
        let head = context.header(43, ids, &context.credential(Control::Data, sequence));
        let other = context.protect(sequence + 1, &args.encode_to_vec());
        client.send_record(&[head, other].concat());
        let outcome = context.receive(&mut client, 43, sequence);
        assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?}: another number inside");
        context.sequence += 1;
        assert!(matches!(context.exchange(&mut client, ids, &args), Outcome::Ran(_)), "the context goes on");
    }
}

#[test]
fn a_body_of_another_service_is_garbage() {
    let server = server();
    let root = open_root(&server);
    let mut client = server.client();
    let ids = (NFS, v3::VERSION, Procedure::GetAttr as u32);
    let args = getattr::Args { object: root }.encode_to_vec();
    let mut context = Context::begin(&mut client, &ticket(&["alice"]), Service::Privacy);
    // Arguments that are only signed, in a token where they should be sealed.
    let body = [&1_u32.to_be_bytes()[..], &args].concat();
    let mut signed = [&[0; 16][..], &body, &vec![0; context.keys.signed_tail()]].concat();
    context.keys.sign(0, &mut signed).unwrap();
    let head = context.header(50, ids, &context.credential(Control::Data, 1));
    client.send_record(&[head, nfs_wire::gss::Sealed { body: &signed }.encode_to_vec()].concat());
    assert_eq!(context.receive(&mut client, 50, 1), Outcome::NotRun(AcceptStatus::GarbageArgs));
    context.sequence = 2;
    for (number, service) in [(2, Service::None), (3, Service::Integrity)] {
        let head = context.header(51, ids, &context.credential(Control::Data, number));
        client.send_record(&[head, context.with(service).protect(number, &args)].concat());
        let outcome = context.receive(&mut client, 51, number);
        assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?}");
    }
}

#[test]
fn a_call_that_cannot_run_is_answered_with_a_verifier() {
    let server = server();
    let mut client = server.client();
    for service in SERVICES {
        let mut context = Context::begin(&mut client, &ticket(&["alice"]), service);
        let outcome = context.exchange(&mut client, (NFS, v3::VERSION, 99), &());
        assert_eq!(outcome, Outcome::NotRun(AcceptStatus::ProcedureUnavailable), "{service:?}");
        let outcome = context.exchange(&mut client, (NFS, v3::VERSION, 1), &7_u32);
        assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?}");
    }
}

/// Nothing that a client sends with a good header ends the server: bodies of all lengths, and lengths that lie.
#[test]
fn lengths_that_lie_are_garbage() {
    let server = server();
    let mut client = server.client();
    for service in [Service::Integrity, Service::Privacy] {
        let mut context = Context::begin(&mut client, &ticket(&["alice"]), service);
        for length in [0_u32, 1, 3, 4, 15, 16, 17, 31, 32, 60, 61, 0x7fff_ffff, u32::MAX] {
            for content in [0, 4, 16, 32, 64] {
                let sequence = context.sequence;
                context.sequence += 1;
                let head = context.header(60, NULL, &context.credential(Control::Data, sequence));
                client.send_record(&[head, length.to_be_bytes().to_vec(), vec![5; content]].concat());
                let outcome = context.receive(&mut client, 60, sequence);
                assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs), "{service:?} {length}");
            }
        }
        let without_number = context.header(61, NULL, &context.credential(Control::Data, context.sequence));
        let mic = context.keys.mic(0, &[b"abc"]);
        let short = Signed { body: b"abc", checksum: mic.as_ref() }.encode_to_vec();
        client.send_record(&[without_number, short].concat());
        let outcome = context.receive(&mut client, 61, context.sequence);
        assert_eq!(outcome, Outcome::NotRun(AcceptStatus::GarbageArgs));
    }
}

#[test]
fn a_handle_says_nothing_without_its_key() {
    let server = server();
    let mut client = server.client();
    let alice = Context::begin(&mut client, &ticket(&["alice"]), Service::None);
    let bob = Context::begin(&mut client, &ticket(&["bob"]), Service::None);
    let mut thief = Context { handle: alice.handle.clone(), ..bob };
    let outcome = thief.exchange(&mut client, NULL, &());
    assert_eq!(outcome, Outcome::Denied(AuthStatus::GssCredentialProblem));
}
