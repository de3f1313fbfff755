//! The shares of [`Administration`].

use std::path::{Path, PathBuf};

use control::shares::{NewShare, Rules, Share, ShareChange};
use control::{Refusal, RefusalKind};
use limits::{Plan, PoolError, Provisioned};
use nfs_server::NfsServer;
use share::{Protocols, RansomwareRule, SHARES_MAX, Terms, folded_name, served_by};
use state::{ShareRecord, burst_credits, rules};

use super::redundancy::{check_plan, stated, tell_stated};
use super::snapshots::check_has_snapshots;
use super::{Administration, Serving, clones, failed, invalid, pools};
use crate::cephfs::Kept;
use crate::declared::{Declared, DeclaredShare, Idle};
use crate::descriptors::Allotment;
use crate::opening::Opener;
use crate::problem::Problem;
use crate::settings::{check_share_name, same_share_name, split_directory};
use crate::share_settings::{
    asked_terms, changed_plan, changed_terms, check_comment, check_rules, parse_plan, tell, use_plan,
    use_rules,
};
use crate::snapshots::now;
use crate::waiting::wait_for;
use crate::{at_rest, cephfs, directories, in_time, opening};

type Result<T> = std::result::Result<T, Refusal>;

impl Administration {
    pub(super) fn made_shares(&self) -> Result<Vec<ShareRecord>> {
        self.state.made_shares().map_err(failed)
    }

    pub(super) fn made_share(&self, name: &str) -> Result<ShareRecord> {
        let declared = self.declared();
        if let Some(share) = declared.share(name) {
            let (name, place) = (&share.given.name, declared.share_place(name));
            let what = format!("the share {name} is declared in {place}");
            return Err(Refusal::new(RefusalKind::Declared, what, declared.advice(place)));
        }
        let made = self.made_shares()?.into_iter().find(|share| same_share_name(&share.name, name));
        made.ok_or_else(|| {
            let what = format!("there is no share {name}");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch share list` lists the shares.")
        })
    }

    pub(super) fn all_shares(&self) -> Result<Vec<Share>> {
        let declared = self.declared();
        let of_configuration = declared.shares.iter().map(|share| self.tell_declared(share, &declared));
        let made = self.made_shares()?;
        let mut shares: Vec<Share> =
            of_configuration.chain(made.iter().map(|record| self.tell_made(record))).collect();
        for share in &mut shares {
            share.alarms = self.alarms(&share.name);
        }
        shares.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(shares)
    }

    pub(super) fn one_share(&self, name: &str) -> Result<Share> {
        let declared = self.declared();
        let share = match declared.share(name) {
            Some(share) => self.tell_declared(share, &declared),
            None => self.tell_made(&self.made_share(name)?),
        };
        let snapshots = self.summary(&share.name);
        let encryption_at_rest =
            share.served.then(|| encryption_at_rest(Path::new(&share.directory))).flatten();
        let share = Share { alarms: self.alarms(&share.name), snapshots, encryption_at_rest, ..share };
        Ok(if share.served { self.with_what_is_kept(share) } else { share })
    }

    pub(super) fn tell_made(&self, record: &ShareRecord) -> Share {
        let plan = if record.plan.is_empty() { Plan::Unlimited.to_string() } else { record.plan.clone() };
        let declared = self.declared();
        let problem = match declared.share(&record.name) {
            Some(_) => Some(opening::shadowed(&record.name, declared.share_place(&record.name))),
            None => self.why_not_served(&record.name),
        };
        let rules = record.rules();
        let protocols = rules.as_ref().map_or(Protocols::all(), |rules| rules.protocols);
        Share {
            served: self.serving.is_some() && problem.is_none(),
            problem,
            metadata_cache: !record.uncached,
            rules: rules.map_or_else(|_| record.rules.clone(), |rules| rules::write(&rules)),
            served_by: by_protocols(protocols, record.terms(), &declared, self.nfs()),
            comment: record.comment.clone(),
            snapshot_policy: record.snapshot_policy.clone(),
            recycle_bin: write_kept_bin(&record.recycle_bin),
            ransomware_alarm: write_kept_alarm(&record.ransomware_alarm),
            read_only: self.is_read_only(&record.name, record.terms()),
            pool: record.pool.as_ref().map(|made| declared.pool_name(&record.directory, made)),
            size: record.pool.as_ref().map(|_| pools::size(record)),
            tier: tell_stated(stated(record), &record.directory),
            ..tell(&record.name, &record.directory, record.terms(), plan)
        }
    }

    /// The protocols by which this gateway serves a share with these terms.
    pub(crate) fn protocols_of(&self, protocols: Protocols, terms: Terms) -> Vec<String> {
        by_protocols(protocols, terms, &self.declared(), self.nfs())
    }

    fn nfs(&self) -> Option<&NfsServer> {
        self.serving.as_ref().map(|serving| &*serving.nfs)
    }

    fn tell_declared(&self, share: &DeclaredShare, declared: &Declared) -> Share {
        let DeclaredShare { given, directory, .. } = share;
        let problem = self.why_not_served(&given.name);
        Share {
            declared_in: Some(declared.share_place(&given.name).to_owned()),
            served: problem.is_none(),
            problem,
            metadata_cache: given.metadata_cache,
            rules: rules::write(&given.rules),
            comment: given.comment.clone(),
            snapshot_policy: given.snapshot_policy.clone(),
            recycle_bin: rules::write_recycle_bin(given.recycle_bin.as_ref()),
            ransomware_alarm: rules::write_ransomware_alarm(given.ransomware_alarm),
            read_only: self.is_read_only(&given.name, given.terms),
            tier: tell_stated(given.tier, directory),
            served_by: by_protocols(given.rules.protocols, given.terms, declared, self.nfs()),
            ..tell(&given.name, directory, given.terms, given.plan.to_string())
        }
    }

    /// Whether a share takes no changes: by its terms, or because its storage cannot be written.
    fn is_read_only(&self, name: &str, terms: Terms) -> bool {
        let share = self.serving.as_ref().and_then(|serving| serving.shares.present().by_name(name).cloned());
        terms.contains(Terms::READ_ONLY) || share.is_some_and(|share| share.is_read_only())
    }

    /// Why the running server does not serve a share.
    fn why_not_served(&self, name: &str) -> Option<String> {
        let is_awaited = |serving: &Serving| serving.shares.present().awaited_by_name(name).is_some();
        if self.serving.as_ref().is_some_and(is_awaited) {
            return Some(self.why_awaited(name));
        }
        self.idle.lock().get(&folded_name(name)).cloned()
    }

    /// The alarms about the storage of a share that is served, and about its snapshot policy.
    fn alarms(&self, name: &str) -> Vec<String> {
        let share = self.serving.as_ref().and_then(|serving| serving.shares.present().by_name(name).cloned());
        let fails = self.serving.is_some() && self.snapshotting.notes.is_failing(name, now());
        let of_store = share.iter().flat_map(|share| control::alarms(share));
        of_store.chain(fails.then_some(control::SNAPSHOTS_ALARM)).map(str::to_owned).collect()
    }

    pub(super) fn make_share(&self, new: &NewShare) -> Result<Share> {
        // In this order, as where a share goes back to a snapshot: the turn, then the shares.
        let original = new.from.as_deref().map(|from| self.original(from)).transpose()?;
        let mut idle = self.idle.lock();
        let name = &new.name;
        check_share_name(name).map_err(|why| invalid(format!("the share {name:?}: {why}"), NAME_ADVICE))?;
        let made = self.made_shares()?;
        self.check_name_is_free(name, &made)?;
        if made.len() + self.declared().shares.len() >= SHARES_MAX {
            let what = format!("there are {SHARES_MAX} shares already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let (directory, homes) = split_directory(Path::new(&new.directory))
            .map_err(|why| invalid(format!("share {name}: {why}"), HOMES_ADVICE))?;
        let terms = asked_terms(new)? | homes;
        let in_pool = self.place_in_pool(new)?;
        let directory = match (&original, &in_pool) {
            (_, Some(place)) => place.directory.clone(),
            (Some(_), None) => clones::place(name, &directory)?,
            (None, None) => check_directory(name, &directory, terms)?,
        };
        if in_pool.is_none() {
            self.check_outside_pools(name, &directory)?;
            self.check_stays(name, &directory)?;
        }
        self.check_apart(name, &directory, &made)?;
        let plan = parse_plan(name, new.plan.as_deref().unwrap_or("unlimited"))?;
        self.check_pools(name, &plan, &made)?;
        let (_, kept) = Self::wanted(new, &directory, &plan)?;
        let rules = new.rules.of(&Rules::default());
        self.check_rules(name, &rules)?;
        check_comment(name, &new.comment)?;
        let mut record = ShareRecord {
            name: name.clone(),
            directory,
            rules,
            comment: new.comment.clone(),
            tier: new.tier.clone().unwrap_or_default(),
            uncached: new.metadata_cache == Some(false),
            snapshot_policy: self.check_policy(name, &new.snapshot_policy)?,
            recycle_bin: check_recycle_bin(name, &new.recycle_bin)?,
            ransomware_alarm: check_ransomware_alarm(name, &new.ransomware_alarm)?,
            quotas: in_pool.iter().map(|place| pools::written_size(place.size)).collect(),
            pool: in_pool.as_ref().map(|place| place.made.clone()),
            ..ShareRecord::default().on(terms)
        };
        record.provision(&Provisioned::new(plan));
        if let Some(original) = &original {
            original.copy_to(name, &record.directory)?;
        }
        let made = in_pool.map_or(Ok(()), |place| self.make_in_pool(name, place));
        let entered = made.and_then(|()| self.enter_made(&record, kept));
        // Of a directory that was made for it, nothing is left.
        self.abandoned.wake();
        match original {
            Some(_) => entered.map_err(|refusal| clones::copy_stays(&record.directory, refusal)),
            None => entered,
        }?;
        idle.remove(&folded_name(name));
        drop(idle);
        tracing::info!(share = name, directory = %record.directory.display(), "a share was created");
        Ok(self.tell_made(&record))
    }

    /// Keeps a new share, and serves it if a server is running.
    fn enter_made(&self, record: &ShareRecord, kept: Option<Kept>) -> Result<()> {
        let share = match &self.serving {
            Some(serving) => {
                let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
                let opener = Opener::new(&self.declared(), &self.state, opens_max, &serving.access_log);
                let share = opener.made_in_time(record).map_err(of_directory)?;
                check_has_snapshots(&share, &record.snapshot_policy)?;
                if let Some(kept) = kept {
                    self.keep_data(&record.name, &record.directory, kept)?;
                }
                Some(share)
            }
            None if kept.is_some() => return Err(without_server(&record.name)),
            None => None,
        };
        match &record.pool {
            Some(made) => self.state.keep_share_of_pool(record, made),
            None => self.state.keep_share(record),
        }
        .map_err(failed)?;
        if let (Some(serving), Some(share)) = (&self.serving, share) {
            serving
                .shares
                .enter(&share)
                .map_err(|e| Refusal::new(RefusalKind::NameTaken, e.to_string(), ""))?;
            self.allot_opens();
            serving.names.look_again();
            opening::tell_what_is_lacking(&share, self.declared().encryption);
            self.keep_credits()?;
        }
        Ok(())
    }

    pub(super) fn set_share(&self, name: &str, change: &ShareChange) -> Result<Share> {
        // Before the others wait: the storage may not answer.
        let held = self.held_if_smaller(name, change.size)?;
        let mut idle = self.idle.lock();
        let mut record = self.made_share(name)?;
        let as_it_was = record.clone();
        let terms = changed_terms(&record.name, record.terms(), change)?;
        let mut provisioned = record.provisioned().unwrap_or_default();
        if let Some(tier) = &change.tier {
            record.tier = Self::changed_tier(&record, tier)?;
        }
        if let Some(plan) = &change.plan {
            let plan = parse_plan(&record.name, plan)?;
            self.check_pools(&record.name, &plan, &self.made_shares()?)?;
            provisioned = changed_plan(&record, plan)?;
        }
        check_plan(&record.name, &provisioned.plan, stated(&record))?;
        if terms.contains(Terms::READ_ONLY) != record.terms().contains(Terms::READ_ONLY) {
            check_directory(&record.name, &record.directory, terms)?;
        }
        record.rules = change.rules.of(&record.rules);
        self.check_rules(&record.name, &record.rules)?;
        if let Some(comment) = &change.comment {
            check_comment(&record.name, comment)?;
            record.comment.clone_from(comment);
        }
        if let Some(policy) = &change.snapshot_policy {
            record.snapshot_policy = self.check_policy(&record.name, policy)?;
            let present = self.serving.as_ref().map(|serving| serving.shares.present());
            if let Some(share) = present.as_ref().and_then(|shares| shares.by_name(&record.name)) {
                check_has_snapshots(share, &record.snapshot_policy)?;
            }
        }
        if let Some(bin) = &change.recycle_bin {
            record.recycle_bin = check_recycle_bin(&record.name, bin)?;
        }
        if let Some(alarm) = &change.ransomware_alarm {
            record.ransomware_alarm = check_ransomware_alarm(&record.name, alarm)?;
        }
        let quotas = change.size.map(|to| self.resized(&record, to, held)).transpose()?;
        record.set_terms(terms);
        record.uncached = change.metadata_cache.map_or(record.uncached, |kept| !kept);
        record.provision(&provisioned);
        self.state.keep_share(&record).map_err(failed)?;
        self.use_share(&record, &mut idle)?;
        if let Some(rules) = quotas {
            self.use_quotas(&mut record, rules)?;
        }
        drop(idle);
        if record != as_it_was {
            let size = change.size;
            tracing::info!(share = record.name, ?terms, plan = record.plan, size, "a share was changed");
        }
        Ok(self.tell_made(&record))
    }

    /// Checks what a share is to have for rules. Whom names of a domain mean is for the server that runs.
    fn check_rules(&self, name: &str, rules: &Rules) -> Result<()> {
        let kerberos = self.serving.as_ref().map(|serving| serving.accounts.tickets());
        check_rules(name, rules, kerberos.as_ref().map(|tickets| &tickets.settings))
    }

    /// Makes the running server use a share as it is now. A share that could not be served is tried again.
    pub(super) fn use_share(&self, record: &ShareRecord, idle: &mut Idle) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        let present = serving.shares.present();
        let Some(share) = present.by_name(&record.name) else {
            self.check_apart(&record.name, &record.directory, &self.made_shares()?)?;
            let opens_max = Allotment::of(serving.descriptors, present.len() + 1).opens;
            let opener = Opener::new(&self.declared(), &self.state, opens_max, &serving.access_log);
            let share = opener.made_in_time(record).map_err(of_directory)?;
            serving
                .shares
                .enter(&share)
                .map_err(|e| Refusal::new(RefusalKind::NameTaken, e.to_string(), ""))?;
            idle.remove(&folded_name(&record.name));
            self.allot_opens();
            serving.names.look_again();
            return Ok(());
        };
        use_rules(share, record.terms(), record.rules().map_err(failed)?, &serving.names);
        if record.terms().contains(Terms::ENCRYPTED) || share.rules().name_certificates() {
            opening::tell_what_is_lacking(share, self.declared().encryption);
        }
        share.set_metadata_cache(!record.uncached);
        share.set_comment(record.comment.clone());
        share.set_recycle_bin(record.recycle_bin().map_err(failed)?);
        share.set_ransomware_rule(record.ransomware_alarm().map_err(failed)?);
        let plan = record.provisioned().map_err(failed)?.plan;
        if use_plan(share, plan)? { self.keep_credits() } else { Ok(()) }
    }

    /// Stores the burst credits of all shares. A new plan is the last thing that can have changed them.
    pub(super) fn keep_credits(&self) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        burst_credits::keep(&serving.shares.present(), self.state.server(), burst_credits::RESERVE)
            .map_err(failed)
    }

    pub(super) fn end_share(&self, name: &str) -> Result<Share> {
        self.check_is_no_replica(&self.made_share(name)?.name)?;
        // In this order: the turn for snapshots, then the shares.
        let kept = self.kept_for_destinations(name);
        let mut idle = self.idle.lock();
        let record = self.made_share(name)?;
        self.check_is_no_replica(&record.name)?;
        let restorable_until = self.take_off(&record)?;
        idle.remove(&folded_name(&record.name));
        let mut ended = Ok(());
        if let Some(serving) = &self.serving {
            serving.shares.await_no_more(&record.name);
            let id = serving.shares.present().by_name(&record.name).map(|share| share.id());
            if let Some(gone) = id.and_then(|id| serving.shares.withdraw(id)) {
                ended = wait_for(async {
                    serving.nfs.end_share(&gone).await;
                    serving.smb.end_share(&gone).await;
                });
            }
            self.allot_opens();
        }
        drop(idle);
        // Whatever came of that: nothing knows these snapshots any more.
        if let Some(kept) = kept {
            self.end_destinations(kept);
        }
        ended?;
        tracing::info!(share = record.name, "a share was removed");
        Ok(Share { served: false, restorable_until, ..self.tell_made(&record) })
    }

    pub(super) fn check_name_is_free(&self, name: &str, made: &[ShareRecord]) -> Result<()> {
        let taken = |taken: &str, how: &str| {
            let what = format!("the name {name} is taken: the share {taken} {how}");
            Refusal::new(RefusalKind::NameTaken, what, "Names do not differ by case. Choose another name.")
        };
        let declared = self.declared();
        if let Some(share) = declared.share(name) {
            return Err(taken(&share.given.name, &format!("is declared in {}", declared.share_place(name))));
        }
        match made.iter().find(|share| same_share_name(&share.name, name)) {
            Some(made) => Err(taken(&made.name, &format!("serves {}", made.directory.display()))),
            None => Ok(()),
        }
    }

    /// Whether the storage of a share answers, as far as is known.
    pub(super) fn answers(&self, name: &str) -> bool {
        let Some(serving) = &self.serving else { return true };
        let present = serving.shares.present();
        let is_stuck = present.by_name(name).is_some_and(|share| share.store_health().is_stuck);
        !is_stuck && present.awaited_by_name(name).is_none()
    }

    /// Whether the capacity pools of Azure NetApp Files have room for the plan.
    pub(super) fn check_pools(&self, name: &str, plan: &Plan, made: &[ShareRecord]) -> Result<()> {
        let configuration = self.declared();
        let declared = configuration.shares.iter().map(|share| share.given.plan.clone());
        let others = made.iter().filter(|share| !same_share_name(&share.name, name));
        let others = others.filter_map(|share| share.provisioned().ok()).map(|provisioned| provisioned.plan);
        let plans: Vec<Plan> = declared.chain(others).chain([plan.clone()]).collect();
        limits::check_pools(&plans).map_err(|e: PoolError| {
            invalid(
                format!("the plan {plan} of the share {name}: {e}"),
                "docs/plans.md has the rules of pools.",
            )
        })
    }

    /// Distributes the descriptors among the present shares, those of vservers among them.
    pub(crate) fn allot_opens(&self) {
        let Some(serving) = &self.serving else { return };
        let (opens_max, of_vservers) = (self.opens_with(0), serving.vservers.shares());
        for share in serving.shares.present().iter().chain(&of_vservers) {
            share.set_opens_max(opens_max);
        }
    }

    /// The most opens of each share, if there were so many more.
    pub(crate) fn opens_with(&self, more: usize) -> usize {
        let Some(serving) = &self.serving else { return 0 };
        let present = serving.shares.present().len() + serving.vservers.shares().len();
        Allotment::of(serving.descriptors, present + more).opens
    }
}

fn encryption_at_rest(directory: &Path) -> Option<String> {
    // Where each user has a directory, the one that holds them counts. One in CephFS is not of this machine.
    let (directory, _) = split_directory(directory).ok()?;
    if cephfs::absolute(&directory).is_some() {
        return None;
    }
    in_time::answer(move || at_rest::encryption(&directory)).flatten().map(str::to_owned)
}

/// A ransomware alarm as the state database has it.
fn check_ransomware_alarm(name: &str, text: &str) -> Result<String> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/ransomware.md has the form.");
    let alarm = rules::parse_ransomware_alarm(text).map_err(refused)?;
    Ok(if text.trim().is_empty() { String::new() } else { rules::write_ransomware_alarm(alarm) })
}

/// The same as people write it.
fn write_kept_alarm(kept: &str) -> String {
    if kept.is_empty() { RansomwareRule::default().to_string() } else { kept.to_owned() }
}

/// A recycle bin as the state database has it.
fn check_recycle_bin(name: &str, text: &str) -> Result<String> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/recycle-bin.md has the form.");
    let bin = rules::parse_recycle_bin(text).map_err(refused)?;
    Ok(bin.map_or_else(String::new, |bin| bin.to_string()))
}

/// The same as people write it.
fn write_kept_bin(kept: &str) -> String {
    if kept.is_empty() { "off".to_owned() } else { kept.to_owned() }
}

pub(super) const NAME_ADVICE: &str =
    "A name has 1 to 80 bytes, none of \" \\ / [ ] : | < > + = ; , * ? and no control characters.";

const HOMES_ADVICE: &str = "Each SMB user sees the directory that has the name of the user there.";

/// The protocols that serve a share. NFS encrypts what it carries with TLS, or if its clients can get tickets for this server.
fn by_protocols(
    protocols: Protocols,
    terms: Terms,
    declared: &Declared,
    nfs: Option<&NfsServer>,
) -> Vec<String> {
    let flavors = terms & Terms::RPC_FLAVORS;
    let needs_tickets = !flavors.is_empty() && !flavors.contains(Terms::RPC_SYS);
    let takes_none = nfs.is_some_and(|nfs| !nfs.can_encrypt());
    let protocols = if needs_tickets && takes_none { protocols - Protocols::NFS } else { protocols };
    if declared.encryption.is_in_nfs {
        return rules::write_protocols(protocols);
    }
    let terms = if declared.encryption.is_required { terms | Terms::ENCRYPTED } else { terms };
    let terms = if nfs.is_some_and(NfsServer::can_encrypt) { terms - Terms::ENCRYPTED } else { terms };
    rules::write_protocols(served_by(protocols, terms))
}

/// Only a server that runs has a session with the cluster.
fn without_server(name: &str) -> Refusal {
    let what = format!(
        "the share {name}: no server is running, and only a running one gives a directory in CephFS its data pool"
    );
    Refusal::new(RefusalKind::Directory, what, "Start it: anabranch serve")
}

pub(super) fn check_directory(name: &str, directory: &Path, terms: Terms) -> Result<PathBuf> {
    if !directory.is_absolute() && cephfs::path_of(directory).is_none() {
        return Err(Refusal::new(
            RefusalKind::Directory,
            format!("share {name}: the directory {directory:?} is not absolute"),
            "Give an absolute path: the server may run in another directory.",
        ));
    }
    directories::check_in_time(name, directory, terms).map_err(of_directory)
}

pub(super) fn of_directory(problem: Problem) -> Refusal {
    Refusal::new(RefusalKind::Directory, problem.what, problem.advice)
}
