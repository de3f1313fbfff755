//! Extended attributes: those of clients, and the security descriptor.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use acl::SecurityDescriptor;
use rustix::io::Errno;
use storage::{Attributes, Error, FileKind, Result, StoredDescriptor, Want, XattrMode, check_xattr_name};

use crate::errno::from_errno;
use crate::inode::XATTR_BYTES_MAX;
use crate::node::CephNode;

/// The prefix of each name in the file system.
const PREFIX: &[u8] = b"user.";
/// Only programs with the rights of root can change it.
const DESCRIPTOR_XATTR: &CStr = c"trusted.anabranch.acl";

/// The name in the file system of an attribute that clients may use.
fn full_name(name: &[u8]) -> Result<CString> {
    check_xattr_name(name)?;
    CString::new([PREFIX, name].concat()).map_err(|_| Error::InvalidName)
}

impl CephNode {
    pub(crate) fn carries_xattrs(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::Directory)
    }

    pub(crate) fn check_carries_xattrs(&self) -> Result<()> {
        if self.carries_xattrs() { Ok(()) } else { Err(Error::WrongKind) }
    }

    pub(crate) fn read_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.check_carries_xattrs()?;
        // The server's own attributes do not exist for clients.
        let Ok(name) = full_name(name) else { return Err(Error::NoAttribute) };
        self.inode.xattr(&name).map_err(from_errno)
    }

    pub(crate) fn list_xattrs(&self) -> Result<Vec<Vec<u8>>> {
        self.check_carries_xattrs()?;
        let list = self.inode.xattrs().map_err(from_errno)?;
        let names = list.split(|b| *b == 0).filter_map(|name| name.strip_prefix(PREFIX));
        Ok(names.filter(|name| check_xattr_name(name).is_ok()).map(<[u8]>::to_vec).collect())
    }

    pub(crate) fn write_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let name = full_name(name)?;
        self.check_carries_xattrs()?;
        if value.len() > XATTR_BYTES_MAX {
            return Err(Error::AttributeTooLarge);
        }
        let flags = match mode {
            XattrMode::Set => 0,
            XattrMode::Create => libc::XATTR_CREATE,
            XattrMode::Replace => libc::XATTR_REPLACE,
        };
        self.inode.set_xattr(&name, value, flags).map_err(from_errno)?;
        self.store.changes.tell_itself(self.id);
        Ok(())
    }

    pub(crate) fn delete_xattr(&self, name: &[u8]) -> Result<()> {
        self.check_carries_xattrs()?;
        let Ok(name) = full_name(name) else { return Err(Error::NoAttribute) };
        self.inode.remove_xattr(&name).map_err(from_errno)?;
        self.store.changes.tell_itself(self.id);
        Ok(())
    }

    /// The descriptor that is stored with an object with these attributes, if it is still in force.
    pub(crate) fn descriptor(&self, attributes: &Attributes) -> Result<Option<Arc<SecurityDescriptor>>> {
        if !self.carries_xattrs() {
            return Ok(None);
        }
        Ok(self.stored_descriptor()?.and_then(|stored| stored.in_force(attributes)))
    }

    fn stored_descriptor(&self) -> Result<Option<StoredDescriptor>> {
        match self.inode.xattr(DESCRIPTOR_XATTR) {
            Ok(value) => Ok(StoredDescriptor::decode(&value)),
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Stores a descriptor that is in force for the object with this mode and these owners. Whoever sets those next has it on stable
    /// storage.
    pub(crate) fn prepare_descriptor(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
    ) -> Result<Attributes> {
        self.check_carries_xattrs()?;
        let _changing = self.changing.lock();
        let attributes = self.attributes_now(Want::empty())?;
        let present = self.stored_descriptor()?;
        let value = StoredDescriptor::prepared(terms, descriptor, present.as_ref(), &attributes).encode()?;
        self.inode.set_xattr(DESCRIPTOR_XATTR, &value, 0).map_err(from_errno)?;
        self.store.changes.tell_itself(self.id);
        self.attributes_now(Want::all())
    }

    /// Stores a descriptor for the object's present permission bits and owners; None: removes it. It is on stable storage then.
    pub(crate) fn store_descriptor(&self, descriptor: Option<SecurityDescriptor>) -> Result<Attributes> {
        self.check_carries_xattrs()?;
        let _changing = self.changing.lock();
        let attributes = self.attributes_now(Want::empty())?;
        match descriptor {
            Some(descriptor) => {
                let value = StoredDescriptor::of(&attributes, descriptor).encode()?;
                self.inode.set_xattr(DESCRIPTOR_XATTR, &value, 0).map_err(from_errno)?;
            }
            None => match self.inode.remove_xattr(DESCRIPTOR_XATTR) {
                Ok(()) => {}
                Err(Errno::NODATA) => return self.attributes_now(Want::all()),
                Err(errno) => return Err(from_errno(errno)),
            },
        }
        self.store.changes.tell_itself(self.id);
        self.inode.sync().map_err(from_errno)?;
        self.attributes_now(Want::all())
    }
}
