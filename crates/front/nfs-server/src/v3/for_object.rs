//! What the arguments of all procedures have in common.

use nfs_wire::v3::types::FileHandle;

/// The arguments of a procedure, which always begin with the filehandle of an object.
pub(super) trait ForObject {
    /// The filehandle of the object.
    fn object(&self) -> &FileHandle;
}
