//! The folder `.snapshot` of a directory, which has a directory for each snapshot in which this one is: as it was then.
//!
//! It is found by its name in every directory of a share whose terms say so, and listed only in the root. To this server it is the
//! directory itself with a mark ([`ObjectOf::is_folder`]), so whoever may use the directory may use it; it has a number of its
//! own, and takes no changes. What is of a snapshot is in a view of the share ([`Share::at`]), with another number of the file
//! system, so clients do not mix files and their versions up.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nfs_proto::filehandle::{FileHandleTarget, Within};
use share::{Call, Case, Error, Reached, Result, Share, Terms, Walk};
use storage::{Attributes, FileKind, Handle, Snapshot, SnapshotId, Timestamp, Want};

use crate::object::ObjectOf;
use crate::standing::Standing;

/// The name of the folder.
pub const FOLDER: &str = ".snapshot";
pub(crate) const NAME: &[u8] = FOLDER.as_bytes();
/// Tells the number of the folder from that of its directory: no local file system counts so far.
const FOLDER_BIT: u64 = 1 << 63;
/// Bytes of a name that others gave to a snapshot.
const NAME_BYTES_MAX: usize = 200;

/// Whether a name in a directory is that of its folder.
pub(crate) fn is_folder<C>(dir: &ObjectOf<C>, name: &[u8]) -> bool {
    name == NAME && has_folder(&dir.share) && !dir.is_folder && dir.node.kind() == FileKind::Directory
}

/// Whether the directories of a share have such folders.
fn has_folder(share: &Share) -> bool {
    share.terms().contains(Terms::SNAPSHOT_FOLDER) && share.has_snapshots()
}

/// Whether the listing of a directory shows its folder.
pub(crate) async fn is_shown<C: Deref<Target = Call> + Clone>(dir: &ObjectOf<C>) -> bool {
    let is_root = dir.node.id() == dir.share.root().id();
    is_root
        && dir.share.terms().contains(Terms::SNAPSHOT_FOLDER_SHOWN)
        && look_up(dir, NAME).await.is_ok_and(|folder| folder.is_some())
}

/// What a filehandle for an object with this handle names.
pub(crate) fn target<'h>(share: &Share, handle: &'h Handle) -> FileHandleTarget<'h> {
    let within = share.snapshot().map_or(Within::Live, |snapshot| Within::Snapshot(snapshot.id.0));
    FileHandleTarget { share: share.id().0, within, storage_handle: handle.as_bytes() }
}

/// The object that a filehandle names.
///
/// # Errors
/// [`storage::Error::Stale`] when the object is gone, or its snapshot, or the share shows none any more;
/// [`storage::Error::BadHandle`].
pub(crate) async fn find<C: Deref<Target = Call> + Clone>(
    share: &Arc<Share>,
    call: C,
    target: &FileHandleTarget<'_>,
    standing: Standing,
) -> Result<ObjectOf<C>> {
    let handle = Handle::new(target.storage_handle).map_err(|_| storage::Error::BadHandle)?;
    if target.within != Within::Live && !has_folder(share) {
        return Err(storage::Error::Stale.into());
    }
    let share = match target.within {
        Within::Live | Within::Folder => Arc::clone(share),
        Within::Snapshot(number) => Box::pin(view(share, &call, SnapshotId(number))).await.map_err(gone)?,
    };
    let node = share.by_handle(&call, &handle).await?;
    let object = ObjectOf::new(share, call, node, standing);
    Ok(if target.within == Within::Folder { object.folder() } else { object })
}

async fn view(share: &Arc<Share>, call: &Call, id: SnapshotId) -> Result<Arc<Share>> {
    share.at(call, id).await
}

/// The failure to find a snapshot as one to find an object by its handle.
fn gone(error: Error) -> Error {
    match error {
        Error::Storage(storage::Error::NotFound) => storage::Error::Stale.into(),
        error => error,
    }
}

/// What a name leads to, if that has to do with snapshots: the folder of a directory, or what is in a folder.
///
/// # Errors
/// [`storage::Error::NotFound`] in a folder; those of the store.
pub(crate) async fn look_up<C: Deref<Target = Call> + Clone>(
    dir: &ObjectOf<C>,
    name: &[u8],
) -> Result<Option<ObjectOf<C>>> {
    if dir.is_folder {
        return Box::pin(inside(dir, name)).await.map(Some);
    }
    if !is_folder(dir, name) {
        return Ok(None);
    }
    // What the directory has by this name keeps it.
    match Box::pin(dir.share.lookup(&dir.call, &dir.node, name, Case::Sensitive, Want::empty())).await {
        Ok(_) => Ok(None),
        Err(Error::Storage(storage::Error::NotFound)) => Ok(Some(dir.folder())),
        Err(error) => Err(error),
    }
}

async fn inside<C: Deref<Target = Call> + Clone>(folder: &ObjectOf<C>, name: &[u8]) -> Result<ObjectOf<C>> {
    let (share, call) = (&folder.share, &folder.call);
    match name {
        b"." => return Ok(folder.clone()),
        b".." => return Ok(folder.beside(Arc::clone(&folder.node))),
        _ => {}
    }
    let listed = share.snapshots(call).await?;
    let named = names(&listed).into_iter().find(|(_, known)| known.as_bytes() == name);
    let (id, _) = named.ok_or(storage::Error::NotFound)?;
    let view = share.at(call, id).await?;
    let path = folder.node.path()?;
    let path = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec);
    match view.reach(call, path.collect(), 0, Case::Sensitive, Want::empty()).await? {
        Reached::End(Walk::Found(found)) if found.attributes.kind == FileKind::Directory => {
            Ok(ObjectOf::new(view, call.clone(), found.node, folder.standing))
        }
        _ => Err(storage::Error::NotFound.into()),
    }
}

/// The directories in a folder: the numbers of their snapshots, in order, and their names.
///
/// # Errors
/// Those of the store.
pub(crate) async fn list<C: Deref<Target = Call> + Clone>(
    folder: &ObjectOf<C>,
) -> Result<Vec<(SnapshotId, String)>> {
    let (share, call) = (&folder.share, &folder.call);
    let listed = share.snapshots(call).await?;
    let versions = Box::pin(share.versions(call, &folder.node.path()?)).await?;
    let mut names = names(&listed);
    names.retain(|(id, _)| versions.iter().any(|version| version.id == *id));
    names.sort_unstable();
    Ok(names)
}

/// Where a listing goes on after this entry. The first values are reserved (RFC 8881 18.23.3).
pub(crate) fn cookie(id: SnapshotId) -> u64 {
    u64::from(id.0).saturating_add(2)
}

/// The names of snapshots as directories. What others call a snapshot may be a path, or the name of another one.
fn names(snapshots: &[Snapshot]) -> Vec<(SnapshotId, String)> {
    let mut names: Vec<(SnapshotId, String)> = Vec::new();
    for snapshot in snapshots {
        let mut name = safe(&snapshot.name);
        if names.iter().any(|(_, taken)| *taken == name) {
            name = format!("{name}.{}", snapshot.id.0);
        }
        names.push((snapshot.id, name));
    }
    names
}

fn safe(name: &str) -> String {
    let is_safe = |c: &char| !c.is_control() && *c != '/';
    let mut safe: String = name.chars().map(|c| if is_safe(&c) { c } else { '_' }).collect();
    while safe.len() > NAME_BYTES_MAX {
        safe.pop();
    }
    if matches!(safe.as_str(), "" | "." | "..") { format!("_{safe}") } else { safe }
}

/// The attributes of the folder of a directory with these attributes. It seems to have just changed, so that clients look again.
pub(crate) fn folder_attributes(of: Attributes) -> Attributes {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: 0 };
    let mut folder = of;
    folder.id.number ^= FOLDER_BIT;
    folder.mode &= 0o555;
    (folder.links, folder.size, folder.allocated) = (2, 4096, 0);
    (folder.mtime, folder.ctime, folder.ctime_set, folder.changes_within_ctime) = (now, now, None, 0);
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: u32, name: &str) -> Snapshot {
        let taken = Timestamp { secs: id.into(), nanos: 0 };
        Snapshot { id: SnapshotId(id), name: name.to_owned(), taken, is_own: false, uuid: None }
    }

    #[test]
    fn names_of_others_are_made_safe_and_told_apart() {
        let long = "\u{e4}".repeat(150);
        let snapshots: Vec<_> = [
            "anabranch.a.2026-11-23T05:45:18Z",
            ".snapshots/7/snapshot",
            ".snapshots_7_snapshot",
            "",
            "..",
            "a\n\0",
            &long,
        ]
        .iter()
        .zip(1..)
        .map(|(name, id)| named(id, name))
        .collect();
        let told: Vec<_> = names(&snapshots).into_iter().map(|(_, name)| name).collect();
        assert_eq!(
            told,
            [
                "anabranch.a.2026-11-23T05:45:18Z",
                ".snapshots_7_snapshot",
                ".snapshots_7_snapshot.3",
                "_",
                "_..",
                "a__",
                &"\u{e4}".repeat(100)
            ]
        );
    }

    #[test]
    fn no_cookie_is_a_reserved_one() {
        assert_eq!((cookie(SnapshotId(1)), cookie(SnapshotId(u32::MAX))), (3, (1 << 32) + 1));
    }
}
