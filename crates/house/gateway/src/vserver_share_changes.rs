//! Changes of the shares of a vserver that is served: clients of those that stay notice nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use control::Refusal;
use nfs_server::NfsServer;
use share::{Share, ShareTable};
use state::{ServerRecords, burst_credits};

use crate::names::NameLookup;
use crate::problem::{Cause, Problem, Result};
use crate::settings::{MovedShare, same_share_name};
use crate::share_settings::{use_plan, use_rules};
use crate::vserver::are_gone;
use crate::vserver_commands::Host;
use crate::vserver_shares::VserverShare;
use crate::vservers::{Served, lost};
use crate::waiting::wait_for;
use crate::{cephfs, moved};

/// What stands in the way of shares, by their names.
pub(crate) type ShareProblems = BTreeMap<String, Problem>;

/// The shares that a vserver is to have.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Those that are to be served.
    pub(crate) shares: Vec<VserverShare>,
    /// The names of others that the vserver has, and that cannot be opened yet.
    pub(crate) later: Vec<String>,
    /// Shares that it had, and that others have now.
    pub(crate) gone: Vec<MovedShare>,
}

/// A vserver that is served, as long as its shares change.
struct Changed<'a> {
    host: &'a Host,
    name: &'a str,
    epoch: u64,
    session: Option<u64>,
    table: Arc<ShareTable>,
    records: ServerRecords,
    smb: Arc<smb_server::Server>,
    nfs: Arc<NfsServer>,
    names: NameLookup,
    /// As they were given.
    before: Vec<VserverShare>,
}

impl Host {
    /// Has a vserver that is served here in this epoch have these shares, and no others. What stands in the way of some; that of shares
    /// that are not withdrawn yet has no name. None: it is not served here, or begins or ends.
    pub(crate) fn use_shares(&self, vserver: &str, epoch: u64, wanted: &Wanted) -> Option<ShareProblems> {
        let _alone = self.vservers.alone(vserver)?;
        let changed = self.vservers.with(vserver, |served| Changed {
            host: self,
            name: vserver,
            epoch,
            session: served.session,
            table: Arc::clone(&served.vserver.shares),
            records: served.vserver.records.clone(),
            smb: Arc::clone(&served.vserver.servers.smb),
            nfs: Arc::clone(&served.vserver.servers.nfs),
            names: served.names.clone(),
            before: served.shares.clone(),
        })?;
        if !changed.is_served() {
            return None;
        }
        let problems = changed.make(wanted);
        self.administration.allot_opens();
        // Nothing is told by who has lost the vserver meanwhile.
        changed.is_served().then_some(problems)
    }
}

impl Changed<'_> {
    /// Whether the vserver is served in the same epoch still.
    fn is_served(&self) -> bool {
        let now = self.host.vservers.with(self.name, |served| served.ownership.owner().epoch);
        now == Some(self.epoch)
    }

    fn make(&self, Wanted { shares, later, gone: elsewhere }: &Wanted) -> ShareProblems {
        let mut problems = ShareProblems::new();
        let mut note = |name: &str, done: Result<()>| {
            if let Err(problem) = done {
                problems.insert(name.to_owned(), problem);
            }
        };
        note("", self.tell_gone(elsewhere));
        for gone in self.before.iter().filter(|before| !shares.iter().any(|share| share.is_same(before))) {
            note("", self.withdraw(gone));
        }
        moved::forget_others(&self.table, elsewhere);
        note("", self.let_go());
        let names = shares.iter().map(|share| &share.name).chain(later);
        note(
            "",
            self.records
                .forget_shares_but(&names.map(String::as_str).collect::<Vec<_>>())
                .map_err(Into::into),
        );
        let mut has_opened = false;
        for share in shares {
            let present = self.table.present().by_name(&share.name).cloned();
            match present {
                Some(present) => note(&share.name, self.set(&present, share)),
                None => {
                    note(&share.name, self.open(share));
                    has_opened = true;
                }
            }
        }
        if has_opened {
            // Not while others wait for what this holds: a name service may not answer.
            self.names.look_again();
        }
        problems
    }

    /// Ends a share for all its clients, as one that is removed from a server.
    fn withdraw(&self, gone: &VserverShare) -> Result<()> {
        let present = self.table.present().by_name(&gone.name).map(|share| share.id());
        present.and_then(|id| self.table.withdraw(id)).map_or(Ok(()), |share| self.end(&share))
    }

    /// Tells clients of shares that others have where these are, in the place of those of them that are served here.
    fn tell_gone(&self, gone: &[MovedShare]) -> Result<()> {
        let withdrawn = moved::tell(&self.table, &self.records, gone, |_| false)?;
        withdrawn.iter().map(|share| self.end(share)).fold(Ok(()), Result::and)
    }

    /// Ends what clients have in a share that was withdrawn from the table.
    fn end(&self, share: &Arc<Share>) -> Result<()> {
        // The vserver does not end, and nobody opens the directory, before nothing uses the share.
        let noted = self.host.vservers.with(self.name, |served| {
            served.vserver.leaving.push(Arc::downgrade(share));
            served.shares.retain(|given| !same_share_name(&given.name, share.name()));
        });
        let ended = wait_for(async {
            self.nfs.end_share(share).await;
            self.smb.end_share(share).await;
        });
        tracing::info!(vserver = self.name, share = share.name(), "the share was withdrawn");
        ended.map_err(of_refusal)?;
        noted.ok_or_else(|| self.no_more())
    }

    fn no_more(&self) -> Problem {
        Problem::new(Cause::Silent, format!("the vserver {} is not served any more", self.name), "")
    }

    /// Waits until nothing uses the shares that were withdrawn. Their directories are free then.
    fn let_go(&self) -> Result<()> {
        let leaving = self.host.vservers.with(self.name, |served| served.vserver.leaving.clone());
        if !are_gone(&leaving.ok_or_else(|| self.no_more())?) {
            return Err(in_use());
        }
        self.host.vservers.with(self.name, |served| {
            served.vserver.leaving.clear();
            let Served { shares, directories, .. } = served;
            directories.retain(|(name, _)| shares.iter().any(|share| same_share_name(&share.name, name)));
        });
        Ok(())
    }

    /// Opens a share, and has clients find it.
    fn open(&self, given: &VserverShare) -> Result<()> {
        let _one = self.host.vservers.beginning.lock();
        let opener = Arc::new(self.host.opener(self.records.clone(), 1));
        let mut apart = self.host.administration.apart()?;
        let (share, directory) = opener.open_one(given, &mut apart)?;
        self.check_session(given)?;
        self.enter(&share, (given, directory))?;
        tracing::info!(vserver = self.name, share = given.name, "serving the share");
        Ok(())
    }

    /// Checks that a share is in the session with CephFS that was written down for the vserver: it is that which others end.
    fn check_session(&self, given: &VserverShare) -> Result<()> {
        if cephfs::path_of(&given.directory).is_none() {
            return Ok(());
        }
        let ceph = self.host.administration.ceph();
        if self.session != Some(ceph.session()) {
            let what = format!("the share {}: the session of the vserver with CephFS has ended", given.name);
            return Err(Problem::new(Cause::Silent, what, "The vserver begins anew by itself."));
        }
        let Some(address) = ceph.address() else { return Ok(()) };
        let ownership = self.host.vservers.with(self.name, |served| Arc::clone(&served.ownership));
        ownership
            .map_or(Ok(()), |ownership| ownership.session_comes_from(&address))
            .map_err(|error| lost(self.name, &error))
    }

    /// Enters a share in the table of the vserver, if that is still served in the same epoch.
    fn enter(&self, share: &Arc<Share>, (given, directory): (&VserverShare, PathBuf)) -> Result<()> {
        let entered = self.host.vservers.with(self.name, |served| {
            if served.ownership.owner().epoch != self.epoch {
                return None;
            }
            Some(self.table.enter(share).map(|()| {
                served.shares.push(given.clone());
                served.directories.push((given.name.clone(), directory));
            }))
        });
        let entered = entered.flatten().ok_or_else(|| self.no_more())?;
        entered.map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))
    }

    /// Has a share that is served use these settings.
    fn set(&self, share: &Share, given: &VserverShare) -> Result<()> {
        let before = self.before.iter().find(|before| before.is_same(given));
        if before == Some(given) {
            return Ok(());
        }
        use_rules(share, given.terms, given.rules.clone(), &self.names);
        share.set_comment(given.comment.clone());
        if use_plan(share, given.provisioned.plan.clone()).map_err(of_refusal)? {
            burst_credits::keep(&self.table.present(), &self.records, burst_credits::RESERVE)?;
        }
        self.host.vservers.with(self.name, |served| {
            for same in served.shares.iter_mut().filter(|share| share.is_same(given)) {
                same.clone_from(given);
            }
        });
        tracing::info!(vserver = self.name, share = given.name, "the share was changed");
        Ok(())
    }
}

fn of_refusal(Refusal { what, advice, .. }: Refusal) -> Problem {
    Problem::new(Cause::Serving, what, advice)
}

fn in_use() -> Problem {
    Problem::new(Cause::Silent, "a share that was withdrawn is in use: a storage does not answer", "")
}
