//! The naming of the depot's directories in version 0.1.0: a directory for the root, named by a hash of its handle
//! and birth time, and in it one for each object, named by the object's handle.
//!
//! Such a directory gets a number when its object is first asked for its streams, or when a server that may use handles
//! starts. Directories for another root (the depot was copied) lead to nothing, since nobody knows whose handles those
//! are. They stay, and `share check` lists them.

use std::fmt::Write as _;

use crate::kernel_handle::KernelHandle;

/// The name of the directory for a root.
pub(crate) fn root_name(root: u64) -> String {
    format!("{root:016x}")
}

/// Whether this is the name of a directory for some root.
pub(crate) fn is_root_name(name: &[u8]) -> bool {
    name.len() == 16 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The name of an object's directory: the type of its handle, and the bytes.
fn folder_name(handle: &KernelHandle) -> String {
    handle.bytes.iter().fold(format!("{:x}.", handle.kind), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// The path of an object's directory in the depot.
pub(crate) fn folder_path(root: u64, handle: &KernelHandle) -> String {
    format!("{}/{}", root_name(root), folder_name(handle))
}

/// The handle from which a directory's name was made.
pub(crate) fn handle_of_folder(name: &[u8]) -> Option<KernelHandle> {
    let (kind, hex) = std::str::from_utf8(name).ok()?.split_once('.')?;
    let kind = i32::from_str_radix(kind, 16).ok()?;
    let digits = hex.as_bytes();
    if digits.is_empty() || digits.len() % 2 != 0 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    Some(KernelHandle { kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_handles() {
        let handle = KernelHandle { kind: 0x81, bytes: vec![0x01, 0xab, 0x00, 0xff] };
        assert_eq!(folder_path(0x1f, &handle), "000000000000001f/81.01ab00ff");
        assert_eq!(handle_of_folder(b"81.01ab00ff"), Some(handle));
        for other in [&b"81"[..], b"81.", b"81.0", b"81.0g", b".01", b"x.01", b"81.+1", b"\xff.01"] {
            assert_eq!(handle_of_folder(other), None, "{other:?}");
        }
        assert!(is_root_name(b"000000000000001f"));
        assert!(!is_root_name(b"000000000000001F") && !is_root_name(b"1f"));
    }
}
