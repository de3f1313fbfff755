//! The quotas of a share ([`crate::quotas`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use quota::{Account, Standing};

use crate::schedule::Work;
use crate::{QuotaRule, QuotaStatus, QuotaSubject, Result, Share, UserQuota};

impl Share {
    /// The quotas of the share as they are written.
    #[must_use]
    pub fn quota_rules(&self) -> Arc<Vec<QuotaRule>> {
        self.quotas().rules()
    }

    /// Replaces the quotas of the share by these. Those of names that nobody has looked up yet ([`Share::set_quota_names`]) hold
    /// nobody back. All files are counted in the background; until then, nothing is refused.
    pub fn set_quota_rules(&self, rules: Vec<QuotaRule>) {
        self.quotas().set_rules(rules);
    }

    /// Sets what the names in the quotas stand for from now on, by the names as they are written.
    pub fn set_quota_names(&self, names: HashMap<String, QuotaSubject>) {
        self.quotas().set_names(names);
    }

    /// Sets since when soft limits are exceeded ([`Share::quotas_over_since`]), from before a restart: before the share has
    /// quotas.
    pub fn set_quotas_over_since(&self, over_since: HashMap<QuotaSubject, SystemTime>) {
        self.quotas().set_over_since(over_since);
    }

    /// Since when soft limits are exceeded: to be kept over a restart. None until all files were counted.
    #[must_use]
    pub fn quotas_over_since(&self) -> Option<HashMap<QuotaSubject, SystemTime>> {
        self.quotas().over_since()
    }

    /// What users, groups and directories hold, as far as is known without a call to the store: writes of the last second may
    /// be missing. None without quotas.
    #[must_use]
    pub fn quota_glance(&self) -> Option<QuotaStatus> {
        (!self.quota_rules().is_empty()).then(|| self.quotas().status())
    }

    /// How one user, group or directory stands, as [`Share::quota_glance`] has it, at a cost that does not grow with their
    /// number. None without quotas.
    #[must_use]
    pub fn quota_standing(&self, account: Account) -> Option<Standing> {
        (!self.quota_rules().is_empty()).then(|| self.quotas().standing(account))
    }

    /// When all files were last counted for the quotas; None: not yet.
    #[must_use]
    pub fn quotas_counted(&self) -> Option<SystemTime> {
        self.quotas().counted()
    }

    /// Whether the share has quotas.
    #[must_use]
    pub fn has_quotas(&self) -> bool {
        self.quotas().is_on()
    }

    /// Has all files counted again in the background, because something was changed without the share.
    pub fn count_quotas_again(&self) {
        self.quotas().count_again();
    }

    /// What users, groups and directories hold; None without quotas.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached) while the store does not answer.
    pub async fn quota_status(self: &Arc<Self>) -> Result<Option<QuotaStatus>> {
        if !self.has_quotas() {
            return Ok(None);
        }
        self.run_unasked(Work::Metadata, |share, may| Ok(Some(share.quotas().settled_status(may)))).await
    }

    /// What these users hold and may hold, in their order, at a cost that does not grow with the number of accounts. None for one
    /// who holds nothing and for whom no quota holds.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached) while the store does not answer.
    pub async fn user_quotas(self: &Arc<Self>, uids: Vec<u32>) -> Result<Vec<Option<UserQuota>>> {
        if !self.has_quotas() {
            return Ok(vec![None; uids.len()]);
        }
        self.run_unasked(Work::Metadata, move |share, may| Ok(share.quotas().settled_users(&uids, may))).await
    }
}
