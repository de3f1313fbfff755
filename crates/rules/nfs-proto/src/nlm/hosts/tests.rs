#![expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]

use super::*;

type Table = Hosts<&'static str, u8, u8>;

fn file(number: u64) -> FileKey {
    FileKey { share: 1, fs: 0, number, snapshot: 0 }
}

fn limits(most: usize) -> HostLimits {
    HostLimits { hosts_max: most, owners_max: most, reservations_max: most, waiting_max: most }
}

fn described(owner: u64, offset: u64) -> Described {
    Described { file: file(1), owner, offset, length: 1, exclusive: true }
}

/// A host with a lock in a file.
fn locked(hosts: &mut Table, place: &'static str, name: &[u8], state: u32) -> (HostNumber, u64) {
    let (host, freed) = hosts.enter(&place, name, state, Instant::now()).unwrap();
    assert!(freed.is_none());
    let owner = hosts.enter_owner(host, b"owner").unwrap();
    assert_eq!(hosts.enter_file(host, file(1), &7), Some(7));
    assert!(hosts.note_locks(host, file(1), owner, true));
    assert_eq!(hosts.leave_file(host, file(1)), None);
    hosts.leave_owner(host, owner);
    (host, owner)
}

#[test]
fn numbers_of_owners_are_apart_from_those_of_nfsv4_clients() {
    let mut hosts = Table::new(limits(8));
    let (host, owner) = locked(&mut hosts, "here", b"a", 1);
    assert_eq!(HostNumber::of_owner(owner), Some(host));
    assert!(host.get() >= 1 << 31);
    assert_eq!(HostNumber::of_owner(5 << 32 | 1), None);
    assert_eq!(hosts.owner_name(owner).as_deref(), Some(&b"owner"[..]));
}

#[test]
fn a_name_at_another_place_is_another_host() {
    let mut hosts = Table::new(limits(8));
    let (here, _) = locked(&mut hosts, "here", b"a", 1);
    let (there, _) = locked(&mut hosts, "there", b"a", 1);
    assert_ne!(here, there);
    assert_eq!(hosts.restarted(&"there", b"b", 3).map(|freed| freed.host), None);
    assert_eq!(hosts.restarted(&"there", b"a", 3).map(|freed| freed.host), Some(there));
    assert_eq!(hosts.find(&"here", b"a"), Some(here));
}

#[test]
fn a_file_is_closed_when_the_last_lock_and_the_last_call_are_gone() {
    let mut hosts = Table::new(limits(8));
    let (host, owner) = locked(&mut hosts, "here", b"a", 1);
    assert_eq!(hosts.use_file(host, file(1)), Some(7));
    assert_eq!(hosts.use_file(host, file(2)), None);
    assert!(hosts.note_locks(host, file(1), owner, false));
    assert_eq!(hosts.find_owner(host, b"owner"), None, "an owner without locks is forgotten");
    assert_eq!(hosts.leave_file(host, file(1)), Some(7));
    assert_eq!(hosts.use_file(host, file(1)), None);
}

#[test]
fn of_two_opens_of_a_file_the_first_one_is_used() {
    let mut hosts = Table::new(limits(8));
    let (host, _) = hosts.enter(&"here", b"a", 1, Instant::now()).unwrap();
    assert_eq!(hosts.enter_file(host, file(1), &1), Some(1));
    assert_eq!(hosts.enter_file(host, file(1), &2), Some(1));
    assert_eq!((hosts.leave_file(host, file(1)), hosts.leave_file(host, file(1))), (None, Some(1)));
}

#[test]
fn a_host_whose_state_has_changed_loses_what_it_held() {
    let mut hosts = Table::new(limits(8));
    let (host, owner) = locked(&mut hosts, "here", b"a", 3);
    assert!(hosts.wait(host, described(owner, 9), 5).unwrap());
    assert!(hosts.enter(&"here", b"a", 0, Instant::now()).unwrap().1.is_none(), "it does not say");
    assert!(hosts.restarted(&"here", b"a", 3).is_none(), "that is its state");
    let (again, freed) = hosts.enter(&"here", b"a", 5, Instant::now()).unwrap();
    let freed = freed.unwrap();
    assert_eq!((freed.host, freed.files, freed.waits), (host, vec![(7, vec![owner])], vec![5]));
    assert!(again != host && hosts.restarted(&"here", b"a", 5).is_none(), "a late message frees nothing");
    assert!(hosts.restarted(&"here", b"a", 7).is_some());
    assert!(!hosts.note_locks(host, file(1), owner, true), "the host of then is gone");
}

#[test]
fn hosts_and_waits_of_one_place_leave_room_for_others() {
    let mut hosts = Table::new(limits(4));
    let now = Instant::now();
    for name in [b"a", b"b", b"c"] {
        hosts.enter(&"here", name, 1, now).unwrap();
    }
    assert_eq!(hosts.enter(&"here", b"d", 1, now).unwrap_err(), TooMany("hosts"));
    let (host, _) = hosts.enter(&"there", b"d", 1, now).unwrap();
    let here = hosts.find(&"here", b"a").unwrap();
    for offset in 0..3 {
        assert_eq!(hosts.wait(here, described(1, offset), 0), Ok(true));
    }
    assert_eq!(hosts.wait(here, described(1, 2), 0), Ok(false), "the same wait");
    assert!(hosts.wait(here, described(1, 3), 0).is_err());
    assert_eq!(hosts.wait(host, described(1, 3), 9), Ok(true));
    assert_eq!((hosts.cancel(host, &described(1, 3)), hosts.cancel(host, &described(1, 3))), (Some(9), None));
    drop(hosts.remove(here));
    assert_eq!(hosts.waiting.all(), 0);
}

#[test]
fn owners_and_reservations_of_a_host_are_limited() {
    let mut hosts = Table::new(limits(2));
    let (host, _) = hosts.enter(&"here", b"a", 1, Instant::now()).unwrap();
    let first = hosts.enter_owner(host, b"1").unwrap();
    assert_eq!(hosts.enter_owner(host, b"1"), Ok(first));
    hosts.enter_owner(host, b"2").unwrap();
    assert!(hosts.enter_owner(host, b"3").is_err());
    hosts.leave_owner(host, first);
    hosts.leave_owner(host, first);
    assert!(hosts.enter_owner(host, b"3").is_ok());
    assert_eq!(hosts.reserve(host, file(1), b"o", 1), Ok(None));
    assert_eq!(hosts.reserve(host, file(2), b"o", 2), Ok(None));
    assert!(hosts.reserve(host, file(3), b"o", 3).is_err());
    assert_eq!(hosts.reserve(host, file(2), b"o", 4), Ok(Some(2)), "it replaces the one before");
    assert_eq!((hosts.unreserve(host, file(2), b"o"), hosts.unreserve(host, file(2), b"o")), (Some(4), None));
}

#[test]
fn idle_hosts_are_forgotten_and_those_that_hold_something_are_not() {
    let mut hosts = Table::new(limits(8));
    let (_, _) = locked(&mut hosts, "here", b"a", 1);
    let now = Instant::now();
    hosts.enter(&"here", b"b", 1, now).unwrap();
    let silent = Duration::from_secs(60);
    assert!(hosts.forget_idle(now, silent).is_empty());
    assert_eq!(hosts.forget_idle(now + silent, silent), [("here", b"b"[..].into())]);
    assert_eq!(hosts.names_at(&"here"), [b"a"[..].into()]);
    assert_eq!(hosts.take_files(|held| *held == 8), []);
    assert_eq!(hosts.take_files(|held| *held == 7).len(), 1);
    assert_eq!(hosts.forget_idle(now + silent, silent).len(), 1);
}

#[test]
fn a_wait_that_was_granted_is_settled_by_the_host_or_ends() {
    let mut hosts = Table::new(limits(8));
    let (host, _) = hosts.enter(&"here", b"a", 1, Instant::now()).unwrap();
    let lock = described(1, 0);
    let shared = Described { exclusive: false, ..lock };
    assert_eq!((hosts.wait(host, lock, 1), hosts.wait(host, shared, 2)), (Ok(true), Ok(true)));
    assert!(hosts.grant(host, &lock) && !hosts.grant(host, &lock));
    assert_eq!(hosts.cancel(host, &lock), None, "too late");
    assert_eq!(hosts.settle(host, &lock), [2], "an unlock ends both");
    assert!(!hosts.end_grant(host, &lock), "the host has settled it");
    assert_eq!(hosts.wait(host, lock, 3), Ok(true));
    assert!(hosts.grant(host, &lock) && hosts.end_grant(host, &lock));
    assert_eq!((hosts.waiting.all(), hosts.cancel(host, &lock)), (0, None));
}
