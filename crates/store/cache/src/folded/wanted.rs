//! What a search looks for, and the names that may match.

use super::names::{Names, is_folded};
use crate::fold::fold;
use crate::short_name::{is_made, short_name};

/// A name to search for.
#[derive(Debug)]
pub(crate) struct WantedName {
    pub(super) folded: Vec<u8>,
    /// Its short name, if it is a long name: a file may have been created by the short name.
    pub(super) short: Option<Vec<u8>>,
    /// Whether the name may be the short name of another name.
    pub(super) is_short: bool,
}

impl WantedName {
    pub(crate) fn of(name: &[u8]) -> Self {
        let folded = fold(name);
        Self { short: short_name(name), is_short: is_made(&folded), folded }
    }
}

/// Names that may match, best first.
#[derive(Debug, Default)]
pub(super) struct Candidates([Option<Vec<u8>>; 3]);

impl Candidates {
    /// The candidates in an index.
    pub(super) fn of(names: &Names, wanted: &WantedName) -> Self {
        let short = wanted.short.as_ref().and_then(|short| names.like(short));
        let by_short = if wanted.is_short { names.of_short(&wanted.folded) } else { None };
        Self([names.like(&wanted.folded), short, by_short].map(|name| name.map(<[u8]>::to_vec)))
    }

    /// Considers a name of the directory.
    pub(super) fn see(&mut self, name: &[u8], wanted: &WantedName) {
        let [exact, short, by_short] = &mut self.0;
        let or = |slot: &mut Option<Vec<u8>>| _ = slot.get_or_insert_with(|| name.to_vec());
        if is_folded(name, &wanted.folded) {
            or(exact);
        } else if wanted.short.as_ref().is_some_and(|folded| is_folded(name, folded)) {
            or(short);
        } else if wanted.is_short && short_name(name).as_ref() == Some(&wanted.folded) {
            or(by_short);
        }
    }

    pub(super) fn best(self) -> Option<Vec<u8>> {
        self.0.into_iter().flatten().next()
    }
}
