//! Checks of a request: its session, its signature, its tree connect. [MS-SMB2] 3.3.5.2.4 to 3.3.5.2.11.

use std::sync::Arc;

use net::turn_clock;
use smb_proto::signing::Sender;
use smb_wire::{Command, HeaderFlags, NtStatus};

use crate::admission;
use crate::connection::Bound;
use crate::context::{Envelope, OnShare, RequestContext, Subject};
use crate::login::Login;
use crate::operation::Needs;
use crate::state::session::Session;
use crate::status::Failure;
use crate::tree::Tree;

/// The session that a request names, and the user who has logged on there.
struct Found {
    session: Arc<Session>,
    login: Option<Arc<Login>>,
}

/// 3.3.5.2.4 to 3.3.5.2.11: finds the session and the tree connect of a request, and checks that the request is
/// protected as they demand. The session and tree connect are in the envelope of the reply even if the request fails.
///
/// # Errors
/// The failure with which the request is answered.
pub(crate) fn admit(ctx: &mut RequestContext, message: &mut [u8]) -> Result<Subject, Failure> {
    let related = ctx.is_related();
    let entered = ctx.compound.get_mut().chain.enter(related);
    // The session is needed in any case: the reply is signed with its key.
    let found = find_session(ctx, related && entered.is_ok())?;
    entered?;
    if !ctx.encrypted {
        verify_signature(ctx, found.as_ref(), message)?;
    }
    if ctx.operation.needs < Needs::Session {
        return Ok(Subject::Connection(found.map(|found| found.session)));
    }
    let (session, login) = check_session(ctx, found)?;
    if ctx.operation.needs < Needs::Tree {
        return Ok(Subject::Session(session, login));
    }
    let tree = find_tree(ctx, &session, related)?;
    Ok(Subject::Tree(session, login, tree))
}

/// Looks up the session, if the request names one.
fn find_session(ctx: &mut RequestContext, related: bool) -> Result<Option<Found>, Failure> {
    let own = ctx.header.session_id;
    let chain = &mut ctx.compound.get_mut().chain;
    let id = match ctx.header.command {
        Command::Negotiate | Command::Cancel => own,
        // In a related request the identifier has no meaning, as always. It also must not name a session for which the
        // frame is not encrypted.
        Command::SessionSetup if !related => own,
        _ => chain.session_id(related, own)?,
    };
    let bound = ctx.connection.bound(id).filter(|bound| !bound.session.ended.is_set());
    let Some(Bound { session, channel }) = bound else {
        if ctx.operation.needs >= Needs::Session {
            chain.session_not_found();
        }
        return Ok(None);
    };
    let login = session.login();
    let logged_on = login.as_deref().map(Into::into);
    ctx.envelope = Envelope { session_id: Some(session.id), logged_on, channel, tree_id: None };
    Ok(Some(Found { session, login }))
}

/// 3.3.5.2.4: Verifying the Signature.
fn verify_signature(ctx: &RequestContext, found: Option<&Found>, message: &mut [u8]) -> Result<(), Failure> {
    let signed = ctx.header.flags.contains(HeaderFlags::SIGNED);
    match ctx.header.command {
        Command::Negotiate if signed => return Err(NtStatus::INVALID_PARAMETER.into()),
        // A binding is signed with the key of a session that is not on this connection. Its handler checks the
        // signature.
        Command::SessionSetup if found.is_none() => return Ok(()),
        _ => {}
    }
    if signed {
        found.ok_or(NtStatus::USER_SESSION_DELETED)?;
        let channel = ctx.envelope.channel.as_ref().and_then(|channel| channel.signing.as_ref());
        let key = channel.ok_or(NtStatus::NOT_SUPPORTED)?;
        return key.verify(message, Sender::Client).map_err(|_| NtStatus::ACCESS_DENIED.into());
    }
    let required = found.and_then(|found| found.login.as_ref()).is_some_and(|login| {
        // A reauthentication need not be encrypted, but a third party must not be able to inject one.
        let again = login.encrypt_data && ctx.header.command == Command::SessionSetup;
        login.signing_required || again
    });
    // A CANCEL without a signature can harm only its own connection, and clients send it so.
    if required && ctx.header.command != Command::Cancel {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    Ok(())
}

/// 3.3.5.2.9: Verifying the Session.
fn check_session(ctx: &RequestContext, found: Option<Found>) -> Result<(Arc<Session>, Arc<Login>), Failure> {
    let Found { session, login } = found.ok_or(NtStatus::USER_SESSION_DELETED)?;
    session.state.lock().rules.check_usable(ctx.operation.serves_expired, turn_clock::now())?;
    let login = login.ok_or(NtStatus::USER_SESSION_DELETED)?;
    if login.encrypt_data && !ctx.is_confidential() {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    Ok((session, login))
}

/// 3.3.5.2.11: Verifying the Tree Connect.
fn find_tree(ctx: &mut RequestContext, session: &Session, related: bool) -> Result<Arc<Tree>, Failure> {
    let own = ctx.header.tree_id().unwrap_or(0);
    let chain = &mut ctx.compound.get_mut().chain;
    let id = chain.tree_id(related, own)?;
    let Some(tree) = session.tree(id) else {
        chain.tree_not_found();
        return Err(NtStatus::NETWORK_NAME_DELETED.into());
    };
    ctx.envelope.tree_id = Some(tree.id);
    if tree.encrypt_data && !ctx.is_confidential() { Err(NtStatus::ACCESS_DENIED.into()) } else { Ok(tree) }
}

/// Checks whether a request may use its tree connect, under the share's current rules and from its address. A tree
/// connect that would be admitted differently now ends, with everything that was opened through it, and the client
/// connects again.
///
/// # Errors
/// STATUS_NETWORK_NAME_DELETED when the tree connect ends; STATUS_ACCESS_DENIED for a channel from an address that is
/// not admitted in the same way.
pub(crate) async fn check_tree(ctx: &OnShare<'_>) -> Result<(), Failure> {
    let (client, share, admitted) = (ctx.connection.peer.address, ctx.share, &ctx.tree.admitted);
    if admitted.holds(share, client.ip(), share.rules_generation()) {
        return Ok(());
    }
    if !admitted.is_let_in(share, ctx.login) {
        Box::pin(end(ctx.session, ctx.tree)).await;
        return Err(NtStatus::NETWORK_NAME_DELETED.into());
    }
    let of_channel = admission::admit(share, client, ctx.login);
    if of_channel == Some(admitted.admission) { Ok(()) } else { Err(NtStatus::ACCESS_DENIED.into()) }
}

/// Ends a tree connect, even if the request that requires this ends earlier.
async fn end(session: &Arc<Session>, tree: &Arc<Tree>) {
    let (session, tree) = (Arc::clone(session), Arc::clone(tree));
    let _ = tokio::task::spawn_local(async move { session.disconnect_tree(&tree).await }).await;
}
