//! The root of the pseudo file system, which joins the exports: a share NAME is at `/NAME` (RFC 8881 7.3).
//!
//! The root is a directory that no client can change. A client finds in it the shares that it may use.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use nfs_proto::filehandle::{FileHandleTarget, Within};
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::status::Status;
use share::{Gone, Share, Terms};
use storage::{Attributes, Device, FileKind, ObjectId, Timestamp};

use super::absent::Absent;
use super::compound::Compound;
use super::place::Place;
use crate::object::Object;
use crate::server::ServerState;
use crate::standing::Standing;

/// The target of the root's filehandle: no share has this number.
pub(super) const ROOT: FileHandleTarget<'static> =
    FileHandleTarget { share: u32::MAX, within: Within::Live, storage_handle: b"/" };

/// The number of the root in its file system, which has no other object.
const ROOT_FILE_ID: u64 = 1;

/// The root's filehandle.
///
/// # Errors
/// None, since the handle fits.
pub(super) fn root_handle(server: &ServerState) -> Result<SignedHandle, Status> {
    server.file_handles.encode(ROOT).ok_or(Status::ServerFault)
}

/// The shares that the client may use and that are listed, in the order of their names.
pub(super) fn shares(c: &Compound<'_>) -> Vec<Arc<Share>> {
    let mut shares = c.server().exports.in_order();
    shares.retain(|share| {
        !share.terms().contains(Terms::HIDDEN) && !c.request.caller_so_far(share).1.is_refused()
    });
    shares
}

/// The shares that other servers have and that are listed.
pub(super) fn absent(c: &Compound<'_>) -> Vec<Arc<Gone>> {
    let present = c.server().exports.shares.present();
    present.gone().filter(|gone| !gone.is_hidden).cloned().collect()
}

/// LOOKUP in the root: the top directory of a share.
///
/// # Errors
/// Those of [`find`]; [`Status::WrongSec`] for a call that is not secured as the share demands.
pub(super) async fn lookup(c: &Compound<'_>, name: &[u8]) -> Result<Place, Status> {
    let place = find(c, name).await?;
    match &place {
        Place::Object(top) if matches!(top.standing, Standing::TooWeak | Standing::Unencrypted) => {
            Err(Status::WrongSec)
        }
        _ => Ok(place),
    }
}

/// The top directory of a share. Of one that another server has it is found, too: RFC 8881 11.3 has only the next
/// operation fail.
///
/// # Errors
/// [`Status::NoEnt`] for a share that does not exist, [`Status::Delay`] for one whose store does not answer yet,
/// [`Status::Access`] for one that the client may not use.
pub(super) async fn find(c: &Compound<'_>, name: &[u8]) -> Result<Place, Status> {
    let exports = &c.server().exports;
    let Some(share) = exports.by_name(name) else {
        let missing = || if exports.is_awaited(name) { Status::Delay } else { Status::NoEnt };
        return exports.gone(name).map(|gone| Place::Absent(Absent::top(gone))).ok_or_else(missing);
    };
    let (caller, standing) = c.caller(&share).await;
    if standing == Standing::Refused {
        return Err(Status::Access);
    }
    let node = Arc::clone(share.root());
    Ok(Place::Object(Object::new(share, c.call_on_the_way(caller), node, standing)))
}

/// The root's attributes: every client may list it, and no client may change it. Its change attribute changes when the
/// client would find other shares in it.
pub(super) fn attributes(c: &Compound<'_>) -> Attributes {
    let shares = shares(c);
    let mut names = DefaultHasher::new();
    shares.iter().for_each(|share| share.name().hash(&mut names));
    let absent = absent(c);
    absent.iter().for_each(|gone| gone.name.hash(&mut names));
    let since = c.server().v4.since;
    let nanos = u32::try_from(names.finish() % 1_000_000_000).unwrap_or(0);
    let changed = Timestamp { secs: since, nanos };
    Attributes {
        id: ObjectId::live(ROOT_FILE_ID),
        kind: FileKind::Directory,
        mode: 0o555,
        links: u32::try_from(shares.len() + absent.len()).unwrap_or(u32::MAX).saturating_add(2),
        uid: 0,
        gid: 0,
        device: Device { major: 0, minor: 0 },
        size: 4096,
        allocated: 0,
        atime: changed,
        mtime: changed,
        ctime: changed,
        btime: None,
        flags: None,
        ctime_set: None,
        changes_within_ctime: 0,
    }
}
