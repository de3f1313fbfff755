//! GETFH, RFC 8881 18.8: the current filehandle, in the form of an `nfs_fh4`.

use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use crate::operation::{Needs, Operation};
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::{filehandle, pseudo_fs};

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::FileHandle, ..Operation::v4_of_no_share(Number::GetFh) };

pub(super) fn handle(c: &Compound<'_>) -> Result<SignedHandle, Status> {
    match c.place()? {
        Place::Root => pseudo_fs::root_handle(c.server()),
        Place::Object(object) => filehandle::of(c.server(), object),
        // 11.3: "a GETFH cannot succeed if the current filehandle is within an absent file system".
        Place::Absent(_) => Err(Status::Moved),
    }
}
