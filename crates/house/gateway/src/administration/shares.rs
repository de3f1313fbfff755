//! The shares of [`Administration`].

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use control::shares::{NewShare, Rules, Share, ShareChange};
use control::{Refusal, RefusalKind};
use limits::{Plan, PoolError, Provisioned};
use nfs_server::NfsServer;
use share::{Protocols, RansomwareRule, SHARES_MAX, Terms, folded_name, served_by};
use state::{ShareRecord, burst_credits, rules};

use super::snapshots::check_has_snapshots;
use super::{Administration, Serving, clones, failed, invalid, pools};
use crate::declared::{Declared, DeclaredShare, Idle};
use crate::descriptors::Allotment;
use crate::kerberos::check_names;
use crate::opening::Opener;
use crate::problem::Problem;
use crate::settings::{check_share_name, same_share_name, split_directory, written_directory};
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
        Ok(Share { alarms: self.alarms(&share.name), snapshots, encryption_at_rest, ..share })
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
            ..tell(&record.name, &record.directory, record.terms(), plan)
        }
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
        let terms =
            terms_of(new) | homes | flavors(name, &new.nfs_security)? | groups(name, &new.nfs_groups)?;
        let terms = terms | snapshot_folders(name, &new.nfs_snapshots)?;
        check_encryption(name, terms)?;
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
        let rules = new.rules.of(&Rules::default());
        self.check_rules(name, &rules)?;
        check_comment(name, &new.comment)?;
        let mut record = ShareRecord {
            name: name.clone(),
            directory,
            rules,
            comment: new.comment.clone(),
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
        let entered = made.and_then(|()| self.enter_made(&record));
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
    fn enter_made(&self, record: &ShareRecord) -> Result<()> {
        let share = match &self.serving {
            Some(serving) => {
                let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
                let opener = Opener::new(&self.declared(), &self.state, opens_max, &serving.access_log);
                let share = opener.made_in_time(record).map_err(of_directory)?;
                check_has_snapshots(&share, &record.snapshot_policy)?;
                Some(share)
            }
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
        let before = record.provisioned().unwrap_or_default();
        let mut provisioned = before.clone();
        if let Some(plan) = &change.plan {
            let plan = parse_plan(&record.name, plan)?;
            self.check_pools(&record.name, &plan, &self.made_shares()?)?;
            provisioned = before.change(plan, SystemTime::now()).map_err(|e| {
                let what = format!("the share {}: {e}", record.name);
                Refusal::new(
                    RefusalKind::Plan,
                    what,
                    "This is a rule of the plan. An increase is possible at any time.",
                )
            })?;
        }
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
        let refused = |e| invalid(format!("the share {name}: {e}"), "docs/shares.md has the forms.");
        let rules = rules::parse(rules).map_err(refused)?;
        let Some(serving) = &self.serving else { return Ok(()) };
        check_names(name, &rules.rights, &serving.accounts.tickets().settings)
            .map_err(|Problem { what, advice, .. }| invalid(what, &advice))
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
        use_rules(serving, share, record.terms(), record.rules().map_err(failed)?);
        if record.terms().contains(Terms::ENCRYPTED) || share.rules().name_certificates() {
            opening::tell_what_is_lacking(share, self.declared().encryption);
        }
        share.set_metadata_cache(!record.uncached);
        share.set_comment(record.comment.clone());
        share.set_recycle_bin(record.recycle_bin().map_err(failed)?);
        share.set_ransomware_rule(record.ransomware_alarm().map_err(failed)?);
        let plan = record.provisioned().map_err(failed)?.plan;
        if share.plan() == plan {
            return Ok(());
        }
        let late = |e| Refusal::new(RefusalKind::Plan, format!("the share {}: {e}", record.name), "");
        share.set_plan(plan, SystemTime::now()).map_err(late)?;
        self.keep_credits()
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

/// Applies new terms and rules of a share. Clients that the rules no longer admit, or admit differently, lose their
/// opens.
fn use_rules(serving: &Serving, share: &share::Share, terms: Terms, rules: share::Rules) {
    if (share.terms(), &*share.rules()) != (terms, &rules) {
        share.set_terms(terms);
        share.set_rules(rules);
        serving.names.look_again();
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

fn check_comment(name: &str, comment: &str) -> Result<()> {
    rules::check_comment(comment)
        .map_err(|e| invalid(format!("the share {name}: {e}"), "Take a shorter one."))
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

fn tell(name: &str, directory: &Path, terms: Terms, plan: String) -> Share {
    Share {
        name: name.to_owned(),
        directory: written_directory(directory, terms).to_string_lossy().into_owned(),
        declared_in: None,
        served: false,
        problem: None,
        alarms: Vec::new(),
        read_only: terms.contains(Terms::READ_ONLY),
        guest: terms.contains(Terms::GUESTS),
        access_based_enumeration: terms.contains(Terms::ACCESS_BASED_ENUMERATION),
        continuous_availability: terms.contains(Terms::CONTINUOUSLY_AVAILABLE),
        encrypted: terms.contains(Terms::ENCRYPTED),
        tls_required: terms.contains(Terms::TLS),
        nfs_security: rules::write_nfs_security(terms),
        nfs_groups: rules::write_nfs_groups(terms),
        nfs_snapshots: rules::write_nfs_snapshots(terms),
        devices: terms.contains(Terms::DEVICES),
        set_id: terms.contains(Terms::SET_ID),
        secure_port: terms.contains(Terms::SECURE_PORT),
        hidden: terms.contains(Terms::HIDDEN),
        comment: String::new(),
        metadata_cache: true,
        access_log: !terms.contains(Terms::UNLOGGED),
        rules: Rules::default(),
        served_by: Vec::new(),
        snapshot_policy: String::new(),
        recycle_bin: String::new(),
        ransomware_alarm: String::new(),
        snapshots: None,
        encryption_at_rest: None,
        restorable_until: None,
        pool: None,
        size: None,
        plan,
    }
}

fn terms_of(new: &NewShare) -> Terms {
    let mut terms = Terms::empty();
    terms.set(Terms::READ_ONLY, new.read_only);
    terms.set(Terms::GUESTS, new.guest);
    terms.set(Terms::ACCESS_BASED_ENUMERATION, new.access_based_enumeration);
    terms.set(Terms::CONTINUOUSLY_AVAILABLE, new.continuous_availability);
    // What TLS does for NFS, encryption does for SMB.
    terms.set(Terms::ENCRYPTED, new.encrypted || new.tls_required);
    terms.set(Terms::TLS, new.tls_required);
    terms.set(Terms::DEVICES, new.devices);
    terms.set(Terms::SET_ID, new.set_id);
    terms.set(Terms::SECURE_PORT, new.secure_port);
    terms.set(Terms::HIDDEN, new.hidden);
    terms.set(Terms::UNLOGGED, new.access_log == Some(false));
    terms
}

fn changed_terms(name: &str, mut terms: Terms, change: &ShareChange) -> Result<Terms> {
    let encrypted = change.encrypted.or_else(|| change.tls_required.filter(|required| *required));
    let changes = [
        (Terms::READ_ONLY, change.read_only),
        (Terms::GUESTS, change.guest),
        (Terms::ACCESS_BASED_ENUMERATION, change.access_based_enumeration),
        (Terms::CONTINUOUSLY_AVAILABLE, change.continuous_availability),
        (Terms::ENCRYPTED, encrypted),
        (Terms::TLS, change.tls_required),
        (Terms::DEVICES, change.devices),
        (Terms::SET_ID, change.set_id),
        (Terms::SECURE_PORT, change.secure_port),
        (Terms::HIDDEN, change.hidden),
        (Terms::UNLOGGED, change.access_log.map(|logged| !logged)),
    ];
    for (term, wanted) in changes {
        terms.set(term, wanted.unwrap_or_else(|| terms.contains(term)));
    }
    if let Some(named) = &change.nfs_security {
        terms = (terms - Terms::RPC_FLAVORS) | flavors(name, named)?;
    }
    if let Some(word) = &change.nfs_groups {
        terms = (terms - Terms::GROUPS_OF_CLIENT - Terms::GROUPS_OF_SERVER) | groups(name, word)?;
    }
    if let Some(word) = &change.nfs_snapshots {
        terms = (terms - Terms::SNAPSHOT_FOLDERS) | snapshot_folders(name, word)?;
    }
    check_encryption(name, terms)?;
    Ok(terms)
}

/// Whether NFS clients find earlier versions.
fn snapshot_folders(name: &str, word: &str) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/snapshots.md says what each does.");
    rules::parse_nfs_snapshots(word).map_err(refused)
}

/// Who says in which groups users of NFS are.
fn groups(name: &str, word: &str) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/shares.md says what each does.");
    rules::parse_nfs_groups(word).map_err(refused)
}

/// The flavors with which NFS clients may use a share.
fn flavors(name: &str, named: &[String]) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/kerberos.md says what each does.");
    rules::parse_nfs_security(named).map_err(refused)
}

/// Refuses terms about encryption that do not go together.
fn check_encryption(name: &str, terms: Terms) -> Result<()> {
    if terms.contains(Terms::TLS) && !terms.contains(Terms::ENCRYPTED) {
        let what = format!("the share {name} requires TLS, so it is encrypted");
        return Err(invalid(what, "Switch off tls-required, too."));
    }
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/kerberos.md has the rules.");
    rules::check_nfs_security(terms).map_err(refused)
}

fn parse_plan(name: &str, plan: &str) -> Result<Plan> {
    plan.parse()
        .map_err(|e| invalid(format!("the plan of the share {name}: {e}"), "docs/plans.md has all plans."))
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

fn of_directory(problem: Problem) -> Refusal {
    Refusal::new(RefusalKind::Directory, problem.what, problem.advice)
}
