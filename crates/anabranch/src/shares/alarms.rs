//! `anabranch share alarms`: clients that work in a share as ransomware does.

use std::fmt::Write;

use control::Administration as _;
use control::ransomware::{RansomwareAlarm, RansomwareAlarms};

use super::path;
use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::print::{counted_as, duration, harmless, json, print};
use crate::problem::Result;

/// Lists the alarms of a share, or ends one.
///
/// # Errors
/// There is no such share or alarm, or no server runs.
pub(super) fn run(name: &str, end: Option<u64>, asking: &Asking) -> Result<()> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let place = format!("{}/ransomware-alarms", path(name));
    let Some(number) = end else {
        let alarms: RansomwareAlarms =
            administrator.call(("GET", &*place), None::<&()>, |here| here.ransomware_alarms(name))?;
        return print(&if asking.json { json(&alarms)? } else { list(&alarms) });
    };
    let call = ("DELETE", &*format!("{place}/{number}"));
    let ended: RansomwareAlarm =
        administrator.call(call, None::<&()>, |here| here.end_ransomware_alarm(name, number))?;
    let text = || format!("The alarm {number} of the share {name} has ended.\n");
    print(&if asking.json { json(&ended)? } else { text() })
}

fn list(alarms: &RansomwareAlarms) -> String {
    if alarms.alarms.is_empty() {
        return format!("There is no alarm about a client of the share {}.\n", alarms.share);
    }
    alarms.alarms.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(alarm: &RansomwareAlarm) -> String {
    let who = match (&alarm.user, alarm.uid) {
        (Some(user), _) => harmless(user),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => "a client".to_owned(),
    };
    let place = alarm.client.as_ref().map_or_else(String::new, |client| format!(" at {}", harmless(client)));
    let mut text = format!("alarm {}: {who}{place}, {} ago\n", alarm.number, duration(alarm.age_seconds));
    let files = |count: u32| counted_as(u64::from(count), "file", "files");
    if alarm.overwritten > 0 {
        let _ = writeln!(text, "  {} written over with data that looks random", files(alarm.overwritten));
    }
    if alarm.replaced > 0 {
        let _ = writeln!(text, "  {} gone, with new ones that look random", files(alarm.replaced));
    }
    if alarm.renamed > 0 {
        let suffix = alarm.suffix.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  {} renamed to .{}", files(alarm.renamed), harmless(suffix));
    }
    if alarm.slowed {
        text.push_str("  slowed to one operation a second until the alarm ends\n");
    }
    match (&alarm.snapshot, &alarm.snapshot_problem) {
        (Some(name), _) => {
            let _ = writeln!(text, "  snapshot: {}", harmless(name));
        }
        (None, Some(problem)) => {
            let _ = writeln!(text, "  no snapshot was taken: {}", harmless(problem));
        }
        (None, None) => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_says_who_has_done_what() {
        let alarm = RansomwareAlarm {
            number: 3,
            user: Some("anna".to_owned()),
            uid: Some(1000),
            client: Some("10.0.0.7".to_owned()),
            age_seconds: 75,
            overwritten: 21,
            replaced: 1,
            renamed: 2,
            suffix: Some("locked".to_owned()),
            slowed: true,
            snapshot: Some("ransomware.2026-11-27T12:00:00Z".to_owned()),
            snapshot_problem: None,
        };
        let expected = "alarm 3: anna at 10.0.0.7, 1 min 15 s ago\n  \
                        21 files written over with data that looks random\n  \
                        1 file gone, with new ones that look random\n  \
                        2 files renamed to .locked\n  \
                        slowed to one operation a second until the alarm ends\n  \
                        snapshot: ransomware.2026-11-27T12:00:00Z\n";
        assert_eq!(one(&alarm), expected);
        let share = "data".to_owned();
        let none = RansomwareAlarms { share, alarms: Vec::new() };
        assert_eq!(list(&none), "There is no alarm about a client of the share data.\n");
    }
}
