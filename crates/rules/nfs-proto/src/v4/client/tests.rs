use std::time::Duration;

use proptest::prelude::*;

use nfs_wire::v4::Operation;
use nfs_wire::v4::exchange_id::{ProtectedOperations, StateProtectArgs, StateProtectRes};
use nfs_wire::v4::types::Bitmap;

use super::protection::{MAY_ALLOW, MUST_ENFORCE};
use super::*;

/// The value of a record in these tests.
#[derive(Debug, PartialEq, Eq)]
struct Carried {
    /// Numbered in the order in which they were made.
    number: u32,
    came: Instant,
}

type Table = Clients<Carried, u32>;

fn idle(client: &Carried) -> Holding {
    Holding { renewed: client.came, state: false }
}

fn numbers(gone: Vec<Carried>) -> Vec<u32> {
    gone.into_iter().map(|client| client.number).collect()
}

const ROOT: Principal = Principal::User { uid: 0, gid: 0 };
const ALICE: Principal = Principal::User { uid: 1000, gid: 1000 };
const TIMES: LeaseTimes = LeaseTimes { lease: Duration::from_secs(10), courtesy: Duration::from_secs(100) };

#[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
fn start() -> Instant {
    Instant::now()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn verifier(run: u8) -> Verifier {
    Verifier([run; 8])
}

fn table() -> Table {
    Clients::new(ClientLimits::default(), TIMES, 7)
}

fn from(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn asking(owner: &[u8], run: u8, principal: Principal) -> ExchangeId<'_> {
    let protection = StateProtection::None;
    let by = by(principal);
    ExchangeId { owner, verifier: verifier(run), by, protection, origin: from(1), update: false }
}

fn by(principal: Principal) -> Credential {
    Credential { principal, is_protected: false }
}

/// The test's view of a client.
struct Simulated {
    table: Table,
    now: Instant,
    made: u32,
    gone: Vec<u32>,
}

impl Simulated {
    fn new() -> Self {
        Self { table: table(), now: start(), made: 0, gone: Vec::new() }
    }

    fn exchange(
        &mut self,
        request: ExchangeId<'_>,
        look: impl Fn(&Carried) -> Holding,
    ) -> Result<Exchanged, Status> {
        let number = self.made;
        let answer = self.table.exchange_id(request, self.now, look, |_| Carried { number, came: self.now });
        self.made += u32::from(self.table.by_id.values().any(|record| record.value.number == number));
        answer.map(|(exchanged, gone)| {
            self.gone.extend(numbers(gone));
            exchanged
        })
    }

    fn create(&mut self, client: ClientId, sequence: u32, principal: Principal) -> Result<u32, Status> {
        let (answer, gone) = self.table.create_session(client, sequence, &by(principal), |_, _| Ok(sequence));
        self.gone.extend(numbers(gone));
        answer
    }

    fn confirmed(&mut self, owner: &[u8], run: u8) -> ClientId {
        let exchanged = self.exchange(asking(owner, run, ROOT), idle).unwrap();
        assert_eq!(self.create(exchanged.client, exchanged.sequence, ROOT), Ok(exchanged.sequence));
        exchanged.client
    }
}

#[test]
fn a_new_owner_is_confirmed_by_its_first_session() {
    let mut test = Simulated::new();
    let first = test.exchange(asking(b"a", 1, ROOT), idle).unwrap();
    assert_eq!((first.sequence, first.confirmed), (1, false));
    assert_eq!(first.client.0 >> 32, 7, "of this run of the server");
    assert!(test.table.confirmed(first.client).is_none());
    assert_eq!(test.create(first.client, 1, ROOT), Ok(1));
    assert!(test.table.confirmed(first.client).is_some());
    // Case 2: the same client asks again, and is told its current sequence ID.
    let again = test.exchange(asking(b"a", 1, ROOT), idle).unwrap();
    assert_eq!(again, Exchanged { sequence: 2, confirmed: true, ..first });
    assert_eq!(test.made, 1);
}

#[test]
fn an_unconfirmed_record_is_replaced() {
    let mut test = Simulated::new();
    let first = test.exchange(asking(b"a", 1, ROOT), idle).unwrap();
    for (run, principal) in [(1, ROOT), (2, ROOT), (2, ALICE)] {
        let next = test.exchange(asking(b"a", run, principal), idle).unwrap();
        assert_ne!(next.client, first.client);
        assert_eq!(test.create(first.client, 1, ROOT), Err(Status::StaleClientId));
    }
    assert_eq!((test.gone.as_slice(), test.table.len()), (&[0, 1, 2][..], 1));
}

#[test]
fn a_restarted_client_loses_what_it_had_when_it_is_confirmed() {
    let mut test = Simulated::new();
    let before = test.confirmed(b"a", 1);
    let after = test.exchange(asking(b"a", 2, ROOT), idle).unwrap();
    assert!(!after.confirmed && test.gone.is_empty());
    assert!(test.table.confirmed(before).is_some(), "the old incarnation is there until then");
    assert_eq!(test.create(after.client, after.sequence, ROOT), Ok(1));
    assert_eq!((test.gone.as_slice(), test.table.len()), (&[0][..], 1));
    assert!(test.table.confirmed(before).is_none() && test.table.confirmed(after.client).is_some());
}

#[test]
fn the_old_incarnation_that_asks_again_drops_the_new_one() {
    let mut test = Simulated::new();
    let before = test.confirmed(b"a", 1);
    let after = test.exchange(asking(b"a", 2, ROOT), idle).unwrap();
    let again = test.exchange(asking(b"a", 1, ROOT), idle).unwrap();
    assert_eq!((again.client, again.confirmed), (before, true));
    assert_eq!(test.create(after.client, 1, ROOT), Err(Status::StaleClientId));
}

#[test]
fn an_owner_that_somebody_uses_is_not_taken_away() {
    let mut test = Simulated::new();
    let owner = test.confirmed(b"a", 1);
    let renewed = test.now;
    let busy = move |_: &Carried| Holding { renewed, state: true };
    test.now += seconds(10);
    assert_eq!(test.exchange(asking(b"a", 1, ALICE), busy), Err(Status::ClidInUse));
    assert_eq!(test.exchange(asking(b"a", 9, ALICE), busy), Err(Status::ClidInUse));
    test.now += seconds(1); // the lease is over
    let thief = test.exchange(asking(b"a", 9, ALICE), busy).unwrap();
    assert!(!thief.confirmed && test.table.confirmed(owner).is_none());
    assert_eq!(test.gone, [0]);
    // A client without state prevents nothing.
    assert_eq!(test.create(thief.client, 1, ALICE), Ok(1));
    let session = test.table.by_id[&thief.client].sessions[0];
    assert_eq!(test.exchange(asking(b"a", 1, ROOT), idle), Err(Status::ClidInUse));
    test.table.end_session(thief.client, session);
    assert!(test.exchange(asking(b"a", 1, ROOT), idle).is_ok());
}

#[test]
fn updates_need_the_record_they_update() {
    let mut test = Simulated::new();
    let update = |owner, run, principal| ExchangeId { update: true, ..asking(owner, run, principal) };
    assert_eq!(test.exchange(update(b"a", 1, ROOT), idle), Err(Status::NoEnt));
    let unconfirmed = test.exchange(asking(b"a", 1, ROOT), idle).unwrap();
    assert_eq!(test.exchange(update(b"a", 1, ROOT), idle), Err(Status::NoEnt));
    assert_eq!(test.create(unconfirmed.client, 1, ROOT), Ok(1), "it is left intact");
    let confirmed = Exchanged { sequence: 2, confirmed: true, ..unconfirmed };
    assert_eq!(test.exchange(update(b"a", 1, ROOT), idle), Ok(confirmed));
    assert_eq!(test.exchange(update(b"a", 2, ROOT), idle), Err(Status::NotSame));
    assert_eq!(test.exchange(update(b"a", 2, ALICE), idle), Err(Status::NotSame));
    assert_eq!(test.exchange(update(b"a", 1, ALICE), idle), Err(Status::Perm));
}

#[test]
fn a_session_is_created_once_for_a_sequence_id() {
    let mut test = Simulated::new();
    let client = test.exchange(asking(b"a", 1, ROOT), idle).unwrap().client;
    assert_eq!(test.create(client, 0, ROOT), Err(Status::SeqMisordered), "the contrived first answer");
    assert_eq!(test.create(client, 2, ROOT), Err(Status::SeqMisordered));
    assert_eq!(test.create(client, 1, ALICE), Err(Status::ClidInUse));
    assert_eq!(test.create(client, 1, ROOT), Ok(1));
    let (again, _) = test.table.create_session(client, 1, &by(ROOT), |_, _| panic!("not once more"));
    assert_eq!(again, Ok(1));
    assert_eq!(test.create(client, 3, ROOT), Err(Status::SeqMisordered));
    assert_eq!(test.create(client, 2, ALICE), Ok(2), "a confirmed client ID is not confirmed again");
    assert_eq!(test.table.by_id[&client].sessions.len(), 2);
    assert_eq!(test.create(ClientId(5), 1, ROOT), Err(Status::StaleClientId));
}

#[test]
fn a_session_that_could_not_be_created_changes_nothing() {
    let mut test = Simulated::new();
    let client = test.exchange(asking(b"a", 1, ROOT), idle).unwrap().client;
    let (refused, _) = test.table.create_session(client, 1, &by(ROOT), |_, _| Err(Status::TooSmall));
    assert_eq!(refused, Err(Status::TooSmall));
    assert!(test.table.confirmed(client).is_none());
    assert_eq!(test.create(client, 1, ROOT), Ok(1), "the sequence ID is not used up");
}

#[test]
fn a_client_has_so_many_sessions() {
    let mut test = Simulated::new();
    let client = test.exchange(asking(b"a", 1, ROOT), idle).unwrap().client;
    let most = u32::try_from(ClientLimits::default().sessions_max).unwrap();
    for sequence in 1..=most {
        assert_eq!(test.create(client, sequence, ROOT), Ok(sequence));
    }
    assert_eq!(test.create(client, most + 1, ROOT), Err(Status::NoSpc));
    let session = test.table.by_id[&client].sessions[0];
    test.table.end_session(client, session);
    assert_eq!(test.create(client, most + 1, ROOT), Ok(most + 1));
}

#[test]
fn sessions_have_names_of_their_own() {
    let mut test = Simulated::new();
    for owner in [b"a", b"b"] {
        let client = test.confirmed(owner, 1);
        assert_eq!(test.create(client, 2, ROOT), Ok(2));
    }
    let mut names: Vec<_> = test.table.by_id.values().flat_map(|record| record.sessions.clone()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4);
}

#[test]
fn a_client_is_destroyed_when_it_has_nothing() {
    let mut test = Simulated::new();
    let client = test.confirmed(b"a", 1);
    let now = test.now;
    assert_eq!(test.table.destroy(client, &by(ROOT), now, idle), Err(Status::ClientIdBusy));
    let session = test.table.by_id[&client].sessions[0];
    test.table.end_session(client, session);
    let busy = |_: &Carried| Holding { renewed: now, state: true };
    assert_eq!(test.table.destroy(client, &by(ROOT), now, busy), Err(Status::ClientIdBusy));
    assert_eq!(test.table.destroy(client, &by(ROOT), now, idle).map(|client| client.number), Ok(0));
    assert_eq!(test.table.destroy(client, &by(ROOT), now, idle), Err(Status::StaleClientId));
    assert!(test.table.owners.with_sessions.is_empty(), "nothing is left behind");
    let unconfirmed = test.exchange(asking(b"b", 1, ROOT), idle).unwrap();
    assert!(test.table.destroy(unconfirmed.client, &by(ROOT), now, idle).is_ok());
}

#[test]
fn only_its_machine_manages_a_client_whose_state_is_protected() {
    let mut test = Simulated::new();
    let machine = Principal::Ticket("host/a@LAB".into());
    let as_machine = Credential { principal: machine.clone(), is_protected: true };
    let others = [
        by(ROOT),
        Credential { principal: Principal::Ticket("alice@LAB".into()), is_protected: true },
        // The right one, but anybody may have changed the call on its way.
        Credential { is_protected: false, ..as_machine.clone() },
    ];
    let protection = StateProtection::MachineCredential { must_allow: MAY_ALLOW };
    let asking = |by: &Credential, run| ExchangeId {
        by: by.clone(),
        protection,
        ..asking(b"a", run, machine.clone())
    };
    let exchanged = test.exchange(asking(&as_machine, 1), idle).unwrap();
    assert_eq!(exchanged.protection, protection);
    let client = exchanged.client;
    let create = |test: &mut Simulated, by: &Credential, sequence| {
        let (answer, gone) = test.table.create_session(client, sequence, by, |_, _| Ok(sequence));
        assert_eq!(numbers(gone), []);
        answer
    };
    assert_eq!(create(&mut test, &others[2], 1), Err(Status::WrongCred), "also the first session");
    assert_eq!(create(&mut test, &as_machine, 1), Ok(1));
    for other in &others {
        assert_eq!(create(&mut test, other, 2), Err(Status::WrongCred), "{other:?}");
        assert_eq!(test.table.check_manager(client, other), Err(Status::WrongCred), "{other:?}");
        assert_eq!(test.table.destroy(client, other, test.now, idle), Err(Status::WrongCred), "{other:?}");
        assert_eq!(test.exchange(asking(other, 1), idle), Err(Status::ClidInUse), "{other:?}");
        let update = ExchangeId { update: true, ..asking(other, 1) };
        assert_eq!(test.exchange(update, idle), Err(Status::Perm), "{other:?}");
    }
    // What was agreed stays, whatever a later EXCHANGE_ID asks for.
    let again = ExchangeId { protection: StateProtection::None, ..asking(&as_machine, 1) };
    assert_eq!(test.exchange(again, idle).unwrap().protection, protection);
    assert_eq!(create(&mut test, &as_machine, 2), Ok(2));
    assert_eq!(test.table.check_manager(client, &as_machine), Ok(()));
    let restarted = test.exchange(asking(&as_machine, 2), idle).unwrap();
    assert_ne!(restarted.client, client);
}

#[test]
fn what_a_machine_may_send_for_its_users_is_what_both_name() {
    let asked = |must_allow| {
        let must_enforce = Bitmap::of(&[Operation::Close as u32]);
        StateProtectArgs::MachineCredential(ProtectedOperations { must_enforce, must_allow })
    };
    let protected = Credential { principal: ALICE, is_protected: true };
    let ours = Bitmap::of(&[Operation::Close as u32, Operation::LockU as u32]);
    let granted = StateProtection::grant(&asked(ours.with(Operation::Write as u32)), &protected);
    assert_eq!(granted, Ok(StateProtection::MachineCredential { must_allow: ours }));
    let told = ProtectedOperations { must_enforce: MUST_ENFORCE, must_allow: ours };
    assert_eq!(granted.unwrap().told(), StateProtectRes::MachineCredential(told));
    assert_eq!(StateProtection::grant(&asked(ours), &by(ALICE)), Err(Status::Inval));
    let none = StateProtection::grant(&StateProtectArgs::None, &by(ALICE)).unwrap();
    assert_eq!((none, none.told()), (StateProtection::None, StateProtectRes::None));
}

#[test]
fn who_is_late_keeps_what_it_has_for_a_while() {
    let mut test = Simulated::new();
    let begun = test.now;
    let (with, without) = (test.confirmed(b"a", 1), test.confirmed(b"b", 1));
    test.exchange(asking(b"c", 1, ROOT), idle).unwrap();
    let look = move |client: &Carried| Holding { renewed: begun, state: client.number == 0 };
    assert!(test.table.expire(begun + seconds(10), look).is_empty());
    assert_eq!(
        numbers(test.table.expire(begun + seconds(11), look)),
        [1, 2],
        "who has nothing loses nothing"
    );
    assert!(test.table.confirmed(with).is_some() && test.table.confirmed(without).is_none());
    assert!(test.table.expire(begun + seconds(110), look).is_empty());
    assert_eq!(numbers(test.table.expire(begun + seconds(111), look)), [0]);
    assert!(test.table.is_empty() && test.table.owners.with_sessions.is_empty());
}

#[test]
fn ten_thousand_that_come_and_go_leave_room_for_others() {
    let limits = ClientLimits { clients_max: 100, ..ClientLimits::default() };
    let mut test = Simulated { table: Clients::new(limits, TIMES, 7), ..Simulated::new() };
    let keeper = test.confirmed(b"keeper", 1);
    for number in 0..10_000_u32 {
        assert!(test.exchange(asking(&number.to_be_bytes(), 1, ROOT), idle).is_ok());
        assert!(test.table.len() <= 100 && test.table.owners.with_sessions.len() <= 100);
    }
    assert!(test.table.confirmed(keeper).is_some(), "unconfirmed ones go first, the oldest first");
    assert!(test.gone.is_sorted());
}

#[test]
fn one_origin_does_not_take_the_last_quarter_nor_what_others_have() {
    let limits = ClientLimits { clients_max: 100, ..ClientLimits::default() };
    let mut test = Simulated { table: Clients::new(limits, TIMES, 7), ..Simulated::new() };
    let honest = test.confirmed(b"honest", 1);
    test.now += seconds(11); // its lease is over
    for number in 0..74 {
        let owner = [number];
        let request = ExchangeId { origin: from(2), ..asking(&owner, 1, ALICE) };
        let exchanged = test.exchange(request, idle).unwrap();
        assert!(test.create(exchanged.client, exchanged.sequence, ALICE).is_ok());
    }
    assert_eq!(test.table.len(), 75);
    let one_more = ExchangeId { origin: from(2), ..asking(b"one more", 1, ALICE) };
    assert_eq!(test.exchange(one_more, idle), Err(Status::Delay), "its own clients are all alive");
    assert!(test.table.confirmed(honest).is_some(), "nobody else makes room for it");
    for number in 0..25 {
        let owner = [b'o', number];
        let request = ExchangeId { origin: from(3), ..asking(&owner, 1, ALICE) };
        assert!(test.exchange(request, idle).is_ok(), "the last quarter is for those who have few");
    }
}

#[test]
fn a_refused_origin_does_not_have_all_records_looked_at_each_time() {
    let limits = ClientLimits { clients_max: 100, ..ClientLimits::default() };
    let mut test = Simulated { table: Clients::new(limits, TIMES, 7), ..Simulated::new() };
    for number in 0..75 {
        test.confirmed(&[number], 1);
    }
    let looks = std::cell::Cell::new(0);
    let look = |client: &Carried| {
        looks.set(looks.get() + 1);
        idle(client)
    };
    for _ in 0..50 {
        assert_eq!(test.exchange(asking(b"one more", 1, ROOT), look), Err(Status::Delay));
    }
    assert_eq!(looks.get(), 75);
    test.now += seconds(11); // their leases are over
    assert!(test.exchange(asking(b"one more", 1, ROOT), look).is_ok());
    assert_eq!((looks.get(), test.gone.len()), (150, 1));
    assert!(test.exchange(asking(b"another", 1, ROOT), look).is_ok(), "the unconfirmed one gives way");
    assert_eq!(looks.get(), 150);
}

#[test]
fn a_full_table_of_living_clients_lets_nobody_in() {
    let limits = ClientLimits { clients_max: 3, ..ClientLimits::default() };
    let mut test = Simulated { table: Clients::new(limits, TIMES, 7), ..Simulated::new() };
    let begun = test.now;
    for owner in [b"a", b"b", b"c"] {
        test.confirmed(owner, 1);
    }
    let look =
        move |client: &Carried| Holding { renewed: begun + seconds(u64::from(client.number)), state: true };
    assert_eq!(test.exchange(asking(b"d", 1, ROOT), look), Err(Status::Delay));
    test.now = begun + seconds(12); // the first two are late
    assert!(test.exchange(asking(b"d", 1, ROOT), look).is_ok());
    assert_eq!(test.gone, [0], "the one that was silent for longest");
}

/// One step of a client behind an unreliable network.
#[derive(Debug, Clone, Copy)]
enum Step {
    Exchange { owner: u8, run: u8, alice: bool, update: bool },
    Create { client: usize, ahead: u32, alice: bool },
    EndSessions { client: usize },
    Destroy { client: usize },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..3_u8, 0..3_u8, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(owner, run, alice, update)| Step::Exchange { owner, run, alice, update }),
        5 => (0..8_usize, 0..3_u32, any::<bool>())
            .prop_map(|(client, ahead, alice)| Step::Create { client, ahead, alice }),
        1 => (0..8_usize).prop_map(|client| Step::EndSessions { client }),
        1 => (0..8_usize).prop_map(|client| Step::Destroy { client }),
        1 => (0..30_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever clients do: every record is found by its owner, an owner has at most one record of each kind, the value
    /// of a record is returned exactly once, and the limit holds.
    #[test]
    fn the_two_indices_agree(steps in proptest::collection::vec(step(), 1..150)) {
        let limits = ClientLimits { clients_max: 4, sessions_max: 3 };
        let mut test = Simulated { table: Clients::new(limits, TIMES, 7), ..Simulated::new() };
        let mut ids = Vec::new();
        for step in steps {
            match step {
                Step::Exchange { owner, run, alice, update } => {
                    let principal = if alice { ALICE } else { ROOT };
                    let owner = [owner];
                    let request = ExchangeId { update, ..asking(&owner, run, principal) };
                    ids.extend(test.exchange(request, idle).map(|exchanged| exchanged.client));
                }
                Step::Create { client, ahead, alice } => {
                    let Some(id) = ids.iter().rev().nth(client).copied() else { continue };
                    let sequence = test.table.by_id.get(&id).map_or(0, |record| record.sequence + ahead);
                    let _ = test.create(id, sequence, if alice { ALICE } else { ROOT });
                }
                Step::EndSessions { client } => {
                    let Some(id) = ids.iter().rev().nth(client) else { continue };
                    let sessions = test.table.by_id.get(id).map(|record| record.sessions.clone());
                    for session in sessions.unwrap_or_default() {
                        test.table.end_session(*id, session);
                    }
                }
                Step::Destroy { client } => {
                    let Some(id) = ids.iter().rev().nth(client) else { continue };
                    let gone = test.table.destroy(*id, &by(ROOT), test.now, idle);
                    test.gone.extend(gone.map(|client| client.number));
                }
                Step::Wait(time) => {
                    test.now += seconds(time);
                    let gone = test.table.expire(test.now, idle);
                    test.gone.extend(numbers(gone));
                }
            }
            let table = &test.table;
            prop_assert!(table.len() <= limits.clients_max);
            let named = table.owners.with_sessions.values().flat_map(|owner| [owner.confirmed, owner.unconfirmed]);
            prop_assert_eq!(named.flatten().count(), table.len());
            prop_assert_eq!(table.by_origin.all(), table.len());
            prop_assert_eq!(table.unconfirmed.len(), table.by_id.values().filter(|record| !record.confirmed).count());
            for (id, record) in &table.by_id {
                let owner = &table.owners.with_sessions[&record.owner];
                let place = if record.confirmed { owner.confirmed } else { owner.unconfirmed };
                prop_assert_eq!(place, Some(*id));
                prop_assert!(record.sessions.len() <= limits.sessions_max);
                prop_assert!(record.confirmed || record.sessions.is_empty());
            }
            let mut all: Vec<_> = test.gone.iter().chain(table.by_id.values().map(|record| &record.value.number)).collect();
            all.sort_unstable();
            prop_assert!(all.iter().copied().copied().eq(0..test.made), "{:?} of {}", all, test.made);
        }
    }
}
