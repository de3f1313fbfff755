//! Where the load of a run comes from: this process, or workers.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::engine::Measured;
use crate::fault::Result;
use crate::result::Negotiated;
use crate::security::Security;
use crate::site::{Access, Site};
use crate::target::Target;
use crate::workers::Coordinator;
use crate::workload::Workload;

/// Where the load of a run comes from, with the folder or folders that it works in.
pub(crate) enum Grounds<'a> {
    Here(Box<Site<'a>>),
    Workers { coordinator: Coordinator, round_trip_us: Option<f64>, negotiated: Box<Negotiated> },
}

impl<'a> Grounds<'a> {
    /// Makes the folders.
    pub(crate) fn make(target: &'a Target, access: &'a Access) -> Result<Self> {
        let Some(workers) = &access.workers else {
            return Ok(Self::Here(Box::new(Site::make(target, access)?)));
        };
        let (coordinator, round_trip_us, negotiated) = Coordinator::make(target, access, workers)?;
        Ok(Self::Workers { coordinator, round_trip_us, negotiated: Box::new(negotiated) })
    }

    /// The time of the smallest request, in microseconds, and what was agreed on.
    pub(crate) fn round_trip(&self) -> Result<(Option<f64>, Negotiated)> {
        match self {
            Self::Here(site) => site.round_trip(),
            Self::Workers { round_trip_us, negotiated, .. } => Ok((*round_trip_us, (**negotiated).clone())),
        }
    }

    pub(crate) fn make_files(&mut self, sizes: &[u64], block: u64, stop: &AtomicBool) -> Result<()> {
        match self {
            Self::Here(site) => site.make_files(sizes, block, stop),
            Self::Workers { coordinator, .. } => coordinator.make_files(sizes, block, stop),
        }
    }

    pub(crate) fn make_thread_directories(&mut self, threads: u32) -> Result<()> {
        match self {
            Self::Here(site) => site.make_thread_directories(threads),
            Self::Workers { coordinator, .. } => coordinator.make_thread_directories(threads),
        }
    }

    /// Has this machine and the server forget the files; false where that cannot be done.
    pub(crate) fn empty_caches(&self) -> Result<bool> {
        match self {
            Self::Here(site) => site.empty_caches(),
            Self::Workers { .. } => Ok(false),
        }
    }

    pub(crate) fn load(
        &mut self,
        workload: &Workload,
        security: &Security,
        stop: &AtomicBool,
    ) -> Result<(Measured, Negotiated)> {
        match self {
            Self::Here(site) => site.load(workload, security, false, stop),
            Self::Workers { coordinator, .. } => coordinator.load(workload, security, stop),
        }
    }

    /// What belongs beside the figures, and what was not as it should be.
    pub(crate) fn remarks(&self) -> (BTreeMap<String, String>, Option<String>) {
        match self {
            Self::Here(_) => (BTreeMap::new(), None),
            Self::Workers { coordinator, .. } => (coordinator.settings(), coordinator.not_honoured()),
        }
    }

    /// Removes all that the run has made.
    pub(crate) fn remove(self) -> Result<()> {
        match self {
            Self::Here(site) => site.remove(),
            Self::Workers { coordinator, .. } => coordinator.remove(),
        }
    }
}
