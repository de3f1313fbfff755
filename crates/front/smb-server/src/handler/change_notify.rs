//! CHANGE_NOTIFY. [MS-SMB2] 3.3.5.19, [MS-FSA] 2.1.5.11.
//!
//! Changes are collected from the first request on an open; its filter, depth and buffer size apply to all later ones.
//! Requests are answered in order, each with everything collected until then.

use std::sync::Arc;

use net::Buffer;
use share::{ChangeAction, ChangeKinds, Seen, Turn};
use smb_wire::change_notify::{ChangeNotifyFlags, Request, Response};
use smb_wire::codec::Utf16;
use smb_wire::fscc::notify::{Action, Change, writer};
use smb_wire::{AccessMask, Command, NtStatus};
use tokio::sync::Semaphore;

use crate::context::OnShare;
use crate::front;
use crate::name::path_to_client;
use crate::operation::{Needs, Operation};
use crate::state::open::{DirectoryWatch, Open};
use crate::status::Failure;

/// The properties of CHANGE_NOTIFY.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::ChangeNotify, "ChangeNotify").with(Turn::Charged)),
    needs: Needs::Open,
    lingers: true,
    answer_bytes: 8,
    ..Operation::of(Command::ChangeNotify)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    if request.output_buffer_length > ctx.io_bytes_max() || !open.is_directory {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    if !open.granted_access.contains(AccessMask::LIST_DIRECTORY) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let share = ctx.share;
    let watch = watch(ctx, &open, &request)?;
    let limit = request.output_buffer_length.min(watch.answer_bytes_max);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if share.is_delete_pending(open.file()?.node()) {
        return Err(NtStatus::DELETE_PENDING.into());
    }
    if let Ok(_turn) = watch.turn.try_acquire()
        && watch.changes.has_seen()
    {
        ctx.room_for(limit).await;
        return answer(ctx, watch.changes.seen().await, limit);
    }
    let cancelled = ctx.go_async()?;
    tokio::select! {
        biased;
        () = open.closed.wait() => Err(NtStatus::NOTIFY_CLEANUP.into()),
        () = cancelled => Err(NtStatus::CANCELLED.into()),
        seen = next(ctx, &open, &watch, limit) => answer(ctx, seen?, limit),
    }
}

/// The watch of an open, begun with its first request. The bits of CompletionFilter ([MS-SMB2] 2.2.35) are those of
/// [`ChangeKinds`].
fn watch(ctx: &OnShare<'_>, open: &Open, request: &Request) -> Result<Arc<DirectoryWatch>, Failure> {
    let mut state = open.state.lock();
    if let Some(watch) = &state.watch {
        return Ok(Arc::clone(watch));
    }
    let recursive = request.flags.contains(ChangeNotifyFlags::WATCH_TREE);
    let kinds = ChangeKinds::from_bits_truncate(request.completion_filter.bits());
    let watch = Arc::new(DirectoryWatch {
        changes: ctx.share.watch(ctx.caller(), open.file()?.node(), recursive, kinds)?,
        turn: Semaphore::new(1),
        answer_bytes_max: request.output_buffer_length,
    });
    state.watch = Some(Arc::clone(&watch));
    Ok(watch)
}

/// Returns the next changes, once the earlier ones have been answered. The share counts them, and keeps them until
/// there is room for the reply.
async fn next(ctx: &OnShare<'_>, open: &Open, watch: &DirectoryWatch, limit: usize) -> Result<Seen, Failure> {
    let _turn = watch.turn.acquire().await.map_err(|_| NtStatus::NOTIFY_CLEANUP)?;
    // The deletion was reported to the request whose turn it was. This request was waiting.
    if ctx.share.is_delete_pending(open.file()?.node()) {
        return Ok(Seen::Gone);
    }
    watch.changes.until_seen().await;
    ctx.room_for(limit).await;
    Ok(watch.changes.seen().await)
}

fn answer(ctx: &OnShare<'_>, seen: Seen, limit: usize) -> Result<Buffer, Failure> {
    let changes = match seen {
        Seen::Changes(changes) => changes,
        Seen::Overflow => Vec::new(),
        Seen::Gone => return Err(NtStatus::DELETE_PENDING.into()),
    };
    let data = encode(&changes, limit);
    if data.is_empty() {
        // Changes that do not fit are not reported in part: the client reads the directory itself.
        ctx.set_status(NtStatus::NOTIFY_ENUM_DIR);
    }
    ctx.moved(data.len());
    let mut reply = ctx.reply_with(data.len());
    reply.append_with(|out, _| Response { output_buffer: &data }.encode(out))?;
    Ok(reply)
}

/// The changes, all of them or none.
fn encode(changes: &[share::Change], limit: usize) -> Vec<u8> {
    let mut data = Vec::new();
    let mut list = writer(&mut data, limit);
    for change in changes {
        let name = name_of(change);
        let change = Change { action: action(change.action), name: Utf16::from(name.as_str()) };
        if change.push(&mut list).is_err() {
            return Vec::new();
        }
    }
    data
}

/// The path as the client sees it. In that of a stream, the stream's name follows the last colon.
fn name_of(change: &share::Change) -> String {
    let is_stream = matches!(
        change.action,
        ChangeAction::AddedStream | ChangeAction::RemovedStream | ChangeAction::ModifiedStream
    );
    let colon = change.path.iter().rposition(|byte| *byte == b':').filter(|_| is_stream);
    match colon.and_then(|at| change.path.split_at_checked(at)) {
        Some((file, stream)) => path_to_client(file) + &String::from_utf8_lossy(stream),
        None => path_to_client(&change.path),
    }
}

/// The action as in FILE_NOTIFY_INFORMATION, [MS-FSCC] 2.7.1.
fn action(action: ChangeAction) -> Action {
    match action {
        ChangeAction::Added => Action::Added,
        ChangeAction::Removed => Action::Removed,
        ChangeAction::Modified => Action::Modified,
        ChangeAction::RenamedFrom => Action::RenamedOldName,
        ChangeAction::RenamedTo => Action::RenamedNewName,
        ChangeAction::AddedStream => Action::AddedStream,
        ChangeAction::RemovedStream => Action::RemovedStream,
        ChangeAction::ModifiedStream => Action::ModifiedStream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: ChangeAction, path: &[u8]) -> share::Change {
        share::Change { action, path: path.to_vec() }
    }

    #[test]
    fn changes_are_told_all_or_not_at_all() {
        let changes =
            [change(ChangeAction::Added, b"d/a"), change(ChangeAction::RenamedTo, "d/\u{e9}:".as_bytes())];
        let data = encode(&changes, 100);
        let told: Vec<_> = Change::list(&data).map(Result::unwrap).collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].action == Action::Added && told[0].name == "d\\a");
        assert!(told[1].action == Action::RenamedNewName && told[1].name == "d\\\u{e9}\u{f022}");
        assert_eq!(encode(&changes, data.len()), data);
        assert!(encode(&changes, data.len() - 1).is_empty());
        assert!(encode(&changes, 0).is_empty());
    }

    #[test]
    fn streams_are_told_with_their_file() {
        let name = |action, path: &[u8]| name_of(&change(action, path));
        assert_eq!(name(ChangeAction::AddedStream, b"d/a:b:s?"), "d\\a\u{f022}b:s?");
        assert_eq!(name(ChangeAction::Added, b"d/a:b"), "d\\a\u{f022}b");
    }
}
