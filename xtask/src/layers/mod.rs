//! Checks that imports only go up the table of ARCHITECTURE.md, that each crate lies in the folder of its layer, and
//! that no circle of files crosses a folder.
//!
//! The table is the only list of what a crate may use. Each allowed use must also exist. The uses of crates are read
//! from the manifests of the workspace (`cargo metadata`), and those of files from the paths in each source.

mod circles;
mod modules;
mod packages;
mod source;
mod table;
mod uses;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::command::Chore;
use crate::repository;
use circles::{circles, crossing, folders, shown};
use modules::Modules;
use packages::{Package, Packages, short};
use table::{Row, Table};

/// Crates that reach outside the process, or need a runtime.
const RUNTIME: [&str; 16] = [
    "tokio",
    "mio",
    "async-std",
    "smol",
    "rustix",
    "nix",
    "socket2",
    "polling",
    "rayon",
    "crossbeam-channel",
    "chrono",
    "time",
    "quanta",
    "jiff",
    "getrandom",
    "rand",
];
/// The in-memory store is shared by threads: `storage` may lock.
const LOCKS: [&str; 3] = ["parking_lot", "spin", "dashmap"];

/// The crate of `cargo xtask`, and its folder.
const CHORES: &str = "xtask";

#[derive(Args, Default)]
pub(crate) struct Chosen {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Print each circle of files, those inside one folder too
    Circles,
}

pub(crate) fn run(chosen: &Chosen) -> Chore {
    let top = repository::top();
    if let Some(What::Circles) = chosen.what {
        return print_circles(&top);
    }
    let verdict = check(&top)?;
    for (name, what) in &verdict.faults {
        println!("FAIL {name} {what}");
    }
    let failed = verdict.failed();
    println!("{} passed, {failed} failed", verdict.members.saturating_sub(failed));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of the checks of a workspace.
struct Verdict {
    members: usize,
    /// Crates, each with a fault.
    faults: Vec<(String, String)>,
}

impl Verdict {
    fn failed(&self) -> usize {
        self.faults.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len()
    }
}

/// Checks the workspace at `top`.
fn check(top: &Path) -> Result<Verdict, String> {
    let table = read_table(top)?;
    let packages = Packages::read(top)?;
    let mut faults = table.faults();
    for (name, _) in table.rows.iter().filter(|(name, _)| !packages.members.contains_key(name)) {
        let what = "is in the table of ARCHITECTURE.md, but there is no such crate";
        faults.push((name.clone(), what.to_owned()));
    }
    for (name, package) in &packages.members {
        let wrong = match table.row(name) {
            Some(row) => Crate { name, row, package, top }.faults(&packages),
            None if name == CHORES => chores_faults(package),
            None => vec!["is not in the table of ARCHITECTURE.md".to_owned()],
        };
        faults.extend(wrong.into_iter().map(|what| (name.clone(), what)));
    }
    Ok(Verdict { members: packages.members.len(), faults })
}

fn read_table(top: &Path) -> Result<Table, String> {
    let page = top.join("ARCHITECTURE.md");
    Ok(Table::read(&fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?))
}

/// The crate of the chores has no row. It lies beside `crates/` and uses none of the crates, so that it builds quickly.
fn chores_faults(package: &Package) -> Vec<String> {
    let misplaced =
        (package.place != CHORES).then(|| format!("stands in {}; its folder is {CHORES}", package.place));
    let used = package.uses.iter().chain(&package.tests);
    let used = used.map(|used| format!("uses {used}; it may use no crate of the table"));
    misplaced.into_iter().chain(used).collect()
}

/// A crate with a row.
struct Crate<'a> {
    name: &'a str,
    row: &'a Row,
    package: &'a Package,
    top: &'a Path,
}

impl Crate<'_> {
    fn faults(&self, packages: &Packages) -> Vec<String> {
        let Self { name, row, package, top } = self;
        let src = top.join(row.folder(name)).join("src");
        let mut wrong = row.import_faults(&package.uses, &package.tests);
        wrong.extend(row.place_faults(name, &package.place));
        let reached = packages.reached(package);
        for (side, other) in [("smb-", "nfs-"), ("nfs-", "smb-")] {
            if name.starts_with(side) {
                let others = reached.iter().filter(|n| short(n).starts_with(other));
                wrong.extend(others.map(|n| format!("reaches {n}")));
            }
        }
        if row.is_pure(name) {
            let banned = |n: &&&str| RUNTIME.contains(n) || LOCKS.contains(n) && *name != "storage";
            let found = reached.iter().filter(banned);
            wrong.extend(found.map(|n| format!("has {n} among its dependencies")));
            wrong.extend(source::impure_lines(&src, top));
        }
        wrong.extend(circle_faults(&Modules::read(&src)));
        wrong
    }
}

/// Circles that cross a folder.
fn circle_faults(modules: &Modules) -> Vec<String> {
    let found = crossing(modules);
    found.iter().map(|c| format!("has a circle of files that crosses a folder: {}", shown(c))).collect()
}

fn print_circles(top: &Path) -> Chore {
    for (name, row) in &read_table(top)?.rows {
        let modules = Modules::read(&top.join(row.folder(name)).join("src"));
        for circle in circles(&modules.arrows()) {
            let folders = folders(&circle, &modules);
            let how = if folders.len() > 1 { "across" } else { "inside" };
            let named = folders.iter().map(|f| if f.is_empty() { "(files in src)" } else { f });
            let named = named.collect::<Vec<_>>().join(", ");
            println!("{name}: {} files, {how} {named}: {}", circle.len(), shown(&circle));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
