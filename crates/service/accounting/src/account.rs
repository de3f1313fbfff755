//! Counts calls by client: an account for each connection and share, added up by client when read.
//!
//! Only the thread of a connection touches its counters, so counting takes no lock, and no atomic operation beyond loads and
//! stores. When a connection has ended, its counts go to its client. A client without connections is listed separately for a
//! while, then counted with the others ([`Client::Unknown`]). So sums never decrease, and memory is bounded.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::api::APIS_MAX;
use crate::counts::Cell;
use crate::in_use::{InUse, Tally};
use crate::{Api, Client, Cost, Counts, Ending, Record};

/// Clients of a share that are counted separately; all others are counted together.
pub const CLIENTS_MAX: usize = 1024;

/// The most of these clients that may have no connection. Each client is some lines of the metrics.
pub const CLIENTS_AWAY_MAX: usize = 64;

/// How long a client without a connection is counted separately.
const CLIENT_KEPT: Duration = Duration::from_secs(15 * 60);

/// Ended accounts are added up when there are more accounts than this in all, and twice as many as last time.
const SETTLE_AT: usize = 64;

/// Shares for which a connection may have accounts at a time.
const ACCOUNTS_MAX: usize = 64;

/// The counters of one connection, by the numbers of the operations.
#[derive(Debug)]
struct Cells(Box<[OnceLock<Box<Counted>>]>);

/// The counters of one operation.
#[derive(Debug)]
struct Counted {
    api: &'static Api,
    cell: Cell,
}

impl Default for Cells {
    fn default() -> Self {
        Self((0..APIS_MAX).map(|_| OnceLock::new()).collect())
    }
}

/// The counts of one connection for one share. It stays on the connection's thread.
#[derive(Debug)]
pub struct Account {
    cells: Arc<Cells>,
    /// Not shared between threads: the counters have one writer.
    _stays: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Account {
    /// Counts a call that has ended.
    pub fn end(&self, cost: &Cost, ending: &Ending) {
        let Some(counted) = self.cells.0.get(cost.api.number) else { return };
        let counted = counted.get_or_init(|| Box::new(Counted { api: cost.api, cell: Cell::default() }));
        debug_assert!(counted.api == cost.api, "{} and {} have one number", counted.api.name, cost.api.name);
        counted.cell.count(cost, ending);
    }
}

/// The counts of one client, by operation.
type Sums = BTreeMap<&'static Api, Counts>;

fn add(sums: &mut Sums, cells: &Cells) {
    for counted in cells.0.iter().filter_map(OnceLock::get) {
        sums.entry(counted.api).or_default().add(&counted.cell.counts());
    }
}

/// A client that is counted separately.
#[derive(Debug)]
struct CountedClient {
    /// The counts of its ended connections.
    sums: Sums,
    /// The number of open accounts.
    open: usize,
    /// When its last account ended.
    seen: Instant,
}

/// All accounts of one share.
#[derive(Debug)]
pub struct Accounting {
    is_on: bool,
    ledger: Mutex<Ledger>,
}

/// Guarded as a whole by [`Accounting::ledger`].
#[derive(Debug)]
struct Ledger {
    open: Vec<(Client, Arc<Cells>)>,
    clients: HashMap<Client, CountedClient>,
    settle_at: usize,
}

impl Ledger {
    /// Adds the counts of ended connections to their clients, and the counts of clients not seen for long to those of all
    /// others.
    fn settle(&mut self, now: Instant) {
        let mut still_open = Vec::with_capacity(self.open.len());
        for (client, mut cells) in self.open.drain(..) {
            // No other reference is left, so all counts are visible here.
            let has_ended = Arc::get_mut(&mut cells).is_some();
            match self.clients.get_mut(&client) {
                Some(known) if has_ended => {
                    add(&mut known.sums, &cells);
                    debug_assert!(known.open > 0, "an account that was open was counted");
                    known.open = known.open.saturating_sub(1);
                    known.seen = now;
                }
                _ => still_open.push((client, cells)),
            }
        }
        self.open = still_open;
        self.settle_at = (2 * self.open.len()).max(SETTLE_AT);
        let is_gone = |(client, known): (&Client, &CountedClient)| {
            let silent = now.saturating_duration_since(known.seen);
            (known.open == 0 && silent >= CLIENT_KEPT).then_some(*client)
        };
        let gone: Vec<Client> = self.clients.iter().filter_map(is_gone).collect();
        gone.into_iter().for_each(|client| self.forget(client, now));
        let is_away = |(client, known): (&Client, &CountedClient)| {
            (known.open == 0 && *client != Client::Unknown).then_some((known.seen, *client))
        };
        let mut away: Vec<(Instant, Client)> = self.clients.iter().filter_map(is_away).collect();
        if let Some(too_many) = away.len().checked_sub(CLIENTS_AWAY_MAX) {
            away.sort_unstable();
            away.into_iter().take(too_many).for_each(|(_, client)| self.forget(client, now));
        }
    }

    /// Counts a client with the others from now on.
    fn forget(&mut self, client: Client, now: Instant) {
        if client == Client::Unknown {
            return;
        }
        let Some(known) = self.clients.remove(&client) else { return };
        let others = self.know(Client::Unknown, now);
        known.sums.iter().for_each(|(api, counts)| others.sums.entry(api).or_default().add(counts));
    }

    fn know(&mut self, client: Client, now: Instant) -> &mut CountedClient {
        let new = || CountedClient { sums: Sums::new(), open: 0, seen: now };
        self.clients.entry(client).or_insert_with(new)
    }

    /// The client to count as. If there are too many clients, the one away for longest is no longer counted separately.
    fn admit(&mut self, client: Client, now: Instant) -> Client {
        let is_full = |ledger: &Self| {
            let apart = ledger.clients.keys().filter(|client| **client != Client::Unknown).count();
            apart >= CLIENTS_MAX
        };
        if client == Client::Unknown || self.clients.contains_key(&client) || !is_full(self) {
            return client;
        }
        self.settle(now);
        if is_full(self) {
            let away =
                self.clients.iter().filter(|(other, known)| known.open == 0 && **other != Client::Unknown);
            match away.min_by_key(|(_, known)| known.seen).map(|(client, _)| *client) {
                Some(longest) => self.forget(longest, now),
                None => return Client::Unknown,
            }
        }
        client
    }
}

impl Accounting {
    /// Creates the accounts of a share; `is_on`: whether anything is counted (to measure the cost of counting).
    #[must_use]
    pub fn new(is_on: bool) -> Self {
        let ledger = Ledger { open: Vec::new(), clients: HashMap::new(), settle_at: SETTLE_AT };
        Self { is_on, ledger: Mutex::new(ledger) }
    }

    /// Opens an account of a client for one of its connections.
    #[must_use]
    pub fn open(&self, client: Client) -> Account {
        let now = Instant::now();
        let cells = Arc::new(Cells::default());
        let mut ledger = self.ledger.lock();
        let client = ledger.admit(client, now);
        ledger.know(client, now).open += 1;
        ledger.open.push((client, Arc::clone(&cells)));
        if ledger.open.len() >= ledger.settle_at {
            ledger.settle(now);
        }
        Account { cells, _stays: std::marker::PhantomData }
    }

    /// The counts of every client by operation, without those that are zero.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Record> {
        let mut ledger = self.ledger.lock();
        ledger.settle(Instant::now());
        let mut clients: BTreeMap<Client, Sums> =
            ledger.clients.iter().map(|(client, known)| (*client, known.sums.clone())).collect();
        for (client, cells) in &ledger.open {
            add(clients.entry(*client).or_default(), cells);
        }
        drop(ledger);
        let of_client = |(client, sums): (Client, Sums)| {
            sums.into_iter().map(move |(api, counts)| Record { client, api, counts })
        };
        clients.into_iter().flat_map(of_client).collect()
    }

    /// How many files and opens a client has used for reads and writes within this time.
    #[must_use]
    pub fn in_use(&self, client: Client, within: Duration) -> InUse {
        let mut tally = Tally::new(Instant::now(), within);
        let ledger = self.ledger.lock();
        let of_client =
            ledger.open.iter().filter(|(of, _)| *of == client).flat_map(|(_, cells)| cells.0.iter());
        of_client.filter_map(|counted| counted.get()?.cell.uses()).for_each(|uses| tally.add(uses));
        tally.sum()
    }

    /// The counts of all clients for the operation of this protocol and name.
    #[must_use]
    pub fn total(&self, protocol: &str, name: &str) -> Counts {
        let mut total = Counts::default();
        let of_name = |record: &Record| (record.api.protocol, record.api.name) == (protocol, name);
        self.snapshot().iter().filter(|record| of_name(record)).for_each(|record| total.add(&record.counts));
        total
    }
}

/// The accounts of one connection: one for each share that it uses, by the share's number.
#[derive(Debug, Default)]
pub struct Accounts(RefCell<Vec<(u32, Client, Account)>>);

impl Accounts {
    /// Counts a call on the share with this number. `ending` is asked only where calls are counted.
    pub fn end(&self, (share, of): (u32, &Accounting), cost: &Cost, ending: impl FnOnce() -> Ending) {
        if !of.is_on {
            return;
        }
        let (ending, client) = (ending(), cost.client);
        let mut accounts = self.0.borrow_mut();
        let is_it = |(number, holder, _): &(u32, Client, Account)| *number == share && *holder == client;
        if let Some((_, _, account)) = accounts.iter().find(|account| is_it(account)) {
            return account.end(cost, &ending);
        }
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.remove(0);
        }
        let account = of.open(client);
        account.end(cost, &ending);
        accounts.push((share, client, account));
    }
}

#[cfg(test)]
mod tests {
    use limits::Limit;

    use super::*;
    use crate::api::of_tests::{CLOSE, READ, WRITE};
    use crate::{Outcome, Used, Waits, bucket_limit, response_type};

    fn client(n: usize) -> Client {
        Client::Guid(u128::try_from(n).unwrap().to_le_bytes())
    }

    fn ending(at: Instant, bytes: u64, outcome: Outcome) -> Ending {
        Ending { at, round_trip: None, bytes, outcome }
    }

    fn cost(api: &'static Api, waits: Waits) -> Cost {
        Cost { api, client: Client::Unknown, begun: Instant::now(), waits, used: None }
    }

    fn count(account: &Account, api: &'static Api, bytes: u64, outcome: Outcome) {
        account.end(&cost(api, Waits::default()), &ending(Instant::now(), bytes, outcome));
    }

    #[test]
    fn calls_are_counted_by_their_name() {
        let accounting = Accounting::new(true);
        let account = accounting.open(Client::Unknown);
        count(&account, &READ, 4096, Outcome::Done);
        count(&account, &READ, 0, Outcome::Refused);
        count(&account, &READ, 0, Outcome::Failed);
        let counts = accounting.total("test", "Read");
        assert_eq!((counts.calls, counts.errors, counts.faults, counts.bytes), (3, 2, 1, 4096));
        assert_eq!((counts.latency.iter().sum::<u64>(), counts.sizes.iter().sum::<u64>()), (3, 1));
        assert_eq!(accounting.total("other", "Read"), Counts::default());
        assert_eq!(accounting.total("test", "Close"), Counts::default());
    }

    #[test]
    fn clients_are_counted_apart_and_those_above_the_limit_together() {
        let accounting = Accounting::new(true);
        let accounts: Vec<Account> = (0..CLIENTS_MAX + 10).map(|n| accounting.open(client(n))).collect();
        accounts.iter().for_each(|account| count(account, &READ, 4096, Outcome::Done));
        let records = accounting.snapshot();
        assert_eq!(records.len(), CLIENTS_MAX + 1);
        assert_eq!((records[0].client, records[0].counts.calls), (Client::Unknown, 10));
        assert!(records[1..].iter().all(|r| r.counts.calls == 1 && r.counts.sizes[3] == 1));
        assert_eq!(accounting.total("test", "Read").bytes, 4096 * (CLIENTS_MAX as u64 + 10));
    }

    #[test]
    fn clients_that_went_make_room_and_nothing_they_did_is_lost() {
        const CLIENTS: usize = 3 * CLIENTS_MAX;
        let accounting = Accounting::new(true);
        let stays = accounting.open(client(CLIENTS));
        for n in 0..CLIENTS {
            count(&accounting.open(client(n)), &CLOSE, 1, Outcome::Done);
        }
        count(&stays, &CLOSE, 1, Outcome::Done);
        let records = accounting.snapshot();
        assert!(accounting.ledger.lock().open.len() == 1);
        let stayed = records.iter().find(|record| record.client == client(CLIENTS)).unwrap();
        assert_eq!(
            (stayed.counts.calls, records.len()),
            (1, CLIENTS_AWAY_MAX + 2),
            "and all others together"
        );
        assert_eq!(accounting.total("test", "Close").calls, CLIENTS as u64 + 1);

        // After a while without a connection they are counted with the others.
        accounting.ledger.lock().settle(Instant::now() + CLIENT_KEPT);
        let records = accounting.snapshot();
        let clients: Vec<Client> = records.iter().map(|record| record.client).collect();
        assert_eq!(clients, [Client::Unknown, client(CLIENTS)]);
        assert_eq!(records[0].counts.calls, CLIENTS as u64);
    }

    #[test]
    fn a_connection_that_comes_again_is_the_same_client() {
        let accounting = Accounting::new(true);
        for _ in 0..3 * SETTLE_AT {
            count(&accounting.open(client(1)), &READ, 2, Outcome::Done);
        }
        assert!(accounting.ledger.lock().open.len() <= SETTLE_AT);
        let records = accounting.snapshot();
        assert_eq!((records.len(), records[0].counts.bytes), (1, 6 * SETTLE_AT as u64));
    }

    #[test]
    fn what_a_call_waited_for_is_told_apart() {
        let accounting = Accounting::new(true);
        let account = accounting.open(Client::Unknown);
        let second = Duration::from_secs(1);
        let waits = Waits { queue: second * 2, limit: second, throttled: Some(Limit::Throughput) };
        account.end(&cost(&WRITE, waits), &ending(Instant::now(), 1, Outcome::Done));
        count(&account, &WRITE, 1, Outcome::Done);
        let counts = accounting.snapshot()[0].counts;
        assert_eq!((counts.limit.time, counts.queue.time), (second, second * 2), "once");
        assert_eq!(counts.throttled[Limit::Throughput as usize], 1);
        assert_eq!(response_type(&WRITE, Limit::Throughput), "SuccessWithShareIngressThrottling");
        assert_eq!(counts.limit.histogram.iter().sum::<u64>(), 1);
    }

    #[test]
    fn files_in_use_are_those_of_all_connections_of_the_client() {
        let accounting = Accounting::new(true);
        let [one, two, other] = [1, 1, 2].map(|n| accounting.open(client(n)));
        for (account, file, open) in
            [(&one, 1, Some(7)), (&two, 1, Some(8)), (&two, 2, None), (&other, 9, Some(9))]
        {
            let read = Cost { used: Some(Used { file, open }), ..cost(&READ, Waits::default()) };
            account.end(&read, &ending(Instant::now(), 1, Outcome::Done));
            count(account, &WRITE, 1, Outcome::Done);
        }
        let within = Duration::from_secs(10);
        assert_eq!(accounting.in_use(client(1), within), InUse { files: 2, opens: 2 });
        assert_eq!(accounting.in_use(client(2), within), InUse { files: 1, opens: 1 });
        drop([one, two]);
        assert_eq!(accounting.in_use(client(1), within), InUse { files: 2, opens: 2 }, "until it is settled");
        let records = accounting.snapshot();
        assert_eq!(accounting.in_use(client(1), within), InUse::default(), "who has gone uses nothing");
        assert!(records.iter().all(|record| record.counts.limit == crate::Waited::default()));
    }

    #[test]
    fn limit_queue_storage_and_network_are_all_of_the_time() {
        let accounting = Accounting::new(true);
        let account = accounting.open(Client::Unknown);
        let (begun, ms) = (Instant::now(), Duration::from_millis);
        let end = |waits, took| {
            let read = Cost { begun, ..cost(&READ, waits) };
            account.end(&read, &Ending { round_trip: Some(ms(3)), ..ending(begun + took, 1, Outcome::Done) });
        };
        end(Waits { queue: ms(40), limit: ms(900), throttled: Some(Limit::Iops) }, ms(950));
        end(Waits::default(), ms(11)); // waits for nothing
        let counts = accounting.snapshot()[0].counts;
        assert_eq!((counts.time, counts.end_to_end_time()), (ms(961), ms(967)));
        let parts = counts.limit.time + counts.queue.time + counts.storage_time() + counts.network.time;
        assert_eq!(parts, counts.end_to_end_time());
        let calls = |histogram: &[u64], up_to: Duration| {
            let limit = |n: &usize| bucket_limit(*n).is_none_or(|limit| limit >= up_to);
            histogram[(0..histogram.len()).find(limit).unwrap()]
        };
        assert_eq!(calls(&counts.storage, ms(11)), 2, "10 and 11 ms: up to 16.384 ms");
        assert_eq!(calls(&counts.network.histogram, ms(3)), 2);
        assert_eq!((calls(&counts.end_to_end, ms(14)), calls(&counts.end_to_end, ms(953))), (1, 1));
        for histogram in [counts.latency, counts.storage, counts.network.histogram, counts.end_to_end] {
            assert_eq!(histogram.iter().sum::<u64>(), 2);
        }
    }
}
