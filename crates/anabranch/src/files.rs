//! `anabranch file` and `anabranch lock`: what clients have open and locked.

use std::fmt::Write;

use control::files::{Closed, Files, Lock, Locks, OpenFile, OpenedBy};
use control_client::path_part;

use crate::cli::{FileCommand, HoldingList, LockCommand};
use crate::print::{counted_as, harmless, json, print};
use crate::problem::Result;
use crate::{control_access, table};

/// Carries out `anabranch file`.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(crate) fn run(command: &FileCommand) -> Result<()> {
    match command {
        FileCommand::List(list) => {
            let files: Files = ask(list, "/v1/files")?;
            print(&if list.asking.json { json(&files)? } else { render(&files) })
        }
        FileCommand::Close { id, asking } => {
            let access = control_access::find(&asking.state(), asking.control)?;
            let path = format!("/v1/files/{}", path_part(id));
            let closed: Closed = control_client::call(&access, "DELETE", &path, None::<&()>)?;
            print(&if asking.json { json(&closed)? } else { format!("The file {id} was closed.\n") })
        }
    }
}

/// Carries out `anabranch lock`.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(crate) fn run_lock(LockCommand::List(list): &LockCommand) -> Result<()> {
    let locks: Locks = ask(list, "/v1/locks")?;
    print(&if list.asking.json { json(&locks)? } else { render_locks(&locks) })
}

fn ask<T: serde::de::DeserializeOwned>(list: &HoldingList, path: &str) -> Result<T> {
    let access = control_access::find(&list.asking.state(), list.asking.control)?;
    let share = list.share.as_ref().map(|share| format!("share={}", path_part(share)));
    let client = list.client.map(|client| format!("client={}", path_part(&client.to_string())));
    let query: Vec<String> = share.into_iter().chain(client).collect();
    let question = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
    Ok(control_client::get(&access, &question)?)
}

fn render(Files { files, left_out }: &Files) -> String {
    if files.is_empty() {
        return "No file is open.\n".to_owned();
    }
    let row = |file: &OpenFile| {
        [
            file.id.to_string(),
            file.share.clone(),
            shown_path(&file.path),
            user(&file.client),
            client(&file.client),
            if file.delegation { format!("{}, delegation", file.protocol) } else { file.protocol.clone() },
            listed(&file.access),
            listed(&file.sharing),
            listed(&file.caching),
            file.locks.to_string(),
        ]
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    let heads =
        ["ID", "SHARE", "PATH", "USER", "CLIENT", "PROTOCOL", "ACCESS", "OTHERS MAY", "CACHES", "LOCKS"];
    table::render(heads, &rows) + &more(*left_out)
}

fn render_locks(Locks { locks, left_out }: &Locks) -> String {
    if locks.is_empty() {
        return "Nothing is locked.\n".to_owned();
    }
    let row = |lock: &Lock| {
        [
            lock.file.to_string(),
            lock.share.clone(),
            shown_path(&lock.path),
            user(&lock.client),
            client(&lock.client),
            lock.protocol.clone(),
            if lock.exclusive { "exclusive" } else { "shared" }.to_owned(),
            if lock.mandatory { "mandatory" } else { "advisory" }.to_owned(),
            lock.offset.to_string(),
            lock.length.map_or_else(|| "to the end".to_owned(), |length| length.to_string()),
        ]
    };
    let rows: Vec<_> = locks.iter().map(row).collect();
    let heads = ["FILE", "SHARE", "PATH", "USER", "CLIENT", "PROTOCOL", "LOCK", "KIND", "OFFSET", "LENGTH"];
    table::render(heads, &rows) + &more(*left_out)
}

fn more(left_out: u64) -> String {
    let mut line = String::new();
    if left_out > 0 {
        let more = counted_as(left_out, "more entry is", "more entries are");
        let _ =
            writeln!(line, "{more} not shown. Choose a share or a client: --share NAME, --client ADDRESS");
    }
    line
}

/// A path for people; the root has none.
fn shown_path(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { harmless(path) }
}

fn user(by: &OpenedBy) -> String {
    match (&by.user, by.uid) {
        (Some(name), _) if name.is_empty() => "(anonymous)".to_owned(),
        (Some(name), _) => harmless(name),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => "-".to_owned(),
    }
}

fn client(by: &OpenedBy) -> String {
    let address = by.address.map(|address| address.to_string());
    match (address, by.connected) {
        (Some(address), true) => address,
        (Some(address), false) => format!("{address}, not connected"),
        (None, _) => "not connected".to_owned(),
    }
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}
