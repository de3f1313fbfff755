//! Calls as the fronts of three protocols make them.

use std::time::Instant;

use anabranch_share::{Call, Caller, DirectoryReport, Front, Operation, Patience};

const fn front(name: &'static str, patience: Patience, directories: DirectoryReport) -> Front {
    Front { name, patience, directories }
}

static SMB_FRONT: Front = front("smb", Patience::AsLongAsHolders, DirectoryReport::Nothing);
static NFS3_FRONT: Front = front("nfs3", Patience::UntilRetry, DirectoryReport::Attributes);
static NFS4_FRONT: Front = front("nfs4", Patience::UntilRetry, DirectoryReport::Change);

pub(crate) static SMB: Operation = Operation::new(&SMB_FRONT, 1, "Lookup");
pub(crate) static NFS3: Operation = Operation::new(&NFS3_FRONT, 2, "Lookup");
pub(crate) static NFS4: Operation = Operation::new(&NFS4_FRONT, 3, "Lookup");

/// An operation of this caller that need not wait for its turn.
pub(crate) fn call(operation: &'static Operation, caller: Caller) -> Call {
    let call = Call::new(operation, caller, Instant::now());
    call.needs_no_turn();
    call
}
