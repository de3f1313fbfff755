//! The common part of COPY and CLONE: two files of one share, and a range of the first.

use std::sync::Arc;

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use share::{Call, Caller, File, Share};
use storage::{FileKind, Want};

use crate::attributes::FILE_BYTES_MAX;
use crate::status;
use crate::v4::compound::Compound;

/// Bytes that are copied at once. Other requests get their turn between two pieces.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// The file of the saved filehandle, to be read, and that of the current one, to be written.
#[derive(Clone)]
pub(super) struct Between {
    pub(super) share: Arc<Share>,
    pub(super) caller: Caller,
    pub(super) source: File,
    pub(super) target: File,
}

/// A range of the source, and where it goes in the destination.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) to_offset: u64,
    /// The number of bytes; 0 means up to the end of the source.
    pub(super) count: u64,
}

impl Between {
    /// The files, as determined by the two stateids.
    ///
    /// # Errors
    /// [`Status::WrongType`] unless both are regular files (RFC 7862 15.2.3, 15.13.3); [`Status::XDev`] if the
    /// filehandles or the stateids belong to two shares.
    pub(super) fn of(c: &Compound<'_>, source: Stateid, target: Stateid) -> Result<Self, Status> {
        let (from, to) = (c.saved_object()?, c.object_to_change()?);
        if [from, to].iter().any(|object| object.node.kind() != FileKind::Regular) {
            return Err(Status::WrongType);
        }
        let source = c.saved_file(source, ShareAccess::READ)?;
        let target = c.file(target, ShareAccess::WRITE)?;
        if !Arc::ptr_eq(&from.share, &to.share) {
            return Err(Status::XDev);
        }
        Ok(Self { share: Arc::clone(&to.share), caller: to.call.caller.clone(), source, target })
    }

    /// Whether both are the same file.
    pub(super) fn is_one_file(&self) -> bool {
        self.source.node().id() == self.target.node().id()
    }

    /// The number of bytes in a part.
    ///
    /// # Errors
    /// [`Status::Inval`] if the part extends beyond the end of the source (15.2.3, 15.13.3); [`Status::FBig`] if it
    /// extends beyond the largest file.
    pub(super) async fn length(&self, call: &Call, part: Part) -> Result<u64, Status> {
        let attributes = self.share.attributes(call, self.source.node(), Want::empty()).await;
        part.length(attributes.map_err(status::v4)?.size)
    }
}

impl Part {
    fn length(self, source_bytes: u64) -> Result<u64, Status> {
        let left = source_bytes.checked_sub(self.offset).ok_or(Status::Inval)?;
        if self.count > left {
            return Err(Status::Inval);
        }
        let length = if self.count == 0 { left } else { self.count };
        let end = self.to_offset.checked_add(length);
        if end.is_none_or(|end| end > FILE_BYTES_MAX) { Err(Status::FBig) } else { Ok(length) }
    }
}

/// Copies the next bytes after the first `done`.
pub(super) async fn copy_piece(
    call: &Call,
    files: &Between,
    part: Part,
    done: u64,
    piece: u64,
) -> Result<(), Status> {
    let from = (&files.source, part.offset.saturating_add(done));
    let to = (&files.target, part.to_offset.saturating_add(done));
    files.share.copy_range(call, from, to, piece).await.map_err(status::v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_in_its_source_and_where_files_reach() {
        let length = |offset, to_offset, count| Part { offset, to_offset, count }.length(10);
        assert_eq!(length(0, 0, 10), Ok(10));
        assert_eq!(length(4, 100, 0), Ok(6), "up to the end");
        assert_eq!(length(10, 0, 0), Ok(0));
        assert_eq!(length(11, 0, 0), Err(Status::Inval));
        assert_eq!(length(4, 0, 7), Err(Status::Inval));
        assert_eq!(length(4, 0, u64::MAX), Err(Status::Inval));
        assert_eq!(length(0, FILE_BYTES_MAX - 10, 10), Ok(10));
        assert_eq!(length(0, FILE_BYTES_MAX - 9, 10), Err(Status::FBig));
        assert_eq!(length(0, u64::MAX, 10), Err(Status::FBig));
    }
}
