//! What becomes of shares that are removed, as given by flags or by a file.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use gateway::retention::{NotARetention, Retention};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct DeletedSharesGiven {
    /// For how many days a share that is removed by command can be brought back, 1d to 365d, or `off` [default: 7d]
    #[arg(long, value_name = "DAYSd|off")]
    deleted_share_retention: Option<RetentionGiven>,
}

impl DeletedSharesGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(super) fn or(self, there: Self) -> Self {
        Self { deleted_share_retention: self.deleted_share_retention.or(there.deleted_share_retention) }
    }

    pub(super) fn whole(self) -> Retention {
        self.deleted_share_retention.map(|given| given.0).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct RetentionGiven(Retention);

impl fmt::Display for RetentionGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<RetentionGiven> for String {
    fn from(given: RetentionGiven) -> Self {
        given.to_string()
    }
}

impl FromStr for RetentionGiven {
    type Err = NotARetention;

    fn from_str(text: &str) -> Result<Self, NotARetention> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for RetentionGiven {
    type Error = NotARetention;

    fn try_from(text: String) -> Result<Self, NotARetention> {
        text.parse()
    }
}
