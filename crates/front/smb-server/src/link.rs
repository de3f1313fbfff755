//! Symbolic links: the text that the store has, and the target in a reparse point. [MS-FSCC] 2.1.2.4.
//!
//! The text is that of Unix, so that NFS clients and local programs follow the link, too. A relative target has other
//! separators and private characters over SMB, as all names have ([`crate::name`]). An absolute target leads out of the share
//! and means the client's own files: each kind of client understands its own (`/a/b`, `\??\C:\a\b`), so that it is kept as it
//! was written.

use std::borrow::Cow;

use share::LINK_TARGET_BYTES_MAX;
use smb_wire::codec::Utf16;
use smb_wire::fscc::reparse::{ReparsePoint, SYMLINK_FLAG_RELATIVE};
use smb_wire::{NtStatus, WireError};

use crate::name;

/// The beginning of an absolute target of Windows.
const NT_PREFIX: &str = r"\??\";
/// The part after that of a target on another server.
const NT_UNC: &str = r"UNC\";

/// The target of a stored link, as SMB clients get it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinkTarget {
    substitute: String,
    print: String,
    is_relative: bool,
}

impl LinkTarget {
    /// The target of a link with this text.
    ///
    /// # Errors
    /// STATUS_IO_REPARSE_DATA_INVALID for a text that is not UTF-8.
    pub(crate) fn of(text: &[u8]) -> Result<Self, NtStatus> {
        let text = std::str::from_utf8(text).map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)?;
        let (substitute, print) = if let Some(of_windows) = text.strip_prefix(NT_PREFIX) {
            let print = match of_windows.strip_prefix(NT_UNC) {
                Some(unc) => format!(r"\\{unc}"),
                None => of_windows.to_owned(),
            };
            (text.to_owned(), print)
        } else if text.starts_with('/') {
            (text.to_owned(), text.to_owned())
        } else {
            let target: Vec<_> = text.split('/').map(shown).collect();
            let target = target.join(r"\");
            return Ok(Self { substitute: target.clone(), print: target, is_relative: true });
        };
        Ok(Self { substitute, print, is_relative: false })
    }

    /// The target.
    pub(crate) fn substitute_name(&self) -> Utf16<'_> {
        self.substitute.as_str().into()
    }

    /// The target as shown to people.
    pub(crate) fn print_name(&self) -> Utf16<'_> {
        self.print.as_str().into()
    }

    /// Whether the target is relative to the directory of the link.
    pub(crate) fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// The reparse point, in at most [`ReparsePoint::BYTES_MAX`] bytes: without the name for people if it has no room.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub(crate) fn to_reparse_point(&self) -> Result<Vec<u8>, WireError> {
        let with = |print_name| {
            let flags = if self.is_relative { SYMLINK_FLAG_RELATIVE } else { 0 };
            let mut out = Vec::new();
            ReparsePoint::Symlink { substitute_name: self.substitute_name(), print_name, flags }
                .encode_into(&mut out)?;
            Ok(out)
        };
        match with(self.print_name()) {
            Ok(whole) if whole.len() <= ReparsePoint::BYTES_MAX => Ok(whole),
            _ => with(Utf16::EMPTY),
        }
    }
}

/// A part of a relative target.
fn shown(part: &str) -> Cow<'_, str> {
    if matches!(part, "." | "..") { Cow::Borrowed(part) } else { name::shown(part) }
}

/// The text of a link that a client makes with this buffer, in a directory that is `depth` directories below the root of the
/// tree connect.
///
/// # Errors
/// STATUS_IO_REPARSE_DATA_INVALID for a malformed buffer or target; STATUS_NOT_SUPPORTED for a reparse point that is no
/// symbolic link; STATUS_NAME_TOO_LONG.
pub(crate) fn text_of(buffer: &[u8], depth: usize) -> Result<Vec<u8>, NtStatus> {
    if buffer.len() > ReparsePoint::BYTES_MAX {
        return Err(NtStatus::IO_REPARSE_DATA_INVALID);
    }
    let point = ReparsePoint::decode(buffer).map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)?;
    let text = match point {
        ReparsePoint::Symlink { substitute_name, flags, .. } => {
            let target = decode(substitute_name)?;
            if flags & SYMLINK_FLAG_RELATIVE == 0 { absolute(target)? } else { relative(&target, depth)? }
        }
        ReparsePoint::NfsSymlink { target } => decode(target)?,
        ReparsePoint::LxSymlink { target } => {
            String::from_utf8(target.to_vec()).map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)?
        }
        // [MS-FSCC] 2.3.82: "or the reparse tag is 0 or 1"
        ReparsePoint::Other { tag: 0 | 1, .. } => return Err(NtStatus::IO_REPARSE_DATA_INVALID),
        ReparsePoint::MountPoint { .. } | ReparsePoint::Other { .. } => return Err(NtStatus::NOT_SUPPORTED),
    };
    if text.is_empty() || text.contains('\0') {
        return Err(NtStatus::IO_REPARSE_DATA_INVALID);
    }
    if text.len() > LINK_TARGET_BYTES_MAX {
        return Err(NtStatus::NAME_TOO_LONG);
    }
    Ok(text.into_bytes())
}

fn decode(name: Utf16<'_>) -> Result<String, NtStatus> {
    name.decode().map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)
}

/// An absolute target: of Windows or of Unix as it is; `\a\b` is Linux' way to say `/a/b` (before 6.13).
fn absolute(target: String) -> Result<String, NtStatus> {
    if target.starts_with(NT_PREFIX) || target.starts_with('/') {
        Ok(target)
    } else if target.starts_with('\\') {
        Ok(target.replace('\\', "/"))
    } else {
        Err(NtStatus::IO_REPARSE_DATA_INVALID)
    }
}

/// A relative target. One that begins with a backslash begins at the root of the share, which the text cannot say
/// otherwise than by the way up.
fn relative(target: &str, depth: usize) -> Result<String, NtStatus> {
    if target.is_empty() {
        return Err(NtStatus::IO_REPARSE_DATA_INVALID);
    }
    let is_separator = |c| matches!(c, '\\' | '/');
    let (up, below) = match target.strip_prefix(is_separator) {
        Some(below) => (vec![".."; depth], below),
        None => (Vec::new(), target),
    };
    let mut parts: Vec<Cow<'_, str>> = up.into_iter().map(Cow::Borrowed).collect();
    for part in below.split(is_separator) {
        parts.push(match part {
            "" | "." | ".." => Cow::Borrowed(part),
            name => Cow::Owned(stored(name)?),
        });
    }
    let text = parts.join("/");
    // The root itself, and what would begin with a slash: a text that begins with one is absolute.
    Ok(if text.is_empty() || text.starts_with('/') { format!(".{text}") } else { text })
}

fn stored(name: &str) -> Result<String, NtStatus> {
    let stored = name::component(name).map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)?;
    String::from_utf8(stored).map_err(|_| NtStatus::IO_REPARSE_DATA_INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> (String, String, bool) {
        let target = LinkTarget::of(text.as_bytes()).unwrap();
        (target.substitute, target.print, target.is_relative)
    }

    fn symlink(name: &str, flags: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let (substitute_name, print_name) = (Utf16::from(name), Utf16::from("for people"));
        ReparsePoint::Symlink { substitute_name, print_name, flags }.encode_into(&mut out).unwrap();
        out
    }

    fn made(name: &str, flags: u32, depth: usize) -> Result<String, NtStatus> {
        text_of(&symlink(name, flags), depth).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_stored_link_is_told_in_the_words_of_windows() {
        let relative = |text: &str| {
            let (substitute, print, is_relative) = target(text);
            assert!(is_relative && substitute == print, "{text}");
            substitute
        };
        assert_eq!(relative("f"), "f");
        assert_eq!(relative("../d/./f"), r"..\d\.\f");
        assert_eq!([relative("d/"), relative(".."), relative("a//b")], [r"d\", "..", r"a\\b"]);
        assert_eq!(relative("a:b/x?/ends."), "a\u{f022}b\\x\u{f025}\\ends\u{f029}");
        assert_eq!(relative(r"\a"), "\u{f026}a", "a backslash in a name of Unix is no separator");
        assert_eq!(target("/a:b/c"), ("/a:b/c".into(), "/a:b/c".into(), false));
        assert_eq!(target(r"\??\C:\a"), (r"\??\C:\a".into(), r"C:\a".into(), false));
        assert_eq!(target(r"\??\UNC\s\x"), (r"\??\UNC\s\x".into(), r"\\s\x".into(), false));
        assert_eq!(LinkTarget::of(b"a\xff"), Err(NtStatus::IO_REPARSE_DATA_INVALID));
    }

    #[test]
    fn a_relative_target_becomes_one_of_unix() {
        let made = |name, depth| made(name, SYMLINK_FLAG_RELATIVE, depth).unwrap();
        assert_eq!([made("f", 0), made(r"..\d\f", 1), made("a/b", 0)], ["f", "../d/f", "a/b"]);
        assert_eq!([made(r"d\", 0), made(r"a\\b", 0), made(".", 0)], ["d/", "a//b", "."]);
        assert_eq!(made("a\u{f022}b", 0), "a:b");
        // From the root of the share.
        assert_eq!([made(r"\d\f", 0), made(r"\d\f", 2)], ["d/f", "../../d/f"]);
        assert_eq!([made(r"\", 0), made(r"\", 1), made(r"\\x", 0)], [".", "../", "./x"]);
    }

    #[test]
    fn an_absolute_target_stays_as_it_is() {
        let made = |name| made(name, 0, 3);
        for name in [r"\??\C:\a b\c", r"\??\UNC\server\share\x", "/a/b:c", "/"] {
            assert_eq!(made(name), Ok(name.to_owned()));
        }
        assert_eq!(made(r"\mnt\x"), Ok("/mnt/x".to_owned()));
        for name in ["C:\\a", "a", ""] {
            assert_eq!(made(name), Err(NtStatus::IO_REPARSE_DATA_INVALID), "{name:?}");
        }
    }

    #[test]
    fn what_is_told_can_be_made_again() {
        for text in ["f", "../d/f", "d/", "a:b", "a//b", "/a/b", r"\??\C:\a", "..", r"x\y"] {
            let point = LinkTarget::of(text.as_bytes()).unwrap().to_reparse_point().unwrap();
            assert_eq!(text_of(&point, 0).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn links_of_other_kinds_are_made_as_they_say() {
        let made = |point: ReparsePoint<'_>| {
            let mut out = Vec::new();
            point.encode_into(&mut out).unwrap();
            text_of(&out, 0)
        };
        assert_eq!(made(ReparsePoint::NfsSymlink { target: "/a/b".into() }).unwrap(), b"/a/b");
        assert_eq!(made(ReparsePoint::LxSymlink { target: b"../x" }).unwrap(), b"../x");
        let invalid = Err(NtStatus::IO_REPARSE_DATA_INVALID);
        assert_eq!(made(ReparsePoint::LxSymlink { target: b"a\xff" }), invalid);
        assert_eq!(made(ReparsePoint::LxSymlink { target: b"" }), invalid);
        assert_eq!(made(ReparsePoint::NfsSymlink { target: "a\0b".into() }), invalid);
        let mount = ReparsePoint::MountPoint { substitute_name: r"\??\C:\".into(), print_name: "C".into() };
        assert_eq!(made(mount), Err(NtStatus::NOT_SUPPORTED));
        let fifo = ReparsePoint::Other { tag: 0x8000_0014, data: b"OFIF\0\0\0\0" };
        assert_eq!(made(fifo), Err(NtStatus::NOT_SUPPORTED));
        for (tag, status) in [(0, NtStatus::IO_REPARSE_DATA_INVALID), (7, NtStatus::NOT_SUPPORTED)] {
            assert_eq!(made(ReparsePoint::Other { tag, data: &[0; 16] }), Err(status), "{tag}");
        }
    }

    #[test]
    fn targets_at_the_edge() {
        let relative = |parts: usize| made(&["dir"; 2000][..parts].join(r"\"), SYMLINK_FLAG_RELATIVE, 0);
        assert_eq!(relative(1024).unwrap().len(), 4095);
        assert_eq!(relative(1025), Err(NtStatus::NAME_TOO_LONG));
        for name in ["a*", "a:b", "a|b", "a\u{1}", "a\0", "", &"x".repeat(256)] {
            let made = made(name, SYMLINK_FLAG_RELATIVE, 0);
            assert_eq!(made, Err(NtStatus::IO_REPARSE_DATA_INVALID), "{name:?}");
        }
        let long = LinkTarget::of(&[b'x'; 4095]).unwrap().to_reparse_point().unwrap();
        assert!(long.len() <= ReparsePoint::BYTES_MAX);
        let decoded = ReparsePoint::decode(&long);
        assert!(
            matches!(decoded, Ok(ReparsePoint::Symlink { print_name, .. }) if print_name.is_empty()),
            "{decoded:?}"
        );
        let mut over = symlink("a", 0);
        over.resize(ReparsePoint::BYTES_MAX + 1, 0);
        assert_eq!(text_of(&over, 0), Err(NtStatus::IO_REPARSE_DATA_INVALID));
    }
}
