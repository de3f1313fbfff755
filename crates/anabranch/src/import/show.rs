//! What an import tells.

use std::path::Path;

use import::{Grade, Imported, Note};
use serde::Serialize;

use crate::print::{counted, harmless};

/// As JSON.
#[derive(Serialize)]
pub(super) struct Told<'a> {
    /// The file that was written; none: the configuration is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) out: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) configuration: Option<&'a str>,
    #[serde(flatten)]
    pub(super) imported: &'a Imported,
}

/// In words.
pub(super) fn told(out: Option<&Path>, imported: &Imported) -> String {
    let mut text = match out {
        Some(out) => format!("Wrote {}: {}.\n", out.display(), summary(imported)),
        None => format!("This is a configuration with {}.\n", summary(imported)),
    };
    let closed: Vec<_> = imported.shares.iter().filter(|share| !share.closed.is_empty()).collect();
    if !closed.is_empty() {
        text.push_str("\nShares that are written as comments, and are not served:\n");
    }
    for share in closed {
        text.push_str(&format!("  {} ({}): {}\n", share.name, share.directory, share.closed.join("; ")));
    }
    for (grade, heading) in [
        (Grade::ChangesAccess, "Changes who may access what"),
        (Grade::NoCounterpart, "Has no counterpart"),
        (Grade::NotNeeded, "Not needed"),
    ] {
        let notes: Vec<&Note> = imported.notes.iter().filter(|note| note.grade == grade).collect();
        if !notes.is_empty() {
            text.push_str(&format!("\n{heading}:\n"));
        }
        notes.into_iter().for_each(|note| text.push_str(&lines(note)));
    }
    if let Some(out) = out {
        text.push_str(&format!("\nRead it, then: anabranch serve --config {}\n", out.display()));
    }
    text
}

fn summary(imported: &Imported) -> String {
    let closed = imported.shares.iter().filter(|share| !share.closed.is_empty()).count();
    let served = imported.shares.len().saturating_sub(closed);
    let users = imported.users.iter().filter(|user| user.closed.is_none()).count();
    let mut parts = vec![counted(u64_of(served), "share")];
    match closed {
        0 => {}
        1 => parts.push("1 as a comment".to_owned()),
        more => parts.push(format!("{more} as comments")),
    }
    if !imported.users.is_empty() {
        parts.push(counted(u64_of(users), "user"));
    }
    parts.join(", ")
}

fn u64_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Where it is, and why it was not carried over.
fn lines(note: &Note) -> String {
    let Note { place, section, parameter, value, why, .. } = note;
    let section = match section.as_str() {
        "" => String::new(),
        directory if directory.starts_with('/') => format!(", {directory}"),
        section => format!(", [{}]", section.trim()),
    };
    let said = match (parameter.as_str(), value.as_str()) {
        ("", "") => String::new(),
        ("", value) => format!(" {value}"),
        (parameter, "") => format!(" {parameter}"),
        (parameter, value) if section.starts_with(", /") => format!(" {parameter} {value}"),
        (parameter, value) => format!(" {parameter} = {value}"),
    };
    format!("  {}\n      {}\n", harmless(&format!("{place}{section}{said}")), harmless(why))
}
