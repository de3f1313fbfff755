//! What a user becomes on this server, and by which rule: `/v1/identities/{name}`.

use serde::{Deserialize, Serialize};

/// What a user becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedUser {
    /// The name or the SID that was asked for.
    pub asked: String,
    /// How the user is known.
    pub known: Knowledge,
    /// The name by which lists, the log and the access log show the user; none if it is not known.
    pub name: Option<String>,
    /// The SID that access lists name the user by.
    pub sid: Option<String>,
    /// The user of this machine; none: nobody.
    pub uid: Option<u32>,
    /// The group of objects that the user creates.
    pub gid: Option<u32>,
    /// The groups of the user, as far as they are known.
    pub groups: Vec<TestedGroup>,
    /// Seconds since the user's last ticket came; none if none came since the server started.
    pub ticket_seconds_ago: Option<u64>,
    /// The rule that gives the numbers.
    pub rule: String,
    /// What the user may do in each share that is served.
    pub shares: Vec<TestedShare>,
    /// What is the matter, if anything is, and what to do.
    pub findings: Vec<TestFinding>,
}

/// How a user is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// As an account of this server.
    Account,
    /// As a user of a domain who has come with a ticket since the server started.
    Ticket,
    /// By the SID alone: the groups are not known.
    Sid,
    /// Not at all.
    Unknown,
}

/// A group of the user. A group of a domain has a SID, one of this machine a number, and some have both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedGroup {
    /// The SID.
    pub sid: Option<String>,
    /// The number.
    pub gid: Option<u32>,
}

/// What the user may do in a share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedShare {
    /// The share.
    pub share: String,
    /// What the user may do at most, for example `reader` or `contributor`; none: nothing. The permissions of files decide within
    /// that.
    pub role: Option<String>,
    /// What gives the role: an entry of the user list, such as `@staff`; `default-role`; or `no list`, where all are admitted.
    pub by: Option<String>,
}

/// Something that is the matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFinding {
    /// What it is.
    pub what: String,
    /// What to do.
    pub advice: String,
}
