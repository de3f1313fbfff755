//! Setting and inheriting security descriptors, which are kept in step with the permission bits.
//!
//! A descriptor that says more than permission bits can is stored with its object, and the object gets the closest
//! permission bits. A descriptor that says no more is not stored: the bits are enough.

use std::sync::Arc;

use acl::{Acl, Control, Newborn, SecurityDescriptor, Sid};
use file_state::Access;
use identity::People;
use storage::{Attributes, FileKind, MayWait, NodeRef, SetAttributes, Wait, Want};

use super::permission::{self, Object};
use crate::charges::Charge;
use crate::{Caller, Error, NewObject, Result};

/// The low bits of a mode, for reading, writing and executing.
const PERMISSION_BITS: u32 = 0o777;
/// Those of them that are not the owner's.
const ALL_BUT_OWNER: u32 = 0o077;

/// The parts of a security descriptor to set. Parts that are None stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityChange {
    /// The owner.
    pub owner: Option<Sid>,
    /// The group.
    pub group: Option<Sid>,
    /// The DACL (None inside: everybody has full access), with the control flags that came with it.
    pub dacl: Option<(Control, Option<Acl>)>,
}

impl SecurityChange {
    /// Changes the descriptor and the permission bits of an object. `people`: for whom SIDs stand. `asks_permission`: the
    /// object's permissions decide whether the caller may. `is_kept`: the store keeps descriptors. `charge`
    /// begins to charge other owners for the object.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::InvalidOwner`], [`Error::InvalidGroup`], [`storage::Error::NotSupported`] where the bits
    /// cannot express a descriptor that is not kept; the store's.
    pub(crate) fn carry_out(
        self,
        (caller, people): (&Caller, &People),
        node: &NodeRef,
        asks_permission: bool,
        is_kept: bool,
        charge: impl FnOnce(&Attributes, (u32, u32)) -> Result<Option<Charge>>,
        may: MayWait<'_>,
    ) -> Result<()> {
        let before = node.attributes(Want::empty(), Wait::May(may))?;
        let in_force = node.security(&before, Wait::May(may))?;
        if asks_permission {
            let object = Object::new(&before, in_force.as_deref());
            check_permitted(caller, object, &self)?;
        }
        let owners = Owners::of((caller, people), &before, in_force.as_deref(), &self)?;
        let (uid, gid) = (owners.uid, owners.gid);
        let is_dir = before.kind == FileKind::Directory;
        // A program must not run as its new owner because the old owner set its mode so.
        let is_handed_on = !is_dir && (uid, gid) != (before.uid, before.gid);
        let had_mode =
            if is_handed_on { permission::mode_without_privilege(before.mode) } else { before.mode };
        let newborn = Newborn { owner: owners.owner, group: owners.group, is_dir };
        let (mode, wanted) = match self.dacl {
            Some((control, dacl)) => {
                let control = control | Control::DACL_PRESENT;
                let given = SecurityDescriptor { control, dacl, ..SecurityDescriptor::default() };
                let given = given.given_to(&newborn);
                (had_mode & !PERMISSION_BITS | given.permission_bits(), given)
            }
            None => {
                let had = in_force.clone().map_or_else(|| of_mode(&before), Arc::unwrap_or_clone);
                (had_mode, had.owned_by(&newborn))
            }
        };
        let is_of_mode = wanted.is_of_mode(mode, is_dir, uid, gid);
        if !is_kept && !is_of_mode && !wanted.is_kept_by_bits() {
            return Err(storage::Error::NotSupported.into());
        }
        let mut charge = charge(&before, (uid, gid))?;
        let exchange =
            Exchange { node, before: &before, had: in_force, mode, owners: (uid, gid), wanted, is_of_mode };
        let exchanged = if is_kept { exchange.carry_out(may) } else { exchange.set_attributes(may) };
        // If the owners are put back, the store says so when the charge ends.
        charge.iter_mut().for_each(Charge::handed_over);
        exchanged
    }
}

/// An object gets a mode, owners and a descriptor that go together. Whatever interrupts that, and whoever asks meanwhile:
/// the object has the permissions that it had, or those that it gets.
pub(crate) struct Exchange<'a> {
    pub(crate) node: &'a NodeRef,
    pub(crate) before: &'a Attributes,
    /// The descriptor in force.
    pub(crate) had: Option<Arc<SecurityDescriptor>>,
    pub(crate) mode: u32,
    pub(crate) owners: (u32, u32),
    pub(crate) wanted: SecurityDescriptor,
    /// Whether `mode` and `owners` say all that `wanted` says.
    pub(crate) is_of_mode: bool,
}

impl Exchange<'_> {
    fn set(&self) -> SetAttributes {
        let ((uid, gid), before) = (self.owners, self.before);
        SetAttributes {
            uid: (uid != before.uid).then_some(uid),
            gid: (gid != before.gid).then_some(gid),
            mode: (self.mode != before.mode).then_some(self.mode),
            ..SetAttributes::default()
        }
    }

    fn set_attributes(&self, may: MayWait<'_>) -> Result<()> {
        let set = self.set();
        if set != SetAttributes::default() {
            self.node.set_attributes(&set, may).map_err(|error| refused_owner(error, &set))?;
        }
        Ok(())
    }

    /// Gives it to the object.
    ///
    /// # Errors
    /// [`Error::InvalidOwner`], [`Error::InvalidGroup`], the store's.
    pub(crate) fn carry_out(self, may: MayWait<'_>) -> Result<()> {
        if self.is_of_mode && self.had.is_none() {
            return self.set_attributes(may);
        }
        if self.set() != SetAttributes::default() {
            self.prepare(may)?;
            if let Err(refused) = self.set_attributes(may) {
                self.put_back(may);
                return Err(refused);
            }
            if self.had.is_none() {
                return Ok(()); // what was prepared is all that is stored
            }
        }
        let keeps = (!self.is_of_mode).then(|| self.wanted.clone());
        if let Err(refused) = self.node.set_security(keeps, may) {
            self.put_back(may);
            return Err(refused.into());
        }
        Ok(())
    }

    /// Stores the descriptor for the mode and the owners that the object does not have yet.
    fn prepare(&self, may: MayWait<'_>) -> Result<()> {
        let prepare = || self.node.prepare_security(self.wanted.clone(), (self.mode, self.owners), may);
        match prepare() {
            Err(storage::Error::AttributeTooLarge | storage::Error::NoSpace) if self.had.is_some() => {}
            prepared => return Ok(prepared.map(drop)?),
        }
        // There is no room for two. Until the object has its new mode, nobody but its owner has access.
        let set_mode = |mode| {
            let set = SetAttributes { mode: Some(mode), ..SetAttributes::default() };
            self.node.set_attributes(&set, may)
        };
        set_mode(self.before.mode & !ALL_BUT_OWNER)?;
        if let Err(refused) = self.node.set_security(None, may) {
            set_mode(self.before.mode)?;
            return Err(refused.into());
        }
        if let Err(refused) = prepare() {
            self.put_back(may);
            return Err(refused.into());
        }
        Ok(())
    }

    /// Restores what the object had.
    fn put_back(&self, may: MayWait<'_>) {
        let ((uid, gid), before) = (self.owners, self.before);
        let set = SetAttributes {
            uid: (uid != before.uid).then_some(before.uid),
            gid: (gid != before.gid).then_some(before.gid),
            // After the owner, since a change of owner may clear mode bits.
            mode: Some(before.mode),
            ..SetAttributes::default()
        };
        let had = || self.had.as_deref().cloned();
        let terms = (before.mode, (before.uid, before.gid));
        let prepared = had().map(|had| self.node.prepare_security(had, terms, may)).transpose();
        let back = prepared
            .and_then(|_| self.node.set_attributes(&set, may))
            .and_then(|_| self.node.set_security(had(), may));
        if let Err(e) = back {
            tracing::warn!("an object has permissions that a client could not change completely: {e}");
        }
    }
}

/// The owners of an object, in the store and in its descriptor.
struct Owners {
    uid: u32,
    gid: u32,
    owner: Sid,
    group: Sid,
}

impl Owners {
    /// The owners after a change to an object with these attributes and this descriptor.
    ///
    /// An owner or group unknown to this machine (Everyone, an account of a domain) is stored only in the descriptor.
    fn of(
        (caller, people): (&Caller, &People),
        before: &Attributes,
        in_force: Option<&SecurityDescriptor>,
        change: &SecurityChange,
    ) -> Result<Self> {
        let uid = change.owner.and_then(|owner| uid_of(caller, people, &owner)).unwrap_or(before.uid);
        let gid = change.group.and_then(|group| people.gid_of(&group)).unwrap_or(before.gid);
        check_owners(caller, (before.uid, before.gid), (uid, gid))?;
        let had = in_force.map_or_else(|| of_mode(before), Clone::clone);
        let owner = change.owner.or(had.owner).unwrap_or_else(|| Sid::of_user(uid));
        let group = change.group.or(had.group).unwrap_or_else(|| Sid::of_group(gid));
        Ok(Self { uid, gid, owner, group })
    }
}

/// The user of this machine that a SID stands for. A user's own SID is known by the logon, whatever else is.
fn uid_of(caller: &Caller, people: &People, sid: &Sid) -> Option<u32> {
    let who = &caller.identity;
    if who.sid() == Some(*sid) { Some(who.uid()) } else { people.uid_of(sid) }
}

/// Refuses changes that the permissions do not allow.
fn check_permitted(caller: &Caller, object: Object<'_>, change: &SecurityChange) -> Result<()> {
    let mut needed = Access::empty();
    needed.set(Access::WRITE_DAC, change.dacl.is_some());
    needed.set(Access::WRITE_OWNER, change.owner.is_some() || change.group.is_some());
    let may = permission::permitted(&caller.identity, object).contains(needed);
    if may { Ok(()) } else { Err(Error::NotOwner) }
}

/// Users may take ownership and may give objects to their own groups. Who is exempt from permissions may name any owner.
fn check_owners(caller: &Caller, had: (u32, u32), wanted: (u32, u32)) -> Result<()> {
    let who = &caller.identity;
    if who.is_exempt() {
        return Ok(());
    }
    if wanted.0 != had.0 && wanted.0 != who.uid() {
        return Err(Error::InvalidOwner);
    }
    if wanted.1 != had.1 && !who.is_in_group(wanted.1) { Err(Error::InvalidGroup) } else { Ok(()) }
}

/// The error for a store that lacks the privilege to give objects away.
fn refused_owner(error: storage::Error, set: &SetAttributes) -> Error {
    match error {
        storage::Error::NotPermitted if set.uid.is_some() => Error::InvalidOwner,
        storage::Error::NotPermitted if set.gid.is_some() => Error::InvalidGroup,
        error => error.into(),
    }
}

/// The descriptor that says what the permission bits say.
pub(crate) fn of_mode(attributes: &Attributes) -> SecurityDescriptor {
    let is_dir = attributes.kind == FileKind::Directory;
    SecurityDescriptor::of_mode(attributes.mode, is_dir, attributes.uid, attributes.gid)
}

/// After a change of attributes: new permission bits permanently replace the descriptor in force; new owners replace those
/// in it. A descriptor that is stored for just the new bits and owners does not come into force with them: it is of an
/// exchange that was interrupted, or from before a local program changed them.
pub(crate) fn keep_in_step(
    node: &NodeRef,
    in_force: Option<&SecurityDescriptor>,
    before: &Attributes,
    after: Attributes,
    may: MayWait<'_>,
) -> Result<Attributes> {
    let has_new_bits = (before.mode ^ after.mode) & PERMISSION_BITS != 0;
    if !has_new_bits && (before.uid, before.gid) == (after.uid, after.gid) {
        return Ok(after);
    }
    match in_force {
        Some(descriptor) if !has_new_bits => {
            Ok(node.set_security(Some(descriptor.owned_by(&newborn(&after))), may)?)
        }
        None if node.security(&after, Wait::May(may))?.is_none() => Ok(after),
        Some(_) | None => Ok(node.set_security(None, may)?),
    }
}

fn newborn(attributes: &Attributes) -> Newborn {
    Newborn {
        owner: Sid::of_user(attributes.uid),
        group: Sid::of_group(attributes.gid),
        is_dir: attributes.kind == FileKind::Directory,
    }
}

/// How a new object gets its descriptor.
pub(crate) struct Birth<'a> {
    pub(crate) new: &'a NewObject,
    /// The descriptor of its directory.
    pub(crate) parent: Option<&'a SecurityDescriptor>,
    pub(crate) is_dir: bool,
}

impl Birth<'_> {
    /// The owner and group that the creator assigns, if this machine knows them.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] for a descriptor from a caller whose role does not include setting one;
    /// [`Error::InvalidOwner`], [`Error::InvalidGroup`].
    pub(crate) fn owners(
        &self,
        caller: &Caller,
        people: impl FnOnce() -> Arc<People>,
        default: (u32, u32),
    ) -> Result<(u32, u32)> {
        let Some(given) = &self.new.security else { return Ok(default) };
        caller.check_changes_permissions()?;
        let people = people();
        let uid = given.owner.and_then(|owner| uid_of(caller, &people, &owner)).unwrap_or(default.0);
        let gid = given.group.and_then(|group| people.gid_of(&group)).unwrap_or(default.1);
        check_owners(caller, default, (uid, gid))?;
        Ok((uid, gid))
    }

    /// The descriptor of an object with these owners: the one that the creator assigns, or the inherited one.
    pub(crate) fn descriptor(&self, (uid, gid): (u32, u32)) -> Option<SecurityDescriptor> {
        if !matches!(self.new.kind, FileKind::Regular | FileKind::Directory) {
            return None;
        }
        let mut newborn =
            Newborn { owner: Sid::of_user(uid), group: Sid::of_group(gid), is_dir: self.is_dir };
        let inherited = |newborn: &Newborn| self.parent.and_then(|parent| parent.inherited_by(newborn));
        let Some(given) = &self.new.security else {
            let mut inherited = inherited(&newborn)?;
            if self.new.mode_bounds {
                inherited.bound_by_mode(self.new.mode);
            }
            return Some(inherited);
        };
        newborn.owner = given.owner.filter(|owner| owner.uid().is_none()).unwrap_or(newborn.owner);
        newborn.group = given.group.filter(|group| group.gid().is_none()).unwrap_or(newborn.group);
        if given.control.contains(Control::DACL_PRESENT) {
            return Some(given.given_to(&newborn));
        }
        let default = || SecurityDescriptor::of_mode(self.new.mode, self.is_dir, uid, gid).owned_by(&newborn);
        Some(inherited(&newborn).unwrap_or_else(default))
    }

    /// Stores the descriptor with the new object. Returns its attributes after that, and whether it has a descriptor.
    pub(crate) fn secure(
        &self,
        node: &NodeRef,
        made: Attributes,
        may: MayWait<'_>,
    ) -> Result<(Attributes, bool)> {
        let Some(descriptor) = self.descriptor((made.uid, made.gid)) else { return Ok((made, false)) };
        let (mode, owners) =
            (made.mode & !PERMISSION_BITS | descriptor.permission_bits(), (made.uid, made.gid));
        let mut kept = None;
        if !descriptor.is_of_mode(mode, self.is_dir, made.uid, made.gid) {
            match node.prepare_security(descriptor.clone(), (mode, owners), may) {
                Err(storage::Error::NotSupported) if descriptor.is_kept_by_bits() => {}
                prepared => kept = Some(prepared?),
            }
        }
        let is_kept = kept.is_some();
        let now = match kept {
            _ if mode != made.mode => {
                node.set_attributes(&SetAttributes { mode: Some(mode), ..SetAttributes::default() }, may)?
            }
            Some(now) => now,
            None => node.attributes(self.new.want, Wait::May(may))?,
        };
        Ok((now, is_kept))
    }
}
