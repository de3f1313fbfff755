use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Judged;
use load::histogram::Histogram;
use load::plan::{Extent, FAMILIES, family};
use load::result::{
    Comparison, Environment, FORMAT, Host, Key, Method, Mix, Negotiated, Operation, Outcome, Protocol,
    Repetition, ResultFile, Row, ServerCounters, Tally as Counted,
};

const REPETITIONS: usize = 6;

/// One second in which so many operations were done.
fn repetition(n: usize, key: &Key, rate: u64) -> Repetition {
    let operation = if key.mix == Mix::Metadata { Operation::Cycle } else { Operation::Read };
    let mut latency = Histogram::default();
    latency.add(1_000_000);
    let counted = Counted { count: rate, bytes: rate * key.block_bytes, latency };
    Repetition {
        began_seconds: f64::from(u32::try_from(n).unwrap()) * 10.0,
        seconds: 1.0,
        operations: BTreeMap::from([(operation, counted)]),
        connections: key.connections * key.clients,
        ..Repetition::default()
    }
}

/// A result of a family in which a row has the rates that are made of its key and the number of the repetition.
fn result(name: &str, protocol: Protocol, quick: bool, rate: impl Fn(&Key, usize) -> u64) -> ResultFile {
    let plan = family(name).unwrap().plan(protocol, &Extent::new(quick));
    let rows: Vec<Row> = plan
        .rows
        .iter()
        .map(|planned| {
            let mut row = Row::new(planned.key.clone(), &planned.documents);
            row.repetitions =
                (0..REPETITIONS).map(|n| repetition(n, &planned.key, rate(&planned.key, n))).collect();
            row.aggregate();
            row
        })
        .collect();
    let comparisons =
        plan.comparisons.iter().map(|(base, other)| Comparison::of(&rows[*base], &rows[*other]));
    ResultFile {
        format: FORMAT,
        program: "anabranch".into(),
        began: 1_795_345_511,
        family: name.into(),
        documents: Vec::new(),
        method: Method {
            quick,
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
            client: Host::default(),
            loopback: true,
            round_trip_us: None,
            negotiated: Negotiated::default(),
            server: Some("Anabranch 0.2.0".into()),
            settings: BTreeMap::new(),
        },
        comparisons: comparisons.collect(),
        rows,
        outcome: Outcome::Complete,
        problems: Vec::new(),
        not_honoured: Vec::new(),
    }
}

/// Rates around one, the same noise of one in a hundred for all rows.
fn about(rate: u64, n: usize) -> u64 {
    rate + [0, 1, 2, 0, 1, 2][n] * rate / 200
}

fn list(results: &[ResultFile]) -> Vec<Recommendation> {
    let named: Vec<(String, &ResultFile)> =
        results.iter().enumerate().map(|(n, result)| (format!("{n}.json"), result)).collect();
    let named: Vec<(&str, &ResultFile)> =
        named.iter().map(|(name, result)| (name.as_str(), *result)).collect();
    ranked(&named, Profile::Other)
}

fn of(all: &[Recommendation], setting: Setting) -> &Recommendation {
    all.iter().find(|one| one.setting == setting).unwrap()
}

#[test]
fn channels_that_help_are_advised_once_with_the_rows_that_they_cost() {
    // Four help by half, but for large writes, which they cost a fifth.
    let rate = |key: &Key, n: usize| match (key.connections, key.block_bytes, key.mix) {
        (1, ..) => about(10_000, n),
        (_, 1_048_576, Mix::ReadPercent(0)) => about(8_000, n),
        _ => about(15_000, n),
    };
    let all = list(&[
        result("smb-mc-multifile", Protocol::Smb, false, rate),
        result("smb-mc-singlefile", Protocol::Smb, false, rate),
    ]);
    let channels = of(&all, Setting::SmbChannels);
    assert_eq!((channels.action, channels.server.as_deref()), (Action::Change, Some("Anabranch 0.2.0")));
    // More channels bring the same: fewer do.
    assert_eq!(channels.value.as_deref(), Some("2"), "{channels:#?}");
    assert_eq!(channels.results, ["0.json", "1.json"]);
    let conflict = channels.conflict.as_deref().unwrap();
    assert!(
        conflict.starts_with("it costs 2 of 14 rows, most connections=2 bs=1MiB op=randwrite"),
        "{conflict}"
    );
    assert!(channels.commands.iter().any(|command| command.line.contains("max_channels=2")));
    assert_eq!(all.iter().filter(|one| one.setting == Setting::SmbChannels).count(), 1);
}

#[test]
fn more_connections_are_advised_where_they_surely_bring_more() {
    let rate = |key: &Key, n: usize| about(10_000 * u64::from(key.connections.min(8)), n);
    let all = list(&[result("nfs-nconnect", Protocol::Nfs41, false, rate)]);
    let connections = of(&all, Setting::NfsConnections);
    assert_eq!((connections.action, connections.value.as_deref()), (Action::Change, Some("8")));
    assert_eq!(connections.commands[0].line, "mount -t nfs -o nconnect=8 ...");
    let values: Vec<&str> = connections.tried.iter().map(|tried| tried.value.as_str()).collect();
    assert_eq!(values, ["2", "4", "8", "16"]);
    assert!(!all.iter().any(|one| one.text.contains("more than 4 connections bring nothing")), "{all:#?}");
}

#[test]
fn channels_that_cost_are_switched_off_and_connections_are_left_at_one() {
    let rate = |key: &Key, n: usize| about(if key.connections == 1 { 10_000 } else { 7_000 }, n);
    let smb = list(&[result("single-thread", Protocol::Smb, false, rate)]);
    let channels = of(&smb, Setting::SmbChannels);
    assert_eq!((channels.action, channels.value.as_deref()), (Action::Change, Some("1")));
    assert!(channels.gain.unwrap().ratio.interval.unwrap()[0] > 1.3);
    let nfs = list(&[result("single-thread", Protocol::Nfs3, false, rate)]);
    let connections = of(&nfs, Setting::NfsConnections);
    assert_eq!((connections.action, connections.gain, connections.commands.len()), (Action::Keep, None, 0));
    assert!(connections.text.starts_with("Do without 4 NFS connections"), "{}", connections.text);
}

#[test]
fn no_effect_takes_an_equivalence_test_and_noise_is_called_noise() {
    let same = list(&[result("nfs-nconnect", Protocol::Nfs41, true, |_, n| about(10_000, n))]);
    let said = of(&same, Setting::NfsConnections);
    assert_eq!(said.action, Action::Keep);
    assert!(said.text.contains("no measurable effect"), "{}", said.text);
    let noise = |key: &Key, n: usize| if key.connections == 1 { 10_000 } else { [6_000, 15_000][n % 2] };
    let noisy = list(&[result("nfs-nconnect", Protocol::Nfs41, true, noise)]);
    let said = of(&noisy, Setting::NfsConnections);
    assert_eq!(said.action, Action::Undecided);
    assert!(said.text.starts_with("Too noisy to tell"), "{}", said.text);
}

#[test]
fn the_best_comes_first_and_what_was_not_measured_after_it() {
    let connections = |key: &Key, n: usize| about(if key.connections == 1 { 10_000 } else { 13_000 }, n);
    let ahead = |key: &Key, n: usize| about(if key.queue_depth == 1 { 10_000 } else { 12_000 }, n);
    let limited = |family| {
        let mut result = result(family, Protocol::Nfs41, false, |_, n| about(1_000, n));
        for repetition in result.rows.iter_mut().flat_map(|row| &mut row.repetitions) {
            repetition.server = Some(ServerCounters { throttled: 900, ..ServerCounters::default() });
        }
        result
    };
    let reached = list(&[limited("limits")]);
    assert!(reached.iter().all(|one| one.setting != Setting::Plan), "it is there to wait: {reached:#?}");
    let all = list(&[
        result("nfs-nconnect", Protocol::Nfs41, true, connections),
        result("nfs-readahead", Protocol::Nfs41, false, ahead),
        limited("mix-10"),
    ]);
    let first: Vec<Setting> = all.iter().take(3).map(|one| one.setting).collect();
    // The read-ahead: 12,000 of 256 KiB for 10,000 of 128 KiB.
    assert_eq!(first, [Setting::ReadAhead, Setting::NfsConnections, Setting::Plan], "{all:#?}");
    assert_eq!((all[2].action, all[2].gain), (Action::Change, None));
}

#[test]
fn the_cache_of_names_is_judged_between_two_results() {
    let with = |cache: &str, rate: u64| {
        let mut result = result("metadata", Protocol::Smb, false, move |_, n| about(rate, n));
        result.environment.settings.insert("metadata-cache".into(), cache.into());
        result
    };
    let all = list(&[with("off", 1_000), with("on", 2_000)]);
    let cache = of(&all, Setting::MetadataCache);
    assert_eq!((cache.action, cache.value.as_deref()), (Action::Change, Some("on")));
    assert_eq!(cache.commands[0].line, "anabranch share set NAME --metadata-cache on");
    let unknown = list(&[result("metadata", Protocol::Smb, false, |_, n| about(1_000, n))]);
    let cache = of(&unknown, Setting::MetadataCache);
    assert_eq!(cache.action, Action::Undecided);
    assert!(cache.commands[0].line.contains("--note metadata-cache=on"));
}

#[test]
fn each_server_has_a_list_of_its_own() {
    let of_channels = |server: Option<&str>, factor: u64| {
        let mut result = result("smb-mc-multifile", Protocol::Smb, true, move |key, n| {
            about(if key.connections == 1 { 10_000 } else { 1_000 * factor }, n)
        });
        result.environment.server = server.map(str::to_owned);
        result
    };
    let all = list(&[
        of_channels(Some("Samba 4.17"), 5),
        of_channels(None, 10),
        of_channels(Some("Anabranch"), 20),
    ]);
    let told: Vec<(Option<&str>, Action)> = all
        .iter()
        .filter(|one| one.setting == Setting::SmbChannels)
        .map(|one| (one.server.as_deref(), one.action))
        .collect();
    assert_eq!(
        told,
        [(Some("Anabranch"), Action::Change), (Some("Samba 4.17"), Action::Change), (None, Action::Keep)]
    );
}

#[test]
fn wrong_bytes_and_missing_connections_are_no_evidence() {
    let rate = |key: &Key, n: usize| about(if key.connections == 1 { 10_000 } else { 20_000 }, n);
    let mut wrong = result("smb-mc-multifile", Protocol::Smb, true, rate);
    for row in wrong.rows.iter_mut().filter(|row| row.key.connections > 1) {
        row.repetitions[1].wrong_blocks = 1;
    }
    let mut fewer = result("smb-mc-multifile", Protocol::Smb, true, rate);
    for row in fewer.rows.iter_mut().filter(|row| row.key.connections > 1) {
        row.repetitions[1].connections = 1;
    }
    for unsound in [wrong, fewer] {
        assert!(of(&list(&[unsound]), Setting::SmbChannels).gain.is_none());
    }
    assert_eq!(list(&[]), []);
}

/// What a random row is to its base: a factor for each number of connections and setting, and noise.
#[derive(Debug, Clone)]
struct Landscape {
    factors: Vec<f64>,
    noise: Vec<f64>,
}

impl Landscape {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
    fn rate(&self, key: &Key, n: usize) -> u64 {
        let text = key.to_string();
        let at =
            |salt: usize| text.bytes().fold(salt, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let factor = self.factors[at(7) % self.factors.len()];
        let noise = self.noise[at(n) % self.noise.len()];
        (10_000.0 * factor * noise) as u64 + 1
    }
}

fn landscape() -> impl Strategy<Value = Landscape> {
    let calm = prop::collection::vec(0.99..1.01f64, 7);
    let wild = prop::collection::vec(0.6..1.6f64, 7);
    (prop::collection::vec(0.3..3.0f64, 1..9), prop_oneof![calm, wild])
        .prop_map(|(factors, noise)| Landscape { factors, noise })
}

fn random_results() -> impl Strategy<Value = Vec<ResultFile>> {
    let families: Vec<(&'static str, Protocol)> =
        FAMILIES.iter().flat_map(|f| f.protocols.iter().map(|protocol| (f.name, *protocol))).collect();
    let one = (prop::sample::select(families), landscape(), any::<bool>(), any::<bool>(), 0..3usize)
        .prop_map(|((name, protocol), landscape, quick, ours, note)| {
            let mut result = result(name, protocol, quick, |key, n| landscape.rate(key, n));
            result.environment.server = Some(if ours { "Anabranch 0.2.0" } else { "Samba 4.17" }.into());
            if note > 0 {
                let cache = if note == 1 { "on" } else { "off" };
                result.environment.settings.insert("metadata-cache".into(), cache.into());
            }
            result
        });
    prop::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each setting once for each server; a change has a measured gain or none was measured; what is kept or undecided has none.
    #[test]
    fn a_list_does_not_contradict_itself_or_the_measurement(results in random_results()) {
        let all = list(&results);
        let mut seen = BTreeSet::new();
        for one in &all {
            prop_assert!(seen.insert((one.server.clone(), one.setting)), "twice: {one:?}");
            let tried = |value: &str| one.tried.iter().find(|tried| tried.value == value);
            match (one.action, one.value.as_deref()) {
                (Action::Change, Some("1")) => {
                    prop_assert!(one.tried.iter().any(|tried| tried.conclusion == Conclusion::Lower));
                    prop_assert!(one.tried.iter().all(|tried| tried.conclusion != Conclusion::Higher));
                }
                (Action::Change, Some(value)) => {
                    prop_assert_eq!(tried(value).unwrap().conclusion, Conclusion::Higher);
                }
                (_, value) => prop_assert!(value.is_none() && one.gain.is_none(), "{one:?}"),
            }
            if let Some(gain) = one.gain {
                prop_assert_eq!(gain.conclusion(), Conclusion::Higher);
            }
            // Where a value of a setting that can be changed surely helps, it is not kept from being advised.
            let helps = one.tried.iter().any(|tried| tried.conclusion == Conclusion::Higher);
            if helps && one.setting != Setting::SmbEncryption {
                prop_assert_eq!(one.action, Action::Change);
            }
            let is_equal = |tried: &Tried| tried.conclusion == Conclusion::NoEffect;
            if one.text.contains("no measurable effect") || one.text.contains("that can be measured") {
                prop_assert!(one.tried.iter().any(is_equal), "{one:?}");
            }
            for tried in &one.tried {
                let Tally { rows, higher, lower, no_effect, too_noisy } = tried.tally;
                prop_assert_eq!(rows, higher + lower + no_effect + too_noisy);
            }
        }
        let order: Vec<_> = all.iter().map(|one| (one.server.as_deref() != Some("Anabranch 0.2.0"), rank(one))).collect();
        prop_assert!(order.is_sorted(), "{order:?}");
    }

    /// Advice on a row that was measured says what the measurement says.
    #[test]
    fn advice_on_a_row_says_what_was_measured(results in random_results()) {
        for result in &results {
            for Judged { row, advice } in of_result(result, Profile::Other) {
                for said in advice.iter().filter(|said| said.source == Source::Measured) {
                    let figure = said.figures.iter().find(|figure| figure.starts_with("measured: ")).unwrap();
                    let is_noisy = figure.ends_with("too noisy to tell");
                    let is_equal = figure.ends_with("no measurable effect");
                    // What encryption costs is held against what is expected of it, more than four against four.
                    if matches!(said.rule, 1..=3 | 7 | 13) {
                        prop_assert_eq!(said.verdict == Verdict::Yellow, is_noisy || is_equal, "{}: {:?}", row, said);
                    }
                    if said.text.starts_with("no measurable effect") || said.text.contains("that can be measured") {
                        prop_assert!(is_equal, "{}: {:?}", row, said);
                    }
                    if said.text.starts_with("too noisy") {
                        prop_assert!(is_noisy, "{}: {:?}", row, said);
                    }
                }
            }
        }
    }
}
