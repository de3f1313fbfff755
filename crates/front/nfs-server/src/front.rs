//! NFS as shares see it.

use share::{DirectoryReport, Front, Patience};

/// NFSv3 and MOUNT. A call that would wait for long is answered NFS3ERR_JUKEBOX (RFC 1813 2.6), and the client retries.
/// The attributes of a changed directory go into `wcc_data` (2.6). A user who may execute a program may read it (4.4).
pub static NFS3: Front =
    Front { name: "nfs3", patience: Patience::UntilRetry, directories: DirectoryReport::Attributes };

/// NFSv4. An operation that would wait for long is answered NFS4ERR_DELAY (RFC 8881 15.1.1.3), and the client
/// retries. The change of a directory goes into `change_info4` (3.3.8).
pub static NFS4: Front =
    Front { name: "nfs4", patience: Patience::UntilRetry, directories: DirectoryReport::Change };
