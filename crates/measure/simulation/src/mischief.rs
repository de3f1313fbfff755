//! Disturbances: connections are cut, the store fails or hangs, and the servers restart.

use std::rc::Rc;
use std::time::Duration;

use storage::Error;
use storage::fault::{Call, Fault, Rule};

use crate::chance::Chance;
use crate::world::World;

/// The longest time that the store hangs. It is shorter than the lease time of an NFSv4 client, which waits meanwhile.
const HANG_MAX_SECS: u64 = 40;
/// How long other clients may wait for a client that has lost its connection. The server keeps its caching grants for
/// 35 s.
const AFTER_CUT: Duration = Duration::from_secs(45);
/// How long clients may wait after a restart: for the grace period of 90 s, and then for each other.
const AFTER_RESTART: Duration = Duration::from_secs(150);
/// EIO.
const BROKEN: i32 = 5;

/// How often each disturbance happens, in proportion; 0 for never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mischief {
    pub(crate) cuts: u64,
    pub(crate) failures: u64,
    pub(crate) full: u64,
    pub(crate) hangs: u64,
    pub(crate) restarts: u64,
    /// The longest pause between two disturbances, in milliseconds.
    pub(crate) pause: u64,
}

impl Mischief {
    /// Chooses the disturbances of a simulation. One simulation in three has none. In the others, each kind is chosen
    /// with probability 1/2.
    pub(crate) fn by(chance: &mut Chance) -> Self {
        let is_spared = chance.once_in(3);
        let mut often = |most| if chance.once_in(2) || is_spared { 0 } else { 1 + chance.below(most) };
        let (cuts, failures, full, hangs, restarts) = (often(10), often(4), often(2), often(2), often(2));
        Self { cuts, failures, full, hangs, restarts, pause: 1000 + chance.below(15_000) }
    }
}

/// Causes disturbances until the simulation is over.
pub(crate) async fn run(world: Rc<World>, mischief: Mischief) {
    let Mischief { cuts, failures, full, hangs, restarts, pause } = mischief;
    let all = cuts + failures + full + hangs + restarts;
    while all > 0 && !world.is_over() {
        world.pause(pause).await;
        let mut which = world.below(all);
        let mut is = |share: u64| {
            let hit = which < share;
            which = which.saturating_sub(share);
            hit && {
                which = u64::MAX;
                true
            }
        };
        if is(cuts) {
            world.note(0, "cut", &[]);
            world.disturb(AFTER_CUT);
            if world.once_in(8) { world.cut_all() } else { world.cut_one() }
        } else if is(failures) {
            inject(&world, &[Call::Read, Call::Write, Call::Commit, Call::Create], Error::Io(BROKEN));
        } else if is(full) {
            inject(&world, &[Call::Write], Error::NoSpace);
        } else if is(hangs) {
            world.note(0, "hang", &[]);
            let time = Duration::from_secs(1 + world.below(HANG_MAX_SECS));
            world.disturb(time);
            world.servers.borrow().hang(time);
        } else if is(restarts) {
            restart(&world).await;
        }
    }
}

fn inject(world: &World, calls: &[Call], error: Error) {
    let call = calls[world.pick(calls.len())];
    world.note(0, "store fails", &[call as u64]);
    let times = 1 + world.below(3);
    let servers = world.servers.borrow();
    let Some(store) = servers.store() else { return };
    store.clear();
    store.inject(Rule { call, skip: world.below(20), times, fault: Fault::Fail(error) });
}

/// Stops the servers and starts them again with the state that outlives them.
async fn restart(world: &World) {
    world.note(0, "restart", &[]);
    world.servers.borrow_mut().stop();
    world.cut_all();
    world.locks.borrow_mut().all_uncertain();
    world.pause(10_000).await;
    world.servers.borrow_mut().start();
    world.disturb(AFTER_RESTART);
    // Servers that restart all the time serve no client.
    if world.once_in(2) {
        tokio::time::sleep(AFTER_RESTART).await;
    }
}
