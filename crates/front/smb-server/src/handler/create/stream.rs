//! Opening, overwriting and creating named streams, and creating their files where they do not exist. [MS-FSA]
//! 2.1.5.1.1, 2.1.5.1.2.

use share::{Access, Admission, Found, Walk};
use smb_wire::NtStatus;
use smb_wire::create::CreateDisposition;
use storage::{Capabilities, FileKind, NodeRef};

use super::disposition::{Made, Opened, existing, make, open_made, room};
use super::wish::Wish;
use super::{access, caching};
use crate::context::OnShare;
use crate::status::Failure;

/// Carries out the client's request on the stream `name` of the object at the path.
pub(super) async fn open(
    ctx: &OnShare<'_>,
    wish: &Wish,
    walk: Walk,
    name: &[u8],
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    if !ctx.share.capabilities().contains(Capabilities::STREAMS) {
        return Err(NtStatus::OBJECT_NAME_INVALID.into()); // like Windows on a file system without streams
    }
    match walk {
        Walk::Found(file) => of_file(ctx, wish, &file, name, made).await,
        Walk::Missing { dir, name: file, .. } => of_new_file(ctx, wish, &dir, &file, name, made).await,
    }
}

async fn of_file(
    ctx: &OnShare<'_>,
    wish: &Wish,
    file: &Found,
    name: &[u8],
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    if !matches!(file.attributes.kind, FileKind::Regular | FileKind::Directory) {
        return Err(NtStatus::OBJECT_NAME_INVALID.into());
    }
    if let Some(found) = ctx.share.find_stream(ctx.call, file, name).await? {
        return existing(ctx, wish, found).await;
    }
    check_makes(wish)?;
    let maximal = access::maximal(ctx.share, ctx.caller(), file, ctx.tree.maximal_access);
    let granted = access::grant(ctx, file, wish.desired, maximal)?;
    if !maximal.contains(Access::WRITE_DATA) {
        return Err(ctx.share.why_refused(file, Access::WRITE_DATA).into());
    }
    caching::check_new(ctx, wish)?;
    if let Some(answering) = room(ctx)? {
        return Ok(Admission::Wait(answering));
    }
    create(ctx, wish, file, name, (granted, maximal), made).await
}

/// Refuses a request for an existing stream where there is none.
fn check_makes(wish: &Wish) -> Result<(), NtStatus> {
    match wish.disposition {
        CreateDisposition::Open | CreateDisposition::Overwrite => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        _ => Ok(()),
    }
}

/// Creates the file as well: the client is its creator.
async fn of_new_file(
    ctx: &OnShare<'_>,
    wish: &Wish,
    dir: &NodeRef,
    file: &[u8],
    name: &[u8],
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    check_makes(wish)?;
    let tree = ctx.tree.maximal_access;
    wish.desired.check_may_make(tree)?;
    let (share, caller) = (ctx.share, ctx.caller());
    caching::check_new(ctx, wish)?;
    if let Some(answering) = room(ctx)? {
        return Ok(Admission::Wait(answering));
    }
    let found = make(ctx, wish, dir, file, false).await?;
    let maximal = access::maximal(share, caller, &found, tree);
    let granted = wish.desired.grant_maker(maximal);
    let opened = create(ctx, wish, &found, name, (granted, maximal), made).await;
    if opened.is_err() {
        // A file without the stream is not the requested one.
        share.remove(ctx.call, dir, file, false).await?;
    }
    opened
}

async fn create(
    ctx: &OnShare<'_>,
    wish: &Wish,
    file: &Found,
    name: &[u8],
    (granted, maximal): (Access, Access),
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    let share = ctx.share;
    let found = share.create_stream(ctx.call, file, name).await?;
    let opened = open_made(ctx, wish, made.insert(Made { found: found.clone(), granted, maximal }));
    if opened.is_err() {
        share.discard_stream(ctx.call, &found).await?;
    }
    opened
}
