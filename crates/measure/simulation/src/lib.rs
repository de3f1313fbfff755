//! Both servers, a store with faults, and their clients, in one thread on virtual time.
//!
//! A simulation depends on its seed and on nothing else. The seed decides which clients there are and what they do,
//! when the network delays, splits and loses data, when the store fails or hangs, and when the servers restart. The
//! servers are those that ship. The simulation replaces the sockets (`net::Socket`), the threads of the store
//! (`share::Workers`), and the time and randomness of the machine. It compares the replies that clients get with a
//! model: acknowledged data is there, locks and caches exclude what they promise to exclude, and every operation is
//! answered once.

mod chance;
mod machine;
mod mischief;
mod model;
mod nfs3;
mod nfs4;
mod piece;
mod pipe;
mod rpc;
mod servers;
mod smb;
mod trace;
mod workers;
mod world;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chance::Chance;
use mischief::Mischief;
use pipe::Weather;
use servers::Servers;
use workers::Slow;
use world::World;

pub use planted::Fault;

/// How rarely a planted fault strikes: once in this many opportunities.
const fn one_in(fault: Fault) -> u64 {
    match fault {
        // These faults have few opportunities. Few operations come between a restart and the reclaims after it, few
        // breaks find a client idle, and few clients hold two ranges of a file.
        Fault::GraceForgotten | Fault::LostWakeUp | Fault::UnlockTooMuch => 1,
        // Rare enough that clients first get something that they can lose.
        Fault::ReplyRepeated | Fault::ReplyLost | Fault::WrongSignature => 500,
        _ => 5,
    }
}

/// The longest pause of a client in a quiet simulation, in which few things happen at a time. No other event soon hides
/// that a client has missed one. This is a third of the lease time of NFSv4.
const LEISURE_MILLIS: u64 = 30_000;

/// The input of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The seed of all decisions.
    pub seed: u64,
    /// How many operations clients do before the simulation ends.
    pub operations: u64,
    /// A fault that is planted in the servers, to see whether the simulation finds it.
    pub fault: Option<Fault>,
    /// Whether the last events are kept, to be shown with a failure.
    pub verbose: bool,
}

/// The result of a simulation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The number of operations that were answered.
    pub operations: u64,
    /// A hash of all events in their order, with their times. The hash of a scenario is always the same.
    pub hash: u64,
    /// How much virtual time has passed for the servers and clients.
    pub virtual_time: Duration,
    /// The fault that was found in the servers, if any.
    pub failure: Option<String>,
    /// The last events, if they were asked for.
    pub events: Vec<String>,
}

/// Whether anything has panicked. A panic ends the task alone that it happens in.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Simulates, on a thread of its own. A panic of a server or a client is a failure.
#[must_use]
pub fn simulate(scenario: Scenario) -> Outcome {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        print(panic);
    }));
    let simulation = std::thread::spawn(move || run(scenario));
    let mut outcome = simulation.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if PANICKED.load(Ordering::Relaxed) {
        outcome.failure.get_or_insert_with(|| "a task has panicked".to_owned());
    }
    outcome
}

#[expect(clippy::expect_used, reason = "a runtime needs nothing that could be missing")]
fn run(scenario: Scenario) -> Outcome {
    machine::begin(scenario.seed);
    if let Some(fault) = scenario.fault {
        planted::plant(fault, one_in(fault));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = tokio::task::LocalSet::new();
    let outcome = tasks.block_on(&runtime, live(scenario));
    drop(tasks);
    outcome
}

async fn live(scenario: Scenario) -> Outcome {
    let mut chance = Chance::new(scenario.seed);
    let workers = Slow::new(Chance::new(chance.next()), Duration::from_millis(chance.below(20)));
    let mut servers = Servers::new(Arc::clone(&workers), chance.once_in(2), chance.once_in(2));
    tokio::task::spawn_local(workers.work());
    servers.start();
    let weather = Weather {
        splits: chance.below(8),
        delays: chance.below(16),
        delay_max: Duration::from_millis(1 + chance.below(40)),
    };
    let mischief = Mischief::by(&mut chance);
    let leisure = if chance.once_in(4) { LEISURE_MILLIS } else { 50 };
    let world = World::new(chance, servers, weather, leisure, scenario.operations, scenario.verbose);
    if nfs3::make_files(Rc::clone(&world)).await.is_none() {
        world.fail(0, "the files cannot be made".to_owned());
    }
    let of_each = clients(&world);
    for client in 1..=of_each[0] {
        tokio::task::spawn_local(nfs3::run(Rc::clone(&world), client));
    }
    for client in 1..=of_each[1] {
        tokio::task::spawn_local(nfs4::run(Rc::clone(&world), 10 + client));
    }
    for client in 1..=of_each[2] {
        tokio::task::spawn_local(smb::run(Rc::clone(&world), 20 + client));
    }
    tokio::task::spawn_local(mischief::run(Rc::clone(&world), mischief));
    while !world.is_over() {
        world.over.notified().await;
    }
    let (operations, hash, failure, events) = world.outcome();
    Outcome { operations, hash, virtual_time: machine::elapsed(), failure, events }
}

/// The numbers of NFSv3, NFSv4.1 and SMB clients: at least two in total. Where clients are few, each is granted more,
/// and no client hides what another has missed.
fn clients(world: &World) -> [u32; 3] {
    loop {
        let of_each = [(); 3].map(|()| u32::try_from(world.below(4)).unwrap_or(0));
        if of_each.iter().sum::<u32>() >= 2 {
            return of_each;
        }
    }
}
