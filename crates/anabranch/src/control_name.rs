//! A name that the control address answers to.

use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name of a machine, in bytes. RFC 1035 2.3.4.
const NAME_MAX: usize = 255;

/// The name of a machine, or one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ControlName(pub(crate) String);

impl FromStr for ControlName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // RFC 1123 2.1: letters, digits and hyphens; the underscore is in names that people use.
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let is_name = text.len() <= NAME_MAX && text.split('.').all(is_part);
        if is_name || text.parse::<IpAddr>().is_ok() {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is not a host name: expected one such as files.example.org, without a port"))
    }
}

impl TryFrom<String> for ControlName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_taken() {
        for good in ["files", "files.example.org", "files_1", "203.0.113.7", "2001:db8::1", &"n".repeat(255)]
        {
            assert_eq!(good.parse(), Ok(ControlName(good.to_owned())));
        }
        for bad in [
            "",
            ".",
            "a..b",
            "files:8080",
            "https://files",
            "*.example.org",
            "a b",
            "\u{e4}",
            &"n".repeat(256),
        ] {
            assert!(bad.parse::<ControlName>().is_err(), "{bad}");
        }
    }
}
