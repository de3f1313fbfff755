//! New shares from snapshots: the directory of such a share is a copy of the snapshot that can be changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::{Refusal, RefusalKind};
use share::{Error, Share};

use super::Administration;
use super::restores::find_at;
use crate::cephfs;
use crate::snapshots::Turn;
use crate::waiting::wait_for;

type Result<T> = std::result::Result<T, Refusal>;

/// A snapshot of which a directory is made.
pub(super) struct Original<'a> {
    share: Arc<Share>,
    snapshot: storage::Snapshot,
    /// Nobody removes the snapshot meanwhile.
    _turn: Turn<'a>,
}

impl Administration {
    /// The snapshot that `SHARE@SNAPSHOT` means: both may have an `@` in their names.
    pub(super) fn original(&self, given: &str) -> Result<Original<'_>> {
        self.serving()?;
        let parts = given.match_indices('@').filter_map(|(at, _)| given.split_at_checked(at));
        let of_share =
            parts.filter_map(|(name, snapshot)| Some((self.served(name).ok()?, snapshot.get(1..)?)));
        let Some((share, snapshot)) = of_share.into_iter().next() else {
            let what = format!("{given:?} names no snapshot of a share that is served");
            return Err(Refusal::new(RefusalKind::NotFound, what, "Give SHARE@SNAPSHOT, or SHARE@TIME."));
        };
        let turn = self.snapshotting.turn_at(&share)?;
        let snapshot = find_at(&share, snapshot)?;
        Ok(Original { share, snapshot, _turn: turn })
    }
}

/// The absolute path of a directory that is not there yet.
///
/// # Errors
/// Something is there, or the directory above is not.
pub(super) fn place(name: &str, given: &Path) -> Result<PathBuf> {
    let refuse = |why: String, advice: &str| {
        let what = format!("share {name}: {} {why}", given.display());
        Err(Refusal::new(RefusalKind::Directory, what, advice))
    };
    if cephfs::path_of(given).is_some() {
        return refuse("is in CephFS, where no copies of snapshots can be made".to_owned(), INSTEAD);
    }
    let (Some(above), Some(last)) = (given.parent(), given.file_name()) else {
        return refuse("is no place for a new directory".to_owned(), "");
    };
    if !given.is_absolute() {
        let advice = "Give an absolute path: the server may run in another directory.";
        return refuse("is not absolute".to_owned(), advice);
    }
    let above = match above.canonicalize() {
        Ok(above) => above,
        Err(e) => return refuse(format!("cannot be made: {}: {e}", above.display()), ""),
    };
    let place = above.join(last);
    match place.symlink_metadata() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(place),
        Err(e) => refuse(format!("cannot be made: {e}"), ""),
        Ok(_) => refuse("exists already".to_owned(), "The copy becomes a new directory: give another path."),
    }
}

const INSTEAD: &str =
    "Copy what the snapshot holds into a directory instead (docs/restore.md), and create a share there.";

impl Original<'_> {
    /// Makes the copy at a place.
    pub(super) fn copy_to(&self, name: &str, place: &Path) -> Result<()> {
        let (id, at, share) = (self.snapshot.id, place.to_owned(), self.share.name());
        let copy = self.share.with_snapshots(move |snapshots, may| snapshots.clone_to(id, &at, may));
        let refuse = |kind, what: String, advice: &str| Err(Refusal::new(kind, what, advice));
        match wait_for(copy)? {
            Ok(Ok(())) => {
                let snapshot = &self.snapshot.name;
                tracing::info!(share = name, of = share, snapshot, "a directory was made of a snapshot");
                Ok(())
            }
            Ok(Err(why)) => refuse(
                RefusalKind::NoSnapshots,
                format!("the share {share} has no snapshots"),
                &why.to_string(),
            ),
            Err(Error::Storage(storage::Error::NotSupported)) => refuse(
                RefusalKind::NoSnapshots,
                format!("the storage of the share {share} makes no copies of snapshots that can be changed"),
                INSTEAD,
            ),
            Err(Error::Storage(storage::Error::CrossDevice)) => refuse(
                RefusalKind::Directory,
                format!("share {name}: {} is not in the file system of the share {share}", place.display()),
                "A copy that shares its blocks with the snapshot is made in the same file system only.",
            ),
            Err(Error::Storage(storage::Error::NoSpace)) => {
                refuse(RefusalKind::Failed, format!("the file system of the share {share} is full"), "")
            }
            Err(e) => refuse(
                RefusalKind::Directory,
                format!("share {name}: {} cannot be made of a snapshot: {e}", place.display()),
                "",
            ),
        }
    }
}

/// A refusal after the copy was made, which stays.
pub(super) fn copy_stays(place: &Path, Refusal { kind, what, advice }: Refusal) -> Refusal {
    let stays = format!(
        "The copy of the snapshot is at {0}: btrfs subvolume delete {0} removes it.",
        place.display()
    );
    Refusal::new(kind, what, [advice, stays].join(" ").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_and_lies_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        assert_eq!(place("a", &top.join("new")), Ok(top.join("new")));
        std::os::unix::fs::symlink(&top, top.join("link")).unwrap();
        assert_eq!(place("a", &top.join("link/new")), Ok(top.join("new")));
        std::os::unix::fs::symlink("nowhere", top.join("dangling")).unwrap();
        let refused = |path: &Path| place("a", path).unwrap_err();
        for bad in [top.join("dangling"), top.clone(), top.join("none/new"), top.join("x/.."), "new".into()] {
            assert_eq!(refused(&bad).kind, RefusalKind::Directory, "{bad:?}");
        }
        assert!(refused(Path::new("cephfs:/a")).advice.contains("docs/restore.md"));
        assert!(refused(Path::new("/")).what.contains("no place"));
    }
}
