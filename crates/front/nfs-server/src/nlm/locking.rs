//! Whether clients of NFSv3 may lock by NLM, and how.

use std::sync::Arc;

use nfs_proto::nlm::hosts::HostLimits;

use super::records::HostRecords;

/// Settings of NLM and NSM.
#[derive(Debug, Clone)]
pub struct NetworkLocks {
    /// How much hosts may hold.
    pub limits: HostLimits,
    /// The store that records hosts, which may then reclaim their locks after a restart. Without it they may not.
    pub records: Option<Arc<dyn HostRecords>>,
    /// The name by which this machine calls itself when it tells hosts that the server has restarted.
    pub host_name: String,
}
