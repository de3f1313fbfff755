//! Ranges of files: holes, zeroes, and copies whose data does not pass through the client.

use std::io::IoSlice;
use std::sync::Arc;

use file_state::{Access, ByteRange, Operation};
use storage::{
    Attributes, Capabilities, FileFlags, MayWait, NodeRef, SeekTo, SetAttributes, SetTime, Stability, Wait,
    Want,
};

use crate::schedule::Work;
use crate::watch::ChangeKinds;
use crate::{Call, Error, File, Open, Result, Share, budget};

/// Bytes written or copied at a time where the store cannot do the whole operation.
const PIECE: usize = 256 * 1024;

/// Bytes of a copy or clone that are charged to the budget at a time, as much as a large read or write.
const PACED_PIECE: u64 = 1 << 20;

/// Which ranges of files may be made to share blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneRule {
    /// Neither file's length changes, and sparse data is not cloned into a file that is not sparse.
    Within,
    /// The target grows to hold the range.
    Grows,
}

impl Share {
    /// Makes `length` bytes from `offset` of a file read as zeroes, and frees their space if the store can. The file keeps
    /// its length: anything beyond its end is ignored.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] or [`Error::AccessDenied`] unless the file may be written, [`Error::RangeLocked`],
    /// [`Error::InvalidRange`], the store's.
    pub async fn zero_range(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        self.check_writable(file.node().id())?;
        self.check_any(call, file, Access::WRITE_DATA).await?;
        let given = self.agreement.grants_given();
        self.bytes_settled(call, file, ByteRange::new(offset, length)?, Operation::Write).await?;
        // Zeroes are written where the store makes no holes.
        let makes_holes = self.store.storage().capabilities().contains(Capabilities::PUNCH_HOLE);
        let written = if makes_holes { (0, 0) } else { (offset, offset.saturating_add(length)) };
        let _charge = self.charge(call, file, written).await?;
        let node = Arc::clone(file.node());
        let _under_way = self.changes.work_begins();
        self.run(call, Work::Blocking, move |_, may| zero_now(&node, offset, length, may)).await?;
        self.end_change(call, file, given).await
    }

    /// Has the store reserve space for `length` bytes from `offset` of a file. The file grows to hold them.
    ///
    /// # Errors
    /// Those of [`Share::zero_range`]; [`storage::Error::NoSpace`], [`storage::Error::NotSupported`].
    pub async fn reserve_range(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        self.check_writable(file.node().id())?;
        self.check_any(call, file, Access::WRITE_DATA).await?;
        let given = self.agreement.grants_given();
        self.bytes_settled(call, file, ByteRange::new(offset, length)?, Operation::Write).await?;
        let node = Arc::clone(file.node());
        let room = self.make_room(call, file, (offset, offset.saturating_add(length))).await?;
        let _under_way = self.changes.work_begins();
        self.run(call, Work::Blocking, move |_, may| Ok(node.allocate(offset, length, true, may)?)).await?;
        if let Some(room) = &room {
            room.allocated((offset, offset.saturating_add(length)));
        }
        self.end_change(call, file, given).await
    }

    /// The start of the next data, or of the next hole, at or after `offset` of a file; the end of the file counts as a
    /// hole. None at and beyond the end, and when no more data follows. A store without holes has only data.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] or [`Error::AccessDenied`] unless the file may be read, [`Error::RangeLocked`], the
    /// store's.
    pub async fn seek(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        to: SeekTo,
    ) -> Result<Option<u64>> {
        self.check_any(call, file, Access::READ_DATA | Access::EXECUTE).await?;
        // Data that another client has not written yet counts as data.
        self.bytes_settled(call, file, ByteRange::new(offset, 0)?, Operation::Read).await?;
        let node = Arc::clone(file.node());
        self.run(call, Work::Blocking, move |_, may| match node.seek(offset, to, may) {
            Err(storage::Error::NotSupported) => {
                let size = node.attributes(Want::empty(), Wait::May(may))?.size;
                let found = if to == SeekTo::Data { offset } else { size };
                Ok((offset < size).then_some(found))
            }
            found => Ok(found?),
        })
        .await
    }

    /// Marks an open file as sparse, or clears the mark. The open must allow writing data or attributes.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`], the store's.
    pub async fn set_sparse(self: &Arc<Self>, call: &Call, open: &Arc<Open>, sparse: bool) -> Result<()> {
        self.check_writable(open.node().id())?;
        open.require_any(Access::WRITE_DATA | Access::APPEND_DATA | Access::WRITE_ATTRIBUTES)?;
        let open = Arc::clone(open);
        let _under_way = self.changes.work_begins();
        self.run(call, Work::Metadata, move |share, may| {
            let node = open.node();
            // A file without any flags counts as changed since the last backup.
            let before = node.attributes(Want::FLAGS, Wait::May(may))?.flags.unwrap_or(FileFlags::ARCHIVE);
            let mut flags = before;
            flags.set(FileFlags::SPARSE, sparse);
            if flags != before {
                node.set_attributes(&SetAttributes { flags: Some(flags), ..SetAttributes::default() }, may)?;
            }
            share.tell_modified(&File::Open(open), ChangeKinds::ATTRIBUTES, may);
            Ok(())
        })
        .await
    }

    /// The ranges that hold data within `length` bytes from `offset` of a file, at most `count_max` of them, and whether
    /// there are more. A store without holes has one range. Locks do not matter, since no data is read. Data that another
    /// client has not written yet is waited for.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] or [`Error::AccessDenied`] unless the file may be read, [`Error::SharingViolation`],
    /// [`Error::InvalidRange`], the store's.
    pub async fn data_ranges(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        length: u64,
        count_max: usize,
    ) -> Result<(Vec<ByteRange>, bool)> {
        self.check_any(call, file, Access::READ_DATA).await?;
        ByteRange::new(offset, length)?;
        self.bytes_settled(call, file, ByteRange::new(offset, 0)?, Operation::Read).await?;
        let node = Arc::clone(file.node());
        self.run(call, Work::Blocking, move |_, may| data_ranges_now(&node, offset, length, count_max, may))
            .await
    }

    /// Copies `length` bytes from one file of this share to another, or within one; all of them, or fails. The bytes count
    /// as read and as written, and wait for the budget. If the store cannot copy by itself, the bytes are held in memory:
    /// the caller limits `length`.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] or [`Error::AccessDenied`] unless the source may be read and the target written,
    /// [`Error::RangeLocked`], [`Error::InvalidRange`], [`storage::Error::InvalidArgument`] when the source ends before the
    /// range, the store's.
    pub async fn copy_range(
        self: &Arc<Self>,
        call: &Call,
        (from, offset): (&File, u64),
        (to, to_offset): (&File, u64),
        length: u64,
    ) -> Result<()> {
        self.check_writable(to.node().id())?;
        self.check_any(call, from, Access::READ_DATA | Access::EXECUTE).await?;
        self.check_any(call, to, Access::WRITE_DATA).await?;
        let paid = self.pay_for_copy(call, from, to, length).await;
        let outcome = self.copy_paid(call, (from, offset), (to, to_offset), length).await;
        if outcome.is_err() {
            paid.into_iter()
                .flatten()
                .for_each(|operation| self.budget.put_back(call, operation, usize::MAX));
        }
        outcome
    }

    /// Copies without regard to the budget.
    async fn copy_paid(
        self: &Arc<Self>,
        call: &Call,
        (from, offset): (&File, u64),
        (to, to_offset): (&File, u64),
        length: u64,
    ) -> Result<()> {
        let given = self.agreement.grants_given();
        self.copy_settled(call, (from, offset), (to, to_offset), length).await?;
        let (source, target) = (Arc::clone(from.node()), Arc::clone(to.node()));
        self.check_source(call, from, offset, length).await?;
        let _under_way = self.changes.work_begins();
        let _room = self.make_room(call, to, (to_offset, to_offset.saturating_add(length))).await?;
        self.run(call, Work::Blocking, move |_, may| {
            copy_now(&source, offset, &target, to_offset, length, may)
        })
        .await?;
        self.end_copy(call, to, given).await
    }

    /// Refuses a copy of more than the source has before quotas make room for it, which others may be waiting for.
    async fn check_source(
        self: &Arc<Self>,
        call: &Call,
        from: &File,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        if !self.quotas().is_on() {
            return Ok(());
        }
        let source = Arc::clone(from.node());
        self.consult(call, move |_, may| check_within(&source, offset, length, may)).await
    }

    /// Charges the bytes of a copy to the budget, as read and as written, one piece after the other so that other operations
    /// come in between. Returns what was charged, if there is a budget.
    async fn pay_for_copy(
        &self,
        call: &Call,
        from: &File,
        to: &File,
        length: u64,
    ) -> Option<[limits::Operation; 2]> {
        let of = |bytes| [budget::read(from.node(), bytes), budget::write(to.node(), bytes)];
        let mut left = length;
        while left > 0 && self.budget.is_paced() {
            let piece = left.min(PACED_PIECE);
            for operation in of(piece) {
                self.budget.pass(call, operation).await;
            }
            left -= piece;
        }
        (left < length).then(|| of(length - left))
    }

    /// Waits until the caches and locks of others allow this copy.
    async fn copy_settled(
        self: &Arc<Self>,
        call: &Call,
        (from, offset): (&File, u64),
        (to, to_offset): (&File, u64),
        length: u64,
    ) -> Result<()> {
        self.bytes_settled(call, from, ByteRange::new(offset, length)?, Operation::Read).await?;
        self.bytes_settled(call, to, ByteRange::new(to_offset, length)?, Operation::Write).await
    }

    /// Makes a range of one file share the blocks of a range of another file, or of the same one. The bytes count as read
    /// and as written after the clone, and this returns when the budget allows: a refusal by the store is reported at once.
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`] for ranges that the rule does not allow, and without
    /// [`storage::Capabilities::CLONE`]; [`Error::NotOpenedForThis`] or [`Error::AccessDenied`] unless the source may be
    /// read and the target written, [`Error::RangeLocked`], [`Error::InvalidRange`], [`storage::Error::InvalidArgument`] for
    /// ranges that are not whole blocks, and with [`CloneRule::Grows`] for ranges that overlap or end beyond the source; the
    /// store's.
    pub async fn clone_range(
        self: &Arc<Self>,
        call: &Call,
        (from, offset): (&File, u64),
        (to, to_offset): (&File, u64),
        length: u64,
        rule: CloneRule,
    ) -> Result<()> {
        self.check_writable(to.node().id())?;
        self.check_any(call, from, Access::READ_DATA).await?;
        self.check_any(call, to, Access::WRITE_DATA).await?;
        if length == 0 {
            return Ok(());
        }
        let given = self.agreement.grants_given();
        self.copy_settled(call, (from, offset), (to, to_offset), length).await?;
        let (source, target) = (Arc::clone(from.node()), Arc::clone(to.node()));
        if rule == CloneRule::Grows {
            self.check_source(call, from, offset, length).await?;
        }
        let _room = self.make_room(call, to, (to_offset, to_offset.saturating_add(length))).await?;
        let clone = move |_: &Arc<Self>, may: MayWait<'_>| {
            check_cloneable((&source, offset), (&target, to_offset), length, rule, may)?;
            Ok(source.clone_range(offset, &*target, to_offset, length, may)?)
        };
        let _under_way = self.changes.work_begins();
        self.run(call, Work::Blocking, clone).await?;
        self.end_copy(call, to, given).await?;
        self.pay_for_copy(call, from, to, length).await;
        Ok(())
    }

    /// Follows a replacement of bytes by the store itself.
    async fn end_copy(self: &Arc<Self>, call: &Call, to: &File, given: u64) -> Result<()> {
        if matches!(to, File::Open(open) if open.file().is_some()) {
            let node = Arc::clone(to.node());
            // The store does not know the stream's file.
            let set = SetAttributes { mtime: Some(SetTime::Now), ..SetAttributes::default() };
            self.consult(call, move |_, may| Ok(node.set_attributes(&set, may)?)).await?;
        }
        self.end_change(call, to, given).await
    }

    /// Follows a change of bytes of a file; `given` is [`Share::grants_given`] from before the check.
    async fn end_change(self: &Arc<Self>, call: &Call, file: &File, given: u64) -> Result<()> {
        let attributes = match file {
            File::Open(_) => None,
            File::Stateless(node) => {
                let node = Arc::clone(node);
                Some(
                    self.consult(call, move |_, may| Ok(node.attributes(Want::empty(), Wait::May(may))?))
                        .await?,
                )
            }
        };
        self.agreement.written_since(given, file);
        self.written(call, file, attributes).await
    }

    /// Waits until the caches of others allow these bytes to be written or read; refuses because of locks and opens of
    /// others.
    async fn bytes_settled(
        &self,
        call: &Call,
        file: &File,
        range: ByteRange,
        operation: Operation,
    ) -> Result<()> {
        self.agreement
            .settled(call, || {
                Ok(((), self.agreement.check_range(call.caller.client, file, range, operation)?))
            })
            .await
    }
}

fn check_cloneable(
    (source, offset): (&NodeRef, u64),
    (target, to_offset): (&NodeRef, u64),
    length: u64,
    rule: CloneRule,
    may: MayWait<'_>,
) -> Result<()> {
    let known = |node: &NodeRef| node.attributes(Want::FLAGS, Wait::May(may));
    let (of_source, of_target) = (known(source)?, known(target)?);
    let ends_within = |offset: u64, size: u64| offset.checked_add(length).is_some_and(|end| end <= size);
    let is_sparse = |of: &Attributes| of.flags.is_some_and(|flags| flags.contains(FileFlags::SPARSE));
    let overlaps = source.id() == target.id() && offset.abs_diff(to_offset) < length;
    let allowed = ends_within(offset, of_source.size) && !overlaps;
    match rule {
        CloneRule::Within => {
            let fits = ends_within(to_offset, of_target.size);
            let sparse = is_sparse(&of_source) && !is_sparse(&of_target);
            if allowed && fits && !sparse { Ok(()) } else { Err(storage::Error::NotSupported.into()) }
        }
        CloneRule::Grows if allowed => Ok(()),
        CloneRule::Grows => Err(storage::Error::InvalidArgument.into()),
    }
}

fn zero_now(node: &NodeRef, offset: u64, length: u64, may: MayWait<'_>) -> Result<()> {
    let size = node.attributes(Want::empty(), Wait::May(may))?.size;
    let end = offset.saturating_add(length).min(size);
    if offset >= end {
        return Ok(());
    }
    match node.punch_hole(offset, end - offset, may) {
        Err(storage::Error::NotSupported) => {}
        done => return Ok(done?),
    }
    let zeroes = vec![0; PIECE];
    let mut at = offset;
    while at < end {
        let piece = piece(&zeroes, end - at);
        let count = node.write(at, &[IoSlice::new(piece)], Stability::Unstable, Wait::May(may))?;
        at += count as u64;
    }
    Ok(())
}

/// The part of `bytes` that fits into `left`.
fn piece(bytes: &[u8], left: u64) -> &[u8] {
    usize::try_from(left).ok().and_then(|left| bytes.get(..left)).unwrap_or(bytes)
}

fn data_ranges_now(
    node: &NodeRef,
    offset: u64,
    length: u64,
    count_max: usize,
    may: MayWait<'_>,
) -> Result<(Vec<ByteRange>, bool)> {
    let size = node.attributes(Want::empty(), Wait::May(may))?.size;
    let end = offset.saturating_add(length).min(size);
    let mut ranges = Vec::new();
    let mut at = offset;
    while at < end {
        let (start, stop) = match node.seek(at, SeekTo::Data, may) {
            Err(storage::Error::NotSupported) => (at, end),
            Ok(Some(start)) if start < end => {
                (start, node.seek(start, SeekTo::Hole, may)?.unwrap_or(end).min(end))
            }
            Ok(_) => break,
            Err(e) => return Err(e.into()),
        };
        if ranges.len() >= count_max {
            return Ok((ranges, true));
        }
        ranges.push(ByteRange::new(start, stop.saturating_sub(start))?);
        // Always advance, even if the file changes meanwhile and the store's answers are inconsistent.
        at = stop.max(at + 1);
    }
    Ok((ranges, false))
}

/// Refuses a range that goes beyond the end of a file.
fn check_within(file: &NodeRef, offset: u64, length: u64, may: MayWait<'_>) -> Result<()> {
    let size = file.attributes(Want::empty(), Wait::May(may))?.size;
    let is_within = offset.checked_add(length).is_some_and(|end| end <= size);
    if is_within { Ok(()) } else { Err(storage::Error::InvalidArgument.into()) }
}

fn copy_now(
    source: &NodeRef,
    offset: u64,
    target: &NodeRef,
    to_offset: u64,
    length: u64,
    may: MayWait<'_>,
) -> Result<()> {
    check_within(source, offset, length, may)?;
    // Within one file the store may refuse overlapping ranges. The data is then copied through memory.
    let overlaps = source.id() == target.id() && offset.abs_diff(to_offset) < length;
    let mut done = 0;
    while done < length && !overlaps {
        match source.copy_range(offset + done, &**target, to_offset + done, length - done, may) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(storage::Error::NotSupported | storage::Error::CrossDevice) => break,
            Err(e) => return Err(e.into()),
        }
    }
    let mut rest = vec![0; usize::try_from(length - done).map_err(|_| Error::InvalidRange)?];
    let mut read = 0;
    while let Some(into) = rest.get_mut(read..).filter(|into| !into.is_empty()) {
        match source.read(offset + done + read as u64, into, Wait::May(may))? {
            0 => return Err(storage::Error::InvalidArgument.into()),
            count => read += count,
        }
    }
    let mut written = 0;
    while let Some(data) = rest.get(written..).filter(|data| !data.is_empty()) {
        let at = to_offset + done + written as u64;
        written += target.write(at, &[IoSlice::new(data)], Stability::Unstable, Wait::May(may))?;
    }
    Ok(())
}
