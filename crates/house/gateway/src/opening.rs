//! Opens shares from their declarations and records: at the start, and when one is created.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use limits::Provisioned;
use replica::MirrorStore;
use rustix::thread::CapabilitySet;
use share::{AccessLog, Protocols, QuotaRule, Share, ShareId, ShareTable, Terms, folded_name};
use state::{ReplicationRecord, ShareRecord, State, burst_credits};
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::{Capabilities, KnownLocal, Storage, View};
use storage_ceph::CephOptions;
use storage_local::{LocalOptions, LocalStore, RecordsError};

use crate::apart::Apart;
use crate::cephfs::{self, Cluster, Wanted};
use crate::declared::{Declared, DeclaredShare, Idle};
use crate::kerberos::check_names;
use crate::problem::{Cause, Problem, Result};
use crate::replication::{Mirrors, open_snapshot};
use crate::settings::{Encryption, Settings, ShareSettings, same_share_name};
use crate::{directories, in_time, pools};

/// Why a share is not served on which clients could make snapshots by creating directories.
const NO_SNAPSHOT_NAME: &str = "ceph-fuse uses a client_snapdir other than .snap and does not report its name, \
    so clients could find the snapshot directories and make snapshots there";
const GIVE_SNAPSHOT_NAME: &str = "Declare the share in the configuration file, with reserved-names = [\"NAME\"], where NAME is the \
    value of client_snapdir; or leave client_snapdir as it is.";
/// Why a share is not served whose storage does not answer.
pub(crate) const NO_ANSWER: &str = "its storage does not answer; it is served as soon as that does";

/// Unused nodes of a share in CephFS that stay cached.
pub(crate) const CEPH_NODES_MAX: usize = 10_000;

/// Opens shares. This takes as long as their storages take to answer.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    state: Arc<State>,
    ceph: Arc<Cluster>,
    mirrors: Arc<Mirrors>,
    opens_max: usize,
    metadata_latency: Option<Duration>,
    is_uncounted: bool,
    access_log: AccessLog,
}

/// The declared shares and those created by command. A share created by command that cannot be served does not stop the
/// others: the reason is kept. Neither does a share whose storage does not answer.
///
/// # Errors
/// A declared share cannot be served.
pub(crate) fn open_all(
    declared: &Declared,
    state: &Arc<State>,
    opens_max: usize,
    access_log: &AccessLog,
) -> Result<(Arc<ShareTable>, Idle)> {
    let opener = Opener::new(declared, state, opens_max, access_log);
    let (table, mut idle) = (Arc::new(ShareTable::default()), HashMap::new());
    for share in opener.open_declared(&declared.shares, &table)? {
        table.enter(&share).map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))?;
    }
    let (shadowed, made): (Vec<_>, Vec<_>) =
        state.made_shares()?.into_iter().partition(|record| declared.share(&record.name).is_some());
    for record in &shadowed {
        let why = self::shadowed(&record.name, declared.share_place(&record.name));
        tracing::warn!("the share {} is not served: {why}", record.name);
    }
    opener.enter_made(made, &shadowed, declared, &table, &mut idle)?;
    Ok((table, idle))
}

/// Logs what clients of a share do not get, although the configuration grants it.
pub(crate) fn tell_what_is_lacking(share: &Share, encryption: Encryption) {
    tell_withheld(share, encryption);
    if let Some(why) = uncertified(&share.rules(), encryption) {
        tracing::warn!(share = share.name(), "the client list {why}");
    }
    tell_no_devices(share);
}

/// Logs what NFS clients need for a share that they can use encrypted only, if TLS does not give it to them.
fn tell_withheld(share: &Share, encryption: Encryption) {
    if let Some(why) = withheld(share.terms(), share.rules().protocols, encryption) {
        tracing::warn!(share = share.name(), "the share {why}");
    }
}

/// Why NFS does not serve all its clients a share with these terms that it should serve: what the share does.
pub(crate) fn withheld(terms: Terms, protocols: Protocols, encryption: Encryption) -> Option<&'static str> {
    let encrypted = encryption.is_required || terms.contains(Terms::ENCRYPTED);
    if !encrypted || encryption.is_in_nfs || !protocols.contains(Protocols::NFS) {
        return None;
    }
    Some(if terms.contains(Terms::TLS) {
        "requires TLS: it is not served over NFS, which has none here (nfs-tls, docs/nfs-tls.md)"
    } else {
        "requires encryption: over NFS it is served with krb5p alone, for which the keytab must have a key of nfs/HOST \
         (docs/kerberos.md), or with TLS (nfs-tls, docs/nfs-tls.md)"
    })
}

/// Why entries of a client list admit nobody: what the list does.
pub(crate) fn uncertified(rules: &share::Rules, encryption: Encryption) -> Option<&'static str> {
    let is_useless = rules.name_certificates() && !encryption.asks_for_certificates;
    is_useless.then_some(
        "names certificates (cert:), which no client is asked for: these entries admit nobody. Set nfs-tls and nfs-client-ca \
         (docs/nfs-tls.md)",
    )
}

/// Logs that root of NFS clients cannot create device nodes on a share that allows it: this process may not.
fn tell_no_devices(share: &Share) {
    let may = rustix::thread::capabilities(None);
    let may = may.is_ok_and(|sets| sets.effective.contains(CapabilitySet::MKNOD));
    if share.terms().contains(Terms::DEVICES) && !may {
        tracing::warn!(
            share = share.name(),
            "devices = true has no effect: this process may not create device nodes. The drop-in devices.conf of the service \
             allows it (docs/service.md)"
        );
    }
}

/// Checks that the server removes no directory of a declared share, now or later.
///
/// # Errors
/// It would; or the state database cannot be read.
pub(crate) fn check_stay(declared: &Declared, state: &State) -> Result<()> {
    let mut apart = Apart::from_state(state.directory());
    pools::take_doomed(&mut apart, state)?;
    declared.shares.iter().try_for_each(|share| apart.check_resolved(&share.given.name, &share.directory))
}

/// The shares and pools that the configuration declares, with their directories, which do not overlap; those of the shares exist. If a storage
/// does not answer, the directory is assumed to be the same as `before`.
///
/// # Errors
/// A directory cannot be used, or overlaps with another or with the state directory.
pub(crate) fn declare(settings: &Settings, state: &Path, before: Option<&Declared>) -> Result<Declared> {
    let check = |given: ShareSettings| directories::check(&given.name, &given.directory, given.terms);
    let found = in_time::answers(settings.shares.clone(), check);
    let mut shares = Vec::new();
    let mut apart = Apart::from_state(state);
    for (given, found) in settings.shares.iter().zip(found) {
        check_names(&given.name, &given.rules.rights, &settings.kerberos)?;
        let share = if let Some(found) = found {
            let directory = found?;
            apart.check(&given.name, &directory)?;
            apart.take(&given.name, &directory);
            DeclaredShare { given: given.clone(), directory, is_unseen: false }
        } else {
            let share = unseen(given, before);
            apart.take_unseen(&given.name, &share.directory);
            share
        };
        shares.push(share);
    }
    if let Some((_, problem)) = pools::overlaps(&settings.pools, &mut apart).into_iter().next() {
        return Err(problem);
    }
    let (shares_in, accounts_in) = (settings.shares_in.clone(), settings.users_in.clone());
    Ok(Declared {
        shares,
        shares_in,
        shares_elsewhere: settings.shares_elsewhere.clone(),
        policies: settings.policies.clone(),
        policies_in: settings.policies_in.clone(),
        pools: pools::resolved(&settings.pools),
        pools_in: settings.pools_in.clone(),
        accounts: Vec::new(),
        accounts_in,
        accounts_elsewhere: settings.users_elsewhere.clone(),
        ceph: before
            .map_or_else(|| Arc::new(Cluster::new(settings.ceph.clone())), |before| Arc::clone(&before.ceph)),
        mirrors: before.map_or_else(Arc::default, |before| Arc::clone(&before.mirrors)),
        retention: settings.deleted_share_retention,
        encryption: settings.encryption(),
        metadata_latency: settings.bench_metadata_latency,
        is_uncounted: !settings.bench_accounting,
    })
}

/// A declared share whose storage does not answer.
fn unseen(given: &ShareSettings, before: Option<&Declared>) -> DeclaredShare {
    match before.and_then(|before| before.share(&given.name)) {
        Some(before) if before.given.directory == given.directory => {
            DeclaredShare { given: given.clone(), ..before.clone() }
        }
        _ => {
            let directory = directories::absolute(&given.directory);
            DeclaredShare { given: given.clone(), directory, is_unseen: true }
        }
    }
}

/// Applies the present declaration to a share that is served: everything but its name, its directory and its reserved
/// names.
pub(crate) fn change_declared(share: &Share, now: &ShareSettings) {
    let ShareSettings {
        name: _,
        directory: _,
        reserved_names: _,
        // Whoever takes the snapshots looks there.
        snapshot_policy: _,
        // The plan was checked against it.
        tier: _,
        terms,
        rules,
        comment,
        plan,
        metadata_cache,
        recycle_bin,
        ransomware_alarm,
        quotas,
    } = now;
    share.set_terms(*terms);
    share.set_metadata_cache(*metadata_cache);
    share.set_comment(comment.clone());
    share.set_recycle_bin(recycle_bin.clone());
    share.set_ransomware_rule(*ransomware_alarm);
    share.set_quota_rules(quotas.clone());
    if *share.rules() != *rules {
        share.set_rules(rules.clone());
    }
    if share.plan() == *plan {
        return;
    }
    if let Err(why) = share.set_plan(plan.clone(), SystemTime::now()) {
        tracing::error!("the plan of the share {} takes effect at the next start: {why}", share.name());
    }
}

/// Why a share created by command is not served while the configuration declares the same name.
pub(crate) fn shadowed(name: &str, place: &str) -> String {
    format!("{place} declares a share {name}, which has precedence")
}

/// The store of a share's directory on this machine. The `reserved` names do not exist for clients.
///
/// # Errors
/// The directory cannot be opened, or has reserved names that are not known.
fn open_local(name: &str, directory: &Path, reserved: &[String], state: &State) -> Result<Arc<dyn Storage>> {
    let problem = |why: &dyn fmt::Display, advice: &str| {
        let what = format!("share {name}: cannot serve {}: {why}", directory.display());
        Problem::new(Cause::Directory, what, advice)
    };
    if reserved.is_empty() && storage_local::lacks_reserved_names(directory).map_err(|e| problem(&e, ""))? {
        return Err(problem(&NO_SNAPSHOT_NAME, GIVE_SNAPSHOT_NAME));
    }
    let options = LocalOptions {
        handle_records: Some(state.handle_records(&name.to_lowercase())),
        reserved_names: reserved.to_vec(),
        ..LocalOptions::default()
    };
    let store = LocalStore::open(directory, options).map_err(|e| problem(&e, ""))?;
    Ok(Arc::new(store))
}

/// Logs why a share is served read-only whose terms do not say so.
fn tell_read_only(settings: &share::Settings, directory: &Path, store: &dyn Storage) {
    if !settings.terms.contains(Terms::READ_ONLY) && !store.capabilities().contains(Capabilities::WRITE) {
        tracing::warn!(
            share = settings.name,
            "the share is served read-only, since nobody can write to the file system of {}; if that changes, start the \
             server again",
            directory.display()
        );
    }
}

/// Logs why NFS clients do not find earlier versions in a share whose terms say so.
fn tell_missing_folder(settings: &share::Settings, directory: &Path, store: &dyn Storage) {
    if !settings.terms.contains(Terms::SNAPSHOT_FOLDER) {
        return;
    }
    let share = settings.name.as_str();
    if let Err(why) = store.snapshots() {
        tracing::warn!(share, "nfs-snapshots has no effect: {why}");
    } else if directory.join(nfs_server::SNAPSHOT_FOLDER).symlink_metadata().is_ok() {
        tracing::warn!(
            share,
            "{} has an entry {} of its own, which keeps the name: NFS clients find earlier versions in other directories only",
            directory.display(),
            nfs_server::SNAPSHOT_FOLDER
        );
    }
}

/// A store with artificially slow metadata calls.
fn slowed(store: Arc<dyn Storage>, by: Duration) -> Arc<dyn Storage> {
    let store = FaultyStore::new(store);
    for call in Call::METADATA {
        store.inject(Rule::always(call, Fault::Slow(Arc::new(move || std::thread::sleep(by)))));
    }
    Arc::new(store)
}

impl Opener {
    pub(crate) fn new(
        declared: &Declared,
        state: &Arc<State>,
        opens_max: usize,
        access_log: &AccessLog,
    ) -> Self {
        let &Declared { metadata_latency, is_uncounted, .. } = declared;
        let (state, access_log) = (Arc::clone(state), access_log.clone());
        let (ceph, mirrors) = (Arc::clone(&declared.ceph), Arc::clone(&declared.mirrors));
        Self { state, ceph, mirrors, opens_max, metadata_latency, is_uncounted, access_log }
    }

    /// Opens those of these shares whose storages answer. The others are awaited.
    ///
    /// # Errors
    /// A share cannot be served.
    pub(crate) fn open_declared(
        &self,
        shares: &[DeclaredShare],
        table: &ShareTable,
    ) -> Result<Vec<Arc<Share>>> {
        let (unseen, seen): (Vec<_>, Vec<_>) = shares.iter().cloned().partition(|share| share.is_unseen);
        let opener = self.clone();
        let opened = in_time::answers(seen.clone(), move |share| opener.declared(&share));
        for share in &unseen {
            self.await_store(&share.given.name, NO_ANSWER, table)?;
        }
        let mut open = Vec::new();
        for (share, opened) in seen.iter().zip(opened) {
            match opened {
                Some(Err(problem)) if problem.cause == Cause::Silent => {
                    self.await_store(&share.given.name, &problem.what, table)?;
                }
                Some(opened) => open.push(opened?),
                None => self.await_store(&share.given.name, NO_ANSWER, table)?,
            }
        }
        Ok(open)
    }

    /// Serves shares created by command, beside the declared ones and the `others` created by command. If a share
    /// cannot be served, the reason is kept. If its storage does not answer, the share is awaited.
    ///
    /// # Errors
    /// The state database cannot be used.
    pub(crate) fn enter_made(
        &self,
        records: Vec<ShareRecord>,
        others: &[ShareRecord],
        declared: &Declared,
        table: &ShareTable,
        idle: &mut Idle,
    ) -> Result<()> {
        let mut leave = |record: &ShareRecord, problem: Problem| {
            tracing::warn!("the share {} is not served: {}", record.name, problem.what);
            idle.insert(folded_name(&record.name), problem.what);
        };
        let mut found = Vec::new();
        for (record, directory) in self.find_made(records, others, declared) {
            match directory {
                Some(Ok(directory)) => found.push((record, directory)),
                Some(Err(problem)) => leave(&record, problem),
                None => self.await_store(&record.name, NO_ANSWER, table)?,
            }
        }
        let opener = self.clone();
        let opened =
            in_time::answers(found.clone(), move |(record, directory)| opener.made(&record, &directory));
        let mut entered = Vec::new();
        for ((record, _), opened) in found.into_iter().zip(opened) {
            let Some(opened) = opened else {
                self.await_store(&record.name, NO_ANSWER, table)?;
                continue;
            };
            let enter =
                |share| table.enter(&share).map_err(|e| Problem::new(Cause::State, e.to_string(), ""));
            match opened.and_then(enter) {
                Ok(()) => entered.push(record.name),
                Err(problem) if problem.cause == Cause::Silent => {
                    self.await_store(&record.name, &problem.what, table)?;
                }
                Err(problem) => leave(&record, problem),
            }
        }
        for name in entered {
            idle.remove(&folded_name(&name));
        }
        Ok(())
    }

    /// Finds the directories of shares created by command, which do not overlap. None: the storage does not answer.
    fn find_made(
        &self,
        records: Vec<ShareRecord>,
        others: &[ShareRecord],
        declared: &Declared,
    ) -> Vec<(ShareRecord, Option<Result<PathBuf>>)> {
        let found = in_time::answers(records.clone(), |record: ShareRecord| pools::find(&record));
        let mut apart = Apart::from_state(self.state.directory());
        for share in &declared.shares {
            apart.take_unseen(&share.given.name, &share.directory);
        }
        for record in others {
            apart.take_unseen(&record.name, &record.directory);
        }
        let fits = |(record, found): (ShareRecord, Option<Result<PathBuf>>)| {
            let found = found.map(|found| found.and_then(|at| apart.check(&record.name, &at).map(|()| at)));
            let taken = found.as_ref().and_then(|found| found.as_ref().ok());
            apart.take_unseen(&record.name, taken.unwrap_or(&record.directory));
            (record, found)
        };
        records.into_iter().zip(found).map(fits).collect()
    }

    fn await_store(&self, name: &str, why: &str, table: &ShareTable) -> Result<()> {
        tracing::error!("the share {name} is not served: {why}");
        table.await_store(ShareId(self.state.server().share_id(name)?), name);
        Ok(())
    }

    /// Opens a share that the configuration declares.
    ///
    /// # Errors
    /// The share cannot be served.
    pub(crate) fn declared(
        &self,
        DeclaredShare { given, directory, .. }: &DeclaredShare,
    ) -> Result<Arc<Share>> {
        let settings = share::Settings {
            terms: given.terms,
            rules: given.rules.clone(),
            comment: given.comment.clone(),
            provisioned: Provisioned::new(given.plan.clone()),
            metadata_cache: given.metadata_cache,
            recycle_bin: given.recycle_bin.clone(),
            ransomware: given.ransomware_alarm,
            accounting: !self.is_uncounted,
            ..share::Settings::new(&given.name)
        };
        let store = self.open_store(&given.name, directory, &given.reserved_names)?;
        tell_read_only(&settings, directory, &*store);
        tell_missing_folder(&settings, directory, &*store);
        let (store, is_replica) = self.mirrored(&given.name, directory, store)?;
        let settings = share::Settings { caching: !is_replica, ..settings };
        let store = match self.metadata_latency {
            Some(by) => slowed(store, by),
            None => store,
        };
        self.open(settings, store, given.quotas.clone())
    }

    /// Opens a share created by command, whose directory was found at `directory`.
    ///
    /// # Errors
    /// The directory cannot be served, or this program does not know the plan.
    pub(crate) fn made(&self, record: &ShareRecord, directory: &Path) -> Result<Arc<Share>> {
        let settings = share::Settings {
            terms: record.terms(),
            rules: record.rules()?,
            comment: record.comment.clone(),
            provisioned: record.provisioned()?,
            metadata_cache: !record.uncached,
            recycle_bin: record.recycle_bin()?,
            ransomware: record.ransomware_alarm()?,
            ..share::Settings::new(&record.name)
        };
        let store = self.open_store(&record.name, directory, &[])?;
        tell_read_only(&settings, directory, &*store);
        tell_missing_folder(&settings, directory, &*store);
        let (store, is_replica) = self.mirrored(&record.name, directory, store)?;
        let settings = share::Settings { caching: !is_replica, ..settings };
        self.open(settings, store, record.quotas()?)
    }

    /// Like [`Opener::made`], for a caller that must not wait for a storage that does not answer.
    ///
    /// # Errors
    /// Those of [`Opener::made`], and that the storage does not answer.
    pub(crate) fn made_in_time(&self, record: &ShareRecord) -> Result<Arc<Share>> {
        let (opener, record) = (self.clone(), record.clone());
        let no_answer = directories::no_answer(&record.name, &record.directory);
        let open = move || {
            let directory = pools::find(&record)?;
            opener.made(&record, &directory)
        };
        in_time::answer(open).unwrap_or(Err(no_answer))
    }

    fn open_store(&self, name: &str, directory: &Path, reserved: &[String]) -> Result<Arc<dyn Storage>> {
        if cephfs::path_of(directory).is_none() {
            return open_local(name, directory, reserved, &self.state);
        }
        let mut key = [0; 16];
        let kept = getrandom::fill(&mut key).map_err(Into::into);
        let kept = kept.and_then(|()| self.state.handle_records(&name.to_lowercase()).key(key));
        let handle_key =
            kept.map_err(|e: RecordsError| Problem::new(Cause::State, format!("share {name}: {e}"), ""))?;
        let options = CephOptions {
            handle_key,
            is_exclusive: true,
            nodes_max: CEPH_NODES_MAX,
            reserved_names: reserved.to_vec(),
        };
        let gateway = cephfs::gateway(self.state.server())?;
        let store = self.ceph.open(&Wanted { share: name, directory, options, gateway: &gateway })?;
        Ok(Arc::new(store))
    }

    /// Refuses a share on the directory of a replica, which is not served as that: its clients would see, and change, what is not
    /// complete.
    fn check_is_of_no_replica(&self, name: &str, directory: &Path) -> Result<()> {
        let records = self.state.replications()?;
        replica_at(&records, name, directory).map_or(Ok(()), |other| {
            let (what, share) = if same_share_name(&other.share, name) {
                let was = other.directory.display();
                (format!("share {name}: it is a replica, and its directory was {was}"), name)
            } else {
                let share = other.share.as_str();
                (format!("share {name}: its directory is that of the replica {share}"), share)
            };
            let advice = format!("End the replication: anabranch share replicate {share} --stop");
            Err(Problem::new(Cause::Directory, what, advice))
        })
    }

    /// What clients see of a store: of a replica the last complete snapshot. Whether it is one.
    fn mirrored(
        &self,
        name: &str,
        directory: &Path,
        live: Arc<dyn Storage>,
    ) -> Result<(Arc<dyn Storage>, bool)> {
        let record = self.state.replication_of(name)?;
        let record = record.filter(|record| !record.broken && record.directory == directory);
        let Some(record) = record else {
            self.check_is_of_no_replica(name, directory)?;
            return Ok((live, false));
        };
        let problem = |why: String| {
            let what = format!("share {name}: the snapshot {}, which the replica shows: {why}", record.shown);
            let advice = "End the replication: anabranch share replicate NAME --stop; and begin it again with an empty share.";
            Problem::new(Cause::Directory, what, advice)
        };
        let local = KnownLocal::of(&*live).ok_or_else(|| problem("the storage is not local".to_owned()))?;
        let may = local.may_wait(View::FRESH);
        let snapshots = live.snapshots().map_err(|why| problem(why.to_string()))?;
        let shown = open_snapshot(&snapshots, &record.shown, may).map_err(|e| problem(e.to_string()))?;
        let mirror = MirrorStore::new(live, shown.id, may).map_err(|e| problem(e.to_string()))?;
        self.mirrors.enter(name, mirror.shown());
        Ok((Arc::new(mirror), true))
    }

    fn open(
        &self,
        settings: share::Settings,
        store: Arc<dyn Storage>,
        quotas: Vec<QuotaRule>,
    ) -> Result<Arc<Share>> {
        let id = ShareId(self.state.server().share_id(&settings.name)?);
        let opens_max = settings.opens_max.min(self.opens_max);
        let access_log = self.access_log.clone();
        let share = Share::new(id, share::Settings { opens_max, access_log, ..settings }, store);
        burst_credits::restore(&share, self.state.server())?;
        if !quotas.is_empty() {
            share.set_quotas_over_since(self.state.quota_graces(share.name())?);
            share.set_quota_rules(quotas);
        }
        Ok(share)
    }
}

/// The replica that is kept in this directory, which is served as another share, or as the share of a replica that is kept elsewhere:
/// that may be the same directory by another path.
fn replica_at<'a>(
    records: &'a [ReplicationRecord],
    name: &str,
    directory: &Path,
) -> Option<&'a ReplicationRecord> {
    records.iter().filter(|record| !record.broken).find(|record| {
        same_share_name(&record.share, name)
            || directory.starts_with(&record.directory)
            || is_one_directory(directory, &record.directory)
    })
}

fn is_one_directory(one: &Path, other: &Path) -> bool {
    let id = |path| rustix::fs::stat(path).map(|found| (found.st_dev, found.st_ino));
    id(one).is_ok_and(|one| id(other) == Ok(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_of_a_replica_is_served_as_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let [copy, other, link] = ["copy", "other", "link"].map(|name| place.path().join(name));
        std::fs::create_dir(&copy).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&copy, &link).unwrap();
        let record = |broken| ReplicationRecord {
            share: "copy".to_owned(),
            directory: copy.clone(),
            broken,
            ..ReplicationRecord::default()
        };
        let is_refused =
            |broken, name, directory: &Path| replica_at(&[record(broken)], name, directory).is_some();
        assert!(is_refused(false, "data", &copy) && is_refused(false, "data", &copy.join("below")));
        assert!(is_refused(false, "data", &link), "another path of it");
        assert!(is_refused(false, "COPY", &link) && is_refused(false, "copy", &other), "it may be one");
        assert!(!is_refused(false, "data", &other) && !is_refused(true, "copy", &copy));
        assert!(!is_refused(true, "data", &copy), "it was broken off");
    }
}
