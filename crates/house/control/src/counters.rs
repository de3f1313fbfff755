//! What the server counts in addition to the calls of shares.

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
