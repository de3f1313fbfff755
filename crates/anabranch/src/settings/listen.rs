//! Where a protocol is served, or that it is not.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// `ADDR:PORT` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum ListenGiven {
    At(SocketAddr),
    Off,
}

impl fmt::Display for ListenGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Off => f.write_str("off"),
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

impl From<ListenGiven> for String {
    fn from(given: ListenGiven) -> Self {
        given.to_string()
    }
}

impl TryFrom<String> for ListenGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// One address, several, or `off`, as the file has them.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ListenGiven>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected \"ADDR:PORT\", several of them in [], or \"off\"")]
    enum Written {
        One(String),
        Several(Vec<String>),
    }
    let texts = match Written::deserialize(from)? {
        Written::One(text) => vec![text],
        Written::Several(texts) if texts.is_empty() => {
            return Err(serde::de::Error::custom("there is no address: expected one, or \"off\""));
        }
        Written::Several(texts) => texts,
    };
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

/// The addresses at which a protocol is served; none: it is off. `default` applies where nothing is given.
///
/// # Errors
/// What is wrong with them together, and what to do.
pub(super) fn addresses(
    given: &[ListenGiven],
    default: SocketAddr,
) -> Result<Vec<SocketAddr>, (String, &'static str)> {
    if given.is_empty() {
        return Ok(vec![default]);
    }
    let mut addresses = Vec::new();
    for given in given {
        if let ListenGiven::At(address) = given {
            // Port 0 stands for any free port.
            if address.port() != 0 && addresses.contains(address) {
                return Err((format!("the address {address} is given twice"), "Remove one."));
            }
            addresses.push(*address);
        }
    }
    if !addresses.is_empty() && addresses.len() < given.len() {
        let advice = "Remove `off`, or the addresses.";
        return Err(("both addresses and `off` are given".to_owned(), advice));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_has_an_address_or_is_off() {
        let given = |text: &str| text.parse::<ListenGiven>();
        assert_eq!(given("[::1]:445"), Ok(ListenGiven::At("[::1]:445".parse().unwrap())));
        assert_eq!(given("off"), Ok(ListenGiven::Off));
        for bad in ["", "OFF", "no", "445", "localhost:445", "10.0.0.1"] {
            assert!(given(bad).unwrap_err().contains("nor off"), "{bad}");
        }
    }

    #[test]
    fn it_may_have_several_addresses() {
        let default = "0.0.0.0:445".parse().unwrap();
        let given = |texts: &[&str]| {
            let given: Vec<ListenGiven> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let found = addresses(&given, default).map_err(|(what, _)| what);
            found.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(given(&[]).unwrap(), ["0.0.0.0:445"]);
        assert_eq!(given(&["off"]).unwrap(), Vec::<String>::new());
        assert_eq!(given(&["10.0.0.1:445", "[::1]:445"]).unwrap(), ["10.0.0.1:445", "[::1]:445"]);
        assert_eq!(given(&["127.0.0.1:0", "127.0.0.1:0"]).unwrap().len(), 2);
        assert!(given(&["[::]:445", "[::]:445"]).unwrap_err().contains("is given twice"));
        assert!(given(&["[::]:445", "off"]).unwrap_err().contains("both addresses and `off`"));
    }
}
