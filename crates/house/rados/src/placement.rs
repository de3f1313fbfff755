//! How the data pools of a file system keep data: copies, where those are, and on which media, as monitors describe it.
//!
//! Bytes in, values out: [`crate::Monitors`] asks.

use std::fmt;
use std::str::FromStr;

use limits::Media;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use state::Error;

use crate::topology::Topology;

/// How many copies a class has at least.
pub(crate) const COPIES: u32 = 3;
/// With how many of them a class still takes writes: what was acknowledged then survives the loss of one more device.
pub(crate) const COPIES_TO_WRITE: u32 = 2;
/// `pg_pool_t::TYPE_REPLICATED` (osd_types.h).
const REPLICATED: i64 = 1;
/// What rules call the places between a device and a zone, and those from a zone on (the types of Ceph's own CRUSH map).
const WITHIN_A_ZONE: [&str; 7] = ["host", "chassis", "rack", "row", "pdu", "pod", "room"];
const ZONES: [&str; 3] = ["datacenter", "zone", "region"];

/// A redundancy class: what of a cluster may be lost without a loss of data, or of the right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Locally redundant: three copies on different machines.
    Lrs,
    /// Zone-redundant: three copies in different zones.
    Zrs,
}

impl Class {
    /// All, with their names.
    pub const NAMES: [(Self, &'static str); 2] = [(Self::Lrs, "lrs"), (Self::Zrs, "zrs")];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lrs => "lrs",
            Self::Zrs => "zrs",
        })
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(_, name)| *name == text);
        known
            .map(|(class, _)| *class)
            .ok_or_else(|| format!("there is no redundancy class `{text}`; the classes are: lrs, zrs"))
    }
}

/// A data pool of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPool {
    /// Its name.
    pub name: String,
    /// How many copies there are of what is written, as far as the cluster has places for them; of an erasure-coded pool: parts.
    pub copies: u32,
    /// How many of them there must be for clients to write.
    pub to_write: u32,
    /// Whether these are parts, and no copies.
    pub is_erasure_coded: bool,
    /// Each copy is in another one of these: `osd`, `host`, `zone`. None: its rule does not say it in one step.
    pub across: Option<String>,
    /// Whether these are zones: datacenters are none where the cluster has zones above them.
    pub are_zones: bool,
    /// How many of these the cluster has; None as above.
    pub places: Option<usize>,
    /// The classes of the devices that have the copies, as CRUSH names them.
    pub device_classes: Vec<String>,
}

impl DataPool {
    /// The class that it gives.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        let across = self.across.as_deref().filter(|_| !self.is_erasure_coded)?;
        // Where writes need all copies, the loss of one ends them.
        if self.copies < COPIES || self.to_write < COPIES_TO_WRITE || self.to_write >= self.copies {
            return None;
        }
        if ZONES.contains(&across) && self.are_zones {
            return Some(Class::Zrs);
        }
        (WITHIN_A_ZONE.contains(&across) || ZONES.contains(&across)).then_some(Class::Lrs)
    }

    /// The medium of all its devices. None: they have several, or the cluster does not know.
    #[must_use]
    pub fn media(&self) -> Option<Media> {
        let mut media = self.device_classes.iter().map(|class| media_of(class));
        let first = media.next()??;
        media.all(|other| other == Some(first)).then_some(first)
    }
}

impl fmt::Display for DataPool {
    /// What it gives, as `zrs on hdd (3 copies across zones, 2 to write)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class() {
            Some(class) => write!(f, "{class}")?,
            None => f.write_str("no class")?,
        }
        let classes: Vec<&str> = self
            .device_classes
            .iter()
            .map(|class| if class.is_empty() { "devices without a class" } else { class })
            .collect();
        if classes.iter().any(|class| *class != "devices without a class") {
            write!(f, " on {}", classes.join(", "))?;
        }
        let what = if self.is_erasure_coded { "parts" } else { "copies" };
        write!(f, " ({} {what}", self.copies)?;
        if let Some(across) = &self.across {
            write!(f, " across {across}s")?;
        }
        write!(f, ", {} to write)", self.to_write)
    }
}

/// `nvme` is what Ceph calls a device of solid state behind NVMe.
fn media_of(device_class: &str) -> Option<Media> {
    match device_class {
        "hdd" => Some(Media::Hdd),
        "ssd" | "nvme" => Some(Media::Ssd),
        _ => None,
    }
}

/// A file system and its data pools.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The name of the file system.
    pub file_system: String,
    /// Its data pools. The first one keeps what no layout sends elsewhere.
    pub pools: Vec<DataPool>,
    pub(crate) topology: Topology,
    pub(crate) rules: Vec<Rule>,
    /// All pools of the cluster.
    pub(crate) all_pools: Vec<Pool>,
}

/// What monitors have printed, as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// `fs dump`
    pub file_systems: &'a [u8],
    /// `osd pool ls detail`
    pub pools: &'a [u8],
    /// `osd crush rule dump`
    pub rules: &'a [u8],
    /// `osd crush tree`
    pub tree: &'a [u8],
}

#[derive(Deserialize)]
struct FileSystems {
    #[serde(default)]
    default_fscid: Option<i64>,
    filesystems: Vec<FileSystem>,
}

#[derive(Deserialize)]
struct FileSystem {
    id: i64,
    mdsmap: MdsMap,
}

#[derive(Deserialize)]
struct MdsMap {
    fs_name: String,
    data_pools: Vec<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pool {
    pool_id: i64,
    pub(crate) pool_name: String,
    #[serde(rename = "type")]
    kind: i64,
    size: u32,
    min_size: u32,
    pub(crate) crush_rule: i64,
    /// What uses it, by name: `cephfs`, `rbd`. Nothing if it was only made; None where monitors do not say.
    #[serde(default)]
    application_metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Rule {
    pub(crate) rule_id: i64,
    pub(crate) rule_name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Deserialize)]
struct Step {
    op: String,
    #[serde(default)]
    item_name: Option<String>,
    #[serde(default)]
    num: Option<i64>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

/// What a rule does, if it does it in one step.
struct Simple<'a> {
    from: &'a str,
    class: Option<&'a str>,
    /// How many places are chosen; 0: as many as there are copies, and below: so many less.
    number: i64,
    kind: &'a str,
}

impl Placement {
    /// Reads what monitors have printed of a file system; None: the default one of the cluster.
    ///
    /// # Errors
    /// There is no such file system, or this is not what monitors print.
    pub fn read(printed: Printed<'_>, file_system: Option<&str>) -> Result<Self, Error> {
        let file_systems: FileSystems = parsed("fs dump", printed.file_systems)?;
        let pools: Vec<Pool> = parsed("osd pool ls detail", printed.pools)?;
        let rules: Vec<Rule> = parsed("osd crush rule dump", printed.rules)?;
        let topology: Topology = parsed("osd crush tree", printed.tree)?;
        let MdsMap { fs_name, data_pools } = find(file_systems, file_system)?;
        let found = data_pools.iter().filter_map(|id| pools.iter().find(|pool| pool.pool_id == *id));
        let described = found.map(|pool| {
            let rule = rules.iter().find(|rule| rule.rule_id == pool.crush_rule);
            describe(pool, rule, &topology)
        });
        Ok(Self { file_system: fs_name, pools: described.collect(), topology, rules, all_pools: pools })
    }

    /// The data pool of a name; None: the first one.
    #[must_use]
    pub fn pool(&self, name: Option<&str>) -> Option<&DataPool> {
        match name {
            Some(name) => self.pools.iter().find(|pool| pool.name == name),
            None => self.pools.first(),
        }
    }

    /// The data pool that gives a class, and is on a medium if one is given. Of several, the first.
    ///
    /// # Errors
    /// None does, or those that do are on different media and none is given.
    pub fn choose(&self, class: Class, media: Option<Media>) -> Result<&DataPool, Error> {
        let fits = |pool: &&DataPool| {
            pool.class() == Some(class) && media.is_none_or(|media| pool.media() == Some(media))
        };
        let fitting: Vec<_> = self.pools.iter().filter(fits).collect();
        let on = media.map_or_else(String::new, |media| format!(" on {media}"));
        let Some(first) = fitting.first() else {
            let tier = media.map_or_else(String::new, |media| format!(" --tier {media}"));
            return Err(Error::new(
                format!(
                    "no data pool of the file system {} gives {class}{on}: {}",
                    self.file_system,
                    self.listed()
                ),
                format!(
                    "Make one, with the key of an administrator: anabranch cluster pools --redundancy {class}{tier}"
                ),
            ));
        };
        if fitting.iter().any(|pool| pool.media() != first.media()) {
            return Err(Error::new(
                format!(
                    "several data pools of the file system {} give {class}: {}",
                    self.file_system,
                    self.listed()
                ),
                "Say on which medium the share is to be: --tier ssd, or --tier hdd",
            ));
        }
        Ok(first)
    }

    /// What its data pools give, in words.
    fn listed(&self) -> String {
        let pools = self.pools.iter().map(|pool| format!("{} gives {pool}", pool.name));
        pools.collect::<Vec<_>>().join("; ")
    }
}

fn parsed<T: DeserializeOwned>(what: &str, printed: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(printed).map_err(|e| {
        Error::new(
            format!("what the monitors of the Ceph cluster say of `{what}` is not understood: {e}"),
            format!("Try: ceph {what} --format json"),
        )
    })
}

fn find(file_systems: FileSystems, name: Option<&str>) -> Result<MdsMap, Error> {
    let FileSystems { default_fscid, filesystems } = file_systems;
    let is_it = |found: &FileSystem| match name {
        Some(name) => found.mdsmap.fs_name == name,
        None => default_fscid == Some(found.id),
    };
    filesystems.into_iter().find(is_it).map(|found| found.mdsmap).ok_or_else(|| {
        let name =
            name.map_or_else(|| "default file system".to_owned(), |name| format!("file system {name}"));
        Error::new(format!("the Ceph cluster has no {name}"), "Look which there are: ceph fs ls")
    })
}

fn describe(pool: &Pool, rule: Option<&Rule>, topology: &Topology) -> DataPool {
    let rule = rule.and_then(simple);
    let reach = rule.as_ref().map(|rule| topology.reach(rule.from, rule.class, rule.kind));
    let places = reach.as_ref().map(|reach| reach.domains.len());
    let size = i64::from(pool.size);
    let chosen = rule
        .as_ref()
        .map_or(size, |rule| if rule.number > 0 { rule.number } else { size.saturating_add(rule.number) });
    let possible = places.map_or(i64::MAX, |places| i64::try_from(places).unwrap_or(i64::MAX));
    DataPool {
        name: pool.pool_name.clone(),
        copies: u32::try_from(size.min(chosen).min(possible)).unwrap_or(0),
        to_write: pool.min_size,
        is_erasure_coded: pool.kind != REPLICATED,
        are_zones: rule.as_ref().is_some_and(|rule| is_zone(rule.kind, topology)),
        across: rule.map(|rule| rule.kind.to_owned()),
        places,
        device_classes: reach.map_or_else(Vec::new, |reach| reach.classes.into_iter().collect()),
    }
}

/// Whether copies in two of these are in two zones.
fn is_zone(kind: &str, topology: &Topology) -> bool {
    ZONES.contains(&kind) && (kind != "datacenter" || !topology.has("zone"))
}

impl Pool {
    /// Whether it was made for a rule, and nothing has used it yet.
    pub(crate) fn is_unused(&self, rule: i64) -> bool {
        let has_no_use = self.application_metadata.as_ref().is_some_and(serde_json::Map::is_empty);
        has_no_use && self.kind == REPLICATED && self.crush_rule == rule
    }
}

impl Rule {
    /// Whether it puts each copy in another one of these, on devices of a class if one is given, as a rule does that
    /// `ceph osd crush rule create-replicated` has made so.
    pub(crate) fn is_made(&self, from: &str, class: Option<&str>, kind: &str) -> bool {
        simple(self)
            .is_some_and(|rule| (rule.from, rule.class, rule.kind, rule.number) == (from, class, kind, 0))
    }
}

/// A rule that takes one part of the tree, and chooses all places in one step: to choose something else than devices, and no device in it,
/// gives none.
fn simple(rule: &Rule) -> Option<Simple<'_>> {
    let mut steps = rule.steps.iter().filter(|step| !step.op.starts_with("set_"));
    let (take, choose, emit) = (steps.next()?, steps.next()?, steps.next()?);
    let is_choosing = choose.op.starts_with("chooseleaf")
        || choose.op.starts_with("choose") && choose.kind.as_deref() == Some("osd");
    if take.op != "take" || !is_choosing || emit.op != "emit" || steps.next().is_some() {
        return None;
    }
    let item = take.item_name.as_deref()?;
    let (from, class) = item.split_once('~').map_or((item, None), |(from, class)| (from, Some(class)));
    Some(Simple { from, class, number: choose.num?, kind: choose.kind.as_deref()? })
}

#[cfg(test)]
mod tests;
