//! The settings of Kerberos.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use gateway::kerberos::{KerberosSettings, check_realm};
use serde::{Deserialize, Serialize};

use super::values;

/// The realm of the accounts: one that [`check_realm`] accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Realm(String);

impl TryFrom<String> for Realm {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_realm(&text).map(|()| Self(text))
    }
}

impl FromStr for Realm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<Realm> for String {
    fn from(Realm(text): Realm) -> Self {
        text
    }
}

/// What was given of Kerberos.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct KerberosGiven {
    /// The Kerberos keys of this server, readable by its owner only [default: those of `anabranch domain import`]
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    keytab: Option<PathBuf>,
    /// The number to which the last part of a SID is added: the uid and the gids of the users of a domain [default: 1000000]
    #[arg(long, value_name = "N")]
    domain_id_base: Option<u32>,
    /// A realm of Kerberos, without SIDs, whose principals are the accounts of the same name; several times for several
    #[arg(long, value_name = "REALM")]
    account_realm: Vec<String>,
    /// The realm in which the accounts of this server have Kerberos keys [default: the machine's name in upper case]
    #[arg(long, value_name = "REALM")]
    realm: Option<Realm>,
}

impl KerberosGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(crate) fn or(self, there: Self) -> Self {
        let is_empty = self.account_realm.is_empty();
        Self {
            keytab: self.keytab.or(there.keytab),
            domain_id_base: self.domain_id_base.or(there.domain_id_base),
            account_realm: if is_empty { there.account_realm } else { self.account_realm },
            realm: self.realm.or(there.realm),
        }
    }

    pub(crate) fn whole(self) -> KerberosSettings {
        let default = KerberosSettings::default();
        KerberosSettings {
            keytab: self.keytab,
            id_base: self.domain_id_base.unwrap_or(default.id_base),
            account_realms: self.account_realm,
            realm: self.realm.map(String::from),
        }
    }
}
