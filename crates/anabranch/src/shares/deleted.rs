//! `anabranch share list --deleted`, `undelete` and `purge`: shares that were removed.

use std::io::{self, BufRead, Write};

use control::Administration as _;
use control::deleted_shares::{DeletedShare, DeletedShares, Purge, Undelete};
use control::shares::Share;
use schedule::Utc;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{SharePurge, ShareUndelete};
use crate::print::{harmless, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

const LIST: &str = "/v1/deleted-shares";

pub(super) fn list(asking: &Asking) -> Result<()> {
    let deleted = all(&Administrator::find(asking, Intent::Look)?)?;
    print(&if asking.json { json(&deleted)? } else { render(&deleted) })
}

pub(super) fn undelete(undelete: &ShareUndelete) -> Result<()> {
    let ShareUndelete { name, new_name, id, restored, asking } = undelete;
    let administrator = Administrator::find(asking, Intent::Change)?;
    let id = one(all(&administrator)?, name, *id)?.id;
    let how = Undelete { name: new_name.clone(), restored: *restored };
    let path = format!("{LIST}/{id}/undelete");
    let share: Share =
        administrator.call(("POST", &path), Some(&how), |here| here.undelete_share(id, &how))?;
    let text = || {
        let problem = share.problem.as_ref().map(|problem| format!("It is not served: {problem}\n"));
        format!("The share {} is back.\n{}", harmless(&share.name), problem.unwrap_or_default())
    };
    print(&if asking.json { json(&share)? } else { text() })
}

pub(super) fn purge(purge: &SharePurge) -> Result<()> {
    let SharePurge { name, id, keep_files, yes, asking } = purge;
    let administrator = Administrator::find(asking, Intent::Change)?;
    let deleted = one(all(&administrator)?, name, *id)?;
    if !yes {
        confirm(&deleted, *keep_files)?;
    }
    let (id, how) = (deleted.id, Purge { keep_files: *keep_files });
    let path = format!("{LIST}/{id}{}", if *keep_files { "?keep-files=true" } else { "" });
    let gone: DeletedShare =
        administrator.call(("DELETE", &path), None::<&()>, |here| here.purge_share(id, how))?;
    let text = || {
        let (name, directory) = (harmless(&gone.name), harmless(&gone.directory));
        let what = if gone.pool.is_some() && !keep_files { "being removed" } else { "unchanged" };
        format!(
            "The deleted share {name} was purged: it cannot be brought back. The directory {directory} is {what}.\n"
        )
    };
    print(&if asking.json { json(&gone)? } else { text() })
}

/// Until when a share can be brought back that was removed just now.
pub(super) fn how_long(share: &Share) -> String {
    let until = |until| {
        let until = written(until);
        format!("\nUntil {until}, `anabranch share undelete {}` brings it back.", harmless(&share.name))
    };
    share.restorable_until.map(until).unwrap_or_default()
}

fn all(administrator: &Administrator) -> Result<DeletedShares> {
    administrator.call(("GET", LIST), None::<&()>, |here| here.deleted_shares())
}

/// The deleted share that is meant.
fn one(DeletedShares { shares }: DeletedShares, name: &str, id: Option<u32>) -> Result<DeletedShare> {
    let same_name = |share: &DeletedShare| share.name.to_lowercase() == name.to_lowercase();
    let mut meant = shares.into_iter().filter(same_name).filter(|share| id.is_none_or(|id| share.id == id));
    let refuse = |what: String, advice: &str| Err(Problem::new(Cause::Refused, what, advice));
    match (meant.next(), meant.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => refuse(
            format!("there is no deleted share {name}"),
            "`anabranch share list --deleted` lists them.",
        ),
        (Some(_), Some(_)) => refuse(
            format!("several deleted shares had the name {name}"),
            "`anabranch share list --deleted` tells their IDs: --id ID",
        ),
    }
}

/// Asks for the name again.
fn confirm(deleted: &DeletedShare, keep_files: bool) -> Result<()> {
    let name = &deleted.name;
    let cannot = |e: io::Error| Problem::new(Cause::Refused, format!("the name was not read: {e}"), "");
    let mut said = io::stderr();
    let files = if deleted.pool.is_some() && !keep_files { ", nor its files" } else { "" };
    write!(said, "Nobody can bring the share {}{files} back then. Its name again: ", harmless(name))
        .map_err(cannot)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(cannot)?;
    if line.trim_end_matches(['\r', '\n']) == name {
        return Ok(());
    }
    Err(Problem::new(Cause::Refused, "that is not its name: nothing was purged", "--yes asks for no name."))
}

fn render(deleted: &DeletedShares) -> String {
    let row = |share: &DeletedShare| {
        [
            share.name.clone(),
            share.id.to_string(),
            written(share.deleted).to_string(),
            if share.by_command_only { "purged".to_owned() } else { written(share.until).to_string() },
            share.directory.clone(),
            share.plan.clone(),
        ]
    };
    let rows: Vec<_> = deleted.shares.iter().map(row).collect();
    table::render(["DELETED SHARE", "ID", "DELETED", "UNTIL", "DIRECTORY", "PLAN"], &rows)
}

fn written(secs: u64) -> Utc {
    Utc::from_secs(i64::try_from(secs).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: u32, name: &str) -> DeletedShare {
        DeletedShare { id, name: name.to_owned(), ..DeletedShare::default() }
    }

    #[test]
    fn two_of_one_name_are_told_apart_by_their_ids() {
        let all = || DeletedShares { shares: vec![of(3, "data"), of(5, "Data"), of(6, "other")] };
        assert_eq!(one(all(), "OTHER", None).unwrap().id, 6);
        assert_eq!(one(all(), "data", Some(5)).unwrap().id, 5);
        let refused = |name, id| one(all(), name, id).unwrap_err();
        assert!(refused("data", None).advice.contains("--id"));
        assert!(refused("data", Some(6)).what.contains("no deleted share"));
        assert!(refused("none", None).advice.contains("--deleted"));
    }
}
