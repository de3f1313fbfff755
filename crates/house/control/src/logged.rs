//! What the access log says of calls of the API: those that change something, and those that are refused.

use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

use axum::http::{Method, StatusCode};
use axum::response::Response;
use share::{AccessLog, Actor, Event, Kind, Outcome};

use crate::tokens::{Bearer, Shown};

/// Among the extensions of a response: the name of what was created, which is not in the path.
#[derive(Debug, Clone)]
pub(crate) struct Concerned(pub(crate) String);

/// A call.
pub(crate) struct Called<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) peer: SocketAddr,
    /// None: the caller has shown no token of this server, and no password of an administrator.
    pub(crate) user: Option<&'a Bearer>,
}

/// Tells the access log of a call that began at this time.
pub(crate) fn call(log: &AccessLog, called: &Called<'_>, begun: Instant, response: &Response) {
    let (status, looks) = (response.status(), [Method::GET, Method::HEAD].contains(called.method));
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    if !log.wants(Kind::Administration) || looks && !is_refused {
        return;
    }
    let mut path = called.path.trim_start_matches('/').to_owned();
    if let Some(Concerned(name)) = response.extensions().get() {
        path = format!("{path}/{name}");
    }
    let outcome = match status {
        status if status.is_success() => Outcome::Done,
        status if status.is_server_error() => Outcome::Failed,
        _ => Outcome::Refused,
    };
    let took = begun.elapsed();
    log.write(&Event {
        kind: Kind::Administration,
        operation: called.method.as_str(),
        protocol: "http",
        share: None,
        path: Some(path.as_bytes()),
        new_path: None,
        who: Actor {
            user: called.user.map(|bearer| bearer.shown.name()),
            uid: None,
            authentication: called.user.map(|bearer| match bearer.shown {
                Shown::OwnToken | Shown::Token(_) => "Token",
                Shown::Password(_) => "Password",
            }),
        },
        from: Some(called.peer),
        outcome,
        status: status.canonical_reason().unwrap_or(status.as_str()),
        begun: SystemTime::now() - took,
        took,
    });
}
