use std::collections::BTreeMap;

use super::*;
use load::histogram::Histogram;
use load::result::{
    Comparison, Environment, Host, Key, Method, Mix, Negotiated, Operation, Outcome, Protocol, Repetition,
    Row, ServerCounters, Tally,
};

/// A row of six repetitions, each of one second.
fn row(key: Key, rates: [u64; 6]) -> Row {
    let operation = match key.mix {
        Mix::ReadPercent(0) => Operation::Write,
        Mix::ReadPercent(_) => Operation::Read,
        Mix::Metadata => Operation::Cycle,
    };
    let mut row = Row::new(key.clone(), &[]);
    for (n, rate) in rates.into_iter().enumerate() {
        let mut latency = Histogram::default();
        (0..rate).for_each(|_| latency.add(8_000_000_000 / rate));
        let tally = Tally { count: rate, bytes: rate * key.block_bytes, latency };
        row.repetitions.push(Repetition {
            began_seconds: f64::from(u8::try_from(n).unwrap()) * 10.0,
            seconds: 1.0,
            operations: BTreeMap::from([(operation, tally)]),
            connections: key.connections * key.clients,
            ..Repetition::default()
        });
    }
    row.aggregate();
    row
}

fn key(connections: u32, block_bytes: u64, reads: u8) -> Key {
    let files = 10;
    Key { files, threads: 8, queue_depth: 8, ..load::plan::key(connections, block_bytes, reads) }
}

/// Steady figures around one.
fn about(rate: u64) -> [u64; 6] {
    [rate, rate + 1, rate - 1, rate + 2, rate - 2, rate]
}

fn result(family: &str, protocol: Protocol, loopback: bool, rows: Vec<Row>) -> ResultFile {
    let comparisons = rows.iter().skip(1).map(|row| Comparison::of(&rows[0], row)).collect();
    ResultFile {
        format: load::result::FORMAT,
        program: "anabranch".into(),
        began: 1_795_345_511,
        family: family.into(),
        documents: Vec::new(),
        method: Method {
            quick: false,
            repetitions: 6,
            first_pass_discarded: true,
            interleaved: true,
            ramp_seconds: 0.3,
            seconds: 1.0,
            data_checked: true,
        },
        environment: Environment {
            target: "smb://bench@192.0.2.1/data".into(),
            protocol,
            client: Host { cpu: "a CPU".into(), cpus: 2, kernel: "Linux 6.1".into(), ..Host::default() },
            loopback,
            round_trip_us: Some(40.0),
            negotiated: Negotiated { connections: 4, ..Negotiated::default() },
            server: Some("Samba".into()),
            settings: BTreeMap::new(),
        },
        rows,
        comparisons,
        outcome: Outcome::Complete,
        problems: Vec::new(),
        not_honoured: Vec::new(),
    }
}

/// Reads of 64 KiB: 1,000 a second over one channel, and so many over four.
fn channels(loopback: bool, rate: u64) -> ResultFile {
    let rows = vec![row(key(1, 65536, 100), about(1000)), row(key(4, 65536, 100), about(rate))];
    result("smb-mc-multifile", Protocol::Smb, loopback, rows)
}

fn report(results: &[ResultFile], profile: Profile) -> Report {
    let named: Vec<_> = results.iter().enumerate().map(|(n, r)| (format!("{n}.json"), r.clone())).collect();
    Report::of(&named, profile)
}

/// The findings of a statement, by its number and the beginning of its text.
fn findings<'a>(report: &'a Report, id: &str, begins: &str) -> &'a [Finding] {
    let statements = || report.documents.iter().flat_map(|table| &table.statements);
    &statements().find(|s| s.id == id && s.statement.starts_with(begins)).unwrap().findings
}

fn judged(results: &[ResultFile], id: &str, begins: &str) -> (Judgement, Option<Obstacle>) {
    let report = report(results, Profile::Other);
    let [finding] = findings(&report, id, begins) else { panic!("{id}: not one finding") };
    assert_eq!(finding.verdict, finding.judgement.verdict());
    (finding.judgement, finding.obstacle)
}

#[test]
fn over_a_network_a_ratio_decides() {
    let of = |rate| judged(&[channels(false, rate)], "1.20", "");
    assert_eq!(of(3000), (Judgement::Reproduced, None));
    assert_eq!(of(1998), (Judgement::TooNoisy, Some(Obstacle::Noise)), "the interval reaches into the range");
    assert_eq!(of(1900), (Judgement::Worse, None));
    assert_eq!(of(4500), (Judgement::Better, None));
}

#[test]
fn on_loopback_gains_of_a_network_are_not_tested_whatever_the_ratio() {
    for rate in [1000, 3000, 9000] {
        let cannot = (Judgement::CannotBeTested, Some(Obstacle::Conditions));
        assert_eq!(judged(&[channels(true, rate)], "1.20", ""), cannot);
    }
    // Both figures stand there all the same.
    let report = report(&[channels(true, 3000)], Profile::Other);
    let [case] = findings(&report, "1.20", "")[0].cases.as_slice() else { panic!("not one row") };
    assert!((case.ratio.unwrap().ratio.median - 3.0).abs() < 0.01 && case.base.is_some());
}

#[test]
fn a_loss_that_needs_no_network_is_tested_on_loopback() {
    let at = |percent: u64| {
        let one = Key { files: 1, ..key(1, 4096, 100) };
        let four = Key { files: 1, ..key(4, 4096, 100) };
        let rows = vec![row(one, about(1000)), row(four, about(10 * percent))];
        judged(
            &[result("smb-mc-singlefile", Protocol::Smb, true, rows)],
            "1.21",
            "Several threads on one file, small",
        )
    };
    assert_eq!(at(90), (Judgement::Reproduced, None));
    assert_eq!(at(100), (Judgement::Better, None), "no loss is no failure");
    assert_eq!(at(70), (Judgement::Worse, None));
}

#[test]
fn rows_that_disagree_are_mixed_and_rows_that_cannot_tell_refute_nothing() {
    let with = |rate: u64, other: [u64; 6]| {
        let mut result = channels(false, rate);
        result.rows.push(row(key(1, 4096, 100), about(1000)));
        result.rows.push(row(key(4, 4096, 100), other));
        result
    };
    let noisy = [1100, 4000, 1300, 3000, 900, 5000];
    for (rate, other, judgement, reason) in [
        (
            3000,
            about(1100),
            Judgement::Mixed,
            "as documented (1 of 2 rows); less than documented (1 of 2 rows)",
        ),
        (
            3000,
            about(9000),
            Judgement::Mixed,
            "as documented (1 of 2 rows); more than documented (1 of 2 rows)",
        ),
        (
            1100,
            about(9000),
            Judgement::Mixed,
            "less than documented (1 of 2 rows); more than documented (1 of 2 rows)",
        ),
        (9000, about(9000), Judgement::Better, "more than documented (2 rows)"),
        (1100, noisy, Judgement::Worse, "less than documented (1 of 2 rows)"),
        (3000, noisy, Judgement::TooNoisy, "the interval holds documented and other figures (1 of 2 rows)"),
    ] {
        let result = with(rate, other);
        assert_eq!(judged(std::slice::from_ref(&result), "1.20", "").0, judgement, "{rate} {other:?}");
        let report = report(&[result], Profile::Other);
        assert_eq!(findings(&report, "1.20", "")[0].reason, reason);
    }
}

#[test]
fn wrong_bytes_and_missing_channels_prove_nothing() {
    let mut wrong = channels(false, 3000);
    wrong.rows[1].repetitions[2].wrong_blocks = 1;
    let mut fewer = channels(false, 3000);
    fewer.rows[1].repetitions[0].connections = 2;
    for (result, reason) in [(wrong, "wrong bytes came back"), (fewer, "2 of 4 connections were there")] {
        let report = report(&[result], Profile::Other);
        let finding = &findings(&report, "1.20", "")[0];
        assert_eq!((finding.verdict, finding.reason.as_str()), (Verdict::CannotBeTested, reason));
    }
}

#[test]
fn absolute_figures_hold_for_their_service_only() {
    let reads = || row(Key { files: 4, ..key(4, 4096, 100) }, about(450_000));
    let of = |loopback, profile| {
        let result = result("mix-10", Protocol::Nfs3, loopback, vec![reads()]);
        findings(&report(&[result], profile), "5.06", "4 KiB random reads")[0].verdict
    };
    assert_eq!(of(false, Profile::AzureNetappFiles), Verdict::Reproduced);
    assert_eq!(of(true, Profile::AzureNetappFiles), Verdict::CannotBeTested);
    assert_eq!(of(false, Profile::AzureFiles), Verdict::CannotBeTested);
    assert_eq!(of(false, Profile::Other), Verdict::CannotBeTested);
}

#[test]
fn a_document_speaks_of_its_protocol() {
    let mut result = channels(false, 3000);
    result.environment.protocol = Protocol::Nfs41;
    assert_eq!(judged(&[result], "1.20", ""), (Judgement::CannotBeTested, Some(Obstacle::NotMeasured)));
}

#[test]
fn trends_follow_the_mix() {
    let mix = |rates: [u64; 3]| {
        let rows =
            [100, 50, 0].into_iter().zip(rates).map(|(reads, rate)| row(key(4, 4096, reads), about(rate)));
        let result = result("mix-10", Protocol::Nfs41, true, rows.collect());
        findings(&report(&[result], Profile::Other), "5.09", "")[0].judgement
    };
    assert_eq!(mix([3000, 2000, 1000]), Judgement::Reproduced);
    assert_eq!(mix([2000, 3000, 1000]), Judgement::Mixed);
    assert_eq!(mix([1000, 2000, 3000]), Judgement::Better, "writes that are quicker than reads are no fault");
    assert_eq!(mix([1000, 1000, 1000]), Judgement::TooNoisy);
}

#[test]
fn metadata_caching_is_tested_between_two_results_that_say_so() {
    let names = |cache: &str, rate| {
        let cycles = Key { mix: Mix::Metadata, ..key(1, 0, 0) };
        let mut result = result("metadata", Protocol::Smb, true, vec![row(cycles, about(rate))]);
        result.environment.settings.insert("metadata-cache".into(), cache.into());
        result
    };
    let of = |off, on| judged(&[names("off", off), names("on", on)], "1.33", "Metadata caching: more IOPS").0;
    assert_eq!(of(1000, 2000), Judgement::Reproduced);
    assert_eq!(of(1000, 1200), Judgement::Worse);
    assert_eq!(
        judged(&[names("on", 2000)], "1.33", "Metadata caching: more IOPS").1,
        Some(Obstacle::NotMeasured)
    );
}

#[test]
fn results_of_a_family_are_laid_beside_each_other_ours_against_theirs() {
    let (mut ours, theirs) = (channels(false, 3000), channels(false, 2000));
    ours.environment.server = Some("Anabranch".into());
    let report = report(&[ours, theirs], Profile::Other);
    let [beside] = report.beside.as_slice() else { panic!("not one pair") };
    assert_eq!((beside.base, beside.other, beside.rows.len()), (1, 0, 2));
    assert!(beside.rows.iter().all(|row| row.in_turns), "they began at the same time");
    let ratios: Vec<String> = beside.rows.iter().map(BesideRow::ratio_in_words).collect();
    assert!(
        ratios[0].starts_with("no measurable effect, 1.00x") && ratios[1].starts_with("1.50x"),
        "{ratios:?}"
    );
}

#[test]
fn a_share_with_a_plan_is_not_said_to_be_slower_than_one_without() {
    let (mut ours, mut theirs) = (channels(false, 1000), channels(false, 3000));
    ours.environment.server = Some("Anabranch".into());
    theirs.environment.server = Some("Samba".into());
    let page = html(&report(&[ours.clone(), theirs.clone()], Profile::Other));
    assert!(page.contains("class=\"ratio no\"") && !page.contains("This compares plans"));
    ours.environment.settings.insert("plan".into(), "custom iops=5000".into());
    let report = report(&[ours, theirs], Profile::Other);
    let note = "the share of Anabranch, SMB 3.1.1 has the plan custom iops=5000, that of Samba, SMB 3.1.1 has no plan";
    assert!(html(&report).contains(note) && !html(&report).contains("class=\"ratio no\""));
    assert!(markdown(&report).contains(note));
}

#[test]
fn what_did_not_reach_the_server_is_told() {
    let mut result = channels(true, 3000);
    for repetition in &mut result.rows[0].repetitions {
        repetition.server =
            Some(ServerCounters { read_bytes: repetition.bytes() / 4, ..ServerCounters::default() });
    }
    let report = report(&[result], Profile::Other);
    assert_eq!(report.runs[0].counters[0].meaning, "75 % from a cache in between");
    assert!(html(&report).contains("75 % from a cache in between"));
}

#[test]
fn charts_have_a_line_for_each_number_of_channels() {
    let blocks = [4096, 65536, 1 << 20];
    let rows = blocks.iter().flat_map(|block| [1, 4].map(|n| row(key(n, *block, 100), about(1000))));
    let report = report(&[result("smb-mc-multifile", Protocol::Smb, true, rows.collect())], Profile::Other);
    let titles: Vec<&str> = report.runs[0].charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(
        titles,
        ["IOPS by block size: random reads", "Throughput by block size: random reads", "Latency percentiles"]
    );
    let chart = &report.runs[0].charts[0];
    assert_eq!(chart.ticks, ["4 KiB", "64 KiB", "1 MiB"]);
    assert_eq!(chart.series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["1 channel", "4 channels"]);
    assert!(chart.series.iter().all(|s| s.points.iter().all(Option::is_some)));
}

#[test]
fn a_page_stands_alone_and_has_its_parts() {
    let mut failed = result("limits", Protocol::Smb, true, Vec::new());
    failed.outcome = Outcome::Failed;
    failed.not_honoured.push("<b>a|b</b>".into());
    let report = report(&[channels(true, 3000), failed], Profile::Other);
    let page = html(&report);
    loads_nothing(&page);
    for part in [
        "default-src 'none'",
        "id=\"documents\"",
        "loopback",
        "nothing was measured",
        "&lt;b&gt;a|b&lt;/b&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let text = markdown(&report);
    assert!(text.contains("not honoured: \\<b\\>a\\|b\\</b\\>"), "{text}");
    assert!(text.contains("| 1.20 Several threads on several files"));
}

/// Nothing is asked for, all links are such that a reader follows, and each element that was opened is closed.
fn loads_nothing(page: &str) {
    for outside in ["http://", "<script", "@import", "url(", "src=", "<link rel=\"stylesheet"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let links = page.matches("https://").count();
    let of_documents = page.matches("<a href=\"https://learn.microsoft.com/en-us/azure/").count();
    assert_eq!(links, of_documents, "all links lead to the documents");
    for tag in [
        "table", "tbody", "tr", "td", "th", "details", "figure", "svg", "section", "ul", "ol", "li", "div",
        "p", "a",
    ] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn no_results_make_no_report_that_fails() {
    let empty = report(&[], Profile::Other);
    assert_eq!((empty.count(Verdict::Reproduced), empty.count(Verdict::NotReproduced)), (0, 0));
    assert_eq!(empty.summary.rating, Rating::NotSound);
    assert!(html(&empty).contains("Nothing could be measured") && !markdown(&empty).is_empty());
}

mod whole;
