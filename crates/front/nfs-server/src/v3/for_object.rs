//! The filehandle with which the arguments of all procedures begin.

use nfs_wire::v3::types::FileHandle;

/// The arguments of a procedure, which always begin with the filehandle of an object.
pub(super) trait ForObject {
    /// The filehandle of the object.
    fn object(&self) -> &FileHandle;
}
