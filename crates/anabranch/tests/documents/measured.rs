//! Samples with figures that were measured: words, columns, their order and units are as the page says.

use std::fs;

use serde_json::{Value, json};

use crate::machine::{Machine, until_printed};
use crate::page::{Sample, block, sample, samples, shapes};
use crate::{ADVICE, BENCH, README, SHARES};

const PASSWORD: &str = "PASSWORD\n";
/// What the figures of the pages were measured with.
const UNSIGNED: &str = "smb-signing = \"enabled\"";

/// Anna may change the directory of a share.
fn add_anna(machine: &Machine, share: &str) {
    use std::os::unix::fs::PermissionsExt;
    machine.run("user add anna --uid 1000", PASSWORD);
    fs::set_permissions(machine.at(&format!("/srv/{share}")), fs::Permissions::from_mode(0o777)).unwrap();
}

/// What is cut off by `...` on a page is not looked at.
fn begin_of<'a>(printed: &'a [String], sample: &Sample) -> &'a [String] {
    printed.get(..sample.printed.len()).unwrap_or(printed)
}

#[test]
fn a_measurement_and_the_advice_on_it_look_as_the_documents_say() {
    let machine = Machine::new();
    let server = machine.serve(UNSIGNED);
    add_anna(&machine, "data");
    let run = sample(BENCH, "bench run smb-mc-multifile --target smb://anna:PASSWORD@");
    let command = run.command.replace(" STATE ", &format!(" {} ", crate::machine::STATE_DIRECTORY));
    let [printed, _progress] = machine.ask(&server, &command);
    // How much the server had counted of what was under way at the edges of a measurement is a matter of the machine.
    let printed: Vec<String> =
        printed.into_iter().filter(|line| !line.contains(" came from a cache ")).collect();
    assert_eq!(shapes(&printed), shapes(&run.printed), "{printed:#?}");

    // The figures of the page: advice hangs on them.
    let file = machine.at("/result.json");
    let mut result: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (row, counts) in result["rows"].as_array_mut().unwrap().iter_mut().zip(COUNTS) {
        for (repetition, count) in row["repetitions"].as_array_mut().unwrap().iter_mut().zip(counts) {
            repetition["seconds"] = json!(0.4);
            repetition["operations"].as_object_mut().unwrap().values_mut().for_each(|tally| {
                tally["count"] = count.into();
            });
        }
    }
    let ratios = [[1.371, 0.004, 55.44], [14.475, 0.392, 153.87]];
    for (comparison, [median, low, high]) in
        result["comparisons"].as_array_mut().unwrap().iter_mut().zip(ratios)
    {
        let ratio = json!({ "median": median, "interval": [low, high], "repetitions": 3 });
        comparison["rate"] = json!({ "ratio": ratio, "effect": "not-measurable" });
    }
    fs::write(&file, result.to_string()).unwrap();
    for command in ["advise result.json", "advise result.json --rows"] {
        let advice = samples(ADVICE).into_iter().find(|sample| sample.command == command).unwrap();
        let [printed, said] = machine.say(&advice.command, "");
        assert_eq!((begin_of(&printed, &advice), &said[..]), (&advice.printed[..], &[][..]));
    }
}

/// The operations of each repetition of the rows of the page's measurement.
const COUNTS: [[u64; 3]; 4] =
    [[14_377, 27_618, 59_623], [20_853, 37_872, 2_997], [960, 832, 1_408], [15_996, 1_617, 20_381]];

/// A share that was created by command, with a plan, and the server.
fn provisioned(plan: &str) -> (Machine, crate::server::Server) {
    let machine = Machine::new();
    let server = machine.serve(UNSIGNED);
    machine.run(&format!("share create projects /srv/projects --plan \"{plan}\""), "");
    add_anna(&machine, "projects");
    (machine, server)
}

#[test]
fn advice_on_a_client_that_works_looks_as_the_document_says() {
    let (machine, server) = provisioned("custom iops=300");
    let _load = machine.load(
        &server,
        "--target smb://anna:PASSWORD@127.0.0.1/projects --threads 2 --files 2 --queue-depth 8 --block-size 8k",
    );
    let watched = sample(ADVICE, "advise --client anna");
    until_printed("advise --client", &shapes(&watched.printed), || {
        let mut printed = machine.say(&watched.command, "")[0].clone();
        while printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        shapes(&printed)
    });
    let applied = sample(ADVICE, "advise --client anna --seconds 1 --apply");
    let [printed, said] = machine.say(&applied.command, "");
    assert_eq!(shapes(&printed), shapes(&applied.printed), "{printed:#?} {said:#?}");
}

#[test]
fn a_trial_without_effect_looks_as_the_document_says() {
    let (machine, server) = provisioned("custom iops=300 client-iops=300");
    let tried = sample(ADVICE, "advise smb://anna:PASSWORD@127.0.0.1/projects --apply");
    let [printed, said] = machine.ask(&server, &tried.command);
    // For which limits operations have waited hangs on who was first; each of them is one step more.
    let of_step = |lines: &[String]| shapes(lines)[1..4].to_vec();
    assert_eq!(of_step(&printed), of_step(&tried.printed), "{printed:#?} {said:#?}");
    let stopped = |lines: &[String]| {
        lines.iter().skip_while(|line| !line.starts_with("Stopped: ")).skip(1).cloned().collect::<Vec<_>>()
    };
    assert_eq!(stopped(&printed), stopped(&tried.printed), "{printed:#?} {said:#?}");
    assert!(printed[0].starts_with("R15  plan: custom iops=300 client-iops=300 -> custom "), "{printed:#?}");
    assert!(
        printed.iter().any(|line| line.ends_with("none surely helps; the share is as it was")),
        "{printed:#?}"
    );
}

/// What comes before the table of calls, its head, and its rows.
fn parts(shown: &[String]) -> (Vec<String>, String, Vec<String>) {
    let table = shown.iter().position(|line| line.starts_with("API ")).unwrap();
    let shapes = shapes(shown);
    (shapes[..table].to_vec(), shapes[table].clone(), shapes[table + 1..].to_vec())
}

/// The kinds of the cells of a row: which calls there are, and which of them cost most, hangs on the client.
fn kinds(row: &str) -> Vec<String> {
    let cells = row.split(" | ").enumerate();
    cells.map(|(index, cell)| if index == 0 { "API".to_owned() } else { cell.to_owned() }).collect()
}

#[test]
fn a_share_with_a_plan_is_shown_as_the_documents_show_it() {
    let machine = Machine::new();
    let server = machine.serve(UNSIGNED);
    let samples = samples(SHARES);
    let [create, show] = ["share create projects", "share show projects"]
        .map(|begin| samples.iter().find(|sample| sample.command.starts_with(begin)).unwrap());
    machine.run(&create.command, "");
    add_anna(&machine, "projects");
    let job = "bench job --threads 2 --block-size 4k --reads 50 --file-size 64k --seconds 1 --ramp 0.1 --repetitions 1";
    let [_, said] = machine.ask(&server, &format!("{job} --target smb://anna:PASSWORD@127.0.0.1/projects"));
    let (expected, head, rows) = parts(&show.printed);
    // The disk of this machine may be encrypted.
    let limits = |line: &String| {
        !line.starts_with("at rest ") && (!line.starts_with("waited") || expected.contains(line))
    };
    // Which limits the client has waited for hangs on what it did; what the share holds is counted beside that.
    until_printed("share show", &expected, || {
        let shown = machine.run(&show.command, "");
        assert!(shown.iter().any(|line| line.starts_with("API ")), "{shown:#?} {said:#?}");
        parts(&shown).0.into_iter().filter(limits).collect()
    });
    let (_, shown_head, shown_rows) = parts(&machine.run(&show.command, ""));
    assert_eq!(shown_head, head);
    let rows: Vec<_> = rows.iter().map(|row| kinds(row)).collect();
    for row in shown_rows.iter().filter(|row| row.contains(" | ")) {
        assert!(rows.contains(&kinds(row)), "{row}");
    }

    // README.md has some of these lines, up to `...`.
    let excerpt = block(README, "among other things:");
    let excerpt = excerpt.split_last().unwrap();
    assert_eq!(excerpt.0, "...");
    let mut lines = show.printed.iter();
    for line in excerpt.1 {
        assert!(lines.any(|other| other == line), "README.md has another line than docs/shares.md: {line}");
    }
}
