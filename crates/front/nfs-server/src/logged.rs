//! What the access log says of NFSv4 clients: the nearest that NFS has to a logon is a client that creates a session,
//! or that NFSv4.0 knows from now on.

use std::time::{Instant, SystemTime};

use nfs_wire::v4::status::Status;
use share::{Actor, Event, Kind, Outcome};

use crate::call::Request;
use crate::credentials::Sender;
use crate::front::NFS4;
use crate::status;

/// An operation by which a client introduces itself, and that began at this time. None: it has succeeded.
pub(crate) fn logon(request: &Request<'_>, operation: &'static str, begun: Instant, failed: Option<Status>) {
    let log = &request.connection.server.access_log;
    if !log.wants(Kind::Logon) {
        return;
    }
    let took = begun.elapsed();
    log.write(&Event {
        kind: Kind::Logon,
        operation,
        protocol: NFS4.name,
        share: None,
        path: None,
        new_path: None,
        who: Actor {
            user: match &request.sender {
                Sender::Proved(context) => Some(&context.name),
                Sender::Anonymous | Sender::Stated(_) => None,
            },
            uid: request.sender.uid(),
            authentication: Some(match &request.sender {
                Sender::Proved(_) => "Kerberos",
                Sender::Anonymous | Sender::Stated(_) => "Stated",
            }),
        },
        from: Some(request.connection.peer()),
        outcome: failed.map_or(Outcome::Done, status::v4_outcome),
        status: &status::v4_name(failed),
        begun: SystemTime::now() - took,
        took,
    });
}
