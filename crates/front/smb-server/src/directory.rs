//! Who SIDs and names stand for.

use std::fmt;
use std::pin::Pin;

use acl::Sid;
use smb_wire::lsarpc::SidKind;

/// Somebody, or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The SID. Without its last part it is that of the domain.
    pub sid: Sid,
    /// What it stands for.
    pub kind: SidKind,
    /// The domain: a server, or another set of names such as `Unix User`.
    pub domain: String,
    /// The name in the domain.
    pub name: String,
}

/// An account of this server, as lists of accounts show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountEntry {
    /// The SID: that of the server and a RID.
    pub sid: Sid,
    /// The name.
    pub name: String,
    /// The user on the server's machine.
    pub uid: u32,
    /// Whether the account may not log on.
    pub disabled: bool,
}

/// What look-ups return when they are done: one for each SID or name, in their order; None for nobody, or if it is not
/// known in time.
pub type LookUp = Pin<Box<dyn Future<Output = Vec<Option<Known>>>>>;

/// Knows who SIDs and names stand for, apart from the well-known SIDs. Never blocks.
pub trait Directory: fmt::Debug + Send + Sync {
    /// The SID of the server, from which those of its accounts are made.
    fn machine(&self) -> Option<Sid>;

    /// The accounts of this server that have a SID, in any order.
    fn accounts(&self) -> Vec<AccountEntry>;

    /// Who these SIDs stand for.
    fn of_sids(&self, sids: Vec<Sid>) -> LookUp;

    /// Who these names stand for: `alice`, or `DOMAIN\\alice`.
    fn of_names(&self, names: Vec<String>) -> LookUp;
}

/// Knows nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoDirectory;

impl Directory for NoDirectory {
    fn machine(&self) -> Option<Sid> {
        None
    }

    fn accounts(&self) -> Vec<AccountEntry> {
        Vec::new()
    }

    fn of_sids(&self, sids: Vec<Sid>) -> LookUp {
        Box::pin(async move { vec![None; sids.len()] })
    }

    fn of_names(&self, names: Vec<String>) -> LookUp {
        Box::pin(async move { vec![None; names.len()] })
    }
}
