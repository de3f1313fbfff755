//! Snapshot policies in the form of the API: `/v1/policies`.

use serde::{Deserialize, Serialize};

/// All policies, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policies {
    /// Those of the configuration, and those created by command.
    pub policies: Vec<Policy>,
}

/// One policy. Times are UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The name.
    pub name: String,
    /// Where the configuration declares it; none for a policy created by command.
    pub declared_in: Option<String>,
    /// `:MINUTE/KEEP`.
    pub hourly: Option<String>,
    /// `HOUR:MINUTE/KEEP`.
    pub daily: Option<String>,
    /// `DAYS@HOUR:MINUTE/KEEP`, with days from `sun` to `sat`.
    pub weekly: Option<String>,
    /// `DAYS@HOUR:MINUTE/KEEP`, with days from 1 to 31; months that do not have the day are left out.
    pub monthly: Option<String>,
    /// The shares that have it, by name.
    pub shares: Vec<String>,
}

/// A change of a policy. Rules that are not given stay as they are; an empty text removes one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    /// `:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<String>,
    /// `HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<String>,
    /// `DAYS/KEEP` or `DAYS@HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly: Option<String>,
    /// `DAYS/KEEP` or `DAYS@HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly: Option<String>,
}

/// A policy to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPolicy {
    /// The name.
    pub name: String,
    /// `:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<String>,
    /// `HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<String>,
    /// `DAYS/KEEP` or `DAYS@HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly: Option<String>,
    /// `DAYS/KEEP` or `DAYS@HOUR:MINUTE/KEEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly: Option<String>,
}
