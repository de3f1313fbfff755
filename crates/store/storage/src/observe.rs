//! Changes to directories, including those that other programs make.

use crate::{Node, NodeRef, Result};

/// A number for a directory that is observed. An observer never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObservedId(pub u64);

/// What happened to an entry of an observed directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The entry is new: created or linked.
    Made,
    /// The entry was removed.
    Removed,
    /// The entry was renamed from another name. Both halves of a rename have the same number, if both are observed.
    MovedHere(u32),
    /// The entry was renamed to another name.
    MovedAway(u32),
    /// The data of the object changed.
    Written,
    /// Attributes, permissions or extended attributes of the object changed.
    Attributes,
}

/// Something that was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed<'a> {
    /// An entry changed.
    Entry {
        /// The directory of the entry.
        dir: ObservedId,
        /// The name of the entry.
        name: &'a [u8],
        /// Whether the object is a directory.
        is_dir: bool,
        /// What happened.
        deed: Deed,
    },
    /// Changes were lost, because there were too many.
    Lost,
    /// The directory is no longer observed: the caller asked for that, or the directory is gone.
    Ended(ObservedId),
}

/// Observes directories of one store. Changes by the server itself are observed too. Observation ends when this is
/// dropped.
pub trait Observer: Send + Sync + std::fmt::Debug + 'static {
    /// Starts to observe the entries of a directory, but not of directories below it. A directory that is already
    /// observed keeps its number.
    ///
    /// # Errors
    /// [`crate::Error::OutOfResources`] when the system's limit is reached, [`crate::Error::NotDirectory`],
    /// [`crate::Error::PermissionDenied`].
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId>;

    /// Stops observing a directory. Changes that are already queued may still be reported.
    fn ignore(&self, dir: ObservedId);

    /// Waits until something is observed, then passes all of it to `each`, in order. Returns at once if
    /// [`Observer::wake`] was called since the last time. Returns true when everything that happened before the return
    /// has been passed on.
    ///
    /// # Errors
    /// Those of the system: nothing more will be observed.
    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool>;

    /// Ends the current or the next [`Observer::wait`].
    fn wake(&self);
}

/// What is no longer certain about directories that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncertain<'a> {
    /// Which object a name of the directory stands for, if any; and the attributes of the directory.
    Name {
        /// The directory.
        dir: ObservedId,
        /// The name.
        name: &'a [u8],
        /// Whether a directory was moved away from that name: it may be gone.
        is_dir_gone: bool,
        /// How many changes there were. If there was one, nothing else has happened to the name.
        changes: u32,
    },
    /// The attributes and the security descriptor of the directory.
    Itself(ObservedId),
    /// The directory was moved: it has another parent. Its attributes are uncertain, too.
    Moved(ObservedId),
    /// Everything: no directory is followed any more.
    All,
}

/// Reports, when asked, what others have changed in directories. A feed is for callers that cache what they have read
/// of directories and must not be wrong about it. Unlike an [`Observer`] it is reliable: **a change that was complete
/// before [`Feed::drain`] was called has been reported when that call returns**, whoever made the change, and even if
/// another thread's call has received it. A store that cannot promise that (a file system that other machines change
/// too) has no feed.
///
/// All names and attributes of a directory are covered, except the access time. Of the objects in the directory, only
/// the names are covered: files can change without notice (through a mapping, or through a name in another directory).
pub trait Feed: Send + Sync + std::fmt::Debug + 'static {
    /// Starts to follow a directory, under a new number. A number that it had before is no longer valid.
    ///
    /// # Errors
    /// [`crate::Error::OutOfResources`] when no more can be followed, [`crate::Error::NotDirectory`].
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId>;

    /// Stops following a directory.
    fn unfollow(&self, dir: ObservedId);

    /// Whether a directory is still followed: false once [`Uncertain::All`] was reported.
    fn is_followed(&self, dir: ObservedId) -> bool;

    /// How many directories can be followed at a time.
    fn directories_max(&self) -> usize;

    /// Passes what has become uncertain to `each`, in the order in which it happened. Never waits for a change. `each`
    /// must not call the feed.
    fn drain(&self, each: &mut dyn FnMut(Uncertain<'_>));
}
