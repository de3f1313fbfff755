//! By which rule users of domains have numbers here, and how those do who are asked for users and groups: `/v1/domain`.

use serde::{Deserialize, Serialize};

use crate::identities::TestFinding;

/// What the server makes of users of domains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Whether tickets are accepted: there is a keytab.
    pub accepts_tickets: bool,
    /// The keytab that the configuration names; none: the one that was imported, if any.
    pub keytab: Option<String>,
    /// `domain-id-mapping`: `rid`, `autorid`, `sss`, `nss` or `rfc2307`.
    pub id_mapping: String,
    /// The same in words.
    pub rule: String,
    /// The domains of `domain-sid`, with their numbers.
    pub domains: Vec<DomainRange>,
    /// Those who are asked for users and groups.
    pub lookups: Vec<Lookups>,
    /// What is the matter, if anything is, and what to do.
    pub findings: Vec<TestFinding>,
}

/// A domain that is known beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainRange {
    /// Its SID.
    pub sid: String,
    /// The first of its numbers; none: somebody is asked for each.
    pub first: Option<u32>,
    /// The last of its numbers.
    pub last: Option<u32>,
}

/// The questions to one source about one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookups {
    /// What is asked for: `numbers` of users of domains, `groups` of users of NFS, or `names` of users and groups.
    pub subject: String,
    /// Who is asked: the `directory` of the domain, or the `name-service` of this machine.
    pub source: String,
    /// Answers that there is somebody, since the server started.
    pub found: u64,
    /// Answers that there is nobody.
    pub absent: u64,
    /// Questions that the source could not answer.
    pub failed: u64,
    /// How often somebody waited for an answer in vain.
    pub timed_out: u64,
    /// How often somebody was not heard, because too many questions were on their way.
    pub refused: u64,
    /// How often somebody got an old answer, because no other came.
    pub stale_used: u64,
    /// Answers that are kept, and count.
    pub held: u64,
    /// Answers that are kept, and count only while no other comes.
    pub stale: u64,
    /// Seconds since the last answer; none if none has come.
    pub answered_seconds_ago: Option<u64>,
    /// Seconds since the source last could not answer; none if it always could.
    pub failed_seconds_ago: Option<u64>,
    /// Why it could not answer then.
    pub failure: Option<String>,
}
