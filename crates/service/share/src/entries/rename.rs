//! Renaming.

use std::sync::Arc;

use access_log::Kind;
use cache::Effort;
use file_state::{Access, Holder, Operation};
use storage::{Attributes, FileKind, MayWait, Name, NodeRef, Replace, Wait, Want};

use super::check_deletion;
use crate::agreement::Admission;
use crate::attempt::Attempt;
use crate::call::Author;
use crate::charges::Charge;
use crate::logged::path_in;
use crate::namespace::{Case, Changing, DirChange};
use crate::schedule::Work;
use crate::security::Object;
use crate::security::permission;
use crate::{Call, Caller, Location, Result, Share};

/// How a rename is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenameHow {
    /// What happens to an existing object with the new name.
    pub replace: Replace,
    /// How names are compared.
    pub case: Case,
    /// The caller has the object open for deletion, so the other opens have agreed already: the caching grant that this open
    /// works under.
    pub opened: Option<Holder>,
}

impl Share {
    /// Renames an object. Its opens remain, and know it by the new name.
    ///
    /// # Errors
    /// [`storage::Error::Exists`] with [`Replace::Never`] (with [`Case::Insensitive`] also for a name that differs only in
    /// case, unless it is the object's own), [`Error::AccessDenied`], [`Error::NotOwner`], [`Error::SharingViolation`],
    /// [`Error::DeletePending`], the store's.
    pub async fn rename(
        self: &Arc<Self>,
        call: &Call,
        from: Location,
        to: Location,
        how: RenameHow,
    ) -> Result<(DirChange, DirChange)> {
        self.note(call, Kind::Rename, || {
            (path_in(&from.parent, &from.name), Some(path_in(&to.parent, &to.name)))
        });
        self.check_writable(from.parent.id()).and_then(|()| self.check_writable(to.parent.id()))?;
        let author = call.author();
        let rename = move |share: &Arc<Self>, effort, may: MayWait<'_>| {
            share.rename_now(&author, &from, &to, (how, effort), may)
        };
        self.run_long_settled(call, Work::Metadata, rename).await
    }

    fn rename_now(
        self: &Arc<Self>,
        author: &Author,
        source: &Location,
        target: &Location,
        (how, effort): (RenameHow, Effort),
        may: MayWait<'_>,
    ) -> Attempt<Admission<(DirChange, DirChange)>> {
        let (caller, mut target) = (&author.caller, target.clone());
        let (from, to) = (&source.parent, &target.parent);
        let name = Name::new(&source.name)?;
        Name::new(&target.name)?;
        let parent = Changing::begin(author.report, from, may)?;
        let (node, object) = from.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        self.check_writable(node.id())?;
        let is_dir = object.kind == FileKind::Directory;
        let to_parent = self.begin_adding(author, to, is_dir, may)?;
        self.check_dir_admits(to)?;
        if how.opened.is_none() {
            check_deletion(caller, &parent, &node, &object)?;
        }
        if is_dir && from.id() != to.id() {
            check_moved(caller, &node, &object, may)?;
        }
        let answering = if how.opened.is_some() {
            if let Some(answering) = self.agreement.check_dir_shared(to)? {
                return Ok(Admission::Wait(answering));
            }
            self.agreement.take_back(node.id(), how.opened, Operation::Rename)
        } else {
            self.agreement.make_removable(&node, caller.client, Operation::Rename)?
        };
        if let Some(answering) = answering {
            return Ok(Admission::Wait(answering));
        }
        let (mut replace, mut replaced) = (how.replace, None);
        let known = to_parent.protection.attributes.as_ref();
        let look = |name: Name<'_>| to.lookup_attributes(name, Want::empty(), Wait::May(may));
        match self.namespace.child(to, known, Name::new(&target.name)?, (how.case, effort), look, may)? {
            Some(((other, attributes), other_name)) if other.id() != node.id() => {
                if replace == Replace::Never {
                    return Err(storage::Error::Exists.into());
                }
                self.check_writable(other.id())?;
                check_deletion(caller, &to_parent, &other, &attributes)?;
                if let Some(answering) =
                    self.agreement.make_removable(&other, caller.client, Operation::Delete)?
                {
                    return Ok(Admission::Wait(answering));
                }
                (target.name, replaced) = (other_name, Some((other, attributes)));
            }
            // Both names refer to one object: POSIX rename does nothing then.
            Some((_, same)) if same == target.name => replace = Replace::Yes,
            Some(_) | None => {}
        }
        let (to, to_name) = (&target.parent, Name::new(&target.name)?);
        let mut charge = self.charge_move(&node, &object, (source, &target), may)?;
        let gone = match &replaced {
            Some((other, attributes)) => self.charge_removal(other, attributes, may)?,
            None => None,
        };
        let held = self.looks_at_replaced(caller, &node, replaced.as_ref(), Wait::May(may));
        let moving = self.begin_rename_beside_bin(is_dir, source, &target)?;
        from.rename(name, &**to, to_name, replace, may)?;
        drop(moving);
        charge.iter_mut().for_each(|charge| charge.moved(&node));
        gone.iter().for_each(Charge::removed);
        replaced.iter().for_each(|(_, attributes)| self.budget.capacity().removed(attributes));
        let changes = self.changed_by_rename((&parent, name), (&to_parent, to_name))?;
        self.agreement.moved(node.id(), source, &target);
        self.notes_renamed(caller, (&node, object.kind), (source, &target), held);
        self.tell_renamed(source, &target, is_dir, author.under, may);
        Ok(Admission::Done(changes))
    }
}

impl Share {
    /// What has changed in the directory of the old name and in that of the new one.
    fn changed_by_rename(
        &self,
        (parent, name): (&Changing<'_>, Name<'_>),
        (to_parent, to_name): (&Changing<'_>, Name<'_>),
    ) -> Result<(DirChange, DirChange)> {
        if parent.dir.id() == to_parent.dir.id() {
            // `to_parent` is watched too.
            let change = self.namespace.changed(parent, Some(name), Some(to_name), 1)?;
            return Ok((change, change));
        }
        let change = self.namespace.changed(parent, Some(name), None, 0)?;
        Ok((change, self.namespace.changed(to_parent, None, Some(to_name), 0)?))
    }
}

/// Moving a directory changes its `..`: POSIX requires write permission in the directory itself. With a descriptor, the
/// right to delete the directory is enough.
fn check_moved(caller: &Caller, node: &NodeRef, attributes: &Attributes, may: MayWait<'_>) -> Result<()> {
    if node.security(attributes, Wait::May(may))?.is_some() {
        return Ok(());
    }
    permission::check(&caller.identity, Object::new(attributes, None), Access::WRITE_DATA)
}
