//! A further channel: binds a connection to a session that began on another one. [MS-SMB2] 3.3.5.5, step 4, and
//! 3.3.5.5.3.
//!
//! A failure here affects only this connection; the session and its channels continue.

use std::sync::Arc;

use auth::{Authenticated, Mechanism};
use net::{Buffer, turn_clock};
use smb_proto::channel::Channel;
use smb_proto::negotiate::Negotiated;
use smb_proto::preauth::PreauthHash;
use smb_proto::session::{BindingRefusal, SessionCrypto};
use smb_proto::signing::Sender;
use smb_wire::session_setup::{Request, SessionFlags};
use smb_wire::{HeaderFlags, NtStatus};

use super::hold_back::{Authentication, hold_back};
use super::{new_acceptor, respond};
use crate::connection::Setup;
use crate::context::RequestContext;
use crate::login::Owner;
use crate::state::session::Session;
use crate::status::Failure;

/// The result of a request.
enum Bound {
    /// The client must continue, with this token.
    Continue(Vec<u8>),
    /// The connection is a channel of the session; the client gets this token.
    Done(Arc<Channel>, Vec<u8>, Mechanism),
}

/// Why a binding failed.
struct Refused {
    reason: BindingRefusal,
    status: NtStatus,
}

impl From<BindingRefusal> for Refused {
    fn from(reason: BindingRefusal) -> Self {
        Self { reason, status: reason.status() }
    }
}

/// Answers a request with SMB2_SESSION_FLAG_BINDING. `named` is the session that it names, if that already has this
/// connection.
pub(super) async fn handle(
    ctx: &mut RequestContext,
    negotiated: &Negotiated,
    named: Option<&Arc<Session>>,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    if !ctx.server.config.offers_multichannel() {
        return Err(BindingRefusal::NotMultichannel.status().into());
    }
    let session = ctx.server.session(ctx.header.session_id).filter(|session| !session.ended.is_set());
    let session = session.ok_or(NtStatus::USER_SESSION_DELETED)?;
    let signer = if named.is_none() { session_signer(ctx, &session) } else { None };
    match bind(ctx, negotiated, request, &session, signer.is_some()).await {
        Ok(Bound::Done(channel, token, mechanism)) => {
            ctx.envelope.channel = Some(channel);
            ctx.server.guesses.note_success(mechanism);
            let (peer, kind) = (ctx.connection.peer.address, "a channel joins its session");
            if let Some(left_out) = ctx.server.repeats.admit_from(peer, kind) {
                let channels = session.channel_count();
                tracing::info!(%peer, session = session.id, channels, left_out, "{kind}");
            }
            respond(ctx, SessionFlags::empty(), &token)
        }
        Ok(Bound::Continue(token)) => {
            if signer.is_some() {
                ctx.envelope.channel = signer;
            }
            ctx.set_status(NtStatus::MORE_PROCESSING_REQUIRED);
            respond(ctx, SessionFlags::empty(), &token)
        }
        Err(Refused { reason, status }) => {
            if signer.is_some() {
                ctx.envelope.channel = signer;
            }
            let times = session.binding_refused(reason);
            if times.is_power_of_two() {
                let (peer, session) = (ctx.connection.peer.address, session.id);
                tracing::warn!(%peer, session, times, "a channel is refused: {reason}");
            }
            Err(status.into())
        }
    }
}

/// The session's key, which signs the replies until the channel has its own key, 3.3.4.1.1. `None` unless the request
/// is signed with it; otherwise the session is noted as that of the request. (With AES-GMAC this can use a nonce that
/// the first connection has used with the same key, because connections use the same MessageIds. The protocol demands
/// it.)
fn session_signer(ctx: &mut RequestContext, session: &Arc<Session>) -> Option<Arc<Channel>> {
    if !ctx.header.flags.contains(HeaderFlags::SIGNED) {
        return None;
    }
    let login = session.login()?;
    let crypto = login.crypto.as_ref()?;
    verify(ctx, crypto).ok()?;
    let algorithm = crypto.signing.algorithm();
    let signer = Channel::first(ctx.connection.id, algorithm, &crypto.keys.signing).ok()?;
    ctx.envelope.session_id = Some(session.id);
    ctx.envelope.logged_on = Some((&*login).into());
    Some(Arc::new(signer))
}

fn verify(ctx: &RequestContext, crypto: &SessionCrypto) -> Result<(), BindingRefusal> {
    let mut message = ctx.message.to_vec();
    crypto.signing.verify(&mut message, Sender::Client).map_err(|_| BindingRefusal::Signature)
}

/// Performs one step of a binding, if the session allows it.
async fn bind(
    ctx: &RequestContext,
    negotiated: &Negotiated,
    request: &Request<'_>,
    session: &Arc<Session>,
    verified: bool,
) -> Result<Bound, Refused> {
    let signed = ctx.header.flags.contains(HeaderFlags::SIGNED);
    let setup = take_setup(ctx, session.id);
    session.state.lock().rules.check_binding(ctx.connection.id, negotiated, signed, turn_clock::now())?;
    if !verified {
        return Err(BindingRefusal::Signature.into());
    }
    let Setup { acceptor, mut preauth, .. } = setup.map_or_else(|| begin(ctx, session), Ok)?;
    preauth.update(&ctx.message);
    let outcome = acceptor.step(request.security_buffer, &*ctx.server.accounts);
    match hold_back(ctx, turn_clock::now(), outcome).await {
        Ok(Authentication::Continue(reply, next)) => {
            let setup = Setup { session_id: session.id, binding: true, preauth, acceptor: next };
            ctx.connection.setups.borrow_mut().push(setup);
            Ok(Bound::Continue(reply))
        }
        Ok(Authentication::Done(authenticated)) => {
            let channel = join(ctx, negotiated, session, &authenticated, &preauth)?;
            Ok(Bound::Done(channel, authenticated.reply, authenticated.mechanism))
        }
        Err(status) => Err(Refused { reason: BindingRefusal::Authentication, status }),
    }
}

/// The binding to this session that is under way on this connection.
fn take_setup(ctx: &RequestContext, session_id: u64) -> Option<Setup> {
    let mut setups = ctx.connection.setups.borrow_mut();
    let index = setups.iter().position(|setup| setup.binding && setup.session_id == session_id)?;
    Some(setups.swap_remove(index))
}

/// A new binding. Its preauthentication hash continues that of the connection.
fn begin(ctx: &RequestContext, session: &Session) -> Result<Setup, Refused> {
    let mut setups = ctx.connection.setups.borrow_mut();
    setups.retain(|setup| !setup.binding || ctx.server.session(setup.session_id).is_some());
    let bindings = setups.iter().filter(|setup| setup.binding).count();
    if bindings >= ctx.server.config.limits.logons_per_connection_max {
        return Err(BindingRefusal::TooManyChannels.into());
    }
    Ok(Setup {
        session_id: session.id,
        binding: true,
        preauth: ctx.connection.preauth.get(),
        acceptor: new_acceptor(ctx, ctx.server.acceptor()),
    })
}

/// Makes the connection a channel after a successful authentication, if the user is that of the session.
fn join(
    ctx: &RequestContext,
    negotiated: &Negotiated,
    session: &Arc<Session>,
    authenticated: &Authenticated,
    preauth: &PreauthHash,
) -> Result<Arc<Channel>, Refused> {
    let conn = &ctx.connection;
    let login = session.login().ok_or(BindingRefusal::Ended)?;
    if !Owner::of(&authenticated.identity).is(&login.owner) {
        return Err(BindingRefusal::User.into());
    }
    let channel = Channel::bind(
        conn.id,
        negotiated.dialect,
        negotiated.signing_algorithm,
        authenticated.session_key.as_bytes(),
        preauth,
    );
    let channel = channel
        .map_err(|_| Refused { reason: BindingRefusal::Signature, status: NtStatus::INTERNAL_ERROR })?;
    conn.add_session(session).map_err(|_| BindingRefusal::TooManyChannels)?;
    match session.bind(channel, &conn.endpoint) {
        Ok(channel) => {
            conn.set_channel(session.id, &channel);
            Ok(channel)
        }
        Err(reason) => {
            conn.remove_session(session.id);
            Err(reason.into())
        }
    }
}
