//! The place to which a filehandle leads.

use crate::object::Object;

/// The place of a filehandle.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The root of the pseudo file system.
    Root,
    /// An object of a share.
    Object(Object),
}
