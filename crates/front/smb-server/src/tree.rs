//! TreeConnect: a session's connection to a share. [MS-SMB2] 3.3.1.9.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use share::Share;
use smb_wire::AccessMask;

use crate::admission::TreeAdmission;
use crate::name::path_to_client;

/// The share of named pipes.
pub(crate) const IPC: &str = "IPC$";

/// The target of a tree connect.
#[derive(Debug, Clone)]
pub(crate) enum TreeTarget {
    /// A share of files.
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
    pub(crate) target: TreeTarget,
    /// TreeConnect.MaximalAccess
    pub(crate) maximal_access: AccessMask,
    /// Share.EncryptData: requests must be encrypted.
    pub(crate) encrypt_data: bool,
    /// How the client was admitted.
    pub(crate) admitted: TreeAdmission,
    /// The root of the tree connect, if it is the home directory of the user: a name in the share's directory.
    pub(crate) home: Option<Vec<u8>>,
    /// Set when the tree connect has ended.
    ended: AtomicBool,
}

impl Tree {
    /// A new tree connect.
    pub(crate) fn new(
        id: u32,
        target: TreeTarget,
        maximal_access: AccessMask,
        encrypt_data: bool,
        admitted: TreeAdmission,
        home: Option<Vec<u8>>,
    ) -> Self {
        Self { id, target, maximal_access, encrypt_data, admitted, home, ended: AtomicBool::new(false) }
    }

    /// The share's path of what a client names by this path, which begins at the root of the tree connect; both with
    /// backslashes.
    pub(crate) fn path_in_share(&self, path: &str) -> String {
        let home = self.home.as_deref().map(path_to_client);
        match home {
            None => path.to_owned(),
            Some(home) if path.is_empty() => home,
            Some(home) => format!("{home}\\{path}"),
        }
    }

    /// A path from the share's directory as a path from the root of the tree connect; None: it leads elsewhere.
    pub(crate) fn path_from_root(&self, path: Vec<u8>) -> Option<Vec<u8>> {
        let Some(home) = &self.home else { return Some(path) };
        match path.strip_prefix(&home[..])? {
            [] => Some(Vec::new()),
            [b'/', below @ ..] => Some(below.to_vec()),
            _ => None,
        }
    }

    /// Ends the tree connect: from now on nothing can be opened through it.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the tree connect has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether no changes may be made through the tree connect.
    pub(crate) fn is_read_only(&self) -> bool {
        !self.maximal_access.contains(AccessMask::WRITE_DATA)
    }

    /// Whether the tree connect leads to this share.
    pub(crate) fn leads_to(&self, share: &Arc<Share>) -> bool {
        matches!(&self.target, TreeTarget::Disk(own) if Arc::ptr_eq(own, share))
    }

    /// Whether the share of the tree connect is no longer served.
    pub(crate) fn is_of_withdrawn_share(&self) -> bool {
        matches!(&self.target, TreeTarget::Disk(share) if share.is_withdrawn())
    }
}
