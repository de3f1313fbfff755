//! Names: finding, making, removing, renaming.

use std::sync::Arc;

use acl::SecurityDescriptor;
use file_state::{Access, Holder, Operation, ReserveError};
use storage::{
    Attributes, FileKind, Name, NewKind, NewNode, Node, NodeRef, Replace, SetAttributes, Wait, Want,
};

use crate::caching::{Admission, Answering, Taken};
use crate::dir_change::{Before, DirChange};
use crate::notify::{ChangeAction, ChangeKinds, Event};
use crate::permission::Object;
use crate::schedule::Work;
use crate::security::Birth;
use crate::{Caller, Error, Location, Result, Share, Stream, permission};

/// Symbolic links followed while one path is walked (as Linux' MAXSYMLINKS).
const LINKS_MAX: usize = 40;
/// Components of one path, the texts of links included.
const COMPONENTS_MAX: usize = 1024;

/// How names are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Byte by byte.
    Sensitive,
    /// Whatever their case; a name that matches exactly comes first.
    Insensitive,
}

/// An object that was found, and where.
#[derive(Debug, Clone)]
pub struct Found {
    /// The object.
    pub node: NodeRef,
    /// What is known about it.
    pub attributes: Attributes,
    /// The security descriptor that is in force.
    pub security: Option<Arc<SecurityDescriptor>>,
    /// The directory that holds it; None for the root, and when it was not reached by a name.
    pub dir: Option<NodeRef>,
    /// What is known about that directory; for `.` and `..`, about the one where they were looked up.
    pub dir_attributes: Option<Attributes>,
    /// That directory's security descriptor.
    pub dir_security: Option<Arc<SecurityDescriptor>>,
    /// Its name as the directory has it.
    pub name: Vec<u8>,
    /// When a named stream was found, `node` is the stream's: this says whose it is. All else is the file's.
    pub stream: Option<Arc<Stream>>,
}

impl Found {
    /// What decides about access to it.
    #[must_use]
    pub fn object(&self) -> Object<'_> {
        Object { attributes: &self.attributes, security: self.security.as_deref() }
    }

    /// What decides about access to its directory; nothing when it was reached as `.` or `..` of another.
    pub(crate) fn dir_object(&self) -> Option<Object<'_>> {
        self.dir.as_ref()?;
        let attributes = self.dir_attributes.as_ref()?;
        Some(Object { attributes, security: self.dir_security.as_deref() })
    }

    /// Reads the security descriptor.
    pub(crate) fn secured(mut self) -> Result<Self> {
        self.security = self.node.security(&self.attributes, Wait::May)?;
        Ok(self)
    }

    /// An object that is reached without its directory; its descriptor is not read yet.
    pub(crate) fn alone(node: NodeRef, attributes: Attributes) -> Self {
        Self {
            node,
            attributes,
            security: None,
            dir: None,
            dir_attributes: None,
            dir_security: None,
            name: Vec::new(),
            stream: None,
        }
    }

    pub(crate) fn location(&self) -> Option<Location> {
        if let Some(stream) = &self.stream {
            return Some(stream.location());
        }
        let parent = Arc::clone(self.dir.as_ref()?);
        Some(Location { parent, name: self.name.clone() })
    }
}

/// What a name in a directory stands for.
struct Child {
    node: NodeRef,
    attributes: Attributes,
    /// The name as the directory has it.
    name: Vec<u8>,
}

/// Where a path leads.
#[derive(Debug, Clone)]
pub enum Walk {
    /// To an object.
    Found(Found),
    /// To a directory that has no such name: it can be made there.
    Missing {
        /// The directory.
        dir: NodeRef,
        /// What is known about it.
        dir_attributes: Attributes,
        /// The name.
        name: Vec<u8>,
    },
}

/// An object that was made.
#[derive(Debug, Clone)]
pub struct Created {
    /// The object, with its directory as it is now.
    pub found: Found,
    /// Its directory before and after.
    pub dir: DirChange,
}

/// How a name is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenameHow {
    /// What happens to an object of the new name.
    pub replace: Replace,
    /// How names are compared.
    pub case: Case,
    /// The caller has the object open for deletion, so that the other opens have agreed already; and the caching grant
    /// that this open works under.
    pub opened: Option<Holder>,
}

/// An object to make.
#[derive(Debug, Clone)]
pub struct NewObject {
    /// What to make, the text of a symbolic link apart.
    pub kind: FileKind,
    /// The text of a symbolic link; empty otherwise.
    pub target: Vec<u8>,
    /// The device of a device's name.
    pub device: storage::Device,
    /// The low 12 bits of its mode.
    pub mode: u32,
    /// What goes of its mode where it inherits no security descriptor.
    pub umask: u32,
    /// Attributes to set at once; mode and owners of it are checked as for a change by the new owner.
    pub set: SetAttributes,
    /// Which attributes to return.
    pub want: Want,
    /// The security descriptor that its maker gives it, instead of what it would inherit.
    pub security: Option<SecurityDescriptor>,
    /// What it inherits gives nobody more than `mode` does, as with POSIX default ACLs.
    pub mode_bounds: bool,
}

impl Share {
    /// The object of that name in a directory: `.` and `..` too, `..` of the root being the root. Symbolic
    /// links are not followed.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] without search permission, [`storage::Error::NotFound`], the store's.
    pub async fn lookup(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        want: Want,
    ) -> Result<Found> {
        let (caller, dir, name) = (caller.clone(), Arc::clone(dir), name.to_vec());
        self.run(Work::Metadata, move |share| match share.step(&caller, &dir, &name, case, want)? {
            Walk::Found(found) => found.secured(),
            Walk::Missing { .. } => Err(storage::Error::NotFound.into()),
        })
        .await
    }

    /// Walks a path from the root, following symbolic links as long as they stay inside the share.
    ///
    /// # Errors
    /// [`storage::Error::NotFound`] or [`storage::Error::NotDirectory`] when a directory on the way is missing
    /// or is none, [`storage::Error::SymlinkLoop`], [`Error::AccessDenied`] (also for a link that leads out).
    pub async fn walk(
        self: &Arc<Self>,
        caller: &Caller,
        path: Vec<Vec<u8>>,
        case: Case,
        want: Want,
    ) -> Result<Walk> {
        let caller = caller.clone();
        self.run(Work::Metadata, move |share| share.walk_now(&caller, path, case, want)).await
    }

    fn walk_now(&self, caller: &Caller, mut path: Vec<Vec<u8>>, case: Case, want: Want) -> Result<Walk> {
        path.reverse(); // the next component is the last
        let (mut links, mut steps) = (0, 0);
        let mut at = self.root_found(want)?;
        while let Some(name) = path.pop() {
            steps += 1;
            if steps > COMPONENTS_MAX {
                return Err(storage::Error::NameTooLong.into());
            }
            if at.attributes.kind != FileKind::Directory {
                return Err(storage::Error::NotDirectory.into());
            }
            match self.step(caller, &at.node, &name, case, want)? {
                Walk::Found(next) if next.attributes.kind == FileKind::Symlink => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(storage::Error::SymlinkLoop.into());
                    }
                    follow(&next.node, &mut path)?;
                }
                Walk::Found(next) => at = next,
                missing if path.is_empty() => return Ok(missing),
                Walk::Missing { .. } => return Err(storage::Error::NotFound.into()),
            }
        }
        Ok(Walk::Found(at.secured()?))
    }

    fn root_found(&self, want: Want) -> Result<Found> {
        let attributes = self.root.attributes(want, Wait::May)?;
        Ok(Found::alone(Arc::clone(&self.root), attributes))
    }

    fn step(&self, caller: &Caller, dir: &NodeRef, name: &[u8], case: Case, want: Want) -> Result<Walk> {
        let dir_attributes = dir.attributes(Want::empty(), Wait::May)?;
        if dir_attributes.kind != FileKind::Directory {
            return Err(storage::Error::NotDirectory.into());
        }
        let dir_security = dir.security(&dir_attributes, Wait::May)?;
        let guard = Object { attributes: &dir_attributes, security: dir_security.as_deref() };
        permission::check_traverse(&caller.identity, guard)?;
        let special = match name {
            b"." => Some(Arc::clone(dir)),
            b".." => Some(dir.parent()?),
            _ => None,
        };
        let (child, dir) = match special {
            Some(node) => {
                (Child { attributes: node.attributes(want, Wait::May)?, node, name: Vec::new() }, None)
            }
            None => match self.child(dir, &dir_attributes, Name::new(name)?, case, want)? {
                Some(child) => (child, Some(Arc::clone(dir))),
                None => {
                    let dir = Arc::clone(dir);
                    return Ok(Walk::Missing { dir, dir_attributes, name: name.to_vec() });
                }
            },
        };
        let Child { node, attributes, name } = child;
        let dir_attributes = Some(dir_attributes);
        Ok(Walk::Found(Found { dir, dir_attributes, dir_security, name, ..Found::alone(node, attributes) }))
    }

    /// The object of that name.
    fn child(
        &self,
        dir: &NodeRef,
        dir_attributes: &Attributes,
        name: Name<'_>,
        case: Case,
        want: Want,
    ) -> Result<Option<Child>> {
        let look = |name: Name<'_>| {
            let (node, attributes) = dir.lookup_attributes(name, want, Wait::May)?;
            Ok(Child { node, attributes, name: name.as_bytes().to_vec() })
        };
        match look(name) {
            Ok(child) => return Ok(Some(child)),
            Err(storage::Error::NotFound) if case == Case::Insensitive => {}
            Err(storage::Error::NotFound) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
        let Some(other) = self.folded.find(&**dir, dir_attributes, name.as_bytes())? else { return Ok(None) };
        match look(Name::new(&other)?) {
            Ok(child) => Ok(Some(child)),
            Err(storage::Error::NotFound) => Ok(None), // it has just gone
            Err(e) => Err(e.into()),
        }
    }

    /// Makes an object. With [`Case::Insensitive`] a name that differs in case only is in the way too.
    ///
    /// # Errors
    /// [`storage::Error::Exists`], [`Error::AccessDenied`] without write and search permission in the
    /// directory, [`Error::NotOwner`] for owners and modes that the caller may not give, the store's.
    pub async fn create(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        new: NewObject,
    ) -> Result<Created> {
        self.check_writable()?;
        let (caller, dir, name) = (caller.clone(), Arc::clone(dir), name.to_vec());
        self.run(Work::Metadata, move |share| share.create_now(&caller, &dir, &name, case, &new)).await
    }

    fn create_now(
        &self,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        new: &NewObject,
    ) -> Result<Created> {
        let name = Name::new(name)?;
        let is_dir = new.kind == FileKind::Directory;
        let parent = Before::adding(caller, dir, is_dir)?;
        let before = parent.attributes;
        self.check_dir_admits(dir)?;
        if case == Case::Insensitive && self.folded.find(&**dir, &before, name.as_bytes())?.is_some() {
            return Err(storage::Error::Exists.into());
        }
        let who = &caller.identity;
        let mode = permission::mode_of_new(who, &before, new.mode & !new.umask, is_dir);
        let birth = Birth { new, parent: parent.security.as_deref(), is_dir };
        let owners = birth.owners(caller, (who.uid, permission::group_of_new(who, &before)))?;
        let (uid, gid) = owners;
        let mode = birth.descriptor(owners).map_or(mode, |d| mode & !0o777 | d.permission_bits());
        let node = dir.create(name, &NewNode { kind: new_kind(new)?, mode, uid, gid })?;
        let dressed =
            self.dress_new(caller, &node, new).and_then(|attributes| birth.secure(&node, attributes));
        let found = match dressed {
            Ok(attributes) => Found::alone(node, attributes).secured()?,
            Err(e) => {
                // Nothing half-made stays behind.
                let _ = if is_dir { dir.remove_dir(name) } else { dir.remove_file(name) };
                return Err(e);
            }
        };
        let change = parent.after(dir, 1, 0)?;
        self.folded.changed(dir.id(), before.ctime, change.after.ctime, None, Some(name));
        self.tell_name(dir, name.as_bytes(), ChangeAction::Added, is_dir, caller.directory);
        let found = Found {
            dir: Some(Arc::clone(dir)),
            dir_attributes: Some(change.after),
            dir_security: parent.security,
            name: name.as_bytes().to_vec(),
            ..found
        };
        Ok(Created { found, dir: change })
    }

    /// Gives a new object the attributes that it is to begin with.
    fn dress_new(&self, caller: &Caller, node: &NodeRef, new: &NewObject) -> Result<Attributes> {
        if new.set == SetAttributes::default() {
            return Ok(node.attributes(new.want, Wait::May)?);
        }
        self.dress(caller, node, new.set)
    }

    /// A directory that is about to be deleted takes no new entries.
    fn check_dir_admits(&self, dir: &NodeRef) -> Result<()> {
        if self.is_delete_pending(dir) { Err(Error::DeletePending) } else { Ok(()) }
    }

    /// Gives an object a further name. `opened` is the caching grant of the open through which that is done, if any.
    ///
    /// # Errors
    /// [`storage::Error::Exists`], [`storage::Error::IsDirectory`], [`Error::AccessDenied`], the store's.
    pub async fn link(
        self: &Arc<Self>,
        caller: &Caller,
        target: &NodeRef,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        opened: Option<Holder>,
    ) -> Result<DirChange> {
        self.check_writable()?;
        let protocol = caller.protocol;
        let (caller, dir, target, name) =
            (caller.clone(), Arc::clone(dir), Arc::clone(target), name.to_vec());
        self.run_settled(protocol, Work::Metadata, move |share| {
            let name = Name::new(&name)?;
            let parent = Before::adding(&caller, &dir, false)?;
            let before = parent.attributes;
            share.check_dir_admits(&dir)?;
            if target.kind() == FileKind::Directory {
                return Err(storage::Error::IsDirectory.into());
            }
            if case == Case::Insensitive && share.folded.find(&*dir, &before, name.as_bytes())?.is_some() {
                return Err(storage::Error::Exists.into());
            }
            if let Some(answering) = share.take_back(target.id(), opened.or(caller.client), Operation::Rename)
            {
                return Ok(Admission::Wait(answering));
            }
            dir.link(name, &*target)?;
            let change = parent.after(&dir, 1, 0)?;
            share.folded.changed(dir.id(), before.ctime, change.after.ctime, None, Some(name));
            share.tell_name(&dir, name.as_bytes(), ChangeAction::Added, false, caller.directory);
            Ok(Admission::Done(change))
        })
        .await
    }

    /// Removes a name; `is_dir` says whether of a directory. A file that SMB clients have open stays with
    /// them, unless they do not share deletion.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`Error::NotOwner`] in a sticky directory, [`Error::SharingViolation`],
    /// [`storage::Error::IsDirectory`], [`storage::Error::NotDirectory`], [`storage::Error::NotEmpty`].
    pub async fn remove(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        is_dir: bool,
    ) -> Result<DirChange> {
        self.check_writable()?;
        let protocol = caller.protocol;
        let (caller, dir, name) = (caller.clone(), Arc::clone(dir), name.to_vec());
        let remove = move |share: &Arc<Self>| share.remove_now(&caller, &dir, &name, is_dir);
        self.run_settled(protocol, Work::Metadata, remove).await
    }

    fn remove_now(
        &self,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        is_dir: bool,
    ) -> Result<Admission<DirChange>> {
        let name = Name::new(name)?;
        let parent = Before::change(dir)?;
        let before = parent.attributes;
        let (node, attributes) = dir.lookup_attributes(name, Want::empty(), Wait::May)?;
        check_deletion(caller, &parent, &node, &attributes)?;
        if let Some(answering) = self.make_removable(&node, caller.client, Operation::Delete)? {
            return Ok(Admission::Wait(answering));
        }
        if is_dir {
            dir.remove_dir(name)?;
            self.changes.publish_gone(node.id());
        } else {
            dir.remove_file(name)?;
            self.removed(&attributes);
        }
        let change = parent.after(dir, 1, 0)?;
        self.folded.changed(dir.id(), before.ctime, change.after.ctime, Some(name), None);
        self.tell_name(dir, name.as_bytes(), ChangeAction::Removed, is_dir, caller.directory);
        Ok(Admission::Done(change))
    }

    /// Whether everybody who has the object open lets others delete or rename it; what that has to wait for, if anything:
    /// clients that only keep it open for later close it, or give back what goes with its name.
    fn make_removable(
        &self,
        node: &NodeRef,
        own: Option<Holder>,
        operation: Operation,
    ) -> Result<Option<Answering>> {
        if let Some(answering) = self.held_back() {
            return Ok(Some(answering));
        }
        let timeout = self.settings.break_timeout;
        let asked = self.files.with(node.id(), |entry| match entry.state.check_access(Access::DELETE) {
            Ok(()) => (Ok(()), entry.take_back(own, operation, timeout)),
            Err(refused @ ReserveError::Sharing { holder }) => {
                let taken = entry.take_back(own, Operation::SharingViolation, timeout);
                (Err(refused), taken.and(entry.evict_late(|_, opens| opens.contains(&holder), timeout)))
            }
            Err(refused) => (Err(refused), Taken::default()),
        });
        let Some((allowed, taken)) = asked else { return Ok(None) };
        match self.deliver(taken) {
            Some(answering) => Ok(Some(answering)),
            None => Ok(allowed.map(|()| None)?),
        }
    }

    /// Moves a name. The object keeps its opens; they know it by the new name.
    ///
    /// # Errors
    /// [`storage::Error::Exists`] with [`Replace::Never`] (with [`Case::Insensitive`] also for a name that
    /// differs in case only, unless it is the object's own), [`Error::AccessDenied`], [`Error::NotOwner`],
    /// [`Error::SharingViolation`], [`Error::DeletePending`], the store's.
    pub async fn rename(
        self: &Arc<Self>,
        caller: &Caller,
        from: Location,
        to: Location,
        how: RenameHow,
    ) -> Result<(DirChange, DirChange)> {
        self.check_writable()?;
        let (protocol, caller) = (caller.protocol, caller.clone());
        let rename = move |share: &Arc<Self>| share.rename_now(&caller, &from, &to, how);
        self.run_settled(protocol, Work::Metadata, rename).await
    }

    fn rename_now(
        &self,
        caller: &Caller,
        source: &Location,
        target: &Location,
        how: RenameHow,
    ) -> Result<Admission<(DirChange, DirChange)>> {
        let mut target = target.clone();
        let (from, to) = (&source.parent, &target.parent);
        let name = Name::new(&source.name)?;
        Name::new(&target.name)?;
        let parent = Before::change(from)?;
        let from_before = parent.attributes;
        let (node, object) = from.lookup_attributes(name, Want::empty(), Wait::May)?;
        let is_dir = object.kind == FileKind::Directory;
        let to_parent = Before::adding(caller, to, is_dir)?;
        let to_before = to_parent.attributes;
        self.check_dir_admits(to)?;
        if how.opened.is_none() {
            check_deletion(caller, &parent, &node, &object)?;
        }
        if is_dir && from.id() != to.id() {
            check_moved(caller, &node, &object)?;
        }
        let answering = if how.opened.is_some() {
            if let Some(answering) = self.check_dir_shared(to)? {
                return Ok(Admission::Wait(answering));
            }
            self.take_back(node.id(), how.opened, Operation::Rename)
        } else {
            self.make_removable(&node, caller.client, Operation::Rename)?
        };
        if let Some(answering) = answering {
            return Ok(Admission::Wait(answering));
        }
        let (mut replace, mut replaced) = (how.replace, None);
        match self.child(to, &to_before, Name::new(&target.name)?, how.case, Want::empty())? {
            Some(other) if other.node.id() != node.id() => {
                if replace == Replace::Never {
                    return Err(storage::Error::Exists.into());
                }
                check_deletion(caller, &to_parent, &other.node, &other.attributes)?;
                if let Some(answering) = self.make_removable(&other.node, caller.client, Operation::Delete)? {
                    return Ok(Admission::Wait(answering));
                }
                (target.name, replaced) = (other.name, Some(other.attributes));
            }
            // Two names of one object: POSIX rename does nothing then.
            Some(same) if same.name == target.name => replace = Replace::Yes,
            Some(_) | None => {}
        }
        let (to, to_name) = (&target.parent, Name::new(&target.name)?);
        from.rename(name, &**to, to_name, replace)?;
        replaced.iter().for_each(|attributes| self.removed(attributes));
        let (from_change, to_change);
        if from.id() == to.id() {
            from_change = parent.after(from, 2, 1)?; // two changes, and `to_parent` looks on
            to_change = from_change;
            let after = from_change.after.ctime;
            self.folded.changed(from.id(), from_before.ctime, after, Some(name), Some(to_name));
        } else {
            (from_change, to_change) = (parent.after(from, 1, 0)?, to_parent.after(to, 1, 0)?);
            self.folded.changed(from.id(), from_before.ctime, from_change.after.ctime, Some(name), None);
            self.folded.changed(to.id(), to_before.ctime, to_change.after.ctime, None, Some(to_name));
        }
        self.files.with(node.id(), |entry| entry.moved(source, &target));
        self.tell_renamed(source, &target, is_dir, caller.directory);
        Ok(Admission::Done((from_change, to_change)))
    }

    /// Tells watchers, and those who cache a listing, of a name that came or went. `by` is the caching grant on the
    /// directory of whoever did it.
    pub(crate) fn tell_name(
        &self,
        dir: &NodeRef,
        name: &[u8],
        action: ChangeAction,
        is_dir: bool,
        by: Option<Holder>,
    ) {
        let kinds = if is_dir { ChangeKinds::DIR_NAME } else { ChangeKinds::FILE_NAME };
        self.changes.publish(&Event { dir, name, action, kinds, unless: ChangeKinds::empty() });
        self.entries_changed(dir.id(), by);
    }

    fn tell_renamed(&self, from: &Location, to: &Location, is_dir: bool, by: Option<Holder>) {
        let same = from.parent.id() == to.parent.id();
        let (gone, come) = if same {
            (ChangeAction::RenamedFrom, ChangeAction::RenamedTo)
        } else {
            (ChangeAction::Removed, ChangeAction::Added)
        };
        self.tell_name(&from.parent, &from.name, gone, is_dir, by);
        self.tell_name(&to.parent, &to.name, come, is_dir, by);
        if !is_dir {
            // Windows tells those who do not watch for names that the file of the new name has other attributes.
            self.changes.publish(&Event {
                dir: &to.parent,
                name: &to.name,
                action: ChangeAction::Modified,
                kinds: ChangeKinds::ATTRIBUTES | ChangeKinds::CREATION,
                unless: ChangeKinds::FILE_NAME,
            });
        }
    }
}

/// Refuses to remove or rename what the caller may not delete.
fn check_deletion(caller: &Caller, dir: &Before, node: &NodeRef, attributes: &Attributes) -> Result<()> {
    let security = node.security(attributes, Wait::May)?;
    let object = Object { attributes, security: security.as_deref() };
    permission::may_delete_checked(&caller.identity, dir.object(), object)
}

/// The `..` of a directory that moves changes: POSIX wants write permission in the directory itself. A descriptor has
/// said all by the right to delete it.
fn check_moved(caller: &Caller, node: &NodeRef, attributes: &Attributes) -> Result<()> {
    if node.security(attributes, Wait::May)?.is_some() {
        return Ok(());
    }
    permission::check(&caller.identity, Object { attributes, security: None }, Access::WRITE_DATA)
}

/// Puts the text of a link in front of what is left of a path. An absolute text would lead out of the share.
fn follow(link: &Arc<dyn Node>, path: &mut Vec<Vec<u8>>) -> Result<()> {
    let text = link.read_link()?;
    if text.first() == Some(&b'/') {
        return Err(Error::AccessDenied);
    }
    let parts = text.split(|b| *b == b'/').filter(|part| !part.is_empty());
    let parts: Vec<_> = parts.map(<[u8]>::to_vec).collect();
    if path.len() + parts.len() > COMPONENTS_MAX {
        return Err(storage::Error::SymlinkLoop.into());
    }
    path.extend(parts.into_iter().rev());
    Ok(())
}

fn new_kind(new: &NewObject) -> Result<NewKind<'_>> {
    Ok(match new.kind {
        FileKind::Regular => NewKind::Regular,
        FileKind::Directory => NewKind::Directory,
        FileKind::Symlink if !new.target.is_empty() => NewKind::Symlink(&new.target),
        FileKind::Symlink => return Err(storage::Error::InvalidArgument.into()),
        FileKind::Fifo => NewKind::Fifo,
        FileKind::Socket => NewKind::Socket,
        FileKind::BlockDevice => NewKind::BlockDevice(new.device),
        FileKind::CharDevice => NewKind::CharDevice(new.device),
    })
}
