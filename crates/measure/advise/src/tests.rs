//! Facts beside the verdicts that they have to lead to, for every rule.

use super::*;
use load::result::{Interface, Protocol};

use Verdict::{Green, Red, Yellow};

fn smb() -> Facts {
    Facts { protocol: Some(Protocol::Smb), ..Facts::default() }
}

fn nfs() -> Facts {
    Facts { protocol: Some(Protocol::Nfs41), ..Facts::default() }
}

fn work(threads: u32, files: u32, io_kib: u32) -> Work {
    Work {
        threads: Some(threads),
        files: Some(files),
        io_bytes: Some(f64::from(io_kib) * 1024.0),
        ..Work::default()
    }
}

fn queue(depth: f64, threads: u32, io_kib: u32, write_share: f64) -> Work {
    Work { queue_depth: Some(depth), write_share: Some(write_share), ..work(threads, 1, io_kib) }
}

fn interface(rss: bool, receive_queues: u32) -> Interface {
    Interface {
        name: "eth0".into(),
        rss: Some(rss),
        receive_queues: Some(receive_queues),
        ..Interface::default()
    }
}

fn path(connections: u32, connections_max: u32) -> Path {
    Path { connections: Some(connections), connections_max: Some(connections_max), ..Path::default() }
}

fn effect(change: Change, low: f64, high: f64) -> Vec<Effect> {
    vec![Effect { change, ratio: f64::midpoint(low, high), low, high }]
}

fn mount(directory: &str, nconnect: u32, read_ahead_kib: u64) -> Mount {
    Mount {
        directory: directory.into(),
        server: "192.0.2.1".into(),
        nconnect,
        read_ahead_kib: Some(read_ahead_kib),
        ..Mount::default()
    }
}

/// What rule `rule` says of `facts`.
fn verdict(rule: u8, facts: &Facts) -> Option<Verdict> {
    advise(facts).into_iter().find(|advice| advice.rule == rule).map(|advice| advice.verdict)
}

/// A row of a table: the rule, the facts, what it has to say.
type Case = (u8, Facts, Option<Verdict>);

fn check(cases: Vec<Case>) {
    for (rule, facts, expected) in cases {
        assert_eq!(verdict(rule, &facts), expected, "R{rule} of {facts:?}");
    }
}

#[test]
fn smb_channels_are_judged_by_threads_files_and_size() {
    let measured = |work, low, high| Facts { work, effects: effect(Change::Channels(4), low, high), ..smb() };
    check(vec![
        (1, Facts { work: work(8, 10, 4), ..smb() }, Some(Green)),
        (1, Facts { work: work(8, 1, 4), ..smb() }, None),
        (1, Facts { work: work(1, 10, 4), ..smb() }, None),
        (1, Facts { work: work(8, 10, 4), ..nfs() }, None),
        (1, measured(work(8, 10, 4), 0.97, 1.02), Some(Yellow)),
        (1, measured(work(8, 10, 4), 0.7, 0.9), Some(Red)),
        (2, Facts { work: work(8, 1, 64), ..smb() }, Some(Green)),
        (2, Facts { work: work(8, 1, 16), ..smb() }, Some(Red)),
        (2, Facts { work: work(8, 1, 4), ..smb() }, Some(Red)),
        (2, measured(work(8, 1, 4), 1.3, 1.5), Some(Green)),
        (2, Facts { work: work(8, 2, 64), ..smb() }, None),
        (3, Facts { work: work(1, 1, 64), ..smb() }, Some(Red)),
        (3, Facts { work: work(1, 10, 4), ..smb() }, Some(Red)),
        (3, Facts { work: work(1, 10, 64), ..smb() }, Some(Yellow)),
        (3, Facts { work: work(2, 10, 64), ..smb() }, None),
    ]);
}

#[test]
fn more_than_four_channels_depend_on_the_server_and_the_work() {
    let azure = Facts { profile: Profile::AzureFiles, path: path(8, 8), ..smb() };
    let sequential = Work { sequential: Some(true), write_share: Some(0.0), ..Work::default() };
    let netapp = Facts { profile: Profile::AzureNetappFiles, path: path(8, 8), ..smb() };
    check(vec![
        (4, azure.clone(), Some(Red)),
        (4, Facts { path: path(4, 4), ..azure.clone() }, None),
        (4, Facts { work: sequential, ..netapp.clone() }, Some(Green)),
        (4, Facts { work: Work { write_share: Some(1.0), ..sequential }, ..netapp.clone() }, Some(Yellow)),
        (4, netapp, Some(Yellow)),
    ]);
    let two = Facts {
        path: Path { interfaces: vec![interface(true, 4), interface(true, 4)], ..path(8, 8) },
        ..azure
    };
    let said = advise(&two).into_iter().find(|a| a.rule == 4).expect("R4");
    assert_eq!(said.commands[0].line, "Set-SmbClientConfiguration -ConnectionCountPerRssNetworkInterface 2");
}

#[test]
fn interfaces_and_missing_channels_are_named() {
    let with = |interfaces: Vec<Interface>, server_endpoints| Facts {
        path: Path { interfaces, server_endpoints, ..path(1, 1) },
        ..smb()
    };
    check(vec![
        (5, with(vec![interface(false, 1)], None), Some(Red)),
        (5, with(vec![interface(true, 1)], None), Some(Red)),
        (5, with(vec![interface(true, 8)], None), None),
        (5, with(vec![], None), None),
        (6, Facts { path: path(1, 4), ..smb() }, Some(Red)),
        (6, Facts { path: path(4, 4), ..smb() }, None),
        (21, with(vec![interface(true, 8), interface(true, 8)], Some(1)), Some(Yellow)),
        (21, with(vec![interface(true, 8), interface(true, 8)], Some(2)), None),
        (21, with(vec![interface(true, 8)], Some(1)), None),
    ]);
    let why = Path { why_fewer: vec!["the client did not ask for more".into()], ..path(1, 4) };
    let said = advise(&Facts { path: why, ..smb() });
    assert!(
        said.iter().any(|a| a.rule == 6 && a.text.ends_with("the client did not ask for more")),
        "{said:?}"
    );
}

/// The effects of four connections and of eight.
fn connections(four: [f64; 2], eight: [f64; 2]) -> Vec<Effect> {
    let of = |n, [low, high]: [f64; 2]| effect(Change::Connections(n), low, high);
    [of(4, four), of(8, eight)].concat()
}

/// Of several numbers of channels that were measured, the one that the command names decides.
#[test]
fn the_measurement_of_four_connections_decides_about_four() {
    let mut effects = effect(Change::Channels(2), 1.2, 1.3);
    effects.extend(effect(Change::Channels(4), 0.8, 0.9));
    effects.extend(effect(Change::Channels(16), 1.4, 1.5));
    let facts = Facts { work: work(8, 10, 4), effects, ..smb() };
    assert_eq!(verdict(1, &facts), Some(Red));
    let facts = Facts { effects: facts.effects[..1].to_vec(), ..facts };
    assert_eq!(verdict(1, &facts), Some(Green), "two, where four were not measured");
    let facts = Facts { effects: effect(Change::Channels(16), 0.5, 0.6), ..facts };
    assert_eq!(verdict(1, &facts), Some(Green), "nothing that sixteen do is known of four");
}

/// The whole advice on more than four channels hangs on the measurement, where there is one.
#[test]
fn more_than_four_channels_are_judged_by_what_was_measured() {
    let measured = |four: [f64; 2], eight: [f64; 2]| {
        let of = |n, [low, high]: [f64; 2]| effect(Change::Channels(n), low, high);
        Facts { path: path(8, 8), effects: [of(4, four), of(8, eight)].concat(), ..smb() }
    };
    check(vec![
        (4, measured([1.1, 1.2], [1.3, 1.5]), Some(Green)),
        (4, measured([1.1, 1.2], [1.15, 1.3]), Some(Yellow)),
        (4, measured([1.3, 1.5], [1.1, 1.2]), Some(Red)),
        (4, measured([0.8, 0.9], [0.8, 0.9]), Some(Red)),
    ]);
}

#[test]
fn nfs_connections_are_judged_by_what_is_under_way() {
    let measured = |effects| Facts { path: path(8, 16), effects, ..nfs() };
    let netapp = Facts { profile: Profile::AzureNetappFiles, ..measured(Vec::new()) };
    check(vec![
        (7, Facts { work: queue(16.0, 1, 4, 0.0), ..nfs() }, Some(Green)),
        (7, Facts { work: queue(15.9, 1, 4, 0.0), ..nfs() }, Some(Red)),
        (7, Facts { work: queue(1.0, 1, 64, 0.0), ..nfs() }, Some(Yellow)),
        (7, Facts { work: queue(1.0, 1, 64, 1.0), ..nfs() }, Some(Red)),
        (7, Facts { work: queue(1.0, 4, 4, 1.0), ..nfs() }, Some(Green)),
        (7, Facts { work: queue(64.0, 1, 4, 0.0), ..smb() }, None),
        (
            7,
            Facts {
                work: queue(64.0, 1, 4, 0.0),
                effects: effect(Change::Connections(4), 0.9, 1.1),
                ..nfs()
            },
            Some(Yellow),
        ),
        (8, measured(Vec::new()), Some(Yellow)),
        (8, measured(effect(Change::Connections(8), 0.8, 0.95)), Some(Red)),
        // More than one connection brings something; whether more than four do, nobody has measured.
        (8, measured(effect(Change::Connections(8), 1.05, 1.2)), Some(Yellow)),
        (8, measured(connections([1.1, 1.2], [1.3, 1.5])), Some(Green)),
        (8, measured(connections([1.1, 1.2], [1.15, 1.3])), Some(Yellow)),
        (8, measured(connections([1.3, 1.5], [1.1, 1.2])), Some(Red)),
        (8, netapp, None),
        (8, Facts { path: path(4, 16), ..nfs() }, None),
        (9, Facts { work: queue(64.0, 8, 4, 0.0), ..nfs() }, None),
        (9, Facts { work: queue(65.0, 8, 4, 0.0), ..nfs() }, Some(Yellow)),
    ]);
}

#[test]
fn a_measurement_that_the_documents_do_not_expect_is_told_as_such() {
    let text = |low, high| {
        let effects = effect(Change::Connections(4), low, high);
        let facts = Facts { work: queue(1.0, 1, 4, 1.0), effects, ..nfs() };
        advise(&facts).into_iter().find(|advice| advice.rule == 7).expect("R7").text
    };
    assert!(text(0.8, 0.9).starts_with("one thread with few writes"), "{}", text(0.8, 0.9));
    for (low, high, here) in [
        (1.1, 1.2, "a gain from several connections here;"),
        (0.95, 1.05, "no measurable effect of several connections here;"),
        (0.8, 1.2, "too noisy to tell the effect of several connections here;"),
    ] {
        assert!(text(low, high).starts_with(here), "{}", text(low, high));
    }
}

#[test]
fn mounts_and_kernels_are_looked_at() {
    let mounts = |mounts| Facts { mounts, ..nfs() };
    let kernel =
        |version, read_ahead| Facts { linux: Some(version), ..mounts(vec![mount("/a", 1, read_ahead)]) };
    let slots = |granted, most_in_use| Facts { slots: Some(Slots { granted, most_in_use }), ..nfs() };
    check(vec![
        (10, mounts(vec![mount("/a", 1, 128), mount("/b", 4, 128)]), Some(Red)),
        (10, mounts(vec![mount("/a", 4, 128), mount("/b", 4, 128)]), None),
        (
            10,
            mounts(vec![mount("/a", 1, 128), Mount { server: "192.0.2.2".into(), ..mount("/b", 4, 128) }]),
            None,
        ),
        (11, kernel((5, 2), 128), Some(Red)),
        (11, kernel((5, 3), 128), None),
        (11, kernel((6, 1), 128), Some(Yellow)),
        (11, kernel((6, 1), 15 * 1024), None),
        (12, slots(64, 64), Some(Red)),
        (12, slots(64, 63), None),
        (12, slots(0, 0), None),
    ]);
}

#[test]
fn what_holds_the_work_back_is_found() {
    let metadata = |share| Facts { work: Work { metadata_share: Some(share), ..Work::default() }, ..smb() };
    let mib = 1024.0 * 1024.0;
    let link = |reached, cap, limit| Facts {
        reached: Reached { bytes: Some(reached), ..Reached::default() },
        limits: Limits { client_bytes: Some(cap), bytes: limit, ..Limits::default() },
        ..smb()
    };
    let waited = |throttled_share| Facts {
        reached: Reached { throttled_share: Some(throttled_share), ..Reached::default() },
        ..smb()
    };
    let file = |file_iops, file_bytes, profile| Facts {
        reached: Reached { file_iops, file_bytes, ..Reached::default() },
        profile,
        ..smb()
    };
    let time = |end_to_end, server| Facts {
        latency: Latencies { end_to_end_us: Some(end_to_end), server_us: Some(server) },
        ..smb()
    };
    check(vec![
        (13, metadata(0.9), Some(Green)),
        (13, metadata(0.2), None),
        (13, Facts { effects: effect(Change::MetadataCache, 0.95, 1.04), ..metadata(0.9) }, Some(Yellow)),
        (14, link(95.0 * mib, 100.0 * mib, Some(200.0 * mib)), Some(Yellow)),
        (14, link(95.0 * mib, 100.0 * mib, Some(95.0 * mib)), None),
        (14, link(50.0 * mib, 100.0 * mib, None), None),
        (15, waited(0.0), None),
        (15, waited(0.005), Some(Yellow)),
        (15, waited(0.3), Some(Red)),
        (16, file(Some(7_900.0), None, Profile::AzureFiles), Some(Red)),
        (16, file(None, Some(1_020.0 * mib), Profile::AzureFiles), Some(Red)),
        (16, file(Some(4_000.0), Some(10.0 * mib), Profile::AzureFiles), None),
        (16, file(Some(9_000.0), None, Profile::Other), None),
        (18, time(3_000.0, 400.0), Some(Yellow)),
        (18, time(600.0, 400.0), None),
        (18, time(90.0, 40.0), None),
    ]);
    let empty_soon = Facts {
        limits: Limits { credits: Some(9_000.0), credits_used: Some(100.0), ..Limits::default() },
        ..waited(0.3)
    };
    let said = advise(&empty_soon).into_iter().find(|a| a.rule == 15).expect("R15");
    assert!(said.figures.contains(&"9000 burst credits left, for 90 s at this rate".to_owned()), "{said:?}");
}

#[test]
fn signing_and_encryption_are_held_against_what_they_may_cost() {
    let signed = |algorithm: &str, busiest| Facts {
        security: Security {
            signing: Some(algorithm.into()),
            busiest_cpu: Some(busiest),
            ..Security::default()
        },
        ..smb()
    };
    let sealed = |effects| Facts {
        security: Security { cipher: Some("AES-128-GCM".into()), ..Security::default() },
        effects,
        ..smb()
    };
    check(vec![
        (17, signed("AES-128-CMAC", 0.95), Some(Red)),
        (17, signed("HMAC-SHA256", 0.95), Some(Red)),
        (17, signed("AES-128-GMAC", 0.95), None),
        (17, signed("AES-128-CMAC", 0.5), None),
        (19, sealed(Vec::new()), Some(Yellow)),
        (19, sealed(effect(Change::Encryption, 0.98, 1.03)), Some(Green)),
        (19, sealed(effect(Change::Encryption, 0.7, 1.3)), Some(Yellow)),
        (19, sealed(effect(Change::Encryption, 0.86, 0.90)), Some(Yellow)),
        (19, sealed(effect(Change::Encryption, 0.60, 0.70)), Some(Red)),
        (19, smb(), None),
    ]);
}

/// What the documents say of channels and connections there is about reads and writes.
#[test]
fn names_and_attributes_are_not_judged_as_reads_and_writes() {
    let of = |facts: Facts, metadata_share| Facts {
        work: Work { metadata_share: Some(metadata_share), queue_depth: Some(1.0), ..work(1, 1, 4) },
        ..facts
    };
    check(vec![
        (3, of(smb(), 0.1), Some(Red)),
        (3, of(smb(), 1.0), None),
        (7, of(nfs(), 0.1), Some(Red)),
        (7, of(nfs(), 1.0), None),
        (13, of(smb(), 1.0), Some(Green)),
    ]);
}

#[test]
fn nothing_is_concluded_from_one_run() {
    let mut facts = Facts {
        runs: Some(1),
        work: work(8, 10, 4),
        effects: effect(Change::Channels(4), 0.5, 0.6),
        ..smb()
    };
    facts.reached.throttled_share = Some(0.5);
    check(vec![(20, facts.clone(), Some(Red)), (15, facts.clone(), None), (1, facts.clone(), Some(Green))]);
    facts.runs = Some(5);
    check(vec![(20, facts.clone(), None), (15, facts.clone(), Some(Red)), (1, facts, Some(Red))]);
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!(advise(&Facts::default()), []);
    assert_eq!(advise(&smb()), []);
    assert_eq!(advise(&nfs()), []);
}

#[test]
fn a_source_names_document_and_section() {
    let said = advise(&Facts { work: work(8, 10, 4), ..smb() });
    assert_eq!(said[0].source.to_string(), "Azure Files: SMB performance, \"Performance comparison\" (1.20)");
}
