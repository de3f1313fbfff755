//! The settings of Kerberos.

use std::path::PathBuf;

use clap::Args;
use gateway::kerberos::KerberosSettings;
use serde::{Deserialize, Serialize};

use super::values;

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
}

impl KerberosGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(crate) fn or(self, there: Self) -> Self {
        let is_empty = self.account_realm.is_empty();
        Self {
            keytab: self.keytab.or(there.keytab),
            domain_id_base: self.domain_id_base.or(there.domain_id_base),
            account_realm: if is_empty { there.account_realm } else { self.account_realm },
        }
    }

    pub(crate) fn whole(self) -> KerberosSettings {
        let default = KerberosSettings::default();
        KerberosSettings {
            keytab: self.keytab,
            id_base: self.domain_id_base.unwrap_or(default.id_base),
            account_realms: self.account_realm,
        }
    }
}
