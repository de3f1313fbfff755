//! How many descriptors the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The value used where the kernel sets no limit.
const DESCRIPTORS: u64 = 1 << 20;

/// Raises the process's soft limit of open descriptors to the hard limit, and returns the resulting limit. The program
/// calls this once, before it opens stores.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!("the limit of open files stays at {:?}: {errno}", limit.current);
    }
    descriptor_limit()
}

/// How many descriptors the process may have open.
fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS)
}

/// How many nodes a store keeps by default: half of the descriptors are for nodes, two for each.
pub(crate) fn nodes_max() -> usize {
    usize::try_from(descriptor_limit() / 4).unwrap_or(usize::MAX).max(16)
}
