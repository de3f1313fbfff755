//! Whether the server works as it should: `GET /healthz`.
//!
//! Nothing here touches a disk or asks a shard. Shards and stores record what they do, and these records are read.

use std::fmt::Write;
use std::time::Duration;

use axum::http::StatusCode;
use share::{Alarm, Share, Shares, StoreHealth};

/// A shard that is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StuckShard {
    /// The number of the shard.
    pub shard: usize,
    /// How long it has been held up.
    pub silent: Duration,
}

/// The response: its status, and one word on the first line. Lines with the reasons follow.
pub(crate) fn of(shards: &[StuckShard], shares: &Shares) -> (StatusCode, String) {
    let (mut reasons, mut lesser) = (String::new(), String::new());
    for StuckShard { shard, silent } in shards {
        let _ = writeln!(reasons, "shard {shard}: held up for {} s", silent.as_secs());
    }
    for (_, name) in shares.awaited() {
        let _ = writeln!(reasons, "share {name}: its storage does not answer: it is not served yet");
    }
    for share in shares.iter() {
        let health = share.store_health();
        if health.is_stuck {
            let _ = writeln!(reasons, "share {}: {}", share.name(), stuck_store(&health));
        }
        for alarm in share.alarms() {
            let _ = match alarm {
                Alarm::Full | Alarm::ReadOnly => {
                    writeln!(lesser, "share {}: its storage is {}", share.name(), alarm.name())
                }
                Alarm::Moved => {
                    writeln!(lesser, "share {}: its directory was renamed or replaced", share.name())
                }
            };
        }
    }
    match (reasons.is_empty(), lesser.is_empty()) {
        (true, true) => (StatusCode::OK, "ok\n".to_owned()),
        // The server is reachable and does what it can, so a load balancer need not avoid it.
        (true, false) => (StatusCode::OK, format!("degraded\n{lesser}")),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, format!("stuck\n{reasons}{lesser}")),
    }
}

/// All alarms about the storage of a share, by the names used in metrics and the API.
pub(crate) const ALARMS: [&str; 4] = ["full", "read-only", "moved", "stuck"];

/// The current alarms about the storage of a share: some of [`ALARMS`].
#[must_use]
pub fn alarms(share: &Share) -> Vec<&'static str> {
    let stuck = share.store_health().is_stuck.then_some("stuck");
    share.alarms().into_iter().map(Alarm::name).chain(stuck).collect()
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
            let (status, text) = of(&[], &table.present());
            assert_eq!(status, StatusCode::OK);
            assert!(text.starts_with("degraded\n") && text.contains(expected), "{text}");
        }
        assert_eq!(alarms(&data), ["full", "read-only"]);
    }

    #[test]
    fn what_is_held_up_is_named() {
        let table = ShareTable::new([share("data")]).unwrap();
        assert_eq!(of(&[], &table.present()), (StatusCode::OK, "ok\n".to_owned()));
        let shard = StuckShard { shard: 1, silent: Duration::from_millis(7_900) };
        let (status, text) = of(&[shard], &table.present());
        assert_eq!(
            (status, text.as_str()),
            (StatusCode::SERVICE_UNAVAILABLE, "stuck\nshard 1: held up for 7 s\n")
        );
        table.await_store(ShareId(2), "late");
        let expected = "stuck\nshare late: its storage does not answer: it is not served yet\n";
        assert_eq!(of(&[], &table.present()), (StatusCode::SERVICE_UNAVAILABLE, expected.to_owned()));
        let health =
            StoreHealth { under_way: 3, waiting: 9, longest: Some(Duration::from_secs(12)), is_stuck: true };
        assert_eq!(
            stuck_store(&health),
            "its storage does not answer: 3 calls under way, one for 12 s, 9 waiting"
        );
    }
}
