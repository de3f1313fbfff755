//! UPN_DNS_INFO: names of the user and its domain in DNS. [MS-PAC] 2.10.

use acl::Sid;

use super::{PacError, text, u16_at, u32_at};

/// U: the name was made from the account's name, because the user has none of its own. S: there is a SID.
const IS_CONSTRUCTED: u32 = 1;
const HAS_SID: u32 = 2;

/// The name of a user in the form of a mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpnInfo {
    /// The user principal name: `alice@example.org`
    pub upn: String,
    /// The domain's name in DNS
    pub dns_domain: String,
    /// Whether the domain controller made `upn` from the account's name
    pub is_constructed: bool,
}

impl UpnInfo {
    /// Lengths in bytes and offsets from the start of the buffer: `UpnLength`, `UpnOffset`, `DnsDomainNameLength`,
    /// `DnsDomainNameOffset`, `Flags`; with flag S also `SamNameLength`, `SamNameOffset`, `SidLength`, `SidOffset`.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, Option<Sid>), PacError> {
        let part = |at: usize| -> Result<&[u8], PacError> {
            let length = usize::from(u16_at(bytes, at)?);
            let start = usize::from(u16_at(bytes, at.saturating_add(2))?);
            bytes.get(start..).and_then(|rest| rest.get(..length)).ok_or(PacError::Length)
        };
        let flags = u32_at(bytes, 8)?;
        let sid = if flags & HAS_SID == 0 {
            None
        } else {
            Some(Sid::decode(part(16)?).map_err(|_| PacError::Sid)?)
        };
        let is_constructed = flags & IS_CONSTRUCTED != 0;
        Ok((Self { upn: text(part(0)?)?, dns_domain: text(part(4)?)?, is_constructed }, sid))
    }
}
