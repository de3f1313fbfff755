//! Clients in simulated time, for hours.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::{KIB, MIB, Plan};

const SECOND: Time = Time::from_secs(1);
const SERVICE: Time = Time::from_micros(200);

/// A client that always has `depth` operations under way, and pauses for `think` after each.
struct Load {
    client: u64,
    operation: Operation,
    depth: usize,
    think: Duration,
    done: u64,
    latencies: Vec<Duration>,
}

fn load(client: u64, operation: Operation, depth: usize) -> Load {
    Load { client, operation, depth, think: Duration::ZERO, done: 0, latencies: Vec::new() }
}

fn read(file: u64, bytes: u64) -> Operation {
    Operation::Read { file, bytes }
}

fn write(file: u64, bytes: u64) -> Operation {
    Operation::Write { file, bytes }
}

fn budget(plan: &str) -> Budget {
    Budget::new(plan.parse::<Plan>().unwrap().limits(), Time::ZERO)
}

/// Runs the clients, and counts what each has done since `from`.
fn simulate(budget: &mut Budget, loads: &mut [Load], from: Time, to: Time) {
    let mut events = BinaryHeap::new();
    for (index, load) in loads.iter().enumerate() {
        for slot in 0..load.depth {
            events.push(Reverse((Duration::from_nanos(u64::try_from(slot).unwrap()), index)));
        }
    }
    let mut waiting: HashMap<Ticket, (usize, Time)> = HashMap::new();
    let (mut released, mut wake) = (Vec::new(), None);
    loop {
        let next = events.peek().map(|Reverse((at, _))| *at);
        let now = [next, wake].into_iter().flatten().min().unwrap();
        if now >= to {
            return;
        }
        let mut begin = Vec::new();
        if next == Some(now) {
            let Some(Reverse((_, index))) = events.pop() else { unreachable!() };
            match budget.ask(now, loads[index].client, loads[index].operation) {
                BudgetAnswer::Go => begin.push((index, now)),
                BudgetAnswer::Wait(ticket) => {
                    waiting.insert(ticket, (index, now));
                }
            }
        }
        wake = budget.advance(now, &mut released);
        begin.extend(released.drain(..).map(|released| {
            let (index, asked) = waiting.remove(&released.ticket).unwrap();
            assert_eq!(released.waited, now - asked);
            (index, asked)
        }));
        for (index, asked) in begin {
            let load = &mut loads[index];
            if now >= from {
                load.done += 1;
                load.latencies.push(now + SERVICE - asked);
            }
            events.push(Reverse((now + SERVICE + load.think, index)));
        }
    }
}

fn assert_within(value: u64, expected: u64, per_mille: u64) {
    assert!(value.abs_diff(expected) * 1000 <= expected * per_mille, "{value} and not {expected}");
}

/// Runs these loads for a minute: the limit holds within 2 %, and 97 % of it are reached.
fn assert_holds(plan: &str, mut loads: Vec<Load>, per_second: u64, unit: impl Fn(&Load) -> u64) {
    simulate(&mut budget(plan), &mut loads, Time::ZERO, 60 * SECOND);
    let done: u64 = loads.iter().map(|load| load.done * unit(load)).sum();
    let expected = per_second * 60;
    assert!(done * 100 <= expected * 102 && done * 100 >= expected * 97, "{plan}: {done} of {expected}");
}

#[test]
fn every_limit_holds_for_a_minute() {
    let both = |bytes| vec![load(1, read(1, bytes), 16), load(2, write(2, bytes), 16)];
    assert_holds("custom iops=1000", both(4 * KIB), 1000, |_| 1);
    assert_holds("custom throughput=50MiB/s", both(64 * KIB), 50 * MIB, |_| 64 * KIB);
    assert_holds("custom throughput=50MiB/s", both(MIB), 50 * MIB, |_| MIB);
    let reads = |load: &Load| if matches!(load.operation, Operation::Read { .. }) { 64 * KIB } else { 0 };
    assert_holds("custom read=20MiB/s write=10MiB/s", both(64 * KIB), 20 * MIB, reads);
    let writes = |load: &Load| if matches!(load.operation, Operation::Write { .. }) { 64 * KIB } else { 0 };
    assert_holds("custom read=20MiB/s write=10MiB/s", both(64 * KIB), 10 * MIB, writes);
    let of_one_file = || vec![load(1, read(7, 4 * KIB), 16), load(2, write(7, 4 * KIB), 16)];
    assert_holds("custom file-iops=500", of_one_file(), 500, |_| 1);
    assert_holds("custom file-throughput=2MiB/s", of_one_file(), 2 * MIB, |_| 4 * KIB);
    assert_holds("custom file-iops=500", both(4 * KIB), 1000, |_| 1);
    assert_holds("custom client-iops=300", both(4 * KIB), 600, |_| 1);
    assert_holds("custom client-throughput=3MiB/s", both(4 * KIB), 6 * MIB, |_| 4 * KIB);
    let names = || vec![load(1, Operation::Metadata, 8), load(2, Operation::Metadata, 8)];
    assert_holds("custom metadata-iops=200", names(), 200, |_| 1);
    assert_holds("custom iops=1000 metadata-iops=200", names(), 200, |_| 1);
    assert_holds("custom client-metadata-iops=150", names(), 300, |_| 1);
    let names_and_data = || vec![load(1, Operation::Metadata, 8), load(1, read(1, 4 * KIB), 16)];
    let of_names = |load: &Load| u64::from(load.operation == Operation::Metadata);
    assert_holds("custom iops=1000 client-metadata-iops=150", names_and_data(), 150, of_names);
}

#[test]
fn a_large_operation_counts_as_several() {
    assert_holds("custom iops=100 io-unit=64KiB", vec![load(1, read(1, 256 * KIB), 4)], 100, |_| 4);
    assert_holds("custom iops=100 io-unit=64KiB", vec![load(1, read(1, 65 * KIB), 4)], 100, |_| 2);
}

#[test]
fn credits_are_exact_over_hours() {
    // 100 GiB of Azure Files v1: 3,100 and 10,000 operations per second, 24,840,000 credits. Operations of 100 KiB
    // count as 100, so that fewer have to be simulated.
    let mut budget = budget("custom iops=3100 burst-iops=10000 io-unit=1KiB");
    assert_eq!(budget.credits(Time::ZERO), Some(24_840_000));
    let mut loads = [load(1, read(1, 100 * KIB), 8)];
    simulate(&mut budget, &mut loads, Time::ZERO, 1800 * SECOND);
    assert_within(budget.credits(1800 * SECOND).unwrap(), 12_420_000, 1);
    assert_within(loads[0].done * 100, 18_000_000, 1);
}

#[test]
fn bursts_end_when_the_credits_do() {
    let mut budget = budget("custom iops=3100 burst-iops=10000 io-unit=1KiB");
    let mut loads = [load(1, read(1, 100 * KIB), 8)];
    simulate(&mut budget, &mut loads, Time::ZERO, 3 * 3600 * SECOND);
    assert_eq!(budget.credits(3 * 3600 * SECOND), Some(0));
    assert_within(loads[0].done * 100, 36_000_000 + 2 * 3600 * 3_100, 1);
}

#[test]
fn credits_accrue_below_the_baseline_and_not_while_throttled() {
    let mut budget = budget("custom iops=3100 burst-iops=10000 throughput=10MiB/s io-unit=1KiB");
    budget.set_credits(0);
    // 1,000 operations per second, ten at a time, and nothing waits.
    let mut rest = [load(1, read(1, 10 * KIB), 1)];
    rest[0].think = Duration::from_micros(9_800);
    simulate(&mut budget, &mut rest, Time::ZERO, 3600 * SECOND);
    let saved = budget.credits(3600 * SECOND).unwrap();
    assert_within(saved, 2_100 * 3_600, 1);
    // Held back by the throughput: the baseline that is not used meanwhile is lost.
    assert_eq!(budget.ask(3600 * SECOND, 1, write(1, 20 * MIB)), BudgetAnswer::Go);
    let BudgetAnswer::Wait(ticket) = budget.ask(3600 * SECOND, 1, read(1, KIB)) else {
        panic!("not throttled")
    };
    assert_eq!(budget.throttled(), [Limit::Throughput]);
    let before = budget.credits(3600 * SECOND).unwrap();
    assert_eq!(budget.credits(3605 * SECOND), Some(before));
    budget.withdraw(3605 * SECOND, ticket, 1, read(1, KIB));
    let after = budget.credits(3606 * SECOND).unwrap();
    assert!(after >= before + 3_000, "{after} after {before}");
}

#[test]
fn two_greedy_clients_get_equal_parts_and_a_light_one_does_not_wait() {
    for (plan, bytes) in [("custom iops=2000", 4 * KIB), ("custom throughput=100MiB/s", 64 * KIB)] {
        let light = || Load { think: Duration::from_millis(20), ..load(3, read(3, 4 * KIB), 1) };
        let mut alone = [light()];
        simulate(&mut budget(plan), &mut alone, SECOND, 60 * SECOND);
        // One client has four times as much under way, and larger operations.
        let mut loads = [load(1, read(1, bytes), 64), load(2, read(2, bytes * 2), 16), light()];
        simulate(&mut budget(plan), &mut loads, SECOND, 60 * SECOND);
        let [first, second] = [loads[0].done * bytes, loads[1].done * bytes * 2];
        if plan.contains("throughput") {
            assert_within(first, second, 100);
        } else {
            assert_within(loads[0].done, loads[1].done, 100);
        }
        let p99 = |load: &mut Load| {
            load.latencies.sort_unstable();
            load.latencies[load.latencies.len() * 99 / 100]
        };
        let [alone] = &mut alone;
        let [.., light] = &mut loads;
        let (apart, beside) = (p99(alone), p99(light));
        assert!(beside <= apart * 3, "{plan}: {beside:?} and not {apart:?}");
    }
}

#[test]
fn many_light_clients_do_not_get_more_than_there_is() {
    let mut loads: Vec<Load> = (0..200).map(|client| load(client, read(client, 4 * KIB), 1)).collect();
    simulate(&mut budget("custom iops=1000"), &mut loads, Time::ZERO, 60 * SECOND);
    let done: u64 = loads.iter().map(|load| load.done).sum();
    assert!((58_200..=61_200).contains(&done), "{done}");
    let (least, most) =
        (loads.iter().map(|l| l.done).min().unwrap(), loads.iter().map(|l| l.done).max().unwrap());
    assert!(most - least <= least / 10, "{least} to {most}");
}

#[test]
fn metadata_that_waits_does_not_hold_up_data() {
    let mut budget = budget("custom metadata-iops=10");
    while budget.ask(Time::ZERO, 1, Operation::Metadata) == BudgetAnswer::Go {}
    assert_eq!(budget.ask(Time::ZERO, 1, read(1, KIB)), BudgetAnswer::Go);
}

#[test]
fn whoever_goes_away_frees_its_place_and_gives_back_what_it_took() {
    let mut budget = budget("custom file-iops=10 iops=8");
    let mut tickets = Vec::new();
    for file in 0..6 {
        if let BudgetAnswer::Wait(ticket) = budget.ask(Time::ZERO, 1, read(file, KIB)) {
            tickets.push((ticket, file));
        }
    }
    assert_eq!((tickets.len(), budget.waiting()), (4, 4));
    for (ticket, file) in tickets {
        budget.withdraw(Time::ZERO, ticket, 1, read(file, KIB));
    }
    assert_eq!(budget.waiting(), 0);
    assert!(budget.schedule.is_empty());
    assert_eq!(budget.advance(Time::ZERO, &mut Vec::new()), None);
    // What the last operation had taken of its file's budget is available again.
    assert!(budget.others.values().filter(|gate| gate.meter.is_open()).count() >= 4);
}

#[test]
fn a_plan_changes_while_operations_wait() {
    let mut budget = budget("custom iops=1");
    let mut tickets = Vec::new();
    for _ in 0..50 {
        if let BudgetAnswer::Wait(ticket) = budget.ask(Time::ZERO, 1, read(1, KIB)) {
            tickets.push(ticket);
        }
    }
    let mut released = Vec::new();
    budget.change(SECOND / 2, "custom read=1KiB/s".parse::<Plan>().unwrap().limits(), &mut released);
    let at_once = released.len();
    assert!(at_once >= 1 && budget.waiting() == tickets.len() - at_once);
    budget.change(SECOND, Limits::NONE, &mut released);
    assert_eq!(released.iter().map(|r| r.ticket).collect::<Vec<_>>(), tickets, "in order");
    assert_eq!(budget.waiting(), 0);
    assert_eq!(budget.ask(SECOND, 1, read(1, KIB)), BudgetAnswer::Go);
}

#[test]
fn what_was_not_used_is_given_back() {
    let mut budget = budget("custom read=1MiB/s");
    for _ in 0..1000 {
        assert_eq!(budget.ask(Time::ZERO, 1, read(1, MIB)), BudgetAnswer::Go);
        budget.put_back(Time::ZERO, 1, read(1, MIB), MIB);
    }
}

#[test]
fn gates_of_files_that_rest_are_forgotten() {
    let mut budget = budget("custom file-iops=100");
    for file in 0..100_000 {
        let now = Duration::from_millis(file);
        assert_eq!(budget.ask(now, 1, read(file, KIB)), BudgetAnswer::Go);
    }
    assert!(budget.others.len() <= 2 * SWEEP_AT, "{}", budget.others.len());
}

#[derive(Debug, Clone)]
enum Step {
    Ask(u64, Operation),
    Withdraw(usize),
    Advance(u64),
    Change(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        (0_u64..3, 1_u64..200_000).prop_map(|(file, bytes)| read(file, bytes)),
        (0_u64..3, 1_u64..200_000).prop_map(|(file, bytes)| write(file, bytes)),
        Just(Operation::Metadata),
    ];
    prop_oneof![
        8 => (0_u64..4, operation).prop_map(|(client, operation)| Step::Ask(client, operation)),
        1 => (0_usize..8).prop_map(Step::Withdraw),
        4 => (0_u64..200_000_000).prop_map(Step::Advance),
        1 => (1_u64..500).prop_map(Step::Change),
    ]
}

proptest! {
    /// Whatever happens: every operation that waits is let through eventually, once, and operations of one client, file
    /// and kind keep their order.
    #[test]
    fn nobody_is_forgotten(steps in proptest::collection::vec(step(), 1..150)) {
        let mut budget = budget("custom iops=50 burst-iops=60 burst-credits=20 read=1MiB/s throughput=2MiB/s \
                                 metadata-iops=10 file-iops=20 client-iops=30");
        let mut now = Time::ZERO;
        let mut waiting: Vec<(Ticket, u64, Operation)> = Vec::new();
        let mut released = Vec::new();
        for step in steps {
            match step {
                Step::Ask(client, operation) => {
                    let answer = budget.ask(now, client, operation);
                    if let BudgetAnswer::Wait(ticket) = answer {
                        waiting.push((ticket, client, operation));
                    }
                },
                Step::Withdraw(index) => if index < waiting.len() {
                    let (ticket, client, operation) = waiting.remove(index);
                    budget.withdraw(now, ticket, client, operation);
                },
                Step::Advance(nanos) => {
                    now += Duration::from_nanos(nanos);
                    budget.advance(now, &mut released);
                }
                Step::Change(iops) => {
                    let limits = Limits { iops: Some(iops), ..budget.limits().clone() };
                    let limits = Limits { burst: None, ..limits };
                    budget.change(now, limits, &mut released);
                }
            }
            for released in released.drain(..) {
                let index = waiting.iter().position(|(ticket, ..)| *ticket == released.ticket);
                prop_assert!(index.is_some(), "released twice, or after it was withdrawn");
                waiting.remove(index.unwrap());
            }
            prop_assert_eq!(budget.waiting(), waiting.len());
        }
        while let Some(next) = budget.advance(now, &mut released) {
            prop_assert!(next > now);
            now = next;
        }
        prop_assert_eq!(released.len(), waiting.len());
        prop_assert_eq!(budget.waiting(), 0);
    }
}
