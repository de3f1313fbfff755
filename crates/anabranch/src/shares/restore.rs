//! `anabranch share restore`: a file or a directory as it was in a snapshot.

use std::fmt::Write as _;
use std::time::Duration;

use control::Administration as _;
use control::restores::{NewRestore, Restore};

use super::path;
use crate::administrator::{Administrator, Intent};
use crate::bench::progress::Bar;
use crate::cli::ShareRestore;
use crate::print::{bytes, counted, counted_as, json, print};
use crate::problem::{Cause, Problem, Result};

/// How often the server is asked how far it is: at first, and later on, when that is shown, too.
const ASKED: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Carries out the command.
///
/// # Errors
/// It is refused, the server cannot be asked, or the restore has failed or left something alone.
pub(super) fn run(restore: &ShareRestore) -> Result<()> {
    let administrator = Administrator::find(&restore.asking, Intent::Look)?;
    let (name, path) = (&restore.name, format!("{}/restore", path(&restore.name)));
    let told = if restore.status {
        look(&administrator, name, &path)?
    } else if restore.cancel {
        administrator.call(("DELETE", &path), None::<&()>, |here| here.cancel_restore(name))?;
        wait(&administrator, name, &path)?
    } else {
        let new = NewRestore {
            from: restore.from.clone().unwrap_or_default(),
            path: restore.path.clone().unwrap_or_default(),
            to: restore.to.clone(),
            replace: restore.replace,
        };
        let begun =
            administrator.call(("POST", &path), Some(&new), |here| here.begin_restore(name, new.clone()))?;
        if restore.background { begun } else { wait(&administrator, name, &path)? }
    };
    print(&if restore.asking.json { json(&told)? } else { render(&told) })?;
    let is_asked_for = !restore.status && !restore.cancel;
    problem(&told).filter(|_| is_asked_for).map_or(Ok(()), Err)
}

fn look(administrator: &Administrator, name: &str, path: &str) -> Result<Restore> {
    administrator.call(("GET", path), None::<&()>, |here| here.restore(name))
}

/// Waits for the end of a restore, and shows how far it is.
fn wait(administrator: &Administrator, name: &str, path: &str) -> Result<Restore> {
    let (bar, [mut pause, longest]) = (Bar::new(), ASKED);
    loop {
        let told = look(administrator, name, path)?;
        let is_long = pause == longest;
        if told.ended.is_some() {
            if is_long {
                bar.end();
            }
            return Ok(told);
        }
        if is_long {
            bar.say(progress(&told));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

/// What makes the command fail: not all is as in the snapshot.
fn problem(told: &Restore) -> Option<Problem> {
    let refused = |what: String, advice: &str| Some(Problem::new(Cause::Refused, what, advice));
    match (told.state.as_str(), &told.problem) {
        ("failed", Some(why)) => refused(
            format!("the restore has failed: {why}"),
            "What was restored stays. Restore it again with --replace when the reason is gone.",
        ),
        ("cancelled", _) => refused("the restore was cancelled".to_owned(), "What was restored stays."),
        ("done", _) if told.left > 0 => {
            refused(format!("{} left alone", counted_as(told.left, "entry", "entries")), "")
        }
        _ => None,
    }
}

/// How far a restore is: `12 of 100 files, 3.5 MiB of 7 MiB`.
fn progress(told: &Restore) -> String {
    let of = |total: Option<String>| total.map_or_else(String::new, |total| format!(" of {total}"));
    format!(
        "{}{} files, {}{}",
        told.restored + told.unchanged,
        of(told.files_total.map(|total| total.to_string())),
        bytes(told.bytes),
        of(told.bytes_total.map(bytes))
    )
}

fn render(told: &Restore) -> String {
    let Restore { from, path, to, .. } = told;
    let place = if path == to { path.clone() } else { format!("{to} (from {path})") };
    let figures = format!(
        "{}, {}; {} unchanged",
        counted(told.restored, "file"),
        bytes(told.bytes),
        counted(told.unchanged, "file")
    );
    let mut text = match told.state.as_str() {
        "running" => format!("{place} is being restored from {from}: {}.\n", progress(told)),
        "waiting" => format!("{place} is to be restored from {from}, when the share is served again.\n"),
        "done" => format!("{place} was restored from {from}: {figures}.\n"),
        "cancelled" => {
            format!("{place} was being restored from {from}, and that was cancelled: {figures}.\n")
        }
        _ => format!("{place} was being restored from {from}, and that has failed: {figures}.\n"),
    };
    if let Some(problem) = &told.problem {
        let _ = writeln!(text, "  {problem}");
    }
    for left in &told.left_alone {
        let _ = writeln!(text, "  left alone: /{}: {}", left.path, left.why);
    }
    if told.left > told.left_alone.len() as u64 {
        let _ = writeln!(text, "  and {} more", told.left - told.left_alone.len() as u64);
    }
    text
}

#[cfg(test)]
mod tests {
    use control::restores::LeftAlone;

    use super::*;

    fn restore(state: &str) -> Restore {
        Restore {
            from: "anabranch.manual.2026-11-23T05:45:18Z".to_owned(),
            path: "/docs".to_owned(),
            to: "/docs".to_owned(),
            state: state.to_owned(),
            restored: 12,
            unchanged: 1,
            bytes: 3 << 20,
            ..Restore::default()
        }
    }

    #[test]
    fn what_became_of_it_is_told() {
        let done = restore("done");
        let from = "anabranch.manual.2026-11-23T05:45:18Z";
        assert_eq!(
            render(&done),
            format!("/docs was restored from {from}: 12 files, 3 MiB; 1 file unchanged.\n")
        );
        assert!(problem(&done).is_none());
        let left = LeftAlone { path: "docs/a".to_owned(), why: "a directory is in its place".to_owned() };
        let left = Restore { left: 2, left_alone: vec![left], to: "/x".to_owned(), ..done };
        let lines = "  left alone: /docs/a: a directory is in its place\n  and 1 more\n";
        let expected =
            format!("/x (from /docs) was restored from {from}: 12 files, 3 MiB; 1 file unchanged.\n{lines}");
        assert_eq!(render(&left), expected);
        assert_eq!(problem(&left).unwrap().what, "2 entries left alone");
        let failed =
            Restore { problem: Some("docs/b: the file system is full".to_owned()), ..restore("failed") };
        assert!(render(&failed).ends_with("\n  docs/b: the file system is full\n"));
        assert_eq!(problem(&failed).unwrap().what, "the restore has failed: docs/b: the file system is full");
    }

    #[test]
    fn how_far_it_is_with_and_without_the_whole() {
        let running = restore("running");
        assert_eq!(progress(&running), "13 files, 3 MiB");
        let counted = Restore { files_total: Some(100), bytes_total: Some(7 << 20), ..running };
        assert_eq!(progress(&counted), "13 of 100 files, 3 MiB of 7 MiB");
        assert!(problem(&counted).is_none());
    }
}
