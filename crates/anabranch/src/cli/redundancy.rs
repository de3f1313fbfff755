//! What of the command line concerns how data is kept: redundancy classes, storage media, and the data pools of Ceph for them.

use std::path::PathBuf;

use clap::Args;

/// What a new share wants of its storage.
#[derive(Debug, Args)]
pub(crate) struct StorageGiven {
    /// The redundancy class of a share in CephFS, whose directory is empty: three copies on different machines (lrs), or in different
    /// zones (zrs) [default: what its directory has]
    #[arg(long, value_name = "lrs|zrs")]
    pub(crate) redundancy: Option<String>,
    /// The storage medium, for which the plan must be: in CephFS, that of the devices; elsewhere what is stated, and not checked
    #[arg(long, value_name = "ssd|hdd")]
    pub(crate) tier: Option<String>,
}

/// Data pools that are to be made.
#[derive(Debug, Args)]
pub(crate) struct ClusterPools {
    /// The redundancy classes, each of which gets a data pool unless there is one that gives it
    #[arg(long, value_name = "lrs,zrs", value_delimiter = ',', required = true)]
    pub(crate) redundancy: Vec<String>,
    /// The storage media, on each of which there is to be such a pool [default: any]
    #[arg(long, value_name = "ssd,hdd", value_delimiter = ',')]
    pub(crate) tier: Vec<String>,
    /// Change nothing, and print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The configuration file of Ceph
    #[arg(long, value_name = "FILE", default_value = "/etc/ceph/ceph.conf")]
    pub(crate) ceph_config: PathBuf,
    /// The user of Ceph, who may make pools: mon 'allow rw', mgr 'allow r'
    #[arg(long, value_name = "client.NAME", default_value = "client.admin")]
    pub(crate) ceph_user: String,
    /// The file system [default: the default one of the Ceph cluster]
    #[arg(long, value_name = "NAME")]
    pub(crate) ceph_file_system: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
