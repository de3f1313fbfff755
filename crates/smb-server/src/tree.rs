//! TreeConnect: a session's connection to a share. [MS-SMB2] 3.3.1.9.

use std::sync::Arc;

use share::Share;
use smb_wire::AccessMask;

/// What a tree connect leads to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Files.
    Disk(Arc<Share>),
    /// Named pipes: IPC$.
    Pipe,
}

/// A tree connect.
#[derive(Debug)]
pub(crate) struct Tree {
    /// TreeConnect.TreeId
    pub(crate) id: u32,
    /// TreeConnect.Share
    pub(crate) target: Target,
    /// TreeConnect.MaximalAccess
    pub(crate) maximal_access: AccessMask,
    /// Share.EncryptData: requests must be encrypted.
    pub(crate) encrypt_data: bool,
}
