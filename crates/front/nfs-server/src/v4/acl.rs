//! Converts between access control lists of NFSv4 (RFC 8881 section 6) and the security descriptors of SMB.
//!
//! Rights and inheritance have the same meaning in both, and most of their bits are the same. Users and groups are the
//! decimal numbers of RFC 8881 5.9, or names of users that the server knows; any other SID is sent, and accepted, as its text. `OWNER@` is the owner of the
//! object: for the object itself the SID of its owner, for objects that inherit the entry CREATOR OWNER. So an entry
//! for `OWNER@` that applies to both is stored as two, and sent as one again; the same holds for `GROUP@`.

use std::borrow::Cow;

use acl::{AccessMask, Ace, AceFlags, AceType, Acl, Control, SecurityDescriptor, Sid};
use nfs_wire::v4::acl as wire;
use nfs_wire::v4::acl::ace_type::{ALLOW, DENY};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;

use super::owner::Names;

/// The most entries that a client may set: as many as fit into the list of a security descriptor ([MS-DTYP] 2.4.5).
pub(super) const ENTRIES_MAX: usize = 1024;

/// The rights that NFSv4 and SMB have in common.
const RIGHTS: wire::AceMask = wire::AceMask::from_bits_retain(AccessMask::FILE_ALL.bits());
/// The rights that only NFSv4 has: retention of files.
const RETENTION: wire::AceMask = wire::AceMask::WRITE_RETENTION.union(wire::AceMask::WRITE_RETENTION_HOLD);

const OWNER: &str = "OWNER@";
const GROUP: &str = "GROUP@";

/// RFC 8881 6.2.1.5, table 4, apart from the two above.
const SPECIAL: [(&str, Sid); 8] = [
    ("EVERYONE@", Sid::EVERYONE),
    ("INTERACTIVE@", Sid::INTERACTIVE),
    ("NETWORK@", Sid::NETWORK),
    ("DIALUP@", Sid::DIALUP),
    ("BATCH@", Sid::BATCH),
    ("ANONYMOUS@", Sid::ANONYMOUS),
    ("AUTHENTICATED@", Sid::AUTHENTICATED_USERS),
    ("SERVICE@", Sid::SERVICE),
];

/// The flags of both kinds of objects that inherit.
const INHERIT: wire::AceFlags = wire::AceFlags::FILE_INHERIT.union(wire::AceFlags::DIRECTORY_INHERIT);

/// The flags that allowing and denying entries may have.
const KNOWN_FLAGS: wire::AceFlags = INHERIT
    .union(wire::AceFlags::NO_PROPAGATE_INHERIT)
    .union(wire::AceFlags::INHERIT_ONLY)
    .union(wire::AceFlags::INHERITED)
    .union(wire::AceFlags::IDENTIFIER_GROUP);

/// The flags that lists may have.
const LIST_FLAGS: wire::AclFlags =
    wire::AclFlags::AUTO_INHERIT.union(wire::AclFlags::PROTECTED).union(wire::AclFlags::DEFAULTED);

/// The inheritance flags of NFSv4 and SMB.
const FLAGS: [(wire::AceFlags, AceFlags); 5] = [
    (wire::AceFlags::FILE_INHERIT, AceFlags::OBJECT_INHERIT),
    (wire::AceFlags::DIRECTORY_INHERIT, AceFlags::CONTAINER_INHERIT),
    (wire::AceFlags::NO_PROPAGATE_INHERIT, AceFlags::NO_PROPAGATE_INHERIT),
    (wire::AceFlags::INHERIT_ONLY, AceFlags::INHERIT_ONLY),
    (wire::AceFlags::INHERITED, AceFlags::INHERITED),
];

/// A list that is sent to a client, from which the wire type borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplyAcl {
    flags: wire::AclFlags,
    entries: Vec<ReplyAce>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReplyAce {
    ace_type: u32,
    flags: wire::AceFlags,
    mask: wire::AceMask,
    who: Cow<'static, str>,
}

impl ReplyAcl {
    /// The list of a descriptor. If there is none, everybody may do everything.
    pub(super) fn of(descriptor: &SecurityDescriptor) -> Self {
        let mut flags = wire::AclFlags::empty();
        flags.set(wire::AclFlags::AUTO_INHERIT, descriptor.control.contains(Control::DACL_AUTO_INHERITED));
        flags.set(wire::AclFlags::PROTECTED, descriptor.control.contains(Control::DACL_PROTECTED));
        let Some(dacl) = &descriptor.dacl else {
            let everybody = Ace::allow(Sid::EVERYONE, AccessMask::FILE_ALL, AceFlags::empty());
            return Self { flags, entries: ReplyAce::of(&everybody, descriptor).into_iter().collect() };
        };
        let mut entries: Vec<ReplyAce> = Vec::with_capacity(dacl.aces.len());
        for entry in dacl.aces.iter().filter_map(|ace| ReplyAce::of(ace, descriptor)) {
            match entries.last_mut() {
                Some(last) if last.is_completed_by(&entry) => {
                    last.flags |= entry.flags & !wire::AceFlags::INHERIT_ONLY
                }
                _ => entries.push(entry),
            }
        }
        Self { flags, entries }
    }

    /// The same list, with the names of users whom somebody knows.
    pub(super) fn with_names(mut self, names: Names<'_>) -> Self {
        let Some(names) = names else { return self };
        for entry in &mut self.entries {
            let name = match (super::owner::id(&entry.who), entry.who.parse::<Sid>()) {
                (Some(_), _) if entry.flags.contains(wire::AceFlags::IDENTIFIER_GROUP) => None,
                (Some(uid), _) => names.of_uid(uid),
                (None, Ok(sid)) => names.of_sid(&sid),
                (None, Err(_)) => None,
            };
            if let Some(name) = name {
                entry.who = Cow::Owned((*name).to_owned());
            }
        }
        self
    }

    /// The attribute `acl`. RFC 8881 6.2.1.4.1: "Clients and servers MUST clear this bit in the acl attribute".
    pub(super) fn acl(&self) -> Vec<wire::Ace<'_>> {
        self.entries.iter().map(|entry| entry.wire(!wire::AceFlags::INHERITED)).collect()
    }

    /// The attribute `dacl`.
    pub(super) fn dacl(&self) -> wire::Acl41<'_> {
        let aces = self.entries.iter().map(|entry| entry.wire(wire::AceFlags::all())).collect();
        wire::Acl41 { flags: self.flags, aces }
    }
}

impl ReplyAce {
    /// The form of an entry for NFS clients, if it concerns them.
    fn of(ace: &Ace, descriptor: &SecurityDescriptor) -> Option<Self> {
        let (ace_type, mask, sid) = ace.statement()?;
        let mut flags = FLAGS
            .iter()
            .filter(|(_, there)| ace.flags.contains(*there))
            .fold(wire::AceFlags::empty(), |flags, (here, _)| flags | *here);
        let is_inherited = flags.intersects(INHERIT);
        let who = match sid {
            Sid::CREATOR_OWNER | Sid::CREATOR_GROUP if !is_inherited => return None, // applies to no user
            Sid::CREATOR_OWNER | Sid::CREATOR_GROUP => {
                flags |= wire::AceFlags::INHERIT_ONLY;
                Cow::Borrowed(if sid == Sid::CREATOR_OWNER { OWNER } else { GROUP })
            }
            // Objects that inherit these entries get this user and group, not their own owner and group.
            sid if !is_inherited && descriptor.owner == Some(sid) => Cow::Borrowed(OWNER),
            sid if !is_inherited && descriptor.group == Some(sid) => Cow::Borrowed(GROUP),
            sid => {
                flags.set(wire::AceFlags::IDENTIFIER_GROUP, sid.gid().is_some());
                name_of(sid)
            }
        };
        let ace_type = if ace_type == AceType::AccessAllowed { ALLOW } else { DENY };
        Some(Self { ace_type, flags, mask: RIGHTS & wire::AceMask::from_bits_retain(mask.bits()), who })
    }

    /// Whether the next entry says the same for objects that inherit it. `OWNER@` and `GROUP@` are stored as two
    /// entries then.
    fn is_completed_by(&self, next: &Self) -> bool {
        let own = matches!(&*self.who, OWNER | GROUP)
            && !self.flags.intersects(INHERIT | wire::AceFlags::INHERIT_ONLY);
        let inherited = next.flags.contains(wire::AceFlags::INHERIT_ONLY);
        own && inherited && self.who == next.who && (self.ace_type, self.mask) == (next.ace_type, next.mask)
    }

    fn wire(&self, flags: wire::AceFlags) -> wire::Ace<'_> {
        wire::Ace {
            ace_type: self.ace_type,
            flags: self.flags & flags,
            mask: self.mask,
            who: Text(self.who.as_bytes()),
        }
    }
}

fn name_of(sid: Sid) -> Cow<'static, str> {
    if let Some((name, _)) = SPECIAL.iter().find(|(_, special)| *special == sid) {
        return Cow::Borrowed(name);
    }
    match sid.uid().or_else(|| sid.gid()) {
        Some(id) => Cow::Owned(id.to_string()),
        None => Cow::Owned(sid.to_string()),
    }
}

/// The object whose list a client sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'n> {
    /// The owner for whom `OWNER@` stands.
    pub(super) owner: Sid,
    /// The group for which `GROUP@` stands.
    pub(super) group: Sid,
    /// Whether objects can inherit from it.
    pub(super) is_dir: bool,
    /// Who knows the names in a list.
    pub(super) names: Names<'n>,
}

impl Subject<'_> {
    /// Whether permission bits say exactly what a list says.
    fn has_bits_for(&self, acl: &Acl) -> bool {
        let given = SecurityDescriptor {
            control: Control::DACL_PRESENT,
            owner: Some(self.owner),
            group: Some(self.group),
            sacl: None,
            dacl: Some(acl.clone()),
        };
        given.is_of_some_mode(self.is_dir)
    }
}

/// The list that a client sets as the attribute `acl`. RFC 8881 6.4.3.2: a client that uses this attribute does not
/// know automatic inheritance, so the list is protected from it. A list that says no more than permission bits needs no
/// protection.
///
/// # Errors
/// Those of [`given_dacl`].
pub(super) fn given_acl(aces: &[wire::Ace<'_>], subject: &Subject<'_>) -> Result<(Control, Acl), Status> {
    let acl = entries(aces, subject, !wire::AceFlags::INHERITED)?;
    let mut control = Control::DACL_PRESENT;
    control.set(Control::DACL_PROTECTED, !subject.has_bits_for(&acl));
    Ok((control, acl))
}

/// The list that a client sets as the attribute `dacl`.
///
/// # Errors
/// [`Status::AttrNotSupp`] for entries that cannot be stored: audit and alarm entries, inheritance from an object that
/// is not a directory or by no kind of object (RFC 8881 6.2.1.2, 6.2.1.4.1); [`Status::Inval`] for undefined bits;
/// [`Status::BadOwner`] for a name that this server does not know; [`Status::NoSpc`] for too many entries.
pub(super) fn given_dacl(list: &wire::Acl41<'_>, subject: &Subject<'_>) -> Result<(Control, Acl), Status> {
    if !LIST_FLAGS.contains(list.flags) {
        return Err(Status::Inval);
    }
    let automatic = Control::DACL_AUTO_INHERITED | Control::DACL_AUTO_INHERIT_REQ;
    let mut control = Control::DACL_PRESENT;
    control.set(automatic, list.flags.contains(wire::AclFlags::AUTO_INHERIT));
    control.set(Control::DACL_PROTECTED, list.flags.contains(wire::AclFlags::PROTECTED));
    Ok((control, entries(&list.aces, subject, wire::AceFlags::all())?))
}

fn entries(given: &[wire::Ace<'_>], subject: &Subject<'_>, kept: wire::AceFlags) -> Result<Acl, Status> {
    if given.len() > ENTRIES_MAX {
        return Err(Status::NoSpc);
    }
    let mut aces = Vec::with_capacity(given.len());
    for ace in given {
        check_flags(ace.flags, subject)?;
        let flags = ace.flags & kept;
        let own = match ace.who.0 {
            who if who == OWNER.as_bytes() => Some((subject.owner, Sid::CREATOR_OWNER)),
            who if who == GROUP.as_bytes() => Some((subject.group, Sid::CREATOR_GROUP)),
            _ => None,
        };
        match own {
            Some((own, creator)) if flags.intersects(INHERIT) => {
                let inherited = flags & !wire::AceFlags::INHERIT_ONLY;
                if inherited == flags {
                    aces.push(entry(ace, own, flags & wire::AceFlags::INHERITED)?);
                }
                aces.push(entry(ace, creator, inherited | wire::AceFlags::INHERIT_ONLY)?);
            }
            Some((own, _)) => aces.push(entry(ace, own, flags)?),
            None => aces.push(entry(ace, sid_of(ace.who, flags, subject.names)?, flags)?),
        }
    }
    Ok(Acl { revision: 2, aces })
}

fn check_flags(flags: wire::AceFlags, subject: &Subject<'_>) -> Result<(), Status> {
    // 6.2.1.4.1: SUCCESSFUL_ACCESS and FAILED_ACCESS "may be set only on ACE4_SYSTEM_AUDIT_ACE_TYPE (AUDIT) and
    // ACE4_SYSTEM_ALARM_ACE_TYPE (ALARM) ACE types".
    if !KNOWN_FLAGS.contains(flags) {
        return Err(Status::Inval);
    }
    let is_inherited = flags.intersects(INHERIT);
    let by_nobody = flags.contains(wire::AceFlags::INHERIT_ONLY) && !is_inherited;
    if by_nobody || (is_inherited && !subject.is_dir) { Err(Status::AttrNotSupp) } else { Ok(()) }
}

fn entry(ace: &wire::Ace<'_>, sid: Sid, flags: wire::AceFlags) -> Result<Ace, Status> {
    if !RIGHTS.union(RETENTION).contains(ace.mask) {
        return Err(Status::Inval);
    }
    // 6.2.1.3.1: a right that cannot be implemented errs "in the direction of more restricted access": no user may
    // retain files.
    let mask = AccessMask::from_bits_retain((ace.mask & RIGHTS).bits());
    let flags = FLAGS
        .iter()
        .filter(|(here, _)| flags.contains(*here))
        .fold(AceFlags::empty(), |flags, (_, there)| flags | *there);
    match ace.ace_type {
        ALLOW => Ok(Ace::allow(sid, mask, flags)),
        DENY => Ok(Ace::deny(sid, mask, flags)),
        _ => Err(Status::AttrNotSupp),
    }
}

fn sid_of(who: Text<'_>, flags: wire::AceFlags, names: Names<'_>) -> Result<Sid, Status> {
    let who = who.as_str()?;
    if who.is_empty() {
        return Err(Status::Inval);
    }
    if let Some((_, sid)) = SPECIAL.iter().find(|(name, _)| *name == who) {
        return Ok(*sid);
    }
    if let Some(id) = super::owner::id(who) {
        let is_group = flags.contains(wire::AceFlags::IDENTIFIER_GROUP);
        return Ok(if is_group { Sid::of_group(id) } else { Sid::of_user(id) });
    }
    let named = || names.and_then(|names| names.sid_of(who));
    let sid = if who.starts_with("S-") { who.parse().ok() } else { named() };
    sid.ok_or(Status::BadOwner)
}

#[cfg(test)]
mod tests;
