//! Requests that wait: the interim response, CANCEL, and what becomes of them when their session ends.
//! [MS-SMB2] 3.3.4.2, 3.3.5.16.

use anabranch_smb_server::{Config, Limits};
use smb_wire::create::CreateDisposition;
use smb_wire::lock::{LockElement, LockFlags, Request};
use smb_wire::{Command, FileId, NtStatus, Target};

use crate::client::{Client, Element, Reply, TestServer};

const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE_LOCK;

fn lock_body(file_id: FileId, offset: u64, flags: LockFlags) -> Vec<u8> {
    let locks = vec![LockElement { offset, length: 10, flags }];
    let mut body = Vec::new();
    Request { lock_sequence_number: 0, lock_sequence_index: 0, file_id, locks }.encode(&mut body).unwrap();
    body
}

/// A client that holds a lock, and one that waits for it; the interim response.
struct Waiting {
    holder: Client,
    held: FileId,
    waiter: Client,
    file: FileId,
    interim: Reply,
}

impl Waiting {
    fn new(server: &TestServer) -> Self {
        let mut holder = server.client();
        let held = holder.create("locked", CreateDisposition::OpenIf).unwrap();
        holder.call(Command::Lock, &lock_body(held, 0, EXCLUSIVE)).ok().unwrap();
        let mut waiter = server.client();
        let file = waiter.create("locked", CreateDisposition::OpenIf).unwrap();
        waiter.send(Command::Lock, &lock_body(file, 0, EXCLUSIVE));
        let interim = waiter.receive();
        assert_eq!(interim.status(), NtStatus::PENDING);
        Self { holder, held, waiter, file, interim }
    }

    fn unlock(&mut self) {
        self.holder.call(Command::Lock, &lock_body(self.held, 0, LockFlags::UNLOCK)).ok().unwrap();
    }

    fn cancel(&mut self, target: Target, message_id: u64) {
        let mut header = self.waiter.header(Command::Cancel);
        self.waiter.next_message_id -= 1; // CANCEL uses no identifier
        header.message_id = message_id;
        header.target = target;
        self.waiter.send_with(&header, &[4, 0, 0, 0]);
    }
}

#[test]
fn what_waits_is_answered_when_it_is_done() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    let Target::Async { async_id } = test.interim.header.target else { panic!("an AsyncId") };
    assert!(async_id != 0 && test.interim.header.credits > 0);
    assert!(!test.interim.is_signed(), "an interim response is never signed");
    assert!(test.waiter.is_alive(), "the connection goes on meanwhile");
    test.unlock();
    let done = test.waiter.receive();
    assert_eq!(done.status(), NtStatus::SUCCESS);
    assert_eq!(done.header.message_id, test.interim.header.message_id);
    assert_eq!(done.header.target, Target::Async { async_id });
    assert_eq!(done.header.credits, 0, "all was granted in the interim response");
    assert!(done.is_signed());
}

#[test]
fn cancel_by_async_id() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    test.cancel(test.interim.header.target, 0);
    let answer = test.waiter.receive();
    assert_eq!(answer.status(), NtStatus::CANCELLED);
    assert_eq!(answer.header.message_id, test.interim.header.message_id);
    // the place in the queue is given up
    test.unlock();
    test.holder.call(Command::Lock, &lock_body(test.held, 0, EXCLUSIVE)).ok().unwrap();
    assert!(test.waiter.is_alive());
}

#[test]
fn cancel_by_message_id() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    test.cancel(Target::Sync { tree_id: 0 }, test.interim.header.message_id);
    assert_eq!(test.waiter.receive().status(), NtStatus::CANCELLED);
}

#[test]
fn cancelling_what_is_not_there_does_nothing() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    test.cancel(Target::Async { async_id: 0xDEAD }, 0);
    test.cancel(Target::Sync { tree_id: 0 }, 0);
    test.cancel(Target::Sync { tree_id: 0 }, u64::MAX);
    assert!(test.waiter.is_alive(), "CANCEL has no answer");
    test.unlock();
    assert_eq!(test.waiter.receive().status(), NtStatus::SUCCESS);
    test.cancel(test.interim.header.target, test.interim.header.message_id);
    assert!(test.waiter.is_alive(), "too late");
}

#[test]
fn closing_the_file_ends_the_wait() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    let message_id = test.interim.header.message_id;
    test.waiter.send(Command::Close, &crate::client::close_body(test.file));
    let answers = [test.waiter.receive(), test.waiter.receive()];
    let waited = answers.iter().find(|reply| reply.header.message_id == message_id).unwrap();
    assert!(waited.status().is_error(), "{:?}", waited.status());
    test.unlock();
    test.holder.call(Command::Lock, &lock_body(test.held, 0, EXCLUSIVE)).ok().unwrap();
}

#[test]
fn who_has_gone_waits_no_more() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    let lost = std::mem::replace(&mut test.waiter, server.client());
    drop(lost);
    test.unlock();
    // if the lost client got the lock after all, it would be freed with its connection; until then this waits
    let file = test.waiter.create("locked", CreateDisposition::Open).unwrap();
    test.waiter.send(Command::Lock, &lock_body(file, 0, EXCLUSIVE));
    let mut reply = test.waiter.receive();
    if reply.status() == NtStatus::PENDING {
        reply = test.waiter.receive();
    }
    assert_eq!(reply.status(), NtStatus::SUCCESS);
}

#[test]
fn only_the_last_of_a_compound_waits() {
    let server = TestServer::start(Config::default());
    let mut test = Waiting::new(&server);
    let lock = |offset| Element {
        command: Command::Lock,
        related: false,
        body: lock_body(test.file, offset, EXCLUSIVE),
    };
    let replies = test.waiter.call_compound(&[lock(100), lock(5), lock(200), lock(6)]);
    let statuses: Vec<_> = replies.iter().map(Reply::status).collect();
    let success = NtStatus::SUCCESS;
    assert_eq!(statuses, [success, NtStatus::INTERNAL_ERROR, success, NtStatus::PENDING]);
    test.cancel(replies[3].header.target, 0);
    assert_eq!(test.waiter.receive().status(), NtStatus::CANCELLED);
}

#[test]
fn so_many_may_wait_and_no_more() {
    let limits = Limits { pending_requests_max: 2, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut test = Waiting::new(&server);
    test.waiter.send(Command::Lock, &lock_body(test.file, 5, EXCLUSIVE));
    assert_eq!(test.waiter.receive().status(), NtStatus::PENDING);
    let refused = test.waiter.call(Command::Lock, &lock_body(test.file, 6, EXCLUSIVE));
    assert_eq!(refused.status(), NtStatus::INSUFFICIENT_RESOURCES);
    test.cancel(test.interim.header.target, 0);
    assert_eq!(test.waiter.receive().status(), NtStatus::CANCELLED);
    test.waiter.send(Command::Lock, &lock_body(test.file, 6, EXCLUSIVE));
    assert_eq!(test.waiter.receive().status(), NtStatus::PENDING);
}
