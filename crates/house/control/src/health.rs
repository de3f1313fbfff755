//! Whether the server works as it should: `GET /healthz`.
//!
//! Nothing here asks a shard or a share's storage. Shards and stores record what they do, and these records are read. What is known
//! of replicas is in the state database, so the answer is made on a thread that may wait for it.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use share::{Alarm, Share, Shares, StoreHealth};

use crate::configuration::Reload;
use crate::replications::{Replication, ReplicationFigures};
use crate::served::{ServedShares, called};
use crate::snapshots::SnapshotFigures;

/// A shard that is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StuckShard {
    /// The number of the shard.
    pub shard: usize,
    /// How long it has been held up.
    pub silent: Duration,
}

/// Whether the server works as it should, and what keeps it from that: lines for people.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Health {
    /// Shards that are held up.
    shards: String,
    /// Shares whose storage does not answer.
    stores: String,
    /// Alarms: clients are served as far as the storage allows.
    alarms: String,
}

impl Health {
    /// Whether no shard is held up.
    #[must_use]
    pub fn shards_answer(&self) -> bool {
        self.shards.is_empty()
    }

    /// `ok`, `degraded` or `stuck`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.is_stuck(), self.alarms.is_empty()) {
            (true, _) => "stuck",
            (false, false) => "degraded",
            (false, true) => "ok",
        }
    }

    /// A line for each reason.
    #[must_use]
    pub fn reasons(&self) -> String {
        [self.shards.as_str(), &self.stores, &self.alarms].concat()
    }

    /// Notes what is wrong with these shares: those of a vserver, or (None) of the server itself.
    fn look_at(&mut self, vserver: Option<&str>, shares: &Shares) {
        for (_, name) in shares.awaited() {
            let name = called(vserver, name);
            let _ = writeln!(self.stores, "share {name}: its storage does not answer: it is not served yet");
        }
        for share in shares.iter() {
            let name = called(vserver, share.name());
            let store = share.store_health();
            if store.is_stuck {
                let _ = writeln!(self.stores, "share {name}: {}", stuck_store(&store));
            }
            if !share.ransomware_alarms().is_empty() {
                // The command is about shares of the server itself.
                let which = match vserver {
                    None => format!("`anabranch share alarms {name}`"),
                    Some(_) => "`anabranch status`".to_owned(),
                };
                let _ = writeln!(
                    self.alarms,
                    "share {name}: a client works as ransomware does: {which} says which"
                );
            }
            for alarm in share.alarms() {
                let _ = match alarm {
                    Alarm::Full | Alarm::ReadOnly => {
                        writeln!(self.alarms, "share {name}: its storage is {}", alarm.name())
                    }
                    Alarm::Moved => {
                        writeln!(self.alarms, "share {name}: its directory was renamed or replaced")
                    }
                };
            }
        }
    }

    fn is_stuck(&self) -> bool {
        !(self.shards.is_empty() && self.stores.is_empty())
    }

    /// The response: its status, and one word on the first line. Lines with the reasons follow.
    pub(crate) fn response(&self) -> (StatusCode, String) {
        let status = match self.is_stuck() {
            true => StatusCode::SERVICE_UNAVAILABLE,
            // A server that is degraded is reachable and does what it can, so a load balancer need not avoid it.
            false => StatusCode::OK,
        };
        (status, format!("{}\n{}", self.word(), self.reasons()))
    }
}

/// How long before its end a certificate is an alarm.
const CERTIFICATE_WARNING: Duration = Duration::from_secs(14 * 24 * 3600);

/// What matters beside shards and shares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concerns {
    /// Whether the configuration was read again in vain.
    pub is_reload_failed: bool,
    /// How long the certificate of the control address is valid, zero if it has expired; None: there is none.
    pub certificate_left: Option<Duration>,
    /// Whether NFS programs that are to be registered with rpcbind are not.
    pub is_unregistered: bool,
    /// The shares whose snapshot policies fail or are behind, with what is wrong.
    pub snapshots: Vec<(String, String)>,
    /// The replicas whose last transfer has failed, or that are behind, with what is wrong.
    pub replicas: Vec<(String, String)>,
    /// Whether it cannot be read which shares are replicas: these are not brought up to date then.
    pub are_replicas_unknown: bool,
}

impl Concerns {
    /// The concerns now.
    #[must_use]
    pub fn now(reload: &Reload, certificate_expires: Option<SystemTime>, now: SystemTime) -> Self {
        let left = |expires: SystemTime| expires.duration_since(now).unwrap_or_default();
        let certificate_left = certificate_expires.map(left);
        Self { is_reload_failed: !reload.last_succeeded, certificate_left, ..Self::default() }
    }

    /// The same, with what is wrong with snapshot policies.
    #[must_use]
    pub fn with_snapshots(self, figures: &[SnapshotFigures]) -> Self {
        let problem = |of: &SnapshotFigures| Some((of.share.clone(), of.problem.clone()?));
        Self { snapshots: figures.iter().filter_map(problem).collect(), ..self }
    }

    /// The same, with what is wrong with replicas. None: it is not known which there are.
    #[must_use]
    pub fn with_replicas(self, figures: Option<Vec<ReplicationFigures>>, now: SystemTime) -> Self {
        let Some(figures) = figures else { return Self { are_replicas_unknown: true, ..self } };
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let problem =
            |of: &ReplicationFigures| Some((of.share.clone(), replica_problem(&of.replication, now)?));
        Self { replicas: figures.iter().filter_map(problem).collect(), ..self }
    }
}

/// How many times as old as the time from one transfer to the next a replica may be. Twice as old it is usual.
const REPLICA_AGE_MAX: u64 = 3;

/// What is wrong with a replica at a time, in seconds of the Unix epoch. One that was broken off is as it was meant to be.
fn replica_problem(replica: &Replication, now: u64) -> Option<String> {
    if replica.state == "broken" {
        return None;
    }
    if replica.problem.is_some() {
        // The reason may have paths, and anybody may ask for the health.
        return Some("the last transfer to the replica has failed: its status says why".to_owned());
    }
    let age = now.saturating_sub(u64::try_from(replica.as_of?).unwrap_or(0));
    let is_behind = age > replica.every_seconds.saturating_mul(REPLICA_AGE_MAX);
    is_behind.then(|| {
        format!(
            "the replica is {age} s old, and is to be brought up to date every {} s",
            replica.every_seconds
        )
    })
}

/// What is to be said of a certificate that is valid for so long, if anything.
#[must_use]
pub fn certificate_warning(left: Duration) -> Option<String> {
    const DAY: u64 = 24 * 3600;
    match left.as_secs() {
        0 => Some("the certificate of the control address has expired".to_owned()),
        secs if left <= CERTIFICATE_WARNING => {
            let (days, hours) = (secs / DAY, secs % DAY / 3600);
            Some(format!("the certificate of the control address expires in {days} d {hours} h"))
        }
        _ => None,
    }
}

/// The health of a server with these shares and concerns, of whose shards these are held up.
#[must_use]
pub fn health(shards: &[StuckShard], shares: &ServedShares, concerns: Concerns) -> Health {
    let mut health = Health::default();
    if let Some(warning) = concerns.certificate_left.and_then(certificate_warning) {
        let _ = writeln!(health.alarms, "certificate: {warning}");
    }
    if concerns.is_reload_failed {
        health
            .alarms
            .push_str("configuration: it has mistakes, and the server goes on with the one before\n");
    }
    if concerns.is_unregistered {
        health.alarms.push_str(
            "portmap: NFS programs are not registered with rpcbind, the log says why: clients of NFSv3 do not find them\n",
        );
    }
    if concerns.are_replicas_unknown {
        health.alarms.push_str(
            "replicas: it cannot be read which there are, the log says why: they are not brought up to date\n",
        );
    }
    for (share, problem) in concerns.snapshots.iter().chain(&concerns.replicas) {
        let _ = writeln!(health.alarms, "share {share}: {problem}");
    }
    for StuckShard { shard, silent } in shards {
        let _ = writeln!(health.shards, "shard {shard}: held up for {} s", silent.as_secs());
    }
    for (vserver, table) in shares.tables() {
        health.look_at(vserver, table);
    }
    health
}

/// All alarms about a share, by the names used in metrics and the API.
pub(crate) const ALARMS: [&str; 5] = ["full", "read-only", "moved", "stuck", "ransomware"];

/// The alarm about the snapshot policy of a share, by the name used in the API.
pub const SNAPSHOTS_ALARM: &str = "snapshots";

/// The current alarms about a share: some of [`ALARMS`].
#[must_use]
pub fn alarms(share: &Share) -> Vec<&'static str> {
    let stuck = share.store_health().is_stuck.then_some("stuck");
    let ransomware = (!share.ransomware_alarms().is_empty()).then_some("ransomware");
    share.alarms().into_iter().map(Alarm::name).chain(stuck).chain(ransomware).collect()
}

fn stuck_store(health: &StoreHealth) -> String {
    let StoreHealth { under_way, waiting, longest, .. } = health;
    let calls = if *under_way == 1 { "call" } else { "calls" };
    let longest = longest.unwrap_or_default().as_secs();
    format!(
        "its storage does not answer: {under_way} {calls} under way, one for {longest} s, {waiting} waiting"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use share::{Call, Caller, Case, Identity, NewObject, Proof, Settings, ShareId, ShareTable};
    use storage::fault::{self, Fault, FaultyStore, Rule};
    use storage::memory::MemoryStore;

    use super::*;
    use crate::served::ServedVserver;

    fn of(shards: &[StuckShard], shares: &ServedShares, is_reload_failed: bool) -> (StatusCode, String) {
        health(shards, shares, Concerns { is_reload_failed, ..Concerns::default() }).response()
    }

    fn share(name: &str) -> Arc<Share> {
        Share::new(ShareId(1), Settings::new(name), Arc::new(MemoryStore::new()))
    }

    #[tokio::test]
    async fn a_store_that_is_full_or_read_only_is_named() {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let fail = |error| store.inject(Rule::once(fault::Call::Create, Fault::Fail(error)));
        fail(storage::Error::NoSpace);
        fail(storage::Error::ReadOnly);
        let data = Share::new(ShareId(1), Settings::new("data"), Arc::new(store));
        let table = ShareTable::new([Arc::clone(&data)]).unwrap();
        let create = crate::trace::operation("nfs3", "Create").unwrap();
        let root = Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated);
        let root = Call::new(create, root, std::time::Instant::now());
        root.needs_no_turn();
        for expected in ["share data: its storage is full\n", "share data: its storage is read-only\n"] {
            let new = NewObject {
                kind: storage::FileKind::Regular,
                target: Vec::new(),
                device: storage::Device { major: 0, minor: 0 },
                mode: 0o600,
                umask: 0,
                set: storage::SetAttributes::default(),
                want: storage::Want::empty(),
                security: None,
                mode_bounds: false,
            };
            data.create(&root, data.root(), b"f", Case::Sensitive, new).await.unwrap_err();
            let (status, text) = of(&[], &table.present().into(), false);
            assert_eq!(status, StatusCode::OK);
            assert!(text.starts_with("degraded\n") && text.contains(expected), "{text}");
        }
        assert_eq!(alarms(&data), ["full", "read-only"]);
    }

    #[test]
    fn a_share_of_a_vserver_is_named_with_it() {
        let (own, of_vserver) =
            (ShareTable::new([share("data")]).unwrap(), ShareTable::new([share("data")]).unwrap());
        let vserver = || ServedVserver { name: "files".to_owned(), shares: of_vserver.present() };
        let shares = || ServedShares { own: own.present(), vservers: vec![vserver()] };
        assert_eq!(of(&[], &shares(), false), (StatusCode::OK, "ok\n".to_owned()));
        of_vserver.await_store(ShareId(2), "late");
        let expected =
            "stuck\nshare late of the vserver files: its storage does not answer: it is not served yet\n";
        assert_eq!(of(&[], &shares(), false), (StatusCode::SERVICE_UNAVAILABLE, expected.to_owned()));
    }

    #[test]
    fn a_certificate_is_an_alarm_for_its_last_two_weeks() {
        let hours = |hours: u64| certificate_warning(Duration::from_secs(hours * 3600));
        assert_eq!((hours(24 * 14 + 1), hours(24 * 400)), (None, None));
        assert!(hours(24 * 14).unwrap().ends_with("expires in 14 d 0 h"));
        assert!(hours(25).unwrap().ends_with("expires in 1 d 1 h"));
        assert!(hours(0).unwrap().ends_with("has expired"));
        let reload = Reload { last_succeeded: true, ..Reload::default() };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let left = |expires| Concerns::now(&reload, Some(expires), now).certificate_left;
        assert_eq!(left(now - Duration::from_secs(9)), Some(Duration::ZERO));
        let concerns = Concerns::now(&reload, Some(now + Duration::from_secs(3600)), now);
        let (status, text) = health(&[], &ShareTable::new([]).unwrap().present().into(), concerns).response();
        let expected = "degraded\ncertificate: the certificate of the control address expires in 0 d 1 h\n";
        assert_eq!((status, text.as_str()), (StatusCode::OK, expected));
    }

    #[test]
    fn a_snapshot_policy_that_fails_is_an_alarm() {
        let figures = |problem: Option<&str>| SnapshotFigures {
            share: "data".to_owned(),
            problem: problem.map(str::to_owned),
            ..SnapshotFigures::default()
        };
        let said = |figures| {
            let concerns = Concerns::default().with_snapshots(&[figures]);
            health(&[], &ShareTable::new([]).unwrap().present().into(), concerns).response()
        };
        assert_eq!(said(figures(None)), (StatusCode::OK, "ok\n".to_owned()));
        let expected = "degraded\nshare data: it is behind\n";
        assert_eq!(said(figures(Some("it is behind"))), (StatusCode::OK, expected.to_owned()));
    }

    #[test]
    fn a_replica_that_fails_or_is_behind_is_an_alarm() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000);
        let said = |as_of, state: &str, problem: Option<&str>| {
            let replication = Replication {
                state: state.to_owned(),
                every_seconds: 600,
                as_of,
                problem: problem.map(str::to_owned),
                ..Replication::default()
            };
            let figures = ReplicationFigures { share: "copy".to_owned(), replication, received: 0 };
            let concerns = Concerns::default().with_replicas(Some(vec![figures]), now);
            health(&[], &ShareTable::new([]).unwrap().present().into(), concerns).response().1
        };
        assert_eq!(said(None, "mirrored", None), "ok\n", "the first transfer goes on");
        assert_eq!(said(Some(8200), "mirrored", None), "ok\n");
        let behind =
            "degraded\nshare copy: the replica is 1801 s old, and is to be brought up to date every 600 s\n";
        assert_eq!(said(Some(8199), "mirrored", None), behind);
        assert_eq!(said(Some(0), "broken", Some("gone")), "ok\n");
        let fails =
            "degraded\nshare copy: the last transfer to the replica has failed: its status says why\n";
        assert_eq!(said(Some(9999), "resync", Some("secret/plans: it is gone")), fails, "not where");
        assert_eq!(said(Some(20_000), "mirrored", None), "ok\n", "a clock that was set back");
        let unknown = Concerns::default().with_replicas(None, now);
        let text = health(&[], &ShareTable::new([]).unwrap().present().into(), unknown).response().1;
        assert!(text.starts_with("degraded\nreplicas: it cannot be read which there are"), "{text}");
    }

    #[test]
    fn what_is_held_up_is_named() {
        let table = ShareTable::new([share("data")]).unwrap();
        assert_eq!(of(&[], &table.present().into(), false), (StatusCode::OK, "ok\n".to_owned()));
        assert!(health(&[], &table.present().into(), Concerns::default()).shards_answer());
        let (status, text) = of(&[], &table.present().into(), true);
        assert!(status == StatusCode::OK && text.starts_with("degraded\nconfiguration: "), "{text}");
        let shard = StuckShard { shard: 1, silent: Duration::from_millis(7_900) };
        let (status, text) = of(&[shard], &table.present().into(), false);
        assert_eq!(
            (status, text.as_str()),
            (StatusCode::SERVICE_UNAVAILABLE, "stuck\nshard 1: held up for 7 s\n")
        );
        assert!(!health(&[shard], &table.present().into(), Concerns::default()).shards_answer());
        table.await_store(ShareId(2), "late");
        assert!(
            health(&[], &table.present().into(), Concerns::default()).shards_answer(),
            "a storage holds up no shard"
        );
        let expected = "stuck\nshare late: its storage does not answer: it is not served yet\n";
        assert_eq!(
            of(&[], &table.present().into(), false),
            (StatusCode::SERVICE_UNAVAILABLE, expected.to_owned())
        );
        let health =
            StoreHealth { under_way: 3, waiting: 9, longest: Some(Duration::from_secs(12)), is_stuck: true };
        assert_eq!(
            stuck_store(&health),
            "its storage does not answer: 3 calls under way, one for 12 s, 9 waiting"
        );
    }
}
