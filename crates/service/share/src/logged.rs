//! What the access log says of operations.
//!
//! An operation notes in its [`Call`] what it does and to which path, where a share does it, and only if the log wants to know.
//! When it has ended, its front says how ([`Share::log`]).

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use access_log::{Actor, Event, Kind};
use accounting::Outcome;
use identity::Proof;
use storage::NodeRef;

use crate::deed::Deed;
use crate::{Call, Caller, File, Location, Open, Share, Terms};

/// The operation of the server itself that removes a name for a client that has gone.
const UNASKED: (&str, &str) = ("server", "Close");

/// How an operation was answered.
#[derive(Debug)]
pub struct Replied {
    /// The address from which the request came.
    pub from: SocketAddr,
    /// The outcome.
    pub outcome: Outcome,
    /// The status, by the name that the protocol has for it.
    pub status: Cow<'static, str>,
}

impl Share {
    /// Whether operations of this kind are written to the access log.
    #[inline]
    pub(crate) fn logs(&self, kind: Kind) -> bool {
        self.access_log().wants(kind) && !self.terms().contains(Terms::UNLOGGED)
    }

    /// Notes what the operation does, and to which path (and new path). It replaces what was noted before, except that what is
    /// created stays that if its permissions are set, too.
    #[inline]
    pub(crate) fn note(&self, call: &Call, kind: Kind, paths: impl FnOnce() -> (Vec<u8>, Option<Vec<u8>>)) {
        let is_part = kind == Kind::Permission && call.has_done();
        if self.logs(kind) && !is_part {
            let (path, new_path) = paths();
            call.does(Deed { kind: Some(kind), path: Some(self.in_view(path)), new_path });
        }
    }

    /// Notes the path that the operation is about, unless it is known already what it does.
    #[inline]
    pub(crate) fn note_path(&self, call: &Call, path: impl FnOnce() -> Vec<u8>) {
        if call.operation().kind.is_some_and(|kind| self.logs(kind)) && !call.has_done() {
            call.does(Deed { path: Some(self.in_view(path())), ..Deed::default() });
        }
    }

    /// Notes that an object was found that the operation opens. If it was to create the object, it has not.
    #[inline]
    pub(crate) fn note_found(&self, call: &Call, path: impl FnOnce() -> Vec<u8>) {
        if call.operation().kind == Some(Kind::Open) && self.logs(Kind::Open) && call.has_done() {
            call.does(Deed { path: Some(self.in_view(path())), ..Deed::default() });
        }
    }

    /// The path of an object as the log has it: that of an object of a snapshot begins with the snapshot's name.
    fn in_view(&self, path: Vec<u8>) -> Vec<u8> {
        match self.snapshot() {
            None => path,
            Some(snapshot) => [b".snapshot/", snapshot.name.as_bytes(), b"/", &path].concat(),
        }
    }

    /// Notes that the operation reads or writes this file.
    #[inline]
    pub(crate) fn note_use(&self, call: &Call, file: &File) {
        call.uses(file.used());
        self.note_path(call, || path_of(file.node()));
    }

    /// Notes what the operation was to do with an open object, unless it is known already: for what is refused before the share
    /// is asked.
    pub fn note_refused(&self, call: &Call, kind: Kind, open: &Open) {
        if !call.has_done() {
            self.note(call, kind, || (self.path_of_open(open), None));
        }
    }

    fn path_of_open(&self, open: &Open) -> Vec<u8> {
        self.location(open)
            .map_or_else(|| path_of(open.node()), |location| path_in(&location.parent, &location.name))
    }

    /// Writes an operation that has ended to the access log, if it is wanted there. `reply` is asked only then.
    #[inline]
    pub fn log(&self, call: &Call, reply: impl FnOnce() -> Replied) {
        if let Some(kind) = call.kind()
            && self.logs(kind)
        {
            self.write_event(kind, call, &reply());
        }
    }

    #[cold]
    fn write_event(&self, kind: Kind, call: &Call, reply: &Replied) {
        let Deed { path, new_path, .. } = call.deed();
        let (took, operation) = (call.begun().elapsed(), call.operation());
        self.access_log().write(&Event {
            kind,
            operation: operation.api.name,
            protocol: operation.front.name,
            share: Some(self.name()),
            path: path.as_deref(),
            new_path: new_path.as_deref(),
            who: actor(&call.caller),
            from: Some(reply.from),
            outcome: reply.outcome,
            status: &reply.status,
            begun: SystemTime::now() - took,
            took,
        });
    }

    /// Writes that a name was removed when the server closed an open whose client has gone.
    pub(crate) fn log_removed_unasked(&self, removed: &Location) {
        if !self.logs(Kind::Delete) {
            return;
        }
        let (protocol, operation) = UNASKED;
        self.access_log().write(&Event {
            kind: Kind::Delete,
            operation,
            protocol,
            share: Some(self.name()),
            path: Some(&path_in(&removed.parent, &removed.name)),
            new_path: None,
            who: Actor::default(),
            from: None,
            outcome: Outcome::Done,
            status: "Success",
            begun: SystemTime::now(),
            took: Duration::ZERO,
        });
    }
}

/// The caller in the words of the access log.
#[must_use]
pub fn actor(caller: &Caller) -> Actor<'_> {
    let (user, authentication) = match &caller.proof {
        Proof::Password(name) => (Some(&**name), "Password"),
        Proof::Ticket(name) => (Some(&**name), "Kerberos"),
        Proof::Stated => (None, "Stated"),
        Proof::Guest => (None, "Guest"),
    };
    Actor { user, uid: Some(caller.identity.uid()), authentication: Some(authentication) }
}

/// The path of an object, as far as its store knows it.
pub(crate) fn path_of(node: &NodeRef) -> Vec<u8> {
    node.path().unwrap_or_default()
}

/// The path of a name in a directory.
pub(crate) fn path_in(dir: &NodeRef, name: &[u8]) -> Vec<u8> {
    let mut path = path_of(dir);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
