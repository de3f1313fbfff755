//! The samples in the documents are what the program prints: commands behind a `$` are carried out, and what they say is held
//! against what stands there. (That all command lines of the pages are taken is tested in `src/cli/documents.rs`, the tables of
//! docs/plans.md in `crates/limits/tests/plans_document.rs`, the commands of pages that need a lab in `tests/pages`.)
//!
//! Not carried out is what a kernel's client shows (`mount` in README.md and docs/measured/kernel-clients.md, the mounts of `advise host` in
//! docs/advice.md), and what [`ELSEWHERE`] names.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Stdio;

mod clients;
mod machine;
mod measured;
#[expect(dead_code, reason = "the programs that these tests use are there")]
#[path = "../program/needs/mod.rs"]
mod needs;
mod page;
#[path = "../../../front/smb-server/tests/socket/client/protection.rs"]
mod protection;
#[expect(dead_code, reason = "not all that the tests of the SMB server do is done here")]
#[path = "../../../front/smb-server/tests/socket/client/raw.rs"]
mod raw;
#[expect(dead_code, reason = "the flags of these servers are in a file")]
#[path = "../program/server/mod.rs"]
mod server;
mod shelf;

use machine::{ANY, Machine};
use page::{Sample, block, fenced, lasting, sample, samples, words};
use server::{Server, program};

const README: &str = include_str!("../../../../README.md");
const ADVICE: &str = include_str!("../../../../docs/advice.md");
const BENCH: &str = include_str!("../../../../docs/bench.md");
const CLIENTS: &str = include_str!("../../../../docs/clients.md");
const PLANS: &str = include_str!("../../../../docs/plans.md");
const SHARES: &str = include_str!("../../../../docs/shares.md");
const STATE: &str = include_str!("../../../../docs/state.md");

/// Samples that are not carried out here, by how they begin, and why.
const ELSEWHERE: [(&str, &str); 5] = [
    ("bench peers smb-mc-multifile --quick", "it is measured beside Samba: tests/program/bench_peers.rs"),
    ("bench peers nfs-nconnect --quick", "it is measured beside NFS-Ganesha: tests/program/bench_peers.rs"),
    (
        "advise nfs://127.0.0.1/data?vers=4.1 --measure",
        "what is said hangs on what is measured, for half a minute",
    ),
    ("advise host", "it is about the machine that it is called on"),
    ("share show here", "its transactions are those of smbclient: tests/interop/cephfs-redundancy.sh"),
];

/// Those that are, beside all of docs/state.md.
const HERE: [&str; 8] = [
    "bench run smb-mc-multifile --target smb://anna:PASSWORD@",
    "bench run smb-mc-multifile --target smb://anna:wrong@",
    "advise result.json",
    "advise smb://anna:PASSWORD@127.0.0.1/data",
    "advise --client anna",
    "advise smb://anna:PASSWORD@127.0.0.1/projects --apply",
    "advise --facts facts.json",
    "share create projects /srv/projects --plan azure-files-v1",
];

fn check(document: &str, machine: &Machine, sample: &Sample) {
    let expected: Vec<String> = sample.printed.iter().map(|line| lasting(line)).collect();
    let printed: Vec<String> = machine.run(&sample.command, "").iter().map(|line| lasting(line)).collect();
    assert_eq!(printed, expected, "{document}: anabranch {}", sample.command);
}

#[test]
fn each_sample_is_carried_out_or_said_not_to_be() {
    for page in [README, ADVICE, BENCH, CLIENTS, PLANS] {
        for sample in samples(page) {
            let line = words(&sample.command).join(" ");
            let is_named = |begin: &str| line.starts_with(begin);
            let named = HERE.iter().any(|begin| is_named(begin))
                || ELSEWHERE.iter().any(|(begin, _)| is_named(begin));
            assert!(named, "anabranch {line}: hold it against what is printed, or say why not");
        }
    }
}

#[test]
fn a_share_with_a_plan_is_created_as_the_document_says() {
    let machine = Machine::new();
    let mut server = machine.serve("");
    check("docs/plans.md", &machine, &sample(PLANS, "share create projects"));
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn commands_about_the_state_directory_print_what_the_document_says() {
    let machine = Machine::new();
    assert_eq!(machine.serve("").end_with("TERM"), Some(0));
    for command in [
        "share create projects /srv/projects",
        "share create backup /srv/backup",
        "user add anna --uid 1000",
        "user add otto --uid 1001",
        "token create look",
    ] {
        machine.run(command, "correct horse\n");
    }
    assert_eq!(machine.serve("").end_with("TERM"), Some(0));
    let samples = samples(STATE);
    assert_eq!(samples.len(), 3);
    for sample in &samples {
        check("docs/state.md", &machine, sample);
    }
}

#[test]
fn a_wrong_password_says_what_the_document_says() {
    let machine = Machine::new();
    let server = machine.serve("");
    let sample = sample(BENCH, "bench run smb-mc-multifile --target smb://anna:wrong@");
    let said = machine.ask(&server, &sample.command).concat();
    let errors = |lines: &[String]| {
        lines.iter().skip_while(|line| !line.starts_with("error:")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(errors(&said), errors(&sample.printed), "docs/bench.md");
}

#[test]
fn advice_on_facts_is_what_the_document_says() {
    let machine = Machine::new();
    let facts = block(ADVICE, "Unknown fields are refused");
    let (first, facts) = facts.split_first().unwrap();
    assert_eq!(first, "$ cat facts.json");
    let facts: Vec<&str> =
        facts.iter().map(String::as_str).take_while(|line| !line.starts_with('$')).collect();
    fs::write(machine.at("/facts.json"), facts.join("\n")).unwrap();
    let sample = sample(ADVICE, "advise --facts");
    let mut printed = machine.run(&sample.command, "");
    while printed.last().is_some_and(String::is_empty) {
        printed.pop();
    }
    assert_eq!(printed, sample.printed);
}

#[test]
fn what_would_be_measured_is_what_the_document_says() {
    let machine = Machine::new();
    let server = machine.serve("");
    let sample = sample(ADVICE, "advise smb://anna:PASSWORD@127.0.0.1/data");
    let [mut printed, said] = machine.ask(&server, &sample.command);
    while printed.last().is_some_and(String::is_empty) {
        printed.pop();
    }
    assert_eq!((printed, said), (sample.printed, vec![]));
}

/// A line in which each number is a `#`.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            _ => text.push(c),
        }
    }
    text
}

#[test]
fn the_demo_says_what_the_readme_says() {
    let machine = Machine::new();
    let expected = fenced(README, "").into_iter().find(|text| text.starts_with("Serving ")).unwrap();
    let expected: Vec<&str> = expected.lines().take_while(|line| *line != "...").collect();
    let mut demo = program(&["demo"]);
    demo.current_dir(machine.at("/srv")).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = demo.spawn().unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let lines = std::io::BufRead::lines(output).take(expected.len());
    let printed: Vec<String> = lines.map(|line| machine.there(&line.unwrap())).collect();
    let mut demo = Server { child, ready: String::new() };
    assert_eq!(demo.end_with("TERM"), Some(0));
    // The password of each demo is its own.
    let password = |line: &str| line.trim().strip_prefix("password").map(|rest| rest.trim().to_owned());
    let shown = expected.iter().find_map(|line| password(line)).unwrap();
    let own = printed.iter().find_map(|line| password(line)).unwrap();
    let printed: Vec<String> =
        printed.iter().map(|line| without_numbers(&line.replace(&own, "PASSWORD"))).collect();
    let expected: Vec<String> =
        expected.iter().map(|line| without_numbers(&line.replace(&shown, "PASSWORD"))).collect();
    assert_eq!(printed, expected);
}

/// A text of the pages with addresses that a test may have.
fn on_this_machine(machine: &Machine, text: &str) -> String {
    let text = ["0.0.0.0:445", "0.0.0.0:2049", "127.0.0.1:8080"]
        .iter()
        .fold(machine.here(text), |text, address| text.replace(address, ANY));
    // Nobody is asked for the address of a name here.
    text.replace("build.example.org", "localhost")
}

#[test]
fn the_server_of_the_readme_serves() {
    let machine = Machine::new();
    fs::create_dir(machine.at("/etc/anabranch")).unwrap();
    let password = machine.at("/etc/anabranch/anna.password");
    fs::write(&password, "correct horse\n").unwrap();
    fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let lines = block(README, "For real use:");
    let line = lines.iter().map(|line| line.trim_end_matches('\\').trim()).collect::<Vec<_>>().join(" ");
    let line = on_this_machine(&machine, line.strip_prefix("anabranch ").unwrap());
    let words = words(&line);
    let mut server = Server::start(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(server.ready.starts_with("ready smb=127.0.0.1:"), "{}", server.ready);
    assert_eq!(server.end_with("TERM"), Some(0));
}

/// A configuration file in which what stands behind a `#` as a setting is one.
fn uncommented(text: &str) -> String {
    let line = |line: &str| {
        let setting = line.strip_prefix("# ").filter(|rest| rest.starts_with("[[") || rest.contains(" = "));
        format!("{}\n", setting.unwrap_or(line))
    };
    text.lines().map(line).collect()
}

#[test]
fn the_configuration_files_of_the_pages_are_taken() {
    let mut count = 0;
    for (page, text) in [("README.md", README), ("docs/shares.md", SHARES)] {
        for toml in fenced(text, "toml") {
            for toml in [toml.clone(), uncommented(&toml)] {
                let machine = Machine::new();
                let (file, state) = (machine.at("/etc/anabranch.toml"), machine.at(machine::STATE_DIRECTORY));
                // The pages show parts of a file.
                let top =
                    format!("smb = \"{ANY}\"\nnfs = \"{ANY}\"\ncontrol = \"{ANY}\"\nstate = \"{state}\"\n");
                let top = if toml.contains("\nstate = ") { String::new() } else { top };
                fs::write(&file, format!("{top}{}", on_this_machine(&machine, &toml))).unwrap();
                fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
                let mut server = Server::start(&["serve", "--config", &file]);
                assert!(server.ready.starts_with("ready smb=127.0.0.1:"), "{page}: {toml}");
                assert_eq!(server.end_with("TERM"), Some(0));
                count += 1;
            }
        }
    }
    assert_eq!(count, 10, "files");
}
