//! Permission bits as access control lists, and back.
//!
//! Permission bits distinguish three classes; a list may name any user or group. The bits that correspond to a list
//! contain what the list grants to the owner, the group and everybody. A list that says no more than the bits need not
//! be stored beside them.

use crate::{AccessMask, Ace, AceBody, AceFlags, AceType, Acl, Control, SecurityDescriptor, Sid};

/// Rights of everybody who can reach an object.
const LOOK: AccessMask =
    AccessMask::READ_ATTRIBUTES.union(AccessMask::READ_CONTROL).union(AccessMask::SYNCHRONIZE);
const READ: AccessMask = AccessMask::READ_DATA.union(AccessMask::READ_EA);
const WRITE: AccessMask = AccessMask::WRITE_DATA
    .union(AccessMask::APPEND_DATA)
    .union(AccessMask::WRITE_EA)
    .union(AccessMask::WRITE_ATTRIBUTES);
/// Rights of the owner, whatever the bits say.
const OWNER: AccessMask =
    AccessMask::WRITE_ATTRIBUTES.union(AccessMask::WRITE_EA).union(AccessMask::WRITE_DAC);

/// The rights for each of the three permission bits of a class.
const BITS: [(u32, AccessMask); 3] = [
    (4, AccessMask::READ_DATA),
    (2, AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA)),
    (1, AccessMask::EXECUTE),
];

/// The SIDs that correspond to everybody.
const EVERYBODY: [Sid; 3] = [Sid::EVERYONE, Sid::AUTHENTICATED_USERS, Sid::USERS];

impl SecurityDescriptor {
    /// The descriptor that corresponds to permission bits.
    #[must_use]
    pub fn of_mode(mode: u32, is_dir: bool, uid: u32, gid: u32) -> Self {
        let (owner, group) = (Sid::of_user(uid), Sid::of_group(gid));
        Self {
            control: Control::DACL_PRESENT,
            owner: Some(owner),
            group: Some(group),
            sacl: None,
            dacl: Some(Acl { revision: 2, aces: aces_of(mode, is_dir, owner, group) }),
        }
    }

    /// Whether this is exactly the descriptor that corresponds to the permission bits, with or without ownership
    /// ([`Self::with_ownership`]).
    #[must_use]
    pub fn is_of_mode(&self, mode: u32, is_dir: bool, uid: u32, gid: u32) -> bool {
        let of_mode = Self::of_mode(mode, is_dir, uid, gid);
        *self == of_mode || *self == of_mode.with_ownership()
    }

    /// This descriptor, for permission bits shown to a client that knows a right to take ownership: an owner who may
    /// read and write gets that right. So a client that changes the list and writes it back keeps the right to do that
    /// again.
    #[must_use]
    pub fn with_ownership(mut self) -> Self {
        let owner = self.owner;
        for ace in self.dacl.iter_mut().flat_map(|dacl| &mut dacl.aces) {
            if let AceBody::Basic { ace_type: AceType::AccessAllowed, mask, sid } = &mut ace.body
                && Some(*sid) == owner
                && mask.contains(AccessMask::READ_DATA | AccessMask::WRITE_DATA)
            {
                *mask |= AccessMask::WRITE_OWNER;
            }
        }
        self
    }

    /// Whether this descriptor corresponds to any permission bits.
    #[must_use]
    pub fn is_of_some_mode(&self, is_dir: bool) -> bool {
        let owners = self.owner.and_then(|sid| sid.uid()).zip(self.group.and_then(|sid| sid.gid()));
        owners.is_some_and(|(uid, gid)| self.is_of_mode(self.permission_bits(), is_dir, uid, gid))
    }

    /// The closest permission bits: what the list grants to owner, group and everybody, in the order of the entries
    /// (RFC 8881 6.3.2). Without a list everybody may do everything.
    #[must_use]
    pub fn permission_bits(&self) -> u32 {
        let Some(dacl) = &self.dacl else { return 0o777 };
        let bits_of = |class: u32| {
            let allowed = self.allowed_to(class, dacl);
            BITS.iter()
                .filter(|(_, rights)| allowed.contains(*rights))
                .map(|(bit, _)| bit * class)
                .sum::<u32>()
        };
        bits_of(0o100) | bits_of(0o010) | bits_of(0o001)
    }

    /// The rights that the list grants to one of the classes of [`Self::classes_of`].
    fn allowed_to(&self, class: u32, dacl: &Acl) -> AccessMask {
        let (mut allowed, mut denied) = (AccessMask::empty(), AccessMask::empty());
        for ace in dacl.aces.iter().filter(|ace| ace.is_effective()) {
            match &ace.body {
                AceBody::Basic { sid, .. } if self.classes_of(sid) & class == 0 => {}
                AceBody::Basic { ace_type: AceType::AccessAllowed, mask, .. } => {
                    allowed |= mask.mapped().difference(denied);
                }
                AceBody::Basic { ace_type: AceType::AccessDenied, mask, .. } => {
                    denied |= mask.mapped().difference(allowed);
                }
                AceBody::Basic { .. } | AceBody::Other { .. } => {}
            }
        }
        allowed
    }

    /// Whether permission bits can express this descriptor, as far as bits go: it grants and denies access to data only
    /// to owner, group and everybody, and nothing is inherited from it.
    #[must_use]
    pub fn is_kept_by_bits(&self) -> bool {
        let is_kept = |ace: &Ace| match &ace.body {
            AceBody::Basic { mask, sid, .. } => {
                let says_nothing = BITS.iter().all(|(_, rights)| !mask.mapped().intersects(*rights));
                ace.is_effective()
                    && (says_nothing
                        || self.classes_of(sid) != 0
                        || *sid == Sid::LOCAL_SYSTEM
                        || *sid == Sid::ADMINISTRATORS)
            }
            AceBody::Other { .. } => false,
        };
        self.dacl.as_ref().is_none_or(|dacl| dacl.aces.iter().all(is_kept))
    }

    /// The bit of each class to which a SID belongs; 0 for other SIDs.
    fn classes_of(&self, sid: &Sid) -> u32 {
        if EVERYBODY.contains(sid) {
            return 0o111;
        }
        let owner = if self.owner.as_ref() == Some(sid) || *sid == Sid::OWNER_RIGHTS { 0o100 } else { 0 };
        let group = if self.group.as_ref() == Some(sid) { 0o010 } else { 0 };
        owner | group
    }

    /// Removes rights that the permission bits of a new object do not grant, as with POSIX default ACLs: the owner's
    /// bits limit the owner's entries, the bits of others limit the entries for everybody, and the group's bits limit
    /// all other entries. Entries that are only inherited do not change.
    pub fn bound_by_mode(&mut self, mode: u32) {
        let owner = self.owner;
        let Some(dacl) = &mut self.dacl else { return };
        for ace in dacl.aces.iter_mut().filter(|ace| ace.is_effective()) {
            let AceBody::Basic { ace_type: AceType::AccessAllowed, mask, sid } = &mut ace.body else {
                continue;
            };
            let shift = match *sid {
                sid if EVERYBODY.contains(&sid) => 0,
                sid if Some(sid) == owner => 6,
                _ => 3,
            };
            *mask = mask.mapped().difference(beyond(mode >> shift, Some(*sid) == owner));
        }
    }
}

/// The rights that the three permission bits of a class do not grant.
fn beyond(bits: u32, is_owner: bool) -> AccessMask {
    let denied = data_rights_of(!bits & 7, false);
    let denied = if bits & 3 == 3 { denied } else { denied | AccessMask::DELETE_CHILD };
    if is_owner { denied.difference(OWNER) } else { denied }
}

/// In a list the rights of everybody also apply to the owner. Where the bits differ, a denying entry is needed.
fn aces_of(mode: u32, is_dir: bool, owner: Sid, group: Sid) -> Vec<Ace> {
    let class = |shift: u32| (mode >> shift) & 7;
    let (of_owner, of_group, of_others) = (class(6), class(3), class(0));
    let deny = |sid, bits: u32| {
        let mask = data_rights_of(bits, is_dir).difference(OWNER);
        (!mask.is_empty()).then(|| Ace::deny(sid, mask, AceFlags::empty()))
    };
    let allow =
        |sid, bits, also| Ace::allow(sid, LOOK | data_rights_of(bits, is_dir) | also, AceFlags::empty());
    let mut aces = Vec::with_capacity(5);
    aces.extend(deny(owner, (of_group | of_others) & !of_owner));
    aces.push(allow(owner, of_owner, OWNER));
    aces.extend(deny(group, of_others & !of_group));
    aces.push(allow(group, of_group, AccessMask::empty()));
    aces.push(allow(Sid::EVERYONE, of_others, AccessMask::empty()));
    aces
}

fn data_rights_of(bits: u32, is_dir: bool) -> AccessMask {
    let mut mask = AccessMask::empty();
    mask.set(READ, bits & 4 != 0);
    mask.set(WRITE, bits & 2 != 0);
    mask.set(AccessMask::EXECUTE, bits & 1 != 0);
    mask.set(AccessMask::DELETE_CHILD, is_dir && bits & 3 == 3);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;

    const OWNER_SID: Sid = Sid::of_user(1000);
    const GROUP_SID: Sid = Sid::of_group(100);

    fn of_mode(mode: u32, is_dir: bool) -> SecurityDescriptor {
        SecurityDescriptor::of_mode(mode, is_dir, 1000, 100)
    }

    #[test]
    fn every_mode_comes_back() {
        for is_dir in [false, true] {
            for mode in 0..0o1000 {
                assert_eq!(of_mode(mode, is_dir).permission_bits(), mode, "{mode:o}");
                assert!(of_mode(mode, is_dir).is_of_mode(mode, is_dir, 1000, 100));
            }
        }
        assert!(!of_mode(0o640, false).is_of_mode(0o644, false, 1000, 100));
    }

    /// The list grants each class what the bits grant.
    #[test]
    fn the_list_allows_what_the_bits_allow() {
        for mode in 0..0o1000 {
            let described = of_mode(mode, true);
            for (uid, gid, shift) in [(1000, 1, 6), (1, 100, 3), (1, 1, 0)] {
                let may = described.maximal_access(&Token { uid, gid, groups: &[], sids: &[] });
                for (bit, right) in BITS {
                    assert_eq!(
                        may.contains(right),
                        (mode >> shift) & bit != 0,
                        "{mode:o} {right:?} {uid} {gid}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_owner_who_reads_and_writes_has_the_ownership() {
        for (mode, has) in
            [(0o644, true), (0o755, true), (0o600, true), (0o444, false), (0o200, false), (0o077, false)]
        {
            for is_dir in [false, true] {
                let bare = of_mode(mode, is_dir);
                let seen = bare.clone().with_ownership();
                assert_eq!(bare != seen, has, "{mode:o}");
                assert!(seen.is_of_mode(mode, is_dir, 1000, 100) && seen.is_of_some_mode(is_dir), "{mode:o}");
                assert_eq!(seen.permission_bits(), mode, "{mode:o}");
            }
        }
    }

    #[test]
    fn the_owner_keeps_the_permissions() {
        let aces = of_mode(0, false).dacl.unwrap().aces;
        assert_eq!(aces[0], Ace::allow(OWNER_SID, LOOK | OWNER, AceFlags::empty()));
        assert_eq!(aces.len(), 3);
    }

    fn bits(aces: Vec<Ace>) -> u32 {
        SecurityDescriptor { dacl: Some(Acl { revision: 2, aces }), ..of_mode(0, false) }.permission_bits()
    }

    fn allow(sid: Sid, mask: AccessMask) -> Ace {
        Ace::allow(sid, mask, AceFlags::empty())
    }

    #[test]
    fn the_first_entry_decides() {
        let deny = Ace::deny(GROUP_SID, AccessMask::WRITE_DATA, AceFlags::empty());
        let everybody = allow(Sid::EVERYONE, AccessMask::GENERIC_ALL);
        assert_eq!(bits(vec![deny.clone(), everybody.clone()]), 0o757);
        assert_eq!(bits(vec![everybody, deny]), 0o777);
        assert_eq!(bits(vec![allow(Sid::AUTHENTICATED_USERS, AccessMask::READ_DATA)]), 0o444);
        assert_eq!(bits(vec![allow(Sid::OWNER_RIGHTS, AccessMask::GENERIC_READ)]), 0o400);
        assert_eq!(bits(vec![]), 0);
        assert_eq!(SecurityDescriptor::default().permission_bits(), 0o777);
    }

    /// RFC 8881 6.3.2: "if and only if ACE4_WRITE_DATA and ACE4_APPEND_DATA are both set in the corresponding mask".
    #[test]
    fn to_write_is_also_to_append() {
        let (write, append) = (AccessMask::WRITE_DATA, AccessMask::APPEND_DATA);
        assert_eq!(bits(vec![allow(OWNER_SID, write)]), 0);
        assert_eq!(bits(vec![allow(OWNER_SID, append)]), 0);
        assert_eq!(bits(vec![allow(OWNER_SID, write), allow(Sid::EVERYONE, append)]), 0o200);
        let no_appending = Ace::deny(GROUP_SID, append, AceFlags::empty());
        assert_eq!(bits(vec![no_appending, allow(Sid::EVERYONE, write | append)]), 0o202);
    }

    #[test]
    fn what_bits_cannot_say_they_leave_out() {
        assert_eq!(bits(vec![allow(Sid::of_user(7), AccessMask::FILE_ALL)]), 0);
        let kept = |ace| {
            let dacl = Some(Acl { revision: 2, aces: vec![ace] });
            SecurityDescriptor { dacl, ..of_mode(0, false) }.is_kept_by_bits()
        };
        assert!(!kept(allow(Sid::of_user(7), AccessMask::READ_DATA)));
        assert!(kept(allow(Sid::of_user(7), AccessMask::READ_CONTROL)), "no bit is concerned");
        assert!(kept(allow(Sid::LOCAL_SYSTEM, AccessMask::GENERIC_ALL)), "the superuser may anyway");
        assert!(!kept(Ace::allow(GROUP_SID, AccessMask::READ_DATA, AceFlags::INHERIT_ONLY)));
        assert_eq!(bits(vec![Ace::deny(Sid::of_group(7), AccessMask::FILE_ALL, AceFlags::empty())]), 0);
        assert_eq!(bits(vec![allow(Sid::LOCAL_SYSTEM, AccessMask::GENERIC_ALL)]), 0);
        assert_eq!(
            bits(vec![Ace { flags: AceFlags::empty(), body: AceBody::Other { ace_type: 9, data: vec![] } }]),
            0
        );
        assert_eq!(bits(vec![Ace::allow(Sid::EVERYONE, AccessMask::FILE_ALL, AceFlags::INHERIT_ONLY)]), 0);
    }

    #[test]
    fn a_mode_bounds_what_is_inherited() {
        let mut bound = of_mode(0, true);
        let inherit_only = Ace::allow(Sid::EVERYONE, AccessMask::FILE_ALL, AceFlags::INHERIT_ONLY);
        bound.dacl = Some(Acl {
            revision: 2,
            aces: vec![
                allow(OWNER_SID, AccessMask::FILE_ALL),
                allow(Sid::of_user(7), AccessMask::FILE_READ | AccessMask::WRITE_DATA),
                allow(Sid::EVERYONE, AccessMask::FILE_READ),
                Ace::deny(Sid::of_user(8), AccessMask::FILE_ALL, AceFlags::empty()),
                inherit_only.clone(),
            ],
        });
        bound.bound_by_mode(0o640);
        assert_eq!(bound.permission_bits(), 0o600);
        let aces = &bound.dacl.as_ref().unwrap().aces;
        let of = |uid| bound.maximal_access(&Token { uid, gid: 1, groups: &[], sids: &[] });
        assert!(
            of(1000).contains(AccessMask::WRITE_DATA | AccessMask::WRITE_DAC)
                && !of(1000).contains(AccessMask::EXECUTE)
        );
        assert_eq!(of(7) & (READ | WRITE), READ);
        assert!(!of(9).contains(AccessMask::READ_DATA));
        assert_eq!(aces[3], Ace::deny(Sid::of_user(8), AccessMask::FILE_ALL, AceFlags::empty()));
        assert_eq!(aces[4], inherit_only);
    }
}
