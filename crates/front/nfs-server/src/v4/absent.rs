//! A file system that is not here but on another server: RFC 8881 11.3 and 11.4, RFC 7530 8.2 and 8.3.
//!
//! It is "absent": it holds nothing but its root, of which a client learns where the file system is. Each operation on it
//! fails with NFS4ERR_MOVED, except those that ask for attributes with fs_locations among them.

use std::sync::Arc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::attr::{Attribute as A, AttributeSet};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Fsid;
use share::Gone;
use storage::{Attributes, Capabilities, Device, FileKind, ObjectId, Timestamp};

use super::attributes::{FileSystem, Subject, Telling};
use super::compound::Compound;
use super::describe;
use super::locations::Locations;
use crate::attributes::fsid_of;
use crate::operation::{Needs, Operation};

/// What an absent file system has beside its place: RFC 7530 8.3.1 lists these, and has others left out "even when it is
/// possible to provide them".
const ATTRIBUTES: AttributeSet = AttributeSet::of(&[A::FsLocations, A::Fsid, A::RdattrError]);

/// What an object there is like: no client learns it.
const NOTHING: Attributes = Attributes {
    id: ObjectId::live(0),
    kind: FileKind::Directory,
    mode: 0,
    links: 0,
    uid: 0,
    gid: 0,
    device: Device { major: 0, minor: 0 },
    size: 0,
    allocated: 0,
    atime: Timestamp { secs: 0, nanos: 0 },
    mtime: Timestamp { secs: 0, nanos: 0 },
    ctime: Timestamp { secs: 0, nanos: 0 },
    btime: None,
    flags: None,
    ctime_set: None,
    changes_within_ctime: 0,
};

/// A place in an absent file system.
#[derive(Debug, Clone)]
pub(super) struct Absent {
    gone: Arc<Gone>,
    /// Whether it is the root, which has a number in the root of the pseudo file system.
    is_top: bool,
}

impl Absent {
    /// The root, as a client finds it by its name.
    pub(super) fn top(gone: Arc<Gone>) -> Self {
        Self { gone, is_top: true }
    }

    /// Where a filehandle leads that the client has kept since the file system was here.
    pub(super) fn within(gone: Arc<Gone>) -> Self {
        Self { gone, is_top: false }
    }

    /// Whether an operation may begin there. 11.3: "that operation is not performed and the error NFS4ERR_MOVED is
    /// returned", but for those "of the GETATTR type", which look at what is asked for. Operations that only set the filehandle
    /// do not look at the one before.
    ///
    /// # Errors
    /// [`Status::Moved`].
    pub(super) fn check(operation: &Operation<Number>) -> Result<(), Status> {
        let asks = matches!(operation.number, Number::GetAttr | Number::Verify | Number::NVerify);
        if asks || operation.needs != Needs::FileHandle { Ok(()) } else { Err(Status::Moved) }
    }

    /// The attributes that it has.
    pub(super) fn supported(&self) -> AttributeSet {
        if self.is_top { ATTRIBUTES.with(A::MountedOnFileId) } else { ATTRIBUTES }
    }

    /// What VERIFY and NVERIFY may compare.
    ///
    /// # Errors
    /// [`Status::Moved`] without fs_locations, and for "any appearance in the attribute mask of an attribute not supported"
    /// (11.4.1).
    pub(super) fn check_compared(&self, attributes: AttributeSet) -> Result<(), Status> {
        let is_told = attributes.difference(self.supported()).is_empty();
        if is_told && attributes.contains(A::FsLocations) { Ok(()) } else { Err(Status::Moved) }
    }

    /// The attributes for GETATTR. Those that it does not have are left out.
    ///
    /// # Errors
    /// [`Status::Moved`] if the client does not ask for fs_locations (11.4.1).
    pub(super) fn subject(&self, c: &Compound<'_>, wanted: AttributeSet) -> Result<Subject, Status> {
        if !wanted.contains(A::FsLocations) {
            return Err(Status::Moved);
        }
        if let Ok(client) = c.client() {
            client.has_asked_for(self.gone.id);
        }
        Ok(self.described(c))
    }

    /// The entry in a listing of the directory above (11.4.2): with fs_locations as for GETATTR, otherwise with
    /// NFS4ERR_MOVED as its rdattr_error. To a client that asks for neither it is not shown: 11.4.2 has the whole READDIR fail,
    /// which would hide all other shares from clients that do not know such file systems.
    pub(super) fn entry(&self, c: &Compound<'_>, wanted: AttributeSet) -> Option<Telling> {
        let mut subject = self.described(c);
        if !wanted.contains(A::FsLocations) {
            if !wanted.contains(A::RdattrError) {
                return None;
            }
            subject.error = Err(Status::Moved);
        }
        Some(Telling { wanted, subject })
    }

    fn described(&self, c: &Compound<'_>) -> Subject {
        let fs = FileSystem {
            fsid: Fsid { major: fsid_of(self.gone.id), minor: 0 },
            supported: self.supported(),
            capabilities: Capabilities::empty(),
            lease_seconds: 0,
            file_bytes_max: 0,
            space: None,
        };
        let mut subject = Subject::new(fs, NOTHING, None);
        subject.mounted_on = describe::entry_id(self.gone.id);
        subject.locations = Some(Locations::elsewhere(&self.gone, c.request.connection.client));
        subject
    }
}
