//! Reads the tables of a file key by key, so that one mistake does not hide another.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer};

use super::include::{Includes, KEY};
use crate::place::{Mistake, Place, Places, Section};
use crate::settings::Key;

/// The keys whose values are in no message, even if they are wrong.
const SECRETS: [&str; 2] = ["password", "nt-hash"];

/// Reads one file.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    file: Arc<Path>,
    text: &'a str,
    /// What is wrong so far.
    pub(super) mistakes: &'a mut Vec<Mistake>,
    /// Where the keys stand.
    pub(super) places: &'a mut Places,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        file: &Path,
        text: &'a str,
        mistakes: &'a mut Vec<Mistake>,
        places: &'a mut Places,
    ) -> Self {
        Self { file: file.into(), text, mistakes, places }
    }

    /// The place of this part of the text.
    pub(super) fn place(&self, part: &Range<usize>) -> Place {
        let line = self.text.bytes().take(part.start).filter(|b| *b == b'\n').count() + 1;
        Place { file: Arc::clone(&self.file), line }
    }

    pub(super) fn mistake(
        &mut self,
        part: &Range<usize>,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let place = Some(self.place(part));
        self.mistakes.push(Mistake { place, what: what.into(), advice: advice.into() });
    }

    /// The whole file as a table. Where its syntax is wrong, the rest of it is read all the same.
    pub(super) fn parse(&mut self) -> DeTable<'a> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            // Not the error's own text: it would repeat the line, which may hold a password.
            self.mistake(&error.span().unwrap_or(0..0), error.message(), "The file is TOML: https://toml.io");
        }
        table.into_inner()
    }

    /// The values of a table, as far as they are right, and the keys of which nothing is right.
    pub(super) fn read_keys<'i, T>(&mut self, table: &DeTable<'i>, known: &[Key]) -> (T, Vec<&'static str>)
    where
        T: Default + Deserialize<'i>,
    {
        let (mut right, mut wrong) = (DeTable::new(), Vec::new());
        for (name, value) in table {
            match known.iter().find(|key| key.name == name.get_ref().as_ref()) {
                None => self.unknown(name, known),
                Some(key) => {
                    if let Some(value) = self.right_part::<T>(key, name, value) {
                        right.insert(name.clone(), value);
                    } else {
                        wrong.push(key.name);
                    }
                }
            }
        }
        // Each value was read before.
        let read = T::deserialize(Deserializer::from(Spanned::new(0..0, right))).unwrap_or_default();
        (read, wrong)
    }

    /// The value, without those elements of a list that are wrong. None: nothing of it is right.
    fn right_part<'i, T: Deserialize<'i>>(
        &mut self,
        key: &Key,
        name: &Spanned<DeString<'i>>,
        value: &Spanned<DeValue<'i>>,
    ) -> Option<Spanned<DeValue<'i>>> {
        let alone = |value: &Spanned<DeValue<'i>>| {
            let mut table = DeTable::new();
            table.insert(name.clone(), value.clone());
            T::deserialize(Deserializer::from(Spanned::new(0..0, table))).map(drop)
        };
        let mut right = value.clone();
        if let DeValue::Array(elements) = value.get_ref() {
            let list = |elements| Spanned::new(value.span(), DeValue::Array(elements));
            let mut left = DeArray::new();
            for element in elements {
                match alone(&list(DeArray::from_iter([element.clone()]))) {
                    Ok(()) => left.push(element.clone()),
                    Err(error) => self.bad_value(key, element, &error),
                }
            }
            if left.is_empty() && !elements.is_empty() {
                return None;
            }
            right = list(left);
        }
        alone(&right).map_err(|error| self.bad_value(key, value, &error)).ok()?;
        Some(right)
    }

    fn bad_value(&mut self, key: &Key, value: &Spanned<DeValue<'_>>, error: &toml::de::Error) {
        let what = match key.name {
            name if SECRETS.contains(&name) => format!("{name}: expected a text in quotes"),
            name => format!("{name}: {}", in_words(error.message())),
        };
        let advice = format!("For example: {} = {}", key.name, key.example);
        self.mistake(&error.span().unwrap_or_else(|| value.span()), what, advice);
    }

    fn unknown(&mut self, name: &Spanned<DeString<'_>>, known: &[Key]) {
        let names = || known.iter().map(|key| key.name);
        let advice = match nearest(name.get_ref(), names()) {
            Some(known) => format!("Did you mean `{known}`?"),
            None => format!("The settings here are: {}.", names().collect::<Vec<_>>().join(", ")),
        };
        self.mistake(&name.span(), format!("there is no setting `{}`", name.get_ref()), advice);
    }

    /// Drops the keys that another file has given, except for lists, which add up.
    pub(super) fn refuse_repeated(&mut self, top: &mut DeTable<'_>, lists: &[&str]) {
        let is_repeated = |name: &&Spanned<DeString<'_>>| {
            let name = name.get_ref().as_ref();
            !lists.contains(&name) && self.places.of(&Section::Server, name).is_some()
        };
        let repeated: Vec<_> = top.keys().filter(is_repeated).cloned().collect();
        for name in repeated {
            let key = name.get_ref().as_ref();
            if let Some(other) = self.places.of(&Section::Server, key).cloned() {
                let what = format!("{key} is given twice: the other is in {other}");
                self.mistake(&name.span(), what, "Give it in one of the files only.");
            }
            top.remove(key);
        }
    }

    /// The patterns of files to include, with their places.
    pub(super) fn read_includes<'i>(
        &mut self,
        (name, value): (Spanned<DeString<'i>>, Spanned<DeValue<'i>>),
    ) -> Vec<(Place, String)> {
        let place = self.place(&name.span());
        self.places.enter(Section::Server, KEY.name, place.clone());
        let mut table = DeTable::new();
        table.insert(name, value);
        let (Includes { include }, _) = self.read_keys(&table, &[KEY]);
        include.into_iter().map(|pattern| (place.clone(), pattern)).collect()
    }

    /// Notes where a section and its keys stand.
    pub(super) fn enter(&mut self, section: &Section, whole: Option<&Range<usize>>, table: &DeTable<'_>) {
        if let Some(whole) = whole {
            self.places.enter(section.clone(), Places::WHOLE, self.place(whole));
        }
        for name in table.keys() {
            self.places.enter(section.clone(), name.get_ref(), self.place(&name.span()));
        }
    }
}

/// A message of the reader of TOML, without the types of this program.
fn in_words(message: &str) -> String {
    let words = [
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected a nonzero u32", "expected a number from 1"),
        ("expected socket address", "expected ADDR:PORT"),
        ("expected a sequence", "expected a list"),
        ("expected a string", "expected a text in quotes"),
        ("expected path string", "expected a path in quotes"),
        ("expected a boolean", "expected true or false"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: table"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    words.into_iter().fold(message.to_owned(), replace)
}

/// The known name that `name` was most likely meant to be.
pub(super) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let name = name.to_lowercase().replace('_', "-");
    let near = known.clone().min_by_key(|k| strsim::damerau_levenshtein(&name, k))?;
    let mut long = known.filter(|k| k.len() > 2);
    let contained = long.find(|k| k.contains(&name) || name.contains(k));
    if strsim::damerau_levenshtein(&name, near) <= 1 + near.len() / 4 { Some(near) } else { contained }
}
