//! Shares whose storage did not answer when they were to be opened. A thread waits for each, and then the share is
//! served.

use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use control::Refusal;
use share::{Share, folded_name};
use state::ShareRecord;
use storage::{MayWait, StoreThread, View};

use super::{Administration, Serving};
use crate::declared::{Declared, DeclaredShare};
use crate::descriptors::Allotment;
use crate::opening::Opener;
use crate::problem::{Cause, Problem, Result};
use crate::settings::same_share_name;
use crate::{directories, opening, pools};

/// How long a share waits that cannot be served yet, until it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A share that is served as soon as its storage answers.
#[derive(Debug, PartialEq)]
enum Awaited {
    Declared(DeclaredShare),
    Made(ShareRecord),
}

impl Awaited {
    fn name(&self) -> &str {
        match self {
            Self::Declared(share) => &share.given.name,
            Self::Made(record) => &record.name,
        }
    }

    /// The directory as it was given.
    fn directory(&self) -> &Path {
        match self {
            Self::Declared(share) => &share.given.directory,
            Self::Made(record) => &record.directory,
        }
    }

    /// Finds the directory, however long that takes.
    fn find(&self) -> Result<PathBuf> {
        match self {
            Self::Declared(share) => {
                directories::check(&share.given.name, &share.given.directory, share.given.terms)
            }
            Self::Made(record) => pools::find(record),
        }
    }

    /// Opens the share, however long that takes.
    fn open(&self, opener: &Opener, directory: &Path) -> Result<Arc<Share>> {
        match self {
            Self::Declared(share) => {
                opener.declared(&DeclaredShare { directory: directory.to_owned(), ..share.clone() })
            }
            Self::Made(record) => opener.made(record, directory),
        }
    }
}

impl Administration {
    /// Starts a thread for each storage that has not answered. The thread ends when the share is served or no longer
    /// awaited.
    pub(crate) fn await_stores(&self) {
        let Some(serving) = &self.serving else { return };
        for (_, name) in serving.shares.present().awaited() {
            let Some(share) = self.awaited(name) else { continue };
            let key = (folded_name(name), share.directory().to_owned());
            match self.waiting.lock().entry(key.clone()) {
                Entry::Occupied(_) => continue,
                Entry::Vacant(free) => _ = free.insert(None),
            }
            let administration = Weak::clone(&self.this);
            let wait = move |thread: &StoreThread| loop {
                // The server may end during these waits.
                let found = share.find();
                let Some(administration) = administration.upgrade() else { return };
                let Some(why) = administration.serve_awaited(&share, found, thread.may_wait(View::FRESH))
                else {
                    administration.waiting.lock().remove(&key);
                    return;
                };
                administration.waiting.lock().insert(key.clone(), Some(why));
                drop(administration);
                std::thread::sleep(AGAIN);
            };
            if let Err(e) = StoreThread::spawn(format!("await {name}"), wait) {
                tracing::error!("no thread that waits for the storage of the share {name}: {e}");
            }
        }
    }

    /// The awaited share with this name, as it is declared or recorded now.
    fn awaited(&self, name: &str) -> Option<Awaited> {
        self.serving.as_ref()?.shares.present().awaited_by_name(name)?;
        if let Some(share) = self.declared().share(name) {
            return Some(Awaited::Declared(share.clone()));
        }
        let made = self.state.made_shares().ok()?;
        made.into_iter().find(|record| same_share_name(&record.name, name)).map(Awaited::Made)
    }

    /// Why an awaited share is not served yet.
    pub(super) fn why_awaited(&self, name: &str) -> String {
        let (waiting, name) = (self.waiting.lock(), folded_name(name));
        let why =
            waiting.iter().filter(|((waiting, _), _)| *waiting == name).find_map(|(_, why)| why.clone());
        why.unwrap_or_else(|| opening::NO_ANSWER.to_owned())
    }

    /// Serves a share whose storage has answered. If it cannot be served yet, returns why.
    fn serve_awaited(&self, awaited: &Awaited, found: Result<PathBuf>, may: MayWait<'_>) -> Option<String> {
        let serving = self.serving.as_ref()?;
        let name = awaited.name();
        match found.and_then(|directory| self.open_awaited(awaited, &directory, serving, may)) {
            Ok(None) => {}
            Ok(Some(share)) => {
                tracing::info!("the storage of the share {name} answers: it is served");
                opening::tell_what_is_lacking(&share, self.declared().encryption);
            }
            Err(Problem { cause: Cause::Silent, what, .. }) => return self.still(awaited).map(|_| what),
            Err(Problem { what, .. }) => {
                let mut idle = self.idle.lock();
                if self.still(awaited).is_some() {
                    tracing::error!(
                        "the share {name} is not served: {what}; correct this, and send the server SIGHUP"
                    );
                    serving.shares.await_no_more(name);
                    idle.insert(folded_name(name), what);
                }
            }
        }
        None
    }

    /// An awaited share as it is now; None if it is no longer awaited.
    fn still(&self, awaited: &Awaited) -> Option<Awaited> {
        self.awaited(awaited.name()).filter(|now| now.directory() == awaited.directory())
    }

    fn open_awaited(
        &self,
        awaited: &Awaited,
        directory: &Path,
        serving: &Serving,
        may: MayWait<'_>,
    ) -> Result<Option<Arc<Share>>> {
        loop {
            let Some(now) = self.still(awaited) else { return Ok(None) };
            self.check_apart(now.name(), directory, &self.made_shares().map_err(problem)?)
                .map_err(problem)?;
            let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
            let share = now.open(
                &Opener::new(&self.declared(), &self.state, opens_max, &serving.access_log),
                directory,
            )?;
            let idle = self.idle.lock();
            // The share may have been changed meanwhile, like any other.
            if self.still(awaited).as_ref() == Some(&now) {
                self.enter_awaited(&now, &share, directory, serving, may)?;
                drop(idle);
                serving.names.look_again();
                return Ok(Some(share));
            }
        }
    }

    /// Enters the share. No other change may happen at the same time.
    fn enter_awaited(
        &self,
        awaited: &Awaited,
        share: &Arc<Share>,
        directory: &Path,
        serving: &Serving,
        may: MayWait<'_>,
    ) -> Result<()> {
        let state = |e: &dyn std::fmt::Display| Problem::new(Cause::State, e.to_string(), "");
        serving.smb.restore_persistent_opens(share, may).map_err(|e| state(&e))?;
        serving.nfs.await_reclaims(share);
        serving.shares.enter(share).map_err(|e| state(&e))?;
        if matches!(awaited, Awaited::Declared(_)) {
            let mut declared = Declared::clone(&self.declared());
            for one in declared.shares.iter_mut().filter(|one| one.given.name == awaited.name()) {
                (one.directory, one.is_unseen) = (directory.to_owned(), false);
            }
            *self.declared.write() = Arc::new(declared);
        }
        self.allot_opens();
        self.keep_credits().map_err(problem)
    }
}

fn problem(refusal: Refusal) -> Problem {
    Problem::new(Cause::Directory, refusal.what, refusal.advice)
}
