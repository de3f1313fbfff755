//! What is going on, in one answer: `/v1/status`.

use serde::{Deserialize, Serialize};
use share::Shares;

use crate::activity::ShareActivity;
use crate::metrics::Connected;
use crate::{About, Refusal, ServedVserver, activity, health, ransomware};

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
    /// The shares, by name: those of the server itself, then those of each vserver.
    pub shares: Vec<ShareStatus>,
}

/// One share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareStatus {
    /// The vserver that has the share; none: the server itself.
    #[serde(default)]
    pub vserver: Option<String>,
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
    let concerns = subject.concerns();
    let counters = (subject.counters)();
    let connected = Connected::from(&(subject.clients)());
    let own = subject.administration.shares()?.shares;
    // From here on nothing waits: a vserver cannot end meanwhile.
    let served = subject.served();
    let health = health(&(subject.stuck_shards)(), &served, concerns);
    let own = own.into_iter().map(|share| of_server(&served.own, share));
    // Who they are is not for everybody, so it is not in the answer of /healthz.
    let suspects = served
        .tables()
        .flat_map(|(vserver, table)| table.iter().flat_map(move |share| ransomware::reasons(vserver, share)));
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
        shares: own.chain(served.vservers.iter().flat_map(of_vserver)).collect(),
    })
}

/// A share of the server itself. It is among those that are served, or is not served.
fn of_server(served: &Shares, share: crate::shares::Share) -> ShareStatus {
    ShareStatus {
        vserver: None,
        activity: served.by_name(&share.name).map(|served| activity::of_share(served)),
        name: share.name,
        served: share.served,
        problem: share.problem,
        alarms: share.alarms,
    }
}

/// The shares of a vserver.
fn of_vserver(vserver: &ServedVserver) -> impl Iterator<Item = ShareStatus> {
    vserver.shares.in_order().into_iter().map(move |share| ShareStatus {
        vserver: Some(vserver.name.clone()),
        name: share.name().to_owned(),
        served: true,
        problem: None,
        alarms: health::alarms(&share).into_iter().map(str::to_owned).collect(),
        activity: Some(activity::of_share(&share)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use share::{Settings, Share, ShareId, ShareTable};
    use storage::memory::MemoryStore;

    use super::*;

    #[test]
    fn shares_of_a_vserver_are_told_with_it() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        share.set_plan("custom iops=500".parse().unwrap(), std::time::SystemTime::now()).unwrap();
        let table = ShareTable::new([share]).unwrap();
        let vserver = ServedVserver { name: "files".to_owned(), shares: table.present() };
        let told: Vec<_> = of_vserver(&vserver).collect();
        let [ShareStatus { vserver, name, served, alarms, activity, .. }] = &*told else {
            panic!("{told:?}")
        };
        assert_eq!((vserver.as_deref(), name.as_str(), *served), (Some("files"), "data", true));
        let activity = activity.as_ref().unwrap();
        assert!(alarms.is_empty() && activity.limits.get("iops") == Some(&500), "{activity:?}");
    }
}
