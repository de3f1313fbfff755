//! Dispatches the procedures of NLM to their handlers.

use std::sync::Arc;

use net::Buffer;
use nfs_wire::nlm::{self, Found, NetObject, Procedure, Res, ShareRes, Status, TestRes};
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::xdr::{Encode, Reader};
use share::Outcome;

use super::lock::Monitored;
use super::owner::Conflict;
use super::state::NlmState;
use super::{OPERATIONS, cancel, free_all, lock, reserve, test, unlock};
use crate::call::{CallError, Request, decode};
use crate::counted::Counted;
use crate::operation::Operation;
use crate::reply::Encoded;
use crate::server::ServerState;
use crate::status;

/// Runs a call.
pub(crate) async fn dispatch(
    request: &Request<'_>,
    nlm: &NlmState,
    arguments: Reader<'_>,
) -> Result<Buffer, CallError> {
    let procedure = Procedure::try_from(request.call.procedure);
    let procedure = procedure.map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    let call = Running { request, nlm };
    Ok(match procedure {
        Procedure::Test => call.test(decode(arguments)?).await.answer(request),
        Procedure::Lock => call.lock(decode(arguments)?, Monitored::Yes).await.answer(request),
        Procedure::NmLock => call.lock(decode(arguments)?, Monitored::No).await.answer(request),
        Procedure::Cancel => call.cancel(decode(arguments)?).await.answer(request),
        Procedure::Unlock => call.unlock(decode(arguments)?).await.answer(request),
        Procedure::TestMsg => call.test(decode(arguments)?).await.send(request, Procedure::TestRes),
        Procedure::LockMsg => {
            call.lock(decode(arguments)?, Monitored::Yes).await.send(request, Procedure::LockRes)
        }
        Procedure::CancelMsg => call.cancel(decode(arguments)?).await.send(request, Procedure::CancelRes),
        Procedure::UnlockMsg => call.unlock(decode(arguments)?).await.send(request, Procedure::UnlockRes),
        Procedure::Share => call.share(decode(arguments)?).await,
        Procedure::Unshare => call.unshare(decode(arguments)?).await,
        Procedure::FreeAll => {
            free_all::handle(request, nlm, &decode(arguments)?).await;
            request.success(&())
        }
        // This server waits for no lock of another one.
        Procedure::Granted => {
            let args: nlm::TestArgs<'_> = decode(arguments)?;
            request.success(&Res { cookie: args.cookie, status: Status::Denied })
        }
        Procedure::Null
        | Procedure::GrantedMsg
        | Procedure::TestRes
        | Procedure::LockRes
        | Procedure::CancelRes
        | Procedure::UnlockRes
        | Procedure::GrantedRes => request.success(&()),
    })
}

/// A result, which is the reply to a call or is sent in a call of its own.
enum Answer<'a> {
    Status(NetObject<'a>, Status),
    Conflict(NetObject<'a>, Conflict),
}

impl Answer<'_> {
    fn answer(&self, request: &Request<'_>) -> Buffer {
        match self {
            Self::Status(cookie, status) if request.call.procedure == Procedure::Test as u32 => {
                request.success(&TestRes { cookie: *cookie, found: Found::Other(*status) })
            }
            Self::Status(cookie, status) => request.success(&Res { cookie: *cookie, status: *status }),
            Self::Conflict(cookie, conflict) => {
                request.success(&TestRes { cookie: *cookie, found: Found::Conflict(conflict.holder()) })
            }
        }
    }

    /// Sends the result in a call of this procedure. The reply to the present call is empty.
    fn send(&self, request: &Request<'_>, procedure: Procedure) -> Buffer {
        let result = match self {
            Self::Status(cookie, status) if procedure == Procedure::TestRes => {
                TestRes { cookie: *cookie, found: Found::Other(*status) }.encode_to_vec()
            }
            Self::Status(cookie, status) => Res { cookie: *cookie, status: *status }.encode_to_vec(),
            Self::Conflict(cookie, conflict) => {
                TestRes { cookie: *cookie, found: Found::Conflict(conflict.holder()) }.encode_to_vec()
            }
        };
        send(request, procedure, result);
        request.success(&())
    }
}

fn send(request: &Request<'_>, procedure: Procedure, result: Vec<u8>) {
    let server: Arc<ServerState> = Arc::clone(&request.connection.server);
    let connection = request.connection;
    let path = (connection.local, connection.peer());
    tokio::spawn(async move {
        let Some(nlm) = &server.nlm else { return };
        let target = (nlm::PROGRAM, nlm::VERSION, procedure as u32);
        if let Err(error) = nlm.callbacks.call(path, target, &Encoded(result), |_| Some(())).await {
            tracing::debug!("a host was not sent a result: {error}");
        }
    });
}

/// A call under way.
struct Running<'r, 'a> {
    request: &'r Request<'a>,
    nlm: &'r NlmState,
}

impl Running<'_, '_> {
    async fn test<'x>(&self, args: nlm::TestArgs<'x>) -> Answer<'x> {
        let counted = self.begin(&test::OPERATION);
        let result = test::handle(self.request, self.nlm, &counted, &args).await;
        let status = match &result {
            Ok(Some(_)) => Status::Denied,
            Ok(None) => Status::Granted,
            Err(status) => *status,
        };
        counted.end(0, outcome(result.as_ref().err()), || status::nlm_name(status));
        match result {
            Ok(Some(conflict)) => Answer::Conflict(args.cookie, conflict),
            Ok(None) => Answer::Status(args.cookie, Status::Granted),
            // DENIED comes with the lock that is in the way.
            Err(Status::Denied) => Answer::Status(args.cookie, Status::Failed),
            Err(status) => Answer::Status(args.cookie, status),
        }
    }

    async fn lock<'x>(&self, args: nlm::LockArgs<'x>, monitored: Monitored) -> Answer<'x> {
        let counted = self.begin(&lock::OPERATION);
        let result = Box::pin(lock::handle(self.request, self.nlm, &counted, &args, monitored)).await;
        Answer::Status(args.cookie, self.end(&counted, result))
    }

    async fn cancel<'x>(&self, args: nlm::CancelArgs<'x>) -> Answer<'x> {
        let counted = self.begin(&cancel::OPERATION);
        let result = cancel::handle(self.request, self.nlm, &counted, &args).await;
        Answer::Status(args.cookie, self.end(&counted, result))
    }

    async fn unlock<'x>(&self, args: nlm::UnlockArgs<'x>) -> Answer<'x> {
        let counted = self.begin(&unlock::OPERATION);
        let result = unlock::handle(self.request, self.nlm, &counted, &args).await;
        Answer::Status(args.cookie, self.end(&counted, result))
    }

    async fn share(&self, args: nlm::ShareArgs<'_>) -> Buffer {
        let counted = self.begin(&reserve::SHARE);
        let result = Box::pin(reserve::share(self.request, self.nlm, &counted, &args)).await;
        self.reserved(&args, self.end(&counted, result))
    }

    async fn unshare(&self, args: nlm::ShareArgs<'_>) -> Buffer {
        let counted = self.begin(&reserve::UNSHARE);
        let result = reserve::unshare(self.request, self.nlm, &counted, &args).await;
        self.reserved(&args, self.end(&counted, result))
    }

    fn reserved(&self, args: &nlm::ShareArgs<'_>, status: Status) -> Buffer {
        self.request.success(&ShareRes { cookie: args.cookie, status, sequence: 0 })
    }

    fn begin(&self, operation: &'static Operation<Procedure>) -> Counted<'_> {
        debug_assert!(OPERATIONS.iter().any(|row| row.number == operation.number), "each has a row");
        Counted::begin(self.request.connection, operation)
    }

    fn end(&self, counted: &Counted<'_>, result: Result<Status, Status>) -> Status {
        let outcome = outcome(result.as_ref().err());
        let status = result.unwrap_or_else(|status| status);
        counted.end(0, outcome, || status::nlm_name(status));
        status
    }
}

fn outcome(refused: Option<&Status>) -> Outcome {
    match refused {
        None => Outcome::Done,
        Some(_) => Outcome::Refused,
    }
}
