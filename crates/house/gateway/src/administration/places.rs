//! Where shares may be: no directory of one is, holds or lies in that of another, a pool, the state directory, or what the server removes.

use std::path::Path;

use control::{Refusal, RefusalKind};
use state::ShareRecord;

use super::{Administration, failed};
use crate::apart::Apart;
use crate::settings::same_share_name;
use crate::{pools, problem};

type Result<T> = std::result::Result<T, Refusal>;

impl Administration {
    /// Checks that a share does not overlap with another share or with the state directory.
    pub(super) fn check_apart(&self, name: &str, directory: &Path, made: &[ShareRecord]) -> Result<()> {
        self.apart_but(Some(name), made)
            .check(name, directory)
            .map_err(|problem| Refusal::new(RefusalKind::Overlap, problem.what, problem.advice))
    }

    /// The directories of all shares, those of vservers among them, of pools, the state directory, and what the server removes.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub(crate) fn apart(&self) -> problem::Result<Apart> {
        let mut apart = self.apart_but(None, &self.state.made_shares()?);
        for pool in &self.declared().pools {
            apart.take_pool(&pool.name, &pool.directory);
        }
        pools::take_doomed(&mut apart, &self.state)?;
        Ok(apart)
    }

    /// The directories of all shares.
    pub(super) fn apart_of_shares(&self) -> Result<Apart> {
        Ok(self.apart_but(None, &self.made_shares()?))
    }

    /// Checks that the server does not remove a directory, now or later.
    pub(super) fn check_stays(&self, name: &str, directory: &Path) -> Result<()> {
        let mut apart = Apart::from_state(self.state.directory());
        pools::take_doomed(&mut apart, &self.state).map_err(failed)?;
        apart
            .check(name, directory)
            .map_err(|problem| Refusal::new(RefusalKind::Overlap, problem.what, problem.advice))
    }

    /// The same without the share of this name, which no vserver has.
    fn apart_but(&self, name: Option<&str>, made: &[ShareRecord]) -> Apart {
        let mut apart = Apart::from_state(self.state.directory());
        let declared = self.declared();
        let declared = declared.shares.iter().map(|share| (&share.given.name, &share.directory));
        let made = made.iter().map(|share| (&share.name, &share.directory));
        let is_other = |other: &str| name.is_none_or(|name| !same_share_name(other, name));
        for (other, directory) in declared.chain(made).filter(|(other, _)| is_other(other)) {
            if self.answers(other) {
                apart.take(other, directory);
            } else {
                apart.take_unseen(other, directory);
            }
        }
        let vservers = self.serving.as_ref().map(|serving| serving.vservers.directories());
        for (share, directory) in vservers.into_iter().flatten() {
            apart.take_unseen(&share, &directory);
        }
        apart
    }

    /// Checks that a share whose directory the server has not made lies in no pool.
    pub(super) fn check_outside_pools(&self, name: &str, directory: &Path) -> Result<()> {
        let mut apart = Apart::from_state(self.state.directory());
        for pool in &self.declared().pools {
            apart.take_pool(&pool.name, &pool.directory);
        }
        apart
            .check(name, directory)
            .map_err(|problem| Refusal::new(RefusalKind::Overlap, problem.what, problem.advice))
    }
}
