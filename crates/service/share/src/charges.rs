//! What changes of files cost their owners: control flow between the changes and the quotas of the share.

use std::sync::Arc;
use std::time::Duration;

use quota::Owners;
use storage::{Attributes, FileKind, MayWait, NodeRef, Wait, Want};

use crate::quotas::{Admitted, Begun, NewOwners, Range, Transfer};
use crate::{Call, Error, File, Location, Result, Share};

/// How long a use waits for those of others on which it depends whether it fits. They end at once, unless the storage is slow.
const OTHERS_END_WITHIN: Duration = Duration::from_secs(30);

/// A use of a file that may change what the file occupies. It ends when this is dropped; what the store reports then is
/// what the owners of the file are charged for.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    begun: Begun,
    /// A change of hands, and whether it has taken place.
    transfer: Option<(Transfer, bool)>,
    /// Whether the store is asked at once: something was freed, or changed in a way that nobody would notice later.
    settles: bool,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let quotas = self.share.quotas();
        if let Some((transfer, is_done)) = self.transfer.take() {
            quotas.end_transfer(transfer, is_done);
        }
        let file = self.begun.file;
        if quotas.end(self.begun) || self.settles {
            self.share.afterwards(move |share, may| share.quotas().settle_used(file, may));
        }
    }
}

impl Charge {
    /// The file has changed hands.
    pub(crate) fn handed_over(&mut self) {
        if let Some((_, is_done)) = &mut self.transfer {
            *is_done = true;
        }
    }

    /// The store has allocated all bytes of the file from `start` to `end`: nothing is reserved for writes there.
    pub(crate) fn allocated(&self, range: (u64, u64)) {
        self.share.quotas().allocated(self.begun, range);
    }

    /// The object is elsewhere now.
    pub(crate) fn moved(&mut self, node: &NodeRef) {
        self.share.quotas().moved(node);
        self.handed_over();
    }

    /// The last name of the file was removed.
    pub(crate) fn removed(&self) {
        self.share.quotas().removed(self.begun);
    }
}

/// Where an object is, or will be.
fn path_in(dir: &NodeRef, name: &[u8]) -> Result<Vec<u8>> {
    let mut path = dir.path()?;
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    Ok(path)
}

/// The object that is charged for a file: for a named stream, its file.
pub(crate) fn charged(file: &File) -> &NodeRef {
    match file {
        File::Open(open) => open.file().map_or_else(|| open.node(), |of_stream| of_stream.node()),
        File::Stateless(node) => node,
    }
}

fn is_stream(file: &File) -> bool {
    matches!(file, File::Open(open) if open.file().is_some())
}

impl Share {
    /// Begins a use of a file that may allocate the bytes from `start` to `end`. Waits if whether they fit depends on uses by
    /// others. None where nothing is counted.
    ///
    /// # Errors
    /// [`Error::OverQuota`], the store's.
    pub(crate) async fn charge(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        (start, end): (u64, u64),
    ) -> Result<Option<Charge>> {
        if !self.quotas().is_on() {
            return Ok(None);
        }
        let range = Range { start, end, is_stream: is_stream(file) };
        if let Some(begun) = self.quotas().begin_known(charged(file).id().number, range) {
            return Ok(Some(self.charge_of(begun, end == 0)));
        }
        Box::pin(self.charge_slowly(call, file, range)).await
    }

    /// Asks the store, and waits for others.
    async fn charge_slowly(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        range: Range,
    ) -> Result<Option<Charge>> {
        let deadline = tokio::time::Instant::now() + OTHERS_END_WITHIN;
        loop {
            let others_end = self.quotas().others_end();
            let node = Arc::clone(charged(file));
            let admitted =
                self.consult(call, move |share, may| share.quotas().begin(&node, range, may)).await?;
            match admitted {
                Admitted::Begun(begun) => return Ok(Some(self.charge_of(begun, range.end == 0))),
                Admitted::DependsOnOthers => {
                    let ended = tokio::time::timeout_at(deadline, others_end).await;
                    ended.map_err(|_| Error::OverQuota)?;
                }
            }
        }
    }

    fn charge_of(self: &Arc<Self>, begun: Begun, settles: bool) -> Charge {
        Charge { share: Arc::clone(self), begun, transfer: None, settles }
    }

    /// Begins a use of an object that allocates nothing: it is cut, loses streams, changes hands or is removed. None where
    /// nothing is counted.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn charge_nothing(
        self: &Arc<Self>,
        node: &NodeRef,
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        if !self.quotas().is_on() {
            return Ok(None);
        }
        match self.quotas().begin(node, Range::NOTHING, may)? {
            Admitted::Begun(begun) => Ok(Some(self.charge_of(begun, true))),
            // Nothing always fits.
            Admitted::DependsOnOthers => Ok(None),
        }
    }

    /// As [`Share::charge_nothing`], for a file of these attributes that loses a name. None unless that is its last one.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn charge_removal(
        self: &Arc<Self>,
        node: &NodeRef,
        attributes: &Attributes,
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        let is_last = attributes.kind == FileKind::Directory || attributes.links <= 1;
        if is_last { self.charge_nothing(node, may) } else { Ok(None) }
    }

    /// As [`Share::charge_nothing`], for an object that gets other owners than these attributes have.
    ///
    /// # Errors
    /// [`Error::OverQuota`] if it does not fit there, the store's.
    pub(crate) fn charge_owners(
        self: &Arc<Self>,
        node: &NodeRef,
        before: &Attributes,
        (uid, gid): (u32, u32),
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        if (uid, gid) == (before.uid, before.gid) {
            return Ok(None);
        }
        self.begin_transfer(node, NewOwners::People(uid, gid), may)
    }

    fn begin_transfer(
        self: &Arc<Self>,
        node: &NodeRef,
        to: NewOwners,
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        let Some(mut charge) = self.charge_nothing(node, may)? else { return Ok(None) };
        charge.transfer = Some((self.quotas().begin_transfer(charge.begun, to, may)?, false));
        Ok(Some(charge))
    }

    /// Begins a move of an object. A file is charged to the directory with a quota that it gets into.
    ///
    /// # Errors
    /// [`Error::OverQuota`] for a file that does not fit there; [`Error::AccessDenied`] for a directory that has a quota or has
    /// one below it, [`storage::Error::CrossDevice`] for another directory or a file with several names that would get into the
    /// reach of another quota; the store's.
    pub(crate) fn charge_move(
        self: &Arc<Self>,
        node: &NodeRef,
        attributes: &Attributes,
        (from, to): (&Location, &Location),
        may: MayWait<'_>,
    ) -> Result<Option<Charge>> {
        if !self.quotas().is_on() {
            return Ok(None);
        }
        let places = self.quotas().places();
        if !places.are_there() {
            return self.charge_nothing(node, may);
        }
        let (from, to) = (path_in(&from.parent, &from.name)?, path_in(&to.parent, &to.name)?);
        let is_dir = attributes.kind == FileKind::Directory;
        if is_dir && from != to && (places.are_within(&from) || places.are_within(&to)) {
            return Err(Error::AccessDenied);
        }
        let (before, after) = (places.above(&from), places.above(&to));
        if before == after {
            return self.charge_nothing(node, may);
        }
        if is_dir || attributes.links > 1 {
            return Err(storage::Error::CrossDevice.into());
        }
        self.begin_transfer(node, NewOwners::Directory(after), may)
    }

    /// Refuses a further name for a file in the reach of another quota of a directory.
    ///
    /// # Errors
    /// [`storage::Error::CrossDevice`], the store's.
    pub(crate) fn check_link(&self, target: &NodeRef, dir: &NodeRef, name: &[u8]) -> Result<()> {
        let places = self.quotas().places();
        if !places.are_there() {
            return Ok(());
        }
        let same = places.above(&target.path()?) == places.above(&path_in(dir, name)?);
        if same { Ok(()) } else { Err(storage::Error::CrossDevice.into()) }
    }

    /// Whom objects in a directory are charged to, for a caller or the owners of a file.
    pub(crate) fn owners_at(&self, (user, group): (u32, u32), node: &NodeRef) -> Owners {
        Owners { user, group, directory: self.quotas().places().of_node(node) }
    }

    /// The room of a file or directory under the quotas that hold for it; None without one.
    ///
    /// # Errors
    /// The store's.
    pub async fn quota_room(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
    ) -> Result<Option<crate::QuotaRoom>> {
        if !self.quotas().is_on() {
            return Ok(None);
        }
        let node = Arc::clone(node);
        let settles = call.settles_quotas();
        self.consult(call, move |share, may| {
            if settles {
                share.quotas().settle_all(may);
            }
            let attributes = node.attributes(Want::empty(), Wait::May(may))?;
            let owners = share.owners_at((attributes.uid, attributes.gid), &node);
            Ok(share.quotas().room(owners))
        })
        .await
    }
}
