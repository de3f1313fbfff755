//! Changes that anybody makes, also behind the server's back.

use crate::{Node, Result};

/// A number for a directory that is observed; never used again by the same observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObservedId(pub u64);

/// What happened to an entry of a directory that is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It is new: made, or linked.
    Made,
    /// It is gone.
    Removed,
    /// It came from another name. Both halves of a rename have the same number, where both are observed.
    MovedHere(u32),
    /// It went to another name.
    MovedAway(u32),
    /// The data behind it changed.
    Written,
    /// Attributes, permissions or extended attributes of it changed.
    Attributes,
}

/// Something that was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed<'a> {
    /// An entry changed.
    Entry {
        /// In which directory.
        dir: ObservedId,
        /// The entry's name.
        name: &'a [u8],
        /// Whether it is a directory.
        is_dir: bool,
        /// What happened.
        deed: Deed,
    },
    /// So much changed that some of it is not known.
    Lost,
    /// The directory is observed no more: it was asked for, or the directory is gone.
    Ended(ObservedId),
}

/// Observes directories of one store. What the server changes itself is observed too. It ends when dropped.
pub trait Observer: Send + Sync + std::fmt::Debug + 'static {
    /// Observes the entries of a directory, not what lies deeper. One that is observed already keeps its number.
    ///
    /// # Errors
    /// [`crate::Error::OutOfResources`] when the system observes as much as it can, [`crate::Error::NotDirectory`],
    /// [`crate::Error::PermissionDenied`].
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId>;

    /// Observes a directory no more. What waits to be given may still be given.
    fn ignore(&self, dir: ObservedId);

    /// Waits until something is observed, then gives all of it, in order; at once when [`Observer::wake`] was called
    /// since the last time. True when nothing is left that happened before this call returns.
    ///
    /// # Errors
    /// Those of the system: nothing more will be observed.
    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool>;

    /// Ends a [`Observer::wait`], the present or the next one.
    fn wake(&self);
}
