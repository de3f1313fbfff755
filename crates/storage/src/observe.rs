//! Changes that anybody makes, also behind the server's back.

use crate::{Node, NodeRef, Result};

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

/// What is no longer known for certain about directories that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncertain<'a> {
    /// What a name of the directory stands for, if anything; and the attributes of the directory.
    Name {
        /// Which directory.
        dir: ObservedId,
        /// The name.
        name: &'a [u8],
        /// Whether a directory went from that name: it may be gone.
        is_dir_gone: bool,
        /// How many changes these were: with one, nothing else has happened to the name.
        changes: u32,
    },
    /// The attributes and the security descriptor of the directory.
    Itself(ObservedId),
    /// The directory was moved: it has another one above it. Its attributes too.
    Moved(ObservedId),
    /// Everything: no directory is followed any more.
    All,
}

/// Tells, when asked, what others have changed in directories: for who keeps what it has read of them, and must not be
/// wrong about it. Unlike an [`Observer`] it can be relied on: **a change that was complete before [`Feed::drain`] was
/// called has been given when that returns**, whoever made it, also when another thread's call has taken it. Where a store
/// cannot promise that (a file system that other machines change too), it has no feed.
///
/// Of a directory all names and attributes are covered but the time of last access. Of what lies in it only the names are:
/// files change without a word (through a mapping, through a name in another directory).
pub trait Feed: Send + Sync + std::fmt::Debug + 'static {
    /// Follows a directory from now on, under a new number; one that it had before means nothing any more.
    ///
    /// # Errors
    /// [`crate::Error::OutOfResources`] when no more can be followed, [`crate::Error::NotDirectory`].
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId>;

    /// Follows a directory no more.
    fn unfollow(&self, dir: ObservedId);

    /// Whether a directory is followed still: false once [`Uncertain::All`] was given.
    fn is_followed(&self, dir: ObservedId) -> bool;

    /// Directories that may be followed at a time.
    fn directories_max(&self) -> usize;

    /// Gives what has become uncertain, in the order in which it happened. Never waits for a change. `each` must not call
    /// the feed.
    fn drain(&self, each: &mut dyn FnMut(Uncertain<'_>));
}
