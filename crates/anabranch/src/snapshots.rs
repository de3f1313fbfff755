//! `anabranch snapshot`: what shares held at some moments.

use control::Administration as _;
use control::snapshots::{NewSnapshot, Snapshot, SnapshotChange, Snapshots};
use control_client::path_part;
use schedule::Utc;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{SnapshotCommand, SnapshotCreate};
use crate::print::{harmless, json, print};
use crate::problem::Result;
use crate::table;

/// Carries out the command. Only a running server has the snapshots, so nothing is changed in a state directory.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &SnapshotCommand) -> Result<()> {
    match command {
        SnapshotCommand::List { share, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let snapshots =
                administrator.call(("GET", &of_share(share)), None::<&()>, |here| here.snapshots(share))?;
            print(&if asking.json { json(&snapshots)? } else { render(&snapshots) })
        }
        SnapshotCommand::Create(create) => {
            let administrator = Administrator::find(&create.asking, Intent::Look)?;
            let (share, new) = (&create.share, new_snapshot(create));
            let call = ("POST", &*of_share(share));
            let taken =
                administrator.call(call, Some(&new), |here| here.take_snapshot(share, new.clone()))?;
            tell(&create.asking, &taken, "was taken")
        }
        SnapshotCommand::Remove { share, name, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let call = ("DELETE", &*path(share, name));
            let gone = administrator.call(call, None::<&()>, |here| here.remove_snapshot(share, name))?;
            tell(asking, &gone, "was removed")
        }
        SnapshotCommand::Protect { share, name, until, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let change = SnapshotChange { protected_until: until.secs_since_1970() };
            let call = ("PATCH", &*path(share, name));
            let changed = administrator
                .call(call, Some(&change), |here| here.change_snapshot(share, name, change.clone()))?;
            tell(asking, &changed, &format!("is protected until {until}"))
        }
    }
}

fn of_share(share: &str) -> String {
    format!("/v1/shares/{}/snapshots", path_part(share))
}

fn path(share: &str, name: &str) -> String {
    format!("{}/{}", of_share(share), path_part(name))
}

fn new_snapshot(create: &SnapshotCreate) -> NewSnapshot {
    NewSnapshot {
        label: create.label.clone(),
        protect_for_seconds: create.protect_for,
        protected_until: create.protected_until.map(Utc::secs_since_1970),
    }
}

fn tell(asking: &Asking, snapshot: &Snapshot, what: &str) -> Result<()> {
    let text = || format!("The snapshot {} {what}.\n", harmless(&snapshot.name));
    print(&if asking.json { json(snapshot)? } else { text() })
}

fn render(snapshots: &Snapshots) -> String {
    let row = |snapshot: &Snapshot| {
        [
            snapshot.name.clone(),
            Utc::from_secs(snapshot.taken).to_string(),
            taken_by(snapshot),
            snapshot.protected_until.map_or_else(String::new, |until| written(until).to_string()),
        ]
    };
    let rows: Vec<_> = snapshots.snapshots.iter().map(row).collect();
    table::render(["SNAPSHOT", "TAKEN", "BY", "PROTECTED UNTIL"], &rows)
}

/// What took a snapshot, for people.
fn taken_by(snapshot: &Snapshot) -> String {
    match (&snapshot.policy, &snapshot.period) {
        (Some(policy), Some(period)) => format!("{policy} ({period})"),
        _ if snapshot.own => "command".to_owned(),
        _ => "others".to_owned(),
    }
}

fn written(secs: u64) -> Utc {
    Utc::from_secs(i64::try_from(secs).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_who_took_what_and_until_when_it_stays() {
        let of_policy = Snapshot {
            name: "anabranch.daily-office.2026-11-23T01:10:00Z".to_owned(),
            taken: 1_795_396_200,
            own: true,
            policy: Some("office".to_owned()),
            period: Some("daily".to_owned()),
            protected_until: None,
        };
        let by_command = Snapshot {
            name: "anabranch.manual.2026-11-23T05:45:18Z".to_owned(),
            taken: 1_795_412_718,
            own: true,
            protected_until: Some(1_798_675_200),
            ..Snapshot::default()
        };
        let others = Snapshot { name: "1/snapshot".to_owned(), taken: 5, ..Snapshot::default() };
        let shown = render(&Snapshots { snapshots: vec![others, of_policy, by_command] });
        let expected = "\
SNAPSHOT                                     TAKEN                 BY              PROTECTED UNTIL
1/snapshot                                   1970-01-01T00:00:05Z  others
anabranch.daily-office.2026-11-23T01:10:00Z  2026-11-23T01:10:00Z  office (daily)
anabranch.manual.2026-11-23T05:45:18Z        2026-11-23T05:45:18Z  command         2026-12-31T00:00:00Z
";
        assert_eq!(shown, expected);
    }
}
