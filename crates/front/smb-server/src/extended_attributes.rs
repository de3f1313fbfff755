//! Lists of extended attributes in the form of SMB. [MS-FSCC] 2.4.16; [MS-FSA] 2.1.5.12.12, 2.1.5.15.
//! Names that differ only in the case of ASCII letters are the same to SMB clients.

use share::ExtendedAttribute;
use smb_wire::NtStatus;
use smb_wire::fscc::ea::{self, EaFlags, FullEa};

/// Characters that no name may have ([MS-FSCC] 2.4.16), besides control characters.
const NAME_FORBIDS: &[u8] = b"\\/:*?\"<>|,+=[];";

/// Bytes of an entry of FILE_FULL_EA_INFORMATION besides name and value: without the offset of the next entry, and with
/// the zero after the name.
const ENTRY_BYTES: usize = 5;

/// The list that a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedAttributes<'a> {
    /// A FILE_GET_EA_INFORMATION list; empty for all attributes.
    pub(crate) names: &'a [u8],
    /// Whether only the first attribute is wanted.
    pub(crate) single: bool,
    /// The most bytes of the list.
    pub(crate) limit: usize,
}

/// Decodes a list with which a client sets or removes attributes.
///
/// # Errors
/// STATUS_EA_LIST_INCONSISTENT for a malformed list, STATUS_INVALID_EA_NAME.
pub(crate) fn decode(list: &[u8]) -> Result<Vec<ExtendedAttribute>, NtStatus> {
    FullEa::list(list)
        .map(|entry| {
            let entry = entry.map_err(|_| NtStatus::EA_LIST_INCONSISTENT)?;
            if !is_name(entry.name) {
                return Err(NtStatus::INVALID_EA_NAME);
            }
            Ok(ExtendedAttribute { name: entry.name.to_vec(), value: entry.value.to_vec() })
        })
        .collect()
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|c| c.is_ascii_control() || NAME_FORBIDS.contains(c))
}

/// The value of FileEaInformation: the bytes that all attributes take in a list; 0 when there are none.
pub(crate) fn size(all: &[ExtendedAttribute]) -> u32 {
    let entries = all.iter().map(|a| ENTRY_BYTES + a.name.len() + a.value.len());
    let total = entries.reduce(|a, b| a + b).map_or(0, |sum| sum + 4);
    u32::try_from(total).unwrap_or(u32::MAX)
}

/// A list for a client, and whether attributes were left out for lack of room.
///
/// # Errors
/// STATUS_NO_EAS_ON_FILE; STATUS_BUFFER_TOO_SMALL when not even the first attribute fits; STATUS_EA_LIST_INCONSISTENT
/// for malformed names; STATUS_INVALID_EA_NAME.
pub(crate) fn encode(
    all: &[ExtendedAttribute],
    wanted: WantedAttributes<'_>,
) -> Result<(Vec<u8>, bool), NtStatus> {
    let chosen = choose(all, wanted.names)?;
    if chosen.is_empty() {
        return Err(NtStatus::NO_EAS_ON_FILE);
    }
    let count = if wanted.single { 1 } else { chosen.len() };
    let mut data = Vec::new();
    let mut list = ea::writer(&mut data, wanted.limit);
    for (index, entry) in chosen.into_iter().take(count).enumerate() {
        if entry.push(&mut list).is_err() {
            return if index == 0 { Err(NtStatus::BUFFER_TOO_SMALL) } else { Ok((data, true)) };
        }
    }
    Ok((data, false))
}

/// All attributes, or those with the given names. An attribute that the file lacks has an empty value.
fn choose<'a>(all: &'a [ExtendedAttribute], names: &'a [u8]) -> Result<Vec<FullEa<'a>>, NtStatus> {
    let entry = |name, value| FullEa { flags: EaFlags::empty(), name, value };
    if names.is_empty() {
        return Ok(all.iter().map(|a| entry(a.name.as_slice(), a.value.as_slice())).collect());
    }
    ea::names(names)
        .map(|name| {
            let name = name.map_err(|_| NtStatus::EA_LIST_INCONSISTENT)?;
            if !is_name(name) {
                return Err(NtStatus::INVALID_EA_NAME);
            }
            let found = all.iter().find(|a| a.name.eq_ignore_ascii_case(name));
            Ok(entry(name, found.map_or(&[][..], |a| a.value.as_slice())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, value: &str) -> ExtendedAttribute {
        ExtendedAttribute { name: name.into(), value: value.into() }
    }

    fn wanted(names: &[u8], limit: usize) -> WantedAttributes<'_> {
        WantedAttributes { names, single: false, limit }
    }

    #[test]
    fn what_is_listed_can_be_read_again() {
        let all = [attribute("ONE", "1"), attribute("two", "22")];
        let (list, more) = encode(&all, wanted(&[], 1000)).unwrap();
        assert!(!more);
        assert_eq!(decode(&list).unwrap(), all);
        assert_eq!(size(&all), 4 + 9 + 10);
        assert_eq!(size(&[]), 0);
    }

    #[test]
    fn lists_end_at_their_limit() {
        let all = [attribute("one", "1"), attribute("two", "2")];
        let (list, more) = encode(&all, wanted(&[], 16)).unwrap();
        assert!(more);
        assert_eq!(decode(&list).unwrap(), all[..1]);
        assert_eq!(encode(&all, wanted(&[], 8)).unwrap_err(), NtStatus::BUFFER_TOO_SMALL);
        assert_eq!(encode(&[], wanted(&[], 8)).unwrap_err(), NtStatus::NO_EAS_ON_FILE);
        let single = WantedAttributes { single: true, ..wanted(&[], 1000) };
        assert_eq!(decode(&encode(&all, single).unwrap().0).unwrap(), all[..1]);
    }

    #[test]
    fn names_choose_whatever_their_case() {
        let mut names = Vec::new();
        let mut list = ea::writer(&mut names, 100);
        ea::push_name(&mut list, b"TWO").unwrap();
        ea::push_name(&mut list, b"none").unwrap();
        let all = [attribute("one", "1"), attribute("two", "2")];
        let (list, _) = encode(&all, wanted(&names, 1000)).unwrap();
        assert_eq!(decode(&list).unwrap(), [attribute("TWO", "2"), attribute("none", "")]);
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(decode(&[1, 2, 3]).unwrap_err(), NtStatus::EA_LIST_INCONSISTENT);
        let mut list = Vec::new();
        let entry = FullEa { flags: EaFlags::empty(), name: b"a/b", value: b"" };
        entry.push(&mut ea::writer(&mut list, 100)).unwrap();
        assert_eq!(decode(&list).unwrap_err(), NtStatus::INVALID_EA_NAME);
    }
}
