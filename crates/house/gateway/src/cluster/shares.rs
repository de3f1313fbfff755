//! Commands on the shares of vservers. Each changes the records of vservers, and waits until the gateways that serve these have done their
//! part.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use control::cluster::VserverShares;
use control::shares::{NewShare, Rules, Share, ShareChange};
use control::{Refusal, RefusalKind};
use limits::Provisioned;
use state::cluster::{Coming, Register, Seen, SharesServed, VserverRecord, VserverShareRecord};
use state::{ShareRecord, rules};

use super::calls::{LOOK, MOVE, Result, refused, too_quick};
use super::{Seat, definition};
use crate::settings::check_share_name;
use crate::share_settings::{
    asked_terms, changed_plan, changed_terms, check_comment, check_rules, parse_plan, tell,
};

/// How often a record is changed that others change at the same time, before the command is refused.
const CHANGES_MAX: usize = 8;

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A share is served.
    Open,
    /// A change of it is in force, or it is gone.
    Done,
}

/// A change of a vserver that was written down.
struct Written {
    register: Arc<Register>,
    record: VserverRecord,
}

fn invalid(what: impl Into<String>, advice: &str) -> Refusal {
    refused(RefusalKind::Invalid, what, advice)
}

fn no_share(vserver: &str, name: &str) -> Refusal {
    let what = format!("the vserver {vserver} has no share {name}");
    let advice = format!("`anabranch vserver share list {vserver}` lists the shares.");
    refused(RefusalKind::NotFound, what, advice)
}

fn last_one(vserver: &str, name: &str) -> Refusal {
    let what = format!("the share {name} is the last one of the vserver {vserver}");
    let advice = format!("Add another share first, or end the vserver: anabranch vserver remove {vserver}");
    refused(RefusalKind::InUse, what, advice)
}

/// Checks that a directory is apart from those of all shares of a vserver.
pub(super) fn check_apart(name: &str, directory: &Path, of: &VserverRecord) -> Result<()> {
    let lie = |other: &ShareRecord| match &other.directory {
        other if other == directory => Some("is"),
        other if directory.starts_with(other) => Some("lies in"),
        other if other.starts_with(directory) => Some("holds"),
        _ => None,
    };
    for VserverShareRecord { share, .. } in &of.shares {
        let Some(lie) = lie(share) else { continue };
        let what = format!(
            "the directory {} of the share {name} {lie} that of the share {} of the vserver {} ({})",
            directory.display(),
            share.name,
            of.name,
            share.directory.display()
        );
        return Err(refused(RefusalKind::Overlap, what, "Give each share a directory of its own."));
    }
    Ok(())
}

/// Refuses settings that shares of vservers do not have.
fn check_settings(name: &str, given: &[(bool, &str)]) -> Result<()> {
    let Some((_, setting)) = given.iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
    let what = format!("the share {name}: shares of vservers have no {setting}");
    Err(invalid(what, "docs/cluster.md has the settings."))
}

/// Names all settings, so that none is added that is ignored here.
fn check_new(new: &NewShare) -> Result<()> {
    let NewShare {
        name,
        directory: _,
        pool,
        size,
        uid,
        gid,
        read_only: _,
        guest: _,
        access_based_enumeration: _,
        continuous_availability: _,
        encrypted: _,
        tls_required: _,
        nfs_security: _,
        nfs_groups: _,
        nfs_snapshots: _,
        devices: _,
        set_id: _,
        secure_port: _,
        hidden: _,
        comment: _,
        metadata_cache,
        access_log: _,
        plan: _,
        redundancy,
        tier,
        snapshot_policy,
        recycle_bin,
        ransomware_alarm,
        rules: _,
        from,
    } = new;
    let given = [
        (pool.is_some() || uid.is_some() || gid.is_some(), "pool"),
        (size.is_some(), "size"),
        (from.is_some(), "snapshot of which they are made"),
        (metadata_cache.is_some(), "metadata cache"),
        (redundancy.is_some(), "redundancy class"),
        (tier.is_some(), "tier"),
        (!snapshot_policy.is_empty(), "snapshot policy"),
        (!recycle_bin.is_empty(), "recycle bin"),
        (!ransomware_alarm.is_empty(), "ransomware alarm"),
    ];
    check_settings(name, &given)
}

/// Names all settings, as [`check_new`] does.
fn check_change(name: &str, change: &ShareChange) -> Result<()> {
    let ShareChange {
        read_only: _,
        guest: _,
        access_based_enumeration: _,
        continuous_availability: _,
        encrypted: _,
        tls_required: _,
        nfs_security: _,
        nfs_groups: _,
        nfs_snapshots: _,
        devices: _,
        set_id: _,
        secure_port: _,
        hidden: _,
        comment: _,
        metadata_cache,
        snapshot_policy,
        recycle_bin,
        ransomware_alarm,
        access_log: _,
        plan: _,
        tier,
        size,
        rules: _,
    } = change;
    let given = [
        (size.is_some(), "size"),
        (metadata_cache.is_some(), "metadata cache"),
        (tier.is_some(), "tier"),
        (snapshot_policy.is_some(), "snapshot policy"),
        (recycle_bin.is_some(), "recycle bin"),
        (ransomware_alarm.is_some(), "ransomware alarm"),
    ];
    check_settings(name, &given)
}

/// The most shares of a vserver.
fn check_room(record: &VserverRecord, name: &str) -> Result<()> {
    if let Some(VserverShareRecord { share, .. }) = record.share(name) {
        let what = format!("the vserver {} has a share {} already", record.name, share.name);
        return Err(refused(
            RefusalKind::NameTaken,
            what,
            "Names do not differ by case. Choose another name.",
        ));
    }
    if record.shares.len() >= definition::SHARES_MAX {
        let what = format!("the vserver {} has {} shares already", record.name, definition::SHARES_MAX);
        return Err(refused(RefusalKind::TooMany, what, "Remove one that nobody needs."));
    }
    Ok(())
}

impl Seat {
    /// A share as it is asked for.
    fn new_share(&self, new: &NewShare) -> Result<ShareRecord> {
        let name = &new.name;
        let advice =
            "A name has 1 to 80 bytes, none of \" \\ / [ ] : | < > + = ; , * ? and no control characters.";
        check_share_name(name).map_err(|why| invalid(format!("the share {name:?}: {why}"), advice))?;
        check_new(new)?;
        let directory = definition::place_of(Path::new(&new.directory));
        let directory: PathBuf = directory
            .map_err(|why| invalid(format!("the share {name}: {why}"), "docs/cluster.md has the forms."))?;
        let rules = new.rules.of(&Rules::default());
        self.check_rules(name, &rules)?;
        check_comment(name, &new.comment)?;
        let plan = parse_plan(name, new.plan.as_deref().unwrap_or("unlimited"))?;
        let mut record = ShareRecord {
            name: name.clone(),
            directory,
            rules,
            comment: new.comment.clone(),
            ..ShareRecord::default().on(asked_terms(new)?)
        };
        record.provision(&Provisioned::new(plan));
        Ok(record)
    }

    /// A share after a change.
    fn changed_share(&self, before: &ShareRecord, change: &ShareChange) -> Result<ShareRecord> {
        let mut record = before.clone();
        check_change(&record.name, change)?;
        record.set_terms(changed_terms(&record.name, before.terms(), change)?);
        if let Some(plan) = &change.plan {
            let plan = parse_plan(&record.name, plan)?;
            record.provision(&changed_plan(before, plan)?);
        }
        record.rules = change.rules.of(&before.rules);
        self.check_rules(&record.name, &record.rules)?;
        if let Some(comment) = &change.comment {
            check_comment(&record.name, comment)?;
            record.comment.clone_from(comment);
        }
        Ok(record)
    }

    fn check_rules(&self, name: &str, rules: &Rules) -> Result<()> {
        let tickets = self.host.lent.accounts.tickets();
        check_rules(name, rules, Some(&tickets.settings))
    }

    /// Writes a vserver down as `change` makes it, whatever others change in it meanwhile.
    fn write_shares(
        &self,
        vserver: &str,
        change: impl Fn(&Register, &VserverRecord) -> Result<VserverRecord>,
    ) -> Result<Written> {
        let register = self.asked_register()?;
        for _ in 0..CHANGES_MAX {
            let seen = self.one_vserver(&register, vserver)?;
            let record = change(&register, &seen.record)?;
            if register.change_vserver(&seen, Some(&record)).map_err(|error| self.no_answer(&error))? {
                self.tell(&register);
                return Ok(Written { register, record });
            }
        }
        Err(too_quick())
    }

    /// Adds a share to a vserver.
    ///
    /// # Errors
    /// Those of the command. The vserver is as it was.
    pub(super) fn add_share(&self, vserver: &str, new: &NewShare) -> Result<Share> {
        let added = VserverShareRecord { share: self.new_share(new)?, coming: Some(Coming::New) };
        let (name, directory) = (&added.share.name, &added.share.directory);
        let written = self.write_shares(vserver, |register, record| {
            check_room(record, name)?;
            for Seen { record, .. } in self.all_vservers(register)?.seen {
                check_apart(name, directory, &record)?;
            }
            Ok(record.with_share(added.clone()))
        })?;
        if let Err(refusal) = self.until(&written, name, Until::Open) {
            self.take_back(vserver, &added, None);
            return Err(refusal);
        }
        tracing::info!(vserver, share = name, directory = %directory.display(), "a share was added");
        self.told_share(vserver, name)
    }

    /// Changes a share of a vserver.
    ///
    /// # Errors
    /// Those of the command. The vserver is as it was.
    pub(super) fn set_share(&self, vserver: &str, name: &str, change: &ShareChange) -> Result<Share> {
        if *change == ShareChange::default() {
            return self.told_share(vserver, name);
        }
        let before = RefCell::new(None);
        let written = self.write_shares(vserver, |_, record| {
            let share = record.share(name).ok_or_else(|| no_share(vserver, name))?;
            *before.borrow_mut() = Some(share.clone());
            let changed = self.changed_share(&share.share, change)?;
            Ok(record.with_share(VserverShareRecord { share: changed, coming: share.coming.clone() }))
        })?;
        if let Err(refusal) = self.until(&written, name, Until::Done) {
            if let Some(changed) = written.record.share(name) {
                self.take_back(vserver, changed, before.into_inner());
            }
            return Err(refusal);
        }
        tracing::info!(vserver, share = name, "a share was changed");
        self.told_share(vserver, name)
    }

    /// Removes a share from a vserver.
    ///
    /// # Errors
    /// Those of the command. Once that was written down, the share is removed whatever comes.
    pub(super) fn remove_share(&self, vserver: &str, name: &str) -> Result<Share> {
        let told = self.told_share(vserver, name)?;
        let written = self.write_shares(vserver, |_, record| {
            record.share(name).ok_or_else(|| no_share(vserver, name))?;
            if record.shares.len() == 1 {
                return Err(last_one(vserver, name));
            }
            Ok(record.without_share(name))
        })?;
        self.until(&written, name, Until::Done).map_err(|refusal| {
            let advice = "The share is removed from the record of the vserver, and is withdrawn as soon as that is possible.";
            Refusal { advice: advice.to_owned(), ..refusal }
        })?;
        tracing::info!(vserver, share = name, "a share was removed");
        Ok(Share { served: false, problem: None, ..told })
    }

    /// Moves a share to another vserver. Both records change at once; from then on, it goes on whoever serves the two.
    ///
    /// # Errors
    /// Those of the command.
    pub(super) fn move_share(&self, from: &str, name: &str, to: &str) -> Result<Share> {
        if from == to {
            return Err(invalid(format!("the share {name} is in the vserver {to} already"), ""));
        }
        let written = self.write_move(from, name, to)?;
        match self.until(&written, name, Until::Open) {
            Ok(()) => {}
            Err(refusal) if refusal.kind == RefusalKind::Directory => {
                // It cannot be served there. Where it was, it can.
                match self.write_move(to, name, from).and_then(|back| self.until(&back, name, Until::Open)) {
                    Ok(()) => {}
                    Err(Refusal { what, .. }) => {
                        tracing::error!(share = name, "moving the share back to the vserver {from}: {what}");
                    }
                }
                return Err(refusal);
            }
            Err(refusal) => {
                let advice =
                    "It goes on by itself: `anabranch vserver share list` tells when the share has come.";
                return Err(Refusal { advice: advice.to_owned(), ..refusal });
            }
        }
        tracing::info!(share = name, "a share was moved from the vserver {from} to the vserver {to}");
        self.told_share(to, name)
    }

    /// Writes down that a share moves, in the records of both vservers.
    fn write_move(&self, from: &str, name: &str, to: &str) -> Result<Written> {
        let register = self.asked_register()?;
        for _ in 0..CHANGES_MAX {
            let (of, at) = (self.one_vserver(&register, from)?, self.one_vserver(&register, to)?);
            let VserverShareRecord { share, coming } =
                of.record.share(name).cloned().ok_or_else(|| no_share(from, name))?;
            // Back to where it comes from, it may go before it has come: it is opened there once it is certain that it is not here.
            if matches!(&coming, Some(Coming::From { vserver, .. }) if vserver != to) {
                let what = format!("the share {name} has not come to the vserver {from} yet");
                return Err(refused(RefusalKind::Busy, what, "Wait until it has."));
            }
            if of.record.shares.len() == 1 {
                return Err(last_one(from, name));
            }
            check_room(&at.record, name)?;
            let mut without = of.record.without_share(name);
            without.went.insert(share.name.clone(), to.to_owned());
            let coming = Some(Coming::From { vserver: from.to_owned(), change: without.share_changes });
            let record = at.record.with_share(VserverShareRecord { share, coming });
            let changed = register.change_two_vservers([(&of, &without), (&at, &record)]);
            if changed.map_err(|error| self.no_answer(&error))? {
                self.tell(&register);
                return Ok(Written { register, record });
            }
        }
        Err(too_quick())
    }

    /// Waits until the gateway that serves a vserver has done what was written down about a share.
    fn until(&self, Written { register, record }: &Written, share: &str, until: Until) -> Result<()> {
        let (vserver, deadline) = (&*record.name, Instant::now() + MOVE);
        // Problems have the spelling of the record.
        let share = record.share(share).map_or(share, |found| &found.share.name);
        loop {
            let (by, epoch) = self.served_by(register, vserver)?;
            let served = self.shares_served(register, vserver)?;
            let served = served.filter(|served| {
                by.is_some() && Some(served.epoch) == epoch && served.changes >= record.share_changes
            });
            if let Some(served) = &served {
                let problem = served.problems.get(share);
                if let Some(why) = problem.filter(|_| !served.passing.contains(share)) {
                    let what = format!("the vserver {vserver} cannot serve the share {share}: {why}");
                    return Err(refused(RefusalKind::Directory, what, ""));
                }
                if problem.is_none() && (until == Until::Done || self.has_come(register, vserver, share)?) {
                    return Ok(());
                }
            }
            if Instant::now() >= deadline {
                if let Some(why) = served.as_ref().and_then(|served| served.problems.get(share)) {
                    let what = format!("the vserver {vserver} cannot serve the share {share} yet: {why}");
                    return Err(refused(RefusalKind::Busy, what, "Its gateway goes on trying."));
                }
                return Err(self.not_yet(register, record, (by, served.is_some())));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn has_come(&self, register: &Register, vserver: &str, share: &str) -> Result<bool> {
        let record = self.one_vserver(register, vserver)?.record;
        let found = record.share(share).ok_or_else(|| no_share(vserver, share))?;
        Ok(found.coming.is_none())
    }

    /// Why something is not done although the time is over.
    fn not_yet(
        &self,
        register: &Register,
        record: &VserverRecord,
        (by, is_seen): (Option<String>, bool),
    ) -> Refusal {
        let VserverRecord { name, gateway, .. } = record;
        let what = match by {
            None => format!("the gateway {gateway} does not serve the vserver {name}"),
            Some(by) if is_seen => {
                format!(
                    "the share waits for the vserver from which it comes: the gateway {by}, which serves {name}, cannot open it before"
                )
            }
            Some(by) => format!("the gateway {by} has not changed the shares of the vserver {name}"),
        };
        let trouble = register.trouble(name).ok().flatten();
        refused(RefusalKind::Busy, what, trouble.as_deref().unwrap_or("Its log says why."))
    }

    /// Takes back what this call has written of a share, unless that was changed meanwhile, or was done.
    fn take_back(&self, vserver: &str, written: &VserverShareRecord, before: Option<VserverShareRecord>) {
        let name = &written.share.name;
        let undone = self.write_shares(vserver, |_, record| {
            if record.share(name) != Some(written) {
                return Err(too_quick());
            }
            Ok(match &before {
                Some(before) => record.with_share(before.clone()),
                None => record.without_share(name),
            })
        });
        if let Err(refusal) = undone {
            tracing::error!(
                vserver,
                share = name,
                "what a command has changed is not taken back: {}",
                refusal.what
            );
        }
    }

    fn shares_served(&self, register: &Register, vserver: &str) -> Result<Option<SharesServed>> {
        register.shares_served(vserver).map_err(|error| self.no_answer(&error))
    }

    /// What stands in the way of shares of a vserver that is served in this epoch, in words.
    pub(super) fn why_shares(
        &self,
        register: &Register,
        vserver: &str,
        epoch: Option<u64>,
    ) -> Result<Option<String>> {
        let served = self.shares_served(register, vserver)?;
        let problems = served.filter(|served| Some(served.epoch) == epoch).unwrap_or_default().problems;
        let all: Vec<_> = problems.iter().map(|(share, why)| format!("the share {share}: {why}")).collect();
        Ok((!all.is_empty()).then(|| all.join("; ")))
    }

    /// The shares of a vserver.
    ///
    /// # Errors
    /// There is no such vserver.
    pub(super) fn told_shares(&self, vserver: &str) -> Result<VserverShares> {
        let register = self.asked_register()?;
        let record = self.one_vserver(&register, vserver)?.record;
        let (by, _) = self.served_by(&register, vserver)?;
        let served = self.shares_served(&register, vserver)?.filter(|_| by.is_some());
        let mut shares: Vec<_> =
            record.shares.iter().map(|share| self.tell_share(share, served.as_ref())).collect();
        shares.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(VserverShares { vserver: record.name, shares, went: record.went })
    }

    /// One of them.
    ///
    /// # Errors
    /// There is no such vserver or share.
    pub(super) fn told_share(&self, vserver: &str, name: &str) -> Result<Share> {
        let all = self.told_shares(vserver)?.shares;
        let found = all.into_iter().find(|share| crate::settings::same_share_name(&share.name, name));
        found.ok_or_else(|| no_share(vserver, name))
    }

    /// A share as the API tells it. `served`: what the gateway that serves its vserver has told; None: none serves it.
    fn tell_share(
        &self,
        VserverShareRecord { share, coming }: &VserverShareRecord,
        served: Option<&SharesServed>,
    ) -> Share {
        let of_gateway = served.and_then(|served| served.problems.get(&share.name).cloned());
        let on_its_way = coming.as_ref().map(|coming| match coming {
            Coming::New => "it is not opened yet".to_owned(),
            Coming::From { vserver, .. } => format!("it is on its way from the vserver {vserver}"),
        });
        let not_served = served.is_none().then(|| "its vserver is not served".to_owned());
        let problem = of_gateway.or(on_its_way).or(not_served);
        let protocols = rules::parse(&share.rules).map_or(share::Protocols::all(), |rules| rules.protocols);
        let plan = share.provisioned().map_or_else(|_| share.plan.clone(), |given| given.plan.to_string());
        Share {
            served: problem.is_none(),
            problem,
            rules: rules::parse(&share.rules)
                .map_or_else(|_| share.rules.clone(), |rules| rules::write(&rules)),
            served_by: self.host.administration.protocols_of(protocols, share.terms()),
            comment: share.comment.clone(),
            recycle_bin: "off".to_owned(),
            ransomware_alarm: "off".to_owned(),
            ..tell(&share.name, &share.directory, share.terms(), plan)
        }
    }

    /// Checks that no share is on its way from a vserver: whoever serves the vserver has to let it go.
    ///
    /// # Errors
    /// One is.
    pub(super) fn check_nothing_comes_from(&self, register: &Register, vserver: &str) -> Result<()> {
        let comes = |share: &&VserverShareRecord| matches!(&share.coming, Some(Coming::From { vserver: from, .. }) if from == vserver);
        for Seen { record, .. } in self.all_vservers(register)?.seen {
            if let Some(VserverShareRecord { share, .. }) = record.shares.iter().find(comes) {
                let what = format!(
                    "the share {} is on its way from the vserver {vserver} to the vserver {}",
                    share.name, record.name
                );
                return Err(refused(
                    RefusalKind::Busy,
                    what,
                    "Wait until it has come: `anabranch vserver share list` tells when it has.",
                ));
            }
        }
        Ok(())
    }

    /// Nobody says any more that shares have gone to a vserver that is no more.
    pub(super) fn forget_traces_to(&self, register: &Register, vserver: &str) {
        let Ok(all) = self.all_vservers(register) else { return };
        for seen in all.seen {
            let mut record = seen.record.clone();
            record.went.retain(|_, to| to != vserver);
            if record != seen.record {
                record.share_changes = record.share_changes.wrapping_add(1);
            }
            // If somebody has changed it meanwhile, the trace stays: it leads nowhere.
            if record != seen.record
                && let Err(error) = register.change_vserver(&seen, Some(&record))
            {
                tracing::warn!("that shares have gone to the vserver {vserver} stays written down: {error}");
            }
        }
    }
}
