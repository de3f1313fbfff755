//! `anabranch share check`: which named streams of a share lead nowhere.

use std::fmt::Write as _;
use std::path::Path;

use control::Administration as _;
use control::shares::Share;
use gateway::settings::split_directory;
use serde::Serialize;
use storage_local::{OrphanedStreams, StreamsCheck, check_streams};

use super::path;
use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::print::{bytes, counted, counted_as, harmless, json, print};
use crate::problem::{Cause, Problem, Result};

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Checked {
    share: String,
    directory: String,
    /// How many files and directories have streams.
    with_streams: usize,
    /// Directories of streams that belong to no file.
    without_file: Vec<Orphaned>,
    /// Files and directories whose streams are missing.
    without_streams: Vec<String>,
    /// Whether everything could be looked at.
    complete: bool,
}

#[derive(Debug, Serialize)]
struct Orphaned {
    path: String,
    streams: usize,
    bytes: u64,
}

/// Checks a share of this machine.
///
/// # Errors
/// There is no such share, or its directory cannot be read.
pub(super) fn run(name: &str, asking: &Asking) -> Result<()> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let share: Share = administrator.call(("GET", &path(name)), None::<&()>, |here| here.share(name))?;
    let unreadable = |why: String| {
        let what = format!("the streams of the share {name} cannot be checked in {}: {why}", share.directory);
        Problem::new(
            Cause::Directory,
            what,
            "Run the command on the server's machine, as the server's user or as root.",
        )
    };
    let (directory, _) = split_directory(Path::new(&share.directory)).map_err(unreadable)?;
    if gateway::path_in_cephfs(&directory).is_some() {
        let what = format!("the streams of the share {name} cannot be checked: it lies in CephFS");
        return Err(Problem::new(
            Cause::Directory,
            what,
            "Only shares in directories of this machine are checked.",
        ));
    }
    let found = check_streams(&directory).map_err(|e| unreadable(e.to_string()))?;
    let checked = checked(share.name, &directory, found);
    print(&if asking.json { json(&checked)? } else { render(&checked) })
}

fn checked(share: String, directory: &Path, found: StreamsCheck) -> Checked {
    let text = |path: &[u8]| String::from_utf8_lossy(if path.is_empty() { b"." } else { path }).into_owned();
    let orphaned = |OrphanedStreams { path, streams, bytes }: OrphanedStreams| Orphaned {
        path: text(&path),
        streams,
        bytes,
    };
    Checked {
        share,
        directory: directory.display().to_string(),
        with_streams: found.objects,
        without_file: found.without_object.into_iter().map(orphaned).collect(),
        without_streams: found.without_streams.iter().map(|path| text(path)).collect(),
        complete: found.is_whole,
    }
}

fn render(checked: &Checked) -> String {
    let Checked { share, directory, with_streams, without_file, without_streams, complete } = checked;
    let files = |count: usize| counted_as(count, "file or directory", "files and directories");
    let mut text =
        format!("share      {share}\ndirectory  {directory}\nstreams    of {}\n", files(*with_streams));
    if !complete {
        text.push_str("incomplete some directories could not be looked at\n");
    }
    if without_file.is_empty() && without_streams.is_empty() {
        text.push_str("orphaned   none\n");
    }
    if !without_file.is_empty() {
        let folders = counted_as(without_file.len(), "directory", "directories");
        let _ = writeln!(text, "\nStreams of no file, in {folders}:");
        for Orphaned { path, streams, bytes: size } in without_file {
            let _ = writeln!(text, "  {}  {}, {}", harmless(path), counted(*streams, "stream"), bytes(*size));
        }
    }
    if !without_streams.is_empty() {
        let _ = writeln!(text, "\nThe streams are missing of {}:", files(without_streams.len()));
        without_streams.iter().for_each(|path| text.push_str(&format!("  {}\n", harmless(path))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed() {
        let found = StreamsCheck { objects: 1, is_whole: true, ..StreamsCheck::default() };
        let none = render(&checked("a".to_owned(), Path::new("/srv/a"), found.clone()));
        assert_eq!(
            none,
            "share      a\ndirectory  /srv/a\nstreams    of 1 file or directory\norphaned   none\n"
        );
        let found = StreamsCheck {
            without_object: vec![OrphanedStreams { path: b"x/y".to_vec(), streams: 2, bytes: 5 }],
            without_streams: vec![Vec::new(), b"f\n".to_vec()],
            is_whole: false,
            ..found
        };
        let some = render(&checked("a".to_owned(), Path::new("/srv/a"), found));
        assert!(
            some.ends_with(
                "incomplete some directories could not be looked at\n\n\
             Streams of no file, in 1 directory:\n  x/y  2 streams, 5 B\n\n\
             The streams are missing of 2 files and directories:\n  .\n  f\\u000a\n"
            ),
            "{some}"
        );
    }
}
