//! CreateDisposition: open, overwrite or create. [MS-SMB2] 2.2.13; [MS-FSA] 2.1.5.1.1, 2.1.5.1.2.

use std::sync::Arc;

use share::{Access, Admission, Answering, Case, File, Found, NewObject, OpenRequest, Openers, Walk};
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::{FileId, NtStatus};
use storage::{Attributes, Device, FileFlags, FileKind, NodeRef, SetAttributes, Want};

use super::caching::Asking;
use super::wish::Wish;
use super::{access, caching, find, stream};
use crate::attributes;
use crate::context::OnShare;
use crate::interim::Cancelled;
use crate::name::StreamPart;
use crate::state::open::Grant;
use crate::status::Failure;

/// How often a name is looked up again because others created or removed it after the lookup.
const ATTEMPTS_MAX: usize = 8;

/// An object that has been opened.
pub(super) struct Opened {
    /// The identifier of the open for the client.
    pub(super) id: FileId,
    pub(super) open: Arc<share::Open>,
    /// What the open may cache; taken when the open is entered.
    pub(super) grant: Option<Grant>,
    pub(super) attributes: Attributes,
    pub(super) granted: Access,
    /// Everything that the client may do with the object.
    pub(super) maximal: Access,
    pub(super) action: CreateAction,
}

/// Carries out the client's request. If another client must first give up a caching grant, the request waits for that
/// and then starts again.
pub(super) async fn carry_out(ctx: &OnShare<'_>, wish: &Wish) -> Result<Opened, Failure> {
    let (mut attempts, mut cancelled, session) = (1, None, ctx.session);
    let mut made = None;
    loop {
        let outcome = match &made {
            Some(made) => open_made(ctx, wish, made),
            None => attempt(ctx, wish, &mut made).await,
        };
        match outcome {
            Err(failure) if has_changed_meanwhile(&failure, wish) && attempts < ATTEMPTS_MAX => {
                made = None;
                attempts += 1;
            }
            Err(failure) => return Err(failure),
            Ok(Admission::Done(opened)) => return Ok(opened),
            Ok(Admission::Wait(answering)) => {
                let cancelled = match &mut cancelled {
                    Some(cancelled) => cancelled,
                    none => none.insert(ctx.announce()?),
                };
                tokio::select! {
                    () = session.ended.wait() => return Err(NtStatus::USER_SESSION_DELETED.into()),
                    () = cancelled_by_client(ctx, cancelled) => return Err(NtStatus::CANCELLED.into()),
                    () = answering.over() => {}
                }
            }
        }
    }
}

/// Whether the attempt failed because the name came or went after it was looked up.
fn has_changed_meanwhile(failure: &Failure, wish: &Wish) -> bool {
    match failure.status {
        NtStatus::OBJECT_NAME_COLLISION => !wish.must_make(),
        NtStatus::FILE_DELETED => true,
        _ => false,
    }
}

/// Resolves when the client cancels the request. The end of the connection is no cancellation: the session may have
/// another connection, on which the client sends the request again to get its reply (3.3.5.9.10).
async fn cancelled_by_client(ctx: &OnShare<'_>, cancelled: &mut Cancelled) {
    cancelled.await;
    if ctx.connection.endpoint.ended.is_set() {
        std::future::pending::<()>().await;
    }
}

/// Finds the object and opens it, or creates it. An object that was created and cannot be opened yet is left in `made`.
async fn attempt(
    ctx: &OnShare<'_>,
    wish: &Wish,
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    match (find::find(ctx, wish).await?, &wish.path.stream) {
        (walk, StreamPart::Named(name)) => stream::open(ctx, wish, walk, name, made).await,
        (Walk::Found(found), _) => existing(ctx, wish, found).await,
        (Walk::Missing { dir, name, .. }, _) => missing(ctx, wish, &dir, &name, made).await,
    }
}

/// An object that this request has created. If the request has waited, the object is opened as a new one: if it were
/// looked up again, it would count as an existing one.
pub(super) struct Made {
    pub(super) found: Found,
    pub(super) granted: Access,
    pub(super) maximal: Access,
}

/// Opens the object that this request has created.
pub(super) fn open_made(ctx: &OnShare<'_>, wish: &Wish, made: &Made) -> Result<Admission<Opened>, Failure> {
    let (granted, maximal) = (made.granted, made.maximal);
    open_as_it_is(ctx, wish, &made.found, Attempt { granted, maximal, action: CreateAction::Created })
}

/// Opens an existing object or named stream. [MS-FSA] 2.1.5.1.2.
pub(super) async fn existing(
    ctx: &OnShare<'_>,
    wish: &Wish,
    found: Found,
) -> Result<Admission<Opened>, Failure> {
    let is_directory = found.attributes.kind == FileKind::Directory;
    if wish.must_make() {
        return Err(NtStatus::OBJECT_NAME_COLLISION.into());
    }
    let wants_data = wish.options.contains(CreateOptions::NON_DIRECTORY_FILE);
    if is_directory && (wants_data || wish.path.stream == StreamPart::Data) {
        return Err(NtStatus::FILE_IS_A_DIRECTORY.into());
    }
    if !is_directory && wish.wants_directory() {
        return Err(NtStatus::NOT_A_DIRECTORY.into());
    }
    let maximal = access::maximal(ctx.share, ctx.caller(), &found, ctx.tree.maximal_access);
    let granted = access::grant(ctx, &found, wish.desired, maximal)?;
    if wish.delete_on_close() && !granted.contains(Access::DELETE) {
        return Err(ctx.share.why_refused(&found, Access::DELETE).into());
    }
    if wish.overwrites() {
        if is_directory {
            return Err(NtStatus::INVALID_PARAMETER.into());
        }
        if found.attributes.kind == FileKind::Symlink {
            return Err(NtStatus::NOT_SUPPORTED.into()); // it has no data, and cannot become a file
        }
        return overwrite(ctx, wish, found, granted, maximal).await;
    }
    let attempt = Attempt { granted, maximal, action: CreateAction::Opened };
    open_as_it_is(ctx, wish, &found, attempt)
}

/// The values of an open that are known before it is made.
pub(super) struct Attempt {
    pub(super) granted: Access,
    pub(super) maximal: Access,
    pub(super) action: CreateAction,
}

impl Attempt {
    fn opened(self, asking: Asking, open: Arc<share::Open>, attributes: Attributes) -> Admission<Opened> {
        let Self { granted, maximal, action } = self;
        Admission::Done(Opened {
            id: asking.id,
            open,
            grant: Some(asking.grant),
            attributes,
            granted,
            maximal,
            action,
        })
    }
}

fn open_request(ctx: &OnShare<'_>, wish: &Wish, access: Access, asking: &Asking) -> OpenRequest {
    OpenRequest {
        delete_on_close: wish.delete_on_close(),
        grant: Some(asking.request()),
        directory: caching::directory(ctx, wish),
        openers: openers(ctx),
        ..OpenRequest::new(access, wish.sharing)
    }
}

/// The parties for whom an open of this request is counted.
fn openers(ctx: &OnShare<'_>) -> Openers {
    ctx.caller().openers
}

/// Checks that an open can be entered before anything is created. Returns the answers to wait for first, if any.
pub(super) fn room(ctx: &OnShare<'_>) -> Result<Option<Answering>, Failure> {
    Ok(ctx.share.room_for_open(openers(ctx))?)
}

/// Opens an object without changing it.
pub(super) fn open_as_it_is(
    ctx: &OnShare<'_>,
    wish: &Wish,
    found: &Found,
    attempt: Attempt,
) -> Result<Admission<Opened>, Failure> {
    let asking = caching::ask(ctx, wish, found)?;
    let request = open_request(ctx, wish, attempt.granted, &asking);
    Ok(match ctx.share.open_granted(found, &request)? {
        Admission::Done(open) => attempt.opened(asking, open, found.attributes),
        Admission::Wait(answering) => Admission::Wait(answering),
    })
}

async fn overwrite(
    ctx: &OnShare<'_>,
    wish: &Wish,
    found: Found,
    granted: Access,
    maximal: Access,
) -> Result<Admission<Opened>, Failure> {
    let had = attributes::file_flags(attributes::file_attributes(&found.attributes));
    // Overwriting a named stream changes only the stream of the file.
    let is_file = found.stream.is_none();
    let protected = had & (FileFlags::HIDDEN | FileFlags::SYSTEM);
    if is_file && !wish.flags.contains(protected) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let needed = needed_to_overwrite(wish, is_file);
    if !maximal.contains(needed) {
        return Err(ctx.share.why_refused(&found, needed).into());
    }
    let flags = wish.flags | FileFlags::ARCHIVE;
    let changed = (is_file && flags != had).then_some(flags);
    let asking = caching::ask(ctx, wish, &found)?;
    let request = open_request(ctx, wish, granted, &asking);
    let admission = ctx.share.open_overwriting(ctx.call, &found, &request, changed).await?;
    let (open, after) = match admission {
        Admission::Done(overwritten) => overwritten,
        Admission::Wait(answering) => return Ok(Admission::Wait(answering)),
    };
    let attributes =
        Attributes { flags: changed.or(found.attributes.flags), btime: found.attributes.btime, ..after };
    let superseded = wish.disposition == CreateDisposition::Supersede;
    let action = if superseded { CreateAction::Superseded } else { CreateAction::Overwritten };
    Ok(Attempt { granted, maximal, action }.opened(asking, open, attributes))
}

/// The permissions that overwriting needs besides the requested ones ([MS-FSA] 2.1.5.1.2): a superseded file is a new
/// one.
fn needed_to_overwrite(wish: &Wish, is_file: bool) -> Access {
    let mut needed = Access::WRITE_DATA;
    needed.set(Access::WRITE_EA | Access::WRITE_ATTRIBUTES, is_file);
    needed.set(Access::DELETE, is_file && wish.disposition == CreateDisposition::Supersede);
    needed
}

/// Handles a missing object. [MS-FSA] 2.1.5.1.1.
async fn missing(
    ctx: &OnShare<'_>,
    wish: &Wish,
    dir: &NodeRef,
    name: &[u8],
    made: &mut Option<Made>,
) -> Result<Admission<Opened>, Failure> {
    if matches!(wish.disposition, CreateDisposition::Open | CreateDisposition::Overwrite) {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
    }
    let tree = ctx.tree.maximal_access;
    let makes_directory = wish.options.contains(CreateOptions::DIRECTORY_FILE);
    if wish.path.names_directory && !makes_directory {
        return Err(NtStatus::OBJECT_NAME_INVALID.into());
    }
    wish.desired.check_may_make(tree)?;
    caching::check_new(ctx, wish)?;
    if let Some(answering) = room(ctx)? {
        return Ok(Admission::Wait(answering));
    }
    let share = ctx.share;
    let found = make(ctx, wish, dir, name, makes_directory).await?;
    let maximal = access::maximal(share, ctx.caller(), &found, tree);
    let granted = wish.desired.grant_maker(maximal);
    open_made(ctx, wish, made.insert(Made { found, granted, maximal }))
}

/// Creates a file or directory.
pub(super) async fn make(
    ctx: &OnShare<'_>,
    wish: &Wish,
    dir: &NodeRef,
    name: &[u8],
    is_directory: bool,
) -> Result<Found, Failure> {
    let share = ctx.share;
    ctx.call.works_under(caching::directory(ctx, wish));
    let new = new_object(&ctx.server.config, wish, is_directory);
    let found = share.create(ctx.call, dir, name, Case::Insensitive, new).await?.found;
    let extended = &wish.asked.extended_attributes;
    if !extended.is_empty() {
        let file = File::Stateless(Arc::clone(&found.node));
        if let Err(refused) = share.set_extended_attributes(ctx.call, &file, extended.clone()).await {
            // A file without these attributes is not the requested one.
            share.remove(ctx.call, dir, name, is_directory).await?;
            return Err(refused.into());
        }
    }
    Ok(found)
}

fn new_object(config: &crate::Config, wish: &Wish, is_directory: bool) -> NewObject {
    let (kind, mode, default) = if is_directory {
        (FileKind::Directory, config.directory_mode, FileFlags::empty())
    } else {
        (FileKind::Regular, config.file_mode, FileFlags::ARCHIVE)
    };
    let flags = wish.flags | default;
    NewObject {
        kind,
        target: Vec::new(),
        device: Device::default(),
        mode,
        umask: 0,
        // Default flags are not stored.
        set: SetAttributes { flags: (flags != default).then_some(flags), ..SetAttributes::default() },
        want: Want::FLAGS,
        security: wish.asked.security_descriptor.clone(),
        mode_bounds: false,
    }
}
