//! Overwriting: an open that empties the file first.

use std::sync::Arc;

use file_state::Operation;
use storage::{Attributes, FileFlags, SetAttributes, SetTime};

use crate::attributes::keep_privilege_honest;
use crate::charges::charged;
use crate::found::Found;
use crate::schedule::Work;
use crate::watch::ChangeKinds;
use crate::{Admission, Call, File, Open, OpenRequest, Result, Share, streams};

/// An open that ends again unless the work that it was made for succeeds.
struct Tentative<'a> {
    share: &'a Arc<Share>,
    open: Option<Arc<Open>>,
}

impl Drop for Tentative<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.share.withdraw(&open);
        }
    }
}

/// Whether the file itself is open, and not one of its streams.
fn open_of_file(file: &File) -> bool {
    matches!(file, File::Open(open) if open.file().is_none())
}

impl Share {
    /// Opens a file or a named stream and empties it, after the caller's permission was checked. Emptying a file also
    /// removes its named streams. The other opens must allow writing, whatever `request` asks for; their byte-range locks do
    /// not matter. Does not wait for clients that must give up what they cache. `flags` replaces those
    /// of the file. Returns the attributes after the change.
    ///
    /// # Errors
    /// Those of [`Share::open`] and of the store; in that case the file is not open.
    pub async fn open_overwriting(
        self: &Arc<Self>,
        call: &Call,
        found: &Found,
        request: &OpenRequest,
        flags: Option<FileFlags>,
    ) -> Result<Admission<(Arc<Open>, Attributes)>> {
        self.check_writable(found.node.id())?;
        let open = match self.admit(found, request, Operation::Overwrite)? {
            Admission::Done(open) => open,
            Admission::Wait(answering) => return Ok(Admission::Wait(answering)),
        };
        let mut tentative = Tentative { share: self, open: Some(Arc::clone(&open)) };
        let mut set =
            SetAttributes { size: Some(0), mtime: Some(SetTime::Now), flags, ..SetAttributes::default() };
        keep_privilege_honest(&call.caller.identity, &found.attributes, &mut set);
        let file = File::Open(Arc::clone(&open));
        if open_of_file(&file) {
            self.notes_emptying(&call.caller, file.node(), &found.attributes);
        }
        let before = found.attributes.size;
        let after = self
            .run(call, Work::Metadata, move |share, may| {
                let _charge = share.charge_nothing(charged(&file), may)?;
                if open_of_file(&file) {
                    streams::remove_all(file.node(), may)?;
                }
                let after = file.node().set_attributes(&set, may)?;
                share.budget.capacity().freed(before);
                share.tell_modified(
                    &file,
                    ChangeKinds::SIZE | ChangeKinds::LAST_WRITE | ChangeKinds::ATTRIBUTES,
                    may,
                );
                Ok(after)
            })
            .await?;
        tentative.open = None;
        Ok(Admission::Done((open, after)))
    }
}
