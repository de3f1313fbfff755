//! The mounts that clients have reported.

use std::collections::VecDeque;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Mounts that are remembered for DUMP; with more the oldest are forgotten.
pub const MOUNTS_MAX: usize = 4096;

/// A mount reported by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The client.
    pub client: IpAddr,
    /// The path that the client asked for.
    pub path: String,
}

/// The mounts that clients have reported and not ended.
#[derive(Debug, Default)]
pub(crate) struct MountTable(Mutex<VecDeque<Mounted>>);

impl MountTable {
    pub(crate) fn all(&self) -> Vec<Mounted> {
        self.0.lock().iter().cloned().collect()
    }

    pub(super) fn remember(&self, mounted: Mounted) {
        let mut mounts = self.0.lock();
        if !mounts.contains(&mounted) {
            if mounts.len() >= MOUNTS_MAX {
                mounts.pop_front();
            }
            mounts.push_back(mounted);
        }
    }

    /// Forgets the mounts of a share that is no longer served.
    pub(crate) fn forget_share(&self, name: &str) {
        let leads_there = |path: &str| path.split('/').find(|part| !matches!(*part, "" | ".")) == Some(name);
        self.0.lock().retain(|mounted| !leads_there(&mounted.path));
    }

    /// Forgets a client's mount of a path, or all of its mounts.
    pub(super) fn forget(&self, client: IpAddr, path: Option<&[u8]>) {
        let gone = |mounted: &Mounted| {
            mounted.client == client && path.is_none_or(|path| mounted.path == String::from_utf8_lossy(path))
        };
        self.0.lock().retain(|mounted| !gone(mounted));
    }
}
