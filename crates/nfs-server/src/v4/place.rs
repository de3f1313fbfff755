//! Where a filehandle leads.

use crate::object::Object;

/// Where a filehandle is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The root of the pseudo file system.
    Root,
    /// An object of a share.
    Object(Object),
}
