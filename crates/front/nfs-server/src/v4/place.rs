//! The place to which a filehandle leads.

use super::absent::Absent;
use crate::object::Object;

/// The place of a filehandle.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The root of the pseudo file system.
    Root,
    /// An object of a share.
    Object(Object),
    /// In a file system that another server has.
    Absent(Absent),
}
