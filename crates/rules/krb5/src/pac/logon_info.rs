//! KERB_VALIDATION_INFO: the user and its groups. [MS-PAC] 2.5.

use std::fmt;

use acl::Sid;

use super::PacError;
use super::ndr::{Pointer, Reader};

/// The most elements of each of the three lists of groups. Windows' own limit for a token is 1,024 SIDs.
pub(super) const GROUPS_MAX: u32 = 10_000;

/// LOGON_EXTRA_SIDS and LOGON_RESOURCE_GROUPS of UserFlags: which lists are filled.
const EXTRA_SIDS: u32 = 0x20;
const RESOURCE_GROUPS: u32 = 0x200;

/// A user of a domain.
#[derive(Clone, PartialEq, Eq)]
pub struct LogonInfo {
    /// The name of the account
    pub account: String,
    /// The domain's NetBIOS name
    pub domain: String,
    /// The user
    pub sid: Sid,
    /// The user's primary group, which is the first of [`Self::groups`]
    pub primary_group: Sid,
    groups: Vec<Sid>,
    /// Where in `groups` the extra SIDs begin
    extra_at: usize,
    /// Where in `groups` the resource groups begin
    resource_at: usize,
}

impl LogonInfo {
    /// All groups: those of the domain, the extra SIDs and the resource groups.
    #[must_use]
    pub fn groups(&self) -> &[Sid] {
        &self.groups
    }

    /// The groups of the user's domain, the primary group first.
    #[must_use]
    pub fn domain_groups(&self) -> &[Sid] {
        self.groups.get(..self.extra_at).unwrap_or_default()
    }

    /// Groups of other domains, SIDs that the user had before, and well-known SIDs.
    #[must_use]
    pub fn extra_sids(&self) -> &[Sid] {
        self.groups.get(self.extra_at..self.resource_at).unwrap_or_default()
    }

    /// The domain-local groups of the domain that this server belongs to.
    #[must_use]
    pub fn resource_groups(&self) -> &[Sid] {
        self.groups.get(self.resource_at..).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, PacError> {
        let mut reader = Reader::of_serialised(bytes)?;
        let fixed = Fixed::read(&mut reader)?;
        let [account, others @ ..] = fixed.texts;
        let account = reader.text(account)?;
        for other in others {
            reader.text_units(other)?;
        }
        let mut rids = Vec::new();
        fixed.groups.read(&mut reader, |reader| {
            rids.push(reader.u32()?);
            reader.u32()
        })?;
        reader.text_units(fixed.logon_server)?;
        let domain = reader.text(fixed.domain)?;
        if fixed.domain_sid.is_null() {
            return Err(PacError::Sid);
        }
        let domain_sid = reader.sid()?;
        let primary_group = with_rid(&domain_sid, fixed.primary_group)?;
        let mut groups = Vec::with_capacity(rids.len().saturating_add(fixed.more_groups()));
        groups.push(primary_group);
        for rid in rids.into_iter().filter(|rid| *rid != fixed.primary_group) {
            groups.push(with_rid(&domain_sid, rid)?);
        }
        let extra_at = groups.len();
        read_extra_sids(&mut reader, &fixed, &mut groups)?;
        let resource_at = groups.len();
        read_resource_groups(&mut reader, &fixed, &mut groups)?;
        // [MS-PAC] 2.5, UserId: if it is zero, the first SID of ExtraSids is that of the user
        let sid = match fixed.user {
            0 => groups.get(extra_at..resource_at).and_then(<[Sid]>::first).copied().ok_or(PacError::Sid)?,
            rid => with_rid(&domain_sid, rid)?,
        };
        Ok(Self { account, domain, sid, primary_group, groups, extra_at, resource_at })
    }
}

/// The members of KERB_VALIDATION_INFO that lie one after another, before those that pointers lead to.
struct Fixed {
    texts: [Pointer; 6],
    user: u32,
    primary_group: u32,
    groups: List,
    flags: u32,
    logon_server: Pointer,
    domain: Pointer,
    domain_sid: Pointer,
    extra_sids: List,
    resource_domain: Pointer,
    resource_groups: List,
}

/// The number of elements of an array that follows later.
#[derive(Clone, Copy)]
struct List {
    count: u32,
    pointer: Pointer,
}

impl List {
    fn head(reader: &mut Reader<'_>) -> Result<Self, PacError> {
        let count = reader.u32()?;
        if count > GROUPS_MAX {
            return Err(PacError::TooManyGroups);
        }
        let pointer = reader.pointer()?;
        if pointer.is_null() && count > 0 { Err(PacError::LogonInfo) } else { Ok(Self { count, pointer }) }
    }

    /// Reads the elements, each with `element`.
    fn read<'a>(
        self,
        reader: &mut Reader<'a>,
        mut element: impl FnMut(&mut Reader<'a>) -> Result<u32, PacError>,
    ) -> Result<(), PacError> {
        if self.pointer.is_null() {
            return Ok(());
        }
        reader.array(self.count)?;
        (0..self.count).try_for_each(|_| element(reader).map(|_attributes| ()))
    }
}

impl Fixed {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PacError> {
        if reader.pointer()?.is_null() {
            return Err(PacError::LogonInfo);
        }
        reader.take(48, 4)?; // six times
        let mut texts = [Pointer::NULL; 6];
        for text in &mut texts {
            *text = reader.text_pointer()?;
        }
        reader.take(4, 2)?; // LogonCount, BadPasswordCount
        let (user, primary_group) = (reader.u32()?, reader.u32()?);
        let groups = List::head(reader)?;
        let flags = reader.u32()?;
        reader.take(16, 1)?; // UserSessionKey
        let (logon_server, domain) = (reader.text_pointer()?, reader.text_pointer()?);
        let domain_sid = reader.pointer()?;
        reader.take(40, 4)?; // Reserved1, UserAccountControl, SubAuthStatus, two times, FailedILogonCount, Reserved3
        let extra_sids = List::head(reader)?;
        let resource_domain = reader.pointer()?;
        let resource_groups = List::head(reader)?;
        Ok(Self {
            texts,
            user,
            primary_group,
            groups,
            flags,
            logon_server,
            domain,
            domain_sid,
            extra_sids,
            resource_domain,
            resource_groups,
        })
    }

    /// How many groups there may be beside those of the domain.
    fn more_groups(&self) -> usize {
        let more = self.extra_sids.count.saturating_add(self.resource_groups.count).saturating_add(1);
        usize::try_from(more).unwrap_or(0)
    }
}

/// KERB_SID_AND_ATTRIBUTES: an array of pointers, and the SIDs behind it.
fn read_extra_sids(reader: &mut Reader<'_>, fixed: &Fixed, groups: &mut Vec<Sid>) -> Result<(), PacError> {
    let mut present: usize = 0;
    fixed.extra_sids.read(reader, |reader| {
        if !reader.pointer()?.is_null() {
            present = present.saturating_add(1);
        }
        reader.u32()
    })?;
    for _ in 0..present {
        let sid = reader.sid()?;
        if fixed.flags & EXTRA_SIDS != 0 {
            groups.push(sid);
        }
    }
    Ok(())
}

/// The SID of a domain, and RIDs in it.
fn read_resource_groups(
    reader: &mut Reader<'_>,
    fixed: &Fixed,
    groups: &mut Vec<Sid>,
) -> Result<(), PacError> {
    let domain = if fixed.resource_domain.is_null() { None } else { Some(reader.sid()?) };
    fixed.resource_groups.read(reader, |reader| {
        let rid = reader.u32()?;
        match domain {
            Some(domain) if fixed.flags & RESOURCE_GROUPS != 0 => groups.push(with_rid(&domain, rid)?),
            Some(_) | None => {}
        }
        reader.u32()
    })
}

/// The SID of an account or group of a domain.
fn with_rid(domain: &Sid, rid: u32) -> Result<Sid, PacError> {
    let mut all = [0; acl::SUB_AUTHORITIES_MAX];
    let given = domain.sub_authorities();
    let (place, last) = all
        .get_mut(..=given.len())
        .and_then(<[u32]>::split_last_mut)
        .map(|(last, place)| (place, last))
        .ok_or(PacError::Sid)?;
    place.copy_from_slice(given);
    *last = rid;
    let used = all.get(..=given.len()).unwrap_or_default();
    Sid::new(domain.authority(), used).map_err(|_| PacError::Sid)
}

impl fmt::Debug for LogonInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogonInfo")
            .field("account", &self.account)
            .field("domain", &self.domain)
            .field("sid", &self.sid)
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}
