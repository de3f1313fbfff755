//! What is held, and whether more may be.

use std::collections::HashMap;
use std::time::SystemTime;

use crate::account::{Account, Owners, Subject};
use crate::count::Count;
use crate::limits::Limits;

/// Why nothing more may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Whose quota it is.
    pub account: Account,
    /// Since when it holds more than its soft limit, if its grace is over; None: its hard limit is reached.
    pub over_since: Option<SystemTime>,
    /// It may fit all the same, if what is reserved for others turns out not to be needed.
    pub depends_on_others: bool,
}

/// How an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whose it is.
    pub account: Account,
    /// Bytes that are held.
    pub used: u64,
    /// Its quota, if it has one.
    pub limits: Option<Limits>,
    /// Whether the quota is that of everybody without one.
    pub is_default: bool,
    /// Since when more than the soft limit is held.
    pub over_since: Option<SystemTime>,
}

impl Standing {
    /// Bytes that may be held in addition, before writing is refused at last.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limits.map_or(u64::MAX, |limits| limits.last().saturating_sub(self.used))
    }
}

/// What is known of an account.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    used: i128,
    /// For writes that have not ended.
    reserved: i128,
    over_since: Option<SystemTime>,
    /// The quota of the account, and whether it is that of everybody without one.
    limits: Option<(Limits, bool)>,
}

/// Accounts and quotas.
///
/// Until the first count has ended, nothing is refused.
#[derive(Debug, Default)]
pub struct Ledger {
    quotas: HashMap<Subject, Limits>,
    balances: HashMap<Account, Balance>,
    is_counted: bool,
    counting: Option<Count>,
}

impl Ledger {
    /// Replaces the quotas. Accounts of directories that have none any more are dropped.
    pub fn set_quotas(&mut self, quotas: HashMap<Subject, Limits>, now: SystemTime) {
        self.quotas = quotas;
        let quotas = &self.quotas;
        self.balances.retain(|account, balance| {
            balance.limits = limits_of(quotas, *account);
            !matches!(account, Account::Directory(_)) || balance.limits.is_some()
        });
        self.look_at_soft_limits(now);
    }

    /// The quotas.
    #[must_use]
    pub fn quotas(&self) -> &HashMap<Subject, Limits> {
        &self.quotas
    }

    /// Whether all files have been counted once.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// What is known of an account, which may be new.
    fn balance(&mut self, account: Account) -> &mut Balance {
        let quotas = &self.quotas;
        self.balances
            .entry(account)
            .or_insert_with(|| Balance { limits: limits_of(quotas, account), ..Balance::default() })
    }

    /// What is known of an account; nothing is changed.
    fn known(&self, account: Account) -> Balance {
        let known = self.balances.get(&account).copied();
        known.unwrap_or_else(|| Balance { limits: limits_of(&self.quotas, account), ..Balance::default() })
    }

    /// Reserves bytes for a write to a file of these owners. [`Ledger::settle`] must follow.
    ///
    /// # Errors
    /// [`Refused`], and then nothing is reserved.
    pub fn reserve(&mut self, owners: Owners, bytes: u64, now: SystemTime) -> Result<(), Refused> {
        if bytes == 0 {
            return Ok(());
        }
        owners.accounts().try_for_each(|account| self.check(account, bytes, now))?;
        self.change_reserved(owners, i128::from(bytes));
        Ok(())
    }

    fn change_reserved(&mut self, owners: Owners, by: i128) {
        for account in owners.accounts() {
            self.balance(account).reserved += by;
        }
    }

    /// Whether an account may hold more bytes.
    fn check(&self, account: Account, bytes: u64, now: SystemTime) -> Result<(), Refused> {
        let balance = self.known(account);
        let Some((limits, _)) = balance.limits.filter(|_| self.is_counted) else { return Ok(()) };
        let alone = balance.used + i128::from(bytes);
        let exceeds = |limit: Option<u64>, held: i128| limit.is_some_and(|limit| held > i128::from(limit));
        let refused =
            |limit, over_since| Refused { account, over_since, depends_on_others: !exceeds(limit, alone) };
        if exceeds(limits.hard(), alone + balance.reserved) {
            return Err(refused(limits.hard(), None));
        }
        let is_over =
            |since: &SystemTime| now.duration_since(*since).is_ok_and(|elapsed| elapsed >= limits.grace());
        match balance.over_since.filter(is_over) {
            Some(since) if exceeds(limits.soft(), alone + balance.reserved) => {
                Err(refused(limits.soft(), Some(since)))
            }
            _ => Ok(()),
        }
    }

    /// Ends a reservation of a file, which is charged for `after` instead of `before` from now on.
    pub fn settle(
        &mut self,
        (file, owners): (u64, Owners),
        reserved: u64,
        (before, after): (u64, u64),
        now: SystemTime,
    ) {
        if reserved > 0 {
            self.change_reserved(owners, -i128::from(reserved));
        }
        let by = i128::from(after) - i128::from(before);
        if by != 0 {
            owners.accounts().for_each(|account| self.change(file, account, by, now));
        }
    }

    /// Changes what an account is charged for a file.
    fn change(&mut self, file: u64, account: Account, by: i128, now: SystemTime) {
        let is_counted = self.is_counted;
        let balance = self.balance(account);
        balance.used += by;
        if is_counted {
            balance.look_at_soft_limit(now);
        }
        if let Some(count) = &mut self.counting {
            count.change(file, account, by);
        }
    }

    /// Reserves room for a file that is charged for so many bytes with its new owners. [`Ledger::release_transfer`] must follow.
    ///
    /// # Errors
    /// [`Refused`], and then nothing is reserved.
    pub fn reserve_transfer(
        &mut self,
        from: Owners,
        to: Owners,
        bytes: u64,
        now: SystemTime,
    ) -> Result<(), Refused> {
        if bytes > 0 {
            to.unlike(from).try_for_each(|account| self.check(account, bytes, now))?;
        }
        self.change_transferred(from, to, i128::from(bytes));
        Ok(())
    }

    /// Ends such a reservation.
    pub fn release_transfer(&mut self, from: Owners, to: Owners, bytes: u64) {
        self.change_transferred(from, to, -i128::from(bytes));
    }

    fn change_transferred(&mut self, from: Owners, to: Owners, by: i128) {
        for account in to.unlike(from) {
            self.balance(account).reserved += by;
        }
    }

    /// Charges others for a file from now on, with what is reserved for it.
    pub fn transfer(
        &mut self,
        file: u64,
        (from, to): (Owners, Owners),
        (bytes, reserved): (u64, u64),
        now: SystemTime,
    ) {
        self.change_reserved(from, -i128::from(reserved));
        self.change_reserved(to, i128::from(reserved));
        from.unlike(to).for_each(|account| self.change(file, account, -i128::from(bytes), now));
        to.unlike(from).for_each(|account| self.change(file, account, i128::from(bytes), now));
    }

    /// Begins a count of all files. One that was under way is given up.
    pub fn begin_count(&mut self) {
        self.counting = Some(Count::default());
    }

    /// Whether a count is under way.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        self.counting.is_some()
    }

    /// Counts a file that the walk has reached, which is charged for so many bytes at this moment. A file with several names
    /// is reached several times and counted once. Returns whether it was new to the count.
    pub fn visit(&mut self, file: u64, owners: Owners, bytes: u64) -> bool {
        let Some(count) = &mut self.counting else { return false };
        let is_new = count.visit(file);
        if is_new {
            count.add(owners, bytes);
        }
        is_new
    }

    /// Marks a file that was just made, and is charged for nothing.
    pub fn made(&mut self, file: u64) {
        if let Some(count) = &mut self.counting {
            count.visit(file);
        }
    }

    /// Ends the count: what it has found is what accounts hold.
    pub fn end_count(&mut self, now: SystemTime) {
        let Some(count) = self.counting.take() else { return };
        let totals = count.totals();
        self.balances.values_mut().for_each(|balance| balance.used = 0);
        for (account, used) in totals {
            self.balance(account).used = used;
        }
        self.balances.retain(|_, balance| balance.used != 0 || balance.reserved != 0);
        self.is_counted = true;
        self.look_at_soft_limits(now);
    }

    /// Gives up the count that is under way.
    pub fn abandon_count(&mut self) {
        self.counting = None;
    }

    fn look_at_soft_limits(&mut self, now: SystemTime) {
        if !self.is_counted {
            return;
        }
        self.balances.values_mut().for_each(|balance| balance.look_at_soft_limit(now));
    }

    /// Restores since when an account holds more than its soft limit, from before a restart.
    pub fn set_over_since(&mut self, account: Account, since: SystemTime) {
        self.balance(account).over_since = Some(since);
    }

    /// How an account stands.
    #[must_use]
    pub fn standing(&self, account: Account) -> Standing {
        let balance = self.known(account);
        let (limits, is_default) = balance.limits.unzip();
        Standing {
            account,
            used: u64::try_from(balance.used).unwrap_or(0),
            limits,
            is_default: is_default.unwrap_or(false),
            over_since: balance.over_since,
        }
    }

    /// How all accounts stand for which a quota holds and that hold something or have one of their own, in any order.
    pub fn limited(&self) -> impl Iterator<Item = Standing> {
        let present = self.balances.iter().filter(|(_, balance)| balance.limits.is_some());
        let own = self.quotas.keys().filter_map(|subject| subject.account());
        let others = own.filter(|account| !self.balances.contains_key(account));
        present.map(|(account, _)| *account).chain(others).map(|account| self.standing(account))
    }

    /// How all accounts stand that hold something or have a quota of their own, in order.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        let own = self.quotas.keys().filter_map(|subject| subject.account());
        let mut accounts: Vec<Account> = self.balances.keys().copied().chain(own).collect();
        accounts.sort_unstable();
        accounts.dedup();
        accounts.into_iter().map(|account| self.standing(account)).collect()
    }
}

/// The quota of an account, and whether it is that of everybody without one.
fn limits_of(quotas: &HashMap<Subject, Limits>, account: Account) -> Option<(Limits, bool)> {
    let own = quotas.get(&account.own()).map(|limits| (*limits, false));
    own.or_else(|| account.default().and_then(|each| quotas.get(&each)).map(|limits| (*limits, true)))
}

impl Balance {
    /// The grace begins when more than the soft limit is held, and is given again once that is over.
    fn look_at_soft_limit(&mut self, now: SystemTime) {
        let soft = self.limits.and_then(|(limits, _)| limits.soft());
        if soft.is_some_and(|soft| self.used > i128::from(soft)) {
            self.over_since.get_or_insert(now);
        } else {
            self.over_since = None;
        }
    }
}

#[cfg(test)]
mod tests;
