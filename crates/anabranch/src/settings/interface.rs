//! An interface to tell clients of, as given by a flag or a file.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smb_server::GivenInterface;

/// `ADDR[;speed=BITS][;rss]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct InterfaceGiven {
    pub(crate) address: IpAddr,
    /// In bits per second; None: what the system says.
    pub(crate) link_speed: Option<u64>,
    /// Whether several channels to it are of use; else what the system says.
    pub(crate) rss: bool,
}

impl InterfaceGiven {
    pub(super) fn whole(self) -> GivenInterface {
        let Self { address, link_speed, rss } = self;
        GivenInterface { address, link_speed, rss }
    }
}

impl fmt::Display for InterfaceGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if let Some(bits) = self.link_speed {
            write!(f, ";speed={bits}")?;
        }
        if self.rss { f.write_str(";rss") } else { Ok(()) }
    }
}

impl From<InterfaceGiven> for String {
    fn from(given: InterfaceGiven) -> Self {
        given.to_string()
    }
}

impl FromStr for InterfaceGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';').map(str::trim);
        let address = parts.next().unwrap_or_default();
        let address: IpAddr = address.parse().map_err(|_| {
            format!(
                "{address:?} is not an address: expected one such as 10.0.0.1, or 10.0.0.1;speed=10000000000;rss"
            )
        })?;
        if address.is_unspecified() || address.is_multicast() {
            return Err(format!("nobody can connect to {address}"));
        }
        let mut given = Self { address, link_speed: None, rss: false };
        for part in parts {
            match part.split_once('=') {
                None if part == "rss" => given.rss = true,
                Some(("speed", bits)) => given.link_speed = Some(parse_speed(bits)?),
                _ => return Err(format!("{part:?} is neither speed=BITS nor rss")),
            }
        }
        Ok(given)
    }
}

impl TryFrom<String> for InterfaceGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

fn parse_speed(bits: &str) -> Result<u64, String> {
    let wrong = || format!("{bits:?} is not a speed in bits per second, such as 10000000000");
    bits.parse().ok().filter(|bits| *bits > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_an_address_with_its_speed_and_rss() {
        let given =
            |text: &str| text.parse::<InterfaceGiven>().map(|i| (i.address.to_string(), i.link_speed, i.rss));
        assert_eq!(given("10.0.0.1"), Ok(("10.0.0.1".to_owned(), None, false)));
        assert_eq!(given("2001:db8::1;rss"), Ok(("2001:db8::1".to_owned(), None, true)));
        assert_eq!(
            given("10.0.0.1; speed=25000000000; rss"),
            Ok(("10.0.0.1".to_owned(), Some(25_000_000_000), true))
        );
        for (bad, why) in [
            ("", "not an address"),
            ("eth0", "not an address"),
            ("10.0.0.1:445", "not an address"),
            ("0.0.0.0", "nobody can connect"),
            ("10.0.0.1;speed=", "not a speed"),
            ("10.0.0.1;speed=0", "not a speed"),
            ("10.0.0.1;speed=10G", "not a speed"),
            ("10.0.0.1;fast", "neither speed=BITS nor rss"),
            ("10.0.0.1;", "neither speed=BITS nor rss"),
        ] {
            let error = given(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
