//! `anabranch domain test`: what a user becomes, and by which rule.

use std::fmt::Write;

use control::Administration as _;
use control::identities::{Knowledge, TestedGroup, TestedUser};
use control_client::path_part;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::print::{duration, harmless, json, print};
use crate::problem::Result;
use crate::table::render;

/// The most groups that people are shown.
const GROUPS_SHOWN: usize = 40;

/// # Errors
/// No server runs, it may not be asked, or the text can be no user's name.
pub(super) fn run(user: &str, asking: &Asking) -> Result<()> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let path = format!("/v1/identities/{}", path_part(user));
    let tested = administrator.call(("GET", &*path), None::<&()>, |here| here.test_user(user))?;
    print(&if asking.json { json(&tested)? } else { text(&tested) })
}

fn text(tested: &TestedUser) -> String {
    let mut text = String::new();
    let name = tested.name.as_deref().unwrap_or(&tested.asked);
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let number = |number: Option<u32>| or_none(number.map(|number| number.to_string()));
    for (title, value) in [
        ("user", harmless(name)),
        ("known", known(tested)),
        ("SID", or_none(tested.sid.clone())),
        ("uid", number(tested.uid)),
        ("gid", number(tested.gid)),
        ("rule", harmless(&tested.rule)),
    ] {
        let _ = writeln!(text, "{title:<8}{value}");
    }
    let _ = write!(text, "{}", groups(&tested.groups));
    if !tested.shares.is_empty() {
        let none = || "none: may not use it".to_owned();
        let rows: Vec<_> = tested
            .shares
            .iter()
            .map(|share| {
                let by = or_none(share.by.as_deref().map(harmless));
                [share.share.clone(), share.role.clone().unwrap_or_else(none), by]
            })
            .collect();
        let _ = write!(text, "\n{}", render(["SHARE", "ROLE", "BY"], &rows));
    }
    for finding in &tested.findings {
        let _ = write!(text, "\n* {}\n  to do: {}\n", harmless(&finding.what), harmless(&finding.advice));
    }
    text
}

fn known(tested: &TestedUser) -> String {
    match (tested.known, tested.ticket_seconds_ago) {
        (Knowledge::Account, _) => "an account of this server".to_owned(),
        (Knowledge::Ticket, Some(ago)) => format!("a ticket, {} ago", duration(ago)),
        (Knowledge::Ticket, None) => "a ticket".to_owned(),
        (Knowledge::Sid, _) => "the SID alone".to_owned(),
        (Knowledge::Unknown, _) => "nothing".to_owned(),
    }
}

fn groups(groups: &[TestedGroup]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row =
        |group: &TestedGroup| [or_none(group.sid.clone()), or_none(group.gid.map(|gid| gid.to_string()))];
    let rows: Vec<_> = groups.iter().take(GROUPS_SHOWN).map(row).collect();
    let more = groups.len().saturating_sub(rows.len());
    let more = if more == 0 { String::new() } else { format!("and {more} more (--json has all)\n") };
    format!("\n{}{more}", render(["GROUP", "GID"], &rows))
}

#[cfg(test)]
mod tests {
    use control::identities::{TestFinding, TestedShare};

    use super::*;

    #[test]
    fn people_are_told_who_what_and_what_to_do() {
        let group = |gid| TestedGroup { sid: None, gid: Some(gid) };
        let tested = TestedUser {
            asked: "alice".to_owned(),
            known: Knowledge::Ticket,
            name: Some("alice@AD.TEST\u{1b}".to_owned()),
            sid: Some("S-1-5-21-1-2-3-1104".to_owned()),
            uid: Some(1_001_104),
            gid: None,
            groups: (0..42).map(group).collect(),
            ticket_seconds_ago: Some(61),
            rule: "r".to_owned(),
            shares: vec![
                TestedShare { share: "data".to_owned(), role: None, by: None },
                TestedShare {
                    share: "more".to_owned(),
                    role: Some("reader".to_owned()),
                    by: Some("@staff".to_owned()),
                },
            ],
            findings: vec![TestFinding { what: "it is".to_owned(), advice: "do".to_owned() }],
        };
        let text = text(&tested);
        for line in [
            "user    alice@AD.TEST\\u001b\n",
            "known   a ticket, 1 min 1 s ago\n",
            "uid     1001104\ngid     -\n",
            "and 2 more (--json has all)\n",
            "data   none: may not use it  -\n",
            "more   reader                @staff\n",
            "\n* it is\n  to do: do\n",
        ] {
            assert!(text.contains(line), "{line:?}: {text}");
        }
    }
}
