//! The SIDs of this machine's users and groups, and the token of a user.
//!
//! Users and groups have the same SIDs as Samba gives to those of Unix: S-1-22-1-UID and S-1-22-2-GID.

use crate::Sid;

/// The identifier authority of Unix users and groups.
const UNIX_AUTHORITY: u64 = 22;
const UNIX_USER: u32 = 1;
const UNIX_GROUP: u32 = 2;
/// The user "nobody": guests, and users that an export squashes.
const NOBODY: u32 = 65_534;

impl Sid {
    /// The SID of a user: S-1-22-1-`uid`.
    #[must_use]
    pub const fn of_user(uid: u32) -> Self {
        Self::well_known(22, 2, [UNIX_USER, uid])
    }

    /// The SID of a group: S-1-22-2-`gid`.
    #[must_use]
    pub const fn of_group(gid: u32) -> Self {
        Self::well_known(22, 2, [UNIX_GROUP, gid])
    }

    /// The user that this SID names.
    #[must_use]
    pub fn uid(&self) -> Option<u32> {
        self.unix_id(UNIX_USER)
    }

    /// The group that this SID names.
    #[must_use]
    pub fn gid(&self) -> Option<u32> {
        self.unix_id(UNIX_GROUP)
    }

    fn unix_id(&self, kind: u32) -> Option<u32> {
        match self.sub_authorities() {
            [of, id] if self.authority() == UNIX_AUTHORITY && *of == kind => Some(*id),
            _ => None,
        }
    }
}

/// Who asks for access. [MS-DTYP] 2.5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The user.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// Further groups.
    pub groups: &'a [u32],
    /// The SIDs of the user and of the user's groups in domains and on this machine, in order ([`slice::is_sorted`]). What
    /// they name is the user beside the Unix SIDs of the numbers, which entries may name as well.
    pub sids: &'a [Sid],
}

impl Token<'_> {
    /// Whether an entry for this SID applies to the user of the token ([MS-DTYP] 2.5.3.1.1 SidInToken).
    #[must_use]
    pub fn holds(&self, sid: &Sid) -> bool {
        if let Some(uid) = sid.uid() {
            return uid == self.uid;
        }
        if let Some(gid) = sid.gid() {
            return gid == self.gid || self.groups.contains(&gid);
        }
        match *sid {
            Sid::EVERYONE | Sid::NETWORK => true,
            Sid::AUTHENTICATED_USERS | Sid::USERS => self.uid != NOBODY,
            Sid::GUESTS => self.uid == NOBODY,
            Sid::LOCAL_SYSTEM | Sid::ADMINISTRATORS => self.uid == 0,
            _ => self.sids.binary_search(sid).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(text: &str) -> Sid {
        text.parse().unwrap()
    }

    #[test]
    fn unix_sids_name_users_and_groups() {
        assert_eq!(sid("S-1-22-1-1000").uid(), Some(1000));
        assert_eq!(sid("S-1-22-1-1000").gid(), None);
        assert_eq!(sid("S-1-22-2-5").gid(), Some(5));
        assert_eq!(Sid::EVERYONE.uid(), None);
        assert_eq!(Sid::of_user(1000), sid("S-1-22-1-1000"));
        assert_eq!(Sid::of_group(5), sid("S-1-22-2-5"));
    }

    #[test]
    fn whom_entries_are_about() {
        let sids = [sid("S-1-5-21-1-2-3-513"), sid("S-1-5-21-1-2-3-1104")];
        let known = Token { uid: 10, gid: 20, groups: &[30], sids: &sids };
        for yes in ["S-1-22-1-10", "S-1-22-2-30", "S-1-5-21-1-2-3-513", "S-1-5-21-1-2-3-1104"] {
            assert!(known.holds(&sid(yes)), "{yes}");
        }
        for no in ["S-1-5-21-1-2-3-10", "S-1-5-21-1-2-3", "S-1-5-21-1-2-4-513", "S-1-5-32-544"] {
            assert!(!known.holds(&sid(no)), "{no}");
        }
        let token = Token { uid: 10, gid: 20, groups: &[30], sids: &[] };
        for yes in
            ["S-1-22-1-10", "S-1-22-2-20", "S-1-22-2-30", "S-1-1-0", "S-1-5-11", "S-1-5-2", "S-1-5-32-545"]
        {
            assert!(token.holds(&sid(yes)), "{yes}");
        }
        for no in ["S-1-22-1-20", "S-1-22-2-10", "S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-5-21-1-2-3-10"] {
            assert!(!token.holds(&sid(no)), "{no}");
        }
        let nobody = Token { uid: NOBODY, gid: NOBODY, groups: &[], sids: &[] };
        assert!(nobody.holds(&Sid::EVERYONE) && !nobody.holds(&Sid::AUTHENTICATED_USERS));
        assert!(nobody.holds(&Sid::GUESTS) && !token.holds(&Sid::GUESTS), "entries that deny guests");
    }
}
