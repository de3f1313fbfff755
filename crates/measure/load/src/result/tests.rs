use std::collections::BTreeMap;

use super::*;
use crate::histogram::Histogram;
use crate::statistics::Effect;

fn key(connections: u32) -> Key {
    let mix = Mix::ReadPercent(100);
    let settings = BTreeMap::new();
    Key {
        connections,
        block_bytes: 65536,
        mix,
        random: true,
        files: 10,
        threads: 8,
        queue_depth: 4,
        clients: 1,
        settings,
    }
}

/// A second of reads that took `us` microseconds each.
fn second(reads: u64, us: u64) -> Repetition {
    let mut latency = Histogram::default();
    (0..reads).for_each(|_| latency.add(us * 1000));
    let tally = Tally { count: reads, bytes: reads * 65536, latency };
    let operations = BTreeMap::from([(Operation::Read, tally)]);
    Repetition { seconds: 1.0, operations, client_cpu_seconds: Some(0.5), ..Repetition::default() }
}

fn row(connections: u32, repetitions: &[(u64, u64)]) -> Row {
    let mut row = Row::new(key(connections), &["1.20", "1.25"]);
    row.repetitions = repetitions.iter().map(|(reads, us)| second(*reads, *us)).collect();
    row.aggregate();
    row
}

fn file() -> ResultFile {
    let (base, other) = (row(1, &[(100, 50); 6]), row(4, &[(300, 20); 6]));
    let comparisons = vec![Comparison::of(&base, &other)];
    let method = Method {
        quick: false,
        repetitions: 6,
        first_pass_discarded: true,
        interleaved: true,
        ramp_seconds: 1.0,
        seconds: 1.0,
        data_checked: true,
    };
    let environment = Environment {
        target: "smb://bench@127.0.0.1:445/data".into(),
        protocol: Protocol::Smb,
        client: Host::default(),
        loopback: true,
        round_trip_us: Some(40.0),
        negotiated: Negotiated::default(),
        server: None,
        settings: BTreeMap::new(),
    };
    ResultFile {
        format: FORMAT,
        program: "anabranch".into(),
        began: 1_700_000_000,
        family: "smb-mc-multifile".into(),
        documents: vec!["1.20".into()],
        method,
        environment,
        rows: vec![base, other],
        comparisons,
        outcome: Outcome::Complete,
        problems: Vec::new(),
        not_honoured: Vec::new(),
    }
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let text = serde_json::to_string(&file()).unwrap();
    assert_eq!(ResultFile::from_json(&text).unwrap(), file());
}

#[test]
fn what_is_added_later_is_ignored_and_what_is_newer_is_refused() {
    let mut json: serde_json::Value = serde_json::to_value(file()).unwrap();
    json["added later"] = 1.into();
    assert_eq!(ResultFile::from_json(&json.to_string()).unwrap(), file());
    json["format"] = (FORMAT + 1).into();
    assert!(matches!(ResultFile::from_json(&json.to_string()), Err(FileError::Newer(_))));
    assert!(matches!(ResultFile::from_json("[]"), Err(FileError::Json(_))));
}

#[test]
fn a_row_has_medians_of_its_repetitions_and_percentiles_of_all_operations() {
    // One repetition is much slower; averaged percentiles would say 4 ms at most.
    let row = row(1, &[(100, 100), (110, 100), (90, 20_000)]);
    let measure = row.measure.unwrap();
    assert!((measure.rate.median - 100.0).abs() < 1e-9);
    assert!((measure.throughput.unwrap().median - 6_553_600.0).abs() < 1e-6);
    let latency = measure.latency[&Operation::Read];
    assert_eq!(latency.count, 300);
    assert!((latency.p50_us / 100.0 - 1.0).abs() < 0.01 && (latency.p90_us / 20_000.0 - 1.0).abs() < 0.01);
    assert!((measure.client_cpu_us.unwrap().median - 5000.0).abs() < 1.0);
    assert_eq!(measure.server_cpu_us, None);
}

#[test]
fn parts_of_a_cycle_are_not_counted_beside_it() {
    let mut repetition = second(0, 0);
    let tally = |count| Tally { count, ..Tally::default() };
    repetition.operations = BTreeMap::from([
        (Operation::Create, tally(10)),
        (Operation::Delete, tally(10)),
        (Operation::Cycle, tally(10)),
    ]);
    assert_eq!(repetition.rate(), Some(10.0));
    assert_eq!(repetition.throughput(), None);
}

#[test]
fn rows_compare_repetition_by_repetition() {
    let comparison = &file().comparisons[0];
    let rate = comparison.rate.unwrap();
    assert_eq!((rate.effect, rate.to_string().as_str()), (Effect::Higher, "3.00x (95 %: 3.00 to 3.00)"));
    assert_eq!(comparison.latency_p50.unwrap().effect, Effect::Lower);
    assert_eq!(comparison.documents, ["1.20", "1.25"]);
    let noisy = Comparison::of(
        &row(1, &[(100, 50), (90, 50), (110, 50)]),
        &row(4, &[(101, 50), (92, 50), (104, 50)]),
    );
    assert_eq!(noisy.rate.unwrap().to_string(), "too noisy to tell");
}

#[test]
fn a_row_without_operations_has_no_measure() {
    assert_eq!(row(1, &[(0, 0)]).measure, None);
    assert_eq!(row(1, &[]).measure, None);
}

#[test]
fn keys_read_as_people_write_them() {
    assert_eq!(key(4).to_string(), "connections=4 bs=64KiB op=randread files=10 threads=8 qd=4");
    let mut other = key(1);
    other.mix = Mix::ReadPercent(70);
    (other.block_bytes, other.clients) = (1 << 20, 2);
    other.settings.insert("signing".into(), "AES-128-GMAC".into());
    let text =
        "connections=1 bs=1MiB op=randrw reads=70% files=10 threads=8 qd=4 clients=2 signing=AES-128-GMAC";
    assert_eq!(other.to_string(), text);
}

#[test]
fn a_file_is_saved_whole() {
    let path = std::env::temp_dir().join(format!("anabranch-result-{}.json", std::process::id()));
    file().save(&path).unwrap();
    let read = ResultFile::load(&path);
    fs::remove_file(&path).unwrap();
    assert_eq!(read.unwrap(), file());
}
