//! What a coordinator and a worker say to each other.

use serde::{Deserialize, Serialize};

use crate::engine::Measured;
use crate::fault::Fault;
use crate::result::Negotiated;
use crate::security::Security;
use crate::target::Target;
use crate::workload::Workload;

/// The version of these messages. Both sides say theirs first, and go on only if they are the same.
pub(super) const VERSION: u32 = 1;

/// What a worker says first, in every version.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    /// Such as `anabranch 0.2.0`.
    pub(super) program: String,
}

/// What the coordinator says. Each but `Go` and `Stop` is answered by one report.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Make a folder on the target: `Begun`.
    Begin(Begin),
    /// Make files of these sizes for blocks that are multiples of `block`, and write them: `Done`.
    Files {
        sizes: Vec<u64>,
        block: u64,
    },
    /// Make directories for so many threads: `Done`.
    Directories {
        threads: u32,
    },
    /// Make the connections for this load: `Ready`. The load follows when the coordinator says `Go`: `Started`, and `Loaded` after it.
    Load {
        workload: Workload,
        security: Security,
    },
    Go,
    /// End what is under way.
    Stop,
    /// Remove what was made: `Removed`, after whatever is still said of a load. The connection ends then.
    End,
}

/// What a worker makes load on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    pub(super) version: u32,
    pub(super) target: Target,
    pub(super) addresses: Vec<std::net::IpAddr>,
    pub(super) timeout: std::time::Duration,
    pub(super) security: Security,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Begun {
        /// The name of its folder.
        folder: String,
        round_trip_us: Option<f64>,
        negotiated: Negotiated,
    },
    Done,
    Ready,
    Started,
    Loaded {
        measured: Measured,
        negotiated: Negotiated,
    },
    /// It could not be done.
    Failed(Fault),
    /// What was made is removed, or could not be.
    Removed(Option<Fault>),
}
