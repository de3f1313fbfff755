//! Removing names.

use std::sync::Arc;

use access_log::Kind;
use file_state::Operation;
use storage::{FileKind, MayWait, Name, NodeRef, Wait, Want};

use super::check_deletion;
use crate::agreement::Admission;
use crate::call::Author;
use crate::logged::path_in;
use crate::namespace::{Changing, DirChange};
use crate::recycle::Going;
use crate::schedule::Work;
use crate::{Call, Result, Share};

impl Share {
    /// Removes a name; `is_dir` says whether it must be a directory. If the share has a recycle bin, a file goes there. A file that clients have open stays available to
    /// them; unless they share deletion, the removal is refused.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`Error::NotOwner`] in a sticky directory, [`Error::SharingViolation`],
    /// [`storage::Error::IsDirectory`], [`storage::Error::NotDirectory`], [`storage::Error::NotEmpty`].
    pub async fn remove(
        self: &Arc<Self>,
        call: &Call,
        dir: &NodeRef,
        name: &[u8],
        is_dir: bool,
    ) -> Result<DirChange> {
        self.note(call, Kind::Delete, || (path_in(dir, name), None));
        self.check_writable(dir.id())?;
        let (author, dir, name) = (call.author(), Arc::clone(dir), name.to_vec());
        let remove =
            move |share: &Arc<Self>, may: MayWait<'_>| share.remove_now(&author, &dir, &name, is_dir, may);
        self.run_settled(call, Work::Metadata, remove).await
    }

    fn remove_now(
        self: &Arc<Self>,
        author: &Author,
        dir: &NodeRef,
        name: &[u8],
        is_dir: bool,
        may: MayWait<'_>,
    ) -> Result<Admission<DirChange>> {
        let name = Name::new(name)?;
        let changing = Changing::begin(author.report, dir, may)?;
        let (node, attributes) = dir.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        self.check_writable(node.id())?;
        check_deletion(&author.caller, &changing, &node, &attributes)?;
        if let Some(answering) =
            self.agreement.make_removable(&node, author.caller.client, Operation::Delete)?
        {
            return Ok(Admission::Wait(answering));
        }
        match (is_dir, attributes.kind) {
            (true, FileKind::Directory) => {}
            (true, _) => return Err(storage::Error::NotDirectory.into()),
            (false, FileKind::Directory) => return Err(storage::Error::IsDirectory.into()),
            (false, _) => {}
        }
        let suspicious =
            self.looks_at_going(author.caller.openers[0], dir, (&node, &attributes), Wait::May(may));
        let going = Going { name, node: &node, attributes: &attributes };
        let change = self.take_away(&changing, going, author.under)?;
        self.notes_gone(suspicious);
        Ok(Admission::Done(change))
    }
}
