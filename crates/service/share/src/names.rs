//! The names in the directories of a share.

mod change;

pub(crate) use self::change::Changing;
pub use self::change::DirChange;
