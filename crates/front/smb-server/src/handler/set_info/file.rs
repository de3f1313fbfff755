//! Times, attributes, sizes, position, mode. [MS-SMB2] 3.3.5.21.1, [MS-FSA] 2.1.5.15.

use std::sync::Arc;

use share::File;
use smb_wire::create::CreateOptions;
use smb_wire::fscc::FileAttributes;
use smb_wire::fscc::file_info::{Allocation, Basic, EndOfFile, Mode, Position, ValidDataLength};
use smb_wire::{AccessMask, FileTime, NtStatus};
use storage::{Attributes, Capabilities, FileFlags, FileKind, SetAttributes, SetTime, Want};

use super::{length_mismatch, require};
use crate::attributes;
use crate::context::OnShare;
use crate::extended_attributes;
use crate::state::open::{FrozenTimes, Open};
use crate::status::Failure;

/// The bits that FileModeInformation can set ([MS-FSA] 2.1.5.15.8).
const MODE_VALID: CreateOptions = CreateOptions::WRITE_THROUGH
    .union(CreateOptions::SEQUENTIAL_ONLY)
    .union(CreateOptions::NO_INTERMEDIATE_BUFFERING)
    .union(SYNCHRONOUS);
const SYNCHRONOUS: CreateOptions =
    CreateOptions::SYNCHRONOUS_IO_ALERT.union(CreateOptions::SYNCHRONOUS_IO_NONALERT);

/// Offsets and sizes are signed numbers in Windows.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// FileBasicInformation. [MS-FSA] 2.1.5.15.2.
pub(super) async fn basic(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let basic = Basic::decode(buffer).map_err(length_mismatch)?;
    require(open, AccessMask::WRITE_ATTRIBUTES)?;
    check_basic(&basic, open.is_directory)?;
    let file = File::Open(Arc::clone(open.file()?));
    let before = ctx.share.attributes(ctx.call, file.node(), Want::FLAGS).await?;
    let mut frozen = frozen(open.state.lock().frozen, &basic, &before);
    if !ctx.share.capabilities().contains(Capabilities::XATTRS) {
        frozen.change = None; // the store keeps only its own change time
    }
    // Nothing is kept of these for a link, and clients set them as if it were a file, for example before they delete it.
    let is_link = before.kind == FileKind::Symlink;
    let mut set = SetAttributes {
        btime: explicit(basic.creation_time).map(attributes::timestamp).filter(|_| !is_link),
        atime: explicit(basic.last_access_time).map(|time| SetTime::To(attributes::timestamp(time))),
        mtime: explicit(basic.last_write_time).map(|time| SetTime::To(attributes::timestamp(time))),
        flags: flags(basic.file_attributes, &before).filter(|_| !is_link),
        ..SetAttributes::default()
    };
    if set != SetAttributes::default() || explicit(basic.change_time).is_some() {
        set.ctime = frozen.change.map(attributes::timestamp);
        ctx.share.set_attributes(ctx.call, &file, &set, None).await?;
    }
    open.state.lock().frozen = frozen;
    Ok(())
}

fn check_basic(basic: &Basic, is_directory: bool) -> Result<(), NtStatus> {
    let times = [basic.creation_time, basic.last_access_time, basic.last_write_time, basic.change_time];
    let senseless = if is_directory { FileAttributes::TEMPORARY } else { FileAttributes::DIRECTORY };
    if times.iter().any(|time| !is_valid(*time)) || basic.file_attributes.contains(senseless) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

/// Whether the value is a time or one of the special values. All other negative values are invalid.
fn is_valid(time: FileTime) -> bool {
    time <= FileTime::MAX || time == FileTime::SUSPEND_UPDATES || time == FileTime::RESUME_UPDATES
}

/// The time, unless the value is a special one.
fn explicit(time: FileTime) -> Option<FileTime> {
    (time != FileTime::UNSET && time <= FileTime::MAX).then_some(time)
}

/// The times that operations on the open no longer change: times that the client has set, or has asked to leave alone,
/// until it asks to change them again ([MS-FSA]: Open.UserSetModificationTime and its neighbours).
fn frozen(now: FrozenTimes, basic: &Basic, before: &Attributes) -> FrozenTimes {
    let next = |now: Option<FileTime>, wanted: FileTime, current: FileTime| match wanted {
        FileTime::UNSET => now,
        FileTime::SUSPEND_UPDATES => now.or(Some(current)),
        FileTime::RESUME_UPDATES => None,
        time => Some(time),
    };
    FrozenTimes {
        access: next(now.access, basic.last_access_time, attributes::file_time(before.atime)),
        write: next(now.write, basic.last_write_time, attributes::file_time(before.mtime)),
        change: next(now.change, basic.change_time, attributes::change_time(before)),
    }
}

/// The flags to store; None when they stay the same. They do not say whether a file is sparse.
fn flags(wanted: FileAttributes, before: &Attributes) -> Option<FileFlags> {
    if wanted.is_empty() {
        return None;
    }
    let now = attributes::flags(before);
    let wanted = attributes::file_flags(wanted) | (now & FileFlags::SPARSE);
    (wanted != now).then_some(wanted)
}

/// FileEndOfFileInformation. [MS-FSA] 2.1.5.15.4.
pub(super) async fn end_of_file(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let EndOfFile { end_of_file } = EndOfFile::decode(buffer).map_err(length_mismatch)?;
    require(open, AccessMask::WRITE_DATA)?;
    check_size(open, end_of_file)?;
    resize(ctx, open, end_of_file).await
}

/// FileAllocationInformation: a value below the file's size truncates the file. [MS-FSA] 2.1.5.15.1.
pub(super) async fn allocation(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let Allocation { allocation_size } = Allocation::decode(buffer).map_err(length_mismatch)?;
    require(open, AccessMask::WRITE_DATA)?;
    check_size(open, allocation_size)?;
    let (share, file) = (ctx.share, open.file()?);
    let now = share.attributes(ctx.call, file.node(), Want::empty()).await?;
    if allocation_size < now.size {
        resize(ctx, open, allocation_size).await
    } else if allocation_size > now.allocated {
        Ok(share.allocate(ctx.call, file, allocation_size).await?)
    } else {
        Ok(())
    }
}

fn check_size(open: &Open, size: u64) -> Result<(), NtStatus> {
    if open.is_directory || size > OFFSET_MAX { Err(NtStatus::INVALID_PARAMETER) } else { Ok(()) }
}

/// Gives the file a length. It counts as a write, even when the length is the same.
async fn resize(ctx: &OnShare<'_>, open: &Open, size: u64) -> Result<(), Failure> {
    let frozen = open.state.lock().frozen;
    let mtime = frozen.write.map_or(SetTime::Now, |time| SetTime::To(attributes::timestamp(time)));
    let ctime = frozen.change.map(attributes::timestamp);
    let set = SetAttributes { size: Some(size), mtime: Some(mtime), ctime, ..SetAttributes::default() };
    let file = File::Open(Arc::clone(open.file()?));
    ctx.share.set_attributes(ctx.call, &file, &set, None).await?;
    Ok(())
}

/// FileValidDataLengthInformation: needs a privilege that is not granted over the network, since it would reveal old
/// contents of the disk. [MS-FSA] 2.1.5.15.14.
pub(super) fn valid_data_length(open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    ValidDataLength::decode(buffer).map_err(length_mismatch)?;
    require(open, AccessMask::WRITE_DATA)?;
    Err(NtStatus::PRIVILEGE_NOT_HELD.into())
}

/// FileFullEaInformation. [MS-FSA] 2.1.5.15.5.
pub(super) async fn extended_attributes(
    ctx: &OnShare<'_>,
    open: &Open,
    buffer: &[u8],
) -> Result<(), Failure> {
    require(open, AccessMask::WRITE_EA)?;
    let changes = extended_attributes::decode(buffer)?;
    let file = File::Open(Arc::clone(open.file()?));
    Ok(ctx.share.set_extended_attributes(ctx.call, &file, changes).await?)
}

/// FilePositionInformation. [MS-FSA] 2.1.5.15.9.
pub(super) fn position(open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let Position { current_byte_offset } = Position::decode(buffer).map_err(length_mismatch)?;
    if current_byte_offset > OFFSET_MAX {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    open.state.lock().position = current_byte_offset;
    Ok(())
}

/// FileModeInformation: an open cannot change between synchronous and asynchronous. [MS-FSA] 2.1.5.15.8.
pub(super) fn mode(open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let Mode { mode } = Mode::decode(buffer).map_err(length_mismatch)?;
    let wanted = CreateOptions::from_bits_retain(mode);
    let waits = |mode: CreateOptions| mode.intersects(SYNCHRONOUS);
    if !MODE_VALID.contains(wanted)
        || wanted.contains(SYNCHRONOUS)
        || waits(wanted) != waits(open.create_options)
    {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    open.state.lock().mode = Some(mode);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{Device, ObjectId, Timestamp};

    fn object(flags: Option<FileFlags>) -> Attributes {
        let time = Timestamp { secs: 100, nanos: 0 };
        Attributes {
            id: ObjectId::live(1),
            kind: FileKind::Regular,
            mode: 0o644,
            links: 1,
            uid: 0,
            gid: 0,
            device: Device::default(),
            size: 0,
            allocated: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: None,
            flags,
            ctime_set: None,
            changes_within_ctime: 0,
        }
    }

    const UNCHANGED: Basic = Basic {
        creation_time: FileTime::UNSET,
        last_access_time: FileTime::UNSET,
        last_write_time: FileTime::UNSET,
        change_time: FileTime::UNSET,
        file_attributes: FileAttributes::empty(),
    };

    #[test]
    fn flags_are_stored_when_they_change() {
        let file = object(None);
        assert_eq!(flags(FileAttributes::empty(), &file), None);
        assert_eq!(flags(FileAttributes::ARCHIVE, &file), None, "the default");
        assert_eq!(flags(FileAttributes::NORMAL, &file), Some(FileFlags::empty()));
        let sparse = object(Some(FileFlags::SPARSE | FileFlags::HIDDEN));
        assert_eq!(flags(FileAttributes::READONLY, &sparse), Some(FileFlags::SPARSE | FileFlags::READONLY));
    }

    #[test]
    fn times_are_frozen_until_thawed() {
        let file = object(None);
        let write = |time| Basic { last_write_time: time, ..UNCHANGED };
        let start = FrozenTimes::default();
        let frozen_at = |now, time| frozen(now, &write(time), &file).write;
        assert_eq!(frozen_at(start, FileTime::UNSET), None);
        let suspended = frozen(start, &write(FileTime::SUSPEND_UPDATES), &file);
        assert_eq!(suspended.write, Some(FileTime::from_unix(100, 0)));
        assert_eq!(suspended.access, None);
        assert_eq!(frozen_at(suspended, FileTime(7)), Some(FileTime(7)));
        assert_eq!(frozen_at(suspended, FileTime::UNSET), suspended.write);
        assert_eq!(frozen_at(suspended, FileTime::RESUME_UPDATES), None);
    }

    #[test]
    fn times_below_minus_two_are_refused() {
        for (time, ok) in [(0, true), (1 << 62, true), (u64::MAX, true), (u64::MAX - 1, true)] {
            assert_eq!(is_valid(FileTime(time)), ok);
        }
        assert!(!is_valid(FileTime(u64::MAX - 2)) && !is_valid(FileTime(1 << 63)));
        let directory = Basic { file_attributes: FileAttributes::DIRECTORY, ..UNCHANGED };
        assert_eq!(check_basic(&directory, false), Err(NtStatus::INVALID_PARAMETER));
        assert_eq!(check_basic(&directory, true), Ok(()));
    }
}
