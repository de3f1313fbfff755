//! Creating objects, and hard links to them.

use std::sync::Arc;

use access_log::Kind;
use cache::Effort;
use file_state::{Holder, Operation};
use storage::{Attributes, FileKind, MayWait, Name, NewKind, NewNode, NodeRef, Protection, SetAttributes};

use crate::agreement::Admission;
use crate::attempt::Attempt;
use crate::call::Author;
use crate::found::Found;
use crate::logged::{path_in, path_of};
use crate::long_call::LongCall;
use crate::namespace::{Case, DirChange};
use crate::schedule::Work;
use crate::security::Birth;
use crate::security::permission;
use crate::watch::ChangeAction;
use crate::{Call, Caller, NewObject, Result, Share};

/// A newly created object.
#[derive(Debug, Clone)]
pub struct Created {
    /// The object, with its directory as it is now.
    pub found: Found,
    /// The directory before and after.
    pub dir: DirChange,
}

impl Share {
    /// Creates an object. With [`Case::Insensitive`] a name that differs only in case also conflicts.
    ///
    /// # Errors
    /// [`storage::Error::Exists`], [`Error::AccessDenied`] without write and search permission in the directory,
    /// [`Error::NotOwner`] for owners and modes that the caller may not set, the store's.
    pub async fn create(
        self: &Arc<Self>,
        call: &Call,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        new: NewObject,
    ) -> Result<Created> {
        self.note(call, Kind::Create, || (path_in(dir, name), None));
        self.check_writable(dir.id())?;
        let (author, dir, name) = (call.author(), Arc::clone(dir), name.to_vec());
        let create: LongCall<_> = Arc::new(move |share, effort, may| {
            share.create_now(&author, &dir, &name, (case, effort), &new, may)
        });
        self.run_long(call, Work::Metadata, &create).await
    }

    fn create_now(
        &self,
        author: &Author,
        dir: &NodeRef,
        name: &[u8],
        (case, effort): (Case, Effort),
        new: &NewObject,
        may: MayWait<'_>,
    ) -> Attempt<Created> {
        let (caller, name) = (&author.caller, Name::new(name)?);
        let is_dir = new.kind == FileKind::Directory;
        let changing = self.begin_adding(author, dir, is_dir, may)?;
        let parent = &changing.protection;
        self.check_dir_admits(dir)?;
        self.namespace.check_free(&changing, name, case, effort)?;
        self.check_not_bin(dir, name.as_bytes())?;
        let who = &caller.identity;
        let mode = permission::mode_of_new(who, changing.object(), new.mode & !new.umask, is_dir);
        let birth = Birth { new, parent: parent.security.as_deref(), is_dir };
        let group = permission::group_of_new(who, changing.object());
        let owners = birth.owners(caller, || self.people(), (who.uid(), group))?;
        let (uid, gid) = owners;
        let mode = birth.descriptor(owners).map_or(mode, |d| mode & !0o777 | d.permission_bits());
        let to_make = NewNode { kind: new_kind(new)?, mode, uid, gid };
        let (node, made) = dir.create_attributes(name, &to_make, new.want, may)?;
        let dressed = self
            .dress_new(caller, &node, new, made, may)
            .and_then(|attributes| birth.secure(&node, attributes, may));
        let found = match dressed {
            Ok((attributes, false)) => Found::alone(node, attributes),
            Ok((attributes, true)) => Found::alone(node, attributes).secured(may)?,
            Err(e) => {
                // No incomplete object stays behind.
                let _ = if is_dir { dir.remove_dir(name, may) } else { dir.remove_file(name, may) };
                return Err(e.into());
            }
        };
        if self.quotas().is_on() {
            self.quotas().made(&found.node, &found.attributes);
        }
        let change = self.namespace.changed(&changing, None, Some(name), 0)?;
        self.tell_name(dir, name.as_bytes(), ChangeAction::Added, is_dir, author.under, may);
        let found = Found {
            dir: Some(Arc::clone(dir)),
            dir_protection: Some(Protection { attributes: change.after, ..changing.protection }),
            name: name.as_bytes().to_vec(),
            ..found
        };
        Ok(Created { found, dir: change })
    }

    /// Gives a new object its initial attributes.
    fn dress_new(
        &self,
        caller: &Caller,
        node: &NodeRef,
        new: &NewObject,
        made: Attributes,
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        if new.set == SetAttributes::default() { Ok(made) } else { self.dress(caller, node, new.set, may) }
    }

    /// Gives an object a further name. `opened` is the caching grant of the open that the link is made through, if any.
    ///
    /// # Errors
    /// [`storage::Error::Exists`], [`storage::Error::IsDirectory`], [`Error::AccessDenied`], the store's.
    pub async fn link(
        self: &Arc<Self>,
        call: &Call,
        target: &NodeRef,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        opened: Option<Holder>,
    ) -> Result<DirChange> {
        self.note(call, Kind::Create, || (path_of(target), Some(path_in(dir, name))));
        self.check_writable(dir.id()).and_then(|()| self.check_writable(target.id()))?;
        let (author, dir, target, name) = (call.author(), Arc::clone(dir), Arc::clone(target), name.to_vec());
        self.run_long_settled(call, Work::Metadata, move |share, effort, may| {
            let name = Name::new(&name)?;
            let changing = share.begin_adding(&author, &dir, false, may)?;
            share.check_dir_admits(&dir)?;
            if target.kind() == FileKind::Directory {
                return Err(storage::Error::IsDirectory.into());
            }
            share.namespace.check_free(&changing, name, case, effort)?;
            share.check_not_bin(&dir, name.as_bytes())?;
            share.check_link(&target, &dir, name.as_bytes())?;
            if let Some(answering) =
                share.agreement.take_back(target.id(), opened.or(author.caller.client), Operation::Rename)
            {
                return Ok(Admission::Wait(answering));
            }
            dir.link(name, &*target, may)?;
            let change = share.namespace.changed(&changing, None, Some(name), 0)?;
            share.tell_name(&dir, name.as_bytes(), ChangeAction::Added, false, author.under, may);
            Ok(Admission::Done(change))
        })
        .await
    }
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
