//! Opens that outlive their connection: durable and persistent handles, the replay of a CREATE, and application
//! instances. [MS-SMB2] 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12, 3.3.5.9.13.

use std::sync::Arc;

use share::{Holder, Share, Terms, folded_name};
use smb_proto::durable::{
    self, Contexts, Durability, Kind, LeaseName, Reconnect, ReconnectV2, Replay, check_app_instance,
    check_reconnect, check_replay,
};
use smb_proto::session::Principal;
use smb_wire::create::{CreateAction, CreateOptions, OplockLevel, Request};
use smb_wire::create_context::{DurableFlags, Lease, ResponseContext};
use smb_wire::negotiate::Capabilities;
use smb_wire::{AccessMask, FileId, Guid, HeaderFlags, NtStatus};
use storage::{Handle, Want};

use super::contexts::{Asked, DurableV2};
use super::{CreateOutcome, access, caching};
use crate::context::OnShare;
use crate::state::durable::{Before, Origin, Reservation, is_same_share};
use crate::state::lease::LeaseId;
use crate::state::open::{Grant, Open};
use crate::state::oplock;
use crate::status::Failure;
use crate::tree::Tree;

/// How a CREATE continues.
pub(super) enum Start {
    /// The CREATE makes an open. A replay of the CREATE is held off while this is held.
    New(Option<Reservation>),
    /// The open exists already.
    Again(CreateOutcome),
}

/// Looks for an existing open: one that a client reclaims after its connection broke (3.3.5.9.7, 3.3.5.9.12), or one
/// that an earlier transmission of this CREATE has made (3.3.5.9.10).
///
/// # Errors
/// STATUS_OBJECT_NAME_NOT_FOUND for an open that does not exist, or does not belong to the client;
/// STATUS_FILE_NOT_AVAILABLE while the same CREATE is being carried out; the errors of [`check_reconnect`],
/// [`check_replay`] and [`check_app_instance`].
pub(super) async fn begin(ctx: &OnShare<'_>, request: &Request<'_>, asked: &Asked) -> Result<Start, Failure> {
    if ctx.share.snapshot().is_some() {
        return Ok(Start::New(None));
    }
    check_contexts(asked)?;
    if let Some(outcome) = reconnect(ctx, request, asked).await? {
        return Ok(Start::Again(outcome));
    }
    take_from_instance(ctx, request, asked).await?;
    let Some(v2) = request_v2(ctx, asked) else {
        check_available(ctx, request)?;
        return Ok(Start::New(None));
    };
    match ctx.server.durable.begin(client_guid(ctx)?, v2.create_guid)? {
        Before::Made(open, session_id) => {
            replay(ctx, request, asked, v2, open, session_id).await.map(Start::Again)
        }
        Before::Nothing(reservation) => {
            check_available(ctx, request)?;
            Ok(Start::New(Some(reservation)))
        }
    }
}

fn check_contexts(asked: &Asked) -> Result<(), NtStatus> {
    let durable = &asked.durable;
    let contexts = Contexts {
        request: durable.request,
        reconnect: durable.reconnect.is_some(),
        request_v2: durable.request_v2.is_some(),
        reconnect_v2: durable.reconnect_v2.is_some(),
    };
    contexts.check()
}

/// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, which only SMB 3 has.
fn request_v2(ctx: &OnShare<'_>, asked: &Asked) -> Option<DurableV2> {
    asked.durable.request_v2.filter(|_| is_smb3(ctx) && is_user(ctx))
}

/// Whether the user can show later that an open is theirs. A guest cannot: it may have the name of an account.
fn is_user(ctx: &OnShare<'_>) -> bool {
    ctx.login.principal == Principal::User
}

fn is_smb3(ctx: &OnShare<'_>) -> bool {
    ctx.connection.dialect().is_some_and(|dialect| dialect.is_smb3())
}

/// Connection.ClientGuid
fn client_guid(ctx: &OnShare<'_>) -> Result<Guid, NtStatus> {
    ctx.connection.negotiated.get().map(|agreed| agreed.client_guid).ok_or(NtStatus::INVALID_PARAMETER)
}

fn lease_name(lease: &Lease) -> LeaseName {
    LeaseName { key: lease.key, version: if lease.v2.is_some() { 2 } else { 1 } }
}

/// Whether persistent handles are available: TreeConnect.Share.IsCA, SMB2_GLOBAL_CAP_PERSISTENT_HANDLES.
fn may_persist(ctx: &OnShare<'_>) -> bool {
    let agreed = ctx.connection.negotiated.get();
    let agreed = agreed.is_some_and(|a| a.server_capabilities.contains(Capabilities::PERSISTENT_HANDLES));
    agreed && ctx.share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE)
}

/// 3.3.5.9.7, 3.3.5.9.12
async fn reconnect(
    ctx: &OnShare<'_>,
    request: &Request<'_>,
    asked: &Asked,
) -> Result<Option<CreateOutcome>, Failure> {
    let (mut file_id, v2) = match (asked.durable.reconnect, asked.durable.reconnect_v2) {
        (Some(file_id), _) => (file_id, None),
        (None, Some(v2)) if is_smb3(ctx) => {
            let persistent = v2.flags.contains(DurableFlags::PERSISTENT);
            (v2.file_id, Some(ReconnectV2 { create_guid: v2.create_guid, persistent }))
        }
        (None, _) => return Ok(None),
    };
    if !is_user(ctx) {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
    }
    let table = &ctx.server.durable;
    let client_guid = client_guid(ctx)?;
    if let Some(v2) = v2.filter(|v2| v2.persistent)
        && table.get(file_id.persistent).is_none()
        && may_persist(ctx)
    {
        let made = table.made_by(client_guid, v2.create_guid);
        file_id.persistent = made.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    }
    table.left_by_others(file_id.persistent, ctx.session.id).await;
    let open = table.get(file_id.persistent).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let wanted = Reconnect {
        v2,
        client_guid,
        user: ctx.login.opener(),
        lease: asked.lease.as_ref().map(lease_name),
        names_file: names(ctx, request, &open)?,
    };
    let found = Found::of(ctx, &open).await?;
    let open = take_up(ctx, &open, |open| {
        check_reconnect(&open.known().ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?, &wanted)
    })?;
    resume_lease(ctx.share, asked, &open)?;
    Ok(Some(found.outcome(ctx.share, open, CreateAction::Opened, Vec::new())))
}

/// Takes the epoch of a lease from before the start of the server from the client.
fn resume_lease(share: &Share, asked: &Asked, open: &Open) -> Result<(), Failure> {
    let granted = share.granted(open.file()?).state;
    if let (Some(v2), Some(Grant::Lease(hold))) =
        (asked.lease.and_then(|lease| lease.v2), &*open.grant.lock())
    {
        hold.lease().resume(v2.epoch, granted);
    }
    Ok(())
}

/// The path that the request names, from the share's directory and regardless of case. An invalid one is refused later.
fn name(tree: &Tree, request: &Request<'_>) -> Option<String> {
    let name = request.name.decode().ok()?;
    Some(folded_name(&tree.path_in_share(name.trim_end_matches('\\'))))
}

/// Whether the request has the name by which the open's file was opened, or its present name.
fn names(ctx: &OnShare<'_>, request: &Request<'_>, open: &Open) -> Result<bool, Failure> {
    let Some(name) = name(ctx.tree, request) else { return Ok(false) };
    if name == folded_name(&open.path) {
        return Ok(true);
    }
    let now = ctx.share.location(open.file()?).and_then(|at| {
        let mut path = at.parent.path().ok()?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(at.name);
        String::from_utf8(path).ok()
    });
    Ok(now.is_some_and(|now| name == folded_name(&now.replace('/', "\\"))))
}

/// Gives an open without a session to the session of this request.
fn take_up(
    ctx: &OnShare<'_>,
    open: &Open,
    check: impl FnOnce(&Open) -> Result<(), NtStatus>,
) -> Result<Arc<Open>, Failure> {
    let id = FileId { persistent: open.id.persistent, volatile: ctx.server.file_id().volatile };
    let tree = ctx.tree;
    let check = |open: &Open| {
        // The client may have been admitted differently when it opened the file.
        let exceeds = !tree.maximal_access.contains(open.granted_access);
        if exceeds { Err(NtStatus::ACCESS_DENIED) } else { check(open) }
    };
    let open = ctx.server.durable.reclaim(id, ctx.session, tree, check)?;
    ctx.set_related_file(open.id);
    Ok(open)
}

/// The CreateOptions of a request that are in effect: "the server MUST set FILE_WRITE_THROUGH" where persistent handles
/// are available (3.3.5.9), whether or not one is requested.
pub(super) fn options(ctx: &OnShare<'_>, request: &Request<'_>) -> CreateOptions {
    let mut options = request.create_options;
    if is_smb3(ctx) && may_persist(ctx) {
        options |= CreateOptions::WRITE_THROUGH;
    }
    options
}

/// The values that the reply needs about an existing open.
struct Found {
    attributes: storage::Attributes,
    maximal: share::Access,
}

impl Found {
    async fn of(ctx: &OnShare<'_>, open: &Open) -> Result<Self, Failure> {
        // The persistent identifier may belong to an open of another share.
        if !is_same_share(&open.tree, ctx.tree) {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
        }
        let share = ctx.share;
        let found = share.found(ctx.call, open.file()?.node(), Want::FLAGS).await?;
        let maximal = access::maximal(share, ctx.caller(), &found, ctx.tree.maximal_access);
        Ok(Self { attributes: found.attributes, maximal })
    }

    fn outcome(
        self,
        share: &Share,
        open: Arc<Open>,
        action: CreateAction,
        contexts: Vec<ResponseContext<'static>>,
    ) -> CreateOutcome {
        let Self { attributes, maximal } = self;
        let mut outcome = CreateOutcome {
            open: Arc::clone(&open),
            attributes,
            maximal,
            action,
            oplock_level: OplockLevel::None,
            contexts,
        };
        if let (Ok(file), Some(grant)) = (open.file(), &*open.grant.lock()) {
            caching::answer(share.granted(file), grant, &mut outcome);
        }
        outcome
    }
}

/// Handles a CREATE that has already made an open.
async fn replay(
    ctx: &OnShare<'_>,
    request: &Request<'_>,
    asked: &Asked,
    v2: DurableV2,
    open: Arc<Open>,
    session_id: Option<u64>,
) -> Result<CreateOutcome, Failure> {
    let session = ctx.session;
    let replay = Replay {
        flagged: ctx.header.flags.contains(HeaderFlags::REPLAY_OPERATION),
        user: ctx.login.opener(),
        lease: asked.lease.as_ref().map(lease_name),
        persistent: v2.flags.contains(DurableFlags::PERSISTENT),
        other_session: session_id.is_some_and(|id| id != session.id),
    };
    check_replay(&open.known().ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?, &replay)?;
    // This precedes the reading of the caching grant: from here on, the grant is not revoked without asking the client.
    open.note_heard();
    let found = Found::of(ctx, &open).await?;
    let origin = open.durable.get().ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?.origin.clone();
    let open = if session_id.is_some() {
        ctx.set_related_file(open.id);
        open
    } else {
        take_up(ctx, &open, |open| {
            let same = open.create_options == options(ctx, request)
                && origin.desired_access == request.desired_access
                && origin.share_access == request.share_access;
            if same { Ok(()) } else { Err(NtStatus::CONTEXT_MISMATCH) }
        })?
    };
    let mut contexts = Vec::new();
    let durability = open.durable.get().and_then(|durable| durable.durability());
    // Whether the reply mentions durability depends on the present request. smb2.replay.replay-dhv2-oplock2 shows that
    // Windows does so.
    let may_be_told = matches!(request.requested_oplock_level, OplockLevel::Batch | OplockLevel::Lease);
    if let Some(durability) = durability.filter(|had| may_be_told || had.kind == Kind::Persistent) {
        contexts.push(response_v2(durability));
    }
    let mut outcome = found.outcome(ctx.share, open, origin.action, contexts);
    if outcome.oplock_level != OplockLevel::Lease
        && !covers(request.requested_oplock_level, outcome.oplock_level)
    {
        // The client asks for less than the open has: the reply says no more than the client asked for.
        outcome.oplock_level = request.requested_oplock_level;
    }
    Ok(outcome)
}

/// Whether one level allows everything that another one allows.
fn covers(one: OplockLevel, other: OplockLevel) -> bool {
    oplock::caching_of(one).contains(oplock::caching_of(other))
}

fn response_v2(durability: Durability) -> ResponseContext<'static> {
    let timeout_ms = u32::try_from(durability.timeout.as_millis()).unwrap_or(u32::MAX);
    let mut flags = DurableFlags::empty();
    flags.set(DurableFlags::PERSISTENT, durability.kind == Kind::Persistent);
    ResponseContext::DurableHandleV2 { timeout_ms, flags }
}

/// 3.3.5.9: "an existing open ... where Open.FileName matches ...: Open.IsPersistent is TRUE, Open.Connection is NULL"
/// keeps other clients away, unless its caching grant can be revoked.
fn check_available(ctx: &OnShare<'_>, request: &Request<'_>) -> Result<(), Failure> {
    if !is_smb3(ctx) {
        return Ok(());
    }
    let Some(name) = name(ctx.tree, request) else { return Ok(()) };
    let tree = ctx.tree;
    let waits_for_its_client = |open: &Open| is_same_share(&open.tree, tree) && !open.keeps_handle();
    if ctx.server.durable.any_disconnected(&name, waits_for_its_client) {
        return Err(NtStatus::FILE_NOT_AVAILABLE.into());
    }
    Ok(())
}

/// 3.3.5.9.13: an application that continues on another client closes its earlier opens of the file.
async fn take_from_instance(ctx: &OnShare<'_>, request: &Request<'_>, asked: &Asked) -> Result<(), Failure> {
    let Some(instance) = asked.app_instance.filter(|_| is_smb3(ctx)) else { return Ok(()) };
    let Some(name) = name(ctx.tree, request) else { return Ok(()) };
    let client_guid = client_guid(ctx)?;
    for (open, session_id) in ctx.server.durable.of_instance(instance) {
        let Some(durable) = open.durable.get() else { continue };
        if durable.origin.client_guid == client_guid
            || folded_name(&open.path) != name
            || !is_same_share(&open.tree, ctx.tree)
        {
            continue;
        }
        check_app_instance(durable.origin.app_instance_version, asked.app_instance_version)?;
        if Found::of(ctx, &open).await?.maximal.contains(access::READ) {
            let session = session_id.and_then(|id| ctx.server.session(id));
            session.and_then(|session| session.remove_open(open.id));
            open.close(ctx.call).await?;
        }
    }
    Ok(())
}

/// Makes the new open durable, if that was requested and is possible (3.3.5.9.6, 3.3.5.9.10), and makes it visible to
/// later requests for it.
///
/// # Errors
/// STATUS_USER_SESSION_DELETED when the session has ended meanwhile; STATUS_UNEXPECTED_IO_ERROR when a persistent open
/// cannot be recorded.
pub(super) async fn make_durable(
    ctx: &OnShare<'_>,
    request: &Request<'_>,
    asked: &Asked,
    outcome: &mut CreateOutcome,
) -> Result<(), Failure> {
    let (login, session) = (ctx.login, ctx.session);
    let v2 = request_v2(ctx, asked);
    if !is_user(ctx) || (v2.is_none() && !asked.durable.request && !has_instance(asked)) {
        return Ok(());
    }
    let open = &outcome.open;
    let handle = handle_to_persist(ctx, asked, open).await?;
    let durability = granted(ctx, asked, open, handle.is_some());
    let kind = durability.map(|durability| durability.kind);
    let access = AccessMask::from_bits_retain(open.granted_access.bits());
    let replayable = v2.is_some() && durable::is_replay_eligible(kind, open.is_directory, access);
    if durability.is_none() && !replayable && !has_instance(asked) {
        return Ok(());
    }
    let has_lease = outcome.oplock_level == OplockLevel::Lease;
    let origin = Origin {
        create_guid: v2.map_or(Guid::ZERO, |v2| v2.create_guid),
        client_guid: client_guid(ctx)?,
        owner: login.user.clone(),
        owner_sid: login.opener().sid,
        lease: asked.lease.as_ref().filter(|_| has_lease).map(lease_name),
        app_instance: asked.app_instance,
        app_instance_version: asked.app_instance_version,
        desired_access: request.desired_access,
        share_access: request.share_access,
        action: outcome.action,
        handle: handle.filter(|_| kind == Some(Kind::Persistent)),
    };
    let table = &ctx.server.durable;
    open.make_durable(table, origin, durability, replayable);
    table.enter(open, session.id);
    if open.closed.is_set() {
        // The session has ended before the open was found, so no other code closes it.
        return Err(NtStatus::USER_SESSION_DELETED.into());
    }
    open.write_down().await?;
    let answer = durability.map(|durability| match v2 {
        Some(_) => response_v2(durability),
        None => ResponseContext::DurableHandle,
    });
    outcome.contexts.extend(answer);
    Ok(())
}

/// Records a lease that may cache more than before. The increase applies to all opens of the lease, and is recorded for
/// the persistent ones before the client learns of it.
pub(super) async fn write_down_grown(ctx: &OnShare<'_>, open: &share::Open) -> Result<(), Failure> {
    match open.holder() {
        Holder::Lease { client, key } if open.granted().grown => {
            ctx.server.durable.write_down_lease(LeaseId { client: Guid(client), key }).await
        }
        _ => Ok(()),
    }
}

/// Whether the application may continue on another client.
fn has_instance(asked: &Asked) -> bool {
    asked.app_instance.is_some()
}

/// The store's handle of a file, if a persistent open of the file is requested and possible. Objects whose handle the
/// store cannot give, and named streams, have none.
async fn handle_to_persist(ctx: &OnShare<'_>, asked: &Asked, open: &Open) -> Result<Option<Handle>, Failure> {
    let asks = request_v2(ctx, asked).is_some_and(|v2| v2.flags.contains(DurableFlags::PERSISTENT));
    if !asks || !may_persist(ctx) || !ctx.server.durable.has_room_for_persistent(&ctx.login.user) {
        return Ok(None);
    }
    Ok(ctx.share.handle(ctx.call, open.file()?).await.ok())
}

fn granted(ctx: &OnShare<'_>, asked: &Asked, open: &Open, may_persist: bool) -> Option<Durability> {
    let request = match request_v2(ctx, asked) {
        Some(v2) => durable::Request::V2 {
            timeout_ms: v2.timeout_ms,
            persistent: v2.flags.contains(DurableFlags::PERSISTENT),
        },
        None if asked.durable.request => durable::Request::V1,
        None => return None,
    };
    let timeouts = &ctx.server.config.durable;
    durable::grant(request, open.keeps_handle(), open.is_directory, may_persist, timeouts)
}
