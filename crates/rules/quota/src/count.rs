//! A count of all files that goes on while files change.
//!
//! The count has visited some files and not the others. It holds what the visited files are charged for, at every moment: when
//! a visited file changes, the count changes with it, and what happens to other files does not matter until they are visited.
//! A new file counts as visited, because the walk may have passed its place already.

use std::collections::HashMap;

use crate::account::{Account, Owners};
use crate::numbers::Numbers;

/// What the files visited so far are charged for.
#[derive(Debug, Default)]
pub(crate) struct Count {
    visited: Numbers,
    totals: HashMap<Account, i128>,
}

impl Count {
    /// Marks a file as visited. Returns whether it was not.
    pub(crate) fn visit(&mut self, file: u64) -> bool {
        self.visited.insert(file)
    }

    /// Follows a change of what a file is charged for.
    pub(crate) fn change(&mut self, file: u64, account: Account, by: i128) {
        if self.visited.contains(file) {
            *self.totals.entry(account).or_default() += by;
        }
    }

    /// Counts a file that is visited.
    pub(crate) fn add(&mut self, owners: Owners, bytes: u64) {
        for account in owners.accounts() {
            *self.totals.entry(account).or_default() += i128::from(bytes);
        }
    }

    pub(crate) fn totals(self) -> HashMap<Account, i128> {
        self.totals
    }
}
