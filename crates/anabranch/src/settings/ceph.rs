//! The Ceph cluster in which shares may lie.

use std::path::PathBuf;

use clap::Args;
use gateway::settings::CephPlace;
use serde::{Deserialize, Serialize};

use super::restart::named;

/// As given by flags or by a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct CephGiven {
    /// Ceph's configuration file, for shares whose directory is cephfs:/PATH [default: /etc/ceph/ceph.conf]
    #[arg(long, value_name = "FILE")]
    ceph_config: Option<PathBuf>,
    /// The user of Ceph whose key the server uses [default: client.anabranch]
    #[arg(long, value_name = "client.NAME")]
    ceph_user: Option<String>,
    /// The file system of the Ceph cluster [default: the default one of the cluster]
    #[arg(long, value_name = "NAME")]
    ceph_file_system: Option<String>,
}

impl CephGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(super) fn combined(self, there: Self) -> Self {
        Self {
            ceph_config: self.ceph_config.or(there.ceph_config),
            ceph_user: self.ceph_user.or(there.ceph_user),
            ceph_file_system: self.ceph_file_system.or(there.ceph_file_system),
        }
    }

    pub(super) fn whole(self) -> CephPlace {
        let default = CephPlace::default();
        CephPlace {
            configuration: self.ceph_config.unwrap_or(default.configuration),
            user: self.ceph_user.unwrap_or(default.user),
            file_system: self.ceph_file_system,
        }
    }

    /// The names of those that differ.
    pub(super) fn differ(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        named([
            ("ceph-config", self.ceph_config != other.ceph_config),
            ("ceph-user", self.ceph_user != other.ceph_user),
            ("ceph-file-system", self.ceph_file_system != other.ceph_file_system),
        ])
    }
}
