//! Security identifiers: the owners of files, and the subjects of access control entries. [MS-DTYP] 2.4.2.

use std::fmt;
use std::str::FromStr;

use crate::bytes::{Malformed, Put, Reader, len_u8};

/// The most sub-authorities that a SID has.
pub const SUB_AUTHORITIES_MAX: usize = 15;

/// S-1-5-21: the authority and the first sub-authority of the SIDs of machines and domains.
const NT_AUTHORITY: u64 = 5;
const NT_NON_UNIQUE: u32 = 21;

/// A security identifier: the owner of a file, or the subject of an access control entry.
#[doc(alias = "SID")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid {
    authority: [u8; 6],
    count: u8,
    // The entries from `count` on are zero, so that comparing SIDs compares the fields.
    sub_authorities: [u32; SUB_AUTHORITIES_MAX],
}

impl Sid {
    /// S-1-1-0
    pub const EVERYONE: Self = Self::well_known(1, 1, [0, 0]);
    /// S-1-3-0
    pub const CREATOR_OWNER: Self = Self::well_known(3, 1, [0, 0]);
    /// S-1-3-1
    pub const CREATOR_GROUP: Self = Self::well_known(3, 1, [1, 0]);
    /// S-1-3-4: the owner of the object. Entries for this SID replace the rights that an owner has anyway.
    pub const OWNER_RIGHTS: Self = Self::well_known(3, 1, [4, 0]);
    /// S-1-5-1: users who have dialled in.
    pub const DIALUP: Self = Self::well_known(5, 1, [1, 0]);
    /// S-1-5-2: users who connect over the network.
    pub const NETWORK: Self = Self::well_known(5, 1, [2, 0]);
    /// S-1-5-3: batch jobs.
    pub const BATCH: Self = Self::well_known(5, 1, [3, 0]);
    /// S-1-5-4: users logged on at the machine.
    pub const INTERACTIVE: Self = Self::well_known(5, 1, [4, 0]);
    /// S-1-5-6: services of the system.
    pub const SERVICE: Self = Self::well_known(5, 1, [6, 0]);
    /// S-1-5-7
    pub const ANONYMOUS: Self = Self::well_known(5, 1, [7, 0]);
    /// S-1-5-11
    pub const AUTHENTICATED_USERS: Self = Self::well_known(5, 1, [11, 0]);
    /// S-1-5-18
    pub const LOCAL_SYSTEM: Self = Self::well_known(5, 1, [18, 0]);
    /// S-1-5-32-544
    pub const ADMINISTRATORS: Self = Self::well_known(5, 2, [32, 544]);
    /// S-1-5-32-545
    pub const USERS: Self = Self::well_known(5, 2, [32, 545]);
    /// S-1-5-32-546
    pub const GUESTS: Self = Self::well_known(5, 2, [32, 546]);

    pub(crate) const fn well_known(authority: u8, count: u8, [first, second]: [u32; 2]) -> Self {
        let sub_authorities = [first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        Self { authority: [0, 0, 0, 0, 0, authority], count, sub_authorities }
    }

    /// S-1-`authority`-`sub_authorities`. The authority is a number of 48 bits; all authorities in use are below 256.
    ///
    /// # Errors
    /// [`Malformed::TooLong`] for more than [`SUB_AUTHORITIES_MAX`], [`Malformed::Invalid`] for more than 48
    /// bits.
    pub fn new(authority: u64, sub_authorities: &[u32]) -> Result<Self, Malformed> {
        let [a, b, c, d, e, f, 0, 0] = authority.to_le_bytes() else {
            return Err(Malformed::Invalid("authority of a SID"));
        };
        let mut all = [0; SUB_AUTHORITIES_MAX];
        all.get_mut(..sub_authorities.len())
            .ok_or(Malformed::TooLong("sub-authorities of a SID"))?
            .copy_from_slice(sub_authorities);
        let count = len_u8(sub_authorities.len(), "sub-authorities of a SID")?;
        Ok(Self { authority: [f, e, d, c, b, a], count, sub_authorities: all })
    }

    /// The identifier authority.
    #[must_use]
    pub const fn authority(&self) -> u64 {
        let [a, b, c, d, e, f] = self.authority;
        u64::from_le_bytes([f, e, d, c, b, a, 0, 0])
    }

    /// The sub-authorities; the last one is the RID.
    #[must_use]
    pub fn sub_authorities(&self) -> &[u32] {
        self.sub_authorities.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// The domain of a user or group of a domain or a machine, and its number in there (the RID): S-1-5-21-a-b-c and d of
    /// S-1-5-21-a-b-c-d. [MS-DTYP] 2.4.2.4.
    #[must_use]
    pub fn in_domain(&self) -> Option<(Self, u32)> {
        match *self.sub_authorities() {
            [NT_NON_UNIQUE, a, b, c, rid] if self.authority() == NT_AUTHORITY => {
                Some((Self::new(NT_AUTHORITY, &[NT_NON_UNIQUE, a, b, c]).ok()?, rid))
            }
            _ => None,
        }
    }

    /// The user or group with this number in the domain or machine of this SID; None: it is the SID of neither.
    #[must_use]
    pub fn member(&self, rid: u32) -> Option<Self> {
        match *self.sub_authorities() {
            [NT_NON_UNIQUE, a, b, c] if self.authority() == NT_AUTHORITY => {
                Self::new(NT_AUTHORITY, &[NT_NON_UNIQUE, a, b, c, rid]).ok()
            }
            _ => None,
        }
    }

    /// The number of bytes on the wire.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        usize::from(self.count).saturating_mul(4).saturating_add(8)
    }

    /// Decodes the SID at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Invalid`] for a revision other than 1 or more than
    /// [`SUB_AUTHORITIES_MAX`] sub-authorities.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::read(&mut Reader::new(bytes))
    }

    /// Appends the SID.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put(&[1, self.count]);
        out.put(&self.authority);
        self.sub_authorities().iter().for_each(|value| out.put_u32(*value));
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.u8()? != 1 {
            return Err(Malformed::Invalid("revision of a SID"));
        }
        let count = r.u8()?;
        let authority = r.array()?;
        let mut sub_authorities = [0; SUB_AUTHORITIES_MAX];
        let used = sub_authorities
            .get_mut(..usize::from(count))
            .ok_or(Malformed::Invalid("number of sub-authorities of a SID"))?;
        for sub_authority in used {
            *sub_authority = r.u32()?;
        }
        Ok(Self { authority, count, sub_authorities })
    }
}

/// `S-1-5-21-...`; an authority of more than 32 bits is hexadecimal ([MS-DTYP] 2.4.2.1).
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.authority() {
            small if u32::try_from(small).is_ok() => write!(f, "S-1-{small}")?,
            large => write!(f, "S-1-0x{large:012X}")?,
        }
        self.sub_authorities().iter().try_for_each(|value| write!(f, "-{value}"))
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sid {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        const BAD: Malformed = Malformed::Invalid("text of a SID");
        let mut parts =
            text.strip_prefix("S-1-").or_else(|| text.strip_prefix("s-1-")).ok_or(BAD)?.split('-');
        let authority = parts.next().ok_or(BAD)?;
        let authority = match authority.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => authority.parse(),
        };
        let sub_authorities: Vec<u32> = parts.map(str::parse).collect::<Result<_, _>>().map_err(|_| BAD)?;
        Self::new(authority.map_err(|_| BAD)?, &sub_authorities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids_have_text() {
        let text = "S-1-5-21-3953139836-557957530-1871235745-1000";
        let sid: Sid = text.parse().unwrap();
        assert_eq!((sid.authority(), sid.sub_authorities().len()), (5, 5));
        assert_eq!(sid.to_string(), text);
        assert_eq!(Sid::EVERYONE.to_string(), "S-1-1-0");
        assert_eq!(Sid::ADMINISTRATORS.to_string(), "S-1-5-32-544");
        assert_eq!("S-1-5-32-544".parse(), Ok(Sid::ADMINISTRATORS));
        let large = Sid::new(0x1_0000_0000, &[1]).unwrap();
        assert_eq!(large.to_string(), "S-1-0x000100000000-1");
        assert_eq!(large.to_string().parse(), Ok(large));
        for bad in
            ["", "S-1", "S-2-5-1", "S-1-", "S-1-5-", "S-1-5-x", "S-1-5-4294967296", "S-1-281474976710656"]
        {
            assert!(bad.parse::<Sid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_member_of_a_domain_has_the_domain_and_a_number() {
        let sid = |text: &str| text.parse::<Sid>().unwrap();
        let (domain, alice) = (sid("S-1-5-21-1-2-3"), sid("S-1-5-21-1-2-3-1104"));
        assert_eq!((alice.in_domain(), domain.member(1104)), (Some((domain, 1104)), Some(alice)));
        for neither in ["S-1-5-21-1-2", "S-1-5-32-544", "S-1-22-1-7", "S-1-6-21-1-2-3", "S-1-5-21-1-2-3-4-5"]
        {
            assert_eq!((sid(neither).in_domain(), sid(neither).member(1)), (None, None), "{neither}");
        }
        assert_eq!((domain.in_domain(), alice.member(1)), (None, None));
    }

    #[test]
    fn sids_have_at_most_15_sub_authorities_and_revision_1() {
        assert!(Sid::new(5, &[0; 15]).is_ok());
        assert_eq!(Sid::new(5, &[0; 16]), Err(Malformed::TooLong("sub-authorities of a SID")));
        let mut bytes = vec![1, 16, 0, 0, 0, 0, 0, 5];
        bytes.resize(8 + 64, 0);
        assert!(matches!(Sid::decode(&bytes), Err(Malformed::Invalid(_))));
        bytes[1] = 15;
        assert!(Sid::decode(&bytes).is_ok());
        assert_eq!(Sid::decode(&bytes[..67]), Err(Malformed::Truncated));
        bytes[0] = 2;
        assert!(matches!(Sid::decode(&bytes), Err(Malformed::Invalid(_))));
    }
}
