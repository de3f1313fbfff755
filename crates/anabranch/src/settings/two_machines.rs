//! The settings of a server that may run on one of two machines.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};
use service_address::ServiceAddress;

use super::Lists;
use super::restart::named;

/// As given by flags or by a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct TwoMachinesGiven {
    /// Stand by while another server has the state directory, and take over as soon as it is free
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait_for_state: Option<bool>,
    /// An address that this machine has while the server serves, and announces: it moves to the machine that serves; several times for
    /// several [default: none]
    #[arg(long, value_name = "ADDRESS%INTERFACE[/PREFIX]")]
    service_address: Vec<ServiceAddressGiven>,
}

/// `ADDRESS%INTERFACE[/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ServiceAddressGiven(pub(crate) ServiceAddress);

impl fmt::Display for ServiceAddressGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ServiceAddressGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl From<ServiceAddressGiven> for String {
    fn from(given: ServiceAddressGiven) -> Self {
        given.to_string()
    }
}

impl TryFrom<String> for ServiceAddressGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl TwoMachinesGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(super) fn combined(self, there: Self, lists: Lists) -> Self {
        Self {
            wait_for_state: self.wait_for_state.or(there.wait_for_state),
            service_address: super::list_of(lists, self.service_address, there.service_address),
        }
    }

    /// Whether the server waits until no other one has the state directory.
    pub(super) fn waits(&self) -> bool {
        self.wait_for_state.unwrap_or(false)
    }

    pub(super) fn addresses(self) -> Vec<ServiceAddress> {
        self.service_address.into_iter().map(|ServiceAddressGiven(address)| address).collect()
    }

    /// An address that is given twice.
    pub(super) fn repeated(&self) -> Option<&ServiceAddressGiven> {
        let is_repeated = |(n, one): &(usize, &ServiceAddressGiven)| {
            self.service_address.iter().take(*n).any(|before| before.0.address == one.0.address)
        };
        self.service_address.iter().enumerate().find(is_repeated).map(|(_, one)| one)
    }

    /// The names of those that differ.
    pub(super) fn differ(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        named([
            ("wait-for-state", self.wait_for_state != other.wait_for_state),
            ("service-address", self.service_address != other.service_address),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_once_on_whichever_interface() {
        let given = |texts: &[&str]| TwoMachinesGiven {
            service_address: texts.iter().map(|text| text.parse().unwrap()).collect(),
            ..TwoMachinesGiven::default()
        };
        assert_eq!(given(&["192.0.2.10%eth0", "192.0.2.11%eth0"]).repeated(), None);
        let twice = given(&["192.0.2.10%eth0", "192.0.2.10%eth1/24"]);
        assert_eq!(twice.repeated().unwrap().to_string(), "192.0.2.10%eth1/24");
    }
}
