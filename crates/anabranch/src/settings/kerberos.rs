//! The settings of Kerberos.

use std::path::PathBuf;
use std::str::FromStr;

use acl::Sid;
use clap::{Args, ValueEnum};
use gateway::kerberos::{
    DirectorySettings, IdMapping, KerberosSettings, NssNames, check_realm, check_server,
};
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

/// How the users and groups of a domain get numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum IdMappingGiven {
    /// `domain-id-base` plus the last part of the SID, for one domain.
    Rid,
    /// 100,000 numbers for each domain, from `domain-id-base` on, in the order in which they were configured first.
    Autorid,
    /// As SSSD does with `ldap_id_mapping = true`.
    Sss,
    /// Those of the name service of this machine: winbind, SSSD.
    Nss,
    /// `uidNumber` and `gidNumber` of the domain's directory.
    Rfc2307,
}

impl IdMappingGiven {
    fn whole(self) -> IdMapping {
        match self {
            Self::Rid => IdMapping::Rid,
            Self::Autorid => IdMapping::Autorid,
            Self::Sss => IdMapping::Sss,
            Self::Nss => IdMapping::Nss,
            Self::Rfc2307 => IdMapping::Rfc2307,
        }
    }
}

/// The server of a directory: one that [`check_server`] accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct DirectoryServer(String);

impl TryFrom<String> for DirectoryServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_server(&text).map(|()| Self(text))
    }
}

impl FromStr for DirectoryServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<DirectoryServer> for String {
    fn from(DirectoryServer(text): DirectoryServer) -> Self {
        text
    }
}

/// How the name service calls the users of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NssNamesGiven {
    /// `AD\alice`
    Netbios,
    /// `alice@AD.EXAMPLE.ORG`
    Realm,
}

impl NssNamesGiven {
    fn whole(self) -> NssNames {
        match self {
            Self::Realm => NssNames::Realm,
            Self::Netbios => NssNames::Netbios,
        }
    }
}

/// The SID of a domain: S-1-5-21 and three numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct DomainSid(Sid);

impl TryFrom<String> for DomainSid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let sid = text.parse::<Sid>().ok().filter(|sid| sid.member(0).is_some());
        sid.map(Self).ok_or_else(|| {
            format!("{text:?} is not the SID of a domain: expected S-1-5-21 and three numbers, such as \"S-1-5-21-1085031214-1563985344-725345543\"")
        })
    }
}

impl FromStr for DomainSid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<DomainSid> for String {
    fn from(DomainSid(sid): DomainSid) -> Self {
        sid.to_string()
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
    /// How the users and groups of a domain get numbers: `rid`, `autorid`, `sss`, `nss` or
    /// `rfc2307` [default: rid]
    #[arg(long, value_enum, value_name = "MODE")]
    domain_id_mapping: Option<IdMappingGiven>,
    /// With `nss`: what the name service calls a user of a domain, `netbios` (AD\alice) or `realm` (alice@AD.EXAMPLE.ORG)
    /// [default: netbios]
    #[arg(long, value_enum, value_name = "FORM")]
    domain_nss_names: Option<NssNamesGiven>,
    /// The domain controller that is asked over LDAPS for numbers (`rfc2307`) and for names in lists of shares, by the name in its
    /// certificate, with a port if that is not 636
    #[arg(long, value_name = "HOST[:PORT]")]
    domain_ldap_server: Option<DirectoryServer>,
    /// The entry below which users and groups are [default: the one that the domain controller names]
    #[arg(long, value_name = "DN")]
    domain_ldap_base: Option<String>,
    /// The account that asks: a DN, or NAME@REALM
    #[arg(long, value_name = "NAME")]
    domain_ldap_account: Option<String>,
    /// The file with its password, readable by its owner only
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    domain_ldap_password_file: Option<PathBuf>,
    /// The authorities that vouch for the domain controller's certificate (PEM)
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    domain_ldap_ca: Option<PathBuf>,
    /// The SID of a domain whose users and groups have numbers, so that a number is known to be theirs over NFS; several times
    /// for several [default: the domain of the keytab, whichever it is]
    #[arg(long, value_name = "SID")]
    domain_sid: Vec<DomainSid>,
    /// The SID of another domain whose SIDs in tickets count, those of groups there; several times for several [default: only
    /// SIDs of the user's own domain]
    #[arg(long, value_name = "SID")]
    trusted_domains: Vec<DomainSid>,
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
        let has_domains = !self.domain_sid.is_empty();
        let trusts = !self.trusted_domains.is_empty();
        Self {
            keytab: self.keytab.or(there.keytab),
            domain_id_base: self.domain_id_base.or(there.domain_id_base),
            domain_id_mapping: self.domain_id_mapping.or(there.domain_id_mapping),
            domain_nss_names: self.domain_nss_names.or(there.domain_nss_names),
            domain_ldap_server: self.domain_ldap_server.or(there.domain_ldap_server),
            domain_ldap_base: self.domain_ldap_base.or(there.domain_ldap_base),
            domain_ldap_account: self.domain_ldap_account.or(there.domain_ldap_account),
            domain_ldap_password_file: self.domain_ldap_password_file.or(there.domain_ldap_password_file),
            domain_ldap_ca: self.domain_ldap_ca.or(there.domain_ldap_ca),
            domain_sid: if has_domains { self.domain_sid } else { there.domain_sid },
            trusted_domains: if trusts { self.trusted_domains } else { there.trusted_domains },
            account_realm: if is_empty { there.account_realm } else { self.account_realm },
            realm: self.realm.or(there.realm),
        }
    }

    pub(crate) fn whole(self) -> KerberosSettings {
        let default = KerberosSettings::default();
        let sids = |given: Vec<DomainSid>| given.into_iter().map(|DomainSid(sid)| sid).collect();
        KerberosSettings {
            keytab: self.keytab,
            id_base: self.domain_id_base.unwrap_or(default.id_base),
            id_mapping: self.domain_id_mapping.map_or(default.id_mapping, IdMappingGiven::whole),
            nss_names: self.domain_nss_names.map_or(default.nss_names, NssNamesGiven::whole),
            directory: DirectorySettings {
                server: self.domain_ldap_server.map(String::from),
                base: self.domain_ldap_base,
                account: self.domain_ldap_account,
                password_file: self.domain_ldap_password_file,
                authorities: self.domain_ldap_ca,
            },
            domains: sids(self.domain_sid),
            trusted_domains: sids(self.trusted_domains),
            account_realms: self.account_realm,
            realm: self.realm.map(String::from),
        }
    }
}
