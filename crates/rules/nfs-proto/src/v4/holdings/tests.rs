use proptest::prelude::*;

use super::*;

const R: ShareAccess = ShareAccess::READ;
const W: ShareAccess = ShareAccess::WRITE;
const NONE: ShareDeny = ShareDeny::empty();
const FILE: FileKey = FileKey::live(1, 10);
const OTHER: FileKey = FileKey::live(1, 11);

type Client = Holdings<u32, &'static str>;

fn client() -> Client {
    limited(HoldingLimits::default())
}

fn limited(limits: HoldingLimits) -> Client {
    Holdings::new(limits, Names::new(9, 1))
}

fn opened(access: ShareAccess, deny: ShareDeny, held: u32) -> Opened<u32> {
    Opened { access, deny, held }
}

fn open(client: &mut Client, owner: &[u8], access: ShareAccess, held: u32) -> Stateid {
    client.open(FILE, owner, opened(access, NONE, held)).unwrap().0
}

/// Locks a range for the first time.
fn lock(client: &mut Client, open: Stateid, owner: &[u8]) -> (Stateid, u64) {
    let number = client.begin_locking(owner);
    let stateid = client.locked(open.other, number).unwrap();
    client.end_locking(number);
    (stateid, number)
}

fn latest(stateid: Stateid) -> Stateid {
    Stateid { seqid: 0, ..stateid }
}

#[test]
fn opens_of_one_owner_have_one_stateid() {
    let mut client = client();
    let first = open(&mut client, b"a", R, 1);
    assert_eq!(first.seqid, 1);
    let (second, unneeded) = client.open(FILE, b"a", opened(W, NONE, 2)).unwrap();
    assert_eq!((second.other, second.seqid, unneeded), (first.other, 2, None));
    assert_eq!(client.open(FILE, b"a", opened(W, NONE, 3)).unwrap().1, Some(3));
    let other_owner = open(&mut client, b"b", R, 4);
    assert_ne!(other_owner.other, first.other);
    // The first CLOSE was for an open that has been upgraded since.
    assert_eq!(client.close(second, FILE), Err(StateidError::Old));
    let ended = client.close(latest(second), FILE).unwrap();
    assert_eq!(ended, Ended { opens: vec![1, 2], lock_owners: vec![] });
    assert_eq!(client.find_open(latest(first), FILE).err(), Some(StateidError::Bad));
    // A stateid's `other` is never reused.
    assert_ne!(open(&mut client, b"a", R, 5).other, first.other);
}

#[test]
fn stateids_of_others_and_of_other_files_are_refused() {
    let mut client = client();
    let mine = open(&mut client, b"a", R, 1);
    let mut neighbour = Client::new(HoldingLimits::default(), Names::new(9, 2));
    let mut earlier = Client::new(HoldingLimits::default(), Names::new(8, 1));
    for stolen in [open(&mut neighbour, b"a", R, 1), open(&mut earlier, b"a", R, 1)] {
        assert_eq!(client.for_data(latest(stolen), FILE, R).err(), Some(StateidError::Bad.into()));
        assert_eq!(client.test(stolen), Err(StateidError::Bad));
    }
    assert_eq!(client.find_open(mine, OTHER).err(), Some(StateidError::Bad));
    let ahead = Stateid { seqid: 2, ..mine };
    assert_eq!(client.find_open(ahead, FILE).err(), Some(StateidError::Bad));
    assert_eq!(client.test(Stateid::ANONYMOUS), Err(StateidError::Bad));
}

#[test]
fn data_goes_through_an_open_that_allows_it() {
    let mut client = client();
    let stateid = open(&mut client, b"a", R, 1);
    assert!(matches!(client.for_data(stateid, FILE, R), Ok(Through::Open(1))));
    assert_eq!(client.for_data(stateid, FILE, W).err(), Some(UseError::OpenMode));
    let (locked, _) = lock(&mut client, stateid, b"l");
    assert!(matches!(client.for_data(locked, FILE, R), Ok(Through::Open(1))));
    assert_eq!(client.for_data(locked, FILE, W).err(), Some(UseError::OpenMode));
    let delegated = client.delegate(FILE, R, "d").unwrap();
    assert!(matches!(client.for_data(delegated, FILE, R), Ok(Through::Delegation(&"d"))));
    assert_eq!(client.for_data(delegated, FILE, W).err(), Some(UseError::OpenMode));
}

#[test]
fn kinds_are_not_mixed_up() {
    let mut client = client();
    let opened = open(&mut client, b"a", R, 1);
    let (locked, _) = lock(&mut client, opened, b"l");
    let delegated = client.delegate(FILE, R, "d").unwrap();
    for stateid in [locked, delegated] {
        assert_eq!(client.find_open(stateid, FILE).err(), Some(StateidError::Bad));
        assert_eq!(client.close(stateid, FILE), Err(StateidError::Bad));
        assert_eq!(client.downgrade(stateid, FILE, (R, NONE)), Err(StateidError::Bad.into()));
    }
    for stateid in [opened, delegated] {
        assert_eq!(client.find_lock(stateid, FILE).err(), Some(StateidError::Bad));
    }
    for stateid in [opened, locked] {
        assert_eq!(client.return_delegation(stateid, FILE), Err(StateidError::Bad));
    }
    assert_eq!(client.return_delegation(delegated, FILE), Ok("d"));
}

#[test]
fn locks_end_with_their_open_unless_another_open_has_some() {
    let mut client = client();
    let (a, b) = (open(&mut client, b"a", R, 1), open(&mut client, b"b", R, 2));
    let (under_a, number) = lock(&mut client, a, b"l");
    let (under_b, same) = lock(&mut client, b, b"l");
    assert_eq!(number, same, "one owner");
    assert_ne!(under_a.other, under_b.other);
    assert_eq!(lock(&mut client, a, b"l").0, Stateid { seqid: 2, ..under_a }, "without naming its stateid");
    assert_eq!(client.lock_owners().number(b"l"), Some(number));
    assert_eq!(client.close(a, FILE).unwrap().lock_owners, []);
    assert_eq!(client.find_lock(latest(under_a), FILE).err(), Some(StateidError::Bad));
    assert_eq!(client.find_lock(latest(under_b), FILE).unwrap().0.owner, number);
    assert_eq!(client.close(b, FILE).unwrap().lock_owners, [number]);
    assert_eq!(client.lock_owners().number(b"l"), None);
    assert!(client.is_empty());
}

#[test]
fn what_is_revoked_is_told_until_it_is_freed() {
    let mut client = client();
    let delegated = client.delegate(FILE, R | W, "d").unwrap();
    assert_eq!(client.delegate(FILE, R, "again"), Err("again"));
    assert_eq!(client.free(delegated, |_, _| false), Err(FreeError::Held));
    assert_eq!(client.revoke_delegation(FILE, StateidError::DelegRevoked), Some("d"));
    assert_eq!(client.revoke_delegation(FILE, StateidError::DelegRevoked), None);
    let revoked = Revoked { all: 1, delegations: 1, by_administrator: 0 };
    assert!(client.revoked() == revoked && client.is_empty());
    assert_eq!(client.for_data(delegated, FILE, R).err(), Some(StateidError::DelegRevoked.into()));
    assert_eq!(client.return_delegation(delegated, FILE), Err(StateidError::DelegRevoked));
    assert_eq!(client.test(delegated), Err(StateidError::DelegRevoked));
    assert_eq!(client.free(delegated, |_, _| false), Ok(()));
    assert_eq!(client.test(delegated), Err(StateidError::Bad));
    assert!(client.revoked() == Revoked::default() && client.may_delegate(FILE));
}

#[test]
fn an_administrator_takes_what_is_not_to_be_kept_and_the_locks_with_it() {
    let elsewhere = FileKey::live(2, 10);
    let mut client = client();
    let kept = open(&mut client, b"kept", R, 1);
    let (kept_locks, _) = lock(&mut client, kept, b"both");
    let lost = open(&mut client, b"lost", R, 1);
    client.open(FILE, b"lost", opened(W, NONE, 2)).unwrap();
    let (locks, number) = lock(&mut client, lost, b"l");
    let (shared, _) = lock(&mut client, lost, b"both");
    let of_another = client.open(elsewhere, b"lost", opened(R, NONE, 2)).unwrap().0;
    let delegation = client.delegate(OTHER, R, "lost").unwrap();
    client.delegate(FILE, W, "kept").unwrap();
    assert_eq!(client.of_share(1).count(), 5);
    let gone = client.revoke_of_share(1, |held, access| match held {
        Through::Open(number) => *number == 2 && access == W,
        Through::Delegation(name) => *name == "lost",
    });
    let mut opens = gone.opens;
    opens.sort_unstable();
    assert_eq!((opens, gone.delegations), (vec![1, 2], vec!["lost"]), "both opens of the owner");
    assert_eq!(gone.lock_owners, [(FILE, number)], "the other owner has locks under what is kept");
    for stateid in [lost, locks, shared, delegation] {
        assert_eq!(client.test(latest(stateid)), Err(StateidError::AdminRevoked));
    }
    assert_eq!(client.changed(locks.other), Err(StateidError::AdminRevoked));
    assert!(client.locked(lost.other, number).is_err(), "its open is gone");
    assert_eq!(client.close(latest(lost), FILE), Err(StateidError::AdminRevoked));
    for stateid in [kept, kept_locks, of_another] {
        assert_eq!(client.test(stateid), Ok(()));
    }
    assert_eq!(client.revoked(), Revoked { all: 4, delegations: 1, by_administrator: 4 });
    assert_ne!(open(&mut client, b"lost", R, 3).other, lost.other, "what is opened again is another one");
    for stateid in [lost, locks, shared, delegation] {
        client.free(latest(stateid), |_, _| true).unwrap();
    }
    assert_eq!(client.revoked(), Revoked::default());
}

#[test]
fn no_more_is_remembered_of_what_was_revoked_than_may_be_open() {
    let mut client = limited(HoldingLimits { opens_max: 2, ..HoldingLimits::default() });
    for _ in 0..5 {
        open(&mut client, b"a", R, 1);
        open(&mut client, b"b", R, 2);
        assert_eq!(client.revoke_of_share(1, |_, _| true).opens.len(), 2);
        assert_eq!((client.revoked().all, client.is_empty()), (2, true));
    }
}

#[test]
fn a_set_of_locks_is_freed_once_it_is_empty() {
    let mut client = client();
    let opened = open(&mut client, b"a", R, 1);
    let (locked, number) = lock(&mut client, opened, b"l");
    assert_eq!(client.free(opened, |_, _| false), Err(FreeError::Held));
    assert_eq!(client.free(locked, |_, lock| lock.owner == number), Err(FreeError::Held));
    assert_eq!(client.free(locked, |_, _| false), Ok(()));
    assert_eq!(client.find_lock(latest(locked), FILE).err(), Some(StateidError::Bad));
    assert_eq!(client.close(opened, FILE).unwrap().lock_owners, []);
}

#[test]
fn limits_hold_at_the_edge() {
    let limits =
        HoldingLimits { opens_max: 2, lock_states_max: 1, delegations_max: 1, ..HoldingLimits::default() };
    let mut client = limited(limits);
    let a = open(&mut client, b"a", R, 1);
    open(&mut client, b"b", R, 2);
    assert_eq!(client.open(FILE, b"c", opened(R, NONE, 3)), Err(3));
    assert!(client.open(FILE, b"b", opened(W, NONE, 4)).is_ok(), "no further one");
    lock(&mut client, a, b"l");
    let number = client.begin_locking(b"m");
    assert!(client.locked(a.other, number).is_err());
    client.end_locking(number);
    assert_eq!(client.lock_owners().number(b"m"), None);
    client.delegate(FILE, R, "d").unwrap();
    assert_eq!(client.delegate(OTHER, R, "e"), Err("e"));
    client.revoke_delegation(FILE, StateidError::DelegRevoked);
    assert!(!client.may_delegate(OTHER), "what was revoked counts until it is freed");
}

#[test]
fn at_the_end_everything_is_given_back() {
    let mut client = client();
    let a = open(&mut client, b"a", R, 1);
    let (_, number) = lock(&mut client, a, b"l");
    client.delegate(OTHER, R, "d").unwrap();
    let all = client.end();
    assert_eq!((all.opens, all.lock_owners, all.delegations), (vec![1], vec![(FILE, number)], vec!["d"]));
    assert!(client.is_empty());
    assert_eq!(client.test(a), Err(StateidError::Bad));
    assert_ne!(open(&mut client, b"a", R, 1).other, a.other, "names go on");
}

proptest! {
    /// A client that opens, downgrades and closes one file with two owners, compared with a plain list of its opens.
    #[test]
    fn the_union_is_that_of_a_plain_list(
        steps in prop::collection::vec((0u8..4, 0usize..2, 1u32..4, 0u32..4), 1..60),
    ) {
        let mut client = client();
        let owners: [&[u8]; 2] = [b"a", b"b"];
        let mut model: [Vec<(u32, u32)>; 2] = [vec![], vec![]];
        let mut stateids: [Option<Stateid>; 2] = [None, None];
        for (number, (what, owner, access, deny)) in (0..).zip(steps) {
            let had = &mut model[owner];
            let share = (ShareAccess::from_bits_truncate(access), ShareDeny::from_bits_truncate(deny));
            match (what, stateids[owner]) {
                (0 | 1, before) => {
                    let new = opened(share.0, share.1, number);
                    let (stateid, unneeded) = client.open(FILE, owners[owner], new).unwrap();
                    prop_assert_eq!(unneeded.is_some(), had.contains(&(access, deny)));
                    prop_assert_eq!(stateid.seqid, before.map_or(1, |before| before.seqid + 1));
                    if !had.contains(&(access, deny)) {
                        had.push((access, deny));
                    }
                    stateids[owner] = Some(stateid);
                }
                (2, Some(stateid)) => {
                    let stays: Vec<_> =
                        had.iter().copied().filter(|(a, d)| a & !access == 0 && d & !deny == 0).collect();
                    let union = stays.iter().fold((0, 0), |u, (a, d)| (u.0 | a, u.1 | d));
                    let done = client.downgrade(stateid, FILE, share);
                    prop_assert_eq!(done.is_ok(), union == (access, deny));
                    if let Ok((stateid, gone)) = done {
                        prop_assert_eq!(gone.len(), had.len() - stays.len());
                        *had = stays;
                        stateids[owner] = Some(stateid);
                    }
                }
                (_, Some(stateid)) => {
                    prop_assert_eq!(client.close(stateid, FILE).unwrap().opens.len(), had.len());
                    had.clear();
                    stateids[owner] = None;
                }
                (_, None) => {}
            }
            for (stateid, had) in stateids.iter().zip(&model) {
                let Some(stateid) = stateid else { continue };
                let union = had.iter().fold((0, 0), |u, (a, d)| (u.0 | a, u.1 | d));
                let found = client.find_open(*stateid, FILE).unwrap().union();
                prop_assert_eq!((found.0.bits(), found.1.bits()), union);
            }
        }
        prop_assert_eq!(client.is_empty(), stateids == [None, None]);
    }
}

#[test]
fn what_is_held_of_a_share_ends_with_it() {
    let elsewhere = FileKey::live(2, 10);
    let mut client = client();
    let kept = client.open(elsewhere, b"a", opened(R, NONE, 9)).unwrap().0;
    let gone = open(&mut client, b"a", R, 1);
    let (locks, owner) = lock(&mut client, gone, b"l");
    let delegation = client.delegate(OTHER, R, "delegated").unwrap();
    client.delegate(FILE, R, "revoked").unwrap();
    client.revoke_delegation(FILE, StateidError::DelegRevoked).unwrap();
    let ended = client.end_share(1);
    assert_eq!((ended.opens, ended.lock_owners), (vec![1], vec![(FILE, owner)]));
    assert_eq!(ended.delegations, ["delegated"]);
    for stateid in [gone, locks, delegation] {
        assert_eq!(client.test(stateid), Err(StateidError::Bad));
    }
    assert!(client.revoked() == Revoked::default() && client.lock_owners().number(b"l").is_none());
    assert_eq!(client.test(kept), Ok(()));
    // Nothing of it conflicts with later opens.
    assert_eq!(open(&mut client, b"a", R, 2).seqid, 1);
    assert!(client.may_delegate(OTHER));
    client.close(kept, elsewhere).unwrap();
    assert!(client.end_share(2).opens.is_empty() && !client.is_empty());
}

#[test]
fn a_client_without_sessions_finds_owners_by_stateids() {
    use super::super::state_owner::OwnerName;
    let mut client = client();
    let opened = open(&mut client, b"a", R | W, 1);
    let (locked, _) = lock(&mut client, opened, b"l");
    assert_eq!(client.owner_of(opened.other), Some(OwnerName::Open(b"a".as_slice().into())));
    assert_eq!(client.owner_of(locked.other), Some(OwnerName::Lock(b"l".as_slice().into())));
    assert_eq!(client.open_owners(), std::collections::HashSet::from([&b"a"[..]]));
    let confirmed = client.confirm(opened, FILE).unwrap();
    assert_eq!((confirmed.other, confirmed.seqid), (opened.other, 2));
    assert_eq!(client.confirm(opened, FILE), Err(StateidError::Old));
    assert_eq!(client.cancel(locked.other), None, "no open");
    let (file, ended) = client.cancel(opened.other).unwrap();
    assert_eq!((file, ended.opens, ended.lock_owners.len()), (FILE, vec![1], 1));
    assert_eq!(client.owner_of(opened.other), None);
    let revoked = open(&mut client, b"a", R, 2);
    assert_eq!(client.revoke_of_share(1, |_, _| true).opens, [2]);
    assert_eq!(client.owner_of(revoked.other), Some(OwnerName::Open(b"a".as_slice().into())));
    client.free(revoked, |_, _| false).unwrap();
    assert_eq!(client.owner_of(revoked.other), None);
    assert!(client.is_empty() && client.open_owners().is_empty());
}

#[test]
fn a_lock_owner_is_released_as_a_whole_or_not_at_all() {
    let mut client = client();
    let (first, second) = (open(&mut client, b"a", R, 1), open(&mut client, b"b", R, 2));
    let (locked, _) = lock(&mut client, first, b"l");
    let (also, _) = lock(&mut client, second, b"l");
    let (others, _) = lock(&mut client, second, b"m");
    let only_second = |_: &OpenState<u32>, lock: LockState| lock.open() == second.other;
    assert_eq!(client.release_lock_owner(b"l", only_second), Err(FreeError::Held));
    assert!(client.find_lock(locked, FILE).is_ok() && client.find_lock(also, FILE).is_ok());
    assert_eq!(client.release_lock_owner(b"l", |_, _| false), Ok(()));
    for gone in [locked, also] {
        assert_eq!(client.find_lock(gone, FILE).err(), Some(StateidError::Bad));
    }
    assert!(client.find_lock(others, FILE).is_ok());
    assert_eq!(client.lock_owners().number(b"l"), None);
    assert_eq!(client.release_lock_owner(b"unknown", |_, _| true), Ok(()));
}
