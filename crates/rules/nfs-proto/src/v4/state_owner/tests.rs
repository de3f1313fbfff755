use proptest::prelude::*;

use super::*;

type Owners = StateOwners<u32>;

const RUN: Result<Begun<u32>, Refused> = Ok(Begun::Run { is_unconfirmed: false });
const RUN_UNCONFIRMED: Result<Begun<u32>, Refused> = Ok(Begun::Run { is_unconfirmed: true });

#[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
fn start() -> Instant {
    Instant::now()
}

fn other(number: u8) -> Other {
    Other([number; 12])
}

fn open(seqid: u32) -> Request {
    request(Operation::Open, seqid)
}

fn request(operation: Operation, seqid: u32) -> Request {
    Request { owner: OwnerName::Open(b"a".as_slice().into()), operation, seqid }
}

fn locking(operation: Operation, seqid: u32) -> Request {
    Request { owner: OwnerName::Lock(b"a".as_slice().into()), operation, seqid }
}

fn bad(status: Status) -> Result<Begun<u32>, Refused> {
    Err(status.into())
}

/// Owners with an open-owner that has opened `other(1)` with number 1 and confirmed with number 2.
fn confirmed(now: Instant) -> Owners {
    let mut owners = Owners::new(10);
    assert_eq!(owners.begin(&open(1), now), RUN_UNCONFIRMED);
    owners.end(&open(1), Ok(()), Effect::Opened(other(1)), 1);
    let confirm = request(Operation::OpenConfirm, 2);
    assert_eq!(owners.begin(&confirm, now), RUN_UNCONFIRMED);
    owners.end(&confirm, Ok(()), Effect::Confirmed, 2);
    owners
}

#[test]
fn requests_run_once_and_in_order() {
    let now = start();
    let mut owners = confirmed(now);
    assert_eq!(owners.begin(&request(Operation::OpenConfirm, 2), now), Ok(Begun::Replay(2)));
    assert_eq!(owners.begin(&open(2), now), bad(Status::BadSeqId), "another operation");
    for wrong in [0, 1, 4, u32::MAX] {
        assert_eq!(owners.begin(&open(wrong), now), bad(Status::BadSeqId));
    }
    assert_eq!(owners.begin(&open(3), now), RUN);
    assert_eq!(owners.begin(&open(3), now), Ok(Begun::Running));
    assert_eq!(owners.begin(&open(4), now), bad(Status::BadSeqId), "one at a time");
    owners.end(&open(3), Err(Status::NoEnt), Effect::None, 3);
    assert_eq!(owners.begin(&open(3), now), Ok(Begun::Replay(3)), "failures are kept, too");
}

#[test]
fn some_failures_do_not_count() {
    let now = start();
    let mut owners = confirmed(now);
    let none: [Status; 8] = [
        Status::StaleClientId,
        Status::StaleStateId,
        Status::BadStateId,
        Status::BadSeqId,
        Status::BadXdr,
        Status::Resource,
        Status::NoFileHandle,
        Status::Moved,
    ];
    for status in none {
        assert_eq!(owners.begin(&open(3), now), RUN);
        owners.end(&open(3), Err(status), Effect::None, 9);
    }
    assert_eq!(owners.begin(&request(Operation::OpenConfirm, 2), now), Ok(Begun::Replay(2)), "as before");
    assert_eq!(owners.begin(&open(3), now), RUN);
    owners.abandon(&open(3));
    assert_eq!(owners.begin(&open(3), now), RUN);
}

#[test]
fn a_close_that_comes_again_is_found_by_what_it_closed() {
    let now = start();
    let mut owners = confirmed(now);
    let close = request(Operation::Close, 3);
    assert_eq!(owners.begin(&close, now), RUN);
    owners.end(&close, Ok(()), Effect::Closed(other(1)), 3);
    let owner = owners.of_closed(other(1)).cloned();
    assert_eq!(owner.as_ref(), Some(&close.owner));
    assert_eq!(owners.begin(&close, now), Ok(Begun::Replay(3)));
    assert_eq!(owners.begin(&open(4), now), RUN);
    owners.end(&open(4), Ok(()), Effect::Opened(other(2)), 4);
    assert_eq!(owners.of_closed(other(1)), None, "the client has gone on");
}

#[test]
fn an_owner_that_was_not_known_confirms() {
    let now = start();
    let mut owners = Owners::new(10);
    for operation in [Operation::Close, Operation::OpenConfirm, Operation::OpenDowngrade] {
        assert_eq!(owners.begin(&request(operation, 7), now), bad(Status::BadStateId));
    }
    assert_eq!(owners.begin(&open(u32::MAX), now), RUN_UNCONFIRMED);
    owners.end(&open(u32::MAX), Ok(()), Effect::Opened(other(1)), 1);
    assert!(owners.is_unconfirmed(other(1)) && !owners.is_unconfirmed(other(2)));
    assert_eq!(owners.begin(&open(u32::MAX), now), Ok(Begun::Replay(1)));
    assert_eq!(owners.begin(&request(Operation::Close, 0), now), bad(Status::BadStateId));
    // Both ways to go on after the largest number.
    for next in [0, 1] {
        assert_eq!(owners.begin(&request(Operation::OpenConfirm, next), now), RUN_UNCONFIRMED);
        owners.abandon(&request(Operation::OpenConfirm, next));
    }
    assert_eq!(owners.begin(&request(Operation::OpenConfirm, 1), now), RUN_UNCONFIRMED);
    owners.end(&request(Operation::OpenConfirm, 1), Ok(()), Effect::Confirmed, 2);
    assert!(!owners.is_unconfirmed(other(1)));
    assert_eq!(owners.begin(&request(Operation::OpenConfirm, 2), now), bad(Status::BadStateId), "only once");
}

#[test]
fn an_open_out_of_order_takes_the_place_of_one_that_was_not_confirmed() {
    let now = start();
    let mut owners = Owners::new(10);
    assert_eq!(owners.begin(&open(5), now), RUN_UNCONFIRMED);
    owners.end(&open(5), Ok(()), Effect::Opened(other(1)), 1);
    let cancelled = vec![other(1)];
    assert_eq!(owners.begin(&open(9), now), Err(Refused { status: Status::Delay, cancelled }));
    assert!(!owners.is_unconfirmed(other(1)));
    assert_eq!(owners.begin(&open(9), now), RUN_UNCONFIRMED);
    owners.end(&open(9), Ok(()), Effect::Opened(other(2)), 2);
    let confirm = request(Operation::OpenConfirm, 20);
    let cancelled = vec![other(2)];
    assert_eq!(owners.begin(&confirm, now), Err(Refused { status: Status::BadSeqId, cancelled }));
    assert_eq!(owners.begin(&confirm, now), bad(Status::BadSeqId));
    assert_eq!(owners.of_closed(other(2)), Some(&confirm.owner), "the same again is refused in the same way");
}

#[test]
fn a_lock_owner_needs_no_confirmation_and_has_a_name_of_its_own() {
    let now = start();
    let mut owners = confirmed(now);
    assert_eq!(owners.begin(&locking(Operation::Lock, 0), now), RUN);
    owners.end(&locking(Operation::Lock, 0), Err(Status::Denied), Effect::None, 6);
    assert_eq!(owners.len(), 1, "it has got no lock");
    assert_eq!(owners.begin(&locking(Operation::Lock, 0), now), RUN);
    owners.end(&locking(Operation::Lock, 0), Ok(()), Effect::None, 7);
    assert_eq!(owners.begin(&locking(Operation::Lock, 0), now), Ok(Begun::Replay(7)));
    assert_eq!(owners.begin(&locking(Operation::LockU, 1), now), RUN);
    owners.end(&locking(Operation::LockU, 1), Ok(()), Effect::None, 8);
    assert_eq!(owners.len(), 2);
    owners.forget(&OwnerName::Lock(b"a".as_slice().into()));
    assert_eq!(owners.begin(&locking(Operation::Lock, 40), now), RUN);
}

#[test]
fn there_are_no_more_owners_than_allowed_and_idle_ones_go() {
    let now = start();
    let mut owners = Owners::new(2);
    let named = |name: &[u8]| Request { owner: OwnerName::Open(name.into()), ..open(1) };
    for name in [b"a", b"b"] {
        assert_eq!(owners.begin(&named(name), now), RUN_UNCONFIRMED);
        owners.end(&named(name), Ok(()), Effect::Confirmed, 0);
    }
    assert_eq!(owners.begin(&named(b"c"), now), bad(Status::Resource));
    assert!(owners.begin(&named(b"a"), now).is_ok(), "those that are known go on");
    let lease = Duration::from_secs(90);
    assert_eq!(owners.forget_idle(now + lease, lease, |_| false), []);
    assert_eq!(owners.len(), 2);
    let later = now + lease + Duration::from_secs(1);
    let holds = |name: &OwnerName| *name == OwnerName::Open(b"a".as_slice().into());
    assert_eq!(owners.forget_idle(later, lease, holds), []);
    assert_eq!(owners.len(), 1);
    assert_eq!(owners.begin(&named(b"c"), later), RUN_UNCONFIRMED);
    owners.end(&named(b"c"), Ok(()), Effect::Opened(other(3)), 0);
    assert_eq!(owners.forget_idle(later + lease * 2, lease, |_| true), [other(3)], "not confirmed in time");
    assert!(!owners.is_unconfirmed(other(3)));
}

#[test]
fn a_refused_first_request_leaves_nothing() {
    let now = start();
    let mut owners = Owners::new(2);
    assert_eq!(owners.begin(&open(1), now), RUN_UNCONFIRMED);
    owners.end(&open(1), Err(Status::NoFileHandle), Effect::None, 0);
    assert!(owners.is_empty());
    assert_eq!(owners.begin(&open(8), now), RUN_UNCONFIRMED);
    owners.abandon(&open(8));
    assert!(owners.is_empty());
}

proptest! {
    /// Whatever the numbers, an operation runs once for each number that counts, and a repetition gets its reply.
    #[test]
    fn each_number_runs_once(seqids in proptest::collection::vec(0_u32..8, 1..200)) {
        let now = start();
        let mut owners = confirmed(now);
        let (mut last, mut replies) = (2_u32, 2_u32);
        for seqid in seqids {
            let operation = if seqid == 2 { Operation::OpenConfirm } else { Operation::Open };
            let asked = request(operation, seqid);
            match owners.begin(&asked, now) {
                Ok(Begun::Run { is_unconfirmed }) => {
                    prop_assert!(!is_unconfirmed && seqid == last + 1);
                    (last, replies) = (seqid, replies + 1);
                    owners.end(&asked, Ok(()), Effect::None, replies);
                }
                Ok(Begun::Replay(reply)) => prop_assert_eq!((seqid, reply), (last, replies)),
                Ok(Begun::Running) => prop_assert!(false, "nothing runs"),
                Err(refused) => {
                    prop_assert!(seqid != last && seqid != last + 1);
                    prop_assert_eq!(refused, Refused::from(Status::BadSeqId));
                }
            }
        }
    }
}
