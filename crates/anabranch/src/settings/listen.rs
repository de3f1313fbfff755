//! Where a protocol is served, or that it is not.

use std::net::SocketAddr;
use std::str::FromStr;

use serde::Deserialize;

/// `ADDR:PORT` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum ListenGiven {
    At(SocketAddr),
    Off,
}

impl ListenGiven {
    /// None: not at all.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl FromStr for ListenGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let wrong = |_| format!("{text:?} is neither ADDR:PORT, such as 0.0.0.0:445 or [::]:445, nor off");
        text.parse().map(Self::At).map_err(wrong)
    }
}

impl TryFrom<String> for ListenGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_has_an_address_or_is_off() {
        let given = |text: &str| text.parse::<ListenGiven>().map(ListenGiven::address);
        assert_eq!(given("[::1]:445"), Ok(Some("[::1]:445".parse().unwrap())));
        assert_eq!(given("off"), Ok(None));
        for bad in ["", "OFF", "no", "445", "localhost:445", "10.0.0.1"] {
            assert!(given(bad).unwrap_err().contains("nor off"), "{bad}");
        }
    }
}
