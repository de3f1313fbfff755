//! What SMB clients store with an object: DOS flags, a birth time and a change time, in one extended attribute.

use std::time::SystemTime;

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use storage::{Capabilities, DOS_BYTES_MAX, Error, FileKind, Result, SetAttributes, StoredDos, Timestamp};

use crate::attributes::{ctime_of, is_settled, stat};
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Reach;

/// The attribute's full name.
pub(crate) const DOS_XATTR: &str = "user.anabranch.dos";

/// The values as last read. They are valid until the object's change time moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownDos {
    dos: StoredDos,
    /// None: read within a tick of the last change, so another change may have the same time.
    as_of: Option<Timestamp>,
}

impl KnownDos {
    /// For a new object, which has none of this, if it was not changed since then.
    pub(crate) fn none(ctime: Option<Timestamp>) -> Self {
        Self { dos: StoredDos::default(), as_of: ctime }
    }
}

impl LocalNode {
    /// Whether flags can be stored with this object.
    pub(crate) fn carries_dos(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::Directory)
            && self.store.capabilities.contains(Capabilities::XATTRS)
    }

    /// The values of an object that was last changed at `ctime`.
    pub(crate) fn dos(&self, ctime: Timestamp, reach: Reach) -> Result<StoredDos> {
        let known = *self.dos.lock();
        match known {
            Some(known) if known.as_of == Some(ctime) => return Ok(known.dos),
            // The values lie beside the inode, which has just been changed, so they are in memory.
            Some(_) => {}
            None if reach == Reach::Device || self.store.is_in_memory => {}
            None => return Err(Error::WouldBlock),
        }
        let dos = self.read_dos()?;
        *self.dos.lock() = Some(KnownDos { dos, as_of: is_settled(ctime).then_some(ctime) });
        Ok(dos)
    }

    fn read_dos(&self) -> Result<StoredDos> {
        let mut bytes = [0; DOS_BYTES_MAX + 1];
        match self.fetch_xattr(DOS_XATTR, &mut bytes) {
            Ok(count) => Ok(bytes.get(..count).and_then(StoredDos::decode).unwrap_or_default()),
            // RANGE: too long for this version. ACCESS: a server without privileges, and a file that it may not read;
            // the other attributes are still useful.
            Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(StoredDos::default()),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Sets what is given and keeps the rest, except for a change time that was set before: this is a change.
    pub(crate) fn set_dos(&self, set: &SetAttributes) -> Result<()> {
        // The lock is held throughout: of two concurrent changes, neither may undo the other.
        let mut known = self.dos.lock();
        let dos = self.read_dos()?.changed_by(set, now());
        self.put_xattr(DOS_XATTR, &dos.encode(), XattrFlags::empty()).map_err(from_errno)?;
        *known = Some(KnownDos { dos, as_of: Some(ctime_of(&stat(&self.fd)?)) });
        Ok(())
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}
