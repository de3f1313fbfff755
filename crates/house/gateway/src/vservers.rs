//! The vservers that a gateway serves beside its own shares: each is served as long as the gateway owns it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use control::cluster::Takeovers;
use parking_lot::Mutex;
use service_address::Raised;
use share::{Share, Shares};
use state::burst_credits;
use state::cluster::{Owner, Ownership};
use state::store::StoreError;

use crate::names::NameLookup;
use crate::problem::{Cause, Problem, Result};
use crate::seen::Seen;
use crate::vserver::Vserver;
use crate::vserver_shares::{Directories, VserverShare};
use crate::waiting::wait_for;

/// The longest name of a vserver: SMB clients see it as a NetBIOS name ([MS-NBTE] 1.8: 15 bytes and a suffix).
const NAME_MAX: usize = 15;

/// The vservers of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Vservers {
    /// Guards the list, by name. It is held for look-ups, and while one begins to listen.
    served: Mutex<BTreeMap<String, Served>>,
    /// Guards the names of those that begin or end at this moment.
    under_way: Mutex<BTreeSet<String>>,
    /// Guards the names of those that this gateway may own still, and does not serve.
    given_up: Mutex<BTreeSet<String>>,
    /// Guards the names of vservers that were ended while requests may still run. No other gateway may have them as long as this process
    /// is there.
    unfinished: Mutex<BTreeSet<String>>,
    /// Guards the addresses of those that end, by name: they are here until the connections have ended, or the place is lost.
    ending: Mutex<BTreeMap<String, Raised>>,
    /// Guards what was taken over since the start, by name.
    takeovers: Mutex<BTreeMap<String, Takeovers>>,
    /// Held while one begins, so that no two begin to serve one directory. It guards no data.
    pub(crate) beginning: Mutex<()>,
}

/// Nothing else begins or ends a vserver while this lives.
#[derive(Debug)]
pub(crate) struct Alone<'a> {
    vservers: &'a Vservers,
    name: String,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.vservers.under_way.lock().remove(&self.name);
    }
}

/// A vserver, and why it may be served here.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) vserver: Vserver,
    /// Its shares as they were given. Those that could not be opened yet are not among them.
    pub(crate) shares: Vec<VserverShare>,
    pub(crate) directories: Directories,
    /// Looks up the names in the rules of its shares.
    pub(crate) names: NameLookup,
    /// As of which change of its shares it is served; None: what has changed before it began is not known.
    pub(crate) share_changes: Option<u64>,
    /// The session with CephFS in which its shares were opened; None: none of them is in CephFS.
    pub(crate) session: Option<u64>,
    /// Its addresses are here as long as this is.
    pub(crate) raised: Raised,
}

/// Checks that this can be the name of a vserver.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_vserver_name(name: &str) -> std::result::Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) || name.starts_with('-') {
        return Err(format!(
            "{name:?} cannot be the name of a vserver: it has at most {NAME_MAX} small letters, digits and hyphens, and does not \
             begin with a hyphen"
        ));
    }
    Ok(())
}

impl Vservers {
    /// The shares of each.
    pub(crate) fn tables(&self) -> Vec<Arc<Shares>> {
        self.served.lock().values().map(|served| served.vserver.shares.present()).collect()
    }

    /// All their shares.
    pub(crate) fn shares(&self) -> Vec<Arc<Share>> {
        self.tables().iter().flat_map(|table| table.in_order()).collect()
    }

    /// What looks up the names in the rules of each.
    pub(crate) fn names(&self) -> Vec<NameLookup> {
        self.served.lock().values().map(|served| served.names.clone()).collect()
    }

    /// What is seen of each, by name.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = |(name, Served { vserver, .. }): (&String, &Served)| Seen {
            name: name.clone(),
            smb: Arc::clone(&vserver.servers.smb),
            nfs: Arc::clone(&vserver.servers.nfs),
            shares: Arc::clone(&vserver.shares),
        };
        self.served.lock().iter().map(seen).collect()
    }

    /// The names and directories of all their shares.
    pub(crate) fn directories(&self) -> Directories {
        let of = |(name, served): (&String, &Served)| {
            let of_vserver = move |name: &str, share: &str| format!("{share} of the vserver {name}");
            let named = served.directories.iter();
            named.map(|(share, directory)| (of_vserver(name, share), directory.clone())).collect::<Vec<_>>()
        };
        self.served.lock().iter().flat_map(of).collect()
    }

    /// Has those that have no keys of their own accept tickets with the keys that the gateway has now.
    pub(crate) fn use_keys_of_gateway(&self) {
        for served in self.served.lock().values_mut() {
            served.vserver.use_keys(None);
        }
    }

    /// Ends the sessions of users who may not log on any more. It waits for no storage.
    pub(crate) fn end_users(&self, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let served = self.served.lock();
        // A vserver that ends waits for nothing that clients of others have open.
        let servers: Vec<_> =
            served.values().map(|served| Arc::downgrade(&served.vserver.servers.smb)).collect();
        drop(served);
        let end = move || {
            for (name, smb) in names.iter().flat_map(|name| servers.iter().map(move |smb| (name, smb))) {
                let Some(smb) = smb.upgrade() else { continue };
                if let Err(refusal) = wait_for(smb.end_user(name)) {
                    tracing::error!("sessions of the user {name} have not ended: {}", refusal.what);
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("users".to_owned()).spawn(end) {
            tracing::error!("sessions of users have not ended: cannot start a thread: {error}");
        }
    }

    /// Writes down the burst credits of their shares.
    pub(crate) fn keep_credits(&self) {
        let of = |served: &Served| (served.vserver.records.clone(), served.vserver.shares.present());
        let all: Vec<_> = self.served.lock().values().map(of).collect();
        for (records, shares) in all {
            if let Err(error) = burst_credits::keep(&shares, &records, burst_credits::RESERVE) {
                tracing::error!("{}", error.what);
            }
        }
    }

    /// None: something begins or ends the vserver already.
    pub(crate) fn alone(&self, name: &str) -> Option<Alone<'_>> {
        let is_alone = self.under_way.lock().insert(name.to_owned());
        is_alone.then(|| Alone { vservers: self, name: name.to_owned() })
    }

    /// Whether a vserver begins or ends at this moment.
    pub(crate) fn is_under_way(&self, name: &str) -> bool {
        self.under_way.lock().contains(name)
    }

    /// Notes that this gateway may own a vserver that it does not serve.
    pub(crate) fn note_given_up(&self, name: &str) {
        self.given_up.lock().insert(name.to_owned());
    }

    /// The vservers that were given up and that another gateway may take.
    pub(crate) fn given_up(&self) -> Vec<String> {
        let unfinished = self.unfinished.lock();
        self.given_up.lock().difference(&unfinished).cloned().collect()
    }

    /// Notes that requests of a vserver may be under way although it was ended.
    pub(crate) fn note_unfinished(&self, name: &str) {
        tracing::error!(
            vserver = name,
            "connections of the vserver have not ended: a storage does not answer"
        );
        self.unfinished.lock().insert(name.to_owned());
    }

    /// Whether this gateway may own a vserver that it does not serve. That is forgotten.
    pub(crate) fn take_given_up(&self, name: &str) -> bool {
        self.given_up.lock().remove(name)
    }

    /// Ends those whose shares are in a session with CephFS before this one, which the cluster has ended: their clients get errors. They can
    /// be begun again, in the next epoch.
    pub(crate) fn give_up_before(&self, session: u64) {
        let is_ended = |served: &Served| served.session.is_some_and(|of| of < session);
        let served = self.served.lock();
        let ended = served.iter().filter(|(_, served)| is_ended(served)).map(|(name, _)| name.clone());
        let ended: Vec<_> = ended.collect();
        drop(served);
        std::thread::scope(|scope| {
            for name in ended {
                scope.spawn(move || self.give_up(&name));
            }
        });
    }

    fn give_up(&self, name: &str) {
        // Whoever ends it already needs nothing of this.
        let Some(_alone) = self.alone(name) else { return };
        self.note_given_up(name);
        let Some(Served { vserver, raised, .. }) = self.take(name) else { return };
        tracing::error!(
            vserver = name,
            "the Ceph cluster has ended the session of this gateway: the vserver begins anew"
        );
        drop(raised);
        if !vserver.give_up() {
            self.note_unfinished(name);
        }
    }

    /// Enters a vserver, before it accepts connections: whoever ends all of them ends this one too.
    pub(crate) fn enter(&self, served: Served) {
        self.served.lock().insert(served.ownership.vserver().to_owned(), served);
    }

    /// Calls this for a vserver that stays in the list meanwhile. None: it is not there.
    pub(crate) fn with<T>(&self, name: &str, call: impl FnOnce(&mut Served) -> T) -> Option<T> {
        self.served.lock().get_mut(name).map(call)
    }

    /// Whether a vserver is in the list.
    pub(crate) fn is_served(&self, name: &str) -> bool {
        self.served.lock().contains_key(name)
    }

    /// Takes a vserver out of the list.
    pub(crate) fn take(&self, name: &str) -> Option<Served> {
        self.served.lock().remove(name)
    }

    /// Notes how long the phases of a takeover took.
    pub(crate) fn note_takeover(&self, name: &str, phases: Vec<(&'static str, Duration)>) {
        let mut takeovers = self.takeovers.lock();
        let of = takeovers.entry(name.to_owned()).or_default();
        *of = Takeovers { vserver: name.to_owned(), count: of.count + 1, last: phases };
    }

    /// What was taken over since the start.
    pub(crate) fn takeovers(&self) -> Vec<Takeovers> {
        self.takeovers.lock().values().cloned().collect()
    }

    /// Their names, and their owners with their epochs.
    pub(crate) fn owners(&self) -> Vec<(String, Owner)> {
        let served = self.served.lock();
        served.iter().map(|(name, served)| (name.clone(), served.ownership.owner().clone())).collect()
    }

    /// Ends all of them as they are, side by side: their clients get no answer any more, and nothing is written or let go. Their addresses
    /// go first: whoever serves them next has them already.
    pub(crate) fn abandon_all(&self) {
        let of_ending = std::mem::take(&mut *self.ending.lock());
        drop(of_ending);
        let all = std::mem::take(&mut *self.served.lock());
        let parts = |(name, served): (String, Served)| (served.raised, (name, served.vserver));
        abandon(all.into_iter().map(parts), |(name, vserver)| {
            tracing::error!(vserver = name, "the vserver is not served here any more");
            vserver.abandon();
        });
    }

    /// Ends all of them, side by side: one whose storage does not answer delays no other.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut *self.served.lock());
        std::thread::scope(|scope| {
            for (_, served) in all {
                scope.spawn(|| {
                    if let Err(problem) = self.end(served) {
                        tracing::error!("{problem}");
                    }
                });
            }
        });
    }
}

impl Vservers {
    /// Ends a vserver that was taken out of the list, so that another gateway may have it.
    ///
    /// # Errors
    /// A storage does not answer, or the records cannot be written: no other gateway may have it.
    pub(crate) fn end(&self, served: Served) -> Result<()> {
        let Served { ownership, vserver, raised, names, .. } = served;
        drop(names);
        let (name, epoch) = (ownership.vserver(), ownership.owner().epoch);
        self.ending.lock().insert(name.to_owned(), raised);
        let ended = vserver.end();
        // The next gateway may have them as soon as it has the vserver.
        let raised = self.ending.lock().remove(name);
        drop(raised);
        if let Err(problem) = ended {
            self.note_given_up(name);
            self.note_unfinished(name);
            return Err(not_handed_over(name, problem));
        }
        self.let_go(&ownership)?;
        tracing::info!(vserver = name, epoch, "the vserver is not served here any more");
        Ok(())
    }

    /// Lets any gateway have a vserver that is not served here. If that fails, it is noted that this gateway may own it still.
    ///
    /// # Errors
    /// The records cannot be written, or requests of the vserver may be under way.
    pub(crate) fn let_go(&self, ownership: &Ownership) -> Result<()> {
        let name = ownership.vserver();
        let finished = self.check_finished(name);
        let ended = finished.and_then(|()| ownership.end().map_err(|error| lost(name, &error)));
        ended.inspect_err(|_| self.note_given_up(name))
    }

    /// Checks that no requests of a vserver may be under way from a time when it was ended.
    ///
    /// # Errors
    /// They may: no other gateway may have it.
    pub(crate) fn check_finished(&self, name: &str) -> Result<()> {
        if !self.unfinished.lock().contains(name) {
            return Ok(());
        }
        let what = "requests of clients may be under way: a storage has not answered";
        Err(not_handed_over(name, Problem::new(Cause::Silent, what, "")))
    }
}

fn not_handed_over(name: &str, problem: Problem) -> Problem {
    Problem {
        what: format!("the vserver {name} is not handed over: {}", problem.what),
        advice: "Another gateway can serve it when this one has been started again.".to_owned(),
        ..problem
    }
}

/// Takes all addresses away, and then ends each of the rest on a thread of its own, because that may wait.
fn abandon<A, V: Send>(all: impl Iterator<Item = (A, V)>, end: impl Fn(V) + Sync) {
    let (addresses, rest): (Vec<_>, Vec<_>) = all.unzip();
    drop(addresses);
    let end = &end;
    std::thread::scope(|scope| {
        for one in rest {
            scope.spawn(move || end(one));
        }
    });
}

/// The problem of a vserver that this gateway does not own any more, or cannot let go.
pub(crate) fn lost(name: &str, error: &StoreError) -> Problem {
    Problem::new(Cause::State, format!("the records of the vserver {name}: {error}"), "")
}

/// The IP addresses of these.
pub(crate) fn ips(at: &[SocketAddr]) -> Vec<IpAddr> {
    at.iter().map(SocketAddr::ip).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An address, which is counted when it is taken away.
    struct Address<'a>(&'a AtomicUsize);

    impl Drop for Address<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn addresses_go_before_anything_that_may_wait() {
        let (gone, all) = (AtomicUsize::default(), 3);
        let found = Mutex::new(Vec::new());
        let vservers = (0..all).map(|number| (Address(&gone), number));
        abandon(vservers, |number| found.lock().push((number, gone.load(Ordering::SeqCst))));
        let mut found = found.into_inner();
        found.sort_unstable();
        assert_eq!(found, [(0, all), (1, all), (2, all)]);
    }

    #[test]
    fn a_name_is_one_that_smb_clients_can_see() {
        for good in ["a", "files-1", "fifteen-letters"] {
            assert_eq!(check_vserver_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "sixteen-letters-", "a.b", "a b", "a/b", "\u{fc}", "a\0", "A"] {
            assert!(check_vserver_name(bad).is_err(), "{bad:?}");
        }
    }
}
