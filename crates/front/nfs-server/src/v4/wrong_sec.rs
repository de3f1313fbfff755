//! Which operation of a COMPOUND reports that the flavor of the call is not one that a share admits. RFC 8881 2.6.3.1.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::open::Claim;

use crate::operation::{Callers, Operation};

/// Whether an operation on an object of such a share is refused. 2.6.3.1.1.5 and 2.6.3.1.1.6: a client asks with any flavor
/// which ones it needs, and leaves the share by its top.
pub(super) fn concerns(operation: &Operation<Number>, is_top: bool) -> bool {
    match operation.number {
        Number::SecInfo | Number::SecInfoNoName => false,
        Number::LookupP => !is_top,
        Number::GetFh => true,
        _ => operation.callers != Callers::Anybody,
    }
}

/// Whether the operation that has set the filehandle reports it, in place of the next one. 2.6.3.1.1.3, 2.6.3.1.1.4 and
/// 2.6.3.1.1.8: not if a name is looked up next, which may lead elsewhere and reports for itself.
pub(super) fn is_reported_by(set_by: Number, next: &ArgOp<'_>) -> bool {
    let sets = matches!(set_by, Number::PutFh | Number::PutRootFh | Number::PutPubFh | Number::RestoreFh);
    let looks_up = match next {
        ArgOp::Lookup(_) | ArgOp::LookupP => true,
        ArgOp::Open(args) => {
            matches!(args.claim, Claim::Null(_) | Claim::DelegateCur(..) | Claim::DelegatePrev(_))
        }
        _ => false,
    };
    sets && !looks_up
}
