//! What the access log says of logons, and of tree connects that are refused: they concern no share that could log them.

use std::time::{Duration, Instant, SystemTime};

use net::turn_clock;
use share::{Actor, Event, Kind, Outcome, actor};
use smb_wire::{NtStatus, tree_connect};

use crate::context::{InSession, RequestContext};
use crate::front::FRONT;
use crate::server::Server;
use crate::state::session::Session;
use crate::status::{self, Failure};

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The client has asked for it.
    Logoff,
    /// Its last connection has ended.
    Disconnected,
    /// The client has begun another session in its place.
    Replaced,
    /// The client has failed to authenticate again.
    Refused,
    /// The administrator has ended it, or the user's account.
    Administered,
}

impl Ended {
    /// In the place of the name of an operation.
    fn name(self) -> &'static str {
        match self {
            Self::Logoff => "Logoff",
            Self::Disconnected => "Disconnect",
            Self::Replaced => "Replace",
            Self::Refused => "SessionSetup",
            Self::Administered => "End",
        }
    }
}

/// A logon that began at this time.
pub(crate) fn logon(ctx: &RequestContext, begun: Instant, who: Actor<'_>, status: NtStatus) {
    if !ctx.server.config.access_log.wants(Kind::Logon) {
        return;
    }
    let took = turn_clock::read().saturating_duration_since(begun);
    let event = Event { who, from: Some(ctx.connection.peer.address), ..event(Kind::Logon, "SessionSetup") };
    ctx.server.config.access_log.write(&ended(event, took, status));
}

/// The end of a session.
pub(crate) fn logoff(server: &Server, session: &Session, how: Ended) {
    if !server.config.access_log.wants(Kind::Logoff) {
        return;
    }
    let Some(login) = session.login() else { return };
    let (who, from) = (actor(&login.caller), Some(login.from));
    let event = Event { who, from, ..event(Kind::Logoff, how.name()) };
    server.config.access_log.write(&ended(event, Duration::ZERO, NtStatus::SUCCESS));
}

/// A TREE_CONNECT that began at this time and is refused.
pub(crate) fn refused_tree_connect(ctx: &InSession<'_>, begun: Instant, failure: &Failure) {
    let Some(operation) = ctx.operation.on_share.as_ref() else { return };
    if operation.kind != Some(Kind::Mount) || !ctx.server.config.access_log.wants(Kind::Mount) {
        return;
    }
    let path =
        tree_connect::Request::decode(&ctx.message).ok().and_then(|request| request.path.decode().ok());
    let share = path.as_deref().and_then(|path| path.rsplit('\\').next());
    let (who, from) = (actor(ctx.caller()), Some(ctx.connection.peer.address));
    let event = Event { share, who, from, ..event(Kind::Mount, operation.api.name) };
    let took = turn_clock::read().saturating_duration_since(begun);
    ctx.server.config.access_log.write(&ended(event, took, failure.status));
}

fn event(kind: Kind, operation: &'static str) -> Event<'static> {
    Event {
        kind,
        operation,
        protocol: FRONT.name,
        share: None,
        path: None,
        new_path: None,
        who: Actor::default(),
        from: None,
        outcome: Outcome::Done,
        status: "",
        begun: SystemTime::UNIX_EPOCH,
        took: Duration::ZERO,
    }
}

/// The event with this outcome, which it has just now.
fn ended<'a>(event: Event<'a>, took: Duration, status: NtStatus) -> Event<'a> {
    let outcome = status::outcome(status);
    let status = status.name().unwrap_or("STATUS_UNSUCCESSFUL");
    Event { outcome, status, begun: SystemTime::now() - took, took, ..event }
}
