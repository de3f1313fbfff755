//! The access check. [MS-DTYP] 2.5.3.2.

use crate::{AccessMask, Ace, AceBody, AceFlags, AceType, Acl, SecurityDescriptor, Sid, Token};

/// ACCESS_DENIED_CALLBACK_ACE_TYPE: mask and SID as in a plain entry, then a condition.
const ACCESS_DENIED_CALLBACK: u8 = 0x0A;

/// What an entry does with rights.
enum Verdict {
    Allows(AccessMask),
    Denies(AccessMask),
}

impl SecurityDescriptor {
    /// All rights of the holder of the token. A request is granted when all requested rights are among them. Entries
    /// are evaluated in order, so the first entry that mentions a right decides about it; MAXIMUM_ALLOWED asks for the
    /// whole result.
    ///
    /// In the pseudocode of [MS-DTYP] 2.5.3.2, a denial after an allowance counts only for MAXIMUM_ALLOWED. Windows and
    /// Samba evaluate as here in both cases.
    #[must_use]
    pub fn maximal_access(&self, token: &Token<'_>) -> AccessMask {
        // "No DACL in the security descriptor implies that there is no policy in place to govern access to the object"
        let Some(dacl) = &self.dacl else { return AccessMask::FILE_ALL };
        let owns = self.owner.as_ref().is_some_and(|owner| token.holds(owner));
        let (mut allowed, mut denied) = (AccessMask::empty(), AccessMask::empty());
        // "the owner of an object is always granted READ_CONTROL and WRITE_DAC", unless entries for OWNER RIGHTS define
        // the owner's rights.
        if owns && !dacl.speaks_of_owner_rights() {
            allowed = AccessMask::READ_CONTROL | AccessMask::WRITE_DAC;
        }
        let holds = |sid: &Sid| token.holds(sid) || (owns && *sid == Sid::OWNER_RIGHTS);
        for ace in dacl.aces.iter().filter(|ace| ace.is_effective()) {
            match ace.verdict(holds) {
                Some(Verdict::Allows(mask)) => allowed |= mask.difference(denied),
                Some(Verdict::Denies(mask)) => denied |= mask.difference(allowed),
                None => {}
            }
        }
        allowed & AccessMask::FILE_ALL
    }
}

impl Acl {
    fn speaks_of_owner_rights(&self) -> bool {
        let is = |ace: &Ace| matches!(&ace.body, AceBody::Basic { sid, .. } if *sid == Sid::OWNER_RIGHTS);
        self.aces.iter().any(|ace| ace.is_effective() && is(ace))
    }
}

impl Ace {
    /// Whether the entry applies to the object itself, and not only to objects that inherit it.
    #[must_use]
    pub fn is_effective(&self) -> bool {
        !self.flags.contains(AceFlags::INHERIT_ONLY)
    }

    /// Whether the entry allows or denies, which rights, and to whom, whoever asks. None for audit entries, and for
    /// entries that the access check ignores.
    #[must_use]
    pub fn statement(&self) -> Option<(AceType, AccessMask, Sid)> {
        match &self.body {
            AceBody::Basic {
                ace_type: ace_type @ (AceType::AccessAllowed | AceType::AccessDenied),
                mask,
                sid,
            } => Some((*ace_type, mask.mapped(), *sid)),
            // The condition cannot be evaluated here: denying is the safe answer (2.5.3.1.5: UNKNOWN).
            AceBody::Other { ace_type: ACCESS_DENIED_CALLBACK, data } => {
                let (mask, rest) = data.split_first_chunk()?;
                let mask = AccessMask::from_bits_retain(u32::from_le_bytes(*mask));
                Some((AceType::AccessDenied, mask.mapped(), Sid::decode(rest).ok()?))
            }
            // Entries for parts of directory objects, and allowing entries with conditions, do not apply to files.
            AceBody::Basic { .. } | AceBody::Other { .. } => None,
        }
    }

    fn verdict(&self, holds: impl Fn(&Sid) -> bool) -> Option<Verdict> {
        let (ace_type, mask, _) = self.statement().filter(|(_, _, sid)| holds(sid))?;
        Some(if ace_type == AceType::AccessAllowed { Verdict::Allows(mask) } else { Verdict::Denies(mask) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Control;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const OWNER: Sid = Sid::of_user(10);
    const GROUP: Sid = Sid::of_group(20);
    const OTHER: Sid = Sid::of_user(11);
    const NONE: AceFlags = AceFlags::empty();

    fn with(aces: Vec<Ace>) -> SecurityDescriptor {
        SecurityDescriptor {
            control: Control::DACL_PRESENT,
            owner: Some(OWNER),
            group: Some(GROUP),
            sacl: None,
            dacl: Some(Acl { revision: 2, aces }),
        }
    }

    fn may(uid: u32, aces: Vec<Ace>) -> AccessMask {
        with(aces).maximal_access(&Token { uid, gid: 20, groups: &[30], sids: &[] })
    }

    const READ: AccessMask = AccessMask::READ_DATA;
    const WRITE: AccessMask = AccessMask::WRITE_DATA;
    const IMPLIED: AccessMask = AccessMask::READ_CONTROL.union(AccessMask::WRITE_DAC);

    #[test]
    fn no_dacl_allows_everything_and_an_empty_one_nothing() {
        let token = Token { uid: 11, gid: 1, groups: &[], sids: &[] };
        let open = SecurityDescriptor { dacl: None, ..with(vec![]) };
        assert_eq!(open.maximal_access(&token), AccessMask::FILE_ALL);
        assert_eq!(with(vec![]).maximal_access(&token), AccessMask::empty());
        assert_eq!(may(10, vec![]), IMPLIED, "but for what the owner may anyway");
    }

    #[test]
    fn the_first_entry_that_speaks_of_a_right_decides() {
        let (allow, deny) = (Ace::allow(GROUP, READ | WRITE, NONE), Ace::deny(OTHER, WRITE, NONE));
        assert_eq!(may(11, vec![deny.clone(), allow.clone()]), READ);
        assert_eq!(may(11, vec![allow, deny]), READ | WRITE);
    }

    #[test]
    fn entries_to_be_inherited_only_say_nothing() {
        assert_eq!(may(11, vec![Ace::allow(OTHER, READ, AceFlags::INHERIT_ONLY)]), AccessMask::empty());
        assert_eq!(may(11, vec![Ace::allow(OTHER, READ, AceFlags::INHERITED)]), READ);
    }

    #[test]
    fn owner_rights_take_the_place_of_what_is_implied() {
        let rights = |mask| Ace::allow(Sid::OWNER_RIGHTS, mask, NONE);
        assert_eq!(may(10, vec![rights(WRITE)]), WRITE);
        assert_eq!(may(11, vec![rights(WRITE)]), AccessMask::empty());
        let deny = Ace::deny(Sid::OWNER_RIGHTS, READ, NONE);
        assert_eq!(may(10, vec![deny.clone(), Ace::allow(OWNER, READ | WRITE, NONE)]), WRITE);
        assert_eq!(may(11, vec![deny, Ace::allow(OTHER, READ, NONE)]), READ);
        assert_eq!(may(10, vec![Ace::deny(OWNER, AccessMask::WRITE_DAC, NONE)]), IMPLIED);
        let inherit_only = Ace::allow(Sid::OWNER_RIGHTS, READ, AceFlags::INHERIT_ONLY);
        assert_eq!(may(10, vec![inherit_only]), IMPLIED);
    }

    #[test]
    fn generic_rights_count_as_what_they_stand_for() {
        assert_eq!(may(11, vec![Ace::allow(OTHER, AccessMask::GENERIC_READ, NONE)]), AccessMask::FILE_READ);
        assert_eq!(
            may(11, vec![Ace::allow(OTHER, AccessMask::ACCESS_SYSTEM_SECURITY, NONE)]),
            AccessMask::empty()
        );
    }

    #[test]
    fn a_condition_that_cannot_be_judged_denies_and_never_allows() {
        let other = |ace_type| {
            let mut data = READ.bits().to_le_bytes().to_vec();
            OTHER.encode_into(&mut data);
            Ace { flags: NONE, body: AceBody::Other { ace_type, data } }
        };
        let all = Ace::allow(OTHER, READ | WRITE, NONE);
        assert_eq!(may(11, vec![other(0x0A), all.clone()]), WRITE);
        assert_eq!(may(11, vec![other(0x09)]), AccessMask::empty());
        assert_eq!(may(11, vec![other(0x05), other(0x06), all]), READ | WRITE, "object entries");
    }

    /// The pseudocode for a request of explicit rights, bit by bit as written.
    fn pseudocode(descriptor: &SecurityDescriptor, token: &Token<'_>, wanted: u32) -> bool {
        let mut remaining = wanted;
        let aces = &descriptor.dacl.as_ref().unwrap().aces;
        if descriptor.owner.as_ref().is_some_and(|owner| token.holds(owner)) {
            remaining &= !IMPLIED.bits();
        }
        for ace in aces {
            let AceBody::Basic { ace_type, mask, sid } = &ace.body else { unreachable!() };
            if ace.flags.contains(AceFlags::INHERIT_ONLY) || !token.holds(sid) {
                continue;
            }
            match ace_type {
                AceType::AccessAllowed => remaining &= !mask.bits(),
                AceType::AccessDenied if remaining & mask.bits() != 0 => return false,
                _ => {}
            }
        }
        remaining == 0
    }

    fn ace() -> impl Strategy<Value = Ace> {
        let sids =
            prop_oneof![Just(OWNER), Just(GROUP), Just(OTHER), Just(Sid::EVERYONE), Just(Sid::of_group(30))];
        (any::<bool>(), sids, 0..=0x001F_01FF_u32, any::<bool>()).prop_map(
            |(allow, sid, mask, inherit_only)| {
                let flags = if inherit_only { AceFlags::INHERIT_ONLY } else { NONE };
                let mask = AccessMask::from_bits_retain(mask);
                if allow { Ace::allow(sid, mask, flags) } else { Ace::deny(sid, mask, flags) }
            },
        )
    }

    proptest! {
        #[test]
        fn as_the_pseudocode_says(aces in vec(ace(), 0..6), uid in 10..13_u32, wanted in 0..=0x001F_01FF_u32) {
            let wanted = wanted & AccessMask::FILE_ALL.bits();
            let token = Token { uid, gid: 20, groups: &[30], sids: &[] };
            let descriptor = with(aces);
            let granted = descriptor.maximal_access(&token).contains(AccessMask::from_bits_retain(wanted));
            prop_assert_eq!(granted, pseudocode(&descriptor, &token, wanted));
        }

        /// What was stored before there were SIDs of domains decides the same for whoever has some, and what names such SIDs
        /// decides the same for whoever has none.
        #[test]
        fn sids_of_domains_change_nothing_that_was_decided_before(
            aces in vec(ace(), 0..6), others in vec(ace(), 0..3), uid in 10..13_u32, rid in 0..3_u32,
        ) {
            let domain: Sid = "S-1-5-21-1-2-3".parse().unwrap();
            let sids = [domain.member(rid).unwrap(), domain.member(rid + 1).unwrap()];
            let before = Token { uid, gid: 20, groups: &[30], sids: &[] };
            let known = Token { sids: &sids, ..before };
            let old = with(aces.clone());
            prop_assert_eq!(old.maximal_access(&before), old.maximal_access(&known));
            // The same entries, with some of people whom this caller is not.
            let strangers = others.into_iter().map(|mut ace| {
                if let AceBody::Basic { sid, .. } = &mut ace.body {
                    *sid = domain.member(7).unwrap();
                }
                ace
            });
            let more = with(strangers.chain(aces).collect());
            prop_assert_eq!(old.maximal_access(&before), more.maximal_access(&before));
            prop_assert_eq!(old.maximal_access(&before), more.maximal_access(&known));
        }

        /// An entry for a SID of the caller decides as one for the caller's uid does.
        #[test]
        fn a_sid_of_the_caller_is_the_caller(aces in vec(ace(), 0..6)) {
            let own: Sid = "S-1-5-21-1-2-3-1104".parse().unwrap();
            let renamed = aces.iter().cloned().map(|mut ace| {
                if let AceBody::Basic { sid, .. } = &mut ace.body && *sid == OTHER {
                    *sid = own;
                }
                ace
            });
            let token = Token { uid: 11, gid: 20, groups: &[30], sids: &[own] };
            let renamed = with(renamed.collect());
            prop_assert_eq!(with(aces).maximal_access(&token), renamed.maximal_access(&token));
        }
    }
}
