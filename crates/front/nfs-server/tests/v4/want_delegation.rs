//! WANT_DELEGATION: delegations without an OPEN, under the rules of those that come with one (RFC 8881 18.49).

use nfs_wire::v4::attr::Attributes;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::create::{self, What};
use nfs_wire::v4::create_session::Flags;
use nfs_wire::v4::open::{DelegationType, How, ShareAccess, ShareDeny, Want, WhyNone};
use nfs_wire::v4::reclaim_complete;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Text};
use nfs_wire::v4::want_delegation::{Args, Claim};
use share::{Access, Sharing};

use crate::client::{V4Client, put};
use crate::delegations::{Came, came, give_back, quietly, recalled};
use crate::opens::{smb_open, started};
use crate::server::{TestServer, rules};

const CONTENTION: Came = Came::Nothing(Some(WhyNone::Contention { will_push: false }));
const RESOURCE: Came = Came::Nothing(Some(WhyNone::Resource { will_signal: false }));

fn want(want: ShareAccess, claim: Claim) -> ArgOp<'static> {
    ArgOp::WantDelegation(Args { want, claim })
}

/// WANT_DELEGATION of a file.
pub(crate) fn wants(file: &[u8], wanted: Want) -> [ArgOp<'_>; 2] {
    [put(file), want(ShareAccess::empty().with_want(wanted), Claim::Fh)]
}

/// The same for what the client had before a restart.
pub(crate) fn claims(file: &[u8], wanted: Want, had: DelegationType) -> [ArgOp<'_>; 2] {
    [put(file), want(ShareAccess::empty().with_want(wanted), Claim::Previous(had))]
}

/// What comes of it.
pub(crate) fn granted(client: &mut V4Client, file: &[u8], wanted: Want) -> Came {
    let reply = client.ok(&wants(file, wanted));
    let ResOp::WantDelegation(Ok(delegation)) = reply.last() else { panic!("{reply:?}") };
    came(delegation)
}

/// A server, a client of it, the share's top and a file that nobody has open.
fn with_file() -> (TestServer, V4Client, Vec<u8>, Vec<u8>) {
    let (server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"data");
    client.close(&file, stateid);
    (server, client, root, file)
}

#[test]
fn a_client_reads_and_writes_under_a_delegation_of_a_file_that_it_has_not_opened() {
    let (_server, mut client, _, file) = with_file();
    let stateid = granted(&mut client, &file, Want::Read).read();
    assert_eq!(client.read(&file, stateid, 0, 10), b"data");
    client.ok(&give_back(&file, stateid));
    assert_eq!(client.fails(&give_back(&file, stateid)), Status::BadStateId);
    for wanted in [Want::Write, Want::Any] {
        let Came::Write(stateid) = granted(&mut client, &file, wanted) else { panic!("{wanted:?}") };
        client.write(&file, stateid, 0, b"more");
        assert_eq!(client.read(&file, stateid, 0, 10), b"more");
        client.ok(&give_back(&file, stateid));
    }
    // The bits for an open's access mean nothing here, and nothing is signalled or pushed.
    let later = ShareAccess::BOTH | ShareAccess::SIGNAL_WHEN_AVAILABLE | ShareAccess::PUSH_WHEN_UNCONTENDED;
    let reply = client.ok(&[put(&file), want(later.with_want(Want::Read), Claim::Fh)]);
    let ResOp::WantDelegation(Ok(delegation)) = reply.last() else { panic!("{reply:?}") };
    came(delegation).read();
    assert!(client.callbacks.is_empty());
}

#[test]
fn a_delegation_that_was_wanted_is_recalled_for_others() {
    let (server, mut client, root, file) = with_file();
    let mut other = V4Client::start(server.address, "two");
    let stateid = granted(&mut client, &file, Want::Read).read();
    std::thread::scope(|scope| {
        let smb = scope.spawn(|| {
            let open = smb_open(&server, Access::WRITE_DATA, Sharing::all()).unwrap();
            crate::opens::runtime().block_on(server.data.close_unasked(&open)).unwrap();
        });
        assert_eq!(recalled(&mut client, &file).other, stateid.other);
        client.ok(&give_back(&file, stateid));
        smb.join().unwrap();
    });
    let stateid = granted(&mut client, &file, Want::Read).read();
    let handle = nfs_wire::v3::types::FileHandle::new(&file).unwrap();
    let mut old = server.client();
    assert!(old.write(handle, 0, b"x").is_err(), "NFS3ERR_JUKEBOX");
    assert_eq!(recalled(&mut client, &file).other, stateid.other);
    client.ok(&give_back(&file, stateid));
    old.write(handle, 0, b"x").unwrap();
    let Came::Write(stateid) = granted(&mut client, &file, Want::Write) else { panic!("none") };
    let reads = quietly(&other, &root, ShareAccess::READ);
    assert_eq!(other.fails(&reads), Status::Delay);
    assert_eq!(recalled(&mut client, &file).other, stateid.other);
    client.ok(&give_back(&file, stateid));
    other.ok(&reads);
}

#[test]
fn a_want_takes_nothing_from_others() {
    let (server, mut client, root, file) = with_file();
    let mut other = V4Client::start(server.address, "two");
    let Came::Write(stateid) = granted(&mut other, &file, Want::Write) else { panic!("none") };
    assert_eq!(granted(&mut client, &file, Want::Read), CONTENTION);
    other.ok(&give_back(&file, stateid));
    let stateid = granted(&mut other, &file, Want::Read).read();
    let beside = granted(&mut client, &file, Want::Write).read();
    client.ok(&give_back(&file, beside));
    other.ok(&give_back(&file, stateid));
    assert!(client.callbacks.is_empty() && other.callbacks.is_empty());
    let open = quietly(&other, &root, ShareAccess::WRITE);
    let stateid = other.ok(&open).opened().stateid;
    for wanted in [Want::Read, Want::Write, Want::Any] {
        assert_eq!(granted(&mut client, &file, wanted), CONTENTION);
    }
    other.close(&file, stateid);
    let denies = (ShareAccess::READ.with_want(Want::None), ShareDeny::READ);
    let args = other.open_args(b"denies", "file", denies, How::NoCreate);
    let stateid = other.ok(&[put(&root), ArgOp::Open(args)]).opened().stateid;
    assert_eq!(granted(&mut client, &file, Want::Read), CONTENTION);
    other.close(&file, stateid);
    let smb = smb_open(&server, Access::WRITE_DATA, Sharing::all()).unwrap();
    assert_eq!(granted(&mut client, &file, Want::Read), CONTENTION);
    crate::opens::runtime().block_on(server.data.close_unasked(&smb)).unwrap();
    granted(&mut client, &file, Want::Read).read();
}

#[test]
fn a_client_has_one_delegation_of_a_file() {
    let (_server, mut client, _, file) = with_file();
    let why = |why| Came::Nothing(Some(why));
    let stateid = granted(&mut client, &file, Want::Read).read();
    assert_eq!(granted(&mut client, &file, Want::Read), RESOURCE);
    assert_eq!(granted(&mut client, &file, Want::Write), why(WhyNone::UpgradeNotSupported));
    assert_eq!(client.read(&file, stateid, 0, 10), b"data", "it is still there");
    client.ok(&give_back(&file, stateid));
    let Came::Write(stateid) = granted(&mut client, &file, Want::Write) else { panic!("none") };
    assert_eq!(granted(&mut client, &file, Want::Read), why(WhyNone::DowngradeNotSupported));
    client.write(&file, stateid, 0, b"more");
}

#[test]
fn a_client_that_cannot_be_called_back_gets_none() {
    let (server, _, _, file) = with_file();
    let mut deaf = V4Client::connect(server.address);
    deaf.establish_with("deaf", 1, Flags::empty());
    deaf.ok(&[ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })]);
    assert_eq!(granted(&mut deaf, &file, Want::Read), RESOURCE);
}

#[test]
fn only_regular_files_are_delegated() {
    let (_server, mut client, root, _) = with_file();
    let why = |why| Came::Nothing(Some(why));
    assert_eq!(granted(&mut client, &root, Want::Read), why(WhyNone::IsDir));
    let top = client.path("/");
    assert_eq!(granted(&mut client, &top, Want::Write), why(WhyNone::IsDir));
    let what = What::SymbolicLink(Text(b"some/where"));
    let make = create::Args { what, name: Name(b"link"), attributes: Attributes::EMPTY };
    let link = client.ok(&[put(&root), ArgOp::Create(make), ArgOp::GetFh]).file_handle();
    assert_eq!(granted(&mut client, &link, Want::Any), why(WhyNone::TypeNotSupported));
    assert_eq!(granted(&mut client, &link, Want::Write), why(WhyNone::WriteNotSupported));
}

#[test]
fn permissions_are_those_of_an_open() {
    let (server, mut client, _) = started();
    let (mut old, top) = server.mounted();
    let mut make = |name, mode| old.make_file(top, name, mode, b"data").as_bytes().to_vec();
    let (readable, writable, hidden) =
        (make("readable", 0o644), make("writable", 0o622), make("hidden", 0o600));
    client.become_user(1000, 100, &[]);
    for (file, wanted) in [
        (&readable, Want::Write),
        (&writable, Want::Write),
        (&writable, Want::Any),
        (&hidden, Want::Read),
        (&hidden, Want::Any),
    ] {
        assert_eq!(client.fails(&wants(file, wanted)), Status::Access, "{wanted:?}");
    }
    let stateid = granted(&mut client, &readable, Want::Any).read();
    client.ok(&give_back(&readable, stateid));
    granted(&mut client, &readable, Want::Read).read();
}

#[test]
fn a_share_that_is_only_read_is_only_delegated_for_reading() {
    let (server, mut client, _, file) = with_file();
    server.data.set_rules(rules(&["127.0.0.1 access=ro"]));
    assert_eq!(client.fails(&wants(&file, Want::Write)), Status::Access);
    granted(&mut client, &file, Want::Any).read();
    server.data.set_rules(rules(&["192.0.2.1"]));
    assert_eq!(client.fails(&wants(&file, Want::Read)), Status::Access);
}

#[test]
fn a_want_says_what_is_wanted() {
    let (_server, mut client, _, file) = with_file();
    assert_eq!(client.fails(&wants(&file, Want::NoPreference)), Status::Inval);
    assert_eq!(client.fails(&wants(&file, Want::None)), Status::Inval);
    let undefined = ShareAccess::from_bits_retain(0x600);
    assert_eq!(client.fails(&[put(&file), want(undefined, Claim::Fh)]), Status::Inval);
    assert_eq!(granted(&mut client, &file, Want::Cancel), Came::Nothing(Some(WhyNone::Cancelled)));
    let reads = ShareAccess::empty().with_want(Want::Read);
    assert_eq!(client.fails(&[put(&file), want(reads, Claim::DelegPrevFh)]), Status::NotSupp);
    assert_eq!(client.fails(&[want(reads, Claim::Fh)]), Status::NoFileHandle);
    let late = client.fails(&claims(&file, Want::Read, DelegationType::Read));
    assert_eq!(late, Status::NoGrace);
}
