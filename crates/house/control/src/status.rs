//! What is going on, in one answer: `/v1/status`.

use serde::{Deserialize, Serialize};

use crate::activity::ShareActivity;
use crate::metrics::Connected;
use crate::{About, Refusal, activity, health, ransomware};

/// The server, its shares and its clients at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// Seconds since the server started.
    pub uptime_seconds: u64,
    /// `ok`, `degraded` or `stuck`, as `/healthz` says.
    pub health: String,
    /// Why the server is not `ok`.
    pub reasons: Vec<String>,
    /// SMB sessions.
    pub smb_sessions: u64,
    /// Channels of the SMB sessions.
    pub smb_channels: u64,
    /// Addresses of NFS clients.
    pub nfs_clients: u64,
    /// Connections of NFS clients.
    pub nfs_connections: u64,
    /// Connections that were refused since the start, because too many were there already.
    pub refused_connections: u64,
    /// Logons over SMB that failed since the start.
    pub failed_logons: u64,
    /// Lines of the log that could not be written since the start.
    pub lost_log_lines: u64,
    /// The shares, by name.
    pub shares: Vec<ShareStatus>,
}

/// One share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareStatus {
    /// The name of the share.
    pub name: String,
    /// Whether clients can use it.
    pub served: bool,
    /// Why it is not served.
    pub problem: Option<String>,
    /// What is wrong with its storage: some of `full`, `read-only`, `moved`, `stuck`, `ransomware`.
    pub alarms: Vec<String>,
    /// What goes on in it; none if it is not served.
    pub activity: Option<ShareActivity>,
}

/// The status of the server.
///
/// # Errors
/// The state database cannot be read.
pub(crate) fn of(about: &About) -> Result<Status, Refusal> {
    let subject = &about.subject;
    let present = subject.shares.present();
    let health = health(&(subject.stuck_shards)(), &present, subject.concerns());
    let counters = (subject.counters)();
    let connected = Connected::from(&(subject.clients)());
    let share = |share: crate::shares::Share| ShareStatus {
        activity: present.by_name(&share.name).map(|served| activity::of_share(served)),
        name: share.name,
        served: share.served,
        problem: share.problem,
        alarms: share.alarms,
    };
    // Who they are is not for everybody, so it is not in the answer of /healthz.
    let suspects = present.iter().flat_map(|share| ransomware::reasons(share));
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: about.started.elapsed().as_secs(),
        health: health.word().to_owned(),
        reasons: health.reasons().lines().map(str::to_owned).chain(suspects).collect(),
        smb_sessions: connected.smb_sessions as u64,
        smb_channels: connected.smb_channels as u64,
        nfs_clients: connected.nfs_clients as u64,
        nfs_connections: connected.nfs_connections as u64,
        refused_connections: counters.refused_connections,
        failed_logons: counters.failed_logons,
        lost_log_lines: counters.lost_log_lines,
        shares: subject.administration.shares()?.shares.into_iter().map(share).collect(),
    })
}
