//! The table of crates in ARCHITECTURE.md: the only list of what a crate may use.

use crate::words::is_word;

/// The layers of the table that have no runtime, no threads, no sockets, no files and no clock.
const PURE_LAYERS: [&str; 2] = ["wire", "rules"];

/// A crate of the table.
pub(super) struct Row {
    pub(super) layer: String,
    /// The crates that it may use.
    pub(super) uses: Vec<String>,
    /// The crates that its tests may use in addition.
    pub(super) tests: Vec<String>,
}

impl Row {
    /// The folder of the crate: that of its layer. The program has no layer, and lies beside the folders.
    pub(super) fn folder(&self, name: &str) -> String {
        if self.layer == "-" { format!("crates/{name}") } else { format!("crates/{}/{name}", self.layer) }
    }

    /// Whether the crate must be pure. This holds for all crates of some layers, and for `storage`.
    pub(super) fn is_pure(&self, name: &str) -> bool {
        PURE_LAYERS.contains(&self.layer.as_str()) || name == "storage"
    }

    /// Compares the uses of a crate with its row. An allowed use that does not exist is a fault of the table.
    pub(super) fn import_faults(&self, uses: &[String], tests: &[String]) -> Vec<String> {
        let unlisted = uses.iter().filter(|d| !self.uses.contains(d)).map(|d| format!("uses {d}"));
        let unlisted_tests = tests
            .iter()
            .filter(|d| !self.uses.contains(d) && !self.tests.contains(d))
            .map(|d| format!("tests use {d}"));
        let unused = self
            .uses
            .iter()
            .filter(|d| !uses.contains(d))
            .map(|d| format!("may use {d}, and does not: take it out of ARCHITECTURE.md"));
        let unused_tests = self
            .tests
            .iter()
            .filter(|d| !tests.contains(d) || self.uses.contains(d))
            .map(|d| format!("tests may use {d}, and do not: take it out of ARCHITECTURE.md"));
        unlisted.chain(unlisted_tests).chain(unused).chain(unused_tests).collect()
    }

    /// Checks that a crate lies in the folder of its layer.
    pub(super) fn place_faults(&self, name: &str, place: &str) -> Vec<String> {
        let folder = self.folder(name);
        let layer = folder.rsplit_once('/').map_or("", |(layer, _)| layer);
        if place == folder {
            Vec::new()
        } else {
            vec![format!("stands in {place}; its layer's folder is {layer}")]
        }
    }
}

/// The rows of the table, in its order.
pub(super) struct Table {
    pub(super) rows: Vec<(String, Row)>,
}

impl Table {
    /// Finds the table in a page: the rows of five cells whose second cell names a crate.
    pub(super) fn read(page: &str) -> Self {
        let mut rows = Vec::new();
        let mut layer = String::new();
        for line in page.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
            let &[first, named, _, uses, tests] = cells.as_slice() else { continue };
            let name = named.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| is_word(c) || c == '-') {
                continue;
            }
            if !first.is_empty() {
                first.clone_into(&mut layer);
            }
            let row = Row { layer: layer.clone(), uses: listed(uses), tests: listed(tests) };
            rows.push((name.to_owned(), row));
        }
        Self { rows }
    }

    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|(of, _)| of == name).map(|(_, row)| row)
    }

    /// The faults of the table itself: a crate may use only crates above it.
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let mut wrong = Vec::new();
        for (index, (name, row)) in self.rows.iter().enumerate() {
            let above = |wanted: &String| self.rows[..index].iter().any(|(of, _)| of == wanted);
            let below = row.uses.iter().chain(&row.tests).filter(|used| !above(used));
            wrong.extend(below.map(|used| {
                (name.clone(), format!("may use {used}, which does not stand above it in the table"))
            }));
        }
        wrong
    }
}

fn listed(cell: &str) -> Vec<String> {
    if cell == "-" { Vec::new() } else { cell.split(',').map(|name| name.trim().to_owned()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| layer | crate | holds | may use | its tests also |\n\
                        |---|---|---|---|---|\n\
                        | wire | `a` | x | - | - |\n\
                        | | `b` | x | a | - |\n\
                        | rules | `c` | x | b | a |\n\
                        | - | `p` | x | a, c | - |\n";

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn faults(row: &str, uses: &[&str], tests: &[&str]) -> Vec<String> {
        Table::read(PAGE).row(row).unwrap().import_faults(&names(uses), &names(tests))
    }

    #[test]
    fn a_layer_is_that_of_the_last_row_that_names_one() {
        let layers: Vec<_> =
            Table::read(PAGE).rows.into_iter().map(|(name, row)| format!("{} {name}", row.layer)).collect();
        assert_eq!(layers, ["wire a", "wire b", "rules c", "- p"]);
    }

    #[test]
    fn imports_are_those_of_the_row() {
        assert!(faults("c", &["b"], &["a", "b"]).is_empty());
        assert_eq!(faults("c", &["a", "b"], &["a"]), ["uses a"]);
        assert_eq!(faults("b", &["a"], &["c"]), ["tests use c"]);
        assert_eq!(faults("b", &[], &[]), ["may use a, and does not: take it out of ARCHITECTURE.md"]);
        assert_eq!(
            faults("c", &["b"], &["b"]),
            ["tests may use a, and do not: take it out of ARCHITECTURE.md"]
        );
    }

    #[test]
    fn a_row_allows_only_what_stands_above_it() {
        assert!(Table::read(PAGE).faults().is_empty());
        let turned = Table::read("| wire | `a` | x | b | - |\n| | `b` | x | - | b |\n").faults();
        let wrong: Vec<_> = turned.iter().map(|(name, what)| format!("{name} {what}")).collect();
        assert_eq!(
            wrong,
            [
                "a may use b, which does not stand above it in the table",
                "b may use b, which does not stand above it in the table"
            ]
        );
    }

    #[test]
    fn a_crate_stands_in_the_folder_of_its_layer() {
        let table = Table::read(PAGE);
        let faults = |name, place| table.row(name).unwrap().place_faults(name, place);
        assert!(faults("c", "crates/rules/c").is_empty());
        assert!(faults("p", "crates/p").is_empty());
        assert_eq!(
            faults("c", "crates/wire/c"),
            ["stands in crates/wire/c; its layer's folder is crates/rules"]
        );
        assert_eq!(faults("p", "p"), ["stands in p; its layer's folder is crates"]);
    }
}
