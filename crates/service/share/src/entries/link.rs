//! Turning an object that was just created into a symbolic link.

use std::sync::Arc;

use access_log::Kind;
use file_state::{Access, Operation, Sharing};
use storage::{Attributes, FileKind, MayWait, Name, NewKind, NewNode, NodeRef, Protection, Wait, Want};

use crate::agreement::Admission;
use crate::call::Author;
use crate::charges::Charge;
use crate::found::Found;
use crate::logged::path_in;
use crate::schedule::Work;
use crate::watch::ChangeAction;
use crate::{Call, Error, Location, Open, OpenRequest, Result, Share};

/// The longest target of a symbolic link, in bytes (Linux: PATH_MAX less the final zero).
pub const LINK_TARGET_BYTES_MAX: usize = 4095;

impl Share {
    /// Turns the empty file or directory of an open into a symbolic link with the same owner. The caller has just
    /// created it through this open, which is its only one. Returns an open of the link with the same access, which
    /// takes the place of the open; that one ends, with what it cached.
    ///
    /// If the store cannot make the link, the object is removed all the same, as if it had never been created.
    ///
    /// # Errors
    /// Without a change: [`Error::NotOpenedForThis`] without WRITE_DATA and WRITE_ATTRIBUTES, [`Error::AccessDenied`],
    /// [`Error::SharingViolation`] for an object that somebody else has open, [`Error::DeletePending`],
    /// [`Error::Gone`], [`storage::Error::NotEmpty`], [`storage::Error::NotSupported`] for an object with data, other
    /// names or named streams, [`storage::Error::NameTooLong`] and [`storage::Error::InvalidArgument`] for the target.
    /// Those of the store.
    pub async fn turn_into_link(
        self: &Arc<Self>,
        call: &Call,
        open: &Arc<Open>,
        target: Vec<u8>,
    ) -> Result<Arc<Open>> {
        open.require_any(Access::WRITE_DATA | Access::WRITE_ATTRIBUTES)?;
        let place = self.location(open).filter(|_| open.file().is_none());
        let place = place.ok_or(Error::Storage(storage::Error::NotSupported))?;
        self.note(call, Kind::Create, || (path_in(&place.parent, &place.name), None));
        self.check_writable(place.parent.id()).and_then(|()| self.check_writable(open.node().id()))?;
        check_target(&target)?;
        let (author, before) = (call.author(), Arc::clone(open));
        let turn = move |share: &Arc<Self>, may: MayWait<'_>| {
            share.turn_into_link_now(&author, &before, &place, &target, may)
        };
        self.run(call, Work::Metadata, turn).await
    }

    fn turn_into_link_now(
        self: &Arc<Self>,
        author: &Author,
        before: &Arc<Open>,
        place: &Location,
        target: &[u8],
        may: MayWait<'_>,
    ) -> Result<Arc<Open>> {
        let (dir, name) = (&place.parent, Name::new(&place.name)?);
        let changing = self.begin_adding(author, dir, false, may)?;
        self.check_dir_admits(dir)?;
        let (node, attributes) = dir.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        if node.id() != before.node().id() {
            return Err(Error::Gone);
        }
        if self.is_delete_pending(&node) {
            return Err(Error::DeletePending);
        }
        check_blank(&node, &attributes, may)?;
        let held = self.agreement.only_open(before).ok_or(Error::SharingViolation)?;
        // Nobody waits for the answer: the object goes.
        drop(self.agreement.take_back(node.id(), None, Operation::Delete));
        let charge = self.charge_removal(&node, &attributes, may)?;
        dir.remove_found(name, &attributes, may)?;
        charge.iter().for_each(Charge::removed);
        let new =
            NewNode { kind: NewKind::Symlink(target), mode: 0o777, uid: attributes.uid, gid: attributes.gid };
        let made = dir.create_attributes(name, &new, Want::FLAGS, may);
        let added = made.is_ok().then_some(name);
        let change = self.namespace.changed(&changing, Some(name), added, 0);
        self.tell_replaced(place, &node, &attributes, author, may);
        let (link, attributes) = made?;
        self.tell_name(dir, &place.name, ChangeAction::Added, false, author.under, may);
        let found = Found {
            dir: Some(Arc::clone(dir)),
            dir_protection: Some(Protection {
                attributes: change.ok().and_then(|change| change.after),
                ..changing.protection
            }),
            name: place.name.clone(),
            ..Found::alone(link, attributes)
        };
        self.open_in_place_of(before, &found, held).inspect_err(|_| {
            // A link that its maker cannot use is not the requested one.
            let _ = dir.remove_file(name, may);
            self.tell_name(dir, &place.name, ChangeAction::Removed, false, author.under, may);
        })
    }

    /// Follows the removal of the object that a link replaces.
    fn tell_replaced(
        &self,
        place: &Location,
        node: &NodeRef,
        attributes: &Attributes,
        author: &Author,
        may: MayWait<'_>,
    ) {
        let is_dir = attributes.kind == FileKind::Directory;
        if is_dir {
            self.changes.publish_gone(node.id());
        } else {
            self.budget.capacity().removed(attributes);
        }
        self.tell_name(&place.parent, &place.name, ChangeAction::Removed, is_dir, author.under, may);
    }

    /// Ends the open of the object that a link replaces, and opens the link in the same way.
    fn open_in_place_of(
        self: &Arc<Self>,
        before: &Arc<Open>,
        link: &Found,
        (sharing, delete_on_close): (Sharing, bool),
    ) -> Result<Arc<Open>> {
        let request = OpenRequest {
            delete_on_close,
            directory: before.directory(),
            openers: before.openers(),
            ..OpenRequest::new(before.access(), sharing)
        };
        self.withdraw(before);
        match self.open_granted(link, &request)? {
            Admission::Done(open) => Ok(open),
            // Somebody else was quicker to open the link.
            Admission::Wait(_) => Err(Error::SharingViolation),
        }
    }
}

fn check_target(target: &[u8]) -> storage::Result<()> {
    if target.is_empty() || target.contains(&0) {
        Err(storage::Error::InvalidArgument)
    } else if target.len() > LINK_TARGET_BYTES_MAX {
        Err(storage::Error::NameTooLong)
    } else {
        Ok(())
    }
}

/// Refuses an object that has more than its one name.
fn check_blank(node: &NodeRef, attributes: &Attributes, may: MayWait<'_>) -> storage::Result<()> {
    let is_blank = match attributes.kind {
        FileKind::Regular => attributes.size == 0 && attributes.links == 1,
        FileKind::Directory => true, // removing it will tell
        _ => false,
    };
    let has_streams = match node.streams(may) {
        Err(storage::Error::NotSupported | storage::Error::WrongKind) => false,
        listed => !listed?.is_empty(),
    };
    if is_blank && !has_streams { Ok(()) } else { Err(storage::Error::NotSupported) }
}
