//! NFS versions 4.1 and 4.2: from an operation to its handler, and nothing else.
//!
//! A request is a COMPOUND ([`compound`]). SEQUENCE ([`sequence`]) opens it and makes the context that all other
//! operations work on, [`Compound`]; the few that need no session ([`alone`]) get the request only, and cannot reach
//! anybody's state. One file an operation, named as its codec in [`nfs_wire::v4`]:
//!
//! ```text
//! pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<ResOk, Status>
//! ```
//!
//! `async` and `mut` only where they are needed. What fails with more than a status returns the result type of its codec
//! (SETATTR, LOCK, COPY). A handler asks [`Compound`] for the current and the saved object (`object`, `object_to_change`,
//! `saved_object`, or `place` if it knows the pseudo file system), for the stateid that the client means (`stateid`),
//! for the client and the session, for `bytes` of its arguments without a copy, and for a `data_buffer` to read into; it
//! tells it the new current object (`set_object`), stateid (`set_stateid`) and the payload that it `moved`. Errors of a share
//! become statuses by [`status::v4`](crate::status::v4).
//!
//! Here, the operation gets an arm in [`run`] and, if it is to be counted for the share, one in [`api`]. Handlers whose
//! futures are large and that are not on the path of data go into a box, so that the future of a READ stays small.

mod access;
mod acl;
mod allocate;
mod alone;
mod attributes;
mod backchannel_ctl;
mod between;
mod bind_conn_to_session;
pub(crate) mod callback;
mod clone;
mod close;
mod commit;
mod compound;
pub(crate) mod connection;
mod copy;
mod create;
mod create_session;
mod data;
mod deallocate;
mod delegreturn;
mod describe;
mod destroy_clientid;
mod destroy_session;
mod directory;
mod exchange_id;
mod filehandle;
pub(crate) mod files;
mod free_stateid;
mod getattr;
mod getxattr;
mod io_advise;
mod link;
mod listxattrs;
mod locations;
mod lock;
mod lockt;
mod locku;
mod lookup;
mod lookupp;
mod new_object;
mod nverify;
mod offload;
mod offload_cancel;
mod offload_status;
mod open;
mod open_downgrade;
mod owner;
mod pseudo_fs;
mod read;
mod read_plus;
mod readdir;
mod readlink;
mod recall;
mod reclaim_complete;
mod recovery;
mod remove;
mod removexattr;
mod rename;
mod secinfo;
mod secinfo_no_name;
mod seek;
mod sequence;
mod set_attributes;
mod setattr;
mod setxattr;
pub(crate) mod slots;
pub(crate) mod state;
mod test_stateid;
mod verify;
mod write;
mod xattr;

use nfs_proto::v4::client::Principal;
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::{Operation, Procedure};
use nfs_wire::xdr::Reader;
use share::Api;

pub use recovery::ClientRecords;
pub use state::SessionReport;

use compound::Compound;
use destroy_session::Within;

use crate::rpc_dispatch::{NotRun, Request};

/// Runs a call.
pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<net::Buffer, NotRun> {
    match Procedure::try_from(request.call.procedure) {
        Ok(Procedure::Compound) => compound::answer(request, arguments).await,
        Ok(Procedure::Null) | Err(_) => Err(AcceptStatus::ProcedureUnavailable.into()),
    }
}

/// Runs one operation of a session. `last`: no other one follows.
async fn run<'a>(c: &mut Compound<'a>, operation: ArgOp<'a>, last: bool) {
    let number = operation.operation();
    /// Runs a handler and writes its result.
    macro_rules! end {
        ($result:expr) => {{
            let result = $result;
            c.end(number, &result);
        }};
    }
    match operation {
        ArgOp::PutFh(args) => end!(filehandle::put(c, args).await),
        ArgOp::PutRootFh | ArgOp::PutPubFh => end!(filehandle::put_root(c)),
        ArgOp::GetFh => end!(filehandle::of_current(c)),
        ArgOp::SaveFh => end!(c.save()),
        ArgOp::RestoreFh => end!(c.restore()),
        ArgOp::ExchangeId(args) => end!(exchange_id::handle(c.request, &args).await),
        ArgOp::CreateSession(args) => end!(create_session::handle(c.request, c.minor_version, &args).await),
        ArgOp::DestroySession(args) => {
            let within = Within { session: c.session().id, is_last: last };
            end!(destroy_session::handle(c.request, args, Some(within)));
        }
        ArgOp::DestroyClientId(args) => end!(destroy_clientid::handle(c.request, args).await),
        ArgOp::BackchannelCtl(args) => end!(backchannel_ctl::handle(c, &args)),
        ArgOp::Open(args) => end!(Box::pin(open::handle(c, args)).await),
        ArgOp::Close(args) => end!(Box::pin(close::handle(c, args)).await),
        ArgOp::OpenDowngrade(args) => end!(Box::pin(open_downgrade::handle(c, args)).await),
        ArgOp::Read(args) => {
            let result = read::handle(c, args).await;
            c.end_data(number, result);
        }
        ArgOp::Write(args) => end!(write::handle(c, args).await),
        ArgOp::Commit(args) => end!(commit::handle(c, args).await),
        ArgOp::Lock(args) => Box::pin(lock::run(c, args)).await,
        ArgOp::LockT(args) => lockt::run(c, &args),
        ArgOp::LockU(args) => end!(locku::handle(c, args)),
        ArgOp::DelegReturn(args) => end!(Box::pin(delegreturn::handle(c, args)).await),
        ArgOp::TestStateid(args) => end!(test_stateid::handle(c, &args)),
        ArgOp::FreeStateid(args) => end!(free_stateid::handle(c, args)),
        ArgOp::ReclaimComplete(args) => end!(reclaim_complete::handle(c, args)),
        // RFC 8881 18.46.3: "SEQUENCE MUST appear as the first operation".
        ArgOp::Sequence(_) => c.refuse(number, Status::SequencePos),
        // 18.34.3: "It MUST be the only operation in the COMPOUND procedure."
        ArgOp::BindConnToSession(_) => c.refuse(number, Status::NotOnlyOp),
        other => run_without_open(c, other).await,
    }
}

/// Runs an operation that needs no open: on names, attributes and extended attributes.
async fn run_without_open<'a>(c: &mut Compound<'a>, operation: ArgOp<'a>) {
    let number = operation.operation();
    /// Runs a handler in a box and writes its result.
    macro_rules! end {
        ($handler:expr) => {{
            let result = Box::pin($handler).await;
            c.end(number, &result);
        }};
    }
    match operation {
        ArgOp::Access(args) => end!(access::handle(c, args)),
        ArgOp::Create(args) => end!(create::handle(c, args)),
        ArgOp::GetAttr(args) => end!(getattr::handle(c, args)),
        ArgOp::Link(args) => end!(link::handle(c, args)),
        ArgOp::Lookup(args) => end!(lookup::handle(c, args)),
        ArgOp::LookupP => end!(lookupp::handle(c)),
        ArgOp::NVerify(args) => end!(nverify::handle(c, args)),
        ArgOp::ReadDir(args) => end!(readdir::handle(c, args)),
        ArgOp::ReadLink => end!(readlink::handle(c)),
        ArgOp::Remove(args) => end!(remove::handle(c, args)),
        ArgOp::Rename(args) => end!(rename::handle(c, args)),
        ArgOp::SecInfo(args) => end!(secinfo::handle(c, args)),
        ArgOp::SecInfoNoName(args) => end!(secinfo_no_name::handle(c, args)),
        ArgOp::SetAttr(args) => end!(setattr::handle(c, args)),
        ArgOp::Verify(args) => end!(verify::handle(c, args)),
        ArgOp::GetXattr(args) => end!(getxattr::handle(c, args)),
        ArgOp::SetXattr(args) => end!(setxattr::handle(c, args)),
        ArgOp::ListXattrs(args) => end!(listxattrs::handle(c, args)),
        ArgOp::RemoveXattr(args) => end!(removexattr::handle(c, args)),
        ArgOp::Seek(args) => end!(seek::handle(c, args)),
        ArgOp::Allocate(args) => end!(allocate::handle(c, args)),
        ArgOp::Deallocate(args) => end!(deallocate::handle(c, args)),
        ArgOp::Clone(args) => end!(clone::handle(c, args)),
        ArgOp::Copy(args) => end!(copy::handle(c, args)),
        ArgOp::OffloadCancel(args) => end!(offload_cancel::handle(c, args)),
        ArgOp::OffloadStatus(args) => {
            let result = offload_status::handle(c, args);
            c.end(number, &result);
        }
        ArgOp::IoAdvise(args) => {
            let result = io_advise::handle(c, args);
            c.end(number, &result);
        }
        ArgOp::ReadPlus(args) => {
            let mut data = Vec::new();
            end!(read_plus::handle(c, args, &mut data));
        }
        _ => c.refuse(number, Status::NotSupp),
    }
}

/// The name under which an operation is counted for its share; those that concern none are not.
fn api(operation: Operation) -> Option<Api> {
    use Operation as O;
    Some(match operation {
        O::Access => Api::Access,
        O::Close => Api::Close,
        O::Commit => Api::Commit,
        O::Create => Api::Create,
        O::DelegReturn => Api::DelegReturn,
        O::GetAttr => Api::GetAttr,
        O::Link => Api::Link,
        O::Lock => Api::Lock,
        O::LockT => Api::LockTest,
        O::LockU => Api::Unlock,
        O::Lookup | O::LookupP => Api::Lookup,
        O::NVerify | O::Verify => Api::Verify,
        O::Open => Api::Open,
        O::OpenDowngrade => Api::OpenDowngrade,
        O::Read => Api::Read,
        O::ReadDir => Api::ReadDir,
        O::ReadLink => Api::ReadLink,
        O::Remove => Api::Remove,
        O::Rename => Api::Rename,
        O::SecInfo | O::SecInfoNoName => Api::SecInfo,
        O::SetAttr => Api::SetAttr,
        O::Write => Api::Write,
        O::Allocate => Api::Allocate,
        O::Copy => Api::Copy,
        O::OffloadCancel => Api::OffloadCancel,
        O::OffloadStatus => Api::OffloadStatus,
        O::Deallocate => Api::Deallocate,
        O::IoAdvise => Api::IoAdvise,
        O::ReadPlus => Api::ReadPlus,
        O::Seek => Api::Seek,
        O::Clone => Api::Clone,
        O::GetXattr => Api::GetXattr,
        O::SetXattr => Api::SetXattr,
        O::ListXattrs => Api::ListXattrs,
        O::RemoveXattr => Api::RemoveXattr,
        _ => return None,
    })
}

/// Who sends a request, as far as clients are told apart by it.
fn principal(request: &Request<'_>) -> Principal {
    match &request.stated {
        None => Principal::Nobody,
        Some(stated) => Principal::User { uid: stated.uid, gid: stated.gid },
    }
}
