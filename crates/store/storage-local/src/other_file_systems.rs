//! Mount points and Btrfs subvolumes below the root: they are refused, and the log says why.
//!
//! They are file systems of their own, whose numbers may be those of objects below the root. Clients would take one
//! object for the other.

use std::collections::HashSet;

use parking_lot::Mutex;
use rustix::fs::StatxAttributes;
use storage::Name;

use crate::attributes::{device_of, stat_name};
use crate::node::LocalNode;

/// How many paths are remembered. The log says nothing of others.
const PATHS_MAX: usize = 256;

/// The paths of which the log has a line.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Guards the paths.
    paths: Mutex<HashSet<Vec<u8>>>,
}

impl Told {
    /// Whether the path is new, and there is room for it.
    fn is_first(&self, path: Vec<u8>) -> bool {
        let mut paths = self.paths.lock();
        paths.len() < PATHS_MAX && paths.insert(path)
    }
}

impl LocalNode {
    /// Writes the reason why an entry of this directory is refused to the log, once for each path, if the entry is
    /// another file system.
    pub(crate) fn tell_other_file_system(&self, name: Name<'_>) {
        let Ok(stat) = stat_name(&self.fd, name.as_bytes()) else { return };
        let is_mounted = stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        if !is_mounted && device_of(&stat) == self.store.device {
            return;
        }
        let Ok(above) = self.path_below_root() else { return };
        let path = [&above[..], if above.is_empty() { b"" } else { b"/" }, name.as_bytes()].concat();
        if self.store.told.is_first(path.clone()) {
            tracing::warn!(
                directory = %path.escape_ascii(),
                "clients cannot enter this directory of the share: a file system is mounted there, or it is a Btrfs \
                 subvolume; declare it as a share of its own, at a place outside of this share's directory"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_told_once_and_there_is_an_end() {
        let told = Told::default();
        assert!(told.is_first(b"a".to_vec()));
        assert!(!told.is_first(b"a".to_vec()));
        let more = (0..1000_u32).filter(|n| told.is_first(n.to_le_bytes().to_vec())).count();
        assert_eq!(more, PATHS_MAX - 1);
    }
}
