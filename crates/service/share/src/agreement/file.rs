//! Files to work on, and whether the opens, locks and caches of others allow the work.

use std::sync::Arc;

use accounting::Used;
use file_state::{Access, Actor, ByteRange, Holder, IoConflict, Operation, ReserveError};
use storage::NodeRef;

use super::Agreement;
use super::caching::{Answering, Taken};
use super::files::OpenFile;
use super::open::Open;
use crate::{Error, Result};

/// A file to work on: through an open, or without one.
#[derive(Debug, Clone)]
pub enum File {
    /// Access was checked when it was opened.
    Open(Arc<Open>),
    /// Access is checked for each call. Where permission bits decide, the owner may always read and write: the client
    /// checked the mode when its user opened the file.
    Stateless(NodeRef),
}

impl File {
    /// The object.
    #[must_use]
    pub fn node(&self) -> &NodeRef {
        match self {
            Self::Open(open) => open.node(),
            Self::Stateless(node) => node,
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        match self {
            Self::Open(open) if matches!(open.holder(), Holder::Delegation(_)) => Actor::Advised(open.key()),
            Self::Open(open) => Actor::Open(open.key()),
            Self::Stateless(_) => Actor::Stateless,
        }
    }

    /// The user or client that the work is accounted to.
    pub(crate) fn used(&self) -> Used {
        let open = match self {
            Self::Open(open) => Some(open.key().0),
            Self::Stateless(_) => None,
        };
        Used { file: self.node().id().number, open }
    }

    /// The caching grant on the file's directory that this work does not break.
    pub(crate) fn directory(&self) -> Option<Holder> {
        match self {
            Self::Open(open) => open.directory(),
            Self::Stateless(_) => None,
        }
    }

    /// The caching grant on the file that this work does not break.
    pub(crate) fn holder(&self) -> Option<Holder> {
        match self {
            Self::Open(open) => Some(open.holder()),
            Self::Stateless(_) => None,
        }
    }
}

impl Agreement {
    /// Asks the file's state, if the file is open anywhere, whether these bytes may be read or written, and breaks
    /// conflicting grants. Returns what to wait for, if anything. `client` is the grant of a caller without an open.
    pub(crate) fn check_range(
        &self,
        client: Option<Holder>,
        file: &File,
        range: ByteRange,
        operation: Operation,
    ) -> Result<Option<Answering>> {
        if let (File::Stateless(_), Some(answering)) = (file, self.reclaims.held_back()) {
            return Ok(Some(answering));
        }
        let timeout = self.break_timeout;
        let answer = self.files.with(file.node().id(), |entry| {
            match operation {
                Operation::Read => entry.state.check_read(file.actor(), range)?,
                _ => entry.state.check_write(file.actor(), range)?,
            }
            Ok::<_, IoConflict>(entry.take_back(file.holder().or(client), operation, timeout))
        });
        match answer {
            None => Ok(None),
            Some(taken) => Ok(self.deliver(taken?)),
        }
    }

    /// Checks that truncating or extending a file affects no bytes locked by others.
    pub(crate) fn check_cut(&self, file: &File, from: u64, to: u64) -> Result<()> {
        let range = ByteRange::new(from.min(to), from.abs_diff(to))?;
        let ask = |entry: &mut OpenFile| entry.state.check_write(file.actor(), range);
        self.files.with(file.node().id(), ask).unwrap_or(Ok(())).map_err(Error::from)
    }

    /// Whether all opens of the object allow others to delete or rename it. Returns what to wait for, if anything: clients
    /// that keep the object open only for later use close it, or give up the grants that depend on its name.
    pub(crate) fn make_removable(
        &self,
        node: &NodeRef,
        own: Option<Holder>,
        operation: Operation,
    ) -> Result<Option<Answering>> {
        if let Some(answering) = self.reclaims.held_back() {
            return Ok(Some(answering));
        }
        let timeout = self.break_timeout;
        let asked = self.files.with(node.id(), |entry| match entry.state.check_access(Access::DELETE) {
            Ok(()) => (Ok(()), entry.take_back(own, operation, timeout)),
            Err(refused @ ReserveError::Sharing { holder }) => {
                let taken = entry.take_back(own, Operation::SharingViolation, timeout);
                (Err(refused), taken.and(entry.evict_late(entry.state.holder_of(holder), timeout)))
            }
            Err(refused) => (Err(refused), Taken::default()),
        });
        let Some((allowed, taken)) = asked else { return Ok(None) };
        match self.deliver(taken) {
            Some(answering) => Ok(Some(answering)),
            None => Ok(allowed.map(|()| None)?),
        }
    }
}
