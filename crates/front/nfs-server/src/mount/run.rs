//! Dispatches MOUNT procedures to their handlers.

use net::Buffer;
use nfs_wire::mount::Procedure;
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::xdr::Reader;

use super::{dump, export, mnt, umnt, umnt_all};
use crate::call::{CallError, Request, decode};
use crate::counted::Counted;
use crate::status;

/// Runs a call.
pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let operation = super::operation(request.call.procedure).ok_or(AcceptStatus::ProcedureUnavailable)?;
    let counted = Counted::begin(request.connection, operation);
    Ok(match operation.number {
        Procedure::Null => request.success(&()),
        Procedure::Mnt => {
            let result = mnt::handle(request, &counted, decode(arguments)?).await;
            counted.end(0, status::mount_outcome(&result), || {
                status::mount_name(result.as_ref().err().map(|failure| failure.status))
            });
            request.success(&result)
        }
        Procedure::Dump => {
            decode::<()>(arguments)?;
            request.success(&dump::handle(request))
        }
        Procedure::Umnt => {
            umnt::handle(request, decode(arguments)?);
            request.success(&())
        }
        Procedure::UmntAll => {
            decode::<()>(arguments)?;
            umnt_all::handle(request);
            request.success(&())
        }
        Procedure::Export => {
            decode::<()>(arguments)?;
            request.success(&export::handle(request))
        }
    })
}
