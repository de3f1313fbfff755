//! An object that an NFS client creates.

use share::NewObject;
use storage::{Device, FileKind, SetAttributes, Want};

/// The mode of a file whose creator states none.
const FILE_MODE: u32 = 0o600;
/// The mode of a directory whose creator states none.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of a symbolic link itself, which no program evaluates: POSIX systems show this value.
const SYMLINK_MODE: u32 = 0o777;

/// A new object of this kind with the attributes that its creator wants.
pub(crate) fn new_object(kind: FileKind, mut set: SetAttributes) -> NewObject {
    let mode = set.mode.take();
    let mode = match kind {
        FileKind::Symlink => SYMLINK_MODE,
        FileKind::Directory => mode.unwrap_or(DIRECTORY_MODE),
        _ => mode.unwrap_or(FILE_MODE),
    };
    set.size = set.size.filter(|size| kind == FileKind::Regular && *size != 0);
    NewObject {
        kind,
        target: Vec::new(),
        device: Device::default(),
        mode,
        umask: 0,
        set,
        want: Want::empty(),
        security: None,
        mode_bounds: true,
    }
}
