//! Modules of `vfs objects`: what it means that there are none here.

/// What a module means for access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    /// The server does the same by itself.
    BuiltIn,
    /// A feature is missing.
    Feature,
    /// Deleted files are kept.
    RecycleBin,
    /// The module refuses changes.
    ReadOnly,
    /// Without the module, more may be permitted, or other files are served.
    Guards(&'static str),
}

const ACL: &str =
    "keeps access control lists of its own, which are not read: check the permissions of the files";
const ELSEWHERE: &str = "serves files that are not in a directory of this machine";
const UNKNOWN: &str = "is unknown here, and may restrict access";

/// What a module means.
pub(super) fn module(name: &str) -> Module {
    // A module may have an instance name: recycle:share.
    let name = name.split(':').next().unwrap_or(name).to_ascii_lowercase();
    match name.as_str() {
        "streams_xattr" | "streams_depot" | "fruit" | "catia" | "aio_fork" | "aio_pthread" | "aio_linux"
        | "io_uring" | "preopen" | "cacheprime" | "readahead" | "prealloc" | "fileid" | "commit"
        | "dirsort" | "time_audit" | "syncops" | "xattr_tdb" | "posix_eadb" | "cap" | "crossrename"
        | "linux_xfs_sgid" | "default_quota" => Module::BuiltIn,
        "recycle" => Module::RecycleBin,
        "full_audit" | "audit" | "extd_audit" | "shadow_copy" | "shadow_copy2" | "btrfs" | "snapper"
        | "shell_snap" | "netatalk" | "media_harmony" | "unityed_media" | "widelinks" | "fake_perms"
        | "offline" => Module::Feature,
        "worm" | "readonly" => Module::ReadOnly,
        "acl_xattr" | "acl_tdb" | "nfs4acl_xattr" | "zfsacl" | "solarisacl" | "hpuxacl" | "aixacl"
        | "aixacl2" | "tru64acl" | "gpfs" | "afsacl" => Module::Guards(ACL),
        "glusterfs" | "glusterfs_fuse" | "ceph" | "ceph_new" | "ceph_snapshots" | "dfs_samba4"
        | "expand_msdfs" => Module::Guards(ELSEWHERE),
        "virusfilter" => Module::Guards("refuses infected files"),
        _ => Module::Guards(UNKNOWN),
    }
}
