//! Copies that go on behind their answer (NFSv4.2): COPY, CB_OFFLOAD, OFFLOAD_STATUS, OFFLOAD_CANCEL.

use std::time::{Duration, Instant};

use nfs_wire::v4::callback::{self, OffloadArgs, OffloadInfo};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::copy::{NetLoc, Requirements, WriteResponse};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{FileHandle, StableHow, Stateid, Text, Verifier};
use nfs_wire::v4::{copy, copy_notify, offload_cancel, offload_status};
use share::{Protocols, Right, Role, Rules};

use crate::client::{Callback, CallbackAnswer, V4Client, put};
use crate::ranges::{between, copy_args};
use crate::server::{TestServer, by_smb, export, rules};

const MIB: u64 = 1 << 20;
/// Nobody waits longer for a copy.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many as a client may have under way.
const COPIES_MAX: usize = 16;

/// A server whose share has a plan, and a client of it with two files open, the first of this size.
struct Copying {
    server: TestServer,
    client: V4Client,
    from: (Stateid, Vec<u8>),
    to: (Stateid, Vec<u8>),
}

impl Copying {
    fn start(plan: &str, bytes: u64) -> Self {
        let server = TestServer::start();
        let mut client = V4Client::start_minor(server.address, "one", 2);
        let root = server.mounted().1.as_bytes().to_vec();
        let (from, to) = (client.open(&root, "from"), client.open(&root, "to"));
        client.write(&from.1, from.0, 0, b"begin");
        client.write(&from.1, from.0, bytes - 3, b"end");
        server.data.set_plan(plan.parse().unwrap(), std::time::SystemTime::now()).unwrap();
        Self { server, client, from, to }
    }

    /// COPY, with the source's part from `offset` to the same place.
    fn copy(&mut self, offset: u64, count: u64) -> copy::ResOk {
        let args = copy_args(self.from.0, self.to.0, (offset, offset, count));
        let reply = self.client.ok(&between(&self.from.1, &self.to.1, ArgOp::Copy(args)));
        let ResOp::Copy(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        ok
    }

    /// COPY of the whole, which goes on.
    fn begin(&mut self) -> Stateid {
        let ok = self.copy(0, 0);
        assert_eq!(ok.requirements, Requirements { consecutive: true, synchronous: false }, "{ok:?}");
        ok.response.callback_id.unwrap()
    }

    fn status(&mut self, stateid: Stateid) -> Result<(u64, Option<Result<(), Status>>), Status> {
        let args = offload_status::Args { stateid };
        let reply = self.client.compound(&[put(&self.to.1), ArgOp::OffloadStatus(args)]);
        match reply.last() {
            ResOp::OffloadStatus(Ok(ok)) => Ok((ok.copied_bytes, ok.complete)),
            _ => Err(reply.status.unwrap_err()),
        }
    }

    fn cancel(&mut self, stateid: Stateid) -> Result<(), Status> {
        let args = offload_cancel::Args { stateid };
        self.client.compound(&[put(&self.to.1), ArgOp::OffloadCancel(args)]).status
    }

    /// Waits until the status is so.
    fn until(
        &mut self,
        stateid: Stateid,
        is_so: impl Fn(&Result<(u64, Option<Result<(), Status>>), Status>) -> bool,
    ) {
        let begun = Instant::now();
        loop {
            let status = self.status(stateid);
            if is_so(&status) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{status:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn size_of_target(&self) -> u64 {
        let root = self.server.data.root();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let caller = by_smb(0, 0);
        let found =
            self.server.data.lookup(&caller, root, b"to", share::Case::Sensitive, storage::Want::empty());
        let node = runtime.block_on(found).unwrap().node;
        runtime
            .block_on(self.server.data.attributes(&by_smb(0, 0), &node, storage::Want::empty()))
            .unwrap()
            .size
    }
}

/// What CB_OFFLOAD said: of which stateid and file, how it went; and which request it refers to.
fn told(callback: &Callback) -> (Stateid, Vec<u8>, OffloadInfo, (u32, u32)) {
    match &callback.operations()[..] {
        [
            callback::ArgOp::Sequence(sequence),
            callback::ArgOp::Offload(OffloadArgs { file: FileHandle(file), stateid, info }),
        ] => {
            let [referring] = &sequence.referring_calls[..] else { panic!("{sequence:?}") };
            let [call] = &referring.calls[..] else { panic!("{referring:?}") };
            assert_eq!(referring.session_id, sequence.session_id);
            (*stateid, file.to_vec(), *info, (call.slot_id, call.sequence_id))
        }
        other => panic!("{other:?}"),
    }
}

fn done(count: u64) -> OffloadInfo {
    OffloadInfo::Done(WriteResponse {
        callback_id: None,
        count,
        committed: StableHow::Unstable,
        verifier: Verifier([1; 8]),
    })
}

#[test]
fn a_large_copy_is_answered_at_once_and_its_end_is_told() {
    const MUCH: u64 = 200 * MIB;
    let mut copying = Copying::start("unlimited", MUCH);
    let stateid = copying.begin();
    let asked = copying.client.session.slots[0];
    assert_ne!(stateid.seqid, 0);
    let callback = copying.client.callback();
    let (of, file, info, referring) = told(&callback);
    assert_eq!((of, file, info), (stateid, copying.to.1.clone(), done(MUCH)));
    assert_eq!(referring, (0, asked));
    let (to, target) = copying.to.clone();
    assert_eq!(copying.client.read(&target, to, 0, 5), b"begin");
    assert_eq!(copying.client.read(&target, to, MUCH - 3, 5), b"end");
    // The callback was answered: its stateid is no more.
    copying.until(stateid, |status| *status == Err(Status::BadStateId));
    assert_eq!(copying.cancel(stateid), Err(Status::BadStateId));
}

#[test]
fn little_and_what_must_be_synchronous_is_done_when_it_is_answered() {
    let mut copying = Copying::start("unlimited", 20 * MIB);
    let ok = copying.copy(0, 8 * MIB - 1);
    assert_eq!((ok.response.callback_id, ok.response.count), (None, 8 * MIB - 1));
    let args = copy::Args { synchronous: true, ..copy_args(copying.from.0, copying.to.0, (0, 0, 0)) };
    let reply = copying.client.ok(&between(&copying.from.1, &copying.to.1, ArgOp::Copy(args.clone())));
    let ResOp::Copy(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!((ok.response.callback_id, ok.response.count), (None, 20 * MIB));
    // A client that cannot be called, too.
    let (from, to) = (copying.from.1.clone(), copying.to.1.clone());
    let mut other = V4Client::connect(copying.server.address);
    other.minor_version = 2;
    other.establish_with("two", 1, nfs_wire::v4::create_session::Flags::empty());
    let any =
        copy::Args { synchronous: false, ..copy_args(Stateid::ANONYMOUS, Stateid::ANONYMOUS, (0, 0, 0)) };
    let reply = other.ok(&between(&from, &to, ArgOp::Copy(any)));
    let ResOp::Copy(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!((ok.response.callback_id, ok.response.count), (None, 20 * MIB));
}

#[test]
fn the_client_sees_how_far_a_copy_is_and_ends_it() {
    let mut copying = Copying::start("custom write=8MiB/s", 60 * MIB);
    let stateid = copying.begin();
    copying.until(stateid, |status| matches!(status, Ok((copied, None)) if *copied >= 2 * MIB));
    for wrong in [Stateid { seqid: 0, ..stateid }, Stateid { seqid: 2, ..stateid }, copying.to.0] {
        assert_eq!(copying.status(wrong), Err(Status::BadStateId));
        assert_eq!(copying.cancel(wrong), Err(Status::BadStateId));
    }
    let args = offload_status::Args { stateid };
    let of_source = [put(&copying.from.1), ArgOp::OffloadStatus(args)];
    assert_eq!(copying.client.fails(&of_source), Status::BadStateId, "it is the target's");
    let mut other = V4Client::start_minor(copying.server.address, "two", 2);
    let of_other = [put(&copying.to.1), ArgOp::OffloadStatus(args)];
    assert_eq!(other.fails(&of_other), Status::BadStateId, "it is the other client's");
    // The client has state while it copies, and is not gone before.
    assert_eq!(copying.cancel(stateid), Ok(()));
    let size = copying.size_of_target();
    assert!((2 * MIB..60 * MIB).contains(&size), "{size}");
    assert_eq!(copying.status(stateid), Err(Status::BadStateId));
    copying.server.data.set_plan("unlimited".parse().unwrap(), std::time::SystemTime::now()).unwrap();
    // Another copy, from its first byte to its end, gives the cancelled one time to go on, if it would.
    let next = copying.begin();
    let callback = copying.client.callback();
    assert_eq!(told(&callback).0, next, "of what was cancelled nothing is told");
    assert!(copying.client.callbacks.is_empty());
}

#[test]
fn what_a_client_does_not_answer_is_kept_for_it() {
    let mut copying = Copying::start("unlimited", 9 * MIB);
    copying.client.callback_answer = CallbackAnswer::Fail(Status::Delay);
    let stateid = copying.begin();
    let first = copying.client.callback();
    assert_eq!(copying.status(stateid), Ok((9 * MIB, Some(Ok(())))));
    let again = copying.client.callback();
    assert_eq!(told(&first).2, told(&again).2);
    copying.client.callback_answer = CallbackAnswer::Ok;
    copying.client.callback();
    copying.until(stateid, |status| *status == Err(Status::BadStateId));
    // Kept until it is cancelled, too.
    copying.client.callback_answer = CallbackAnswer::Never;
    let stateid = copying.begin();
    copying.until(stateid, |status| *status == Ok((9 * MIB, Some(Ok(())))));
    assert_eq!(copying.cancel(stateid), Ok(()));
    assert_eq!(copying.status(stateid), Err(Status::BadStateId));
}

#[test]
fn a_client_has_so_many_copies_under_way() {
    let mut copying = Copying::start("unlimited", 60 * MIB);
    // 16 first pieces go through; the rest of the copies waits for its turn.
    copying
        .server
        .data
        .set_plan("custom write=64MiB/s".parse().unwrap(), std::time::SystemTime::now())
        .unwrap();
    let all: Vec<_> = (0..COPIES_MAX).map(|_| copying.begin()).collect();
    copying.client.connection.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = copying.copy(0, 8 * MIB);
    assert_eq!((next.response.callback_id, next.response.count), (None, 8 * MIB));
    for stateid in &all {
        assert_eq!(copying.cancel(*stateid), Ok(()));
    }
    let stateid = copying.begin();
    assert_eq!(copying.cancel(stateid), Ok(()));
}

#[test]
fn a_copy_ends_where_its_open_does() {
    let mut copying = Copying::start("custom write=8MiB/s", 60 * MIB);
    let stateid = copying.begin();
    let (to, target) = copying.to.clone();
    copying.client.close(&target, to);
    let callback = copying.client.callback();
    let (of, _, info, _) = told(&callback);
    let OffloadInfo::Done(response) = info else { panic!("{info:?}") };
    assert!(of == stateid && (MIB..60 * MIB).contains(&response.count), "{response:?}");
    assert_eq!(copying.size_of_target(), response.count);
}

#[test]
fn a_copy_ends_with_its_share() {
    let mut copying = Copying::start("custom write=8MiB/s", 60 * MIB);
    let stateid = copying.begin();
    let gone = copying.server.table.withdraw(copying.server.data.id()).unwrap();
    copying.server.end_share(&gone);
    let callback = copying.client.callback();
    let (of, _, info, _) = told(&callback);
    assert_eq!(of, stateid);
    assert!(matches!(info, OffloadInfo::Failed { status: Status::Stale, copied_bytes: MIB.. }), "{info:?}");
}

#[test]
fn a_copy_ends_where_the_rules_of_its_share_admit_its_client_no_more() {
    let reader = Right { who: "anna".parse().unwrap(), role: Role::Reader };
    for (rules, refusal) in [
        (rules(&["127.0.0.2"]), Status::Access),
        (rules(&["127.0.0.1 access=ro"]), Status::RoFs),
        (Rules { protocols: Protocols::SMB, ..Rules::default() }, Status::Access),
        (Rules { rights: vec![reader], ..Rules::default() }, Status::Access),
    ] {
        let mut copying = Copying::start("custom write=2MiB/s", 60 * MIB);
        let stateid = copying.begin();
        copying.until(stateid, |status| matches!(status, Ok((copied, None)) if *copied >= 2 * MIB));
        copying.server.data.set_rules(rules.clone());
        runtime().block_on(copying.server.server.reconsider(&copying.server.data));
        let callback = copying.client.callback();
        let (of, _, info, _) = told(&callback);
        let OffloadInfo::Done(response) = info else { panic!("{info:?}") };
        assert!(of == stateid && (2 * MIB..60 * MIB).contains(&response.count), "{response:?}");
        assert_eq!(copying.size_of_target(), response.count, "{rules:?}");
        let args = copy_args(Stateid::ANONYMOUS, Stateid::ANONYMOUS, (0, 0, 0));
        let copy = between(&copying.from.1, &copying.to.1, ArgOp::Copy(args));
        assert_eq!(copying.client.fails(&copy), refusal, "{rules:?}");
    }
}

#[test]
fn a_copy_goes_on_while_other_rules_of_its_share_change() {
    let mut copying = Copying::start("custom write=16MiB/s", 20 * MIB);
    let stateid = copying.begin();
    for each in [rules(&["127.0.0.1", "127.0.0.2"]), rules(&["127.0.0.0/8"])] {
        copying.server.data.set_rules(each);
        runtime().block_on(copying.server.server.reconsider(&copying.server.data));
    }
    let callback = copying.client.callback();
    assert_eq!((told(&callback).0, told(&callback).2), (stateid, done(20 * MIB)));
}

#[test]
fn a_copy_ends_with_its_client() {
    let mut copying = Copying::start("custom write=8MiB/s", 60 * MIB);
    copying.begin();
    // The client comes again, as after a restart of its own: all that it had is gone.
    let mut again = V4Client::connect(copying.server.address);
    again.minor_version = 2;
    again.establish("one", 2);
    let begun = Instant::now();
    let mut size = copying.size_of_target();
    // The piece that was being copied is finished.
    loop {
        std::thread::sleep(Duration::from_millis(400)); // the time of three pieces
        let now = copying.size_of_target();
        if now == size {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it goes on: {now}");
        size = now;
    }
    assert!(size < 60 * MIB);
}

#[test]
fn another_run_of_the_server_knows_no_copies() {
    let mut copying = Copying::start("custom write=8MiB/s", 60 * MIB);
    let stateid = copying.begin();
    let next = TestServer::over(copying.server.store.clone(), export(share::Squash::None), 2);
    let mut client = V4Client::start_minor(next.address, "one", 2);
    let target = client.path("/data/to");
    let status = ArgOp::OffloadStatus(offload_status::Args { stateid });
    assert_eq!(client.fails(&[put(&target), status]), Status::BadStateId);
    copying.cancel(stateid).unwrap();
}

#[test]
fn what_is_wrong_with_a_large_copy_is_its_answer() {
    let mut copying = Copying::start("custom capacity=10MiB", 9 * MIB);
    copying.client.become_user(1000, 100, &[]);
    let args = copy_args(copying.from.0, copying.to.0, (0, 0, 0));
    let copy = between(&copying.from.1, &copying.to.1, ArgOp::Copy(args));
    assert_eq!(copying.client.fails(&copy), Status::Access);
    copying.client.become_user(0, 0, &[]);
    // Behind the first piece it becomes short, and the next one says why.
    let begun = Instant::now();
    while copying.server.data.limits_status().used.is_none() {
        runtime().block_on(copying.server.data.space(&by_smb(0, 0), copying.server.data.root())).unwrap();
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    let stateid = copying.begin();
    let callback = copying.client.callback();
    assert_eq!((told(&callback).0, told(&callback).2), (stateid, done(MIB)));
    let args = copy_args(copying.from.0, copying.to.0, (MIB, MIB, 0));
    let copy = between(&copying.from.1, &copying.to.1, ArgOp::Copy(args));
    assert_eq!(copying.client.fails(&copy), Status::NoSpc);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn copies_between_servers_are_not_there() {
    let mut copying = Copying::start("unlimited", 9 * MIB);
    let destination = NetLoc::Name(Text(b"elsewhere"));
    let args = copy_notify::Args { stateid: copying.from.0, destination };
    let notify = [put(&copying.from.1), ArgOp::CopyNotify(args)];
    assert_eq!(copying.client.fails(&notify), Status::NotSupp);
}
