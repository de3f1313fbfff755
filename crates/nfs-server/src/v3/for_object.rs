//! What the arguments of every procedure have in common.

use nfs_wire::v3::types::FileHandle;

/// Arguments of a procedure: all begin with the filehandle of the object that it is for.
pub(super) trait ForObject {
    /// That filehandle.
    fn object(&self) -> &FileHandle;
}
