//! The cluster of which the server is a gateway.

use clap::Args;
use gateway::settings::ClusterSettings;
use serde::{Deserialize, Serialize};

use super::restart::named;

/// The pool if none is given.
const POOL: &str = "anabranch";
/// The longest name of a gateway: as that of a machine (RFC 1035 2.3.4).
const NAME_MAX: usize = 63;

/// As given by flags or by a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ClusterGiven {
    /// The name of this server among the gateways of a cluster, which have vservers in CephFS; no other one has it [default: no cluster]
    #[arg(long, value_name = "NAME")]
    cluster_gateway: Option<String>,
    /// The pool of the Ceph cluster in which the gateways agree [default: anabranch]
    #[arg(long, value_name = "POOL")]
    cluster_pool: Option<String>,
}

impl ClusterGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(super) fn combined(self, there: Self) -> Self {
        Self {
            cluster_gateway: self.cluster_gateway.or(there.cluster_gateway),
            cluster_pool: self.cluster_pool.or(there.cluster_pool),
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.cluster_gateway.is_some()
    }

    /// Why the server cannot have this name.
    pub(super) fn wrong_name(&self) -> Option<String> {
        let name = self.cluster_gateway.as_ref()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let is_name = (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_plain);
        (!is_name).then(|| {
            format!("{name:?} cannot be the name of a gateway: it has 1 to {NAME_MAX} letters, digits, hyphens and dots")
        })
    }

    pub(super) fn whole(self) -> Option<ClusterSettings> {
        let pool = self.cluster_pool.unwrap_or_else(|| POOL.to_owned());
        self.cluster_gateway.map(|gateway| ClusterSettings { gateway, pool })
    }

    /// The names of those that differ.
    pub(super) fn differ(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        named([
            ("cluster-gateway", self.cluster_gateway != other.cluster_gateway),
            ("cluster-pool", self.cluster_pool != other.cluster_pool),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_a_plain_name() {
        let wrong = |name: &str| {
            let given = ClusterGiven { cluster_gateway: Some(name.to_owned()), ..ClusterGiven::default() };
            given.wrong_name().is_some()
        };
        assert!(!wrong("node-1.example.org"));
        assert!(wrong("") && wrong("a b") && wrong("a/b") && wrong(&"a".repeat(64)));
        assert_eq!(ClusterGiven::default().wrong_name(), None);
        assert_eq!(ClusterGiven::default().whole(), None);
    }
}
