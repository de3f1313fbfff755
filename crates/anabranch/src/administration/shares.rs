//! The shares of [`Administration`].

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use control::shares::{NewShare, Share, ShareChange};
use control::{Refusal, RefusalKind};
use limits::{Plan, PoolError, Provisioned};
use share::{SHARES_MAX, Terms, folded_name};

use super::{Administration, DeclaredShare, Idle, failed, invalid, wait_for};
use crate::descriptors::Allotment;
use crate::problem::Problem;
use crate::records::ShareRecord;
use crate::settings::{check_share_name, same_share_name};
use crate::{burst_credits, directories, opening};

type Result<T> = std::result::Result<T, Refusal>;

impl Administration {
    fn declared_share(&self, name: &str) -> Option<&DeclaredShare> {
        self.declared.shares.iter().find(|share| same_share_name(&share.given.name, name))
    }

    fn made_shares(&self) -> Result<Vec<ShareRecord>> {
        self.state.made_shares().map_err(failed)
    }

    fn made_share(&self, name: &str) -> Result<ShareRecord> {
        if let Some(declared) = self.declared_share(name) {
            let (name, place) = (&declared.given.name, &self.declared.shares_in);
            return Err(Refusal::new(
                RefusalKind::Declared,
                format!("the share {name} is declared in {place}"),
                format!("Change it there, and start the server again ({place})."),
            ));
        }
        let made = self.made_shares()?.into_iter().find(|share| same_share_name(&share.name, name));
        made.ok_or_else(|| {
            let what = format!("there is no share {name}");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch share list` says which there are.")
        })
    }

    pub(super) fn all_shares(&self) -> Result<Vec<Share>> {
        let declared = self.declared.shares.iter().map(|declared| self.tell_declared(declared));
        let made = self.made_shares()?;
        let mut shares: Vec<Share> =
            declared.chain(made.iter().map(|record| self.tell_made(record))).collect();
        shares.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(shares)
    }

    pub(super) fn one_share(&self, name: &str) -> Result<Share> {
        match self.declared_share(name) {
            Some(declared) => Ok(self.tell_declared(declared)),
            None => self.made_share(name).map(|record| self.tell_made(&record)),
        }
    }

    fn tell_declared(&self, declared: &DeclaredShare) -> Share {
        let DeclaredShare { given, directory } = declared;
        Share {
            declared_in: Some(self.declared.shares_in.clone()),
            served: true,
            metadata_cache: given.metadata_cache,
            ..tell(&given.name, directory, given.terms, given.plan.to_string())
        }
    }

    fn tell_made(&self, record: &ShareRecord) -> Share {
        let plan = if record.plan.is_empty() { Plan::Unlimited.to_string() } else { record.plan.clone() };
        let problem = match self.declared_share(&record.name) {
            Some(_) => Some(opening::shadowed(&record.name, &self.declared.shares_in)),
            None => self.idle.lock().get(&folded_name(&record.name)).cloned(),
        };
        Share {
            served: self.serving.is_some() && problem.is_none(),
            problem,
            metadata_cache: !record.uncached,
            ..tell(&record.name, &record.directory, record.terms(), plan)
        }
    }

    pub(super) fn make_share(&self, new: &NewShare) -> Result<Share> {
        let mut idle = self.idle.lock();
        let name = &new.name;
        check_share_name(name).map_err(|why| invalid(format!("the share {name:?}: {why}"), NAME_ADVICE))?;
        let made = self.made_shares()?;
        self.check_name_is_free(name, &made)?;
        if made.len() + self.declared.shares.len() >= SHARES_MAX {
            let what = format!("there are {SHARES_MAX} shares already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let terms = terms_of(new);
        let directory = check_directory(name, &new.directory, terms)?;
        self.check_apart(name, &directory, &made)?;
        let plan = parse_plan(name, new.plan.as_deref().unwrap_or("unlimited"))?;
        self.check_pools(name, &plan, &made)?;
        let mut record = ShareRecord {
            name: name.clone(),
            directory,
            terms: terms.bits(),
            uncached: new.metadata_cache == Some(false),
            ..ShareRecord::default()
        };
        record.provision(&Provisioned::new(plan));
        let share = match &self.serving {
            Some(serving) => {
                let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
                Some(opening::open_made(&record, &self.state, opens_max).map_err(of_directory)?)
            }
            None => None,
        };
        self.state.keep_share(&record).map_err(failed)?;
        if let (Some(serving), Some(share)) = (&self.serving, share) {
            serving
                .shares
                .enter(&share)
                .map_err(|e| Refusal::new(RefusalKind::NameTaken, e.to_string(), ""))?;
            self.allot_opens();
            self.keep_credits()?;
        }
        idle.remove(&folded_name(name));
        drop(idle);
        tracing::info!(share = name, directory = %record.directory.display(), "a share is made");
        Ok(self.tell_made(&record))
    }

    pub(super) fn set_share(&self, name: &str, change: &ShareChange) -> Result<Share> {
        let mut idle = self.idle.lock();
        let mut record = self.made_share(name)?;
        let terms = changed_terms(record.terms(), change);
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
                    "It is the rule of the plan; an increase is possible at any time.",
                )
            })?;
        }
        if terms.contains(Terms::READ_ONLY) != record.terms().contains(Terms::READ_ONLY) {
            check_directory(&record.name, &record.directory.to_string_lossy(), terms)?;
        }
        record.terms = terms.bits();
        record.uncached = change.metadata_cache.map_or(record.uncached, |kept| !kept);
        record.provision(&provisioned);
        self.state.keep_share(&record).map_err(failed)?;
        self.use_share(&record, &mut idle)?;
        drop(idle);
        tracing::info!(share = record.name, ?terms, plan = record.plan, "a share is changed");
        Ok(self.tell_made(&record))
    }

    /// Has the server that runs use a share as it is now. One that could not be served is tried again.
    fn use_share(&self, record: &ShareRecord, idle: &mut Idle) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        let present = serving.shares.present();
        let Some(share) = present.by_name(&record.name) else {
            let opens_max = Allotment::of(serving.descriptors, present.len() + 1).opens;
            let share = opening::open_made(record, &self.state, opens_max).map_err(of_directory)?;
            serving
                .shares
                .enter(&share)
                .map_err(|e| Refusal::new(RefusalKind::NameTaken, e.to_string(), ""))?;
            idle.remove(&folded_name(&record.name));
            self.allot_opens();
            return Ok(());
        };
        share.set_terms(record.terms());
        share.set_metadata_cache(!record.uncached);
        let plan = record.provisioned().map_err(failed)?.plan;
        if share.plan() == plan {
            return Ok(());
        }
        let late = |e| Refusal::new(RefusalKind::Plan, format!("the share {}: {e}", record.name), "");
        share.set_plan(plan, SystemTime::now()).map_err(late)?;
        self.keep_credits()
    }

    /// By a plan that has just changed others last.
    fn keep_credits(&self) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        burst_credits::keep(&serving.shares.present(), &self.state, burst_credits::RESERVE).map_err(failed)
    }

    pub(super) fn end_share(&self, name: &str) -> Result<Share> {
        let mut idle = self.idle.lock();
        let record = self.made_share(name)?;
        self.state.forget_share(&record.name).map_err(failed)?;
        idle.remove(&folded_name(&record.name));
        if let Some(serving) = &self.serving {
            let id = serving.shares.present().by_name(&record.name).map(|share| share.id());
            if let Some(gone) = id.and_then(|id| serving.shares.withdraw(id)) {
                wait_for(async {
                    serving.nfs.end_share(&gone).await;
                    serving.smb.end_share(&gone).await;
                })?;
            }
            self.allot_opens();
        }
        drop(idle);
        tracing::info!(share = record.name, "a share is removed");
        Ok(Share { served: false, ..self.tell_made(&record) })
    }

    fn check_name_is_free(&self, name: &str, made: &[ShareRecord]) -> Result<()> {
        let taken = |taken: &str, how: &str| {
            let what = format!("the name {name} is taken: the share {taken} {how}");
            Refusal::new(
                RefusalKind::NameTaken,
                what,
                "Names are the same whatever their case; take another one.",
            )
        };
        if let Some(declared) = self.declared_share(name) {
            return Err(taken(&declared.given.name, &format!("is declared in {}", self.declared.shares_in)));
        }
        match made.iter().find(|share| same_share_name(&share.name, name)) {
            Some(made) => Err(taken(&made.name, &format!("serves {}", made.directory.display()))),
            None => Ok(()),
        }
    }

    /// No share lies in another one: what two clients do through different shares is not kept apart.
    fn check_apart(&self, name: &str, directory: &Path, made: &[ShareRecord]) -> Result<()> {
        let declared = self.declared.shares.iter().map(|share| (&share.given.name, &share.directory));
        let others = declared.chain(made.iter().map(|share| (&share.name, &share.directory)));
        for (other, other_directory) in others {
            let how = if directory == other_directory {
                "is served already, by"
            } else if directory.starts_with(other_directory) {
                "lies in that of"
            } else if other_directory.starts_with(directory) {
                "holds that of"
            } else {
                continue;
            };
            return Err(Refusal::new(
                RefusalKind::Overlap,
                format!(
                    "the directory {} of the share {name} {how} the share {other} ({})",
                    directory.display(),
                    other_directory.display()
                ),
                "Locks and share modes would not hold between the two: serve a directory of its own.",
            ));
        }
        Ok(())
    }

    /// Whether the capacity pools of Azure NetApp Files have room for the plan.
    fn check_pools(&self, name: &str, plan: &Plan, made: &[ShareRecord]) -> Result<()> {
        let declared = self.declared.shares.iter().map(|share| share.given.plan.clone());
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

    /// Deals the descriptors out to the shares that there are now.
    fn allot_opens(&self) {
        let Some(serving) = &self.serving else { return };
        let shares = serving.shares.present();
        let opens_max = Allotment::of(serving.descriptors, shares.len()).opens;
        for share in shares.iter() {
            share.set_opens_max(opens_max);
        }
    }
}

const NAME_ADVICE: &str =
    "A name has 1 to 80 bytes, none of \" \\ / [ ] : | < > + = ; , * ? and no control characters.";

fn tell(name: &str, directory: &Path, terms: Terms, plan: String) -> Share {
    Share {
        name: name.to_owned(),
        directory: directory.to_string_lossy().into_owned(),
        declared_in: None,
        served: false,
        problem: None,
        read_only: terms.contains(Terms::READ_ONLY),
        guest: terms.contains(Terms::GUESTS),
        access_based_enumeration: terms.contains(Terms::ACCESS_BASED_ENUMERATION),
        continuous_availability: terms.contains(Terms::CONTINUOUSLY_AVAILABLE),
        encrypted: terms.contains(Terms::ENCRYPTED),
        metadata_cache: true,
        plan,
    }
}

fn terms_of(new: &NewShare) -> Terms {
    let mut terms = Terms::empty();
    terms.set(Terms::READ_ONLY, new.read_only);
    terms.set(Terms::GUESTS, new.guest);
    terms.set(Terms::ACCESS_BASED_ENUMERATION, new.access_based_enumeration);
    terms.set(Terms::CONTINUOUSLY_AVAILABLE, new.continuous_availability);
    terms.set(Terms::ENCRYPTED, new.encrypted);
    terms
}

fn changed_terms(mut terms: Terms, change: &ShareChange) -> Terms {
    let changes = [
        (Terms::READ_ONLY, change.read_only),
        (Terms::GUESTS, change.guest),
        (Terms::ACCESS_BASED_ENUMERATION, change.access_based_enumeration),
        (Terms::CONTINUOUSLY_AVAILABLE, change.continuous_availability),
        (Terms::ENCRYPTED, change.encrypted),
    ];
    for (term, wanted) in changes {
        terms.set(term, wanted.unwrap_or_else(|| terms.contains(term)));
    }
    terms
}

fn parse_plan(name: &str, plan: &str) -> Result<Plan> {
    plan.parse()
        .map_err(|e| invalid(format!("the plan of the share {name}: {e}"), "docs/plans.md has all plans."))
}

fn check_directory(name: &str, directory: &str, terms: Terms) -> Result<PathBuf> {
    if !Path::new(directory).is_absolute() {
        return Err(Refusal::new(
            RefusalKind::Directory,
            format!("share {name}: the directory {directory:?} is not absolute"),
            "Give the whole path, from / on: the server may run elsewhere.",
        ));
    }
    directories::check(name, Path::new(directory), terms).map_err(of_directory)
}

fn of_directory(problem: Problem) -> Refusal {
    Refusal::new(RefusalKind::Directory, problem.what, problem.advice)
}
