//! The shares of a vserver: opened so that their handles are the same in every gateway that serves it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use limits::Provisioned;
use share::{AccessLog, Rules, Share, ShareId, ShareTable, Terms};
use state::{ServerRecords, burst_credits};
use storage::{Capabilities, Storage};
use storage_ceph::CephOptions;
use storage_local::{HandleRecords as _, LocalOptions, LocalStore, RecordsError, RecordsInMemory};

use crate::apart::Apart;
use crate::cephfs::{self, Cluster, Wanted};
use crate::directories;
use crate::in_time::Silent;
use crate::opening::CEPH_NODES_MAX;
use crate::problem::{Cause, Problem, Result};
use crate::settings::{check_share_name, same_share_name};

/// Why a local directory cannot be a share of a vserver.
const NO_LASTING_HANDLES: &str = "its file system has no handles that are the same in each gateway, or this process may not use them \
     (CAP_DAC_READ_SEARCH)";

/// How long a directory in CephFS may take to be free when the gateway before has let it go.
const LET_GO: Duration = Duration::from_secs(5);
/// How often to look whether it is.
const AGAIN: Duration = Duration::from_millis(10);

/// A share of a vserver.
#[derive(Debug, Clone, PartialEq)]
pub struct VserverShare {
    /// Its name, which only the other shares of the vserver cannot have.
    pub name: String,
    /// A directory that each gateway of the vserver has: `cephfs:/PATH`, or one of this machine.
    pub directory: PathBuf,
    /// Its terms.
    pub terms: Terms,
    /// Who may use it.
    pub rules: Rules,
    /// What clients that list the shares are told of it.
    pub comment: String,
    /// Its plan.
    pub provisioned: Provisioned,
}

impl VserverShare {
    /// A share that whoever can log on, and every NFS client, may use without limits.
    #[must_use]
    pub fn new(name: &str, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            directory: directory.into(),
            terms: Terms::empty(),
            rules: Rules::default(),
            comment: String::new(),
            provisioned: Provisioned::default(),
        }
    }

    /// Whether this is the same share, perhaps with other settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        same_share_name(&self.name, &other.name) && self.directory == other.directory
    }
}

/// Shares and their directories.
pub(crate) type Directories = Vec<(String, PathBuf)>;

/// How the shares of one vserver are opened.
#[derive(Debug)]
pub(crate) struct VserverOpener {
    pub(crate) records: ServerRecords,
    pub(crate) ceph: Arc<Cluster>,
    /// By which the cluster knows this gateway, whatever it serves.
    pub(crate) gateway: String,
    pub(crate) opens_max: usize,
    pub(crate) access_log: AccessLog,
    /// A storage that owes an answer is not asked again: each attempt would leave a thread behind.
    pub(crate) silent: Arc<Silent>,
}

impl VserverOpener {
    /// Opens all shares, whose directories are apart from all others. The directories as they were found.
    ///
    /// # Errors
    /// A share cannot be served, or its storage does not answer.
    pub(crate) fn open_all(
        self,
        shares: &[VserverShare],
        mut apart: Apart,
    ) -> Result<(Arc<ShareTable>, Directories)> {
        let (opener, table, mut found) = (Arc::new(self), Arc::new(ShareTable::default()), Vec::new());
        for given in shares {
            let (share, directory) = opener.open_one(given, &mut apart)?;
            table.enter(&share).map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))?;
            found.push((given.name.clone(), directory));
        }
        Ok((table, found))
    }

    /// Opens a share, whose directory is apart from all others; from now on, it is one of these. The directory as it was found.
    ///
    /// # Errors
    /// The share cannot be served, or its storage does not answer.
    pub(crate) fn open_one(
        self: &Arc<Self>,
        given: &VserverShare,
        apart: &mut Apart,
    ) -> Result<(Arc<Share>, PathBuf)> {
        check_share_name(&given.name).map_err(|why| Problem::new(Cause::Settings, why, ""))?;
        let no_answer = || directories::no_answer(&given.name, &given.directory);
        let asked = given.clone();
        let checked = self
            .silent
            .answer(&given.directory, move || directories::check(&asked.name, &asked.directory, asked.terms));
        let directory = checked.ok_or_else(no_answer)??;
        apart.check(&given.name, &directory)?;
        apart.take(&given.name, &directory);
        let (opener, asked, at) = (Arc::clone(self), given.clone(), directory.clone());
        let opened = self.silent.answer(&given.directory, move || opener.open_when_free(&asked, &at));
        Ok((opened.ok_or_else(no_answer)??, directory))
    }

    /// Opens a share. Its directory may still be with the gateway that has let the vserver go, for a moment.
    fn open_when_free(&self, given: &VserverShare, directory: &Path) -> Result<Arc<Share>> {
        let deadline = Instant::now() + LET_GO;
        loop {
            match self.open(given, directory) {
                Err(problem) if problem.cause == Cause::Silent && Instant::now() < deadline => {
                    std::thread::sleep(AGAIN);
                }
                opened => return opened,
            }
        }
    }

    fn open(&self, given: &VserverShare, directory: &Path) -> Result<Arc<Share>> {
        let store = self.open_store(given, directory)?;
        let settings = share::Settings {
            terms: given.terms,
            rules: given.rules.clone(),
            comment: given.comment.clone(),
            provisioned: given.provisioned.clone(),
            opens_max: self.opens_max,
            access_log: self.access_log.clone(),
            ..share::Settings::new(&given.name)
        };
        let share = Share::new(ShareId(self.records.share_id(&given.name)?), settings, store);
        burst_credits::restore(&share, &self.records)?;
        Ok(share)
    }

    fn open_store(&self, given: &VserverShare, directory: &Path) -> Result<Arc<dyn Storage>> {
        let (name, handle_key) = (given.name.as_str(), self.records.store_handle_key()?);
        if cephfs::path_of(directory).is_some() {
            let options = CephOptions {
                handle_key,
                is_exclusive: true,
                nodes_max: CEPH_NODES_MAX,
                reserved_names: Vec::new(),
            };
            let wanted = Wanted { share: name, directory, options, gateway: &self.gateway };
            return Ok(Arc::new(self.ceph.open(&wanted)?));
        }
        open_local(handle_key, directory).map_err(|why| {
            let what = format!("share {name}: a vserver cannot serve {}: {why}", directory.display());
            Problem::new(Cause::Directory, what, "")
        })
    }
}

/// The store of a directory of this machine, whose handles are those of its file system.
fn open_local(handle_key: [u8; 16], directory: &Path) -> std::result::Result<Arc<dyn Storage>, RecordsError> {
    let records = RecordsInMemory::default();
    records.key(handle_key)?;
    let options = LocalOptions { handle_records: Some(Arc::new(records)), ..LocalOptions::default() };
    let store = LocalStore::open(directory, options)?;
    if !store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return Err(NO_LASTING_HANDLES.into());
    }
    Ok(Arc::new(store))
}
