//! How the data of a share is kept: its redundancy class, its storage medium, and its replicas.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::redundancy::{Redundancy, Tier};
use control::shares::Share;
use rados::{Class, DataPool};
use state::DestinationRecord;
use storage::SnapshotName;

use super::Administration;
use super::replication_source::is_lost;
use crate::settings::split_directory;
use crate::snapshots::now;
use crate::{cephfs, in_time};

/// How long the cluster may take to say how it keeps data.
const PATIENCE: Duration = Duration::from_secs(5);

impl Administration {
    /// A share that is served, with how its data is kept and on which medium.
    pub(super) fn with_what_is_kept(&self, share: Share) -> Share {
        let Ok((directory, _)) = split_directory(Path::new(&share.directory)) else { return share };
        let replica = self.newest_replica(&share.name, &directory);
        if cephfs::path_of(&directory).is_none() {
            return Share { redundancy: Some(tell_local(replica)), ..share };
        }
        let cluster = Arc::clone(&self.declared().ceph);
        let asked = in_time::answer_within(PATIENCE, move || cluster.data_pool(&directory));
        let (redundancy, tier) =
            match asked.unwrap_or_else(|| Err("the Ceph cluster does not answer".to_owned())) {
                Ok(pool) => (tell_pool(&pool, replica), Some(tell_media(&pool))),
                Err(problem) => (Redundancy { problem: Some(problem), ..Redundancy::default() }, None),
            };
        Share { redundancy: Some(redundancy), tier, ..share }
    }

    fn newest_replica(&self, name: &str, directory: &Path) -> Option<Replica> {
        let known = self.state.destinations_of(name).ok()??;
        let destinations = Some(known).filter(|known| known.directory == directory)?.destinations;
        newest(&destinations, now().secs_since_1970())
    }
}

/// A replica of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replica {
    /// When the share was as the replica is, in seconds of the Unix epoch.
    as_of: i64,
    /// Whether its server was heard of lately.
    is_in_force: bool,
}

/// What was completed by one of these servers last.
fn newest(destinations: &[DestinationRecord], now: u64) -> Option<Replica> {
    let replica = |one: &DestinationRecord| {
        let as_of = SnapshotName::parse(&one.completed)?.secs();
        Some(Replica { as_of, is_in_force: !is_lost(one, now) })
    };
    destinations.iter().filter_map(replica).max_by_key(|replica| (replica.is_in_force, replica.as_of))
}

fn tell_local(replica: Option<Replica>) -> Redundancy {
    let replica_as_of = replica.map(|replica| replica.as_of);
    Redundancy { class: Some("local".to_owned()), replica_as_of, ..Redundancy::default() }
}

fn tell_pool(pool: &DataPool, replica: Option<Replica>) -> Redundancy {
    let is_elsewhere = replica.is_some_and(|replica| replica.is_in_force);
    let class = match (pool.class(), is_elsewhere) {
        (Some(Class::Lrs), true) => "grs".to_owned(),
        (Some(Class::Zrs), true) => "gzrs".to_owned(),
        (Some(class), false) => class.to_string(),
        (None, _) => "none".to_owned(),
    };
    Redundancy {
        class: Some(class),
        problem: None,
        data_pool: Some(pool.name.clone()),
        copies: Some(pool.copies),
        erasure_coded: pool.is_erasure_coded,
        across: pool.across.clone(),
        copies_to_write: Some(pool.to_write),
        replica_as_of: replica.map(|replica| replica.as_of),
    }
}

fn tell_media(pool: &DataPool) -> Tier {
    let name = pool.media().map(|media| media.to_string());
    Tier { name, checked: true, device_classes: pool.device_classes.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(across: &str) -> DataPool {
        DataPool {
            name: "data".to_owned(),
            copies: 3,
            to_write: 2,
            is_erasure_coded: false,
            across: Some(across.to_owned()),
            places: Some(3),
            device_classes: vec!["nvme".to_owned()],
        }
    }

    #[test]
    fn a_replica_in_force_makes_a_class_geo_redundant() {
        let class = |across, is_in_force| {
            let replica = Some(Replica { as_of: 7, is_in_force });
            let told = tell_pool(&pool(across), replica);
            assert_eq!(told.replica_as_of, Some(7), "it is told in any case");
            told.class.unwrap()
        };
        assert_eq!((class("host", true), class("zone", true)), ("grs".to_owned(), "gzrs".to_owned()));
        assert_eq!((class("host", false), class("zone", false)), ("lrs".to_owned(), "zrs".to_owned()));
        assert_eq!(class("osd", true), "none");
        assert_eq!(tell_pool(&pool("zone"), None).class.as_deref(), Some("zrs"));
        assert_eq!(tell_media(&pool("zone")).name.as_deref(), Some("ssd"));
    }

    #[test]
    fn the_newest_replica_is_that_of_a_server_that_is_heard_of() {
        let name = |secs| SnapshotName::new("replica-1", secs).unwrap().to_string();
        let record =
            |secs, seen| DestinationRecord { completed: name(secs), seen, ..DestinationRecord::default() };
        let day = 24 * 3600;
        assert_eq!(newest(&[], day), None);
        assert_eq!(newest(&[DestinationRecord::default()], day), None, "it has nothing yet");
        let lost = newest(&[record(60, 0)], 2 * day);
        assert_eq!(lost, Some(Replica { as_of: 60, is_in_force: false }));
        let both = newest(&[record(120, 0), record(60, 2 * day)], 2 * day);
        assert_eq!(both, Some(Replica { as_of: 60, is_in_force: true }));
    }
}
