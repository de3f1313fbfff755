//! Files to work on, and writing their data.

use std::io::IoSlice;
use std::sync::Arc;

use accounting::TracedData;
use file_state::{Access, ByteRange, Operation};
use planted::Fault;
use storage::{Attributes, MayWait, NodeRef, Stability, Wait, Want};

use crate::data::{Data, MAY_READ, take_privilege_bits};
use crate::schedule::Work;
use crate::watch::{ChangeAction, ChangeKinds, Event};
use crate::{Call, File, Location, Open, Result, Share, budget};

/// The outcome of a write.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// Bytes written: all of them.
    pub count: usize,
    /// How safe they are now.
    pub stability: Stability,
}

impl Share {
    /// Checks whether the caller may read or write a file. Returns the attributes if they had to be read.
    pub(crate) async fn permit(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        operation: Operation,
    ) -> Result<Option<Attributes>> {
        let (of_open, of_stateless) = match operation {
            Operation::Read => (MAY_READ, MAY_READ),
            _ => {
                self.check_writable(file.node().id())?;
                (Access::WRITE_DATA | Access::APPEND_DATA, Access::WRITE_DATA)
            }
        };
        match file {
            File::Open(open) => open.require_any(of_open).map(|()| None),
            File::Stateless(node) => {
                if operation == Operation::Read && self.store.is_near() {
                    return self.permit_read(call, node).await.map(Some);
                }
                self.check_stateless(call, node, of_stateless).await.map(Some)
            }
        }
    }

    /// As [`Share::permit`], and waits until no locks, opens or caches of others conflict.
    pub(crate) async fn admitted(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        range: impl Fn() -> std::result::Result<ByteRange, file_state::InvalidRange>,
        operation: Operation,
    ) -> Result<Option<Attributes>> {
        let mut patience = None;
        loop {
            let attributes = self.permit(call, file, operation).await?;
            match self.agreement.check_range(call.caller.client, file, range()?, operation)? {
                None => return Ok(attributes),
                Some(answering) => Box::pin(self.agreement.bear(call, &mut patience, answering)).await?,
            }
        }
    }

    /// The attributes of a file, if a caller without an open may use it in any of these ways.
    async fn check_stateless(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        rights: Access,
    ) -> Result<Attributes> {
        let (identity, node) = (Arc::clone(&call.caller.identity), Arc::clone(node));
        self.consult(call, move |_, may| Data::check(&identity, &node, rights, may)).await
    }

    /// The attributes of a file, if a caller without an open may read it. The permission is remembered.
    async fn permit_read(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<Attributes> {
        let (identity, node) = (Arc::clone(&call.caller.identity), Arc::clone(node));
        self.consult(call, move |share, may| share.data.permit_read(&identity, &node, may)).await
    }

    /// Writes nothing: says whether the open may write, and counts as one operation against the budget.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`].
    pub async fn write_nothing(&self, call: &Call, open: &Arc<Open>) -> Result<()> {
        open.require_any(Access::WRITE_DATA | Access::APPEND_DATA)?;
        call.takes_turn();
        self.budget.pass(call, budget::write(open.node(), 0)).await;
        Ok(())
    }

    /// Writes all of `data` at `offset`. An open that may append but not write always writes at the end of the file, so that
    /// existing data is not changed (as Windows does: FILE_APPEND_DATA of NtCreateFile).
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`Error::RangeLocked`], [`Error::SharingViolation`], the store's.
    pub async fn write<B: AsRef<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        data: B,
        stability: Stability,
    ) -> Result<Written> {
        call.takes_turn();
        self.note_use(call, file);
        let total = data.as_ref().len();
        if self.budget.asks_for_turns() {
            self.permit(call, file, Operation::Write).await?;
            let data = TracedData { file: file.node().id().number, offset, bytes: total as u64 };
            self.budget.note(call, None, Some(data));
            self.budget.pass(call, budget::write(file.node(), total as u64)).await;
        }
        let given = self.agreement.grants_given();
        let offset = if only_appends(file) {
            self.attributes(call, file.node(), Want::empty()).await?.size
        } else {
            offset
        };
        let range = || ByteRange::new(offset, total as u64);
        let attributes = self.admitted(call, file, range, Operation::Write).await?;
        let node = Arc::clone(file.node());
        let end = offset.saturating_add(total as u64);
        let _room = self.make_room(call, file, (offset, end)).await?;
        if let Some(noticed) = self.notices_noise(call, file, offset, data.as_ref()) {
            Box::pin(self.suspects(call, &node, offset, noticed)).await;
        }
        let _under_way = self.changes.work_begins();
        let mut count = 0;
        if planted::strikes(Fault::WriteLost) {
            return Ok(Written { count: total, stability });
        }
        if planted::strikes(Fault::WriteTorn) {
            count = total / 2;
        }
        if count == 0 && stability == Stability::Unstable && self.store.is_near() {
            let _inside = self.store.inside();
            let never = Wait::Never(call.view());
            count = match node.write(offset, &[IoSlice::new(data.as_ref())], stability, never) {
                Ok(count) => count,
                Err(storage::Error::WouldBlock) => 0,
                Err(e) => {
                    self.heed(e);
                    return Err(e.into());
                }
            };
        }
        if count < total {
            let work = if stability == Stability::Unstable { Work::Write } else { Work::Blocking };
            self.run(call, work, move |_, may| {
                let rest = data.as_ref().get(count..).unwrap_or_default();
                Ok(node.write(
                    offset.saturating_add(count as u64),
                    &[IoSlice::new(rest)],
                    stability,
                    Wait::May(may),
                )?)
            })
            .await?;
        }
        self.agreement.written_since(given, file);
        self.written(call, file, attributes).await?;
        Ok(Written { count: total, stability })
    }

    /// Requires any of `access`, from the open or, without an open, from the file's permissions.
    pub(crate) async fn check_any(self: &Arc<Self>, call: &Call, file: &File, access: Access) -> Result<()> {
        match file {
            File::Open(open) => open.require_any(access),
            File::Stateless(node) => self.check_stateless(call, node, access).await.map(drop),
        }
    }

    /// Follows a write: unless the superuser wrote, a program loses its privilege bits. Watchers are told.
    pub(crate) async fn written(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        attributes: Option<Attributes>,
    ) -> Result<()> {
        let (is_superuser, file) = (call.caller.identity.is_superuser(), file.clone());
        self.consult(call, move |share, may| share.written_now(is_superuser, &file, attributes, may)).await
    }

    fn written_now(
        &self,
        is_superuser: bool,
        file: &File,
        attributes: Option<Attributes>,
        may: MayWait<'_>,
    ) -> Result<()> {
        if !is_superuser {
            match (file, attributes) {
                (File::Open(open), _) => take_privilege(open, may)?,
                (File::Stateless(node), Some(attributes)) => take_privilege_bits(node, attributes.mode, may)?,
                (File::Stateless(_), None) => {}
            }
        }
        self.tell_written(file, may);
        Ok(())
    }

    /// Tells watchers that data was written. Holders of cached listings are told when the open used for writing is closed,
    /// since more writes may come before.
    fn tell_written(&self, file: &File, may: MayWait<'_>) {
        let kinds = ChangeKinds::SIZE | ChangeKinds::LAST_WRITE;
        match file {
            File::Open(open) => {
                open.note_written();
                if self.changes.is_watched() {
                    self.publish_modified(file, kinds, may);
                }
            }
            File::Stateless(_) => self.tell_modified(file, kinds, may),
        }
    }

    /// Tells watchers and holders of cached listings that an object has changed, if its name is known because it is open or
    /// from the store.
    pub(crate) fn tell_modified(&self, file: &File, kinds: ChangeKinds, may: MayWait<'_>) {
        if (self.changes.is_watched() || self.agreement.caches_listings())
            && let Some(location) = self.publish_modified(file, kinds, may)
        {
            self.agreement.entries_changed(location.parent.id(), file.directory());
        }
    }

    /// Tells watchers that an object has changed. Returns its location, or None for a named stream, since that does not
    /// change its directory.
    fn publish_modified(&self, file: &File, kinds: ChangeKinds, may: MayWait<'_>) -> Option<Location> {
        let node = file.node();
        if let File::Open(open) = file
            && open.file().is_some()
        {
            self.tell_stream_modified(open, kinds, may);
            return None;
        }
        let location = self.agreement.location_of(node.id());
        let location = location.or_else(|| self.namespace.locate(node, may))?;
        let (dir, name) = (&location.parent, location.name.as_slice());
        let unless = ChangeKinds::empty();
        self.changes.publish(&Event { dir, name, action: ChangeAction::Modified, kinds, unless }, may);
        Some(location)
    }

    /// Ensures space for the first `length` bytes of a file, as far as the store can. The size of the file does not change.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`], [`storage::Error::NoSpace`], the store's.
    pub async fn allocate(self: &Arc<Self>, call: &Call, open: &Arc<Open>, length: u64) -> Result<()> {
        self.check_writable(open.node().id())?;
        open.require(Access::WRITE_DATA)?;
        // For the caches of others it is a change of the size.
        let take_back = || self.agreement.take_back(open.node().id(), Some(open.holder()), Operation::Write);
        self.agreement.settled(call, || Ok(((), take_back()))).await?;
        match self.reserve_room(call, open, length).await {
            // Space is promised, not content: a store that cannot promise space has none to withdraw.
            Err(crate::Error::Storage(storage::Error::NotSupported)) => Ok(()),
            done => done,
        }
    }

    /// Has the store reserve space for the first `length` bytes of an open file. The file does not grow.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] unless the open may write; [`storage::Error::NoSpace`],
    /// [`storage::Error::NotSupported`].
    pub async fn reserve_space(self: &Arc<Self>, call: &Call, open: &Arc<Open>, length: u64) -> Result<()> {
        self.check_writable(open.node().id())?;
        open.require_any(Access::WRITE_DATA | Access::APPEND_DATA)?;
        self.reserve_room(call, open, length).await
    }

    async fn reserve_room(self: &Arc<Self>, call: &Call, open: &Arc<Open>, length: u64) -> Result<()> {
        let charge = self.charge(call, &File::Open(Arc::clone(open)), (0, length)).await?;
        let node = Arc::clone(open.node());
        self.run(call, Work::Blocking, move |_, may| Ok(node.allocate(0, length, false, may)?)).await?;
        if let Some(charge) = &charge {
            charge.allocated((0, length));
        }
        Ok(())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`storage::Error::WrongKind`].
    pub async fn read_link(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<Vec<u8>> {
        let node = Arc::clone(node);
        self.run(call, Work::Metadata, move |_, may| Ok(node.read_link(may)?)).await
    }

    /// Puts everything written to a file on stable storage.
    ///
    /// # Errors
    /// The store's; in that case data may be lost.
    pub async fn commit(self: &Arc<Self>, call: &Call, file: &File) -> Result<()> {
        if let File::Open(open) = file {
            open.require_open()?;
        }
        let node = Arc::clone(file.node());
        self.run(call, Work::Blocking, move |_, may| Ok(node.commit(may)?)).await
    }
}

fn only_appends(file: &File) -> bool {
    match file {
        File::Open(open) => open.access() & (Access::WRITE_DATA | Access::APPEND_DATA) == Access::APPEND_DATA,
        File::Stateless(_) => false,
    }
}

/// Clears the privilege bits of a program at the first write through an open, based on its mode at that time.
fn take_privilege(open: &Open, may: MayWait<'_>) -> Result<()> {
    if !open.begins_to_write_program() {
        return Ok(());
    }
    let mode = open.node().attributes(Want::empty(), Wait::May(may))?.mode;
    take_privilege_bits(open.node(), mode, may)
}
