//! Contexts begin: RFC 2203 5.2.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use auth::{Identified, Identity as Known, Reason, RefusedTicket};
use krb5::{Accepted, Randomness, Request, Time};
use net::{Answer, Buffer, Origin};
use nfs_proto::gss::contexts::Handle;
use nfs_proto::gss::window::{SEQUENCE_WINDOW, Window};
use nfs_wire::gss::{ContextHandle, InitArgs, InitRes, Token, major};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Reader};
use parking_lot::Mutex;
use share::{Identity, Proof};
use zeroize::Zeroizing;

use super::{Context, KerberosKeys, User, now, random};
use crate::call::CallError;
use crate::connection::Connection;
use crate::reply;

/// The first components of the names of machines. rpc.gssd(8) shows a ticket of one of these, or of `HOST$`, for the superuser
/// of a client.
const MACHINES: [&str; 3] = ["host", "nfs", "root"];

/// A ticket for which no context begins.
struct Refusal {
    reason: Reason,
    client: Option<String>,
    service: Option<String>,
    /// What the client gets: a KRB-ERROR.
    token: Vec<u8>,
}

impl Refusal {
    fn of(accepted: &Accepted, reason: Reason) -> Self {
        let (client, service) = (Some(accepted.client.to_string()), Some(accepted.service.to_string()));
        Self { reason, client, service, token: Vec::new() }
    }
}

/// A client with a good ticket, who has no context yet.
struct Shown {
    accepted: Accepted,
    who: Who,
}

/// Who shows a ticket.
enum Who {
    Machine,
    Person(Identified),
}

/// Answers a call that begins a context.
pub(super) fn answer(connection: &Rc<Connection>, xid: u32, arguments: &[u8]) -> Result<Answer, CallError> {
    let gss = &connection.server.gss;
    // RFC 2203, erratum 4067, expects this of a server without RPCSEC_GSS.
    let keys = gss.keys().ok_or(AuthStatus::RejectedCredential)?;
    let mut reader = Reader::new(arguments);
    let InitArgs { token } = InitArgs::decode(&mut reader).map_err(|_| AcceptStatus::GarbageArgs)?;
    let shown = match accept(connection, &keys, token.0) {
        Ok(shown) => shown,
        Err(refusal) => return Ok(Answer::Now(refused(connection, xid, &refusal))),
    };
    let connection = Rc::clone(connection);
    let begin = async move {
        match begin(&connection, &keys, shown).await {
            Ok((context, handle, reply)) => Some(begun(xid, &context, &handle, &reply)),
            Err(refusal) => Some(refused(&connection, xid, &refusal)),
        }
    };
    Ok(Answer::Later(Box::pin(begin)))
}

fn refused(connection: &Connection, xid: u32, refusal: &Refusal) -> Buffer {
    connection.server.gss.counted.refused.fetch_add(1, Ordering::Relaxed);
    tell(connection, refusal);
    failed(xid, refusal)
}

fn accept(connection: &Connection, keys: &KerberosKeys, token: &[u8]) -> Result<Shown, Refusal> {
    let (gss, now) = (&connection.server.gss, now());
    let randomness =
        Randomness { confounder: random(), subkey: Zeroizing::new(random()), sequence_number: random() };
    let request = Request { token, now, channel: None, randomness: &randomness };
    let accepted = keys.acceptor.accept(&request, &gss.replays).map_err(|refused| Refusal {
        reason: Reason::Ticket(refused.reason),
        client: refused.client.map(|client| client.to_string()),
        service: refused.service.map(|service| service.to_string()),
        token: refused.reply.unwrap_or_default(),
    })?;
    // The acceptor allows for clocks that differ. A context that had ended when it began would be of no use.
    if accepted.end_time <= now {
        let reason = Reason::TicketEnded { seconds: now.seconds_after(accepted.end_time) };
        return Err(Refusal::of(&accepted, reason));
    }
    let who = if is_machine(&accepted.client) {
        Who::Machine
    } else {
        let identified = keys.mapping.identify(&accepted, &*keys.accounts);
        Who::Person(identified.map_err(|reason| Refusal::of(&accepted, reason))?)
    };
    Ok(Shown { accepted, who })
}

/// Begins the context. Waits if somebody must be asked for the numbers of the user.
async fn begin(
    connection: &Connection,
    keys: &KerberosKeys,
    shown: Shown,
) -> Result<(Arc<Context>, Handle, Vec<u8>), Refusal> {
    let Shown { accepted, who } = shown;
    let gss = &connection.server.gss;
    let user = user(keys, who).await.map_err(|reason| Refusal::of(&accepted, reason))?;
    let name = accepted.client.to_string();
    let messages = accepted.context.per_message();
    let messages = messages.map_err(|_| Refusal::of(&accepted, Reason::Ticket(krb5::Reason::Library)))?;
    let context = Arc::new(Context {
        number: gss.next.fetch_add(1, Ordering::Relaxed),
        name: name.into(),
        user,
        keys: messages,
        next_token: AtomicU64::new(accepted.context.sequence_number()),
        window: Mutex::new(Window::default()),
    });
    gss.counted.begun.fetch_add(1, Ordering::Relaxed);
    let (handle, address): (Handle, _) = (random(), Origin::from(connection.client));
    let ends = Time::as_unix(accepted.end_time);
    gss.contexts.lock().enter(handle, address, ends, Arc::clone(&context));
    tracing::debug!(peer = %connection.peer(), user = %context.name, "a context of RPCSEC_GSS begins");
    Ok((context, handle, accepted.reply))
}

async fn user(keys: &KerberosKeys, who: Who) -> Result<User, Reason> {
    let identified = match who {
        Who::Machine => return Ok(User::Machine),
        Who::Person(identified) => identified,
    };
    match identified.numbered(&*keys.accounts).await? {
        Known::Account(account) => {
            let proof = Proof::Ticket(account.name.as_str().into());
            let identity = Identity::unix(account.uid, account.gid, account.groups);
            Ok(User::Person(identity.with_sids(account.sid, []), proof))
        }
        Known::Domain(user) => {
            let proof = Proof::Ticket(user.name.as_str().into());
            let identity = Identity::unix(user.uid, user.gid, user.groups);
            let sids = user.group_sids.iter().copied();
            Ok(User::Person(identity.with_sids(Some(user.sid), sids), proof))
        }
        Known::Guest(_) | Known::Anonymous => Err(Reason::UnknownPrincipal),
    }
}

/// Whether a principal is that of a machine: `nfs/client.example.org`, `host/client.example.org`, `CLIENT$`.
fn is_machine(principal: &krb5::Principal) -> bool {
    let mut components = principal.components();
    match (components.next(), components.next(), components.next()) {
        (Some(account), None, None) => account.ends_with('$'),
        (Some(service), Some(_), None) => MACHINES.iter().any(|name| service.eq_ignore_ascii_case(name)),
        _ => false,
    }
}

/// RFC 2203 5.2.3.1: the verifier is the checksum of the window.
fn begun(xid: u32, context: &Context, handle: &Handle, token: &[u8]) -> Buffer {
    let mic = context.keys.mic(context.next_token(), &[&SEQUENCE_WINDOW.to_be_bytes()]);
    let verifier = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: mic.as_ref() };
    let result = InitRes {
        handle: ContextHandle(handle),
        major: major::COMPLETE,
        minor: 0,
        sequence_window: SEQUENCE_WINDOW,
        token: Token(token),
    };
    let body = ReplyBody::Accepted { verifier, status: AcceptStatus::Success };
    reply::reply(&Reply { xid, body }, &result)
}

/// RFC 2203 5.2.3.2: a context that does not begin has no handle, and the reply no verifier.
fn failed(xid: u32, refusal: &Refusal) -> Buffer {
    let major = match refusal.reason {
        Reason::Ticket(krb5::Reason::NotKerberos) => major::BAD_MECHANISM,
        Reason::Ticket(reason) => match reason.class() {
            krb5::ReasonClass::Malformed => major::DEFECTIVE_TOKEN,
            krb5::ReasonClass::Expired => major::CREDENTIALS_EXPIRED,
            krb5::ReasonClass::Clock
            | krb5::ReasonClass::Denied
            | krb5::ReasonClass::Keytab
            | krb5::ReasonClass::Busy => major::FAILURE,
        },
        Reason::TicketEnded { .. } => major::CREDENTIALS_EXPIRED,
        _ => major::FAILURE,
    };
    let (handle, token) = (ContextHandle(&[]), Token(&refusal.token));
    reply::success(xid, &InitRes { handle, major, minor: 0, sequence_window: 0, token })
}

fn tell(connection: &Connection, refusal: &Refusal) {
    let peer = connection.peer();
    let Refusal { reason, client, service, .. } = refusal;
    let (of, at) = ((client.clone(), service.clone()), SystemTime::now());
    let refused = RefusedTicket { client: of.0, service: of.1, reason: *reason, at };
    connection.server.gss.refused_tickets.lock().note(refused);
    let user = client.as_deref().unwrap_or_default();
    let service = service.as_deref().map(tracing::field::debug);
    match connection.server.gss.refused.admit_from(peer, "a ticket is refused") {
        Some(left_out) => {
            tracing::warn!(%peer, ?user, service, %reason, left_out, "authentication failed");
        }
        None => tracing::debug!(%peer, ?user, service, %reason, "authentication failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_known_by_their_names() {
        let is_machine =
            |components: &[&str]| is_machine(&krb5::Principal::new(components, "LAB.TEST").unwrap());
        for machine in
            [&["nfs", "client.lab.test"][..], &["host", "client"], &["root", "client"], &["CLIENT$"]]
        {
            assert!(is_machine(machine), "{machine:?}");
        }
        for person in [&["alice"][..], &["nfs"], &["alice", "admin"], &["nfs", "a", "b"], &["al$ice"]] {
            assert!(!is_machine(person), "{person:?}");
        }
    }
}
