//! Extended attributes of the `user.` name space.

use rustix::buffer::spare_capacity;
use rustix::fs::{
    XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr, removexattr, setxattr,
};
use rustix::io::{self, Errno};
use rustix::path::DecInt;
use storage::{Capabilities, Error, FileKind, Result, XattrMode, check_xattr_name};

use crate::errno::from_errno;
use crate::node::LocalNode;

/// The prefix of each name on disk.
const PREFIX: &[u8] = b"user.";
/// The attribute with the server's own note.
const NOTE: &str = "user.anabranch.note";
/// The longest note, in bytes.
const NOTE_BYTES_MAX: usize = 256;
/// The longest value and the longest list, in bytes (xattr(7)).
const XATTR_BYTES_MAX: usize = 65_536;

/// The name on disk of an attribute that clients may use.
fn disk_name(name: &[u8]) -> Result<Vec<u8>> {
    check_xattr_name(name)?;
    Ok([PREFIX, name].concat())
}

impl LocalNode {
    /// The kernel stores `user.` attributes only with files and directories (xattr(7)).
    pub(crate) fn check_carries_xattrs(&self) -> Result<()> {
        match self.kind {
            FileKind::Regular | FileKind::Directory
                if self.store.capabilities.contains(Capabilities::XATTRS) =>
            {
                Ok(())
            }
            FileKind::Regular | FileKind::Directory => Err(Error::NotSupported),
            _ => Err(Error::WrongKind),
        }
    }

    /// A path that leads to this object, even when it has no other: only for files and directories, whose names in
    /// /proc the kernel resolves to the object itself.
    fn proc_path(&self) -> Vec<u8> {
        [b"/proc/self/fd/", DecInt::from_fd(&self.fd).as_bytes()].concat()
    }

    pub(crate) fn fetch_xattr(
        &self,
        disk_name: impl rustix::path::Arg,
        into: &mut [u8],
    ) -> io::Result<usize> {
        match self.open_descriptor() {
            Some(fd) => fgetxattr(fd, disk_name, into),
            None => getxattr(self.proc_path(), disk_name, into),
        }
    }

    pub(crate) fn put_xattr(
        &self,
        disk_name: impl rustix::path::Arg,
        value: &[u8],
        flags: XattrFlags,
    ) -> io::Result<()> {
        match self.open_descriptor() {
            Some(fd) => fsetxattr(fd, disk_name, value, flags),
            None => setxattr(self.proc_path(), disk_name, value, flags),
        }
    }

    pub(crate) fn drop_xattr(&self, disk_name: impl rustix::path::Arg) -> io::Result<()> {
        match self.open_descriptor() {
            Some(fd) => fremovexattr(fd, disk_name),
            None => removexattr(self.proc_path(), disk_name),
        }
    }

    pub(crate) fn read_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.check_carries_xattrs()?;
        // The server's own attributes do not exist for clients.
        let Ok(disk_name) = disk_name(name) else { return Err(Error::NoAttribute) };
        let mut value = vec![0; 1024];
        let count = match self.fetch_xattr(disk_name.as_slice(), &mut value) {
            Err(Errno::RANGE) => {
                value.resize(XATTR_BYTES_MAX, 0);
                self.fetch_xattr(disk_name.as_slice(), &mut value)
            }
            other => other,
        };
        value.truncate(count.map_err(from_errno)?);
        Ok(value)
    }

    pub(crate) fn list_xattrs(&self) -> Result<Vec<Vec<u8>>> {
        self.check_carries_xattrs()?;
        let mut list = Vec::with_capacity(XATTR_BYTES_MAX);
        match self.open_descriptor() {
            Some(fd) => flistxattr(fd, spare_capacity(&mut list)),
            None => listxattr(self.proc_path(), spare_capacity(&mut list)),
        }
        .map_err(from_errno)?;
        let names = list.split(|b| *b == 0).filter_map(|name| name.strip_prefix(PREFIX));
        Ok(names.filter(|name| check_xattr_name(name).is_ok()).map(<[u8]>::to_vec).collect())
    }

    pub(crate) fn write_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let disk_name = disk_name(name)?;
        self.check_carries_xattrs()?;
        let flags = match mode {
            XattrMode::Set => XattrFlags::empty(),
            XattrMode::Create => XattrFlags::CREATE,
            XattrMode::Replace => XattrFlags::REPLACE,
        };
        self.put_xattr(disk_name.as_slice(), value, flags).map_err(from_errno)
    }

    pub(crate) fn delete_xattr(&self, name: &[u8]) -> Result<()> {
        self.check_carries_xattrs()?;
        let Ok(disk_name) = disk_name(name) else { return Err(Error::NoAttribute) };
        self.drop_xattr(disk_name.as_slice()).map_err(from_errno)
    }

    pub(crate) fn read_note(&self) -> Result<Option<Vec<u8>>> {
        self.check_carries_xattrs()?;
        let mut value = vec![0; NOTE_BYTES_MAX];
        match self.fetch_xattr(NOTE, &mut value) {
            Ok(count) => {
                value.truncate(count);
                Ok(Some(value))
            }
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    pub(crate) fn write_note(&self, note: Option<&[u8]>) -> Result<()> {
        self.check_carries_xattrs()?;
        match note {
            Some(note) if note.len() > NOTE_BYTES_MAX => Err(Error::AttributeTooLarge),
            Some(note) => self.put_xattr(NOTE, note, XattrFlags::empty()).map_err(from_errno),
            None => match self.drop_xattr(NOTE) {
                Ok(()) | Err(Errno::NODATA) => Ok(()),
                Err(errno) => Err(from_errno(errno)),
            },
        }
    }
}
