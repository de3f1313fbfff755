//! Compares each table of `docs/plans.md` with the plans.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use anabranch_limits::{Burst, GIB, Limits, MIB, Plan, Provisioned, TIB, check_pools};

const DOCUMENT: &str = include_str!("../../../../docs/plans.md");

/// The rows of the only table whose heading begins with `head`, without the heading. Text in a cell is without markup.
fn table(head: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let wanted = |line: &&str| line.starts_with(head);
    assert_eq!(DOCUMENT.lines().filter(wanted).count(), 1, "the tables that begin with {head}");
    let after = DOCUMENT.lines().skip_while(|line| !line.starts_with(head));
    let rows: Vec<_> = after.skip(2).take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "{head} has no rows");
    rows
}

fn plain(cell: &str) -> String {
    cell.replace('`', "")
}

fn plan(cell: &str) -> Plan {
    plain(cell).parse().unwrap_or_else(|e| panic!("{cell}: {e}"))
}

/// A number as printed, with commas; none for a dash.
fn number(cell: &str) -> Option<u64> {
    (cell != "-").then(|| cell.replace(',', "").parse().unwrap_or_else(|e| panic!("{cell}: {e}")))
}

/// IOPS, burst IOPS, credits and MiB/s; without bursts the baseline is the maximum.
fn figures(limits: &Limits) -> [Option<u64>; 4] {
    let burst = limits.burst.or_else(|| limits.iops.map(|iops| Burst { iops, credits: 0 }));
    let throughput = limits.throughput.map(|bytes| bytes / MIB);
    [limits.iops, burst.map(|burst| burst.iops), burst.map(|burst| burst.credits), throughput]
}

/// A plan with this name, the values that it requires, and these values.
fn least(name: &str, values: &str) -> String {
    let capacity = if name == "custom" || name == "unlimited" || values.contains("capacity=") {
        ""
    } else {
        " capacity=100GiB"
    };
    format!("{name}{capacity} {values}")
}

#[test]
fn media_and_billing_are_those_of_the_plans() {
    let rows = table("| plan | medium |");
    let names: Vec<_> = rows.iter().map(|row| plain(&row[0])).collect();
    assert_eq!(names, Plan::NAMES);
    for row in &rows {
        let values = if row[0] == "`custom`" { "iops=1" } else { "" };
        let plan = plan(&least(&plain(&row[0]), values));
        let media = plan.media().map_or_else(|| "any".to_owned(), |media| media.to_string());
        assert_eq!([media.as_str(), plan.billing().unwrap_or("-")], [&*row[1], &*row[2]], "{}", row[0]);
    }
}

#[test]
fn every_plan_has_the_values_that_are_named_and_no_others() {
    let rows = table("| plan | values |");
    let names: Vec<_> = rows.iter().map(|row| plain(&row[0])).collect();
    assert_eq!(names, Plan::NAMES);
    let all: BTreeSet<String> = rows.iter().flat_map(|row| values(&row[1])).map(|(name, _)| name).collect();
    for (row, plan) in rows.iter().zip(names) {
        let named = values(&row[1]);
        for value in &all {
            let refused = least(&plan, &format!("{value}=?")).parse::<Plan>().unwrap_err().to_string();
            let known = !refused.contains("has no limit");
            assert_eq!(named.iter().any(|(name, _)| name == value), known, "{plan} {value}: {refused}");
        }
        let needed = named.iter().any(|(_, may_be_left_out)| !may_be_left_out);
        assert_eq!(plan.parse::<Plan>().is_err(), needed, "{plan} without values");
    }
}

/// The values in a cell, and whether they may be left out.
fn values(cell: &str) -> Vec<(String, bool)> {
    let words = cell.split_whitespace().filter(|word| word.contains('`'));
    words.map(|word| (word.trim_matches(['[', ']', '`']).to_owned(), word.starts_with('['))).collect()
}

#[test]
fn ranges_end_where_they_are_said_to() {
    let mut seen = BTreeSet::new();
    for row in table("| plan | value | least | most |") {
        let (name, value) = (plain(&row[0]), plain(&row[1]));
        let is_taken = |given: &str| least(&name, &format!("{value}={given}")).parse::<Plan>().is_ok();
        for (end, step) in [(&row[2], -1), (&row[3], 1)] {
            assert!(is_taken(end), "{name} {value}={end}");
            let beyond = moved(end, step);
            assert!(!is_taken(&beyond), "{name} {value}={beyond} is said to be out of range");
        }
        seen.insert((name, value));
    }
    let named: BTreeSet<_> = table("| plan | values |")
        .iter()
        .map(|row| (plain(&row[0]), values(&row[1])))
        .filter(|(plan, _)| plan != "custom")
        .flat_map(|(plan, values)| values.into_iter().map(move |(value, _)| (plan.clone(), value)))
        .collect();
    assert_eq!(seen, named, "every value of a named plan has a range");
}

/// The only number in this text, changed by this amount.
fn moved(text: &str, by: i64) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let start = text.find(is_digit).unwrap_or_else(|| panic!("no number in {text}"));
    let (before, rest) = text.split_at(start);
    let (number, after) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
    let number: i64 = number.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    format!("{before}{}{after}", number + by)
}

#[test]
fn azure_files_plans_come_to_what_is_printed() {
    for row in table("| v1 GiB |") {
        let gib = number(&row[0]).unwrap();
        let limits = Plan::AzureFilesV1 { gib }.limits();
        let printed: Vec<_> = row[1..].iter().map(|cell| number(cell)).collect();
        assert_eq!(figures(&limits).to_vec(), printed, "{gib} GiB");
        assert_eq!(limits.capacity, Some(gib * GIB));
    }
    for row in table("| v2 plan |") {
        let printed: Vec<_> = row[1..].iter().map(|cell| number(cell)).collect();
        assert_eq!(figures(&plan(&row[0]).limits()).to_vec(), printed, "{}", row[0]);
    }
}

#[test]
fn limits_of_files_and_metadata_are_those_that_are_printed() {
    for row in table("| plans | metadata IOPS |") {
        let limits = plan(&least(&row[0], "")).limits();
        let size = |cell: &str| number(cell.trim_end_matches(" TiB")).map(|tib| tib * TIB);
        let printed = (
            number(&row[1]),
            number(&row[2]),
            number(&row[3]).map(|mib| mib * MIB),
            size(&row[4]),
            number(&row[5]),
            number(&row[6]),
        );
        let has = (
            limits.metadata_iops,
            limits.file_iops,
            limits.file_throughput,
            limits.file_size,
            limits.handles.root,
            limits.handles.file,
        );
        assert_eq!(has, printed, "{}", row[0]);
        assert_eq!(limits.io_unit, MIB);
    }
}

#[test]
fn azure_netapp_files_plans_come_to_what_is_printed() {
    for row in table("| plan | MiB/s for each TiB |") {
        let limits = plan(&format!("{} capacity=1TiB", plain(&row[0]))).limits();
        assert_eq!(limits.throughput, number(&row[1]).map(|mib| mib * MIB), "{}", row[0]);
    }
    for row in table("| ANF plan |") {
        // In hundredths, since 6.25 is printed.
        let (whole, part) = row[1].split_once('.').unwrap_or((&row[1], "0"));
        let hundredths = number(whole).unwrap() * 100 + part.parse::<u64>().unwrap();
        let limits = plan(&row[0]).limits();
        assert_eq!(limits.throughput.map(|bytes| bytes * 100 / MIB), Some(hundredths), "{}", row[0]);
        assert_eq!(limits.iops, None);
    }
}

#[test]
fn the_pool_that_is_printed_is_full() {
    let volumes: Vec<_> = table("| volumes of one pool |").iter().map(|row| plan(&row[0])).collect();
    assert_eq!(check_pools(&volumes), Ok(()));
    for (index, volume) in volumes.iter().enumerate() {
        let Plan::Anf { level, gib, qos, pool } = volume.clone() else { panic!("{volume}") };
        let mut more = volumes.clone();
        more[index] = Plan::Anf { level, gib: gib + 1, qos, pool };
        assert!(check_pools(&more).is_err(), "{volume} has room left");
    }
}

#[test]
fn changes_are_allowed_and_refused_as_printed() {
    let increased = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let hours = |n: u64| increased + Duration::from_secs(n * 3600);
    for row in table("| from | to, within 24 hours") {
        let before = Provisioned { plan: plan(&row[0]), increased: Some(increased) };
        let refused = before.change(plan(&row[1]), hours(23)).err();
        let limit = refused.map_or("-", |refused| refused.limit);
        assert_eq!(limit, row[2], "{} to {}", row[0], row[1]);
        assert!(before.change(plan(&row[1]), hours(24)).is_ok(), "{} to {}, a day later", row[0], row[1]);
    }
}

#[test]
fn what_is_refused_is_refused_in_these_words() {
    for row in table("| plan | what is said |") {
        let refused = plain(&row[0]).parse::<Plan>().unwrap_err();
        assert_eq!(refused.to_string().replace('`', ""), plain(&row[1]), "{}", row[0]);
    }
}
