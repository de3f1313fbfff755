//! How the data of a share is kept: its redundancy class, its storage medium, and its replicas.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::Refusal;
use control::redundancy::{Redundancy, Tier};
use control::shares::{NewShare, Share};
use limits::{Media, Plan};
use rados::{Class, DataPool};
use state::{DestinationRecord, ShareRecord};
use storage::SnapshotName;

use super::replication_source::is_lost;
use super::shares::of_directory;
use super::{Administration, invalid};
use crate::cephfs::Kept;
use crate::settings::split_directory;
use crate::snapshots::now;
use crate::{cephfs, directories, in_time};

type Result<T> = std::result::Result<T, Refusal>;

/// How long the cluster may take to say how it keeps data.
const PATIENCE: Duration = Duration::from_secs(5);
/// What stands for the cluster among storages that owe an answer: one that does not answer is not asked for each share.
const CLUSTER: &str = "cephfs:";

impl Administration {
    /// A share that is served, with how its data is kept and on which medium.
    pub(super) fn with_what_is_kept(&self, share: Share) -> Share {
        let Ok((directory, _)) = split_directory(Path::new(&share.directory)) else { return share };
        let replica = self.newest_replica(&share.name, &directory);
        if cephfs::path_of(&directory).is_none() {
            return Share { redundancy: Some(tell_local(replica)), ..share };
        }
        let cluster = Arc::clone(&self.declared().ceph);
        let asked =
            self.silent.answer_within(PATIENCE, Path::new(CLUSTER), move || cluster.data_pool(&directory));
        let (redundancy, tier) =
            match asked.unwrap_or_else(|| Err("the Ceph cluster does not answer".to_owned())) {
                Ok(pool) => (tell_pool(&pool, replica), Some(tell_media(&pool))),
                Err(problem) => (Redundancy { problem: Some(problem), ..Redundancy::default() }, None),
            };
        Share { redundancy: Some(redundancy), tier, ..share }
    }

    /// What a new share wants of its storage: of its medium, and of the data pool of a directory in CephFS.
    pub(super) fn wanted(
        new: &NewShare,
        directory: &Path,
        plan: &Plan,
    ) -> Result<(Option<Media>, Option<Kept>)> {
        let name = &new.name;
        let media = new.tier.as_deref().map(|tier| parse_tier(name, tier)).transpose()?;
        check_plan(name, plan, media)?;
        let is_in_cephfs = cephfs::path_of(directory).is_some();
        let Some(class) = new.redundancy.as_deref() else {
            if is_in_cephfs && media.is_some() {
                let what = format!("the share {name}: in CephFS, a tier is one of a redundancy class");
                return Err(invalid(what, "Give both, as --redundancy lrs --tier ssd."));
            }
            return Ok((media, None));
        };
        if !is_in_cephfs {
            let what = format!(
                "the share {name}: {} is a directory of this machine, and what may be lost there is up to its disks",
                directory.display()
            );
            return Err(invalid(what, "A redundancy class is for shares in CephFS (docs/cephfs.md)."));
        }
        let class = parse_class(name, class)?;
        Ok((media, Some(Kept { class, media })))
    }

    /// Gives the directory of a share in CephFS, which is open, a data pool.
    pub(super) fn keep_data(&self, name: &str, directory: &Path, kept: Kept) -> Result<()> {
        let (cluster, asked) = (Arc::clone(&self.declared().ceph), (name.to_owned(), directory.to_owned()));
        let answer = in_time::answer(move || cluster.keep(&asked.0, &asked.1, kept));
        answer.unwrap_or_else(|| Err(directories::no_answer(name, directory))).map_err(of_directory)
    }

    /// The medium that is to be stated of a share.
    pub(super) fn changed_tier(record: &ShareRecord, tier: &str) -> Result<String> {
        let name = &record.name;
        if cephfs::path_of(&record.directory).is_some() {
            let what = format!(
                "the share {name} lies in CephFS, where its files stay on the devices that they are on"
            );
            return Err(invalid(what, "Make another share with --redundancy and --tier, and copy them."));
        }
        if !tier.is_empty() {
            parse_tier(name, tier)?;
        }
        Ok(tier.to_owned())
    }

    fn newest_replica(&self, name: &str, directory: &Path) -> Option<Replica> {
        let known = self.state.destinations_of(name).ok()??;
        let destinations = Some(known).filter(|known| known.directory == directory)?.destinations;
        newest(&destinations, now().secs_since_1970())
    }
}

/// Refuses a plan that is for another medium.
pub(super) fn check_plan(name: &str, plan: &Plan, media: Option<Media>) -> Result<()> {
    let Some((media, other)) = media.zip(plan.media()).filter(|(media, other)| media != other) else {
        return Ok(());
    };
    let what = format!("the share {name} is on {media}, and the plan {} is for {other}", plan.name());
    let names: Vec<_> = Plan::names_for(media).collect();
    Err(invalid(what, format!("The plans on {media} are: {}.", names.join(", "))))
}

/// The medium of a record; one that this program does not know limits nothing.
pub(super) fn stated(record: &ShareRecord) -> Option<Media> {
    record.tier.parse().ok()
}

/// What is told of a medium that is stated; in CephFS, the devices say it.
pub(super) fn tell_stated(media: Option<Media>, directory: &Path) -> Option<Tier> {
    let media = media.filter(|_| cephfs::path_of(directory).is_none())?;
    Some(Tier { name: Some(media.to_string()), checked: false, device_classes: Vec::new() })
}

fn parse_tier(name: &str, tier: &str) -> Result<Media> {
    tier.parse().map_err(|e| invalid(format!("the share {name}: {e}"), "docs/shares.md says what each is."))
}

fn parse_class(name: &str, class: &str) -> Result<Class> {
    if let Some(here) =
        [("grs", "lrs"), ("gzrs", "zrs")].iter().find(|(geo, _)| *geo == class).map(|(_, here)| here)
    {
        let what = format!("the share {name}: {class} is {here}, and a replica at another server");
        let advice = format!(
            "Create it with --redundancy {here}. Then, at the other server: \
             anabranch share replicate NAME --from https://THIS-SERVER:PORT/{name} --token-file FILE --certificate-file FILE"
        );
        return Err(invalid(what, &advice));
    }
    class.parse().map_err(|e| {
        invalid(
            format!("the share {name}: {e}, and grs and gzrs with a replica"),
            "docs/cephfs.md says what each is.",
        )
    })
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
    let device_classes = pool.device_classes.iter().filter(|class| !class.is_empty()).cloned().collect();
    Tier { name, checked: true, device_classes }
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
            are_zones: across == "zone",
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
    fn what_a_share_can_have_of_its_storage_depends_on_where_it_is() {
        let wanted = |directory: &str, redundancy: Option<&str>, tier: Option<&str>, plan: &str| {
            let (redundancy, tier) = (redundancy.map(str::to_owned), tier.map(str::to_owned));
            let new = NewShare { name: "data".to_owned(), redundancy, tier, ..NewShare::default() };
            Administration::wanted(&new, Path::new(directory), &plan.parse().unwrap())
                .map_err(|refusal| refusal.what)
        };
        let (here, there, ssd) = ("/srv/data", "cephfs:/data", Some("ssd"));
        let kept = Some(Kept { class: Class::Zrs, media: Some(Media::Ssd) });
        assert_eq!(wanted(there, Some("zrs"), ssd, "anf-ultra capacity=1TiB"), Ok((Some(Media::Ssd), kept)));
        assert_eq!(wanted(here, None, ssd, "azure-files-v1 capacity=1TiB"), Ok((Some(Media::Ssd), None)));
        assert_eq!(wanted(here, None, None, "unlimited"), Ok((None, None)));
        let refused =
            |told: Result_, part: &str| assert!(told.clone().unwrap_err().contains(part), "{told:?}");
        refused(
            wanted(here, None, ssd, "azure-files-v2-hdd capacity=1TiB"),
            "the plan azure-files-v2-hdd is for hdd",
        );
        refused(wanted(there, Some("lrs"), Some("hdd"), "azure-files-v1 capacity=1TiB"), "is for ssd");
        refused(wanted(here, Some("lrs"), None, "unlimited"), "is a directory of this machine");
        refused(wanted(there, None, ssd, "unlimited"), "a tier is one of a redundancy class");
        refused(wanted(there, Some("grs"), ssd, "unlimited"), "grs is lrs, and a replica");
        refused(wanted(there, Some("raid"), ssd, "unlimited"), "there is no redundancy class `raid`");
        refused(wanted(here, None, Some("tape"), "unlimited"), "there is no tier `tape`");
    }

    type Result_ = std::result::Result<(Option<Media>, Option<Kept>), String>;

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
