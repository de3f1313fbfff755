//! Who is next: start-time fair queueing.
//!
//! P. Goyal, H. M. Vin and H. Cheng, "Start-time Fair Queueing" (SIGCOMM 1996): an operation starts, in virtual time,
//! when the client's previous operation has finished, or now. The operation with the earliest start is next, and its
//! start becomes the virtual time. Clients that always have operations waiting get equal shares, whatever the sizes of
//! their operations. The operations of one client keep their order.
//!
//! A client that asks for nothing for a moment, for instance because its system is busy with something else, may catch
//! up on what it has missed, up to the queue's memory: its operations start that much before now.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// A client, as numbered by the caller.
pub(crate) type Client = u64;

/// Flows are swept for those that no longer matter when there are more of them than this, and more than twice as many
/// as after the last sweep.
const SWEEP_AT: usize = 64;

#[derive(Debug)]
struct Flow<T> {
    /// When the client's last operation finishes, in virtual time.
    finish: u128,
    /// The operations that wait, with their costs. The start of the first is in [`FairQueue::heads`].
    waiting: VecDeque<(T, u64)>,
    head: (u128, u64),
    /// The cost of operations that went on without a turn while others of the client waited: the next operations start
    /// that much later.
    owed: u128,
}

impl<T> Flow<T> {
    /// The client's latest operation started at `start` and took `cost`.
    fn end(&mut self, start: u128, cost: u64) {
        self.finish = start + u128::from(cost) + std::mem::take(&mut self.owed);
    }
}

/// Waiting operations of several clients.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    now: u128,
    /// How much a client may catch up on.
    memory: u128,
    flows: HashMap<Client, Flow<T>>,
    /// The first waiting operation of every client: by start, then by arrival.
    heads: BTreeSet<(u128, u64, Client)>,
    arrivals: u64,
    sweep_at: usize,
}

impl<T: PartialEq> FairQueue<T> {
    pub(crate) fn new(memory: u64) -> Self {
        let (flows, heads, memory) = (HashMap::new(), BTreeSet::new(), u128::from(memory));
        Self { now: 0, memory, flows, heads, arrivals: 0, sweep_at: SWEEP_AT }
    }

    pub(crate) fn set_memory(&mut self, memory: u64) {
        self.memory = u128::from(memory);
    }

    /// The earliest start of an operation that arrives now.
    fn earliest(&self) -> u128 {
        self.now.saturating_sub(self.memory)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Whether the client has had less than its fair share, and none of its operations wait.
    pub(crate) fn is_behind(&self, client: Client) -> bool {
        self.flows.get(&client).is_none_or(|flow| flow.waiting.is_empty() && flow.finish <= self.now)
    }

    /// An operation goes on without waiting, as no other operation of its client waits.
    pub(crate) fn pass(&mut self, client: Client, cost: u64) {
        let earliest = self.earliest();
        let flow = self.flow(client);
        let start = flow.finish.max(earliest);
        flow.end(start, cost);
        // If others wait, this client was behind them.
        self.now = self.now.max(start);
    }

    /// An operation goes on without a turn. It still counts against the client's share.
    pub(crate) fn charge(&mut self, client: Client, cost: u64) {
        let earliest = self.earliest();
        let flow = self.flow(client);
        if flow.waiting.is_empty() {
            flow.end(flow.finish.max(earliest), cost);
        } else {
            flow.owed += u128::from(cost);
        }
    }

    /// An operation waits, behind the others of its client.
    pub(crate) fn push(&mut self, client: Client, operation: T, cost: u64) {
        let (earliest, arrival) = (self.earliest(), self.arrivals);
        self.arrivals += 1;
        let flow = self.flow(client);
        flow.waiting.push_back((operation, cost));
        if flow.waiting.len() == 1 {
            flow.head = (flow.finish.max(earliest), arrival);
            let (start, arrival) = flow.head;
            self.heads.insert((start, arrival, client));
        }
    }

    /// Takes the next operation off the queue.
    pub(crate) fn pop(&mut self) -> Option<(T, u64)> {
        let (start, arrival, client) = self.heads.pop_first()?;
        self.now = self.now.max(start);
        let flow = self.flows.get_mut(&client)?;
        let (operation, cost) = flow.waiting.pop_front()?;
        flow.end(start, cost);
        if !flow.waiting.is_empty() {
            flow.head = (flow.finish, arrival);
            self.heads.insert((flow.finish, arrival, client));
        }
        Some((operation, cost))
    }

    /// An operation no longer waits. Returns whether it waited.
    pub(crate) fn remove(&mut self, client: Client, operation: &T) -> bool {
        let Some(flow) = self.flows.get_mut(&client) else { return false };
        let Some(index) = flow.waiting.iter().position(|(other, _)| other == operation) else { return false };
        flow.waiting.remove(index);
        if flow.waiting.is_empty() {
            let (start, arrival) = flow.head;
            self.heads.remove(&(start, arrival, client));
            flow.end(flow.finish, 0);
        }
        true
    }

    /// Takes all operations off the queue, in order.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop()).map(|(operation, _)| operation).collect()
    }

    fn flow(&mut self, client: Client) -> &mut Flow<T> {
        if self.flows.len() >= self.sweep_at {
            let earliest = self.earliest();
            self.flows.retain(|_, flow| !flow.waiting.is_empty() || flow.finish > earliest);
            self.sweep_at = (2 * self.flows.len()).max(SWEEP_AT);
        }
        let new = || Flow { finish: 0, waiting: VecDeque::new(), head: (0, 0), owed: 0 };
        self.flows.entry(client).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clients_take_turns_by_what_they_take() {
        let mut queue = FairQueue::new(0);
        for number in 0..6 {
            queue.push(1, (1, number), 2);
            queue.push(2, (2, number), 1);
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|((client, _), _)| client).collect();
        assert_eq!(order[..9], [1, 2, 2, 1, 2, 2, 1, 2, 2], "client 2 gets twice as many of half the size");
    }

    #[test]
    fn who_comes_later_has_saved_up_nothing() {
        let mut queue = FairQueue::new(0);
        for number in 0..100 {
            queue.push(1, number, 1);
        }
        for _ in 0..50 {
            queue.pop();
        }
        for number in 1000..1100 {
            queue.push(2, number, 1);
        }
        let of_two = (0..20).filter_map(|_| queue.pop()).filter(|(n, _)| *n >= 1000).count();
        assert_eq!(of_two, 10);
    }

    #[test]
    fn who_was_away_for_a_moment_catches_up_on_it_and_on_no_more() {
        let mut queue = FairQueue::new(10);
        queue.push(2, 999, 1);
        for number in 0..300 {
            queue.push(1, number, 1);
        }
        for _ in 0..100 {
            queue.pop();
        }
        for number in 1000..1100 {
            queue.push(2, number, 1);
        }
        let mut of_two = |operations: usize| {
            (0..operations).filter_map(|_| queue.pop()).filter(|(n, _)| *n >= 999).count()
        };
        assert!((10..=12).contains(&of_two(12)), "at first it alone");
        assert_eq!(of_two(40), 20, "then both");
    }

    #[test]
    fn what_goes_on_without_a_turn_is_of_the_part_of_its_client() {
        let mut queue = FairQueue::new(0);
        for number in 0..100 {
            queue.push(1, (1, number), 1);
            queue.push(2, (2, number), 1);
        }
        let mut taken = [0_u64, 0];
        for _ in 0..90 {
            let ((client, _), _) = queue.pop().unwrap();
            taken[client - 1] += 1;
            if client == 1 {
                queue.charge(1, 1);
                taken[0] += 1;
            }
        }
        // A turn that was already given is not taken back.
        assert!(taken[0].abs_diff(taken[1]) <= 3, "{taken:?}");
        // The same holds while nothing of the client waits, and after what waited was withdrawn.
        let mut queue = FairQueue::new(0);
        queue.push(1, 'a', 1);
        queue.charge(1, 3);
        assert!(queue.remove(1, &'a') && !queue.is_behind(1));
        queue.charge(2, 3);
        assert!(!queue.is_behind(2) && queue.is_behind(3));
    }

    #[test]
    fn whoever_goes_away_frees_its_place() {
        let mut queue = FairQueue::new(0);
        queue.push(1, 'a', 1);
        queue.push(1, 'b', 1);
        queue.push(2, 'c', 1);
        assert!(queue.remove(1, &'a') && !queue.remove(1, &'a') && !queue.remove(3, &'a'));
        assert_eq!(queue.drain(), ['b', 'c']);
        queue.push(1, 'd', 1);
        assert!(queue.remove(1, &'d') && queue.is_empty());
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let mut queue: FairQueue<()> = FairQueue::new(100);
        for client in 0..100_000 {
            queue.pass(client, 1);
            queue.pass(0, 1);
        }
        assert!(queue.flows.len() < 2 * SWEEP_AT + 2, "{}", queue.flows.len());
    }

    proptest! {
        #[test]
        fn each_client_is_served_in_order_and_all_get_equal_parts(
            costs in proptest::collection::vec((0_u64..4, 1_u64..30), 1..300), memory in 0_u64..100,
        ) {
            let mut queue = FairQueue::new(memory);
            let (mut total, mut largest) = ([0_u64; 4], 1);
            for (number, (client, cost)) in costs.iter().enumerate() {
                queue.push(*client, (*client, number), *cost);
                total[usize::try_from(*client).unwrap()] += cost;
                largest = largest.max(*cost);
            }
            let mut served = [0_u64; 4];
            let mut last = [None; 4];
            while let Some(((client, number), cost)) = queue.pop() {
                let client = usize::try_from(client).unwrap();
                prop_assert!(last[client].is_none_or(|last| last < number));
                last[client] = Some(number);
                served[client] += cost;
                let backlogged: Vec<u64> = (0..4).filter(|c| served[*c] < total[*c]).map(|c| served[c]).collect();
                let spread = backlogged.iter().max().unwrap_or(&0) - backlogged.iter().min().unwrap_or(&0);
                prop_assert!(spread <= 2 * largest, "{served:?} of {total:?}");
            }
            prop_assert_eq!(served, total);
        }
    }
}
