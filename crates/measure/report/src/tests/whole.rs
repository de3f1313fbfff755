//! A report of all families on three servers, as `anabranch bench all` measures them.

use super::*;
use load::plan::{Extent, FAMILIES};

/// Bytes of the first page of `anabranch bench all`.
const FIRST_BYTES_MAX: usize = 60 * 1000;
/// Bytes of what a report is without the rows of each family: the first page, the statements, and what was measured.
const REPORT_BYTES_MAX: usize = 200 * 1000;
/// Bytes of any page.
const PAGE_BYTES_MAX: usize = 150 * 1000;

/// All rows of a family on a server that is so many times as fast as one that does a thousand operations a second.
fn family(of: &load::plan::Family, protocol: Protocol, server: &str, factor: f64) -> ResultFile {
    let plan = of.plan(protocol, &Extent::new(false));
    let rows: Vec<Row> =
        plan.rows.iter().enumerate().map(|(n, planned)| rated(&planned.key, n, factor)).collect();
    let comparisons =
        plan.comparisons.iter().map(|(base, other)| Comparison::of(&rows[*base], &rows[*other])).collect();
    let mut result = result(of.name, protocol, true, Vec::new());
    (result.rows, result.comparisons) = (rows, comparisons);
    result.environment.server = Some(server.into());
    result.environment.settings.insert("in turns with".into(), "the others".into());
    result
}

/// A row whose figures have as many digits as real ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rates"
)]
fn rated(key: &Key, n: usize, factor: f64) -> Row {
    let gain = 1.0 + f64::from(key.connections.min(4)) / 10.0;
    let mut row = Row::new(key.clone(), &[]);
    for repetition in 0..6u32 {
        let rate =
            (1000.0 * factor * gain * (1.0 + (n % 7) as f64 / 9.0)) as u64 + u64::from(repetition % 3) * 7;
        let mut latency = Histogram::default();
        (0..50).for_each(|step| latency.add(1_000_000_000 / rate * (30 + step)));
        let tally = Tally { count: rate, bytes: rate * key.block_bytes, latency };
        let operation = if key.mix == Mix::Metadata { Operation::Cycle } else { Operation::Read };
        row.repetitions.push(Repetition {
            began_seconds: f64::from(repetition) * 10.0,
            seconds: 1.0,
            operations: BTreeMap::from([(operation, tally)]),
            connections: key.connections * key.clients,
            client_cpu_seconds: Some(0.4),
            server_cpu_seconds: Some(0.6 / factor),
            ..Repetition::default()
        });
    }
    row.aggregate();
    row
}

/// All that `bench all` measures: Samba over SMB and Ganesha over NFSv4.1, beside Anabranch.
fn all_families() -> Vec<(String, ResultFile)> {
    let mut all = Vec::new();
    for of in FAMILIES {
        for (protocol, peer, factor) in
            [(Protocol::Smb, "Samba 4.17.12-Debian", 0.5), (Protocol::Nfs41, "NFS-Ganesha 4.3", 0.8)]
        {
            if of.protocols.contains(&protocol) {
                let name = |server: &str| format!("{}.{server}.{}.json", of.name, protocol.name());
                all.push((name("anabranch"), family(of, protocol, "Anabranch 0.2.0", 1.0)));
                all.push((name("peer"), family(of, protocol, peer, factor)));
            }
        }
    }
    all
}

#[test]
fn the_pages_of_all_families_stay_small() {
    let results = all_families();
    let rows: usize = results.iter().map(|(_, result)| result.rows.len()).sum();
    assert!(results.len() == 42 && rows > 600, "{} results with {rows} rows", results.len());
    let report = Report::of(&results, Profile::Other);
    let pages = pages(&report);
    let sizes: Vec<(&str, usize)> = pages.iter().map(|(name, page)| (name.as_str(), page.len())).collect();
    let all: usize = sizes.iter().map(|(_, bytes)| bytes).sum();
    println!("{all} bytes: {sizes:?}");
    assert!(sizes[0].0 == "index.html" && sizes[0].1 < FIRST_BYTES_MAX, "{sizes:?}");
    let report: usize =
        sizes.iter().filter(|(name, _)| !name.starts_with("rows-")).map(|(_, bytes)| bytes).sum();
    assert!(report < REPORT_BYTES_MAX, "{report} bytes: {sizes:?}");
    assert!(sizes.iter().all(|(_, bytes)| *bytes < PAGE_BYTES_MAX), "{sizes:?}");
    let names: std::collections::BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for (name, page) in &pages {
        loads_nothing(page);
        for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            if link.starts_with("https://") || link.starts_with("data:") {
                continue;
            }
            let target = if file.is_empty() { name.as_str() } else { file };
            assert!(names.contains(target), "{name}: {link}");
            let there = &pages.iter().find(|(of, _)| of == target).unwrap().1;
            let id = format!("id=\"{fragment}\"");
            assert!(fragment.is_empty() || there.contains(&id), "{name}: {link}");
        }
    }
    // Every row is somewhere.
    for (_, result) in &results {
        for row in &result.rows {
            let label = text_of(&words::row(result.environment.protocol, &row.key));
            assert!(pages.iter().any(|(_, page)| page.contains(&label)), "{label}");
        }
    }
}

fn text_of(text: &str) -> String {
    text.replace('&', "&amp;")
}

#[test]
fn the_first_page_answers_the_question() {
    let report = Report::of(&all_families(), Profile::Other);
    assert_eq!(report.summary.rating, Rating::Good);
    assert_eq!(
        report.summary.headline,
        "Anabranch 0.2.0 is good: faster than its peers in 19 of 19 kinds of work, slower in none"
    );
    let peers: Vec<(&str, usize)> =
        report.scorecards.iter().map(|card| (card.peer.as_str(), card.rows.len())).collect();
    assert_eq!(peers, [("Samba 4.17.12-Debian", 11), ("NFS-Ganesha 4.3", 10)]);
    for card in &report.scorecards {
        assert!(card.in_turns && card.rows.iter().all(|row| row.standing == Standing::Ahead), "{card:#?}");
    }
    let advice = report.advice();
    assert!(advice.iter().all(|one| one.server.as_deref() == Some("Anabranch 0.2.0")));
    let page = &pages(&report)[0].1;
    for part in [
        "id=\"peers\"",
        "id=\"changes\"",
        "Against Samba",
        "Against NFS-Ganesha",
        "max_channels=",
        "nconnect=",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// Ratings by what is ahead and behind.
#[test]
fn a_server_is_called_good_only_if_it_is() {
    let against = |factor: f64, other: f64| {
        let of = |name: &str| FAMILIES.iter().find(|family| family.name == name).unwrap();
        let mut results = Vec::new();
        for (name, peer) in [("mix-10", factor), ("metadata", factor), ("single-thread", other)] {
            results.push((format!("{name}.json"), family(of(name), Protocol::Smb, "Anabranch 0.2.0", 1.0)));
            results.push((format!("{name}.peer.json"), family(of(name), Protocol::Smb, "Samba", peer)));
        }
        Report::of(&results, Profile::Other).summary
    };
    for (factor, other, rating) in [
        (0.5, 0.5, Rating::Good),
        (0.5, 2.0, Rating::GoodWithExceptions),
        (2.0, 0.5, Rating::Behind),
        (2.0, 2.0, Rating::Behind),
        (1.0, 1.0, Rating::Even),
    ] {
        let summary = against(factor, other);
        assert_eq!(summary.rating, rating, "{summary:#?}");
    }
    let alone = vec![("a.json".to_owned(), family(&FAMILIES[0], Protocol::Smb, "Anabranch 0.2.0", 1.0))];
    let summary = Report::of(&alone, Profile::Other).summary;
    assert_eq!(summary.rating, Rating::Alone);
    let mut wrong = alone;
    wrong[0].1.rows[3].repetitions[1].wrong_blocks = 2;
    let summary = Report::of(&wrong, Profile::Other).summary;
    assert_eq!(
        (summary.rating, summary.headline.as_str()),
        (Rating::NotSound, "Anabranch 0.2.0 is not sound: 2 blocks came back with wrong bytes")
    );
}

/// Every statement of the documents stands under a heading that has an address.
#[test]
fn each_statement_has_a_section() {
    let report = report(&[], Profile::Other);
    for table in &report.documents {
        assert!(table.link.starts_with("https://learn.microsoft.com/"), "{}", table.document);
        for statement in &table.statements {
            assert!(!statement.section.is_empty() && statement.link.contains('#'), "{}", statement.id);
        }
    }
    assert!(!markdown(&report).contains(", line "));
}
