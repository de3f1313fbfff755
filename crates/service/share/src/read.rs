//! Reading the data of files.

use std::sync::Arc;
use std::time::Instant;

use accounting::TracedData;
use file_state::{ByteRange, Operation};
use storage::{Attributes, NodeRef, Wait, Want};

use crate::data::MAY_READ;
use crate::schedule::Work;
use crate::{Call, File, Result, Share, budget};

/// What was read: the buffer, the count, and whether that is the end of the file, if the read has shown it.
pub type Read<B> = (B, usize, Option<bool>);

/// What [`Share::read_with_attributes`] has read.
#[derive(Debug)]
pub struct ReadWithAttributes<B> {
    /// The buffer.
    pub into: B,
    /// Bytes read.
    pub count: usize,
    /// The attributes of the file at a moment after the read.
    pub attributes: Attributes,
}

impl Share {
    /// Reads from `offset` and fills `into`. Returns the buffer with the count, which is short only at the end of the file.
    ///
    /// # Errors
    /// [`Error::AccessDenied`](crate::Error::AccessDenied), [`Error::RangeLocked`](crate::Error::RangeLocked),
    /// [`Error::SharingViolation`](crate::Error::SharingViolation), the store's.
    pub async fn read<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        into: B,
    ) -> Result<(B, usize)> {
        let (into, count, _) = self.read_ahead(call, file, offset, into, 0).await?;
        Ok((into, count))
    }

    /// As [`Share::read`], and also returns whether the read has reached the end of the file. `into` is one byte longer than
    /// what is read: if there is a byte for that place, the end lies behind, and the store is not asked for the size.
    ///
    /// # Errors
    /// As [`Share::read`].
    pub async fn read_with_end<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        into: B,
    ) -> Result<(B, usize, bool)> {
        let (into, count, is_end) = self.read_ahead(call, file, offset, into, 1).await?;
        let is_end = match is_end {
            Some(is_end) => is_end,
            None => {
                let attributes = Box::pin(self.attributes(call, file.node(), Want::empty())).await?;
                attributes.size <= offset.saturating_add(count as u64)
            }
        };
        Ok((into, count, is_end))
    }

    /// As [`Share::read`] for a caller without an open, and also returns the attributes of the file at a moment after the
    /// read, as [`Share::present_attributes`] does.
    ///
    /// # Errors
    /// As [`Share::read`] and [`Share::present_attributes`].
    pub async fn read_with_attributes<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        offset: u64,
        into: B,
    ) -> Result<ReadWithAttributes<B>> {
        let file = File::Stateless(Arc::clone(node));
        let (into, count) = self.read(call, &file, offset, into).await?;
        let attributes = self.present_attributes(call, node, Want::empty()).await?;
        Ok(ReadWithAttributes { into, count, attributes })
    }

    /// As [`Share::read_with_attributes`], for a caller who has read the same file before. This looks at the attributes only
    /// once, behind the read: if the file's change time is still the one under which the caller was permitted to read,
    /// nothing has changed in between. Gives the buffer back if that cannot be said, or if anything would have to wait: then
    /// nothing has been decided.
    ///
    /// # Errors
    /// The buffer, for [`Share::read_with_attributes`].
    pub fn read_permitted<B: AsMut<[u8]>>(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        offset: u64,
        mut into: B,
    ) -> std::result::Result<ReadWithAttributes<B>, B> {
        let Some(local) = self.store.near().filter(|_| !self.budget.asks_for_turns()) else {
            return Err(into);
        };
        let Some(permitted_at) = self.data.permitted_at(node.id(), &call.caller.identity) else {
            return Err(into);
        };
        let length = into.as_mut().len();
        let Ok(range) = ByteRange::new(offset, length as u64) else { return Err(into) };
        let file = File::Stateless(Arc::clone(node));
        if !matches!(self.agreement.check_range(call.caller.client, &file, range, Operation::Read), Ok(None))
        {
            return Err(into);
        }
        let _inside = self.store.inside();
        let Ok(count) = node.read(offset, into.as_mut(), Wait::Never(call.view())) else { return Err(into) };
        let Ok(attributes) = node.attributes(Want::empty(), Wait::May(local.may_wait(call.view()))) else {
            return Err(into);
        };
        let is_whole = count == length || attributes.size <= offset.saturating_add(count as u64);
        if attributes.ctime != permitted_at || !is_whole || self.agreement.asks_writers(&attributes) {
            return Err(into);
        }
        call.takes_turn();
        self.note_use(call, &file);
        Ok(ReadWithAttributes { into, count, attributes })
    }

    /// Reads through an open what is at hand, without waiting for anything: all of `into` but the last `ahead` bytes. Whether
    /// there is data for these shows whether the file ends before. Gives the buffer back if anything would have to wait, or
    /// fails: then nothing has been decided.
    ///
    /// # Errors
    /// The buffer, for [`Share::read`] or [`Share::read_with_end`].
    pub fn read_at_hand<B: AsMut<[u8]>>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        mut into: B,
        ahead: usize,
    ) -> std::result::Result<Read<B>, B> {
        let File::Open(open) = file else { return Err(into) };
        if self.budget.asks_for_turns() || open.require_any(MAY_READ).is_err() {
            return Err(into);
        }
        let length = into.as_mut().len().saturating_sub(ahead);
        let Ok(range) = ByteRange::new(offset, length as u64) else { return Err(into) };
        if !matches!(self.agreement.check_range(call.caller.client, file, range, Operation::Read), Ok(None)) {
            return Err(into);
        }
        let node = open.node();
        let (count, is_end) = match node.read(offset, into.as_mut(), Wait::Never(call.view())) {
            Ok(count) if count > length => (length, Some(false)),
            Ok(count) if count == length => (count, None),
            Ok(count) => {
                let end = offset.saturating_add(count as u64);
                let attributes = node.attributes(Want::empty(), Wait::Never(call.view()));
                if count == 0 || !attributes.is_ok_and(|attributes| attributes.size <= end) {
                    return Err(into);
                }
                (count, Some(true))
            }
            Err(_) => return Err(into),
        };
        call.takes_turn();
        self.note_use(call, file);
        Ok((into, count, is_end))
    }

    /// Reads all of `into` but the last `ahead` bytes, and looks whether there is data for these.
    async fn read_ahead<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        into: B,
        ahead: usize,
    ) -> Result<Read<B>> {
        call.takes_turn();
        self.note_use(call, file);
        if self.budget.asks_for_turns() {
            return Box::pin(self.read_in_turn(call, file, offset, into, ahead)).await;
        }
        self.read_now(call, file, offset, into, ahead).await
    }

    /// Reads when the budget allows it.
    async fn read_in_turn<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        mut into: B,
        ahead: usize,
    ) -> Result<Read<B>> {
        let length = into.as_mut().len().saturating_sub(ahead);
        self.permit(call, file, Operation::Read).await?;
        let arrived = Instant::now();
        let operation = budget::read(file.node(), length as u64);
        self.budget.pass(call, operation).await;
        let outcome = self.read_now(call, file, offset, into, ahead).await;
        let moved = outcome.as_ref().map_or(0, |(_, count, _)| *count);
        self.budget.put_back(call, operation, length.saturating_sub(moved));
        let data = TracedData { file: file.node().id().number, offset, bytes: moved as u64 };
        self.budget.note(call, Some(arrived), Some(data));
        outcome
    }

    /// Reads without regard to the budget.
    async fn read_now<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        mut into: B,
        ahead: usize,
    ) -> Result<Read<B>> {
        let length = into.as_mut().len().saturating_sub(ahead);
        let range = || ByteRange::new(offset, length as u64);
        self.admitted(call, file, range, Operation::Read).await?;
        let node = file.node();
        let at_hand = match node.read(offset, into.as_mut(), Wait::Never(call.view())) {
            Ok(count) if count > length => return Ok((into, length, Some(false))),
            Ok(count) if count == length => return Ok((into, length, None)),
            // A short count means the end of the file, or of what is available without waiting.
            Ok(count) => count,
            Err(storage::Error::WouldBlock) => 0,
            Err(e) => return Err(e.into()),
        };
        let end = offset.saturating_add(at_hand as u64);
        if at_hand > 0
            && node.attributes(Want::empty(), Wait::Never(call.view())).is_ok_and(|a| a.size <= end)
        {
            return Ok((into, at_hand, Some(true)));
        }
        let node = Arc::clone(node);
        let rest = self.run(call, Work::Blocking, move |_, may| {
            let rest = into.as_mut().get_mut(at_hand..).unwrap_or_default();
            let count = at_hand.saturating_add(node.read(end, rest, Wait::May(may))?);
            Ok((into, count.min(length), (count > length).then_some(false)))
        });
        Box::pin(rest).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File as LocalFile, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use identity::{Identity, Proof};
    use storage::Name;
    use storage::conformance::MAY;
    use storage_local::{LocalOptions, LocalStore};

    use super::*;
    use crate::call::of_tests::READ;
    use crate::{Caller, Error, Settings, ShareId};

    fn share(at: &std::path::Path) -> Arc<Share> {
        let store = LocalStore::open(at, LocalOptions::default()).unwrap();
        Share::new(ShareId(1), Settings::new("data"), Arc::new(store))
    }

    fn call() -> Call {
        let caller = Caller::new(Identity::unix(54_321, 54_321, Vec::new()), Proof::Stated);
        Call::new(&READ, caller, Instant::now())
    }

    #[tokio::test]
    async fn what_was_permitted_once_is_not_permitted_for_ever() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, b"content").unwrap();
        let mode = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        let share = share(place.path());
        let node = share.root().lookup(Name::new(b"file").unwrap(), Wait::May(MAY)).unwrap();
        let read = async || {
            let call = call();
            let read = match share.read_permitted(&call, &node, 3, vec![0; 9]) {
                Ok(read) => Ok(read),
                Err(into) => share.read_with_attributes(&call, &node, 3, into).await,
            };
            read.map(|read| (read.into[..read.count].to_vec(), read.attributes.size))
        };
        // The change time of the file becomes old enough to rely on.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let is_permitted = || share.data.permitted_at(node.id(), &call().caller.identity).is_some();
        assert!(!is_permitted());
        for _ in 0..2 {
            assert_eq!(read().await.unwrap(), (b"tent".to_vec(), 7));
            assert!(is_permitted());
        }
        fs::write(&path, b"contained").unwrap();
        assert_eq!(
            read().await.unwrap(),
            (b"tained".to_vec(), 9),
            "the attributes are those of after the change"
        );
        mode(0o600);
        assert!(matches!(read().await, Err(Error::AccessDenied)));
        mode(0o644);
        assert_eq!(read().await.unwrap(), (b"tained".to_vec(), 9));
    }

    #[tokio::test]
    async fn the_byte_behind_shows_where_a_file_ends() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, b"content").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let share = share(place.path());
        let node = share.root().lookup(Name::new(b"file").unwrap(), Wait::May(MAY)).unwrap();
        let file = File::Stateless(node);
        let read = async |offset, length: usize| {
            let (data, count, is_end) =
                share.read_with_end(&call(), &file, offset, vec![0; length + 1]).await.unwrap();
            (data[..count].to_vec(), is_end)
        };
        assert_eq!(read(0, 6).await, (b"conten".to_vec(), false));
        assert_eq!(read(0, 7).await, (b"content".to_vec(), true));
        assert_eq!(read(4, 9).await, (b"ent".to_vec(), true));
        assert_eq!((read(6, 0).await, read(7, 0).await), ((Vec::new(), false), (Vec::new(), true)));
        assert_eq!(read(9, 4).await, (Vec::new(), true));
        LocalFile::options().append(true).open(&path).unwrap().set_len(8).unwrap();
        assert_eq!(read(4, 3).await, (b"ent".to_vec(), false));
    }
}
