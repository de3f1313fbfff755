//! The threads that work in the background while a gateway serves.

use std::io;
use std::sync::Arc;

use share::ShareTable;
use state::State;

use crate::abandoned::Remover;
use crate::administration::Administration;
use crate::control_tls::Identity;
use crate::held_up::HeldUp;
use crate::renewal::Renewal;
use crate::replication::Replicator;
use crate::snapshots::{Guard, Keeper};
use crate::upkeep::Upkeep;
use crate::vservers::Vservers;

/// What these threads look at.
pub(crate) struct Served {
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) state: Arc<State>,
    pub(crate) vservers: Arc<Vservers>,
}

/// The running threads. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    _held_up: HeldUp,
    _upkeep: Upkeep,
    _keeper: Keeper,
    _guard: Guard,
    _replicator: Replicator,
    _remover: Remover,
}

impl Background {
    /// # Errors
    /// The system lacks threads.
    pub(crate) fn start(
        Served { shares, state, vservers }: Served,
        administration: &Arc<Administration>,
        (identity, renewal): (Option<Arc<Identity>>, Option<Renewal>),
        shards: net::Keeper,
    ) -> io::Result<Self> {
        Ok(Self {
            _held_up: HeldUp::watch(shards, Arc::clone(&shares), Arc::clone(&vservers))?,
            _upkeep: Upkeep::start(shares, state, vservers, identity, renewal)?,
            _keeper: Keeper::start(Arc::clone(administration), administration.policy_runners())?,
            _guard: Guard::start(Arc::clone(administration))?,
            _replicator: Replicator::start(Arc::clone(administration))?,
            _remover: Remover::start(Arc::clone(administration))?,
        })
    }
}
