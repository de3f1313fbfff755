//! What is known of a server besides what it says over its protocol: where it runs on this machine, or tells of itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use crate::cpu::ServerProcess;
use crate::cpu::own_cpu;
use crate::result::{Repetition, ServerCounters};

/// A server that tells what it has done. It is asked while load is on: it must be quick.
pub trait Counts: fmt::Debug + Send + Sync {
    /// What it has done since it started. `None` when it does not say.
    fn counters(&self) -> Option<ServerCounters>;
}

/// What is known of a server.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// Which one it is, such as `Samba 4.17.12`.
    pub name: Option<String>,
    /// Its process, where that is one of this machine.
    pub process: Option<ServerProcess>,
    /// What it counts itself.
    pub counts: Option<Arc<dyn Counts>>,
    /// The directory behind the target, where that is one of this machine.
    pub directory: Option<PathBuf>,
    /// What else matters, for the result.
    pub settings: BTreeMap<String, String>,
}

/// The clocks and counters of client and server at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    client_cpu: Option<f64>,
    server_cpu: Option<f64>,
    counters: Option<ServerCounters>,
}

impl Server {
    /// What clocks and counters say now.
    pub(crate) fn moment(&self) -> Moment {
        Moment {
            client_cpu: own_cpu(),
            server_cpu: self.process.as_ref().and_then(ServerProcess::cpu_seconds),
            counters: self.counts.as_ref().and_then(|counts| counts.counters()),
        }
    }
}

impl Moment {
    /// Notes what was used and counted from this moment to a later one.
    pub(crate) fn until(&self, later: &Self, repetition: &mut Repetition) {
        let spent =
            |before: Option<f64>, after: Option<f64>| before.zip(after).map(|(b, a)| (a - b).max(0.0));
        repetition.client_cpu_seconds = spent(self.client_cpu, later.client_cpu);
        repetition.server_cpu_seconds = spent(self.server_cpu, later.server_cpu);
        repetition.server = self.counters.zip(later.counters).map(|(before, after)| after.since(&before));
    }
}
