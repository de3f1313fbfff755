//! Stream names, which may follow a file's name. [MS-FSCC] 2.1.5.3, 2.1.5.4; [MS-FSA] 2.1.5.1, phase 6.

use smb_wire::NtStatus;
use storage::StreamName;

use super::COMPONENT_UNITS_MAX;

/// The stream of an object that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamPart {
    /// The object itself.
    None,
    /// The data stream without a name: `file::$DATA`.
    Data,
    /// A directory's index: `directory::$INDEX_ALLOCATION`.
    Index,
    /// A named data stream, by its name in the store.
    Named(Vec<u8>),
}

/// Splits a path into the path without the stream, and the stream.
///
/// # Errors
/// STATUS_OBJECT_NAME_INVALID for an invalid stream; STATUS_INVALID_PARAMETER for an index with a name.
pub(super) fn split(path: &str) -> Result<(&str, StreamPart), NtStatus> {
    let last = path.rfind('\\').map_or(0, |at| at.saturating_add(1));
    let Some((name, stream)) = path.get(last..).unwrap_or_default().split_once(':') else {
        return Ok((path, StreamPart::None));
    };
    let path = path.get(..last.saturating_add(name.len())).unwrap_or_default();
    if path.ends_with('\\') {
        return Err(NtStatus::OBJECT_NAME_INVALID); // a stream of an empty path
    }
    Ok((path, parse(stream)?))
}

/// Parses the text after the first colon.
fn parse(text: &str) -> Result<StreamPart, NtStatus> {
    let (name, kind) = text.split_once(':').map_or((text, None), |(name, kind)| (name, Some(kind)));
    match kind.map(str::to_ascii_uppercase).as_deref() {
        None if name.is_empty() => Err(NtStatus::OBJECT_NAME_INVALID),
        Some("$DATA") if name.is_empty() => Ok(StreamPart::Data),
        None | Some("$DATA") => Ok(StreamPart::Named(stored(name)?)),
        Some("$INDEX_ALLOCATION") if name.is_empty() || name.eq_ignore_ascii_case("$I30") => {
            Ok(StreamPart::Index)
        }
        Some("$INDEX_ALLOCATION") => Err(NtStatus::INVALID_PARAMETER),
        Some(_) => Err(NtStatus::OBJECT_NAME_INVALID),
    }
}

/// A stream's name as the store has it: no character is replaced.
fn stored(name: &str) -> Result<Vec<u8>, NtStatus> {
    let is_name =
        name.encode_utf16().count() <= COMPONENT_UNITS_MAX && StreamName::new(name.as_bytes()).is_ok();
    if is_name { Ok(name.as_bytes().to_vec()) } else { Err(NtStatus::OBJECT_NAME_INVALID) }
}

/// Parses the new name of a stream in a rename: `:name` or `:name:$DATA` ([MS-FSA] 2.1.5.15.12.1). None if the text
/// does not begin with a colon, and so names no stream.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for an invalid stream name; STATUS_OBJECT_TYPE_MISMATCH for another stream type.
pub(crate) fn parse_rename(text: &str) -> Result<Option<StreamPart>, NtStatus> {
    let Some(stream) = text.strip_prefix(':') else { return Ok(None) };
    let of_other_type = |kind: &str| {
        let has_type = !kind.is_empty() && !kind.contains([':', '/', '\\', '\0']);
        has_type && !kind.eq_ignore_ascii_case("$DATA")
    };
    if stream.split_once(':').is_some_and(|(_, kind)| of_other_type(kind)) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    parse(stream).map(Some).map_err(|_| NtStatus::INVALID_PARAMETER)
}
