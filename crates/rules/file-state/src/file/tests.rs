use super::*;

const ALL: Sharing = Sharing::all();
const NOTHING: Sharing = Sharing::empty();
const A: OpenKey = OpenKey(1);
const B: OpenKey = OpenKey(2);
const C: OpenKey = OpenKey(3);

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).unwrap()
}

/// [MS-FSA] 2.1.5.1.2.2 sentence by sentence, on bare masks: the existing open first, then the new one.
fn violates(existing: (u32, u8), new: (u32, u8)) -> bool {
    const READ: u32 = 0x1 | 0x20;
    const WRITE: u32 = 0x2 | 0x4;
    const DELETE: u32 = 0x1_0000;
    let any = READ | WRITE | DELETE;
    let ((existing_access, existing_sharing), (access, sharing)) = (existing, new);
    if access & any == 0 || existing_access & any == 0 {
        return false;
    }
    (existing_sharing & 1 == 0 && access & READ != 0)
        || (existing_sharing & 2 == 0 && access & WRITE != 0)
        || (existing_sharing & 4 == 0 && access & DELETE != 0)
        || (sharing & 1 == 0 && existing_access & READ != 0)
        || (sharing & 2 == 0 && existing_access & WRITE != 0)
        || (sharing & 4 == 0 && existing_access & DELETE != 0)
}

/// Every set of bits of `mask`.
fn subsets(mask: u32) -> Vec<u32> {
    (0..=mask).filter(|bits| bits & !mask == 0).collect()
}

#[test]
fn sharing_is_that_of_the_document_for_every_pair_of_opens() {
    // All combinations of the bits that count, with two that do not.
    let counting: Vec<u32> = subsets(0x27).into_iter().flat_map(|a| [a, a | 0x1_0000]).collect();
    let accesses: Vec<u32> = counting.into_iter().flat_map(|a| [a, a | 0x10_0180]).collect();
    let mut refused = 0;
    for &had in &accesses {
        for had_sharing in 0..8 {
            let mut state = FileState::default();
            state
                .reserve(A, Access::from_bits(had).unwrap(), Sharing::from_bits(had_sharing).unwrap())
                .unwrap();
            for &access in &accesses {
                for sharing in 0..8 {
                    let wanted = (Access::from_bits(access).unwrap(), Sharing::from_bits(sharing).unwrap());
                    let result = state.reserve(B, wanted.0, wanted.1);
                    let expected = if violates((had, had_sharing), (access, sharing)) {
                        refused += 1;
                        Err(ReserveError::Sharing { holder: A })
                    } else {
                        Ok(())
                    };
                    assert_eq!(result, expected, "{had:x} {had_sharing} {access:x} {sharing}");
                    state.release(B);
                }
            }
        }
    }
    assert!(refused > 50_000, "{refused}");
}

#[test]
fn only_these_bits_count() {
    for bits in subsets(0x1ff) {
        for high in [0, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x1_0000] {
            let needs = Access::from_bits(bits | high).unwrap().needs();
            assert_eq!(needs.contains(Sharing::READ), bits & 0x21 != 0);
            assert_eq!(needs.contains(Sharing::WRITE), bits & 0x6 != 0);
            assert_eq!(needs.contains(Sharing::DELETE), high == 0x1_0000);
        }
    }
}

#[test]
fn many_opens_are_counted_right() {
    // A conflicting open is found after any order of opening and closing.
    let mut state = FileState::default();
    for n in 0..50 {
        let sharing = if n == 30 { Sharing::READ } else { ALL };
        state.reserve(OpenKey(n), Access::READ_DATA, sharing).unwrap();
    }
    let write = |state: &mut FileState| state.reserve(OpenKey(99), Access::WRITE_DATA, ALL);
    assert_eq!(write(&mut state), Err(ReserveError::Sharing { holder: OpenKey(30) }));
    for n in (0..50).filter(|n| *n != 30) {
        state.release(OpenKey(n));
    }
    assert_eq!(write(&mut state), Err(ReserveError::Sharing { holder: OpenKey(30) }));
    state.release(OpenKey(30));
    assert_eq!(write(&mut state), Ok(()));
    let alone = state.reserve(OpenKey(100), Access::READ_DATA, Sharing::READ);
    assert_eq!(alone, Err(ReserveError::Sharing { holder: OpenKey(99) }));
}

#[test]
fn an_upgrade_is_checked_against_all_and_added() {
    let mut state = FileState::default();
    state.reserve(A, Access::READ_DATA, ALL).unwrap();
    state.reserve(A, Access::WRITE_DATA, ALL).unwrap();
    let both = Access::READ_DATA | Access::WRITE_DATA;
    assert_eq!(state.reservation(A).map(|r| (r.access, r.sharing)), Some((both, ALL)));
    // The open's own writing conflicts with denying others to write (RFC 8881 9.7), until it is given up.
    let deny_write = Sharing::READ | Sharing::DELETE;
    let refused = Err(ReserveError::Sharing { holder: A });
    assert_eq!(state.reserve(A, Access::READ_DATA, deny_write), refused);
    assert!(state.downgrade(A, Access::READ_DATA, ALL));
    assert_eq!(state.reserve(A, Access::READ_DATA, deny_write), Ok(()));
    assert_eq!(state.reserve(B, Access::WRITE_DATA, ALL), refused);
    // What was denied before stays denied.
    assert_eq!(state.reserve(A, Access::READ_EA, ALL), Ok(()));
    assert_eq!(state.reservation(A).map(|r| r.sharing), Some(deny_write));
    // A downgrade adds nothing.
    let reads = Access::READ_DATA | Access::READ_EA;
    assert!(state.downgrade(A, Access::all(), Sharing::WRITE));
    assert_eq!(state.reservation(A).map(|r| (r.access, r.sharing)), Some((reads, ALL)));
    assert_eq!(state.reserve(B, Access::WRITE_DATA, ALL), Ok(()));
    assert!(!state.downgrade(C, Access::READ_DATA, ALL));
    assert_eq!(state.reservations().map(|r| r.open).collect::<Vec<_>>(), [A, B]);
}

#[test]
fn one_without_an_open_is_bound_by_the_reservations() {
    // (sharing of the open, whether it may be read, written, deleted)
    for bits in 0..8 {
        let sharing = Sharing::from_bits(bits).unwrap();
        let mut state = FileState::default();
        state.reserve(A, Access::READ_DATA, sharing).unwrap();
        let conflict = IoConflict::Sharing { holder: A };
        let expected = |bit| if sharing.contains(bit) { Ok(()) } else { Err(conflict) };
        assert_eq!(state.check_read(Actor::Stateless, range(0, 1)), expected(Sharing::READ));
        assert_eq!(state.check_write(Actor::Stateless, range(0, 1)), expected(Sharing::WRITE));
        assert_eq!(state.check_access(Access::DELETE).is_ok(), sharing.contains(Sharing::DELETE));
        assert_eq!(state.check_access(Access::WRITE_ATTRIBUTES), Ok(()));
        assert_eq!(state.check_read(Actor::Open(A), range(0, 1)), Ok(()));
    }
    let mut state = FileState::default();
    state.reserve(A, Access::READ_ATTRIBUTES, NOTHING).unwrap();
    assert_eq!(state.check_write(Actor::Stateless, range(0, 1)), Ok(()));
}

#[test]
fn a_pending_deletion_refuses_opens_and_ends_with_the_last() {
    let mut state = FileState::default();
    state.reserve(A, Access::DELETE, ALL).unwrap();
    state.reserve(B, Access::READ_DATA, ALL).unwrap();
    state.set_delete_pending(true);
    assert_eq!(state.reserve(C, Access::READ_ATTRIBUTES, ALL), Err(ReserveError::DeletePending));
    assert_eq!(state.reserve(A, Access::READ_DATA, ALL), Err(ReserveError::DeletePending));
    assert_eq!(state.check_access(Access::DELETE), Err(ReserveError::DeletePending));
    state.set_delete_pending(false);
    assert_eq!(state.reserve(C, Access::READ_ATTRIBUTES, ALL), Ok(()));
    state.set_delete_pending(true);
    for (open, last) in [(A, false), (C, false), (B, true)] {
        assert_eq!(state.release(open), Released { last, delete: last, freed: false });
    }
    assert!(state.is_delete_pending());
    assert_eq!(state.release(B), Released { last: true, delete: false, freed: false });
}

#[test]
fn delete_on_close_takes_hold_when_its_open_closes() {
    let mut state = FileState::default();
    state.reserve(A, Access::DELETE, ALL).unwrap();
    state.set_delete_on_close(A, true);
    assert!(!state.is_delete_pending());
    state.reserve(B, Access::READ_DATA, ALL).unwrap();
    // Withdrawing the mark has no effect on it.
    state.set_delete_pending(false);
    assert_eq!(state.release(A), Released { last: false, delete: false, freed: false });
    assert!(state.is_delete_pending());
    assert_eq!(state.reserve(C, Access::READ_DATA, ALL), Err(ReserveError::DeletePending));
    assert_eq!(state.release(B), Released { last: true, delete: true, freed: false });

    let mut state = FileState::default();
    state.reserve(A, Access::DELETE, ALL).unwrap();
    state.set_delete_on_close(A, true);
    state.set_delete_on_close(A, false);
    assert!(!state.release(A).delete);
}

#[test]
fn an_upgrade_keeps_delete_on_close() {
    let mut state = FileState::default();
    state.reserve(A, Access::DELETE, ALL).unwrap();
    state.set_delete_on_close(A, true);
    state.reserve(A, Access::READ_DATA, ALL).unwrap();
    assert!(state.downgrade(A, Access::READ_DATA, ALL));
    assert!(state.release(A).delete);
}

#[test]
fn the_last_close_frees_locks() {
    let mut state = FileState::default();
    state.reserve(A, Access::READ_DATA, ALL).unwrap();
    state.lock(LockOwner::Open(A), range(0, 10), LockKind::Exclusive).unwrap();
    state.lock(LockOwner::Client(1), range(20, 10), LockKind::Exclusive).unwrap();
    assert_eq!(state.release(A), Released { last: true, delete: false, freed: true });
    assert!(!state.is_idle());
    assert!(state.release_owner(LockOwner::Client(1)).freed);
    assert!(state.is_idle());
}

#[test]
fn the_limit_of_opens_is_exact() {
    let mut state = FileState::new(FileLimits { reservations_max: 2, ..FileLimits::default() });
    state.reserve(A, Access::READ_DATA, ALL).unwrap();
    state.reserve(B, Access::READ_DATA, ALL).unwrap();
    assert_eq!(state.reserve(C, Access::READ_DATA, ALL), Err(ReserveError::TooMany));
    assert_eq!(state.reserve(B, Access::WRITE_DATA, ALL), Ok(()), "an upgrade needs no room");
    state.release(A);
    assert_eq!(state.reserve(C, Access::READ_DATA, ALL), Ok(()));
}

/// [MS-FSA] 2.1.5.1.2.1: deleting a file deletes its streams, so opens of streams can deny that, and nothing else.
#[test]
fn opens_of_streams_deny_deletion_only() {
    let shared = Sharing::READ | Sharing::WRITE;
    for (access, sharing, denies) in [
        (Access::READ_DATA, shared, true),
        (Access::DELETE, NOTHING, true),
        (Access::READ_DATA, ALL, false),
        (Access::READ_ATTRIBUTES, NOTHING, false),
    ] {
        let refused = |holder| if denies { Err(ReserveError::Sharing { holder }) } else { Ok(()) };
        let mut state = FileState::default();
        state.reserve_stream(A, access, sharing).unwrap();
        assert_eq!(state.check_access(Access::DELETE), refused(A));
        assert_eq!(state.check_access(Access::READ_DATA | Access::WRITE_DATA), Ok(()));
        assert_eq!(state.reserve(B, Access::DELETE, ALL), refused(A));
        state.release(B);
        state.reserve(B, Access::READ_DATA | Access::WRITE_DATA, NOTHING).unwrap();
        state.release(B);
        state.release(A);
        state.reserve(B, Access::DELETE, ALL).unwrap();
        assert_eq!(state.reserve_stream(A, access, sharing), refused(B), "the other way round");
    }
    let mut state = FileState::default();
    state.reserve(A, Access::READ_DATA, NOTHING).unwrap();
    state.reserve_stream(B, Access::DELETE, ALL).unwrap();
    assert!(state.has_stream_opens() && !state.is_idle());
}

#[test]
fn a_file_goes_when_the_last_open_of_a_stream_closes() {
    let mut state = FileState::default();
    state.reserve(A, Access::DELETE, ALL).unwrap();
    state.reserve_stream(B, Access::READ_DATA, ALL).unwrap();
    state.set_delete_pending(true);
    assert_eq!(state.reserve_stream(C, Access::READ_DATA, ALL), Err(ReserveError::DeletePending));
    assert_eq!(state.release(A), Released { last: false, delete: false, freed: false });
    assert_eq!(state.release(C), Released { last: false, delete: false, freed: false }, "it was never in");
    assert_eq!(state.release(B), Released { last: true, delete: true, freed: false });
    assert!(state.is_idle());
}

#[test]
fn opens_of_streams_are_counted() {
    let limits = FileLimits { reservations_max: 2, ..FileLimits::default() };
    let mut state = FileState::new(limits);
    state.reserve_stream(A, Access::READ_DATA, ALL).unwrap();
    state.reserve(B, Access::READ_DATA, ALL).unwrap();
    assert_eq!(state.reserve_stream(C, Access::READ_DATA, ALL), Err(ReserveError::TooMany));
    assert_eq!(state.reserve(C, Access::READ_DATA, ALL), Err(ReserveError::TooMany));
}

/// The sum of the opens under a grant, known without looking at them, equals a sum over all of them.
#[test]
fn what_opens_do_together_is_that_of_each() {
    let lease = |n: u8| Holder::Lease { client: [n; 16], key: [n; 16] };
    let holders =
        [lease(1), lease(2), Holder::Delegation(7), Holder::Oplock(OpenKey(3)), Holder::Oplock(OpenKey(77))];
    let accesses = [Access::READ_ATTRIBUTES, Access::READ_DATA, Access::WRITE_DATA, Access::READ_CONTROL];
    let mut state = FileState::default();
    let mut under: Vec<(OpenKey, Holder)> = Vec::new();
    let mut random = 12_345_u64;
    let mut next = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % most
    };
    for step in 0..4000 {
        let open = OpenKey(u64::try_from(next(40)).unwrap());
        match next(5) {
            0 | 1 => {
                let (access, sharing) = (accesses[next(4)], if next(4) == 0 { Sharing::WRITE } else { ALL });
                let is_new = state.reservation(open).is_none();
                if state.reserve(open, access, sharing).is_ok() && is_new {
                    let holder = [lease(1), lease(2), Holder::Delegation(7), Holder::Oplock(open)][next(4)];
                    state.work_under(open, holder);
                    under.push((open, holder));
                }
            }
            2 => _ = state.downgrade(open, accesses[next(4)], ALL),
            3 if state.reservation(open).is_some() => {
                let at = range(u64::try_from(next(20)).unwrap(), 1);
                let owner = LockOwner::Open(open);
                if state.lock(owner, at, LockKind::Shared).is_err() || next(2) == 0 {
                    _ = state.unlock(owner, at);
                }
            }
            _ => {
                state.release(open);
                under.retain(|(key, _)| *key != open);
            }
        }
        for holder in holders {
            let own: Vec<OpenKey> =
                under.iter().filter(|(_, of)| *of == holder).map(|(open, _)| *open).collect();
            let mut sum = Sum { opens: own.len(), ..Sum::default() };
            for open in &own {
                let does = state.reservation(*open).map(Reservation::sum).unwrap();
                sum.counting += does.counting;
                sum.writing += does.writing;
                sum.locks += state.locks().filter(|lock| lock.owner == LockOwner::Open(*open)).count();
            }
            assert_eq!(state.sum_under(holder), sum, "{step} {holder:?}");
            assert_eq!(state.has_opens_under(holder), !own.is_empty());
            assert!(own.iter().all(|open| state.holder_of(*open) == holder));
        }
    }
}

#[test]
fn as_many_opens_as_there_may_be_are_let_in_and_go() {
    // Looking at all opens for each one would take hundreds of millions of steps.
    let mut state = FileState::default();
    let most = u64::try_from(FileLimits::default().reservations_max).unwrap();
    let (lease, shared) = (Holder::Delegation(1), Access::READ_DATA);
    for n in 0..most {
        state.reserve(OpenKey(n), shared, ALL).unwrap();
        state.work_under(OpenKey(n), lease);
        assert_eq!(state.grant(lease, Caching::READ | Caching::HANDLE), Caching::READ | Caching::HANDLE);
        assert_eq!(state.check_read(Actor::Stateless, range(0, 1)), Ok(()));
    }
    assert_eq!(state.reserve(OpenKey(most), shared, ALL), Err(ReserveError::TooMany));
    for n in 0..most {
        state.release(OpenKey(n));
        assert_eq!(state.has_opens_under(lease), n + 1 < most);
    }
    state.revoke(lease);
    assert!(state.is_idle());
}
