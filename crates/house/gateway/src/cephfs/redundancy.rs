//! How the file system keeps the data of shares: which data pool a directory has, and gets.

use std::fmt;
use std::path::Path;

use limits::Media;
use rados::{Class, DataPool, Monitors, Placement};
use storage_ceph::{CephOptions, CephStore, data_pool_at};

use super::{Cluster, path_of};
use crate::problem::{Cause, Problem, Result};

/// What a share wants of the data pool of its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) class: Class,
    /// None: any medium.
    pub(crate) media: Option<Media>,
}

impl Kept {
    fn is_given_by(self, pool: &DataPool) -> bool {
        pool.class() == Some(self.class) && self.media.is_none_or(|media| pool.media() == Some(media))
    }
}

impl Cluster {
    /// The data pool that keeps what is made in a directory from now on. Takes as long as the cluster takes to answer.
    ///
    /// # Errors
    /// The file system is not mounted, the cluster does not answer, or this gateway may not read what is needed. In words.
    pub(crate) fn data_pool(&self, directory: &Path) -> std::result::Result<DataPool, String> {
        let mount = self.mount.lock().clone().ok_or("the file system is not mounted")?;
        let name = data_pool_at(&mount, path_of(directory).unwrap_or_default()).map_err(|e| e.to_string())?;
        let placement = self.placement().map_err(|e| e.what)?;
        let found = placement.pool(name.as_deref()).cloned();
        found.ok_or_else(|| {
            let file_system = &placement.file_system;
            format!("the file system {file_system} has no data pool {}", name.unwrap_or_default())
        })
    }

    /// Gives a directory a data pool that gives a class, unless it has one. A share has the directory open.
    ///
    /// # Errors
    /// The cluster has no such pool, the directory has files in another one, or this gateway may not set it.
    pub(crate) fn keep(&self, share: &str, directory: &Path, kept: Kept) -> Result<()> {
        let refused = |why: &dyn fmt::Display, advice: String| {
            Problem::new(Cause::Directory, format!("share {share}: {}: {why}", directory.display()), advice)
        };
        let placement = self.placement().map_err(|e| refused(&e.what, e.advice.clone()))?;
        let path = path_of(directory).unwrap_or_default();
        let mount = self
            .mount
            .lock()
            .clone()
            .ok_or_else(|| refused(&"the file system is not mounted", String::new()))?;
        let named = data_pool_at(&mount, path).map_err(|e| refused(&e, String::new()))?;
        let present = placement.pool(named.as_deref());
        if present.is_some_and(|pool| kept.is_given_by(pool)) {
            return Ok(());
        }
        let chosen =
            placement.choose(kept.class, kept.media).map_err(|e| refused(&e.what, e.advice.clone()))?;
        let options = CephOptions {
            handle_key: [0; 16],
            is_exclusive: false,
            nodes_max: 1,
            reserved_names: Vec::new(),
        };
        let store = CephStore::open(&mount, path, &options).map_err(|e| refused(&e, String::new()))?;
        if !store.is_empty().map_err(|e| refused(&e, String::new()))? {
            let has = present.map_or_else(String::new, |pool| format!(", which gives {pool}"));
            let name = named.as_deref().or_else(|| present.map(|pool| pool.name.as_str())).unwrap_or("-");
            let why = format!("it is not empty, and its files are in the data pool {name}{has}");
            return Err(refused(
                &why,
                "Files stay in their pool: take an empty directory, and copy them into the share.".to_owned(),
            ));
        }
        store.set_data_pool(&chosen.name).map_err(|error| match error {
            storage::Error::PermissionDenied | storage::Error::NotPermitted => {
                let user = &self.place.user;
                let what = format!("the user {user} of Ceph may not set the data pool of a directory");
                refused(&what, how_to_permit(user, &placement.file_system))
            }
            error => refused(&format!("its data pool cannot be set: {error}"), String::new()),
        })?;
        tracing::info!(
            share,
            pool = chosen.name,
            "the directory of the share has a data pool that gives {}",
            kept.class
        );
        Ok(())
    }

    /// The data pools of the file system.
    ///
    /// # Errors
    /// The monitors do not answer, or do not admit this gateway.
    fn placement(&self) -> std::result::Result<Placement, state::Error> {
        let place = &self.place;
        Monitors::connect(&place.configuration, &place.user)?.placement(place.file_system.as_deref())
    }
}

/// The MDS capability `p` is that to set layouts and quotas.
fn how_to_permit(user: &str, file_system: &str) -> String {
    format!(
        "Its rights need a p for the metadata servers, as in mds 'allow rwps fsname={file_system}'; ceph auth get {user} prints them, and \
         ceph auth caps {user} sets all of them. It has new ones from the next start of the server on."
    )
}
