use super::*;
use crate::{Actor, FileLimits, FileState, IoConflict, OpenKey};
use LockKind::{Exclusive, Shared};
use proptest::prelude::*;

const A: LockOwner = LockOwner::Open(OpenKey(1));
const B: LockOwner = LockOwner::Open(OpenKey(2));
const P: LockOwner = LockOwner::Client(1);
const Q: LockOwner = LockOwner::Client(2);
const MANY: usize = 1_000;

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).unwrap()
}

fn state(locks: &[(LockOwner, ByteRange, LockKind)]) -> FileState {
    let mut state = FileState::new(FileLimits::default());
    for &(owner, range, kind) in locks {
        state.lock(owner, range, kind).unwrap();
    }
    state
}

/// The owner's locks as (offset, length, kind), in the order of their offsets.
fn locks_of(state: &FileState, owner: LockOwner) -> Vec<(u64, u64, LockKind)> {
    let mine = state.locks().filter(|l| l.owner == owner);
    let mut list: Vec<_> = mine.map(|l| (l.range.offset(), l.range.length(), l.kind)).collect();
    list.sort_by_key(|l| (l.0, l.1, l.2 == Exclusive));
    list
}

#[test]
fn conflicts_between_locks() {
    // (held by, kind, asked by, kind, granted), all on one range.
    let cases = [
        (A, Shared, A, Shared, true),
        (A, Shared, A, Exclusive, false),
        (A, Exclusive, A, Shared, true),
        (A, Exclusive, A, Exclusive, false),
        (A, Shared, B, Shared, true),
        (A, Shared, B, Exclusive, false),
        (A, Exclusive, B, Shared, false),
        (A, Exclusive, B, Exclusive, false),
        (P, Shared, P, Exclusive, true),
        (P, Exclusive, P, Exclusive, true),
        (P, Exclusive, P, Shared, true),
        (P, Shared, Q, Shared, true),
        (P, Shared, Q, Exclusive, false),
        (P, Exclusive, Q, Shared, false),
        (P, Shared, A, Shared, true),
        (P, Shared, A, Exclusive, false),
        (P, Exclusive, A, Shared, false),
        (A, Shared, P, Shared, true),
        (A, Shared, P, Exclusive, false),
        (A, Exclusive, P, Shared, false),
    ];
    for (holder, held, asker, asked, granted) in cases {
        let mut state = state(&[(holder, range(10, 10), held)]);
        let case = format!("{holder:?} {held:?} {asker:?} {asked:?}");
        let conflict = ByteRangeLock { owner: holder, range: range(10, 10), kind: held };
        assert_eq!(state.test(asker, range(15, 1), asked), (!granted).then_some(conflict), "{case}");
        let result = state.lock(asker, range(15, 1), asked);
        assert_eq!(result.is_ok(), granted, "{case}");
        if !granted {
            assert_eq!(result, Err(LockError::Conflict(conflict)), "{case}");
        }
        assert!(state.lock(asker, range(20, 1), asked).is_ok(), "adjoining: {case}");
    }
}

#[test]
fn conflicts_between_locks_and_io() {
    // (held by, kind, actor, may read, may write)
    let open = |n| Actor::Open(OpenKey(n));
    let cases = [
        (A, Exclusive, open(1), true, true),
        (A, Exclusive, open(2), false, false),
        (A, Exclusive, Actor::Stateless, false, false),
        // A shared lock stops even its owner from writing.
        (A, Shared, open(1), true, false),
        (A, Shared, open(2), true, false),
        (A, Shared, Actor::Stateless, true, false),
        // Advisory locks stop actors that rely on locks being enforced, and nobody else.
        (P, Exclusive, open(2), false, false),
        (P, Shared, open(2), true, false),
        (P, Exclusive, Actor::Advised(OpenKey(2)), true, true),
        (P, Exclusive, Actor::Stateless, true, true),
        // These actors are stopped by mandatory locks.
        (A, Exclusive, Actor::Advised(OpenKey(2)), false, false),
        (A, Shared, Actor::Advised(OpenKey(2)), true, false),
    ];
    for (holder, held, actor, reads, writes) in cases {
        let state = state(&[(holder, range(10, 10), held)]);
        let case = format!("{holder:?} {held:?} {actor:?}");
        let conflict = IoConflict::Locked(ByteRangeLock { owner: holder, range: range(10, 10), kind: held });
        let expected = |may: bool| if may { Ok(()) } else { Err(conflict) };
        assert_eq!(state.check_read(actor, range(5, 6)), expected(reads), "{case}");
        assert_eq!(state.check_write(actor, range(19, 100)), expected(writes), "{case}");
        for beside in [range(0, 10), range(20, 5), range(15, 0), ByteRange::to_end(20)] {
            assert_eq!(state.check_read(actor, beside), Ok(()), "{beside:?} {case}");
            assert_eq!(state.check_write(actor, beside), Ok(()), "{beside:?} {case}");
        }
    }
}

#[test]
fn a_mandatory_lock_below_an_advisory_one_is_seen() {
    let state = state(&[(P, ByteRange::to_end(0), Shared), (A, range(10, 10), Shared)]);
    assert!(state.check_write(Actor::Stateless, range(12, 1)).is_err());
    assert!(state.check_write(Actor::Stateless, range(22, 1)).is_ok());
}

#[test]
fn empty_ranges_conflict_inside_only() {
    let mut held = state(&[(A, range(10, 10), Exclusive)]);
    assert!(held.lock(B, range(15, 0), Exclusive).is_err());
    assert!(held.lock(B, range(10, 0), Exclusive).is_ok());
    assert!(held.lock(B, range(20, 0), Exclusive).is_ok());
    let mut empty = state(&[(A, range(15, 0), Exclusive), (A, range(0, 0), Exclusive)]);
    assert!(empty.lock(B, range(10, 10), Shared).is_err());
    assert!(empty.lock(B, range(15, 10), Shared).is_ok());
    assert!(empty.lock(B, range(10, 5), Shared).is_ok());
    assert!(empty.lock(B, range(0, 10), Exclusive).is_ok());
    assert!(empty.lock(B, range(15, 0), Exclusive).is_ok());
    assert!(empty.check_read(Actor::Open(OpenKey(2)), range(14, 2)).is_err());
    assert_eq!(empty.unlock(A, range(15, 0)), Ok(LockChange { freed: true }));
    assert_eq!(empty.unlock(A, range(15, 0)), Err(UnlockError::NotLocked));
    assert_eq!(empty.lock(P, range(5, 0), Exclusive), Ok(LockChange { freed: false }));
    assert!(locks_of(&empty, P).is_empty());
    empty.lock(P, range(30, 10), Shared).unwrap();
    assert_eq!(empty.unlock(P, range(35, 0)), Ok(LockChange { freed: false }));
    assert_eq!(locks_of(&empty, P), [(30, 10, Shared)]);
}

#[test]
fn an_open_unlocks_exactly_what_it_locked() {
    let mut state = state(&[
        (A, range(0, 10), Exclusive),
        (A, range(0, 10), Shared),
        (B, range(20, 10), Shared),
        (A, range(20, 10), Shared),
    ]);
    for wrong in [range(0, 9), range(1, 9), range(0, 11), ByteRange::to_end(0)] {
        assert_eq!(state.unlock(A, wrong), Err(UnlockError::NotLocked));
    }
    assert_eq!(state.unlock(B, range(0, 10)), Err(UnlockError::NotLocked));
    // The exclusive lock is removed first: the shared one still stops the owner from writing.
    assert!(state.unlock(A, range(0, 10)).is_ok());
    assert_eq!(locks_of(&state, A), [(0, 10, Shared), (20, 10, Shared)]);
    assert!(state.unlock(A, range(0, 10)).is_ok());
    assert_eq!(state.unlock(A, range(0, 10)), Err(UnlockError::NotLocked));
    assert_eq!(state.release_owner(A), LockChange { freed: true });
    assert_eq!(state.release_owner(A), LockChange { freed: false });
    assert_eq!(locks_of(&state, B), [(20, 10, Shared)]);
}

#[test]
fn a_clients_owner_merges_and_splits() {
    let mut state = FileState::new(FileLimits::default());
    state.lock(P, range(10, 10), Exclusive).unwrap();
    state.lock(P, range(30, 10), Exclusive).unwrap();
    state.lock(P, range(20, 10), Exclusive).unwrap();
    assert_eq!(locks_of(&state, P), [(10, 30, Exclusive)]);
    // Downgrading the middle frees part of the lock.
    assert_eq!(state.lock(P, range(20, 5), Shared), Ok(LockChange { freed: true }));
    assert_eq!(locks_of(&state, P), [(10, 10, Exclusive), (20, 5, Shared), (25, 15, Exclusive)]);
    assert!(state.lock(Q, range(20, 5), Shared).is_ok());
    // An upgrade conflicts with the other owner's lock and changes nothing.
    assert!(state.lock(P, range(15, 10), Exclusive).is_err());
    assert_eq!(locks_of(&state, P), [(10, 10, Exclusive), (20, 5, Shared), (25, 15, Exclusive)]);
    assert_eq!(state.unlock(Q, ByteRange::to_end(0)), Ok(LockChange { freed: true }));
    assert_eq!(state.lock(P, range(15, 10), Exclusive), Ok(LockChange { freed: false }));
    assert_eq!(locks_of(&state, P), [(10, 30, Exclusive)]);
    assert_eq!(state.unlock(P, range(5, 10)), Ok(LockChange { freed: true }));
    assert_eq!(state.unlock(P, ByteRange::to_end(35)), Ok(LockChange { freed: true }));
    assert_eq!(locks_of(&state, P), [(15, 20, Exclusive)]);
    assert_eq!(state.unlock(P, range(100, 10)), Ok(LockChange { freed: false }));
    state.lock(P, ByteRange::to_end(0), Exclusive).unwrap();
    state.unlock(P, range(u64::MAX, 1)).unwrap();
    assert_eq!(locks_of(&state, P), [(0, u64::MAX, Exclusive)]);
    assert!(state.lock(Q, range(u64::MAX, 1), Exclusive).is_ok());
}

#[test]
fn the_limit_is_exact_and_merging_is_free() {
    let mut locks = Locks::default();
    for n in 0..3 {
        locks.lock(A, range(n * 10, 5), Exclusive, 3).unwrap();
    }
    assert_eq!(locks.lock(A, range(90, 5), Exclusive, 3), Err(LockError::TooMany));
    locks.unlock(A, range(0, 5), 3).unwrap();
    assert!(locks.lock(A, range(90, 5), Exclusive, 3).is_ok());

    let mut locks = Locks::default();
    locks.lock(P, range(0, 10), Exclusive, 2).unwrap();
    locks.lock(P, range(20, 10), Exclusive, 2).unwrap();
    assert_eq!(locks.lock(P, range(40, 10), Exclusive, 2), Err(LockError::TooMany));
    assert_eq!(locks.lock(P, range(22, 5), Shared, 2), Err(LockError::TooMany));
    assert_eq!(locks.unlock(P, range(2, 5), 2), Err(UnlockError::TooMany));
    assert_eq!(locks.len(), 2);
    // Growing a lock, and joining both, needs no room.
    assert!(locks.lock(P, range(5, 10), Exclusive, 2).is_ok());
    assert!(locks.lock(P, range(15, 5), Exclusive, 2).is_ok());
    assert_eq!(locks.len(), 1);
    assert!(locks.unlock(P, range(2, 5), 2).is_ok());
    assert_eq!(locks.len(), 2);
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Lock(LockOwner, ByteRange, LockKind),
    Unlock(LockOwner, ByteRange),
    Release(LockOwner),
    Read(u64, ByteRange),
    Write(u64, ByteRange),
}

/// How many bytes the model has.
const BYTES: u64 = 24;

fn an_op() -> impl Strategy<Value = Op> {
    let owner = prop::sample::select(vec![A, B, P, Q]);
    // Few offsets and lengths, so that ranges overlap, and equal ones are repeated.
    let some = (0u64..12, 0u64..8).prop_map(|(o, n)| range(o * 2, n.min(BYTES - o * 2)));
    let kind = prop::sample::select(vec![Shared, Exclusive]);
    prop_oneof![
        6 => (owner.clone(), some.clone(), kind).prop_map(|(o, r, k)| Op::Lock(o, r, k)),
        4 => (owner.clone(), some.clone()).prop_map(|(o, r)| Op::Unlock(o, r)),
        1 => owner.prop_map(Op::Release),
        1 => (0u64..4, some.clone()).prop_map(|(n, r)| Op::Read(n, r)),
        1 => (0u64..4, some).prop_map(|(n, r)| Op::Write(n, r)),
    ]
}

/// The model: an open holds a bag of locks, a client's owner has a state for each byte.
#[derive(Debug, Default)]
struct Model {
    opens: Vec<(LockOwner, ByteRange, LockKind)>,
    bytes: [[Option<LockKind>; 24]; 2],
}

fn has(range: ByteRange, byte: u64) -> bool {
    range.offset() <= byte && byte < range.offset() + range.length()
}

/// Whether the two have a byte in common, or an empty one lies inside the other.
fn meet(a: ByteRange, b: ByteRange) -> bool {
    let inside = |e: ByteRange, r: ByteRange| {
        e.is_empty() && e.offset() > r.offset() && e.offset() < r.offset() + r.length()
    };
    (0..BYTES).any(|byte| has(a, byte) && has(b, byte)) || inside(a, b) || inside(b, a)
}

impl Model {
    fn client(owner: LockOwner) -> Option<usize> {
        [P, Q].iter().position(|o| *o == owner)
    }

    fn locked_by_client(&self, client: usize, range: ByteRange, kind: LockKind) -> bool {
        // An empty range of an open lies between two bytes. It conflicts with a lock that covers both, be it one lock
        // or two that adjoin: a client's owner merges those of one kind.
        let at = |byte: u64| self.bytes[client][usize::try_from(byte).unwrap()];
        if range.is_empty() {
            let n = range.offset();
            return n > 0 && n < BYTES && at(n) == Some(kind) && at(n - 1) == Some(kind);
        }
        (0..BYTES).any(|byte| has(range, byte) && at(byte) == Some(kind))
    }

    fn may_lock(&self, owner: LockOwner, range: ByteRange, kind: LockKind) -> bool {
        let own_client = Self::client(owner);
        if own_client.is_some() && range.is_empty() {
            return true;
        }
        let by_open = self.opens.iter().any(|&(holder, r, held)| {
            meet(r, range)
                && (held == Exclusive || kind == Exclusive)
                && (holder != owner || kind == Exclusive)
        });
        let by_client = (0..2).filter(|c| Some(*c) != own_client).any(|c| {
            self.locked_by_client(c, range, Exclusive)
                || (kind == Exclusive && self.locked_by_client(c, range, Shared))
        });
        !by_open && !by_client
    }

    fn set(&mut self, client: usize, range: ByteRange, to: Option<LockKind>) {
        for byte in (0..BYTES).filter(|b| has(range, *b)) {
            self.bytes[client][usize::try_from(byte).unwrap()] = to;
        }
    }

    fn unlock(&mut self, owner: LockOwner, range: ByteRange) -> bool {
        if let Some(client) = Self::client(owner) {
            self.set(client, range, None);
            return true;
        }
        let exact = |kind| self.opens.iter().position(|l| *l == (owner, range, kind));
        let Some(at) = exact(Exclusive).or_else(|| exact(Shared)) else { return false };
        self.opens.remove(at);
        true
    }

    fn may_read(&self, open: u64, range: ByteRange) -> bool {
        let me = LockOwner::Open(OpenKey(open));
        let opens = self.opens.iter().any(|&(o, r, k)| meet(r, range) && k == Exclusive && o != me);
        range.is_empty() || !(opens || self.client_locks(range, Exclusive))
    }

    fn may_write(&self, open: u64, range: ByteRange) -> bool {
        let shared = |&(_, r, k): &(LockOwner, ByteRange, LockKind)| meet(r, range) && k == Shared;
        let shared = self.opens.iter().any(shared) || self.client_locks(range, Shared);
        range.is_empty() || (self.may_read(open, range) && !shared)
    }

    /// Whether a client's owner has a lock of this kind on a byte of the range.
    fn client_locks(&self, range: ByteRange, kind: LockKind) -> bool {
        let inside = |byte: &u64| meet(self::range(*byte, 1), range);
        (0..BYTES).filter(inside).any(|byte| {
            let at = usize::try_from(byte).unwrap();
            self.bytes.iter().any(|owner| owner[at] == Some(kind))
        })
    }

    /// The locks as they should be kept: runs of equal bytes for clients' owners, the bag for opens.
    fn locks_of(&self, owner: LockOwner) -> Vec<(u64, u64, LockKind)> {
        let Some(client) = Self::client(owner) else {
            let mine = self.opens.iter().filter(|l| l.0 == owner);
            let mut list: Vec<_> = mine.map(|l| (l.1.offset(), l.1.length(), l.2)).collect();
            list.sort_by_key(|l| (l.0, l.1, l.2 == Exclusive));
            return list;
        };
        let mut runs: Vec<(u64, u64, LockKind)> = Vec::new();
        for (byte, kind) in (0..BYTES).zip(self.bytes[client]) {
            match (kind, runs.last_mut()) {
                (Some(kind), Some(run)) if run.2 == kind && run.0 + run.1 == byte => run.1 += 1,
                (Some(kind), _) => runs.push((byte, 1, kind)),
                (None, _) => {}
            }
        }
        runs
    }
}

proptest! {
    #[test]
    fn locks_do_what_the_model_does(ops in prop::collection::vec(an_op(), 1..60)) {
        let limits = FileLimits { locks_max: MANY, ..FileLimits::default() };
        let (mut state, mut model) = (FileState::new(limits), Model::default());
        for op in ops {
            match op {
                Op::Lock(owner, range, kind) => {
                    let may = model.may_lock(owner, range, kind);
                    prop_assert_eq!(state.test(owner, range, kind).is_none(), may);
                    prop_assert_eq!(state.lock(owner, range, kind).is_ok(), may, "{:?}", op);
                    match Model::client(owner) {
                        Some(client) if may => model.set(client, range, Some(kind)),
                        None if may => model.opens.push((owner, range, kind)),
                        _ => {}
                    }
                }
                Op::Unlock(owner, range) => {
                    prop_assert_eq!(state.unlock(owner, range).is_ok(), model.unlock(owner, range), "{:?}", op);
                }
                Op::Release(owner) => {
                    state.release_owner(owner);
                    model.opens.retain(|l| l.0 != owner);
                    if let Some(client) = Model::client(owner) {
                        model.set(client, range(0, BYTES), None);
                    }
                }
                Op::Read(open, range) => {
                    let may = state.check_read(Actor::Open(OpenKey(open)), range).is_ok();
                    prop_assert_eq!(may, model.may_read(open, range), "{:?}", op);
                }
                Op::Write(open, range) => {
                    let may = state.check_write(Actor::Open(OpenKey(open)), range).is_ok();
                    prop_assert_eq!(may, model.may_write(open, range), "{:?}", op);
                }
            }
            for owner in [A, B, P, Q] {
                prop_assert_eq!(locks_of(&state, owner), model.locks_of(owner), "{:?} {:?}", op, owner);
            }
        }
    }
}
