//! Reading and setting attributes, and finding objects by handle.

use std::sync::Arc;

use access::Role;
use access_log::Kind;
use acl::SecurityDescriptor;
use file_state::{Access, Operation};
use storage::{
    Attributes, FileKind, MayWait, NodeRef, SetAttributes, SetTime, Space, Stability, Timestamp, Wait, Want,
};

use crate::agreement::Admission;
use crate::charges::{Charge, charged};
use crate::found::Found;
use crate::logged::path_of;
use crate::schedule::Work;
use crate::security::Object;
use crate::security::permission;
use crate::watch::ChangeKinds;
use crate::{Call, Caller, Error, File, Identity, Result, Share, security};

/// All permission bits of a mode.
const MODE_BITS: u32 = 0o7777;

/// A change is made only if the object's change time is still this one.
pub type Guard = Option<Timestamp>;

/// Attributes before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct Changed {
    /// Before.
    pub before: Attributes,
    /// After.
    pub after: Attributes,
}

impl Share {
    /// The attributes of an object. Permissions are not checked: any caller that has the node may read them.
    ///
    /// # Errors
    /// The store's.
    pub async fn attributes(self: &Arc<Self>, call: &Call, node: &NodeRef, want: Want) -> Result<Attributes> {
        match node.attributes(want, Wait::Never(call.view())) {
            Err(storage::Error::WouldBlock) => {
                let node = Arc::clone(node);
                Box::pin(
                    self.run(call, Work::Blocking, move |_, may| Ok(node.attributes(want, Wait::May(may))?)),
                )
                .await
            }
            answer => Ok(answer?),
        }
    }

    /// Sets attributes. Without an open the rules of POSIX hold: the owner may set the mode and explicit times, writers may
    /// set the present time, the superuser may set the owner, and the owner may set a group that it belongs to. Through an
    /// open, the access of the open decides, except for mode and owner.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::AccessDenied`] (also for a mode or owner that the caller's role does not let it set),
    /// [`Error::GuardFailed`], [`Error::RangeLocked`] and [`Error::SharingViolation`] for the size, the store's.
    pub async fn set_attributes(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        set: &SetAttributes,
        guard: Guard,
    ) -> Result<Changed> {
        if set.mode.is_some() || set.uid.is_some() || set.gid.is_some() {
            self.note(call, Kind::Permission, || (path_of(file.node()), None));
        }
        self.check_writable(file.node().id())?;
        let (caller, file, set) = (call.caller.clone(), file.clone(), *set);
        let change = move |share: &Arc<Self>, may: MayWait<'_>| {
            share.set_attributes_now(&caller, &file, set, guard, may)
        };
        self.run_settled(call, Work::Metadata, change).await
    }

    fn set_attributes_now(
        self: &Arc<Self>,
        caller: &Caller,
        file: &File,
        mut set: SetAttributes,
        guard: Guard,
        may: MayWait<'_>,
    ) -> Result<Admission<Changed>> {
        let given = self.agreement.grants_given();
        let (before, security) = self.check_change(caller, file, &mut set, guard, may)?;
        let operation = if set.size.is_some() { Operation::Write } else { Operation::SetAttributes };
        if let Some(answering) =
            self.agreement.take_back(file.node().id(), file.holder().or(caller.client), operation)
        {
            return Ok(Admission::Wait(answering));
        }
        let _growth = set.size.map(|size| self.grow(file.node(), size, may)).transpose()?;
        let mut charge = self.charge_change(file, &before, &set, may)?;
        if set.size == Some(0) {
            self.notes_emptying(caller, file.node(), &before);
        }
        let after = file.node().set_attributes(&set, may)?;
        charge.iter_mut().for_each(Charge::handed_over);
        self.budget.capacity().freed(before.size.saturating_sub(set.size.unwrap_or(before.size)));
        let after = security::keep_in_step(file.node(), security.as_deref(), &before, after, may)?;
        if set.size.is_some() {
            self.agreement.written_since(given, file);
        }
        self.tell_modified(file, kinds_of(&set), may);
        Ok(Admission::Done(Changed { before, after }))
    }

    /// Begins to charge for a change of attributes.
    fn charge_change(
        self: &Arc<Self>,
        file: &File,
        before: &Attributes,
        set: &SetAttributes,
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        let owners = (set.uid.unwrap_or(before.uid), set.gid.unwrap_or(before.gid));
        let charged = charged(file);
        match self.charge_owners(charged, before, owners, may)? {
            None if set.size.is_some() => self.charge_nothing(charged, may),
            charge => Ok(charge),
        }
    }

    /// Gives a new object, which no client knows yet, its initial attributes.
    pub(crate) fn dress(
        &self,
        caller: &Caller,
        node: &NodeRef,
        mut set: SetAttributes,
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        // Who makes an object chooses its attributes.
        let maker = caller.clone().in_role(caller.role.max(Role::Elevated));
        self.check_change(&maker, &File::Stateless(Arc::clone(node)), &mut set, None, may)?;
        Ok(node.set_attributes(&set, may)?)
    }

    /// Checks a change and adds the changes that must accompany it. Returns the attributes and security descriptor from
    /// before.
    fn check_change(
        &self,
        caller: &Caller,
        file: &File,
        set: &mut SetAttributes,
        guard: Guard,
        may: MayWait<'_>,
    ) -> Result<(Attributes, Option<Arc<SecurityDescriptor>>)> {
        let node = file.node();
        let before = node.attributes(Want::empty(), Wait::May(may))?;
        if guard.is_some_and(|guard| guard != before.ctime) {
            return Err(Error::GuardFailed);
        }
        let security = node.security(&before, Wait::May(may))?;
        let object = Object::new(&before, security.as_deref());
        check_role(caller, &before, set)?;
        check_owner_rules(&caller.identity, object, set)?;
        check_times(caller, file, object, set)?;
        if let Some(size) = set.size {
            self.check_resize(caller, file, object, before.size, size)?;
        }
        keep_privilege_honest(&caller.identity, &before, set);
        Ok((before, security))
    }

    fn check_resize(
        &self,
        caller: &Caller,
        file: &File,
        object: Object<'_>,
        before: u64,
        size: u64,
    ) -> Result<()> {
        match object.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(storage::Error::IsDirectory.into()),
            _ => return Err(storage::Error::InvalidArgument.into()),
        }
        match file {
            File::Open(open) => open.require_any(Access::WRITE_DATA)?,
            File::Stateless(_) if object.security.is_none() && caller.identity.uid() == object.uid => {}
            File::Stateless(_) => permission::check(&caller.identity, object, Access::WRITE_DATA)?,
        }
        self.agreement.check_cut(file, before, size)
    }

    /// The size and free space of the share: as provisioned, otherwise those of its store; at most those of the nearest quota
    /// of the caller and of the directory of `node`.
    ///
    /// # Errors
    /// The store's.
    pub async fn space(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<Space> {
        let (node, who) = (Arc::clone(node), Arc::clone(&call.caller.identity));
        let look = move |share: &Arc<Self>, may: MayWait<'_>| {
            let space = share.budget.capacity().provisioned_space(share.store.storage().space(may)?);
            if !share.quotas().is_on() {
                return Ok(space);
            }
            Ok(share.quotas().space(space, share.owners_at((who.uid(), who.gid()), &node), may))
        };
        self.run(call, Work::Metadata, look).await
    }

    /// Finds an object by its handle, even one from before a restart.
    ///
    /// # Errors
    /// [`storage::Error::Stale`], [`storage::Error::BadHandle`].
    pub async fn by_handle(self: &Arc<Self>, call: &Call, handle: &storage::Handle) -> Result<NodeRef> {
        match self.store.storage().by_handle(handle, Wait::Never(call.view())) {
            Err(storage::Error::WouldBlock) => {
                let handle = *handle;
                let find = move |share: &Arc<Self>, may: MayWait<'_>| {
                    Ok(share.store.storage().by_handle(&handle, Wait::May(may))?)
                };
                Box::pin(self.run(call, Work::Blocking, find)).await
            }
            answer => Ok(answer?),
        }
    }

    /// The file number of a directory's parent; for the root, its own.
    ///
    /// # Errors
    /// [`storage::Error::NotDirectory`], [`storage::Error::Stale`].
    pub async fn parent_of(self: &Arc<Self>, call: &Call, dir: &NodeRef) -> Result<storage::ObjectId> {
        let dir = Arc::clone(dir);
        self.consult(call, move |_, may| Ok(dir.parent_number(may)?)).await
    }

    /// Wraps a node that was reached without its directory.
    ///
    /// # Errors
    /// The store's.
    pub async fn found(self: &Arc<Self>, call: &Call, node: &NodeRef, want: Want) -> Result<Found> {
        let attributes = self.attributes(call, node, want).await?;
        let mut found = Found::alone(Arc::clone(node), attributes);
        found.security = self.in_force(call, node, &found.attributes).await?;
        Ok(found)
    }

    /// Makes pending attribute changes of a directory or file stable, for protocols that promise it.
    ///
    /// # Errors
    /// The store's.
    pub async fn commit_node(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        stability: Stability,
    ) -> Result<()> {
        if stability == Stability::Unstable {
            return Ok(());
        }
        self.commit(call, &File::Stateless(Arc::clone(node))).await
    }
}

/// Refuses changes of the mode and the owners to callers whose role does not include them. Setting what is so already is no
/// change.
fn check_role(caller: &Caller, before: &Attributes, set: &SetAttributes) -> Result<()> {
    let mode = set.mode.is_some_and(|mode| mode & MODE_BITS != before.mode & MODE_BITS);
    let owners = set.uid.is_some_and(|uid| uid != before.uid) || set.gid.is_some_and(|gid| gid != before.gid);
    if owners || (mode && !is_undressed(&caller.identity, before)) {
        caller.check_changes_permissions()?;
    }
    Ok(())
}

/// Whether the user has just made this file, and its mode is still to come. RFC 1813 3.3.8, EXCLUSIVE: "the server may use the
/// target file metadata to store the verifier"; the client then sets the attributes, and nobody has access before.
fn is_undressed(who: &Identity, file: &Attributes) -> bool {
    let is_new = file.kind == FileKind::Regular && file.size == 0 && file.mode & MODE_BITS == 0;
    is_new && who.uid() == file.uid
}

/// POSIX chmod and chown; where there is a security descriptor, it says who may change permissions.
fn check_owner_rules(who: &Identity, object: Object<'_>, set: &mut SetAttributes) -> Result<()> {
    if who.is_superuser() {
        return Ok(());
    }
    let owns = who.uid() == object.uid;
    if !who.is_exempt() {
        check_owns(who, object, set)?;
    }
    // POSIX chmod: only members of the group may set the set-group-id bit. A user whom only a descriptor or a role allows to
    // change permissions cannot make a program run with its owner's rights.
    if let Some(mode) = &mut set.mode
        && object.kind != FileKind::Directory
    {
        if !owns {
            *mode &= !0o6000;
        } else if !who.is_in_group(set.gid.unwrap_or(object.gid)) {
            *mode &= !0o2000;
        }
    }
    Ok(())
}

/// Refuses changes of the mode and the owners to those who are neither the owner nor allowed them by a descriptor.
fn check_owns(who: &Identity, object: Object<'_>, set: &SetAttributes) -> Result<()> {
    let owns = who.uid() == object.uid;
    if set.uid.is_some_and(|uid| uid != object.uid || !owns) {
        return Err(Error::NotOwner);
    }
    if let Some(gid) = set.gid
        && (!owns || (gid != object.gid && !who.is_in_group(gid)))
    {
        return Err(Error::NotOwner);
    }
    let may_set_mode = || match object.security {
        Some(_) => permission::permitted(who, object).contains(Access::WRITE_DAC),
        None => owns,
    };
    if set.mode.is_some() && !may_set_mode() { Err(Error::NotOwner) } else { Ok(()) }
}

/// POSIX utimensat: the owner may set explicit times; users who may write may also set the present time.
fn check_times(caller: &Caller, file: &File, object: Object<'_>, set: &SetAttributes) -> Result<()> {
    let given = matches!(set.atime, Some(SetTime::To(_))) || matches!(set.mtime, Some(SetTime::To(_)));
    let given = given || set.btime.is_some() || set.flags.is_some() || set.ctime.is_some();
    // Setting mtime to the present time along with a new size needs no permission of its own.
    let now = set.atime == Some(SetTime::Now) || (set.mtime == Some(SetTime::Now) && set.size.is_none());
    if !given && !now {
        return Ok(());
    }
    if let File::Open(open) = file {
        return open.require(Access::WRITE_ATTRIBUTES);
    }
    let who = &caller.identity;
    let may = match object.security {
        Some(_) => permission::permitted(who, object).contains(Access::WRITE_ATTRIBUTES),
        None => who.is_exempt() || who.uid() == object.uid,
    };
    if may {
        return Ok(());
    }
    if given {
        return Err(Error::NotOwner);
    }
    permission::check(who, object, Access::WRITE_DATA)
}

/// Clears the privilege bits of a program when its owner or size changes.
pub(crate) fn keep_privilege_honest(who: &Identity, before: &Attributes, set: &mut SetAttributes) {
    let given_away = set.uid.is_some() || set.gid.is_some();
    if before.kind != FileKind::Directory
        && !who.is_superuser()
        && (given_away || set.size.is_some())
        && set.mode.is_none()
        && permission::mode_without_privilege(before.mode) != before.mode
    {
        set.mode = Some(permission::mode_without_privilege(before.mode));
    }
}

fn kinds_of(set: &SetAttributes) -> ChangeKinds {
    let mut kinds = ChangeKinds::empty();
    kinds.set(ChangeKinds::SIZE, set.size.is_some());
    kinds.set(ChangeKinds::LAST_WRITE, set.mtime.is_some() || set.size.is_some());
    kinds.set(ChangeKinds::LAST_ACCESS, set.atime.is_some());
    kinds.set(ChangeKinds::CREATION, set.btime.is_some());
    kinds.set(ChangeKinds::ATTRIBUTES, set.flags.is_some() || set.mode.is_some());
    kinds.set(ChangeKinds::SECURITY, set.mode.is_some() || set.uid.is_some() || set.gid.is_some());
    kinds
}
