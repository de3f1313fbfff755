//! CREATE, in the steps of [MS-SMB2] 3.3.5.9: [`handle`] lists them, and each has a file.

mod access;
mod caching;
mod contexts;
mod disposition;
mod durable;
mod find;
mod quota_file;
mod stream;
mod wish;

use std::sync::Arc;

use net::Buffer;
use share::{Access, File, Kind};
use smb_wire::create::{CreateAction, OplockLevel, Request, Response, ResponseFlags};
use smb_wire::create_context::ResponseContext;
use smb_wire::{AccessMask, Command};
use storage::{Attributes, FileKind, Snapshot, Want};

use self::contexts::{Answerable, Asked};
use self::disposition::Opened;
use self::durable::Start;
use self::wish::Wish;
use crate::attributes;
use crate::context::OnShare;
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::snapshot;
use crate::state::open::{Open, OpenTarget};
use crate::status::Failure;

/// The properties of CREATE.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Create, "Create").of_kind(Kind::Open)),
    needs: Needs::Tree,
    effect: Effect::Finished,
    // The fixed part and the contexts MxAc, QFid, RqLs, DH2Q.
    answer_bytes: 88 + 32 + 56 + 80 + 32,
    ..Operation::of(Command::Create)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    let asked = Asked::of(&request.contexts)?;
    if crate::quotas::is_named(&request.name) {
        return quota_file::open(ctx, &request);
    }
    let Some(time) = asked.at else { return create(ctx, request, asked).await };
    let view = snapshot::view(ctx.share, ctx.call, time).await?;
    Box::pin(create(&ctx.at(&view), request, asked.of_snapshot())).await
}

/// Carries the request out in the share, or in a view of it.
async fn create(ctx: &OnShare<'_>, request: Request<'_>, asked: Asked) -> Result<Buffer, Failure> {
    let reservation = match durable::begin(ctx, &request, &asked).await? {
        Start::Again(outcome) => return answer(ctx, &asked, outcome),
        Start::New(reservation) => reservation,
    };
    wish::check_impersonation(&request)?;
    let wish = Wish::of(&request, asked)?.below(ctx.tree.home.as_deref());
    let mut opened = disposition::carry_out(ctx, &wish).await?;
    let open = enter(ctx, &request, &mut opened).await?;
    match complete(ctx, &request, &wish, opened, &open).await {
        Ok(outcome) => {
            if let Some(reservation) = reservation {
                reservation.made(open.id.persistent);
            }
            answer(ctx, &wish.asked, outcome)
        }
        Err(failure) => {
            ctx.session.remove_open(open.id);
            open.close(ctx.call).await?;
            Err(failure)
        }
    }
}

/// The result for the client.
struct CreateOutcome {
    open: Arc<Open>,
    attributes: Attributes,
    /// The maximal access of the client to the object.
    maximal: Access,
    action: CreateAction,
    oplock_level: OplockLevel,
    /// The replies to requests for leases and durable handles.
    contexts: Vec<ResponseContext<'static>>,
}

/// Enters the open into the session's table. From then on it belongs to the client.
async fn enter(ctx: &OnShare<'_>, request: &Request<'_>, opened: &mut Opened) -> Result<Arc<Open>, Failure> {
    let path = request.name.decode()?;
    let path = ctx.tree.path_in_share(path.trim_end_matches('\\'));
    let file = Arc::clone(&opened.open);
    let (target, path) = match ctx.share.snapshot() {
        None => (OpenTarget::File(file), path),
        Some(Snapshot { taken, .. }) => {
            let path = format!("{}\\{path}", snapshot::token(taken.secs));
            (OpenTarget::OfSnapshot(Arc::clone(ctx.share), file), path)
        }
    };
    let open = Open::new(
        opened.id,
        Arc::clone(ctx.tree),
        target,
        AccessMask::from_bits_retain(opened.granted.bits()),
        path,
        durable::options(ctx, request),
        opened.attributes.kind == FileKind::Directory,
    );
    *open.grant.lock() = opened.grant.take();
    open.state.lock().is_new = opened.action == CreateAction::Created;
    if let Err(failure) = ctx.add_open(&open) {
        open.close(ctx.call).await?;
        return Err(failure);
    }
    Ok(open)
}

/// Completes the request through the new open, before the client learns of it.
async fn complete(
    ctx: &OnShare<'_>,
    request: &Request<'_>,
    wish: &Wish,
    mut opened: Opened,
    open: &Arc<Open>,
) -> Result<CreateOutcome, Failure> {
    replace_extended_attributes(ctx, wish, &opened).await?;
    set_space_aside(ctx, wish, &mut opened).await;
    // An open for attributes alone has not recalled a write delegation.
    let (share, node) = (ctx.share, opened.open.node());
    opened.attributes = share.as_written(ctx.call, node, opened.attributes, Want::FLAGS).await?;
    let mut outcome = CreateOutcome {
        open: Arc::clone(open),
        attributes: opened.attributes,
        maximal: opened.maximal,
        action: opened.action,
        oplock_level: OplockLevel::None,
        contexts: Vec::new(),
    };
    if let Some(grant) = &*open.grant.lock() {
        caching::answer(opened.open.granted(), grant, &mut outcome);
    }
    durable::make_durable(ctx, request, &wish.asked, &mut outcome).await?;
    durable::write_down_grown(ctx, &opened.open).await?;
    Ok(outcome)
}

/// Gives a file that was overwritten the extended attributes of the request, as a new file gets them.
async fn replace_extended_attributes(ctx: &OnShare<'_>, wish: &Wish, opened: &Opened) -> Result<(), Failure> {
    let overwritten = matches!(opened.action, CreateAction::Overwritten | CreateAction::Superseded)
        && opened.open.file().is_none();
    let extended = &wish.asked.extended_attributes;
    if overwritten && !extended.is_empty() {
        let file = File::Open(Arc::clone(&opened.open));
        ctx.share.set_extended_attributes(ctx.call, &file, extended.clone()).await?;
    }
    Ok(())
}

/// Applies the AllocationSize of an empty file ([MS-FSA] 2.1.5.1.1). Like any such size it is a hint: the file is open
/// even if the store has no room.
async fn set_space_aside(ctx: &OnShare<'_>, wish: &Wish, opened: &mut Opened) {
    let bytes = wish.asked.allocation_size;
    let is_new = opened.action != CreateAction::Opened && opened.attributes.kind == FileKind::Regular;
    let share = ctx.share;
    if bytes > 0
        && is_new
        && share.reserve_space(ctx.call, &opened.open, bytes).await.is_ok()
        && let Ok(attributes) = share.attributes(ctx.call, opened.open.node(), Want::FLAGS).await
    {
        opened.attributes = attributes;
    }
}

fn answer(ctx: &OnShare<'_>, asked: &Asked, outcome: CreateOutcome) -> Result<Buffer, Failure> {
    if outcome.oplock_level != OplockLevel::None {
        ctx.connection.note_answered(&outcome.open);
    }
    let info = attributes::network_open(&outcome.attributes);
    let is_link = outcome.attributes.kind == FileKind::Symlink;
    let mut contexts = asked.answers(&Answerable {
        maximal_access: outcome.maximal,
        last_write_time: info.last_write_time,
        file_number: outcome.attributes.id.number,
        volume_number: snapshot::volume_number(ctx.share).into(),
    });
    contexts.extend(outcome.contexts);
    let response = Response {
        oplock_level: outcome.oplock_level,
        flags: if is_link { ResponseFlags::REPARSEPOINT } else { ResponseFlags::empty() },
        create_action: outcome.action,
        creation_time: info.creation_time,
        last_access_time: info.last_access_time,
        last_write_time: info.last_write_time,
        change_time: info.change_time,
        allocation_size: info.allocation_size,
        end_of_file: info.end_of_file,
        file_attributes: info.file_attributes,
        file_id: outcome.open.id,
        contexts,
    };
    let mut reply = ctx.reply();
    reply.append_with(|out, _| response.encode(out))?;
    Ok(reply)
}
