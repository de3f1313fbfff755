//! When an alarm is raised.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

/// The most files that an alarm may wait for.
pub(crate) const FILES_MAX: u32 = 1000;
/// The longest time in which files are counted.
const WITHIN_MAX: Duration = Duration::from_secs(3600);
/// The longest time for which a snapshot is protected: as long as by command.
const SNAPSHOT_DAYS_MAX: u32 = 3660;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// When an alarm is raised, and what is done then. As text: `on`, followed by words such as
/// `files=20 within=1m snapshot=7d slow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// How many files one client must have spoilt.
    pub files: u32,
    /// Within this time.
    pub within: Duration,
    /// A snapshot is taken, and protected for so many days. None: none is taken.
    pub snapshot_days: Option<u32>,
    /// Whether the client is slowed to one operation a second.
    pub slow: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Self { files: 20, within: Duration::from_secs(60), snapshot_days: None, slow: false }
    }
}

impl Rule {
    /// For how long the snapshot is protected that is taken at an alarm. None: none is taken.
    #[must_use]
    pub fn snapshot_protected_for(&self) -> Option<Duration> {
        self.snapshot_days.map(|days| DAY * days)
    }
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The text begins with something else than `on`.
    #[error(
        "the ransomware alarm is `off`, or `on` with what is to be done, for example: on snapshot=7d slow"
    )]
    Form,
    /// A word that nobody knows.
    #[error("`{0}` says nothing about a ransomware alarm: expected files=20, within=1m, snapshot=7d or slow")]
    Word(String),
    /// A word that stands there twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// Not a number of files.
    #[error("files={0}: expected a number of files from 2 to {FILES_MAX}")]
    Files(String),
    /// Not a time.
    #[error("within={0}: expected a time from 1s to 60m, as 90s or 5m")]
    Within(String),
    /// Not a number of days.
    #[error("snapshot={0}: expected a number of days from 1d to {SNAPSHOT_DAYS_MAX}d")]
    Snapshot(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some("on") {
            return Err(RuleError::Form);
        }
        let (mut files, mut within, mut snapshot_days, mut slow) = (None, None, None, None);
        for word in words {
            match word.split_once('=') {
                Some(("files", count)) => once(&mut files, parse_files(count)?, "files")?,
                Some(("within", time)) => once(&mut within, parse_within(time)?, "within")?,
                Some(("snapshot", days)) => once(&mut snapshot_days, parse_days(days)?, "snapshot")?,
                None if word == "slow" => once(&mut slow, true, "slow")?,
                _ => return Err(RuleError::Word(word.to_owned())),
            }
        }
        let usual = Self::default();
        Ok(Self {
            files: files.unwrap_or(usual.files),
            within: within.unwrap_or(usual.within),
            snapshot_days,
            slow: slow.is_some(),
        })
    }
}

fn once<T>(known: &mut Option<T>, value: T, word: &'static str) -> Result<(), RuleError> {
    if known.replace(value).is_some() { Err(RuleError::Twice(word)) } else { Ok(()) }
}

/// A number of decimal digits only.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn parse_files(text: &str) -> Result<u32, RuleError> {
    let files = number(text).filter(|files| (2..=FILES_MAX).contains(files));
    files.ok_or_else(|| RuleError::Files(text.to_owned()))
}

fn parse_within(text: &str) -> Result<Duration, RuleError> {
    let secs = match (text.strip_suffix('s'), text.strip_suffix('m')) {
        (Some(secs), _) => number(secs),
        (_, Some(minutes)) => number(minutes).and_then(|minutes| minutes.checked_mul(60)),
        (None, None) => None,
    };
    let within = secs.map(u64::from).map(Duration::from_secs);
    within
        .filter(|within| (Duration::from_secs(1)..=WITHIN_MAX).contains(within))
        .ok_or_else(|| RuleError::Within(text.to_owned()))
}

fn parse_days(text: &str) -> Result<u32, RuleError> {
    let days = text.strip_suffix('d').and_then(number).filter(|days| (1..=SNAPSHOT_DAYS_MAX).contains(days));
    days.ok_or_else(|| RuleError::Snapshot(text.to_owned()))
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { files, within, snapshot_days, slow } = self;
        match within.as_secs() {
            secs if secs % 60 == 0 => write!(f, "on files={files} within={}m", secs / 60)?,
            secs => write!(f, "on files={files} within={secs}s")?,
        }
        if let Some(days) = snapshot_days {
            write!(f, " snapshot={days}d")?;
        }
        if *slow { f.write_str(" slow") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_are_written_in_one() {
        let rule: Rule = "on slow snapshot=7d within=90s files=5".parse().unwrap();
        assert_eq!(rule.to_string(), "on files=5 within=90s snapshot=7d slow");
        assert_eq!("on".parse(), Ok(Rule::default()));
        assert_eq!(Rule::default().to_string(), "on files=20 within=1m");
        assert_eq!(Rule::default().to_string().parse(), Ok(Rule::default()));
        assert_eq!(rule.snapshot_protected_for(), Some(DAY * 7));
    }

    #[test]
    fn each_mistake_has_its_own_words() {
        let error = |text: &str| text.parse::<Rule>().unwrap_err();
        assert_eq!(error(""), RuleError::Form);
        assert_eq!(error("yes"), RuleError::Form);
        assert_eq!(error("on fast"), RuleError::Word("fast".to_owned()));
        assert_eq!(error("on slow=1"), RuleError::Word("slow=1".to_owned()));
        assert_eq!(error("on slow slow"), RuleError::Twice("slow"));
        assert_eq!(error("on files=3 files=3"), RuleError::Twice("files"));
        for files in ["", "1", "1001", "+5", "five"] {
            assert_eq!(error(&format!("on files={files}")), RuleError::Files(files.to_owned()));
        }
        for within in ["", "0s", "61m", "3601s", "5", "1h", "99999999999m"] {
            assert_eq!(error(&format!("on within={within}")), RuleError::Within(within.to_owned()));
        }
        for days in ["", "0d", "3661d", "7", "-1d"] {
            assert_eq!(error(&format!("on snapshot={days}")), RuleError::Snapshot(days.to_owned()));
        }
    }
}
