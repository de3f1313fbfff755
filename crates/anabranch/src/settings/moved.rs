//! A share that another server has, as given by a flag or a file.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use gateway::settings::{MovedShare, check_share_name};
use serde::{Deserialize, Serialize};
use share::NFS_PORT;

/// `NAME=ADDR[:PORT][,ADDR[:PORT]...]`: the addresses of the other server, with its port for NFS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct MovedGiven(pub(crate) MovedShare);

impl fmt::Display for MovedGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |address: &SocketAddr| match address.port() {
            NFS_PORT => address.ip().to_string(),
            _ => address.to_string(),
        };
        let addresses: Vec<_> = self.0.addresses.iter().map(written).collect();
        write!(f, "{}={}", self.0.name, addresses.join(","))
    }
}

impl From<MovedGiven> for String {
    fn from(given: MovedGiven) -> Self {
        given.to_string()
    }
}

impl FromStr for MovedGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, addresses) = text
            .split_once('=')
            .ok_or_else(|| "expected NAME=ADDR, for example data=192.0.2.20".to_owned())?;
        check_share_name(name)?;
        let addresses = addresses.split(',').map(|address| parse_address(address.trim()));
        Ok(Self(MovedShare { name: name.to_owned(), addresses: addresses.collect::<Result<_, _>>()? }))
    }
}

impl TryFrom<String> for MovedGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// An address that clients can connect to, with the port for NFS.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, NFS_PORT));
    let address = alone.or_else(|_| text.parse::<SocketAddr>()).map_err(|_| {
        format!("{text:?} is not an address: expected one such as 192.0.2.20, 2001:db8::20, 192.0.2.20:2049 or [2001:db8::20]:2049")
    })?;
    if address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0 {
        return Err(format!("nobody can connect to {text}"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_at_addresses_with_ports_for_nfs() {
        let given = |text: &str| text.parse::<MovedGiven>().map(|given| given.to_string());
        for text in ["data=192.0.2.20", "data=192.0.2.20:20490,2001:db8::20", "data=[2001:db8::20]:20490"] {
            assert_eq!(given(text), Ok(text.to_owned()));
        }
        assert_eq!(given("data=192.0.2.20:2049, [::1]:2049"), Ok("data=192.0.2.20,::1".to_owned()));
        for (bad, why) in [
            ("", "expected NAME=ADDR"),
            ("data", "expected NAME=ADDR"),
            ("data=", "not an address"),
            ("data=other.example.org", "not an address"),
            ("data=192.0.2.20,", "not an address"),
            ("data=192.0.2.20:", "not an address"),
            ("data=0.0.0.0", "nobody can connect"),
            ("data=192.0.2.20:0", "nobody can connect"),
            ("a/b=192.0.2.20", "the name of the share"),
        ] {
            let error = given(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
