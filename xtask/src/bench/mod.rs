//! Measurements, by name.

use std::process::ExitCode;

use clap::Args;

use crate::command::{self, Chore};

/// A measurement: its name, what it measures, and the script that makes it.
struct Bench {
    name: &'static str,
    about: &'static str,
    script: &'static str,
}

const BENCHES: [Bench; 11] = [
    Bench {
        name: "baseline",
        about: "server CPU of this build and of another one, in turns",
        script: "scripts/bench-baseline",
    },
    Bench {
        name: "channels",
        about: "what one SMB channel of the Linux kernel's client carries and what four carry",
        script: "scripts/bench-channels",
    },
    Bench {
        name: "client-cost",
        about: "what the load generator costs: CPU of client and server for each read",
        script: "scripts/bench-client-cost",
    },
    Bench {
        name: "fio",
        about: "the load generator beside fio: the same jobs by both",
        script: "scripts/bench-fio",
    },
    Bench {
        name: "known-answers",
        about: "the load generator against servers whose latency or rate is known",
        script: "scripts/bench-known-answers",
    },
    Bench {
        name: "limits",
        about: "whether the limits of plans hold, and what counting costs",
        script: "scripts/bench-limits",
    },
    Bench {
        name: "links",
        about: "the load generator over one connection and over four where links are the limit",
        script: "scripts/bench-links",
    },
    Bench {
        name: "memory",
        about: "what the server keeps of its memory after load",
        script: "scripts/bench-memory",
    },
    Bench {
        name: "metadata",
        about: "what the metadata cache is worth; a name in a directory of a million",
        script: "scripts/bench-metadata",
    },
    Bench { name: "security", about: "what signing and encryption cost", script: "scripts/bench-security" },
    Bench {
        name: "trunks",
        about: "what one link carries over NFSv4 and what four trunked links carry",
        script: "scripts/bench-trunks",
    },
];

/// The measurement that is asked for.
#[derive(Args)]
pub(crate) struct Chosen {
    /// Which one
    name: Option<String>,
    /// What it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

pub(crate) fn run(chosen: &Chosen) -> Chore {
    let Some(name) = &chosen.name else {
        for bench in &BENCHES {
            println!("{:14} {}", bench.name, bench.about);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        return Err(format!("there is no measurement {name}; `cargo xtask bench` lists them"));
    };
    command::script(bench.script, &chosen.arguments)
}
