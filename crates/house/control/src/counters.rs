//! What the server counts in addition to the calls of shares.

use std::time::Duration;

use share::HISTOGRAM_BUCKETS;

/// Counts since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Connections that were closed as soon as they came, because there were too many.
    pub refused_connections: u64,
    /// Lines of the log that could not be written.
    pub lost_log_lines: u64,
    /// SMB logons that succeeded.
    pub logons: u64,
    /// SMB logons that failed, for whatever reason.
    pub failed_logons: u64,
    /// SMB logons that were refused without being evaluated, because too many failures of their address were waiting.
    pub unheard_logons: u64,
    /// SMB logons by each mechanism.
    pub logons_by_mechanism: [MechanismLogons; 3],
    /// Lines that were written to the access log.
    pub access_log_lines: u64,
    /// Lines that a sink of the access log did not take in time.
    pub dropped_access_log_lines: u64,
    /// The contexts of NFS clients with tickets.
    pub contexts: ContextCounts,
}

/// The contexts of RPCSEC_GSS, with which NFS clients prove who their users are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextCounts {
    /// Those that are kept.
    pub present: usize,
    /// The most that are kept.
    pub max: usize,
    /// Those that have begun.
    pub begun: u64,
    /// Tickets for which none began.
    pub refused: u64,
    /// Those that clients wanted to use after the ticket had ended.
    pub expired: u64,
    /// Those that were dropped because there were too many.
    pub displaced: u64,
    /// Calls with krb5, krb5i and krb5p.
    pub calls: [u64; 3],
}

/// The questions to one source about one subject since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LookupCounts {
    /// `numbers`, `groups` or `names`.
    pub subject: &'static str,
    /// `directory` or `name-service`.
    pub source: &'static str,
    /// Answers that there is somebody.
    pub found: u64,
    /// Answers that there is nobody.
    pub absent: u64,
    /// Questions that the source could not answer.
    pub failed: u64,
    /// How often somebody waited for an answer in vain.
    pub timed_out: u64,
    /// How often somebody was not heard, because too many questions were on their way.
    pub refused: u64,
    /// How often somebody got an old answer, because no other came.
    pub stale_used: u64,
    /// Answers that are kept, and count.
    pub fresh: usize,
    /// Answers that are kept, and count only while no other comes.
    pub stale: usize,
    /// How long the source took, as [`share::bucket_limit`] has it.
    pub durations: [u64; HISTOGRAM_BUCKETS],
    /// The sum of these times.
    pub time: Duration,
}

/// SMB logons by one mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MechanismLogons {
    /// `kerberos`, `iakerb` or `ntlm`.
    pub mechanism: &'static str,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed after the mechanism was agreed on.
    pub failed: u64,
}

/// The connections of one protocol, with those of clients that have not identified themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupied {
    /// `smb`, `nfs` or `portmap`.
    pub protocol: &'static str,
    /// The connections that there are.
    pub connections: usize,
    /// The most that there can be.
    pub max: usize,
}

/// A counter in the form in which it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) count: u64,
}

impl Counters {
    /// All counters. docs/metrics.md describes each.
    pub(crate) fn all(&self) -> [Counter; 7] {
        [
            Counter {
                name: "anabranch_refused_connections_total",
                help: "Connections closed as soon as they came: there were too many.",
                count: self.refused_connections,
            },
            Counter {
                name: "anabranch_lost_log_lines_total",
                help: "Lines of the log that could not be written.",
                count: self.lost_log_lines,
            },
            Counter {
                name: "anabranch_logons_total",
                help: "SMB logons that succeeded.",
                count: self.logons,
            },
            Counter {
                name: "anabranch_failed_logons_total",
                help: "SMB logons that failed, for whatever reason.",
                count: self.failed_logons,
            },
            Counter {
                name: "anabranch_unheard_logons_total",
                help: "SMB logons refused unheard: too many failures of their address waited.",
                count: self.unheard_logons,
            },
            Counter {
                name: "anabranch_access_log_lines_total",
                help: "Lines written to the access log, in all its sinks.",
                count: self.access_log_lines,
            },
            Counter {
                name: "anabranch_dropped_access_log_lines_total",
                help: "Lines of the access log that a sink did not take in time.",
                count: self.dropped_access_log_lines,
            },
        ]
    }
}
