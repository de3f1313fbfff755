//! Data pools that give a redundancy class: what a cluster must have for them, and the commands that make them.

use std::fmt;

use limits::Media;
use serde_json::{Map, Value};
use state::Error;

use crate::placement::{COPIES, COPIES_TO_WRITE, Class, Placement};

/// A command for the monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    prefix: &'static str,
    /// Names and values, in the order of the command line.
    given: Vec<(&'static str, String)>,
}

impl Command {
    pub(crate) fn new(prefix: &'static str) -> Self {
        Self { prefix, given: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.given.push((name, value.into()));
        self
    }

    /// As monitors take it.
    pub(crate) fn json(&self) -> String {
        let fixed = [("prefix", self.prefix), ("format", "json")];
        let given = self.given.iter().map(|(name, value)| (*name, value.as_str()));
        let all = fixed.into_iter().chain(given);
        let all: Map<_, _> = all.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        Value::Object(all).to_string()
    }
}

impl fmt::Display for Command {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ceph {}", self.prefix)?;
        self.given.iter().try_for_each(|(name, value)| match *name {
            // Ceph takes it by its name only where no number of placement groups is before it.
            "rule" => write!(f, " --rule={value}"),
            _ => write!(f, " {value}"),
        })
    }
}

/// A data pool to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPool {
    /// Its name, which is that of its rule, too.
    pub name: String,
    /// The commands that make it, without those whose work is done.
    pub commands: Vec<Command>,
}

impl Placement {
    /// The pool that is to be made so that the file system has one of a class, on a medium if one is given. None: it has one.
    ///
    /// # Errors
    /// The cluster has not what such a pool needs.
    pub fn to_be_made(&self, class: Class, media: Option<Media>) -> Result<Option<NewPool>, Error> {
        let fits = |pool: &crate::DataPool| {
            pool.class() == Some(class) && media.is_none_or(|media| pool.media() == Some(media))
        };
        if self.pools.iter().any(fits) {
            return Ok(None);
        }
        let root = self.topology.root().ok_or_else(|| {
            let advice = "Make a rule and a pool by hand (ceph osd crush rule create-replicated), and add it to the file system.";
            Error::new("the CRUSH map of the Ceph cluster has several roots, and none is called default", advice)
        })?;
        let across = self.across(class);
        let device_class = self.device_class(class, media, root, across)?;
        let tier = media.map_or_else(String::new, |media| format!(".{media}"));
        let name = format!("{}.{class}{tier}", self.file_system);
        if self.pools.iter().any(|pool| pool.name == name) {
            let what = format!("the data pool {name} does not give {class}{}", on(media));
            let advice =
                format!("Look what it gives (ceph osd pool get {name} all), or give it another name.");
            return Err(Error::new(what, advice));
        }
        let has_rule = self.has_rule(&name, root, across, device_class)?;
        let has_pool = self.has_unused_pool(&name, has_rule)?;
        let mut commands = Vec::new();
        if has_rule.is_none() {
            commands.push(rule(&name, root, across, device_class));
        }
        if !has_pool {
            commands.push(Command::new("osd pool create").with("pool", &name).with("rule", &name));
        }
        commands.extend(self.settings(&name));
        Ok(Some(NewPool { name, commands }))
    }

    /// The number of the rule of a name, if there is one.
    ///
    /// # Errors
    /// It does not do what is wanted.
    fn has_rule(
        &self,
        name: &str,
        root: &str,
        across: &str,
        device_class: Option<&str>,
    ) -> Result<Option<i64>, Error> {
        let Some(rule) = self.rules.iter().find(|rule| rule.rule_name == name) else { return Ok(None) };
        if rule.is_made(root, device_class, across) {
            return Ok(Some(rule.rule_id));
        }
        let what = format!("the CRUSH rule {name} is there, and does something else: it stays as it is");
        let advice = format!(
            "Look what it does (ceph osd crush rule dump {name}), and give it another name (ceph osd crush rule rename)."
        );
        Err(Error::new(what, advice))
    }

    /// Whether there is a pool of a name, as a run before has left it that did not get further.
    ///
    /// # Errors
    /// It may be in use, or is another one: it is not touched.
    fn has_unused_pool(&self, name: &str, rule: Option<i64>) -> Result<bool, Error> {
        let Some(pool) = self.all_pools.iter().find(|pool| pool.pool_name == name) else { return Ok(false) };
        if rule.is_some_and(|rule| pool.is_unused(rule)) {
            return Ok(true);
        }
        let what = format!("the pool {name} is there, and may be in use: it stays as it is");
        let advice = format!(
            "Look what uses it (ceph osd pool application get {name}), and give it another name (ceph osd pool rename)."
        );
        Err(Error::new(what, advice))
    }

    /// Between what copies are kept apart.
    fn across(&self, class: Class) -> &'static str {
        match class {
            Class::Lrs => "host",
            Class::Zrs if !self.topology.has("zone") && self.topology.has("datacenter") => "datacenter",
            Class::Zrs => "zone",
        }
    }

    /// The class of devices for the rule; None: any.
    fn device_class(
        &self,
        class: Class,
        media: Option<Media>,
        root: &str,
        across: &str,
    ) -> Result<Option<&'static str>, Error> {
        let candidates: &[Option<&'static str>] = match media {
            None => &[None],
            Some(Media::Hdd) => &[Some("hdd")],
            Some(Media::Ssd) => &[Some("ssd"), Some("nvme")],
        };
        let reach = |device| self.topology.reach(root, device, across).domains;
        let needed = COPIES as usize;
        if let Some(enough) = candidates.iter().find(|device| reach(**device).len() >= needed) {
            return Ok(*enough);
        }
        let there =
            candidates.iter().map(|device| reach(*device)).max_by_key(std::collections::BTreeSet::len);
        let there: Vec<_> = there.unwrap_or_default().into_iter().collect();
        let names = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let device =
            media.map_or_else(|| "devices".to_owned(), |media| format!("devices of the class {media}"));
        Err(Error::new(
            format!(
                "{class}{} needs {needed} {across}s with {device} below {root}, and the Ceph cluster has {}: {names}",
                on(media),
                there.len()
            ),
            "`ceph osd crush tree` shows where devices are, and their classes; `ceph osd crush move` says where they are, and \
             `ceph osd crush set-device-class` what they are.",
        ))
    }

    /// What a pool gets that was made, or that nothing uses yet.
    fn settings(&self, name: &str) -> [Command; 4] {
        let set = |what: &str, value: &str| {
            Command::new("osd pool set").with("pool", name).with("var", what).with("val", value)
        };
        [
            set("crush_rule", name),
            set("size", &COPIES.to_string()),
            set("min_size", &COPIES_TO_WRITE.to_string()),
            Command::new("fs add_data_pool").with("fs_name", &self.file_system).with("pool", name),
        ]
    }
}

fn rule(name: &str, root: &str, across: &str, device_class: Option<&str>) -> Command {
    let rule = Command::new("osd crush rule create-replicated");
    let rule = rule.with("name", name).with("root", root).with("type", across);
    device_class.into_iter().fold(rule, |rule, class| rule.with("class", class))
}

fn on(media: Option<Media>) -> String {
    media.map_or_else(String::new, |media| format!(" on {media}"))
}
