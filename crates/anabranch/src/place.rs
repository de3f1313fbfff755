//! Where settings stand in the configuration files, and what is wrong with them there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use gateway::{Finding, Subject};

use crate::problem::{Cause, Problem};

/// A line of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: Arc<Path>,
    /// The first line is 1.
    pub(crate) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file.display(), self.line)
    }
}

/// The part of a configuration to which a key belongs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    /// The top of the file.
    Server,
    /// The share of this name, in lower case.
    Share(String),
    /// The user of this name, in lower case.
    User(String),
    /// The snapshot policy of this name, in lower case.
    Policy(String),
    /// The pool of this name, in lower case.
    Pool(String),
}

impl Section {
    pub(crate) fn share(name: &str) -> Self {
        Self::Share(name.to_lowercase())
    }

    pub(crate) fn policy(name: &str) -> Self {
        Self::Policy(name.to_lowercase())
    }

    pub(crate) fn pool(name: &str) -> Self {
        Self::Pool(name.to_lowercase())
    }

    pub(crate) fn user(name: &str) -> Self {
        Self::User(name.to_lowercase())
    }
}

/// Where each key stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places(BTreeMap<(Section, String), Place>);

impl Places {
    /// The key under which the place of a whole section is kept: its first line.
    pub(crate) const WHOLE: &'static str = "";

    pub(crate) fn of(&self, section: &Section, key: &str) -> Option<&Place> {
        self.0.get(&(section.clone(), key.to_owned()))
    }

    /// The place of a key, otherwise of its section.
    pub(crate) fn nearest(&self, section: &Section, key: &str) -> Option<&Place> {
        self.of(section, key).or_else(|| self.of(section, Self::WHOLE))
    }

    /// Enters the place of a key that has none yet.
    pub(crate) fn enter(&mut self, section: Section, key: &str, place: Place) {
        self.0.entry((section, key.to_owned())).or_insert(place);
    }

    pub(crate) fn remove(&mut self, section: &Section, key: &str) {
        self.0.remove(&(section.clone(), key.to_owned()));
    }

    /// Takes the places of the server's keys, other than these, from elsewhere.
    pub(crate) fn take_server_from(&mut self, other: &Self, except: &[&str]) {
        let is_taken = |(section, key): &(Section, String)| {
            *section == Section::Server && !except.contains(&key.as_str())
        };
        self.0.retain(|at, _| !is_taken(at));
        let taken = other.0.iter().filter(|(at, _)| is_taken(at));
        self.0.extend(taken.map(|(at, place)| (at.clone(), place.clone())));
    }

    /// Keeps the places of these sections only.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Section) -> bool) {
        self.0.retain(|(section, _), _| keeps(section));
    }
}

/// Something that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) section: Section,
    pub(crate) key: &'static str,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do about it; may be empty.
    pub(crate) advice: String,
}

impl Wrong {
    pub(crate) fn new(
        section: Section,
        key: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { section, key, what: what.into(), advice: advice.into() }
    }

    /// The mistake at its place.
    pub(crate) fn at(self, places: &Places) -> Mistake {
        let place = places.nearest(&self.section, self.key).cloned();
        Mistake { place, what: self.what, advice: self.advice }
    }
}

/// Something that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mistake {
    /// None: it is not in a file.
    pub(crate) place: Option<Place>,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do about it; may be empty.
    pub(crate) advice: String,
}

impl Mistake {
    /// What the gateway found, at the place that it is about.
    pub(crate) fn found(finding: Finding, places: &Places) -> Self {
        let Finding { subject, what, advice, .. } = finding;
        let (section, key) = match subject {
            Subject::Server(key) => (Section::Server, key),
            Subject::Share(name, key) => (Section::share(&name), key),
            Subject::Pool(name, key) => (Section::pool(&name), key),
            Subject::User(name, key) => (Section::user(&name), key),
        };
        Self { place: places.nearest(&section, key).cloned(), what, advice }
    }

    /// What is wrong, and where.
    pub(crate) fn what(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.what),
            None => self.what.clone(),
        }
    }
}

/// All mistakes as one problem. None: there are no mistakes.
pub(crate) fn problem(mut mistakes: Vec<Mistake>) -> Option<Problem> {
    let last = mistakes.pop()?;
    let before = mistakes.into_iter().map(|mistake| {
        let advice =
            if mistake.advice.is_empty() { String::new() } else { format!("\n  {}", mistake.advice) };
        format!("{}{advice}\nerror: ", mistake.what())
    });
    let what = before.collect::<String>() + &last.what();
    Some(Problem::new(Cause::Settings, what, last.advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: usize, what: &str, advice: &str) -> Mistake {
        let place = Some(Place { file: Path::new("a.toml").into(), line });
        Mistake { place, what: what.to_owned(), advice: advice.to_owned() }
    }

    #[test]
    fn several_mistakes_are_told_in_the_order_of_their_lines() {
        let mut mistakes = vec![mistake(10, "two", "Do that."), mistake(9, "one", "Do this.")];
        mistakes.sort();
        let told = problem(mistakes).unwrap();
        let expected = "error: a.toml line 9: one\n  Do this.\nerror: a.toml line 10: two\n  Do that.";
        assert_eq!(told.to_string(), expected);
        assert_eq!(problem(Vec::new()), None);
    }

    #[test]
    fn a_key_without_a_place_is_in_its_section() {
        let mut places = Places::default();
        let at = |line| Place { file: Path::new("a.toml").into(), line };
        places.enter(Section::share("Data"), Places::WHOLE, at(3));
        places.enter(Section::share("Data"), "plan", at(5));
        let line = |key| places.nearest(&Section::share("data"), key).map(|place| place.line);
        assert_eq!((line("plan"), line("directory")), (Some(5), Some(3)));
        assert_eq!(places.nearest(&Section::Server, "smb"), None);
    }
}
