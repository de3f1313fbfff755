use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const FIRST: Owners = Owners { user: 1, group: 10, directory: Some(7) };
const SECOND: Owners = Owners { user: 2, group: 10, directory: None };

fn at(secs: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
}

fn limits(soft: Option<u64>, hard: Option<u64>) -> Limits {
    Limits::new(soft, hard, Duration::from_secs(100)).unwrap()
}

/// A ledger with these quotas, whose count of nothing has ended.
fn counted(quotas: &[(Subject, Limits)]) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_quotas(quotas.iter().copied().collect(), at(0));
    ledger.begin_count();
    ledger.end_count(at(0));
    ledger
}

#[test]
fn the_last_byte_fits_and_the_next_is_refused_by_the_quota_that_is_full() {
    let mut ledger = counted(&[(Subject::User(1), limits(None, Some(100)))]);
    ledger.reserve(FIRST, 60, at(1)).unwrap();
    let refused = ledger.reserve(FIRST, 41, at(1)).unwrap_err();
    assert_eq!((refused.account, refused.over_since), (Account::User(1), None));
    assert!(refused.depends_on_others, "the first write may need less");
    ledger.reserve(FIRST, 40, at(1)).unwrap();
    ledger.settle((5, FIRST), 60, (0, 60), at(1));
    ledger.settle((6, FIRST), 40, (0, 40), at(1));
    assert!(!ledger.reserve(FIRST, 1, at(1)).unwrap_err().depends_on_others);
    assert_eq!(ledger.reserve(FIRST, 0, at(1)), Ok(()), "what allocates nothing is never refused");
    assert_eq!(ledger.reserve(SECOND, 1 << 60, at(1)), Ok(()));
    assert_eq!((ledger.standing(Account::User(1)).used, ledger.standing(Account::User(1)).left()), (100, 0));
}

#[test]
fn nothing_is_refused_before_the_first_count() {
    let mut ledger = Ledger::default();
    ledger.set_quotas([(Subject::User(1), limits(None, Some(10)))].into(), at(0));
    ledger.set_over_since(Account::User(1), at(3));
    ledger.reserve(FIRST, 100, at(5)).unwrap();
    ledger.settle((5, FIRST), 100, (0, 100), at(5));
    ledger.begin_count();
    assert!(ledger.visit(5, FIRST, 100) && !ledger.visit(5, FIRST, 100), "once, whatever its names");
    assert!(!ledger.is_counted());
    ledger.end_count(at(6));
    assert!(ledger.is_counted());
    assert_eq!(ledger.standing(Account::Group(10)).used, 100);
    assert!(ledger.reserve(FIRST, 1, at(6)).is_err());
}

#[test]
fn more_than_the_soft_limit_is_held_for_the_grace_and_a_restart_does_not_renew_it() {
    let mut ledger = counted(&[(Subject::Group(10), limits(Some(50), Some(100)))]);
    ledger.settle((5, FIRST), 0, (0, 51), at(10));
    assert_eq!(ledger.standing(Account::Group(10)).over_since, Some(at(10)));
    assert_eq!(ledger.reserve(FIRST, 1, at(109)), Ok(()));
    ledger.settle((5, FIRST), 1, (51, 51), at(109));
    let refused = ledger.reserve(SECOND, 1, at(110)).unwrap_err();
    assert_eq!((refused.account, refused.over_since), (Account::Group(10), Some(at(10))));
    ledger.settle((5, FIRST), 0, (51, 50), at(111));
    assert_eq!(ledger.standing(Account::Group(10)).over_since, None);
    assert_eq!(ledger.reserve(FIRST, 1, at(300)), Ok(()), "the grace begins again");

    let mut restarted = Ledger::default();
    restarted.set_over_since(Account::Group(10), at(10));
    restarted.set_quotas([(Subject::Group(10), limits(Some(50), None))].into(), at(105));
    restarted.begin_count();
    restarted.visit(5, FIRST, 60);
    restarted.end_count(at(105));
    assert!(restarted.reserve(FIRST, 1, at(109)).is_ok() && restarted.reserve(FIRST, 1, at(110)).is_err());
}

#[test]
fn a_default_is_for_those_without_a_quota_of_their_own_and_not_for_the_superuser() {
    let own = (Subject::User(1), limits(None, Some(100)));
    let mut ledger = counted(&[(Subject::EachUser, limits(None, Some(10))), own]);
    let root = Owners { user: 0, group: 0, directory: None };
    assert!(ledger.reserve(FIRST, 100, at(1)).is_ok() && ledger.reserve(root, 100, at(1)).is_ok());
    assert!(ledger.reserve(SECOND, 11, at(1)).is_err());
    let standing = ledger.standing(Account::User(2));
    assert!(standing.is_default && standing.left() == 10);
    assert!(!ledger.standing(Account::User(1)).is_default);
}

#[test]
fn a_file_changes_hands_if_it_fits_there() {
    let mut ledger = counted(&[(Subject::User(2), limits(None, Some(10)))]);
    ledger.settle((5, FIRST), 0, (0, 11), at(1));
    assert!(ledger.reserve_transfer(FIRST, SECOND, 11, at(1)).is_err());
    assert!(ledger.reserve_transfer(FIRST, SECOND, 10, at(1)).is_ok());
    assert!(ledger.reserve(SECOND, 1, at(1)).is_err(), "the room is taken");
    ledger.release_transfer(FIRST, SECOND, 10);
    assert_eq!(ledger.reserve_transfer(SECOND, FIRST, 1 << 40, at(1)), Ok(()));
    ledger.release_transfer(SECOND, FIRST, 1 << 40);
    ledger.reserve(FIRST, 3, at(1)).unwrap();
    ledger.transfer(5, (FIRST, SECOND), (11, 3), at(1));
    let used = |ledger: &Ledger, account| ledger.standing(account).used;
    assert_eq!(used(&ledger, Account::User(1)), 0);
    assert_eq!((used(&ledger, Account::User(2)), used(&ledger, Account::Group(10))), (11, 11));
    assert_eq!(used(&ledger, Account::Directory(7)), 0);
    ledger.settle((5, SECOND), 3, (11, 0), at(1));
    assert!(ledger.balances.values().all(|balance| balance.reserved == 0 && balance.used == 0));
}

#[test]
fn a_directory_without_a_quota_has_no_account_any_more() {
    let mut ledger = counted(&[(Subject::Directory(7), limits(None, Some(10)))]);
    ledger.settle((5, FIRST), 0, (0, 3), at(1));
    let accounts = |ledger: &Ledger| ledger.standings().iter().map(|s| s.account).collect::<Vec<_>>();
    assert_eq!(accounts(&ledger), [Account::Directory(7), Account::User(1), Account::Group(10)]);
    ledger.set_quotas([(Subject::User(9), limits(None, Some(1)))].into(), at(1));
    assert_eq!(accounts(&ledger), [Account::User(1), Account::User(9), Account::Group(10)]);
}

/// What happens to the files of the model.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A write that makes a file this large, after room for more was reserved.
    Write {
        file: u64,
        to: u64,
        spare: u64,
    },
    Give {
        file: u64,
        to: usize,
    },
    Make {
        file: u64,
    },
    Remove {
        file: u64,
    },
    /// The walk reaches a file, if a count is under way.
    Reach {
        file: u64,
    },
    Begin,
    End,
}

const FILES: u64 = 6;
const PEOPLE: [Owners; 3] = [FIRST, SECOND, Owners { user: 1, group: 20, directory: Some(8) }];

fn step() -> impl Strategy<Value = Step> {
    let file = 0..FILES;
    prop_oneof![
        4 => (file.clone(), 0..60_u64, 0..20_u64).prop_map(|(file, to, spare)| Step::Write { file, to, spare }),
        2 => (file.clone(), 0..PEOPLE.len()).prop_map(|(file, to)| Step::Give { file, to }),
        1 => file.clone().prop_map(|file| Step::Make { file }),
        1 => file.clone().prop_map(|file| Step::Remove { file }),
        4 => file.prop_map(|file| Step::Reach { file }),
        1 => Just(Step::Begin),
        1 => Just(Step::End),
    ]
}

/// The plain model: the files, and nothing else.
#[derive(Debug, Default)]
struct Model {
    files: HashMap<u64, (Owners, u64)>,
    /// Files that were there when the count began, and that the walk has yet to reach.
    unreached: HashSet<u64>,
}

impl Model {
    fn used(&self, account: Account) -> u64 {
        let of = self.files.values().filter(|(owners, _)| owners.accounts().any(|one| one == account));
        of.map(|(_, bytes)| bytes).sum()
    }

    fn fits(&self, quotas: &HashMap<Subject, Limits>, who: impl Iterator<Item = Account>, more: u64) -> bool {
        let limit = |account: Account| quotas.get(&account.own()).and_then(Limits::hard);
        let mut limited = who.filter_map(|account| Some((account, limit(account)?)));
        more == 0 || limited.all(|(account, limit)| self.used(account) + more <= limit)
    }

    fn apply(&mut self, ledger: &mut Ledger, step: Step) {
        let known = |file| self.files.get(&file).copied();
        match step {
            Step::Write { file, to, spare } => {
                let Some((owners, before)) = known(file) else { return };
                let more = to.saturating_sub(before) + spare;
                let fits = !ledger.is_counted() || self.fits(ledger.quotas(), owners.accounts(), more);
                assert_eq!(ledger.reserve(owners, more, at(1)).is_ok(), fits);
                if fits {
                    ledger.settle((file, owners), more, (before, to), at(1));
                    self.files.insert(file, (owners, to));
                }
            }
            Step::Give { file, to } => {
                let (Some((from, bytes)), Some(to)) = (known(file), PEOPLE.get(to)) else { return };
                let fits = !ledger.is_counted() || self.fits(ledger.quotas(), to.unlike(from), bytes);
                assert_eq!(ledger.reserve_transfer(from, *to, bytes, at(1)).is_ok(), fits);
                if fits {
                    ledger.release_transfer(from, *to, bytes);
                    ledger.transfer(file, (from, *to), (bytes, 0), at(1));
                    self.files.insert(file, (*to, bytes));
                }
            }
            Step::Make { file } if known(file).is_none() => {
                ledger.made(file);
                self.files.insert(file, (FIRST, 0));
            }
            Step::Make { .. } => {}
            Step::Remove { file } => {
                let Some((owners, bytes)) = known(file) else { return };
                ledger.settle((file, owners), 0, (bytes, 0), at(1));
                self.files.remove(&file);
                self.unreached.remove(&file);
            }
            Step::Reach { file } => {
                if let Some((owners, bytes)) = known(file) {
                    ledger.visit(file, owners, bytes);
                    self.unreached.remove(&file);
                }
            }
            Step::Begin => {
                ledger.begin_count();
                self.unreached = self.files.keys().copied().collect();
            }
            Step::End => {
                for file in std::mem::take(&mut self.unreached) {
                    let Some((owners, bytes)) = self.files.get(&file) else { continue };
                    ledger.visit(file, *owners, *bytes);
                }
                ledger.end_count(at(1));
            }
        }
    }
}

proptest! {
    /// Counts that begin and end at any moment find what the files hold, and decisions are those of the model.
    #[test]
    fn accounts_hold_what_their_files_hold(steps in proptest::collection::vec(step(), 0..120)) {
        let quotas: HashMap<Subject, Limits> = [
            (Subject::User(1), limits(None, Some(90))),
            (Subject::Group(10), limits(None, Some(120))),
            (Subject::Directory(7), limits(None, Some(70))),
            (Subject::Directory(8), limits(None, Some(u64::MAX))),
        ]
        .into();
        let (mut ledger, mut model) = (Ledger::default(), Model::default());
        ledger.set_quotas(quotas, at(0));
        for step in steps {
            model.apply(&mut ledger, step);
            if ledger.is_counted() {
                for account in PEOPLE.into_iter().flat_map(Owners::accounts) {
                    prop_assert_eq!(ledger.standing(account).used, model.used(account), "{:?}", account);
                }
            }
            prop_assert!(ledger.balances.values().all(|balance| balance.reserved == 0));
        }
    }
}
