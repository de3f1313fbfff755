//! How the file system keeps the data of shares.

use std::path::Path;

use rados::{DataPool, Monitors, Placement};
use storage_ceph::data_pool_at;

use super::{Cluster, path_of};

impl Cluster {
    /// The data pool that keeps what is made in a directory from now on. Takes as long as the cluster takes to answer.
    ///
    /// # Errors
    /// The file system is not mounted, the cluster does not answer, or this gateway may not read what is needed. In words.
    pub(crate) fn data_pool(&self, directory: &Path) -> Result<DataPool, String> {
        let mount = self.mount.lock().clone().ok_or("the file system is not mounted")?;
        let name = data_pool_at(&mount, path_of(directory).unwrap_or_default()).map_err(|e| e.to_string())?;
        let placement = self.placement().map_err(|e| e.what)?;
        let found = placement.pool(name.as_deref()).cloned();
        found.ok_or_else(|| {
            let file_system = &placement.file_system;
            format!("the file system {file_system} has no data pool {}", name.unwrap_or_default())
        })
    }

    /// The data pools of the file system.
    ///
    /// # Errors
    /// The monitors do not answer, or do not admit this gateway.
    pub(super) fn placement(&self) -> Result<Placement, state::Error> {
        let place = &self.place;
        Monitors::connect(&place.configuration, &place.user)?.placement(place.file_system.as_deref())
    }
}
