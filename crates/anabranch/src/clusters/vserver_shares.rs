//! `anabranch vserver share`: the shares of vservers.

use std::fmt::Write;

use control::cluster::{ShareMove, VserverShares, Vservers};
use control::shares::{NewShare, Share, ShareChange};
use control_client::path_part;
use serde::Serialize;

use super::{VSERVERS, ask, ask_plain, show};
use crate::asking::Asking;
use crate::cli::VserverShareCommand;
use crate::print::harmless;
use crate::problem::Result;
use crate::shares::{state, terms};
use crate::table;

/// The shares of all vservers.
#[derive(Debug, Serialize)]
struct All {
    vservers: Vec<VserverShares>,
}

fn of(vserver: &str) -> String {
    format!("{VSERVERS}/{}/shares", path_part(vserver))
}

fn one(vserver: &str, share: &str) -> String {
    format!("{}/{}", of(vserver), path_part(share))
}

/// Carries out a command about shares of vservers.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(super) fn run(command: &VserverShareCommand) -> Result<()> {
    match command {
        VserverShareCommand::Add(add) => {
            let new = NewShare {
                name: add.name.clone(),
                directory: add.directory.clone(),
                continuous_availability: !add.no_continuous_availability,
                ..add.terms.new_share()
            };
            let call = ("POST", &*of(&add.vserver));
            let share =
                ask(&add.asking, call, Some(&new), |here| here.add_vserver_share(&add.vserver, &new))?;
            tell(&add.asking, &share, &format!("is served by the vserver {}", add.vserver))
        }
        VserverShareCommand::Set(set) => {
            let change = set.terms.change();
            let (vserver, name) = (&set.vserver, &set.name);
            let call = ("PATCH", &*one(vserver, name));
            let share = ask(&set.asking, call, Some(&change), |here| {
                here.change_vserver_share(vserver, name, &change)
            })?;
            tell(&set.asking, &share, what_is_set(&change))
        }
        VserverShareCommand::Remove { vserver, name, asking } => {
            let call = ("DELETE", &*one(vserver, name));
            let share = ask_plain(asking, call, |here| here.remove_vserver_share(vserver, name))?;
            tell(
                asking,
                &share,
                &format!("was removed from the vserver {vserver}; its directory is unchanged"),
            )
        }
        VserverShareCommand::Move { name, from, to, asking } => {
            let there = ShareMove { vserver: to.clone() };
            let call = ("POST", &*format!("{}/move", one(from, name)));
            let share = ask(asking, call, Some(&there), |here| here.move_vserver_share(from, name, &there))?;
            tell(asking, &share, &format!("is served by the vserver {to}"))
        }
        VserverShareCommand::List { vserver: Some(vserver), asking } => {
            let shares = shares_of(vserver, asking)?;
            show(asking, &shares, render(std::slice::from_ref(&shares)))
        }
        VserverShareCommand::List { vserver: None, asking } => {
            let all: Vservers = ask_plain(asking, ("GET", VSERVERS), |here| here.vservers())?;
            let names = all.vservers.iter().map(|vserver| &vserver.name);
            let all = All { vservers: names.map(|name| shares_of(name, asking)).collect::<Result<_>>()? };
            show(asking, &all, render(&all.vservers))
        }
    }
}

fn shares_of(vserver: &str, asking: &Asking) -> Result<VserverShares> {
    ask_plain(asking, ("GET", &of(vserver)), |here| here.vserver_shares(vserver))
}

fn tell(asking: &Asking, share: &Share, what: &str) -> Result<()> {
    show(asking, share, format!("The share {} {what}.\n", share.name))
}

fn what_is_set(change: &ShareChange) -> &'static str {
    if *change == ShareChange::default() {
        return "is unchanged: no change was given (`anabranch vserver share set --help`)";
    }
    "was changed"
}

fn render(vservers: &[VserverShares]) -> String {
    let row = |vserver: &str, share: &Share| {
        [
            harmless(vserver),
            harmless(&share.name),
            state(share),
            harmless(&share.directory),
            share.plan.clone(),
            harmless(&terms(share)),
        ]
    };
    let of =
        |one: &VserverShares| one.shares.iter().map(|share| row(&one.vserver, share)).collect::<Vec<_>>();
    let rows: Vec<_> = vservers.iter().flat_map(of).collect();
    let mut text = table::render(["VSERVER", "SHARE", "STATE", "DIRECTORY", "PLAN", "TERMS"], &rows);
    for VserverShares { vserver, shares, went } in vservers {
        for share in shares {
            if let Some(problem) = &share.problem {
                let (share, problem) = (harmless(&share.name), harmless(problem));
                let _ = writeln!(text, "{}: the share {share} is not served: {problem}", harmless(vserver));
            }
        }
        for (share, to) in went {
            let (share, to) = (harmless(share), harmless(to));
            let _ = writeln!(text, "{}: the share {share} has moved to the vserver {to}", harmless(vserver));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(change: serde_json::Value) -> Share {
        let mut share = serde_json::json!({
            "name": "data", "directory": "cephfs:/d", "declared_in": null, "served": true, "problem": null, "read_only": false,
            "guest": false, "access_based_enumeration": false, "continuous_availability": true, "encrypted": false,
            "tls_required": false, "nfs_security": ["sys", "krb5", "krb5i", "krb5p"], "nfs_groups": "", "nfs_snapshots": "off",
            "devices": false, "set_id": false, "secure_port": false, "hidden": false, "comment": "", "metadata_cache": true,
            "access_log": true, "plan": "unlimited", "rules": {}, "served_by": ["smb", "nfs"],
        });
        share.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(share).unwrap()
    }

    #[test]
    fn shares_are_shown_with_their_vservers() {
        let late = serde_json::json!({ "name": "late", "served": false, "problem": "no such directory", "hidden": true });
        let files = VserverShares {
            vserver: "files".to_owned(),
            shares: vec![share(serde_json::json!({})), share(late)],
            went: [("old".to_owned(), "more".to_owned())].into(),
        };
        let expected = "\
VSERVER  SHARE  STATE       DIRECTORY  PLAN       TERMS
files    data   served      cephfs:/d  unlimited  continuously available
files    late   not served  cephfs:/d  unlimited  continuously available, hidden
files: the share late is not served: no such directory
files: the share old has moved to the vserver more
";
        assert_eq!(render(&[files]), expected);
    }
}
