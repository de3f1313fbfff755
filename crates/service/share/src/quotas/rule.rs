//! Quotas as they are written: `SUBJECT soft=8GiB hard=10GiB grace=14d`.
//!
//! The subject is a directory of the share (`/projects`), a user (`anna`, `1000`, `AD\anna`), a group (`@staff`, `@1000`), each user
//! (`*`) or each group (`@*`).

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use access::Who;
use limits::{show_size, size};
use quota::{GRACE, Limits, LimitsError};

use super::QuotaSubject;

/// The most quotas of a share.
pub const QUOTAS_MAX: usize = 1000;

const DAY: u64 = 24 * 60 * 60;
/// Units of time, in seconds.
const TIMES: [(char, u64); 4] = [('d', DAY), ('h', 60 * 60), ('m', 60), ('s', 1)];
/// Units of sizes.
const SIZES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// What a quota is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaFor {
    /// Something that needs no look-up.
    Known(QuotaSubject),
    /// A user or group by name, for somebody to look up.
    Named(Who),
}

/// A quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaRule {
    /// What it is for.
    pub subject: QuotaFor,
    /// How much.
    pub limits: Limits,
}

/// Why a text is no quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuotaRuleError {
    /// The subject names nothing.
    #[error("{0:?} is neither a directory (/projects), nor a user (anna, *), nor a group (@staff, @*)")]
    Subject(String),
    /// A path is not that of a directory of the share.
    #[error("{0:?} is no path from the root of the share: it must not contain empty names, `.` or `..`")]
    Path(String),
    /// A size is wrong.
    #[error("{0:?} is no size: it is given in KiB, MiB, GiB or TiB, as 10GiB")]
    Size(String),
    /// A time is wrong.
    #[error("{0:?} is no time: it is given in s, m, h or d, as 14d")]
    Time(String),
    /// A limit is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// The limits do not go together.
    #[error(transparent)]
    Limits(#[from] LimitsError),
}

impl QuotaFor {
    /// What it stands for, if that is known; `names`: the meanings of names, as they are written.
    #[must_use]
    pub fn meaning(&self, names: &HashMap<String, QuotaSubject>) -> Option<QuotaSubject> {
        match self {
            Self::Known(subject) => Some(subject.clone()),
            Self::Named(who) => names.get(&who.to_string()).cloned(),
        }
    }
}

impl FromStr for QuotaFor {
    type Err = QuotaRuleError;

    fn from_str(text: &str) -> Result<Self, QuotaRuleError> {
        let number =
            |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        if let Some(path) = text.strip_prefix('/') {
            return Ok(Self::Known(QuotaSubject::Directory(check_path(path)?.as_bytes().to_vec())));
        }
        Ok(match text {
            "*" => Self::Known(QuotaSubject::EachUser),
            "@*" => Self::Known(QuotaSubject::EachGroup),
            _ => match text
                .strip_prefix('@')
                .map_or_else(|| (number(text), None), |group| (None, number(group)))
            {
                (Some(uid), _) => Self::Known(QuotaSubject::User(uid)),
                (None, Some(gid)) => Self::Known(QuotaSubject::Group(gid)),
                (None, None) => {
                    Self::Named(text.parse().map_err(|_| QuotaRuleError::Subject(text.to_owned()))?)
                }
            },
        })
    }
}

fn check_path(path: &str) -> Result<&str, QuotaRuleError> {
    let is_bad = |name: &str| name.is_empty() || name == "." || name == ".." || name.contains('\0');
    if !path.is_empty() && path.split('/').any(is_bad) {
        return Err(QuotaRuleError::Path(format!("/{path}")));
    }
    Ok(path)
}

impl fmt::Display for QuotaFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(subject) => subject.fmt(f),
            Self::Named(who) => who.fmt(f),
        }
    }
}

impl fmt::Display for QuotaSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "/{}", String::from_utf8_lossy(path)),
            Self::User(uid) => write!(f, "{uid}"),
            Self::Group(gid) => write!(f, "@{gid}"),
            Self::EachUser => f.write_str("*"),
            Self::EachGroup => f.write_str("@*"),
        }
    }
}

impl FromStr for QuotaRule {
    type Err = QuotaRuleError;

    fn from_str(text: &str) -> Result<Self, QuotaRuleError> {
        let (mut rest, mut soft, mut hard, mut grace) = (text.trim(), None, None, None);
        // The path of a directory may have spaces: what is at the end and looks like a limit is one.
        while let Some((before, last)) = rest.rsplit_once(char::is_whitespace) {
            let Some((key, value)) = last.split_once('=') else { break };
            match key {
                "soft" => once(&mut soft, "soft", parse_size(value)?)?,
                "hard" => once(&mut hard, "hard", parse_size(value)?)?,
                "grace" => once(&mut grace, "grace", parse_time(value)?)?,
                _ => break,
            }
            rest = before.trim_end();
        }
        let limits = Limits::new(soft, hard, grace.unwrap_or(GRACE))?;
        Ok(Self { subject: rest.parse()?, limits })
    }
}

fn once<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), QuotaRuleError> {
    if place.replace(value).is_some() { Err(QuotaRuleError::Twice(name)) } else { Ok(()) }
}

fn parse_size(text: &str) -> Result<u64, QuotaRuleError> {
    let bytes =
        || text.strip_suffix('B').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok();
    size(text, &SIZES).or_else(bytes).ok_or_else(|| QuotaRuleError::Size(text.to_owned()))
}

fn parse_time(text: &str) -> Result<Duration, QuotaRuleError> {
    let wrong = || QuotaRuleError::Time(text.to_owned());
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let (_, seconds) = TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let digits = text.strip_suffix(unit).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let number: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
    number.checked_mul(*seconds).map(Duration::from_secs).ok_or_else(wrong)
}

impl fmt::Display for QuotaRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, limits } = self;
        write!(f, "{subject}")?;
        for (name, limit) in [("soft", limits.soft()), ("hard", limits.hard())] {
            if let Some(bytes) = limit {
                write!(f, " {name}={}", show_size(bytes))?;
            }
        }
        if limits.grace() == GRACE { Ok(()) } else { write!(f, " grace={}", show_time(limits.grace())) }
    }
}

/// A time as it is written.
fn show_time(time: Duration) -> String {
    let seconds = time.as_secs();
    let unit = TIMES.iter().find(|(_, unit)| seconds.is_multiple_of(*unit) && seconds > 0);
    unit.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_as_they_are_shown() {
        for text in [
            "/ hard=1TiB",
            "/a b/c=d soft=1GiB hard=2GiB",
            "/hard=1GiB hard=2GiB",
            "anna soft=8GiB hard=10GiB grace=14d",
            "AD\\anna hard=1KiB",
            "1000 soft=5MiB grace=90s",
            "@staff hard=1GiB grace=36h",
            "@AD\\Domain Users hard=1GiB",
            "@100 hard=1025B",
            "* hard=0B",
            "@* hard=1GiB grace=0s",
        ] {
            let rule: QuotaRule = text.parse().unwrap();
            assert_eq!(rule.to_string().parse(), Ok(rule.clone()), "{text}");
            assert_eq!(rule.to_string(), text);
        }
        assert_eq!(
            "anna  grace=7d   hard=1024KiB".parse::<QuotaRule>().unwrap().to_string(),
            "anna hard=1MiB"
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, wrong) in [
            ("", "a quota needs"),
            ("anna", "a quota needs"),
            ("anna grace=1d", "a quota needs"),
            ("anna soft=2GiB hard=1GiB", "above the hard limit"),
            ("anna hard=10", "is no size"),
            ("anna hard=10GB", "is no size"),
            ("anna hard=-1GiB", "is no size"),
            ("anna hard=99999999TiB", "is no size"),
            ("anna hard=1GiB hard=2GiB", "given twice"),
            ("anna hard=1GiB grace=7", "is no time"),
            ("anna hard=1GiB grace=+7d", "is no time"),
            ("anna hard=1GiB grace=99999999999999999d", "is no time"),
            ("anna max=1GiB hard=1GiB", "is neither"),
            (" hard=1GiB", "a quota needs"),
            ("/a//b hard=1GiB", "is no path"),
            ("/a/../b hard=1GiB", "is no path"),
            ("/a/ hard=1GiB", "is no path"),
        ] {
            let said = text.parse::<QuotaRule>().unwrap_err().to_string();
            assert!(said.contains(wrong), "{text}: {said}");
        }
    }

    #[test]
    fn names_stand_for_what_was_looked_up() {
        let names = HashMap::from([("anna".to_owned(), QuotaSubject::User(7))]);
        let meaning = |text: &str| text.parse::<QuotaFor>().unwrap().meaning(&names);
        assert_eq!(meaning("Anna"), Some(QuotaSubject::User(7)), "names of users are folded");
        assert_eq!((meaning("otto"), meaning("@staff")), (None, None));
        assert_eq!(meaning("/a"), Some(QuotaSubject::Directory(b"a".to_vec())));
    }
}
