//! SESSION_SETUP. [MS-SMB2] 3.3.5.5.

mod binding;
mod hold_back;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use auth::{Acceptor, Authenticated, Identity, Mechanism, Nonces};
use net::{Buffer, turn_clock};
use share::{Caller, Client, Opener, Proof};
use smb_proto::negotiate::Negotiated;
use smb_proto::preauth::PreauthHash;
use smb_proto::session::{Again, Principal, Protection, Session as Rules, SessionCrypto, State};
use smb_wire::session_setup::{Request, RequestFlags, Response, SecurityMode, SessionFlags};
use smb_wire::{Command, Guid, NtStatus};

use self::hold_back::{Authentication, hold_back};
use crate::connection::Setup;
use crate::context::RequestContext;
use crate::logged::{self, Ended};
use crate::login::{Login, Owner};
use crate::operation::{Effect, Operation};
use crate::server::{now, random};
use crate::state::session::Session;
use crate::status::Failure;

/// The properties of SESSION_SETUP.
pub(crate) const OPERATION: Operation =
    Operation { effect: Effect::Finished, answer_bytes: 16, ..Operation::of(Command::SessionSetup) };

/// Answers the request. `named` is the session that it names, if it exists.
pub(crate) async fn handle(
    ctx: &mut RequestContext,
    named: Option<&Arc<Session>>,
    request: Request<'_>,
) -> Result<Buffer, Failure> {
    let begun = turn_clock::now();
    let connection = Rc::clone(&ctx.connection);
    let negotiated = connection.negotiated.get().ok_or(NtStatus::INVALID_PARAMETER)?;
    if connection.endpoint.ended.is_set() {
        // The request follows one that was finished without the connection. No code would end a session that begins
        // here.
        return Err(NtStatus::USER_SESSION_DELETED.into());
    }
    // 3.3.5.5, steps 1 and 2
    if ctx.server.config.encryption == Protection::Required && negotiated.cipher.is_none() {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    // Step 3, step 4
    let session = if ctx.header.session_id == 0 && !ctx.is_related() {
        begin(ctx, negotiated)?
    } else if request.flags.contains(RequestFlags::BINDING) {
        return binding::handle(ctx, negotiated, named, &request).await;
    } else {
        Arc::clone(named.ok_or(NtStatus::USER_SESSION_DELETED)?)
    };
    let setup = take_setup(ctx, &session);
    let Setup { acceptor, mut preauth, .. } = setup;
    preauth.update(&ctx.message);
    let outcome = acceptor.step(request.security_buffer, &*ctx.server.accounts);
    match hold_back(ctx, begun, outcome).await {
        Ok(Authentication::Continue(reply, next)) => {
            let setup = Setup { session_id: session.id, binding: false, preauth, acceptor: next };
            ctx.connection.setups.borrow_mut().push(setup);
            ctx.compound.borrow_mut().chain.generated_session(session.id);
            ctx.set_status(NtStatus::MORE_PROCESSING_REQUIRED);
            respond(ctx, SessionFlags::empty(), &reply)
        }
        Ok(Authentication::Done(authenticated)) => {
            let established = match establish(ctx, &session, &request, &authenticated, &preauth) {
                Ok(_) if !is_still_let_in(ctx, &authenticated.identity) => {
                    Err(NtStatus::LOGON_FAILURE.into())
                }
                established => established,
            };
            let status =
                established.as_ref().map_or_else(|failure: &Failure| failure.status, |_| NtStatus::SUCCESS);
            tell_logon(ctx, begun, &authenticated, status);
            match established {
                Ok(flags) => {
                    end_previous(ctx, &session, request.previous_session_id).await;
                    ctx.compound.borrow_mut().chain.generated_session(session.id);
                    respond(ctx, flags, &authenticated.reply)
                }
                Err(failure) => {
                    abandon(ctx, &session).await;
                    Err(failure)
                }
            }
        }
        Err(refusal) => {
            abandon(ctx, &session).await;
            Err(refusal.into())
        }
    }
}

/// 3.3.5.5.1: Authenticating a New Session.
fn begin(ctx: &mut RequestContext, negotiated: &Negotiated) -> Result<Arc<Session>, Failure> {
    let limits = &ctx.server.config.limits;
    let rules = Rules::begin(ctx.server.session_id(), negotiated, limits.channels_per_session_max);
    let session = Session::new(rules, limits);
    ctx.connection.add_session(&session)?;
    ctx.envelope.session_id = Some(session.id);
    Ok(session)
}

/// The authentication of this session that is under way, or a new one. 3.3.5.5.2: Reauthenticating an Existing Session.
fn take_setup(ctx: &RequestContext, session: &Arc<Session>) -> Setup {
    let mut setups = ctx.connection.setups.borrow_mut();
    if let Some(index) = setups.iter().position(|setup| !setup.binding && setup.session_id == session.id) {
        return setups.swap_remove(index);
    }
    let rules = &mut session.state.lock().rules;
    if rules.state != State::InProgress {
        rules.reauthenticate();
    }
    let again = rules.crypto.is_some();
    Setup {
        session_id: session.id,
        binding: false,
        preauth: ctx.connection.preauth.get(),
        acceptor: new_acceptor(ctx, if again { ctx.server.acceptor_again() } else { ctx.server.acceptor() }),
    }
}

fn new_acceptor(ctx: &RequestContext, config: Arc<auth::Config>) -> Acceptor {
    let nonces = Nonces {
        server_challenge: random(),
        confounder: random(),
        subkey: random(),
        sequence_number: random(),
        kdc: std::array::from_fn(|_| kdc::Randomness::new(random(), random(), random())),
    };
    Acceptor::new(config, nonces, now().0).through(ctx.connection.tls_channel())
}

/// 3.3.5.5.3, after success: the session becomes valid.
fn establish(
    ctx: &mut RequestContext,
    session: &Arc<Session>,
    request: &Request<'_>,
    authenticated: &Authenticated,
    preauth: &PreauthHash,
) -> Result<SessionFlags, Failure> {
    let negotiated = ctx.connection.negotiated.get().ok_or(NtStatus::INVALID_PARAMETER)?;
    let (principal, user, caller) = who(authenticated, &ctx.server.config.guest, client(ctx));
    let owner = Owner::of(&authenticated.identity);
    let expiration = authenticated.expires.map(instant);
    let counted = counted_user(principal, &user);
    let caller = caller.counted_for_user(counted).counted_for(opener(ctx));
    let caller = caller.from_address(ctx.connection.peer.address.ip().to_canonical());
    let mut state = session.state.lock();
    if let Some(before) = state.login.clone() {
        // 3.3.5.5.2: keys and protection stay the same, even for another user. A session without keys gets none.
        if before.crypto.is_none() && principal != before.principal {
            return Err(NtStatus::ACCESS_DENIED.into());
        }
        let again = match principal {
            _ if owner.is(&before.owner) => Again::Owner,
            Principal::Anonymous => Again::Nobody,
            Principal::User | Principal::Guest => Again::Another,
        };
        state.rules.authenticated_again(again, expiration, turn_clock::now())?;
        // A session with an end goes on to belong to the user who can renew it.
        let owner = if state.rules.expiration.is_some() { before.owner.clone() } else { owner };
        let mechanism = authenticated.mechanism;
        let expires = authenticated.expires.map(end);
        let renewed = Login { user, owner, caller, principal, mechanism, expires, ..(*before).clone() };
        state.login = Some(Arc::new(renewed));
        return Ok(session_flags(ctx, &before));
    }
    let crypto = match principal {
        Principal::User => {
            let key = authenticated.session_key.as_bytes();
            let made = SessionCrypto::new(negotiated, session.id, key, preauth, random());
            Some(Arc::new(made.map_err(|_| NtStatus::INTERNAL_ERROR)?))
        }
        Principal::Guest | Principal::Anonymous => None,
    };
    let config = &ctx.server.config;
    let requires_signing = negotiated.client_requires_signing()
        || request.security_mode.contains(SecurityMode::SIGNING_REQUIRED);
    if crypto.is_none() && (requires_signing || config.encryption == Protection::Required) {
        // Without a key, messages can be neither signed nor encrypted. The server requires signatures only of sessions
        // with a key.
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    // The session is entered only now: failed logons take no room from successful ones.
    ctx.server.add_session(session, counted, ctx.connection.peer.address.ip())?;
    state.rules.authenticated(principal, crypto.clone(), requires_signing, config.signing, config.encryption);
    state.rules.expiration = expiration;
    let channel = state.rules.add_first_channel(ctx.connection.id).map_err(|_| NtStatus::INTERNAL_ERROR)?;
    state.endpoints.push(Arc::clone(&ctx.connection.endpoint));
    let login = Arc::new(Login {
        user,
        owner,
        from: ctx.connection.peer.address,
        since: SystemTime::now(),
        mechanism: authenticated.mechanism,
        expires: authenticated.expires.map(end),
        caller,
        principal,
        signing_required: state.rules.signing_required,
        encrypt_data: state.rules.encrypt_data,
        crypto,
    });
    state.login = Some(Arc::clone(&login));
    drop(state);
    ctx.connection.set_channel(session.id, &channel);
    let flags = session_flags(ctx, &login);
    ctx.server.guesses.note_success(authenticated.mechanism);
    let peer = ctx.connection.peer.address;
    if let Some(left_out) = ctx.server.repeats.admit_from(peer, "session begins") {
        tracing::info!(%peer, user = ?login.user, ?principal, left_out, "session begins");
    }
    ctx.envelope.logged_on = Some((&*login).into());
    ctx.envelope.channel = Some(channel);
    Ok(flags)
}

/// Tells the access log how the logon of a user ended who has proved who it is.
fn tell_logon(ctx: &RequestContext, begun: Instant, authenticated: &Authenticated, status: NtStatus) {
    let (_, _, caller) = who(authenticated, &ctx.server.config.guest, client(ctx));
    logged::logon(ctx, begun, share::actor(&caller), status);
}

/// The moment at which this time, in units of 100 ns since 1601, will have come. It is fixed from now on, even if the
/// clock of the machine is set.
fn instant(time: u64) -> Instant {
    let left = Duration::from_nanos(time.saturating_sub(now().0).saturating_mul(100));
    let now = turn_clock::read();
    now.checked_add(left).unwrap_or(now)
}

/// The same moment by the clock of the machine, for people.
fn end(time: u64) -> SystemTime {
    let left = Duration::from_nanos(time.saturating_sub(now().0).saturating_mul(100));
    let now = SystemTime::now();
    now.checked_add(left).unwrap_or(now)
}

/// Whether the account was not removed or disabled while its user logged on. The code that ended the user's sessions
/// may not have seen this one.
fn is_still_let_in(ctx: &RequestContext, identity: &Identity) -> bool {
    let Identity::Account(account) = identity else { return true };
    ctx.server.accounts.find(&account.name).is_some_and(|account| !account.disabled)
}

/// The user of an identity. A client without a name is `nobody` to the shares.
fn who(
    authenticated: &Authenticated,
    nobody: &share::Identity,
    client: Client,
) -> (Principal, String, Caller) {
    let caller = |account: &auth::Account| {
        share::Identity::unix(account.uid, account.gid, account.groups.clone()).with_sids(account.sid, [])
    };
    let proof = |name: &str| match authenticated.mechanism {
        Mechanism::Ntlm => Proof::Password(name.into()),
        Mechanism::Kerberos | Mechanism::Iakerb => Proof::Ticket(name.into()),
    };
    let (principal, user, identity, proof) = match &authenticated.identity {
        Identity::Account(account) => {
            (Principal::User, account.name.clone(), caller(account), proof(&account.name))
        }
        Identity::Domain(user) => {
            let identity = share::Identity::unix(user.uid, user.gid, user.groups.clone())
                .with_sids(Some(user.sid), user.group_sids.iter().copied());
            (Principal::User, user.name.clone(), identity, proof(&user.name))
        }
        Identity::Guest(account) => (Principal::Guest, account.name.clone(), caller(account), Proof::Guest),
        Identity::Anonymous => (Principal::Anonymous, String::new(), nobody.clone(), Proof::Guest),
    };
    (principal, user, Caller::new(identity, proof).at(client))
}

/// The user for whom sessions and opens are counted; all guests are one.
fn counted_user(principal: Principal, user: &str) -> Opener {
    match principal {
        Principal::User => Opener::named(("user", user)),
        Principal::Guest | Principal::Anonymous => Opener::named("guests"),
    }
}

/// The client for which opens are counted. Others may see its GUID in transit, so a client that uses the GUID from
/// another address is another one.
fn opener(ctx: &RequestContext) -> Opener {
    Opener::named(("client", client(ctx), ctx.connection.peer.address.ip().to_canonical()))
}

/// The machine of the client: its GUID, or its address if it has none.
fn client(ctx: &RequestContext) -> Client {
    let guid = ctx.connection.negotiated.get().map(|negotiated| negotiated.client_guid);
    match guid {
        Some(guid) if guid != Guid::ZERO => Client::Guid(guid.0),
        _ => Client::Address(ctx.connection.peer.address.ip().to_canonical()),
    }
}

fn session_flags(ctx: &RequestContext, login: &Login) -> SessionFlags {
    let mut flags = SessionFlags::empty();
    flags.set(SessionFlags::IS_GUEST, login.principal == Principal::Guest);
    flags.set(SessionFlags::IS_NULL, login.principal == Principal::Anonymous);
    flags.set(SessionFlags::ENCRYPT_DATA, login.encrypt_data && !ctx.connection.is_secured());
    flags
}

/// 3.3.5.5.3: ends the session that this one replaces, if it belongs to the same user. A guest cannot show that it is
/// the same.
async fn end_previous(ctx: &RequestContext, session: &Arc<Session>, previous_id: u64) {
    if previous_id == 0 || previous_id == session.id {
        return;
    }
    let Some(previous) = ctx.server.session(previous_id) else { return };
    let owner = |session: &Session| session.login().map_or(Owner::Unproven, |login| login.owner.clone());
    if owner(&previous).is(&owner(session)) {
        ctx.server.remove_session(previous_id, Ended::Replaced);
        previous.end(&ctx.server.durable).await;
    }
}

/// 3.3.5.5.3: ends the session after a failed authentication, even a repeated one.
async fn abandon(ctx: &RequestContext, session: &Arc<Session>) {
    ctx.server.remove_session(session.id, Ended::Refused);
    ctx.connection.remove_session(session.id);
    session.end(&ctx.server.durable).await;
}

fn respond(ctx: &RequestContext, session_flags: SessionFlags, token: &[u8]) -> Result<Buffer, Failure> {
    let mut reply = ctx.reply_with(token.len());
    reply.append_with(|bytes, _| Response { session_flags, security_buffer: token }.encode(bytes))?;
    Ok(reply)
}
