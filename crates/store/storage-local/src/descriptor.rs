//! The security descriptor of an object, in one extended attribute.
//!
//! The value begins with a version, and with the permission bits and owners that the object had when the descriptor was
//! stored. When a local program (chmod, chown, or another server) changes these, the descriptor is no longer in force.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acl::SecurityDescriptor;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use storage::{Attributes, DESCRIPTOR_BYTES_MAX, Error, Result, StoredDescriptor, Timestamp};

use crate::attributes::{ctime_of, is_settled, stat};
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Reach;

/// Used where the server is privileged: then nobody else can change it (xattr(7), "Trusted extended attributes").
pub(crate) const TRUSTED_XATTR: &str = "trusted.anabranch.acl";
/// Used elsewhere: there all files belong to the server's own account.
pub(crate) const USER_XATTR: &str = "user.anabranch.acl";
/// Most descriptors are shorter than this.
const BYTES_USUAL: usize = 1024;

/// How long a descriptor that was read is trusted although the object has changed since: nearly all changes are of
/// other things. A descriptor stored behind this store's back (by another store on the same directory) is noticed that
/// much later.
const BELIEVED_FOR: Duration = Duration::from_millis(100);

/// The stored descriptor as last read. It is valid until the object's change time moves, and for a moment in any case.
#[derive(Debug, Clone)]
pub(crate) struct KnownDescriptor {
    stored: Option<StoredDescriptor>,
    /// None: read within a tick of the last change, so another change may have the same time.
    as_of: Option<Timestamp>,
    read: Instant,
}

impl KnownDescriptor {
    /// For a new object, which has no descriptor, if it was not changed since then.
    pub(crate) fn none(ctime: Option<Timestamp>) -> Self {
        Self { stored: None, as_of: ctime, read: Instant::now() }
    }

    /// Whether this is still what is stored with the object, which was last changed at `ctime`.
    fn holds(&self, ctime: Timestamp) -> bool {
        self.as_of == Some(ctime) || self.read.elapsed() < BELIEVED_FOR
    }
}

impl LocalNode {
    /// The descriptor that is stored with an object with these attributes, if it is still in force.
    pub(crate) fn descriptor(
        &self,
        attributes: &Attributes,
        reach: Reach,
    ) -> Result<Option<Arc<SecurityDescriptor>>> {
        if !self.carries_dos() {
            return Ok(None);
        }
        let in_force = |stored: &Option<StoredDescriptor>| {
            stored.as_ref().and_then(|stored| stored.in_force(attributes))
        };
        // The lock is held while the value is read, so that a descriptor that is stored meanwhile is not overwritten
        // here.
        let mut known = self.security.lock();
        match &*known {
            Some(known) if known.holds(attributes.ctime) => return Ok(in_force(&known.stored)),
            // The value lies beside the inode, which has just been changed, so it is in memory.
            Some(_) => {}
            None if reach == Reach::Device || self.store.is_in_memory => {}
            None => return Err(Error::WouldBlock),
        }
        let stored = self.read_descriptor()?;
        let found = in_force(&stored);
        let as_of = is_settled(attributes.ctime).then_some(attributes.ctime);
        *known = Some(KnownDescriptor { stored, as_of, read: Instant::now() });
        Ok(found)
    }

    fn read_descriptor(&self) -> Result<Option<StoredDescriptor>> {
        let name = self.store.descriptor_xattr;
        let mut bytes = [0; BYTES_USUAL];
        match self.fetch_xattr(name, &mut bytes) {
            Ok(count) => Ok(bytes.get(..count).and_then(StoredDescriptor::decode)),
            Err(Errno::RANGE) => {
                let mut bytes = vec![0; DESCRIPTOR_BYTES_MAX];
                let count = self.fetch_xattr(name, &mut bytes).map_err(from_errno)?;
                Ok(bytes.get(..count).and_then(StoredDescriptor::decode))
            }
            // ACCESS: a server without privileges, and a file that it may not read.
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Stores a descriptor for the object's present permission bits and owners; None: removes it.
    pub(crate) fn store_descriptor(&self, descriptor: Option<SecurityDescriptor>) -> Result<Attributes> {
        self.check_carries_xattrs()?;
        // The lock is held throughout: of two concurrent changes, one takes effect.
        let mut known = self.security.lock();
        let attributes = self.attributes_now(storage::Want::empty(), Reach::Device)?;
        let stored = descriptor.map(|d| StoredDescriptor::of(&attributes, d));
        self.replace_descriptor(stored, &mut known)
    }

    /// Stores a descriptor that is in force for the object with this mode and these owners.
    pub(crate) fn prepare_descriptor(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
    ) -> Result<Attributes> {
        self.check_carries_xattrs()?;
        let mut known = self.security.lock();
        let attributes = self.attributes_now(storage::Want::empty(), Reach::Device)?;
        let present = match &*known {
            Some(known) if known.holds(attributes.ctime) => known.stored.clone(),
            _ => self.read_descriptor()?,
        };
        let stored = StoredDescriptor::prepared(terms, descriptor, present.as_ref(), &attributes);
        self.replace_descriptor(Some(stored), &mut known)
    }

    fn replace_descriptor(
        &self,
        stored: Option<StoredDescriptor>,
        known: &mut Option<KnownDescriptor>,
    ) -> Result<Attributes> {
        let name = self.store.descriptor_xattr;
        match &stored {
            Some(stored) => {
                self.put_xattr(name, &stored.encode()?, XattrFlags::empty()).map_err(from_errno)?;
            }
            None => match self.drop_xattr(name) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(from_errno(errno)),
            },
        }
        let as_of = Some(ctime_of(&stat(&self.fd)?));
        *known = Some(KnownDescriptor { stored, as_of, read: Instant::now() });
        self.attributes_now(storage::Want::all(), Reach::Device)
    }
}
