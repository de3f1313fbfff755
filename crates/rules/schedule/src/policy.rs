//! Policies: which snapshots are taken, and how many are kept.

use std::fmt;

use crate::Every;

/// The most snapshots that a policy keeps: as many as Azure NetApp Files keeps of a volume.
pub const KEEP_MAX: u32 = 255;
/// The longest name of a policy, in bytes: with its period, it is the label of a snapshot.
pub const NAME_BYTES_MAX: usize = 48;

/// How often a rule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// Once an hour.
    Hourly,
    /// Once a day.
    Daily,
    /// On days of the week.
    Weekly,
    /// On days of the month; a month without this day is left out.
    Monthly,
}

impl Period {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hourly, Self::Daily, Self::Weekly, Self::Monthly];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
        }
    }

    /// A rule of this period, as an example.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Hourly => ":05/24",
            Self::Daily => "01:10/14",
            Self::Weekly => "sun,wed@02:30/8",
            Self::Monthly => "1,15@03:00/12",
        }
    }
}

/// A rule: when snapshots are taken, and how many of them are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// How often.
    pub period: Period,
    /// When.
    pub every: Every,
    /// How many snapshots of this rule are kept, 1 to 255.
    pub keep: u32,
}

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The name is one that labels of snapshots cannot have.
    #[error(
        "{0:?} cannot be the name of a policy: it has 1 to {NAME_BYTES_MAX} letters, digits, hyphens and underscores"
    )]
    Name(String),
    /// There is no rule.
    #[error("it has no rule: give it one of hourly, daily, weekly and monthly")]
    NoRule,
    /// There are no such times.
    #[error("{text:?} is not a valid {} schedule: expected {}", period.name(), forms(*period))]
    Times {
        /// How often the rule is due.
        period: Period,
        /// What was given.
        text: String,
    },
    /// The number of snapshots is missing or wrong.
    #[error("{text:?} does not say how many snapshots are kept (1 to {KEEP_MAX}): for example {}", period.example())]
    Keep {
        /// How often the rule is due.
        period: Period,
        /// What was given.
        text: String,
    },
    /// The rules keep more together than a policy may.
    #[error("it keeps {0} snapshots; a policy keeps at most {KEEP_MAX}")]
    TooMany(u32),
}

fn forms(period: Period) -> &'static str {
    match period {
        Period::Hourly => ":MINUTE, such as :05",
        Period::Daily => "HOUR:MINUTE, such as 01:10",
        Period::Weekly => "DAYS or DAYS@HOUR:MINUTE, such as sun or mon,thu@02:30",
        Period::Monthly => "DAYS or DAYS@HOUR:MINUTE, such as 1 or 1,15@03:00",
    }
}

impl Rule {
    /// The rule in a text: times, `/`, and how many snapshots are kept.
    ///
    /// # Errors
    /// The text has not the form of this period.
    pub fn parse(period: Period, text: &str) -> Result<Self, PolicyError> {
        let wrong = || PolicyError::Keep { period, text: text.to_owned() };
        let (times, keep) = text.split_once('/').ok_or_else(wrong)?;
        let is_number = keep.bytes().all(|byte| byte.is_ascii_digit());
        let keep = keep.parse().ok().filter(|keep| is_number && (1..=KEEP_MAX).contains(keep));
        Ok(Self { period, every: Every::parse(period, times)?, keep: keep.ok_or_else(wrong)? })
    }
}

/// As it is read.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.every, self.keep)
    }
}

/// A policy: at most one rule of each period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    name: String,
    rules: Vec<Rule>,
}

impl Policy {
    /// A policy with these rules, as they are written.
    ///
    /// # Errors
    /// What is wrong with the name or with a rule.
    pub fn new<'a>(
        name: &str,
        rules: impl IntoIterator<Item = (Period, &'a str)>,
    ) -> Result<Self, PolicyError> {
        check_name(name)?;
        let rules = rules.into_iter().map(|(period, text)| Rule::parse(period, text));
        let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
        let kept = rules.iter().map(|rule| rule.keep).sum();
        match kept {
            0 => Err(PolicyError::NoRule),
            1..=KEEP_MAX => Ok(Self { name: name.to_owned(), rules }),
            _ => Err(PolicyError::TooMany(kept)),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule of this period.
    #[must_use]
    pub fn rule(&self, period: Period) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.period == period)
    }
}

/// Checks that this can be the name of a policy.
///
/// # Errors
/// It cannot.
pub fn check_name(name: &str) -> Result<(), PolicyError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(PolicyError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, rules: &[(Period, &str)]) -> Result<Policy, PolicyError> {
        Policy::new(name, rules.iter().copied())
    }

    #[test]
    fn the_form_of_azure_netapp_files_is_read() {
        let given = [
            (Period::Hourly, ":05/24"),
            (Period::Daily, "01:10/14"),
            (Period::Weekly, "sun/8"),
            (Period::Monthly, "1/12"),
        ];
        let office = policy("office", &given).unwrap();
        assert_eq!(office.name(), "office");
        let written: Vec<_> = office.rules().iter().map(|rule| (rule.period, rule.to_string())).collect();
        assert_eq!(
            written,
            given.map(|(period, text)| {
                let text = match period {
                    Period::Weekly => "sun@00:00/8",
                    Period::Monthly => "1@00:00/12",
                    _ => text,
                };
                (period, text.to_owned())
            })
        );
        assert_eq!(office.rule(Period::Daily).unwrap().keep, 14);
        for period in Period::ALL {
            assert!(Rule::parse(period, period.example()).is_ok(), "{period:?}");
        }
    }

    #[test]
    fn as_many_as_may_be_are_kept_and_no_more() {
        let rules = |n: &'static str| [(Period::Hourly, n), (Period::Monthly, "1/5")];
        assert!(policy("a", &rules(":00/250")).is_ok());
        assert_eq!(policy("a", &rules(":00/251")), Err(PolicyError::TooMany(256)));
        assert_eq!(policy("a", &[]), Err(PolicyError::NoRule));
        for keep in [":00/0", ":00/256", ":00/", ":00", ":00/+1", ":00/1/1", ":00/99999999999"] {
            assert!(
                matches!(policy("a", &[(Period::Hourly, keep)]), Err(PolicyError::Keep { .. })),
                "{keep}"
            );
        }
        assert!(matches!(policy("a", &[(Period::Hourly, "05/1")]), Err(PolicyError::Times { .. })));
    }

    #[test]
    fn names_are_such_as_labels_have() {
        for name in ["", "a.b", "a b", "a/b", "\u{e4}", &"x".repeat(49)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name(&"x".repeat(48)).is_ok() && check_name("a-B_9").is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_right() {
        let said = Rule::parse(Period::Daily, "1:10/14").unwrap_err().to_string();
        assert_eq!(said, "\"1:10\" is not a valid daily schedule: expected HOUR:MINUTE, such as 01:10");
        let said = Rule::parse(Period::Weekly, "sun").unwrap_err().to_string();
        assert_eq!(
            said,
            "\"sun\" does not say how many snapshots are kept (1 to 255): for example sun,wed@02:30/8"
        );
    }
}
