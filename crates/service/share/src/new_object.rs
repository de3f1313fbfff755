//! What a client says of an object that it creates.

use acl::SecurityDescriptor;
use storage::{FileKind, SetAttributes, Want};

/// An object to create.
#[derive(Debug, Clone)]
pub struct NewObject {
    /// The kind of object.
    pub kind: FileKind,
    /// The target of a symbolic link; empty otherwise.
    pub target: Vec<u8>,
    /// The device number of a device node.
    pub device: storage::Device,
    /// The low 12 bits of the mode.
    pub mode: u32,
    /// Bits to clear in the mode if the object inherits no security descriptor.
    pub umask: u32,
    /// Attributes to set at once. Mode and owner among them are checked as for a change by the new owner.
    pub set: SetAttributes,
    /// Which attributes to return.
    pub want: Want,
    /// The security descriptor that the creator assigns, instead of the inherited one.
    pub security: Option<SecurityDescriptor>,
    /// The inherited descriptor gives nobody more than `mode` does, as with POSIX default ACLs.
    pub mode_bounds: bool,
}
