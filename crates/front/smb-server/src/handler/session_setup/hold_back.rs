//! Delays the outcome of an authentication: until the numbers of its user have come, and failures with increasing delay.

use std::time::{Duration, Instant};

use auth::{Acceptor, Authenticated, FailureClass, Step};
use share::Actor;
use smb_wire::NtStatus;

use crate::context::RequestContext;
use crate::logged;

/// An authentication that has not failed.
pub(super) enum Authentication {
    /// The client gets this token and continues.
    Continue(Vec<u8>, Acceptor),
    /// The client has authenticated.
    Done(Authenticated),
}

/// Returns the outcome of an authentication when the client may learn it. Until then only this request waits.
///
/// # Errors
/// The status of a failure; STATUS_ACCOUNT_LOCKED_OUT, whatever the outcome, when too many other logons wait.
pub(super) async fn hold_back(
    ctx: &RequestContext,
    begun: Instant,
    outcome: Step,
) -> Result<Authentication, NtStatus> {
    let connection = &ctx.connection;
    let outcome = tokio::select! {
        biased;
        () = connection.endpoint.ended.wait() => return Err(NtStatus::USER_SESSION_DELETED),
        outcome = outcome.numbered(&*ctx.server.accounts) => outcome,
    };
    let delay = ctx.server.guesses.delay(connection.peer.address, &outcome);
    if delay.is_some_and(|delay| delay > Duration::ZERO) {
        tokio::select! {
            () = tokio::time::sleep(delay.unwrap_or_default()) => {}
            () = connection.endpoint.ended.wait() => return Err(NtStatus::USER_SESSION_DELETED),
        }
    }
    if delay.is_none() {
        connection.note_failed_logon(true);
        logged::logon(ctx, begun, Actor::default(), NtStatus::ACCOUNT_LOCKED_OUT);
        return Err(NtStatus::ACCOUNT_LOCKED_OUT);
    }
    match outcome {
        Step::Continue { reply, next, .. } => Ok(Authentication::Continue(reply, next)),
        Step::Done(authenticated) => Ok(Authentication::Done(authenticated)),
        // Its numbers have come.
        Step::Ask(_) => Err(NtStatus::INTERNAL_ERROR),
        Step::Fail(failure) => {
            connection.note_failed_logon(false);
            let status = status_of(failure.reason.class());
            logged::logon(ctx, begun, Actor { user: failure.user.as_deref(), ..Actor::default() }, status);
            Err(status)
        }
    }
}

fn status_of(class: FailureClass) -> NtStatus {
    match class {
        FailureClass::LogonFailure | FailureClass::TicketRefused => NtStatus::LOGON_FAILURE,
        FailureClass::TimeDifference => NtStatus::TIME_DIFFERENCE_AT_DC,
        FailureClass::AccountDisabled => NtStatus::ACCOUNT_DISABLED,
        FailureClass::NoAnswer => NtStatus::NO_LOGON_SERVERS,
        FailureClass::NtlmBlocked => NtStatus::NTLM_BLOCKED,
        FailureClass::AccessDenied => NtStatus::ACCESS_DENIED,
        FailureClass::InvalidToken => NtStatus::INVALID_PARAMETER,
    }
}
