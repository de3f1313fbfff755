//! What the kernel asks, done at once and answered when it is due.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, SeekFrom};

use crate::Delays;
use crate::below::{Below, Changes, Entry, Listed, Maker, Room, read, write};
use crate::due::Due;

/// The longest read and write, in bytes.
const BLOCK_MAX: u32 = 1 << 20;
/// What an open file is: read and written past the page cache, by several at a time.
const PAST_THE_CACHE: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
/// Extended attributes that the kernel itself asks for while it checks permissions.
const ASKED_BY_KERNEL: [&[u8]; 2] = [b"security.", b"system.posix_acl_"];
/// What is said of the root holds for so long: each walk of a path begins there.
const ROOT_HOLDS: Duration = Duration::from_secs(1);
/// lseek(2).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// A directory whose answers take their time.
#[derive(Debug)]
pub(crate) struct Slow {
    below: Below,
    delays: Delays,
    due: Due,
}

impl Slow {
    pub(crate) fn over(source: &Path, delays: Delays) -> io::Result<Self> {
        Ok(Self { below: Below::over(source)?, delays, due: Due::start()? })
    }

    /// Answers what has come at `begun` with a delay.
    fn after(&self, begun: Instant, delay: Duration, answer: impl FnOnce() + Send + 'static) {
        self.due.at(begun + delay, answer);
    }

    fn done(&self, begun: Instant, delay: Duration, result: io::Result<()>, reply: ReplyEmpty) {
        self.after(begun, delay, move || match result {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e.into()),
        });
    }

    /// What is said of an object holds for as long as it took to say it.
    fn entry(&self, begun: Instant, found: io::Result<Entry>, reply: ReplyEntry) {
        let holds = self.delays.metadata;
        self.after(begun, holds, move || match found {
            Ok((attributes, generation)) => reply.entry(&holds, &attributes, Generation(generation)),
            Err(e) => reply.error(e.into()),
        });
    }

    fn attributes(&self, begun: Instant, found: io::Result<fuser::FileAttr>, reply: ReplyAttr) {
        let delay = self.delays.metadata;
        self.after(begun, delay, move || match found {
            Ok(attributes) if attributes.ino == INodeNo::ROOT => reply.attr(&ROOT_HOLDS, &attributes),
            Ok(attributes) => reply.attr(&delay, &attributes),
            Err(e) => reply.error(e.into()),
        });
    }

    fn xattr(
        &self,
        begun: Instant,
        delay: Duration,
        found: io::Result<(usize, Vec<u8>)>,
        room: u32,
        reply: ReplyXattr,
    ) {
        self.after(begun, delay, move || match found {
            Ok((length, _)) if room == 0 => reply.size(u32::try_from(length).unwrap_or(u32::MAX)),
            Ok((_, value)) => reply.data(&value),
            Err(e) => reply.error(e.into()),
        });
    }
}

/// Who asks, and the permissions of what is made.
fn maker(request: &Request, mode: u32, umask: u32) -> Maker {
    Maker { uid: request.uid(), gid: request.gid(), mode, umask }
}

impl Filesystem for Slow {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let needed = InitFlags::FUSE_EXPORT_SUPPORT
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_POSIX_ACL
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_ASYNC_DIO;
        config.add_capabilities(needed).map_err(|lacks| {
            io::Error::new(io::ErrorKind::Unsupported, format!("the kernel's FUSE lacks {lacks:?}"))
        })?;
        let refused = |_| io::Error::from(io::ErrorKind::Unsupported);
        config.set_max_write(BLOCK_MAX).map_err(refused)?;
        config.set_max_background(u16::MAX).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let begun = Instant::now();
        self.entry(begun, self.below.lookup(parent.0, name), reply);
    }

    fn forget(&self, _request: &Request, ino: INodeNo, nlookup: u64) {
        self.below.forget(ino.0, nlookup);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let begun = Instant::now();
        self.attributes(begun, self.below.attributes(ino.0), reply);
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        changed: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let begun = Instant::now();
        let changes = Changes { mode, uid, gid, size, accessed, changed };
        self.attributes(begun, self.below.change(ino.0, &changes), reply);
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let (begun, target) = (Instant::now(), self.below.target(ino.0));
        self.after(begun, self.delays.metadata, move || match target {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(e.into()),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (begun, by) = (Instant::now(), maker(request, mode, umask));
        self.entry(begun, self.below.make(parent.0, name, rdev, by), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (begun, by) = (Instant::now(), maker(request, mode, umask));
        self.entry(begun, self.below.make_directory(parent.0, name, by), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (begun, by) = (Instant::now(), maker(request, 0o777, 0));
        self.entry(begun, self.below.make_link(parent.0, name, target, by), reply);
    }

    fn link(&self, _request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let begun = Instant::now();
        self.entry(begun, self.below.link(ino.0, parent.0, name), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let begun = Instant::now();
        self.done(begun, self.delays.metadata, self.below.remove(parent.0, name, false), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let begun = Instant::now();
        self.done(begun, self.delays.metadata, self.below.remove(parent.0, name, true), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        to_parent: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let begun = Instant::now();
        let renamed = self.below.rename((parent.0, name), (to_parent.0, to_name), flags.bits());
        self.done(begun, self.delays.metadata, renamed, reply);
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.below.open(ino.0, flags.0) {
            Ok(number) => reply.opened(FileHandle(number), PAST_THE_CACHE),
            Err(e) => reply.error(e.into()),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (begun, by, holds) = (Instant::now(), maker(request, mode, umask), self.delays.metadata);
        let created = self.below.create(parent.0, name, flags, by);
        self.after(begun, holds, move || match created {
            Ok(((attributes, generation), number)) => {
                let generation = Generation(generation);
                reply.created(&holds, &attributes, generation, FileHandle(number), PAST_THE_CACHE);
            }
            Err(e) => reply.error(e.into()),
        });
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let begun = Instant::now();
        let data = self.below.opens.find(fh.0).and_then(|open| read(open.file()?, offset, size));
        self.after(begun, self.delays.data, move || match data {
            Ok(data) => reply.data(&data),
            Err(e) => reply.error(e.into()),
        });
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let begun = Instant::now();
        let ends_set_id = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let written =
            self.below.opens.find(fh.0).and_then(|open| write(open.file()?, data, offset, ends_set_id));
        self.after(begun, self.delays.data, move || match written {
            Ok(written) => reply.written(u32::try_from(written).unwrap_or(u32::MAX)),
            Err(e) => reply.error(e.into()),
        });
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.below.opens.close(fh.0);
        reply.ok();
    }

    fn fsync(&self, _request: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        let begun = Instant::now();
        let synced = self.below.opens.find(fh.0).and_then(|open| {
            let file = open.file()?;
            if datasync { file.sync_data() } else { file.sync_all() }
        });
        self.done(begun, self.delays.data, synced, reply);
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.below.open_directory(ino.0) {
            Ok(number) => reply.opened(FileHandle(number), FopenFlags::empty()),
            Err(e) => reply.error(e.into()),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let begun = Instant::now();
        let listed = self.below.list(fh.0, offset, |Listed { name, number, kind, next }| {
            if reply.add(INodeNo(number), next, kind, name) { Room::None } else { Room::Left }
        });
        self.after(begun, self.delays.metadata, move || match listed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e.into()),
        });
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.below.opens.close(fh.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let begun = Instant::now();
        self.done(begun, self.delays.data, self.below.sync_directory(fh.0), reply);
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let (begun, space) = (Instant::now(), self.below.space());
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        self.after(begun, self.delays.metadata, move || match space {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                narrow(s.f_bsize),
                narrow(s.f_namemax),
                narrow(s.f_frsize),
            ),
            Err(e) => reply.error(e.into()),
        });
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let begun = Instant::now();
        self.done(begun, self.delays.metadata, self.below.set_xattr(ino.0, name, value, flags), reply);
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let begun = Instant::now();
        let is_asked_by_kernel =
            ASKED_BY_KERNEL.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix));
        let delay = if is_asked_by_kernel { Duration::ZERO } else { self.delays.metadata };
        self.xattr(begun, delay, self.below.xattr(ino.0, name, size), size, reply);
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let begun = Instant::now();
        self.xattr(begun, self.delays.metadata, self.below.xattr_names(ino.0, size), size, reply);
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let begun = Instant::now();
        self.done(begun, self.delays.metadata, self.below.remove_xattr(ino.0, name), reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let begun = Instant::now();
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let reserved = self
            .below
            .opens
            .find(fh.0)
            .and_then(|open| Ok(rustix::fs::fallocate(open.file()?, flags, offset, length)?));
        self.done(begun, self.delays.metadata, reserved, reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let begun = Instant::now();
        let from = match whence {
            SEEK_DATA => SeekFrom::Data(offset.unsigned_abs()),
            SEEK_HOLE => SeekFrom::Hole(offset.unsigned_abs()),
            _ => return reply.error(Errno::EINVAL),
        };
        let found = self.below.opens.find(fh.0).and_then(|open| Ok(rustix::fs::seek(open.file()?, from)?));
        self.after(begun, self.delays.metadata, move || match found {
            Ok(place) => reply.offset(i64::try_from(place).unwrap_or(i64::MAX)),
            Err(e) => reply.error(e.into()),
        });
    }
}
