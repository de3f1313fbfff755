use std::time::Duration;

use proptest::prelude::*;

use super::super::super::lease::LeaseTimes;
use super::super::protection::{Credential, StateProtection};
use super::super::{ClientLimits, ExchangeId};
use super::*;

/// The value of a record: whether the client holds something.
type Table = Clients<u32, u32>;

const ROOT: Principal = Principal::User { uid: 0, gid: 0 };
const ALICE: Principal = Principal::User { uid: 1000, gid: 1000 };
const TIMES: LeaseTimes = LeaseTimes { lease: Duration::from_secs(10), courtesy: Duration::from_secs(100) };
const RUN: u32 = 7;

#[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
fn start() -> Instant {
    Instant::now()
}

/// A table whose clients all came at `came`, and hold something.
struct Test {
    table: Table,
    came: Instant,
    made: u32,
}

impl Test {
    fn new() -> Self {
        Self { table: Clients::new(ClientLimits::default(), TIMES, RUN), came: start(), made: 0 }
    }

    fn introduce(&mut self, name: &[u8], run: u8, who: Principal) -> Result<(Introduced, Vec<u32>), Status> {
        self.introduce_at(self.came, name, run, who, true)
    }

    fn introduce_at(
        &mut self,
        now: Instant,
        name: &[u8],
        run: u8,
        principal: Principal,
        state: bool,
    ) -> Result<(Introduced, Vec<u32>), Status> {
        let origin = [192, 0, 2, 1].into();
        let request = SetClientId { name, verifier: Verifier([run; 8]), principal, origin };
        let renewed = self.came;
        self.made += 1;
        let made = self.made;
        self.table.set_client_id(request, now, |_| Holding { renewed, state }, |_| made)
    }

    fn confirmed(&mut self, name: &[u8], run: u8) -> Introduced {
        let (introduced, _) = self.introduce(name, run, ROOT).unwrap();
        self.table.confirm_client_id(introduced, &ROOT).unwrap();
        introduced
    }
}

#[test]
fn a_client_is_known_once_it_confirms() {
    let mut test = Test::new();
    let (introduced, gone) = test.introduce(b"a", 1, ROOT).unwrap();
    assert_eq!((test.table.confirmed_without_session(introduced.client), gone), (None, vec![]));
    assert_eq!(test.table.missing(introduced.client), Status::StaleClientId);
    assert_eq!(test.table.confirm_client_id(introduced, &ALICE), Err(Status::ClidInUse));
    let wrong = Introduced { confirm: Verifier([9; 8]), ..introduced };
    assert_eq!(test.table.confirm_client_id(wrong, &ROOT), Err(Status::StaleClientId));
    assert_eq!(test.table.confirm_client_id(introduced, &ROOT), Ok(None));
    assert_eq!(test.table.confirm_client_id(introduced, &ROOT), Ok(None), "a retry");
    assert_eq!(test.table.confirmed_without_session(introduced.client), Some(&1));
}

#[test]
fn an_update_of_the_callback_keeps_the_client() {
    let mut test = Test::new();
    let first = test.confirmed(b"a", 1);
    let (second, _) = test.introduce(b"a", 1, ROOT).unwrap();
    assert_eq!(second.client, first.client);
    assert_ne!(second.confirm, first.confirm);
    let (third, _) = test.introduce(b"a", 1, ROOT).unwrap();
    assert_eq!(
        test.table.confirm_client_id(second, &ROOT),
        Err(Status::StaleClientId),
        "replaced by the third"
    );
    assert_eq!(test.table.confirm_client_id(first, &ROOT), Ok(None), "a retry of the first");
    assert_eq!(test.table.confirm_client_id(third, &ALICE), Err(Status::ClidInUse));
    assert_eq!(test.table.confirm_client_id(third, &ROOT), Ok(None));
    assert_eq!(test.table.confirm_client_id(first, &ROOT), Err(Status::StaleClientId));
    assert_eq!(test.table.len(), 1);
}

#[test]
fn a_restarted_client_replaces_itself_when_it_confirms() {
    let mut test = Test::new();
    let first = test.confirmed(b"a", 1);
    let (second, gone) = test.introduce(b"a", 2, ROOT).unwrap();
    assert_ne!(second.client, first.client);
    assert_eq!(gone, []);
    assert_eq!(test.table.confirmed_without_session(first.client), Some(&1));
    let (third, gone) = test.introduce(b"a", 3, ROOT).unwrap();
    assert_eq!(gone, [2], "one unconfirmed record each");
    assert_eq!(test.table.confirm_client_id(second, &ROOT), Err(Status::StaleClientId));
    assert_eq!(test.table.confirm_client_id(third, &ROOT), Ok(Some(1)));
    assert_eq!(test.table.missing(first.client), Status::Expired);
    assert_eq!(test.table.len(), 1);
}

#[test]
fn another_principal_must_wait_for_the_lease() {
    let mut test = Test::new();
    let first = test.confirmed(b"a", 1);
    assert_eq!(test.introduce(b"a", 2, ALICE), Err(Status::ClidInUse));
    assert_eq!(test.introduce(b"a", 1, ALICE), Err(Status::ClidInUse));
    let late = test.came + Duration::from_secs(11);
    let (second, _) = test.introduce_at(late, b"a", 2, ALICE, true).unwrap();
    assert_eq!(test.table.confirmed_without_session(first.client), Some(&1), "until the confirmation");
    assert_eq!(test.table.confirm_client_id(second, &ALICE), Ok(Some(1)));
    // Who holds nothing loses nothing.
    assert!(test.introduce_at(test.came, b"a", 3, ROOT, false).is_ok());
}

fn by(principal: Principal) -> Credential {
    Credential { principal, is_protected: false }
}

#[test]
fn a_name_in_another_protocol_is_another_name() {
    let mut test = Test::new();
    let first = test.confirmed(b"a", 1);
    let request = ExchangeId {
        owner: b"a",
        verifier: Verifier([2; 8]),
        by: by(ROOT),
        protection: StateProtection::None,
        origin: [192, 0, 2, 1].into(),
        update: false,
    };
    let holding = Holding { renewed: test.came, state: true };
    let (exchanged, gone) = test.table.exchange_id(request, test.came, |_| holding, |_| 50).unwrap();
    assert_eq!(gone, []);
    let (created, gone) = test.table.create_session(exchanged.client, 1, &by(ROOT), |_, _| Ok(0));
    assert_eq!((created, gone), (Ok(0), vec![]));
    assert_eq!(test.table.confirmed_without_session(first.client), Some(&1));
    assert_eq!(test.table.confirmed_without_session(exchanged.client), None);
    // Neither protocol reaches the other's clients.
    assert_eq!(
        test.table.create_session(first.client, 1, &by(ROOT), |_, _| Ok(0)).0,
        Err(Status::StaleClientId)
    );
    assert_eq!(
        test.table.destroy(first.client, &by(ROOT), test.came, |_| holding),
        Err(Status::StaleClientId)
    );
    let other = Introduced { client: exchanged.client, confirm: Verifier([0; 8]) };
    assert_eq!(test.table.confirm_client_id(other, &ROOT), Err(Status::StaleClientId));
}

#[test]
fn ids_of_other_runs_are_stale() {
    let mut test = Test::new();
    let known = test.confirmed(b"a", 1).client;
    let of_run = |run: u32, number: u64| ClientId(u64::from(run) << 32 | number);
    assert_eq!(known, of_run(RUN, 1));
    for stale in [of_run(RUN, 0), of_run(RUN, 2), of_run(RUN + 1, 1), ClientId(0), ClientId(u64::MAX)] {
        assert_eq!(test.table.missing(stale), Status::StaleClientId, "{stale:?}");
    }
    test.table.forget(known);
    assert_eq!(test.table.missing(known), Status::Expired);
}

proptest! {
    /// Whatever clients do, a name has at most two records, and only a confirmation removes a confirmed one.
    #[test]
    fn a_name_has_at_most_two_records(steps in proptest::collection::vec((0_u8..3, 0_u8..3, any::<bool>()), 1..60)) {
        let mut test = Test::new();
        let mut latest: [Option<Introduced>; 3] = [None; 3];
        for (name, run, confirms) in steps {
            let confirmed = latest[usize::from(name)].filter(|_| confirms);
            if let Some(introduced) = confirmed {
                let before = test.table.confirmed_without_session(introduced.client).is_some();
                let gone = test.table.confirm_client_id(introduced, &ROOT);
                prop_assert!(gone.is_ok());
                prop_assert!(!before || gone == Ok(None));
                prop_assert!(test.table.confirmed_without_session(introduced.client).is_some());
            } else {
                let known = test.table.all_confirmed().count();
                let (introduced, _) = test.introduce(&[name], run, ROOT).unwrap();
                prop_assert_eq!(test.table.all_confirmed().count(), known);
                latest[usize::from(name)] = Some(introduced);
            }
            prop_assert!(test.table.len() <= 6);
        }
    }
}
