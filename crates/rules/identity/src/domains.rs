//! The numbers of the users and groups of domains, and back.
//!
//! A user or group of a domain is a SID: the SID of the domain, and a number in it, the RID. Each domain has a slice of the
//! numbers of this machine, in which the RID counts from the first one. The modes differ in which slice that is.

use acl::Sid;

/// The least number of a user or group that a domain may have: the numbers below belong to the system.
pub const ID_MIN: u32 = 1000;
/// The number that stands for no user or group (chown(2)).
const NO_ID: u32 = u32::MAX;
/// Numbers in a slice of the mode `autorid`: the default of Samba's idmap_autorid(8), "rangesize".
pub const AUTORID_LEN: u32 = 100_000;
/// idmap_autorid(8) and sssd-ldap(5) leave it to the administrator where slices begin and end. These are the defaults of
/// sssd-ldap(5): "ldap_idmap_range_min (integer) ... Default: 200000", "ldap_idmap_range_max ... Default: 2000200000",
/// "ldap_idmap_range_size ... Default: 200000".
const SSS_MIN: u32 = 200_000;
const SSS_LEN: u32 = 200_000;
const SSS_SLICES: u32 = 10_000;
/// The seed of the hash: `sss_idmap_calculate_range` of libsss_idmap.
const SSS_SEED: u32 = 0xdead_beef;

/// Whether a user or group of a domain may have this number, whoever gives it: it belongs neither to the system nor to nobody.
#[must_use]
pub fn may_be_given(id: u32) -> bool {
    (ID_MIN..NO_ID).contains(&id)
}

/// The numbers of this machine that belong to a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The number of the RID 0.
    pub first: u32,
    /// How many RIDs have a number.
    pub len: u32,
}

impl Slice {
    /// The number of a RID; None: it has none, or one that belongs to the system or to nobody.
    #[must_use]
    pub fn id_of(self, rid: u32) -> Option<u32> {
        let id = self.first.checked_add(rid).filter(|_| rid < self.len)?;
        may_be_given(id).then_some(id)
    }

    /// The RID that has this number.
    fn rid_of(self, id: u32) -> Option<u32> {
        let rid = id.checked_sub(self.first)?;
        self.id_of(rid).map(|_| rid)
    }

    /// The last number.
    #[must_use]
    pub fn last(self) -> u32 {
        self.first.saturating_add(self.len.saturating_sub(1))
    }

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }
}

/// Which slice a domain has, where that follows from the domain alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// All numbers from this one on. Only one domain can have them.
    Rid {
        /// The number of the RID 0.
        base: u32,
    },
    /// The slice that SSSD gives to the domain (`ldap_id_mapping = true`), as long as no two domains have the same one.
    Sss,
}

impl Formula {
    /// The slice of a domain.
    #[must_use]
    pub fn slice(self, domain: &Sid) -> Slice {
        match self {
            Self::Rid { base } => Slice { first: base, len: NO_ID },
            Self::Sss => {
                let slice = murmur3(domain.to_string().as_bytes(), SSS_SEED) % SSS_SLICES;
                Slice { first: SSS_MIN.saturating_add(slice.saturating_mul(SSS_LEN)), len: SSS_LEN }
            }
        }
    }
}

/// The domains whose users and groups have numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    known: Vec<(Sid, Slice)>,
    /// The slice of any other domain; None: there is none.
    others: Option<Formula>,
}

/// Two domains have some numbers in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the domains {} and {} would have the same numbers", .0[0], .0[1])]
pub struct Overlap(pub Box<[Sid; 2]>);

impl Domains {
    /// These domains, and no other.
    ///
    /// # Errors
    /// Two have some numbers in common.
    pub fn of(known: Vec<(Sid, Slice)>) -> Result<Self, Overlap> {
        for (place, (domain, slice)) in known.iter().enumerate() {
            let other = known.iter().take(place).find(|(_, other)| slice.overlaps(*other));
            if let Some((other, _)) = other {
                return Err(Overlap(Box::new([*other, *domain])));
            }
        }
        Ok(Self { known, others: None })
    }

    /// Any domain, by this formula. It is not known beforehand which ones there are, so no number leads back to a SID.
    #[must_use]
    pub fn of_any(formula: Formula) -> Self {
        Self { known: Vec::new(), others: Some(formula) }
    }

    /// The domains that are known beforehand, with their numbers.
    #[must_use]
    pub fn known(&self) -> &[(Sid, Slice)] {
        &self.known
    }

    /// Whether the users of a domain have numbers.
    #[must_use]
    pub fn has(&self, domain: &Sid) -> bool {
        self.slice(domain).is_some()
    }

    fn slice(&self, domain: &Sid) -> Option<Slice> {
        let known = self.known.iter().find(|(known, _)| known == domain);
        known.map(|(_, slice)| *slice).or_else(|| self.others.map(|formula| formula.slice(domain)))
    }

    /// The number of a user or group of a domain.
    #[must_use]
    pub fn id_of(&self, sid: &Sid) -> Option<u32> {
        let (domain, rid) = sid.in_domain()?;
        self.slice(&domain)?.id_of(rid)
    }

    /// The user or group of a known domain that has this number.
    #[must_use]
    pub fn sid_of(&self, id: u32) -> Option<Sid> {
        self.known.iter().find_map(|(domain, slice)| domain.member(slice.rid_of(id)?))
    }
}

/// MurmurHash3 of 32 bits, x86 variant (public domain, Austin Appleby), as libsss_idmap has it.
fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let scramble = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut hash = seed;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        hash ^= scramble(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    hash ^= scramble(u32::from_le_bytes(last));
    // The length of a SID's text is far below 4 GiB.
    hash ^= u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(text: &str) -> Sid {
        text.parse().unwrap()
    }

    fn rid(base: u32) -> Domains {
        Domains::of_any(Formula::Rid { base })
    }

    /// Printed by libsss-idmap 2.8.2 of Debian 12: `sss_idmap_calculate_range` with the defaults, then `sss_idmap_sid_to_unix`
    /// of the RID 1104.
    #[test]
    fn sss_gives_the_numbers_that_libsss_idmap_gives() {
        for (domain, first, id) in [
            ("S-1-5-21-1-2-3", 686_200_000, 686_201_104),
            ("S-1-5-21-3953139836-557957530-1871235745", 1_810_000_000, 1_810_001_104),
            ("S-1-5-21-3623811015-3361044348-30300820", 674_000_000, 674_001_104),
            ("S-1-5-21-4294967295-4294967295-4294967295", 1_246_200_000, 1_246_201_104),
            ("S-1-5-21-397955417-626881126-188441444", 989_400_000, 989_401_104),
        ] {
            assert_eq!(Formula::Sss.slice(&sid(domain)).first, first, "{domain}");
            let domains = Domains::of_any(Formula::Sss);
            assert_eq!(domains.id_of(&sid(&format!("{domain}-1104"))), Some(id));
            assert_eq!(domains.id_of(&sid(&format!("{domain}-200000"))), None, "beyond the slice");
        }
    }

    #[test]
    fn no_number_below_1000_and_no_invalid_one_becomes_a_user() {
        let (administrator, high) = (sid("S-1-5-21-1-2-3-500"), sid("S-1-5-21-1-2-3-513"));
        assert_eq!(rid(0).id_of(&administrator), None);
        assert_eq!(rid(499).id_of(&administrator), None);
        assert_eq!(rid(500).id_of(&administrator), Some(1000));
        assert_eq!(rid(u32::MAX - 514).id_of(&high), Some(u32::MAX - 1));
        assert_eq!(rid(u32::MAX - 513).id_of(&high), None, "4294967295 is nobody's number");
        assert_eq!(rid(u32::MAX).id_of(&administrator), None);
        for well_known in ["S-1-5-18", "S-1-5-32-544", "S-1-22-1-0", "S-1-5-21-497", "S-1-1-0", "S-1-18-1"] {
            assert_eq!(rid(500).id_of(&sid(well_known)), None, "{well_known}");
        }
    }

    #[test]
    fn a_known_domain_has_its_numbers_and_no_other_has_any() {
        let (one, two) = (sid("S-1-5-21-1-2-3"), sid("S-1-5-21-1-2-4"));
        let slice = |first| Slice { first, len: AUTORID_LEN };
        let domains = Domains::of(vec![(one, slice(1_000_000)), (two, slice(1_100_000))]).unwrap();
        for (user, id) in [("S-1-5-21-1-2-3-1104", 1_001_104), ("S-1-5-21-1-2-4-99999", 1_199_999)] {
            assert_eq!((domains.id_of(&sid(user)), domains.sid_of(id)), (Some(id), Some(sid(user))));
        }
        assert_eq!(domains.id_of(&sid("S-1-5-21-1-2-4-100000")), None);
        assert_eq!(domains.id_of(&sid("S-1-5-21-1-2-5-1104")), None);
        assert_eq!(
            (domains.sid_of(999_999), domains.sid_of(1_200_000), domains.sid_of(0)),
            (None, None, None)
        );
        assert!(domains.has(&one) && !domains.has(&sid("S-1-5-21-1-2-5")));
        let low = Domains::of(vec![(one, slice(0))]).unwrap();
        assert_eq!((low.sid_of(999), low.sid_of(1000)), (None, Some(sid("S-1-5-21-1-2-3-1000"))));
        let same = Domains::of(vec![(one, slice(1_000_000)), (two, slice(1_099_999))]);
        assert_eq!(same, Err(Overlap(Box::new([one, two]))));
    }

    #[test]
    fn the_numbers_of_any_domain_do_not_lead_back() {
        assert_eq!(rid(1_000_000).id_of(&sid("S-1-5-21-1-2-3-1104")), Some(1_001_104));
        assert_eq!(rid(1_000_000).id_of(&sid("S-1-5-21-7-2-3-1104")), Some(1_001_104));
        assert_eq!(rid(1_000_000).sid_of(1_001_104), None);
    }
}
