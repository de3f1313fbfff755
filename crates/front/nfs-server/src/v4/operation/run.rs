//! Dispatches NFSv4 operations to their handlers.

use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::status::Status;

use super::destroy_session::Within;
use super::{
    access, allocate, backchannel_ctl, bind_conn_to_session, clone, close, commit, copy, create,
    create_session, deallocate, delegreturn, destroy_clientid, destroy_session, exchange_id, free_stateid,
    getattr, getfh, getxattr, io_advise, link, listxattrs, lock, lockt, locku, lookup, lookupp, nverify,
    offload_cancel, offload_status, open, open_confirm, open_downgrade, putfh, putpubfh, putrootfh, read,
    read_plus, readdir, readlink, reclaim_complete, release_lockowner, remove, removexattr, rename, renew,
    restorefh, savefh, secinfo, secinfo_no_name, seek, setattr, setclientid, setclientid_confirm, setxattr,
    test_stateid, verify, want_delegation, write,
};
use crate::call::Request;
use crate::operation::Needs;
use crate::v4::compound::Compound;
use crate::v4::reply::Reply;

/// Runs one operation of a session. `last`: no operation follows.
pub(in crate::v4) async fn run<'a>(c: &mut Compound<'a>, operation: ArgOp<'a>, last: bool) {
    let number = operation.operation();
    /// Runs a handler and writes its result.
    macro_rules! end {
        ($result:expr) => {{
            let result = $result;
            c.end(number, &result);
        }};
    }
    match operation {
        ArgOp::PutFh(args) => end!(putfh::handle(c, args).await),
        ArgOp::PutRootFh => end!(putrootfh::handle(c)),
        ArgOp::PutPubFh => end!(putpubfh::handle(c)),
        ArgOp::GetFh => end!(getfh::handle(c)),
        ArgOp::SaveFh => end!(savefh::handle(c)),
        ArgOp::RestoreFh => end!(restorefh::handle(c)),
        ArgOp::ExchangeId(args) => {
            end!(Box::pin(exchange_id::handle(c.request, c.minor_version, &args)).await)
        }
        ArgOp::CreateSession(args) => {
            end!(Box::pin(create_session::handle(c.request, c.minor_version, &args)).await)
        }
        ArgOp::DestroySession(args) => {
            let within = c.session().ok().map(|session| Within { session: session.id, is_last: last });
            end!(destroy_session::handle(c.request, args, within));
        }
        ArgOp::DestroyClientId(args) => end!(Box::pin(destroy_clientid::handle(c.request, args)).await),
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
        ArgOp::WantDelegation(args) => end!(Box::pin(want_delegation::handle(c, args)).await),
        ArgOp::TestStateid(args) => end!(test_stateid::handle(c, &args)),
        ArgOp::FreeStateid(args) => end!(free_stateid::handle(c, args)),
        ArgOp::ReclaimComplete(args) => end!(reclaim_complete::handle(c, args)),
        // RFC 8881 18.46.3: "SEQUENCE MUST appear as the first operation".
        ArgOp::Sequence(_) => c.refuse(number, Status::SequencePos),
        // 18.34.3: "It MUST be the only operation in the COMPOUND procedure."
        ArgOp::BindConnToSession(_) => c.refuse(number, Status::NotOnlyOp),
        ArgOp::SetClientId(_)
        | ArgOp::SetClientIdConfirm(_)
        | ArgOp::Renew(_)
        | ArgOp::OpenConfirm(_)
        | ArgOp::ReleaseLockOwner(_) => Box::pin(run_sessionless(c, operation)).await,
        other => run_without_open(c, other).await,
    }
}

/// Runs an operation that only clients without sessions have: "MUST NOT be implemented" in later minor versions (RFC 8881
/// 17).
async fn run_sessionless<'a>(c: &mut Compound<'a>, operation: ArgOp<'a>) {
    let number = operation.operation();
    if c.session().is_ok() {
        return c.refuse(number, Status::NotSupp);
    }
    match operation {
        ArgOp::SetClientId(args) => {
            let result = setclientid::handle(c.request, &args).await;
            c.end(number, &result);
        }
        ArgOp::SetClientIdConfirm(args) => {
            let result = setclientid_confirm::handle(c.request, args).await;
            c.end(number, &result);
        }
        ArgOp::Renew(_) => c.end(number, &renew::handle(c)),
        ArgOp::OpenConfirm(args) => {
            let result = open_confirm::handle(c, args);
            c.end(number, &result);
        }
        ArgOp::ReleaseLockOwner(args) => c.end(number, &release_lockowner::handle(c, &args)),
        _ => c.refuse(number, Status::NotSupp),
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

/// Runs an operation without a session. Only operations that create and destroy the state that SEQUENCE needs are
/// allowed (RFC 8881 18.46.3). `only`: there is no other operation in the COMPOUND.
pub(in crate::v4) async fn run_alone(
    request: &Request<'_>,
    minor_version: u32,
    operation: ArgOp<'_>,
    only: bool,
    reply: &mut Reply,
) {
    let number = operation.operation();
    if super::row(number).needs == Needs::Nothing && !only {
        return reply.fail(number, Status::NotOnlyOp);
    }
    match operation {
        ArgOp::ExchangeId(args) => {
            reply.end(number, &exchange_id::handle(request, minor_version, &args).await);
        }
        ArgOp::CreateSession(args) => {
            reply.end(number, &create_session::handle(request, minor_version, &args).await);
        }
        ArgOp::BindConnToSession(args) => reply.end(number, &bind_conn_to_session::handle(request, args)),
        ArgOp::DestroySession(args) => reply.end(number, &destroy_session::handle(request, args, None)),
        ArgOp::DestroyClientId(args) => reply.end(number, &destroy_clientid::handle(request, args).await),
        // RFC 8881 18.46.3: "Such operations MUST yield the error NFS4ERR_OP_NOT_IN_SESSION".
        _ => reply.fail(number, Status::OpNotInSession),
    }
}
