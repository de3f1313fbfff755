//! Converts between the UTF-16 paths of clients and the bytes of the store. [MS-FSCC] 2.1.5.
//!
//! The last component of a path may be followed by a stream: `file:stream:$DATA`, see [`stream`].
//!
//! Windows forbids some characters in names that POSIX allows. Clients that have to send them use the private
//! characters of Services for Macintosh (U+F001 to U+F029; Linux calls this `mapposix`, macOS always does it). So a
//! file `a:b` created over NFS or on the server is also `a:b` to such clients.

mod pattern;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use smb_wire::{NtStatus, Utf16};

pub(crate) use pattern::Pattern;
pub(crate) use stream::{StreamPart, parse_rename as parse_stream_rename};

/// Units of UTF-16 in one component ([MS-FSCC] 2.1.5.2).
const COMPONENT_UNITS_MAX: usize = 255;
/// Components of one path.
const COMPONENTS_MAX: usize = 512;
/// A backslash in UTF-16.
const SEPARATOR_BYTES: u16 = 2;

/// The characters that no component may contain ([MS-FSCC] 2.1.5.2), besides control characters.
const RESERVED: &[char] = &['"', '\\', '/', ':', '|', '<', '>', '*', '?'];

/// The characters that Windows reserves, and the private ones that stand for them.
const PRIVATE: [(char, char); 8] = [
    ('"', '\u{f020}'),
    ('*', '\u{f021}'),
    (':', '\u{f022}'),
    ('<', '\u{f023}'),
    ('>', '\u{f024}'),
    ('?', '\u{f025}'),
    ('\\', '\u{f026}'),
    ('|', '\u{f027}'),
];
/// Stand for a space and a period at the end of a name.
const PRIVATE_SPACE: char = '\u{f028}';
const PRIVATE_PERIOD: char = '\u{f029}';
/// U+F001 to U+F01F stand for the control characters.
const PRIVATE_CONTROL: u32 = 0xf000;

/// A path from the root of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// The names on the way, as in the store; empty for the root.
    pub components: Vec<Vec<u8>>,
    /// Whether the path ended in a backslash, so that only a directory can be meant.
    pub names_directory: bool,
    /// The stream of the object that is meant.
    pub stream: StreamPart,
    /// For each name that the client gave: the bytes of the text after it, in UTF-16.
    tails: Vec<u16>,
}

impl Path {
    /// Parses the name of a CREATE, or the target of a rename or link.
    ///
    /// Dot directory names are resolved in the text, as in [MS-FSCC] 2.1.5.1 (clients ought not to send them):
    /// `a\b\..\c` is `a\c`. Several backslashes between two names count as one, as with Windows and Samba.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER for a leading backslash ([MS-SMB2] 3.3.5.9); STATUS_OBJECT_PATH_SYNTAX_BAD for a `..`
    /// that leads out of the share (the document lets it stay at the root; Windows and Samba refuse it with this
    /// status); STATUS_OBJECT_NAME_INVALID for any other invalid name.
    pub(crate) fn parse(name: &Utf16<'_>) -> Result<Self, NtStatus> {
        let text = name.decode().map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
        if text.starts_with(['\\', '/']) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let (path, stream) = stream::split(&text)?;
        let (path, names_directory) = match path.strip_suffix('\\') {
            Some(directory) if stream == StreamPart::None => (directory, true),
            _ => (path, stream == StreamPart::Index),
        };
        let (mut components, mut tails) = (Vec::new(), Vec::new());
        let mut tail = u16::try_from(name.byte_len()).map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
        // A path that is empty, or has only a stream, means the root.
        for part in path.split('\\') {
            tail = tail.saturating_sub(utf16_bytes(part));
            match part {
                "" | "." => {}
                ".." => {
                    components.pop().ok_or(NtStatus::OBJECT_PATH_SYNTAX_BAD)?;
                    tails.pop();
                }
                _ if components.len() == COMPONENTS_MAX => return Err(NtStatus::OBJECT_NAME_INVALID),
                name => {
                    components.push(component(name)?);
                    tails.push(tail);
                }
            }
            tail = tail.saturating_sub(SEPARATOR_BYTES);
        }
        Ok(Self { components, names_directory, stream, tails })
    }

    /// The bytes of the client's text, in UTF-16, that come after a name: the name which `behind` others follow. They
    /// include the backslash between ([MS-SMB2] 2.2.2.2.1.1).
    pub(crate) fn unparsed_bytes(&self, behind: usize) -> u16 {
        self.tails.iter().rev().nth(behind).copied().unwrap_or(0)
    }

    /// The same path from the share's directory, if the client's paths begin in this directory there.
    pub(crate) fn below(mut self, home: Option<&[u8]>) -> Self {
        self.components.splice(0..0, home.map(<[u8]>::to_vec));
        self
    }
}

/// Bytes of a text in UTF-16.
fn utf16_bytes(text: &str) -> u16 {
    u16::try_from(Utf16::from(text).byte_len()).unwrap_or(u16::MAX)
}

/// One component in the form of the store.
///
/// # Errors
/// STATUS_OBJECT_NAME_INVALID for an invalid name, including dot directory names.
pub(crate) fn component(part: &str) -> Result<Vec<u8>, NtStatus> {
    let forbidden = |c: char| c < ' ' || RESERVED.contains(&c);
    if matches!(part, "" | "." | "..") || part.contains(forbidden) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let stored = to_stored(part);
    let reserved = matches!(stored.as_ref(), "." | "..") || stored.contains(['/', '\0']);
    if reserved || stored.len() > storage::NAME_BYTES_MAX || part.encode_utf16().count() > COMPONENT_UNITS_MAX
    {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    Ok(stored.into_owned().into_bytes())
}

/// Replaces the private characters in a client's name by the characters that they stand for.
fn to_stored(part: &str) -> Cow<'_, str> {
    if !part.contains(is_private) {
        return Cow::Borrowed(part);
    }
    let stored = part.chars().map(|c| match c {
        PRIVATE_SPACE => ' ',
        PRIVATE_PERIOD => '.',
        '\u{f001}'..='\u{f01f}' => char::from_u32(u32::from(c).wrapping_sub(PRIVATE_CONTROL)).unwrap_or(c),
        _ => PRIVATE.iter().find(|(_, private)| *private == c).map_or(c, |(plain, _)| *plain),
    });
    Cow::Owned(stored.collect())
}

fn is_private(c: char) -> bool {
    ('\u{f001}'..=PRIVATE_PERIOD).contains(&c)
}

/// A name of the store as clients see it; None for a name that is not UTF-8, which clients cannot express.
pub(crate) fn to_client(stored: &[u8]) -> Option<Cow<'_, str>> {
    std::str::from_utf8(stored).ok().map(shown)
}

/// A name of the store as clients see it.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let strange = |c: char| c < ' ' || RESERVED.contains(&c);
    if !text.contains(strange) && !text.ends_with([' ', '.']) {
        return Cow::Borrowed(text);
    }
    let mut name: String = text
        .chars()
        .map(|c| match c {
            '\u{1}'..='\u{1f}' => char::from_u32(u32::from(c).saturating_add(PRIVATE_CONTROL)).unwrap_or(c),
            _ => PRIVATE.iter().find(|(plain, _)| *plain == c).map_or(c, |(_, private)| *private),
        })
        .collect();
    let last = match name.pop() {
        Some(' ') => PRIVATE_SPACE,
        Some('.') => PRIVATE_PERIOD,
        Some(other) => other,
        None => return Cow::Owned(name),
    };
    name.push(last);
    Cow::Owned(name)
}

/// A path of the store (`a/b`) as clients see it (`a\b`). U+FFFD replaces bytes that are not UTF-8.
pub(crate) fn path_to_client(stored: &[u8]) -> String {
    let parts = stored
        .split(|b| *b == b'/')
        .map(|part| to_client(part).unwrap_or_else(|| String::from_utf8_lossy(part)));
    parts.collect::<Vec<_>>().join("\\")
}
