//! AV_PAIR lists: what a server states about itself and a client returns. [MS-NLMP] 2.2.2.1.

use bitflags::bitflags;

use super::message::MessageError;

/// The kind of an AV_PAIR. Kinds that are not listed here are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AvId {
    /// MsvAvNbComputerName
    NbComputerName,
    /// MsvAvNbDomainName
    NbDomainName,
    /// MsvAvDnsComputerName
    DnsComputerName,
    /// MsvAvDnsDomainName
    DnsDomainName,
    /// MsvAvFlags
    Flags,
    /// MsvAvTimestamp
    Timestamp,
    /// MsvAvTargetName: the service to which the client believes it is talking
    TargetName,
    /// MsvAvChannelBindings: the TLS channel through which the client believes it is talking
    ChannelBindings,
}

/// MsvAvEOL
const END: u16 = 0x0000;

impl AvId {
    fn number(self) -> u16 {
        match self {
            Self::NbComputerName => 0x0001,
            Self::NbDomainName => 0x0002,
            Self::DnsComputerName => 0x0003,
            Self::DnsDomainName => 0x0004,
            Self::Flags => 0x0006,
            Self::Timestamp => 0x0007,
            Self::TargetName => 0x0009,
            Self::ChannelBindings => 0x000a,
        }
    }
}

bitflags! {
    /// The value of MsvAvFlags.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct AvFlags: u32 {
        /// The account's authentication is constrained.
        const CONSTRAINED = 0x0000_0001;
        /// The AUTHENTICATE_MESSAGE carries a MIC.
        const MIC = 0x0000_0002;
        /// The target name comes from an untrusted source.
        const UNTRUSTED_TARGET = 0x0000_0004;
        const _ = !0;
    }
}

/// A list of AV_PAIRs whose structure has been checked.
#[derive(Clone, Copy, Debug)]
pub struct AvPairs<'a>(&'a [u8]);

impl<'a> AvPairs<'a> {
    /// Checks that `bytes` begins with a list that ends with MsvAvEOL; what follows is padding.
    ///
    /// # Errors
    /// [`MessageError`] if a pair extends beyond the bytes, or MsvAvEOL is missing.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut rest = bytes;
        loop {
            let (id, _, after) = split_pair(rest).ok_or(MessageError)?;
            if id == END {
                return Ok(Self(bytes));
            }
            rest = after;
        }
    }

    /// Every pair before MsvAvEOL: its number and its value.
    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (id, value, after) = split_pair(rest)?;
            rest = after;
            (id != END).then_some((id, value))
        })
    }

    /// The first value of this kind.
    pub fn find(self, id: AvId) -> Option<&'a [u8]> {
        self.iter().find(|(number, _)| *number == id.number()).map(|(_, value)| value)
    }

    /// The union of all MsvAvFlags in the list: a second one cannot clear a flag.
    pub fn flags(self) -> AvFlags {
        self.iter()
            .filter(|(number, _)| *number == AvId::Flags.number())
            .filter_map(|(_, value)| <[u8; 4]>::try_from(value).ok())
            .fold(AvFlags::empty(), |flags, value| {
                flags | AvFlags::from_bits_retain(u32::from_le_bytes(value))
            })
    }
}

/// Id, value, and the bytes after the pair.
fn split_pair(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((u16::from_le_bytes(*id), value, rest))
}

/// Appends one pair. Values are names and numbers of this program, far shorter than the limit of 64 KiB.
pub(super) fn put_pair(list: &mut Vec<u8>, id: AvId, value: &[u8]) {
    put_raw_pair(list, id.number(), value);
}

pub(super) fn put_raw_pair(list: &mut Vec<u8>, number: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    list.extend_from_slice(&number.to_le_bytes());
    list.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    list.extend_from_slice(value);
}

/// Appends MsvAvEOL.
pub(super) fn put_end(list: &mut Vec<u8>) {
    put_raw_pair(list, END, &[]);
}
