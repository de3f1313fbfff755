//! `anabranch share`: which directories are served, on what terms, and what is going on in them.

mod alarms;
mod check;
mod deleted;
mod for_group;
mod in_pool;
mod record;
mod replicate;
mod restore;
mod show;
mod simulate;
mod top;
mod transactions;

use control::Administration as _;
use control::activity::ShareActivity;
use control::shares::{NewShare, Share, ShareChange, Shares};
use control::snapshots::{Snapshot, SnapshotRevert};
use control_client::path_part;
use limits::Plan;
use state::rules::NFS_SECURITY;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{ShareCommand, ShareCreate, ShareSet};
use crate::print::{harmless, json, print};
use crate::problem::Result;
use crate::table;

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &ShareCommand) -> Result<()> {
    match command {
        ShareCommand::Create(create) => {
            let administrator = Administrator::find(&create.asking, Intent::Change)?;
            let (mut new, call) = (new_share(create), ("POST", "/v1/shares"));
            in_pool::enter(&create.in_pool, &mut new)?;
            let directory = create.for_group.as_deref().map(|group| for_group::make(group, &mut new));
            let directory = directory.transpose()?;
            let share = administrator.call(call, Some(&new), |here| here.create_share(new.clone()))?;
            directory.into_iter().for_each(for_group::Made::keep);
            tell(&create.asking, &share, "was created")
        }
        ShareCommand::List { deleted: true, asking } => deleted::list(asking),
        ShareCommand::List { deleted: false, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let shares = administrator.call(("GET", "/v1/shares"), None::<&()>, |here| here.shares())?;
            print(&if asking.json { json(&shares)? } else { render(&shares) })
        }
        ShareCommand::Show { name, asking } => show(name, asking),
        ShareCommand::Set(set) => {
            let administrator = Administrator::find(&set.asking, Intent::Change)?;
            let change = change(set);
            let call = ("PATCH", &*path(&set.name));
            let share = administrator
                .call(call, Some(&change), |here| here.change_share(&set.name, change.clone()))?;
            tell(&set.asking, &share, what_is_set(&change, &share))
        }
        ShareCommand::Remove { name, asking } => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let share =
                administrator.call(("DELETE", &*path(name)), None::<&()>, |here| here.remove_share(name))?;
            let what = format!("was removed; its directory is unchanged.{}", deleted::how_long(&share));
            tell(asking, &share, what.trim_end_matches('.'))
        }
        ShareCommand::Undelete(undelete) => deleted::undelete(undelete),
        ShareCommand::Purge(purge) => deleted::purge(purge),
        ShareCommand::Revert { name, to, asking } => revert(name, to, asking),
        ShareCommand::Restore(order) => restore::run(order),
        ShareCommand::Alarms { name, end, asking } => alarms::run(name, *end, asking),
        ShareCommand::Replicate(given) => replicate::run(given),
        ShareCommand::Check { name, asking } => check::run(name, asking),
        ShareCommand::Top(top) => top::run(top),
        ShareCommand::Record(record) => record::run(record),
        ShareCommand::Simulate(simulate) => simulate::run(simulate),
    }
}

fn path(name: &str) -> String {
    format!("/v1/shares/{}", path_part(name))
}

fn show(name: &str, asking: &Asking) -> Result<()> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let share: Share = administrator.call(("GET", &path(name)), None::<&()>, |here| here.share(name))?;
    let activity: Option<ShareActivity> = match &administrator {
        Administrator::Server(access) if share.served => {
            Some(control_client::get(access, &format!("{}/activity", path(name)))?)
        }
        Administrator::Server(_) | Administrator::Here(_) => None,
    };
    let is_by_use = share.plan.parse().is_ok_and(|plan: Plan| matches!(plan, Plan::AzureFilesPayg { .. }));
    let transactions =
        activity.as_ref().filter(|_| is_by_use).map(|activity| transactions::count(&activity.apis));
    let shown = show::Shown { share, activity, transactions };
    print(&if asking.json { json(&shown)? } else { show::render(&shown) })
}

fn revert(name: &str, to: &str, asking: &Asking) -> Result<()> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let revert = SnapshotRevert { to: to.to_owned() };
    let call = ("POST", &*format!("{}/revert", path(name)));
    let before: Snapshot =
        administrator.call(call, Some(&revert), |here| here.revert_share(name, revert.clone()))?;
    let text = || {
        let before = harmless(&before.name);
        format!(
            "The share {name} is what it was in {to}.\nWhat it held until now is the snapshot {before}.\n"
        )
    };
    print(&if asking.json { json(&before)? } else { text() })
}

fn new_share(create: &ShareCreate) -> NewShare {
    NewShare {
        name: create.name.clone(),
        directory: create.directory.clone().unwrap_or_default(),
        continuous_availability: create.continuous_availability,
        metadata_cache: create.metadata_cache,
        redundancy: create.storage.redundancy.clone(),
        tier: create.storage.tier.clone(),
        snapshot_policy: create.snapshot_policy.clone(),
        recycle_bin: create.recycle_bin.clone(),
        ransomware_alarm: create.ransomware_alarm.clone(),
        from: create.from.clone(),
        ..create.terms.new_share()
    }
}

fn change(set: &ShareSet) -> ShareChange {
    ShareChange {
        metadata_cache: set.metadata_cache,
        tier: set.tier.clone(),
        size: set.size,
        snapshot_policy: set.snapshot_policy.clone(),
        recycle_bin: set.recycle_bin.clone(),
        ransomware_alarm: set.ransomware_alarm.clone(),
        ..set.terms.change()
    }
}

fn tell(asking: &Asking, share: &Share, what: &str) -> Result<()> {
    print(&if asking.json { json(share)? } else { format!("The share {} {what}.\n", share.name) })
}

/// What became of a share. Where nothing is to change, one that could not be served is tried again.
fn what_is_set(change: &ShareChange, share: &Share) -> &'static str {
    if *change != ShareChange::default() {
        return "was changed";
    }
    if share.served {
        "is served; no change was given (`anabranch share set --help`)"
    } else {
        "is unchanged: no change was given (`anabranch share set --help`)"
    }
}

/// On what terms clients use it, for people.
pub(crate) fn terms(share: &Share) -> String {
    let terms = [
        (share.read_only, "read-only"),
        (share.guest, "guests"),
        (share.access_based_enumeration, "access-based enumeration"),
        (share.continuous_availability, "continuously available"),
        (share.encrypted, "encrypted"),
        (share.tls_required, "TLS"),
        (share.devices, "devices"),
        (share.set_id, "set-id"),
        (share.secure_port, "secure port"),
        (share.hidden, "hidden"),
        (!share.metadata_cache, "no metadata cache"),
        (!share.access_log, "not in the access log"),
    ];
    let mut terms: Vec<_> =
        terms.iter().filter(|(holds, _)| *holds).map(|(_, name)| (*name).to_owned()).collect();
    if share.nfs_security.len() < NFS_SECURITY.len() {
        terms.push(format!("NFS with {}", share.nfs_security.join(" or ")));
    }
    if !share.nfs_groups.is_empty() {
        terms.push(format!("NFS groups by the {}", share.nfs_groups));
    }
    if share.nfs_snapshots != "off" {
        terms.push(format!("NFS snapshots {}", share.nfs_snapshots));
    }
    match share.served_by.as_slice() {
        [] => terms.push("no protocol".to_owned()),
        [only] => terms.push(format!("{only} only")),
        _ => {}
    }
    if !share.rules.clients.is_empty() {
        terms.push("some clients".to_owned());
    }
    if share.rules.is_for_some_users() {
        terms.push("some users".to_owned());
    }
    if terms.is_empty() { "-".to_owned() } else { terms.join(", ") }
}

pub(crate) fn state(share: &Share) -> String {
    let state = match (share.served, &share.problem) {
        (true, _) => "served",
        (false, Some(_)) => "not served",
        (false, None) => "no server is running",
    };
    let alarms = share.alarms.iter().map(|alarm| format!(", {alarm}"));
    [state.to_owned()].into_iter().chain(alarms).collect()
}

fn render(shares: &Shares) -> String {
    let row = |share: &Share| {
        [
            share.name.clone(),
            state(share),
            share.directory.clone(),
            share.plan.clone(),
            terms(share),
            share.declared_in.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = shares.shares.iter().map(row).collect();
    let mut text = table::render(["SHARE", "STATE", "DIRECTORY", "PLAN", "TERMS", "DECLARED IN"], &rows);
    for share in &shares.shares {
        if let Some(problem) = &share.problem {
            text.push_str(&format!("\n{} is not served: {problem}\n", share.name));
        }
    }
    text
}
