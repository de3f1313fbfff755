//! An administrator as given by a flag or in the file.

use std::str::FromStr;

use gateway::Admin;
use serde::{Deserialize, Serialize};

/// `NAME`, `@GROUP` or a SID, and after a colon what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct AdminGiven(pub(crate) Admin);

impl FromStr for AdminGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for AdminGiven {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AdminGiven> for String {
    fn from(AdminGiven(admin): AdminGiven) -> Self {
        admin.to_string()
    }
}
