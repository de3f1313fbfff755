//! A share as given by a flag or by a table of the file.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use control::shares::Rules as Written;
use gateway::settings::{ShareSettings, check_reserved_name, check_share_name};
use limits::Plan;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use share::Terms;
use state::rules;

/// `NAME=DIR`, or a table in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShareGiven(pub(crate) ShareSettings);

impl ShareGiven {
    fn new(table: ShareTable) -> Result<Self, String> {
        check_share_name(&table.name)?;
        if table.directory.as_os_str().is_empty() {
            return Err(format!("the directory of the share {} is empty", table.name));
        }
        let mut terms = Terms::empty();
        terms.set(Terms::READ_ONLY, table.read_only);
        terms.set(Terms::GUESTS, table.guest);
        terms.set(Terms::CONTINUOUSLY_AVAILABLE, table.continuous_availability);
        terms.set(Terms::ACCESS_BASED_ENUMERATION, table.access_based_enumeration);
        terms.set(Terms::ENCRYPTED, table.encrypted);
        terms.set(Terms::DEVICES, table.devices);
        terms.set(Terms::SET_ID, table.set_id);
        terms.set(Terms::SECURE_PORT, table.secure_port);
        terms.set(Terms::HIDDEN, table.hidden);
        let of_share = |e| format!("the share {}: {e}", table.name);
        let rules = table.rules().and_then(|rules| rules::parse(&rules)).map_err(of_share)?;
        rules::check_comment(&table.comment).map_err(of_share)?;
        let plan = table.plan.as_deref().map_or(Ok(Plan::Unlimited), str::parse);
        let plan =
            plan.map_err(|e: limits::PlanError| format!("the plan of the share {}: {e}", table.name))?;
        for name in &table.reserved_names {
            check_reserved_name(name).map_err(of_share)?;
        }
        let ShareTable { name, directory, comment, metadata_cache, reserved_names, .. } = table;
        Ok(Self(ShareSettings {
            name,
            directory,
            terms,
            rules,
            comment,
            plan,
            metadata_cache,
            reserved_names,
        }))
    }
}

impl FromStr for ShareGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, directory) =
            text.split_once('=').ok_or_else(|| "expected NAME=DIR, for example data=/srv/data".to_owned())?;
        let (name, directory) = (name.to_owned(), directory.into());
        Self::new(ShareTable { name, directory, metadata_cache: true, ..ShareTable::default() })
    }
}

/// The keys of `[[share]]`.
pub(crate) const SHARE_KEYS: [&str; 19] = [
    "name",
    "directory",
    "read-only",
    "guest",
    "continuous-availability",
    "access-based-enumeration",
    "metadata-cache",
    "reserved-names",
    "encrypted",
    "plan",
    "protocols",
    "client",
    "devices",
    "set-id",
    "secure-port",
    "read",
    "write",
    "comment",
    "hidden",
];
/// The keys of `[[share.client]]`.
pub(crate) const CLIENT_KEYS: [&str; 5] = ["network", "access", "squash", "protocols", "secure-port"];

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ShareTable {
    name: String,
    directory: PathBuf,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    guest: bool,
    #[serde(default)]
    continuous_availability: bool,
    #[serde(default)]
    access_based_enumeration: bool,
    #[serde(default)]
    encrypted: bool,
    #[serde(default)]
    devices: bool,
    #[serde(default)]
    set_id: bool,
    #[serde(default)]
    secure_port: bool,
    protocols: Option<Vec<String>>,
    #[serde(default)]
    client: Vec<ClientGiven>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    hidden: bool,
    plan: Option<String>,
    #[serde(default = "yes")]
    metadata_cache: bool,
    #[serde(default)]
    reserved_names: Vec<String>,
}

impl ShareTable {
    /// Who may use it, as it is written elsewhere.
    fn rules(&self) -> Result<Written, String> {
        let protocols = self.protocols.clone().unwrap_or_default();
        if self.protocols.is_some() && protocols.is_empty() {
            return Err("it has no protocols: expected [\"smb\"], [\"nfs\"] or both".to_owned());
        }
        let clients = self.client.iter().map(ClientGiven::written).collect();
        Ok(Written { protocols, clients, read: self.read.clone(), write: self.write.clone() })
    }
}

/// An entry of a share's client list: in one line, or as a table.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a network, or a table with network, access, squash, protocols and secure-port"
)]
enum ClientGiven {
    Line(String),
    Table(ClientTable),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ClientTable {
    network: String,
    access: Option<String>,
    squash: Option<String>,
    protocols: Option<Vec<String>>,
    secure_port: Option<bool>,
}

impl ClientGiven {
    /// In one line.
    fn written(&self) -> String {
        let ClientTable { network, access, squash, protocols, secure_port } = match self {
            Self::Line(line) => return line.clone(),
            Self::Table(table) => table,
        };
        let mut line = network.clone();
        let protocols = protocols.as_ref().map(|protocols| protocols.join(","));
        let secure_port = secure_port.map(|secure| secure.to_string());
        let words = [
            ("access", access),
            ("squash", squash),
            ("protocols", &protocols),
            ("secure-port", &secure_port),
        ];
        for (key, value) in words.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
            line.push_str(&format!(" {key}={value}"));
        }
        line
    }
}

fn yes() -> bool {
    true
}

struct ShareVisitor;

impl<'de> Visitor<'de> for ShareVisitor {
    type Value = ShareGiven;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"NAME=DIR\" or a table with name and directory")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ShareGiven, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ShareGiven, A::Error> {
        let table = ShareTable::deserialize(MapAccessDeserializer::new(map))?;
        ShareGiven::new(table).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ShareGiven {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShareVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Result<ShareSettings, String> {
        text.parse().map(|ShareGiven(share)| share)
    }

    #[test]
    fn a_share_is_a_name_and_a_directory() {
        let s = share("data=/srv/a=b").unwrap();
        assert_eq!((s.name.as_str(), s.directory.to_str()), ("data", Some("/srv/a=b")));
        for bad in [
            "data",
            "=/srv",
            "data=",
            "a/b=/srv",
            "a\\b=/srv",
            "IPC$=/srv",
            " a=/srv",
            "..=/srv",
            "a\u{7}=/srv",
        ] {
            assert!(share(bad).is_err(), "{bad:?}");
        }
        assert!(share(&format!("{}=/srv", "n".repeat(80))).is_ok());
        assert!(share(&format!("{}=/srv", "n".repeat(81))).is_err());
    }
}
