//! The PAC: what a domain controller says of a user. [MS-PAC].
//!
//! A PAC is a directory of buffers. It is used only if its server signature was made with the key of the ticket, and if
//! it is about the ticket's client.

mod client_info;
mod logon_info;
mod ndr;
mod signature;
mod upn;

use std::ops::Range;

use acl::Sid;

use crate::crypto::ChecksumKey;
use crate::name::Principal;
use crate::time::Time;

pub use logon_info::LogonInfo;
pub use upn::UpnInfo;

/// The most buffers; domain controllers send about ten.
const BUFFERS_MAX: usize = 32;
/// PACTYPE without its buffers, and PAC_INFO_BUFFER. [MS-PAC] 2.3, 2.4.
const HEAD_LEN: usize = 8;
const ENTRY_LEN: usize = 16;

/// Why a PAC is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacError {
    /// Too short, or with a length that leads outside
    #[error("it is cut off, or a length in it is wrong")]
    Length,
    /// Another version, or more than 32 buffers
    #[error("its directory is not one of version 0 with at most 32 buffers")]
    Directory,
    /// A buffer is not aligned, lies over another, or is there twice
    #[error("its buffers overlap, are there twice, or are not aligned to 8 bytes")]
    Layout,
    /// A signature is missing
    #[error("it has no server signature and KDC signature")]
    Unsigned,
    /// A signature of another type than the key of the ticket makes
    #[error("its signature is of type {0}, which the key of the ticket does not make")]
    SignatureType(i32),
    /// The server signature is wrong
    #[error("its signature was not made with the key in the keytab")]
    WrongSignature,
    /// It is about another client, or another ticket of the client
    #[error("it is about another client than the ticket, or about another ticket")]
    OtherClient,
    /// The logon information is malformed
    #[error("its logon information is malformed")]
    LogonInfo,
    /// More than 10,000 groups
    #[error("it has more than 10000 groups")]
    TooManyGroups,
    /// A SID that cannot be
    #[error("it has a SID that cannot be")]
    Sid,
    /// A text that is not UTF-16, or too long
    #[error("it has a text that is not UTF-16 or too long")]
    Text,
    /// It has two SIDs of the user
    #[error("it has two SIDs for the user")]
    OtherSid,
}

/// What a PAC says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pac {
    /// The user of a domain. A KDC that is no domain controller has none: MIT krb5 from version 1.20 on.
    pub logon: Option<LogonInfo>,
    /// The name of the user in the form of a mail address
    pub upn: Option<UpnInfo>,
}

/// The types of buffers that are read. [MS-PAC] 2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    LogonInfo = 1,
    ServerSignature = 6,
    KdcSignature = 7,
    ClientInfo = 10,
    UpnDnsInfo = 12,
    Requestor = 18,
}

impl Pac {
    /// Checks and decodes the PAC of a ticket of this client, which was authenticated at this time. `key` makes
    /// [`KeyUsage::PAC`](crate::crypto::KeyUsage::PAC) checksums with the key of the ticket.
    pub(crate) fn decode(
        bytes: &[u8],
        key: &ChecksumKey,
        client: &Principal,
        auth_time: Time,
    ) -> Result<Self, PacError> {
        let buffers = Buffers::read(bytes)?;
        signature::verify(&buffers, key)?;
        client_info::check(buffers.find(Kind::ClientInfo).ok_or(PacError::OtherClient)?, client, auth_time)?;
        let logon = buffers.find(Kind::LogonInfo).map(LogonInfo::decode).transpose()?;
        let (upn, upn_sid) = buffers.find(Kind::UpnDnsInfo).map(UpnInfo::decode).transpose()?.unzip();
        // [MS-PAC] 2.15: PAC_REQUESTOR has the SID of the client
        let requestor =
            buffers.find(Kind::Requestor).map(Sid::decode).transpose().map_err(|_| PacError::Sid)?;
        if let Some(logon) = &logon {
            let others = [upn_sid.flatten(), requestor];
            if others.iter().flatten().any(|sid| *sid != logon.sid) {
                return Err(PacError::OtherSid);
            }
        }
        Ok(Self { logon, upn })
    }
}

/// The directory of a PAC.
struct Buffers<'a> {
    pac: &'a [u8],
    entries: [Entry; BUFFERS_MAX],
    count: usize,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    kind: u32,
    start: usize,
    end: usize,
}

impl<'a> Buffers<'a> {
    /// PACTYPE: `cBuffers`, `Version`, and as many PAC_INFO_BUFFERs: `ulType`, `cbBufferSize`, `Offset` (64 bits).
    fn read(pac: &'a [u8]) -> Result<Self, PacError> {
        let count = usize::try_from(u32_at(pac, 0)?).map_err(|_| PacError::Directory)?;
        if count > BUFFERS_MAX || u32_at(pac, 4)? != 0 {
            return Err(PacError::Directory);
        }
        let head = HEAD_LEN.saturating_add(count.saturating_mul(ENTRY_LEN));
        let list = pac.get(HEAD_LEN..head).ok_or(PacError::Length)?;
        let mut entries = [Entry::default(); BUFFERS_MAX];
        for (entry, bytes) in entries.iter_mut().zip(list.chunks_exact(ENTRY_LEN)) {
            *entry = Entry::read(bytes)?;
            if !entry.start.is_multiple_of(8) || entry.start < head {
                return Err(PacError::Layout);
            }
            if entry.end > pac.len() {
                return Err(PacError::Length);
            }
        }
        let buffers = Self { pac, entries, count };
        if buffers.are_apart() { Ok(buffers) } else { Err(PacError::Layout) }
    }

    fn entries(&self) -> &[Entry] {
        self.entries.get(..self.count).unwrap_or_default()
    }

    /// Whether no two buffers share bytes or a type.
    fn are_apart(&self) -> bool {
        let mut rest = self.entries();
        while let Some((entry, others)) = rest.split_first() {
            if others.iter().any(|other| other.kind == entry.kind || entry.overlaps(other)) {
                return false;
            }
            rest = others;
        }
        true
    }

    fn range(&self, kind: Kind) -> Option<Range<usize>> {
        let entry = self.entries().iter().find(|entry| entry.kind == kind as u32)?;
        Some(entry.start..entry.end)
    }

    fn find(&self, kind: Kind) -> Option<&'a [u8]> {
        self.pac.get(self.range(kind)?)
    }
}

impl Entry {
    fn read(bytes: &[u8]) -> Result<Self, PacError> {
        let size = usize::try_from(u32_at(bytes, 4)?).map_err(|_| PacError::Length)?;
        let start = usize::try_from(u32_at(bytes, 8)?).map_err(|_| PacError::Length)?;
        if u32_at(bytes, 12)? != 0 {
            return Err(PacError::Length);
        }
        Ok(Self { kind: u32_at(bytes, 0)?, start, end: start.checked_add(size).ok_or(PacError::Length)? })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, PacError> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(PacError::Length)?;
    Ok(u32::from_le_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, PacError> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(PacError::Length)?;
    Ok(u16::from_le_bytes(*bytes))
}

/// The text of UTF-16LE bytes.
fn text(bytes: &[u8]) -> Result<String, PacError> {
    let mut units = bytes.chunks_exact(2);
    let decoded = char::decode_utf16(units.by_ref().map(|unit| match unit {
        [low, high] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    }));
    let mut text = String::with_capacity(bytes.len().div_ceil(2));
    for character in decoded {
        text.push(character.map_err(|_| PacError::Text)?);
    }
    if units.remainder().is_empty() { Ok(text) } else { Err(PacError::Text) }
}
