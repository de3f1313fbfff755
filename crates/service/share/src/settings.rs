//! The configuration of a share.

use std::time::Duration;

use access_log::AccessLog;

use crate::{RansomwareRule, RecycleBin, Rules, Terms};

/// The number of a share on this server: the same after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// The configuration of a share. Values given "at first" can be changed later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name: clients connect to `\\server\NAME`, or mount `/NAME`.
    pub name: String,
    /// The terms of use, at first.
    pub terms: Terms,
    /// The rules on who may use the share, at first ([`Share::set_rules`]).
    pub rules: Rules,
    /// The comment for clients that list the shares, at first ([`Share::set_comment`]).
    pub comment: String,
    /// Opens of all clients together, at first ([`Share::set_opens_max`]). The last quarter is for clients that hold less
    /// than a quarter ([`limits::may_take`]).
    pub opens_max: usize,
    /// Watches for changes of all clients together.
    pub watches_max: usize,
    /// Whether clients may cache what they have read and written. Not where files change without an operation of this server: it could
    /// not tell them.
    pub caching: bool,
    /// How long a client may take to give up what it caches, before its grant is revoked.
    pub break_timeout: Duration,
    /// How long an operation with [`Patience::UntilRetry`] waits for that, before its client is told to retry: less than the
    /// time after which the client sends the request again.
    pub retry_after: Duration,
    /// The plan, at first ([`Share::set_plan`] changes it).
    pub provisioned: limits::Provisioned,
    /// Whether the metadata cache is on, at first ([`Share::set_metadata_cache`]). It works only on stores that report the
    /// changes of others.
    pub metadata_cache: bool,
    /// The most memory for the metadata cache and the indexes of folded names, in bytes.
    pub metadata_cache_bytes_max: usize,
    /// A store that usually answers in less than this is quick: directories of it that change often are not cached.
    pub quick_answer: Duration,
    /// Whether the cost of calls is counted. Switched off only to measure the cost of counting.
    pub accounting: bool,
    /// The recycle bin, at first ([`Share::set_recycle_bin`]).
    pub recycle_bin: Option<RecycleBin>,
    /// When the ransomware alarm is raised, at first ([`Share::set_ransomware_rule`]). None: never.
    pub ransomware: Option<RansomwareRule>,
    /// The access log.
    pub access_log: AccessLog,
}

impl Settings {
    /// The defaults for a share of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            terms: Terms::empty(),
            rules: Rules::default(),
            comment: String::new(),
            opens_max: 262_144,
            watches_max: 65_536,
            caching: true,
            break_timeout: Duration::from_secs(35),
            retry_after: Duration::from_secs(3),
            provisioned: limits::Provisioned::default(),
            metadata_cache: true,
            metadata_cache_bytes_max: cache::BYTES_MAX,
            quick_answer: cache::QUICK,
            accounting: true,
            recycle_bin: None,
            ransomware: None,
            access_log: AccessLog::default(),
        }
    }
}
