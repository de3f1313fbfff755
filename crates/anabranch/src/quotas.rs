//! `anabranch quota`: how much users, groups and directories of a share may hold, and how much they do.

use std::fmt::Write;

use control::Administration as _;
use control::quotas::{NewQuota, Quota, Quotas};
use control_client::path_part;
use schedule::Utc;
use share::{QuotaFor, QuotaRule};

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{QuotaCommand, QuotaSet};
use crate::print::{bytes, harmless, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

const DAY: u64 = 24 * 60 * 60;

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &QuotaCommand) -> Result<()> {
    match command {
        QuotaCommand::Set(set) => {
            let administrator = Administrator::find(&set.asking, Intent::Change)?;
            let QuotaSet { share, subject, asking, .. } = set;
            let new = new_quota(set)?;
            let call = ("PUT", &*path(share, Some(subject)));
            let quota =
                administrator.call(call, Some(&new), |here| here.set_quota(share, subject, new.clone()))?;
            tell(asking, &quota, "was set")
        }
        QuotaCommand::List { share, asking } => {
            let quotas = all(share, asking)?;
            print(&if asking.json { json(&quotas)? } else { render(&quotas) })
        }
        QuotaCommand::Check { share, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let call = ("POST", &*path(share, None));
            let quotas = administrator.call(call, None::<&()>, |here| here.check_quotas(share))?;
            let said = format!("All files of the share {} are being counted.\n", harmless(&quotas.share));
            print(&if asking.json { json(&quotas)? } else { said })
        }
        QuotaCommand::Show { share, subject, asking } => {
            let quotas = all(share, asking)?;
            let wanted: QuotaFor =
                subject.parse().map_err(|e| Problem::new(Cause::Settings, format!("{e}"), ""))?;
            let wanted = wanted.to_string();
            let found = quotas.quotas.iter().find(|quota| quota.subject == wanted).ok_or_else(|| {
                let what = format!("the share {} has no quota of {subject}", quotas.share);
                Problem::new(
                    Cause::Refused,
                    what,
                    format!("`anabranch quota list {share}` lists its quotas."),
                )
            })?;
            print(&if asking.json { json(found)? } else { show(found, &quotas) })
        }
        QuotaCommand::Remove { share, subject, asking } => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let call = ("DELETE", &*path(share, Some(subject)));
            let quota = administrator.call(call, None::<&()>, |here| here.remove_quota(share, subject))?;
            tell(asking, &quota, "was removed")
        }
    }
}

fn all(share: &str, asking: &Asking) -> Result<Quotas> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    administrator.call(("GET", &path(share, None)), None::<&()>, |here| here.quotas(share))
}

fn path(share: &str, subject: Option<&str>) -> String {
    let of = subject.map(|subject| format!("/{}", path_part(subject))).unwrap_or_default();
    format!("/v1/shares/{}/quotas{of}", path_part(share))
}

/// The limits, which are written as in the configuration.
fn new_quota(QuotaSet { subject, soft, hard, grace, .. }: &QuotaSet) -> Result<NewQuota> {
    let given = [("soft", soft), ("hard", hard), ("grace", grace)];
    let given = given.iter().filter_map(|(name, value)| Some(format!(" {name}={}", value.as_ref()?)));
    let rule: QuotaRule = format!("{subject}{}", given.collect::<String>())
        .parse()
        .map_err(|e| Problem::new(Cause::Settings, format!("{e}"), "docs/quotas.md has the forms."))?;
    let limits = rule.limits;
    let grace = grace.is_some().then(|| limits.grace().as_secs());
    Ok(NewQuota { soft: limits.soft(), hard: limits.hard(), grace })
}

fn tell(asking: &Asking, quota: &Quota, what: &str) -> Result<()> {
    let said = format!("The quota of {} {what}.\n", harmless(&quota.subject));
    print(&if asking.json { json(quota)? } else { said })
}

fn size(size: Option<u64>) -> String {
    size.map_or_else(|| "-".to_owned(), bytes)
}

fn since(at: Option<u64>) -> String {
    let written = |secs: u64| Utc::from_secs(i64::try_from(secs).unwrap_or(i64::MAX)).to_string();
    at.map_or_else(|| "-".to_owned(), written)
}

fn render(quotas: &Quotas) -> String {
    let row = |quota: &Quota| {
        let Quota { subject, used, soft, hard, over_since, .. } = quota;
        [harmless(subject), size(*used), size(*soft), size(*hard), since(*over_since)]
    };
    let holders = quotas.holders.iter().map(|holder| {
        let (used, over) = (size(Some(holder.used)), since(holder.over_since));
        [harmless(&holder.subject), used, "-".to_owned(), "-".to_owned(), over]
    });
    let rows: Vec<_> = quotas.quotas.iter().map(row).chain(holders).collect();
    let heads = ["SUBJECT", "USED", "SOFT", "HARD", "OVER SINCE"];
    format!("{}{}\n", table::render(heads, &rows), counted(quotas))
}

/// How old the figures are.
fn counted(quotas: &Quotas) -> String {
    match (quotas.counted, quotas.quotas.is_empty()) {
        (_, true) => "The share has no quotas.".to_owned(),
        (Some(at), _) => format!("All files were last counted at {}.", since(Some(at))),
        (None, _) if quotas.counting => {
            "All files are being counted. Nobody is held back until then.".to_owned()
        }
        (None, _) => "The files are not counted: the share is not served.".to_owned(),
    }
}

fn show(quota: &Quota, quotas: &Quotas) -> String {
    let Quota { subject, id, soft, hard, grace, used, over_since } = quota;
    let mut text = format!("subject    {}\n", harmless(subject));
    if let Some(id) = id {
        let _ = writeln!(text, "number     {id}");
    }
    for (name, value) in [("used", used), ("soft", soft), ("hard", hard)] {
        let _ = writeln!(text, "{name:<11}{}", size(*value));
    }
    if soft.is_some() {
        let days = format!("{} s", grace);
        let grace = if grace.is_multiple_of(DAY) { format!("{} days", grace / DAY) } else { days };
        let _ = writeln!(text, "grace      {grace}\nover since {}", since(*over_since));
    }
    let _ = writeln!(text, "{}", counted(quotas));
    text
}

#[cfg(test)]
mod tests {
    use control::quotas::Holder;

    use super::*;

    #[test]
    fn quotas_are_listed_with_what_is_held() {
        let anna = Quota {
            subject: "anna".to_owned(),
            id: Some(1000),
            soft: Some(1 << 30),
            grace: 14 * DAY,
            used: Some(3 << 29),
            over_since: Some(1_800_000_000),
            ..Quota::default()
        };
        let holder = Holder { subject: "1001".to_owned(), used: 4096, over_since: None };
        let quotas = Quotas {
            counted: Some(1_800_000_060),
            quotas: vec![anna.clone()],
            holders: vec![holder],
            ..Quotas::default()
        };
        let listed = "SUBJECT  USED     SOFT   HARD  OVER SINCE\n\
                      anna     1.5 GiB  1 GiB  -     2027-01-15T08:00:00Z\n\
                      1001     4 KiB    -      -     -\n\
                      All files were last counted at 2027-01-15T08:01:00Z.\n";
        assert_eq!(render(&quotas), listed);
        let shown = "subject    anna\nnumber     1000\nused       1.5 GiB\nsoft       1 GiB\nhard       -\ngrace      14 days\n\
                     over since 2027-01-15T08:00:00Z\nAll files were last counted at 2027-01-15T08:01:00Z.\n";
        assert_eq!(show(&anna, &quotas), shown);
    }
}
