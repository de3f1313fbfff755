//! What goes to the recycle bin of a share, and how long it stays there.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The most days for which a file may be kept: 100 years. To keep files for good, leave `keep` out.
const DAYS_MAX: u32 = 36_500;
/// The most patterns of one share, and the most bytes of one pattern.
const PATTERNS_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 255;

/// The settings of a recycle bin. As text: `on`, followed by words such as `keep=30d exclude=*.tmp exclude=cache/ largest=1GiB`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecycleBin {
    /// How many days a file is kept. None: until somebody deletes it in the bin.
    keep: Option<u32>,
    /// Larger files are removed at once. In bytes.
    largest: Option<u64>,
    /// Names of files and directories (with a slash behind) that do not go to the bin, with `*` and `?`.
    exclude: Vec<String>,
}

impl RecycleBin {
    /// How long a file is kept. None: for good.
    #[must_use]
    pub fn keep(&self) -> Option<Duration> {
        self.keep.map(|days| DAY * days)
    }

    /// Whether a file of this size goes to the bin, in a directory that is reached by these names from the root.
    pub(crate) fn takes<'a>(&self, mut dirs: impl Iterator<Item = &'a [u8]>, name: &[u8], size: u64) -> bool {
        let of_dirs = || self.exclude.iter().filter_map(|pattern| pattern.strip_suffix('/'));
        self.largest.is_none_or(|largest| size <= largest)
            && !self.exclude.iter().any(|pattern| matches(pattern, name))
            && !dirs.any(|dir| of_dirs().any(|pattern| matches(pattern, dir)))
    }
}

/// Whether a name matches a pattern, in which `*` is any text, and `?` any character. ASCII letters match in either case.
fn matches(pattern: &str, name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    let (pattern, name): (Vec<char>, Vec<char>) = (folded(pattern), folded(&name));
    // Where to go on after a mismatch: behind the last `*`, with one more character taken by it.
    let (mut p, mut n, mut star) = (0, 0, None);
    while let Some(character) = name.get(n) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(expected) if *expected == '?' || expected == character => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((behind, taken)) = star else { return false };
                star = Some((behind, taken + 1));
                (p, n) = (behind, taken + 1);
            }
        }
    }
    pattern.get(p..).is_none_or(|rest| rest.iter().all(|character| *character == '*'))
}

fn folded(text: &str) -> Vec<char> {
    text.chars().map(|character| character.to_ascii_lowercase()).collect()
}

/// What is wrong with the settings of a recycle bin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecycleBinError {
    /// The text begins with something else than `on`.
    #[error(
        "the recycle bin is `off`, or `on` with what is to be known about it, for example: on keep=30d exclude=*.tmp"
    )]
    Form,
    /// A word that nobody knows.
    #[error("`{0}` says nothing about a recycle bin: expected keep=30d, exclude=*.tmp or largest=1GiB")]
    Word(String),
    /// A word that may stand there once, twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// Not a number of days.
    #[error("keep={0}: expected a number of days from 1d to {DAYS_MAX}d")]
    Keep(String),
    /// Not a size.
    #[error("largest={0}: expected a size in KiB, MiB, GiB or TiB, as 64KiB")]
    Largest(String),
    /// Not a pattern.
    #[error(
        "exclude={0}: expected the name of files as *.tmp, or of directories as cache/, of at most {PATTERN_BYTES_MAX} \
         bytes; for a space, write a question mark"
    )]
    Pattern(String),
    /// Too many patterns.
    #[error("more than {PATTERNS_MAX} patterns")]
    Patterns,
}

impl FromStr for RecycleBin {
    type Err = RecycleBinError;

    fn from_str(text: &str) -> Result<Self, RecycleBinError> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some("on") {
            return Err(RecycleBinError::Form);
        }
        let mut bin = Self::default();
        for word in words {
            match word.split_once('=') {
                Some(("keep", _)) if bin.keep.is_some() => return Err(RecycleBinError::Twice("keep")),
                Some(("keep", days)) => bin.keep = Some(parse_days(days)?),
                Some(("largest", _)) if bin.largest.is_some() => {
                    return Err(RecycleBinError::Twice("largest"));
                }
                Some(("largest", size)) => bin.largest = Some(parse_size(size)?),
                Some(("exclude", pattern)) => bin.exclude.push(parse_pattern(pattern)?),
                _ => return Err(RecycleBinError::Word(word.to_owned())),
            }
        }
        if bin.exclude.len() > PATTERNS_MAX {
            return Err(RecycleBinError::Patterns);
        }
        Ok(bin)
    }
}

fn parse_days(text: &str) -> Result<u32, RecycleBinError> {
    let days = text.strip_suffix('d').filter(|days| days.bytes().all(|byte| byte.is_ascii_digit()));
    let days = days.and_then(|days| days.parse().ok()).filter(|days| (1..=DAYS_MAX).contains(days));
    days.ok_or_else(|| RecycleBinError::Keep(text.to_owned()))
}

fn parse_size(text: &str) -> Result<u64, RecycleBinError> {
    limits::parse_size(text).ok_or_else(|| RecycleBinError::Largest(text.to_owned()))
}

fn parse_pattern(text: &str) -> Result<String, RecycleBinError> {
    let name = text.strip_suffix('/').unwrap_or(text);
    let is_name = !name.is_empty() && !name.contains('/') && text.len() <= PATTERN_BYTES_MAX;
    is_name.then(|| text.to_owned()).ok_or_else(|| RecycleBinError::Pattern(text.to_owned()))
}

impl Display for RecycleBin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("on")?;
        if let Some(days) = self.keep {
            write!(f, " keep={days}d")?;
        }
        if let Some(bytes) = self.largest {
            write!(f, " largest={}", limits::show_size(bytes))?;
        }
        self.exclude.iter().try_for_each(|pattern| write!(f, " exclude={pattern}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(text: &str) -> RecycleBin {
        text.parse().unwrap()
    }

    #[test]
    fn settings_are_read_and_written() {
        for text in ["on", "on keep=30d", "on keep=1d largest=1GiB exclude=*.tmp exclude=cache/"] {
            assert_eq!(bin(text).to_string(), text);
        }
        assert_eq!(bin("on").keep(), None);
        assert_eq!(bin(" on\tkeep=2d ").keep(), Some(Duration::from_secs(2 * 24 * 3600)));
        let many = "on".to_owned() + &" exclude=a".repeat(PATTERNS_MAX);
        assert_eq!(bin(&many).exclude.len(), PATTERNS_MAX);
        let wrong = |text: &str| text.parse::<RecycleBin>().unwrap_err();
        assert_eq!(wrong(&(many + " exclude=b")), RecycleBinError::Patterns);
        for text in ["", "off", "true", "keep=30d", "ON"] {
            assert_eq!(wrong(text), RecycleBinError::Form, "{text}");
        }
        for days in ["", "d", "30", "0d", "36501d", "+3d", "-1d", "1.5d", "1h"] {
            assert_eq!(wrong(&format!("on keep={days}")), RecycleBinError::Keep(days.to_owned()));
        }
        for size in ["", "7", "-1KiB", "1MB"] {
            assert_eq!(wrong(&format!("on largest={size}")), RecycleBinError::Largest(size.to_owned()));
        }
        let long = "x".repeat(PATTERN_BYTES_MAX + 1);
        for pattern in ["", "/", "a/b", "a//", long.as_str()] {
            assert_eq!(wrong(&format!("on exclude={pattern}")), RecycleBinError::Pattern(pattern.to_owned()));
        }
        assert_eq!(wrong("on keep=1d keep=2d"), RecycleBinError::Twice("keep"));
        assert_eq!(wrong("on largest=1KiB largest=2KiB"), RecycleBinError::Twice("largest"));
        assert_eq!(wrong("on forever"), RecycleBinError::Word("forever".to_owned()));
    }

    #[test]
    fn names_match_patterns() {
        for (pattern, name) in [
            ("*.tmp", "a.tmp"),
            ("*.TMP", "a.b.tmp"),
            ("~$*", "~$Report.docx"),
            ("?.o", "\u{e4}.o"),
            ("*", ""),
            ("a*b*c", "aXbXbc"),
            ("a?*", "ab"),
        ] {
            assert!(matches(pattern, name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.tmp", "a.tmp2"),
            ("?.o", ".o"),
            ("", "a"),
            ("a*b*c", "aXc"),
            ("a?*", "a"),
            ("cache/", "cache"),
        ] {
            assert!(!matches(pattern, name.as_bytes()), "{pattern} {name}");
        }
        // As many steps as characters times stars, and no more.
        let (pattern, name) = ("*a".repeat(60) + "b", "a".repeat(255));
        assert!(!matches(&pattern, name.as_bytes()));
    }

    #[test]
    fn what_is_excluded_does_not_go_there() {
        let bin = bin("on largest=1KiB exclude=*.tmp exclude=cache*/");
        let takes = |dirs: &[&str], name: &str, size| {
            bin.takes(dirs.iter().map(|dir| dir.as_bytes()), name.as_bytes(), size)
        };
        assert!(takes(&[], "a", 1024) && takes(&["a", "b"], "cache", 0));
        assert!(!takes(&[], "a", 1025) && !takes(&[], "a.tmp", 0));
        assert!(!takes(&["cache"], "a", 0) && !takes(&["a", "Cache2", "b"], "a", 0));
        assert!(takes(&["a.tmp"], "a", 0), "that pattern is for files");
    }
}
