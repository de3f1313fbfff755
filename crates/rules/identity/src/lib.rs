//! Who a caller is, as stores and access control lists know users, and how that was proved.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod domains;
mod people;

use std::sync::Arc;

use acl::{Sid, Token};

pub use domains::{AUTORID_LEN, Domains, Formula, ID_MIN, Overlap, Slice, may_be_given};
pub use people::{DomainIds, People, SeenIds};

/// A user as the store knows users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    /// The user's own SID, if it is the user of a domain or an account.
    sid: Option<Sid>,
    /// The SIDs of the user and of the user's groups, in order; only those of domains and of this machine.
    sids: Arc<[Sid]>,
    /// Whether no permissions keep the user from anything.
    is_exempt: bool,
}

/// How a caller proved who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// With the password of the account of this name.
    Password(Arc<str>),
    /// With a Kerberos ticket for the account of this name, or for the domain's user of this name, which has an `@`.
    Ticket(Arc<str>),
    /// Not at all: the client states the user.
    Stated,
    /// Not at all: the caller is a guest, who has no name of its own.
    Guest,
}

impl Identity {
    /// A Unix user: a uid, the primary group, and further groups.
    #[must_use]
    pub fn unix(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        Self { uid, gid, groups, sid: None, sids: Arc::default(), is_exempt: false }
    }

    /// The same user, with these SIDs of its own and of its groups. Only SIDs of domains and of machines (S-1-5-21) are taken:
    /// those that are well known follow from the numbers.
    #[must_use]
    pub fn with_sids(mut self, own: Option<Sid>, groups: impl IntoIterator<Item = Sid>) -> Self {
        let is_of_domain = |sid: &Sid| sid.in_domain().is_some();
        self.sid = own.filter(is_of_domain);
        let mut sids: Vec<Sid> = groups.into_iter().chain(own).filter(is_of_domain).collect();
        sids.sort_unstable();
        sids.dedup();
        self.sids = sids.into();
        self
    }

    /// The user's own SID, if it is the user of a domain or an account.
    #[must_use]
    pub fn sid(&self) -> Option<Sid> {
        self.sid
    }

    /// The SIDs of the user and of the user's groups, in order; only those of domains and of machines.
    #[must_use]
    pub fn sids(&self) -> &[Sid] {
        &self.sids
    }

    /// The uid.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The primary group, which new objects get.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Further groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Whether the user is the superuser of the machine.
    #[must_use]
    pub fn is_superuser(&self) -> bool {
        self.uid == 0
    }

    /// The same user as the administrator of a share, whom no permissions keep from anything there.
    #[must_use]
    pub fn exempt(mut self) -> Self {
        self.is_exempt = true;
        self
    }

    /// Whether the user is exempt from permissions: the superuser, or the administrator of a share. An administrator has no
    /// other privilege of the superuser.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.is_exempt || self.is_superuser()
    }

    /// The user in terms of access control lists.
    #[must_use]
    pub fn token(&self) -> Token<'_> {
        Token { uid: self.uid, gid: self.gid, groups: &self.groups, sids: &self.sids }
    }

    /// Whether the user belongs to a group.
    #[must_use]
    pub fn is_in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}
