//! The shares that are replicas.

use super::{Text, escape};
use crate::replications::ReplicationFigures;

/// The states of a replica.
const STATES: [&str; 3] = ["mirrored", "broken", "resync"];

pub(super) fn write(text: &mut Text, figures: &[ReplicationFigures]) {
    let share = |of: &ReplicationFigures| format!("share=\"{}\"", escape(&of.share));
    let help = "When the source was as the replica is: its age is the time since then.";
    text.family("anabranch_replica_as_of_timestamp_seconds", "gauge", help);
    for of in figures {
        if let Some(as_of) = of.replication.as_of {
            text.line("", &share(of), as_of);
        }
    }
    let help = "Bytes of files that were received for a replica.";
    text.family("anabranch_replica_received_bytes_total", "counter", help);
    for of in figures {
        text.line("", &share(of), of.received);
    }
    let help = "Transfers to a replica since the server started that have failed.";
    text.family("anabranch_replica_failures_total", "counter", help);
    for of in figures {
        text.line("", &share(of), of.replication.failures);
    }
    text.family("anabranch_replica_state", "gauge", "1 for the state of a replica, 0 for the others.");
    for of in figures {
        for state in STATES {
            let labels = format!("{},state=\"{state}\"", share(of));
            text.line("", &labels, u8::from(of.replication.state == state));
        }
    }
}
