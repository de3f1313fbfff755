//! In which snapshots a path leads to something. That never changes, so nothing that is remembered is wrong; it is forgotten to
//! save memory.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::SnapshotId;

/// Paths that are remembered.
const PATHS_MAX: usize = 256;
/// A path is forgotten when nobody has asked for it for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Whether a path leads to something in each of these snapshots.
pub(crate) type Leads = BTreeMap<SnapshotId, bool>;

/// The paths that were asked for lately.
#[derive(Default)]
pub(crate) struct KnownPaths {
    /// Guards what is known of each path, and when it was last asked for.
    known: Mutex<HashMap<Vec<u8>, (Leads, Instant)>>,
}

impl KnownPaths {
    /// What is known of a path.
    pub(crate) fn known(&self, path: &[u8]) -> Leads {
        self.known.lock().get(path).map(|(leads, _)| leads.clone()).unwrap_or_default()
    }

    /// Remembers what is known of a path.
    pub(crate) fn remember(&self, path: &[u8], leads: Leads, now: Instant) {
        let mut known = self.known.lock();
        known.retain(|_, (_, used)| now.saturating_duration_since(*used) < FORGOTTEN_AFTER);
        if known.len() >= PATHS_MAX
            && !known.contains_key(path)
            && let Some(oldest) =
                known.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone())
        {
            known.remove(&oldest);
        }
        known.insert(path.to_vec(), (leads, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_lately_is_known() {
        let (paths, now) = (KnownPaths::default(), Instant::now());
        let leads = Leads::from([(SnapshotId(1), true), (SnapshotId(2), false)]);
        assert_eq!(paths.known(b"a"), Leads::new());
        paths.remember(b"a", leads.clone(), now);
        assert_eq!(paths.known(b"a"), leads);
        paths.remember(b"b", Leads::new(), now + FORGOTTEN_AFTER);
        assert_eq!(paths.known(b"a"), Leads::new());
    }

    #[test]
    fn the_path_that_nobody_asks_for_gives_way() {
        let (paths, now) = (KnownPaths::default(), Instant::now());
        let leads = Leads::from([(SnapshotId(1), true)]);
        let name = |number: usize| number.to_string().into_bytes();
        for number in 0..=PATHS_MAX {
            let at = now + Duration::from_millis(number as u64);
            paths.remember(&name(number), leads.clone(), at);
        }
        assert_eq!(paths.known(&name(0)), Leads::new());
        assert!([1, PATHS_MAX].iter().all(|number| paths.known(&name(*number)) == leads));
    }
}
