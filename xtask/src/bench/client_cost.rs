//! The cost of the load generator.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::figures::thousands;
use super::program::{behind, json, number};
use super::server::{Server, Settings};
use super::{loopback, machine, program, words};
use crate::command::Chore;
use crate::markdown::{reached, table, write_between_marks};
use crate::repository;

const PAGE: &str = "docs/bench.md";
const MAKER: &str = "cargo xtask bench client-cost";
/// Operations under way, and connections.
const LOADS: [(u32, u32); 5] = [(16, 1), (64, 1), (16, 4), (64, 4), (256, 4)];

#[derive(Args)]
pub(super) struct ClientCostArguments {
    /// Measurements of each row
    #[arg(long, default_value_t = 3)]
    repetitions: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 0.7)]
    seconds: f64,
}

pub(super) fn run(given: &ClientCostArguments) -> Chore {
    if machine::processors() < 2 {
        return Err("this needs two processors".to_owned());
    }
    loopback::inside(|| {
        let results = measure(given)?;
        let section = section(&results)?;
        write_between_marks(&repository::top().join(PAGE), MAKER, &section)?;
        println!("{section}");
        Ok(ExitCode::SUCCESS)
    })
}

fn measure(given: &ClientCostArguments) -> Result<Vec<Value>, String> {
    let anabranch = program::anabranch()?;
    let before = words("setsid taskset -c 0");
    let server = Server::start(&anabranch, &Settings { in_memory: true, before, ..Settings::default() })?;
    let mut results = Vec::new();
    for (over, target) in
        [("smb", server.smb()), ("nfs3", server.nfs("3", None)), ("nfs4.1", server.nfs("4.1", None))]
    {
        for (depth, connections) in LOADS {
            let mut command = behind(&words("taskset -c 1"), &anabranch);
            command.args(["bench", "job", "--target", &target, "--server-pid", &server.pid().to_string()]);
            command.args(["--queue-depth", &depth.to_string(), "--connections", &connections.to_string()]);
            command.args([
                "--repetitions",
                &given.repetitions.to_string(),
                "--seconds",
                &given.seconds.to_string(),
            ]);
            results.push(json(command.args(["--ramp", "0.2", "--json"]))?);
            println!("{over}  {depth} {connections} done");
        }
    }
    server.stop()?;
    Ok(results)
}

/// A row of the table.
struct Row {
    protocol: String,
    connections: u64,
    depth: u64,
    rate: f64,
    client: f64,
    server: f64,
}

impl Row {
    fn read(result: &Value) -> Result<Self, String> {
        let (environment, row) = (&result["environment"], &result["rows"][0]);
        let (negotiated, key) = (&environment["negotiated"], &row["key"]);
        let plain = ["signing", "cipher"].iter().all(|what| negotiated[what].is_null());
        let checked = result["method"]["data_checked"] == true;
        if !checked || !plain || negotiated["connections"] != key["connections"] {
            return Err(format!("this is not what was to be measured: {negotiated}"));
        }
        let protocol = match environment["protocol"].as_str().unwrap_or_default() {
            "smb" => "SMB 3.1.1, neither signed nor encrypted",
            "nfs3" => "NFSv3",
            "nfs4.1" => "NFSv4.1",
            other => other,
        };
        let count = |of: &str| key[of].as_u64().ok_or_else(|| format!("a row without {of}"));
        let [rate, client, server] =
            ["rate", "client_cpu_us", "server_cpu_us"].map(|of| number(&row["measure"][of]["median"]));
        let (connections, depth) = (count("connections")?, count("queue_depth")?);
        Ok(Self { protocol: protocol.to_owned(), connections, depth, rate, client, server })
    }

    fn cells(&self) -> [String; 7] {
        let Self { protocol, connections, depth, rate, client, server } = self;
        [
            protocol.clone(),
            connections.to_string(),
            depth.to_string(),
            thousands(*rate),
            format!("{client:.2}"),
            format!("{server:.2}"),
            format!("{:.2}", client / server),
        ]
    }
}

const HEADS: [&str; 7] = [
    "protocol",
    "connections",
    "under way",
    "operations/s",
    "client CPU us",
    "server CPU us",
    "client / server",
];

fn section(results: &[Value]) -> Result<String, String> {
    let rows = results.iter().map(Row::read).collect::<Result<Vec<_>, _>>()?;
    let worst = rows.iter().map(|row| row.client / row.server).fold(0.0, f64::max);
    let mut best: Vec<(&str, f64)> = Vec::new();
    for row in &rows {
        let name = row.protocol.split(',').next().unwrap_or_default();
        match best.iter_mut().find(|(of, _)| *of == name) {
            Some((_, rate)) => *rate = rate.max(row.rate),
            None => best.push((name, row.rate)),
        }
    }
    let rates: Vec<_> = best.iter().map(|(name, rate)| format!("{name} {}", thousands(*rate))).collect();
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    let method = &results[0]["method"];
    Ok(format!(
        "4 KiB random reads of a file in memory, with all data checked; medians of {} repetitions of {} s. The server runs on one processor,\n\
         the client on another. CPU is the user and system time of each process. On the loopback, the kernel does the receiver's work for TCP in the\n\
         sender's time, so the server's column contains a part of the client's cost of receiving. With more than 10 us of client CPU per operation,\n\
         one core cannot reach 100,000 operations per second.\n\
         \n{}\n\n\
         * At most 1.5 times the server's CPU per operation: {} (the highest ratio is {worst:.2}).\n\
         * At least 100,000 operations per second from one core: {} ({}).\n\n{}",
        method["repetitions"],
        method["seconds"],
        table(&HEADS, &cells),
        reached(worst <= 1.5),
        reached(best.iter().all(|(_, rate)| *rate >= 100_000.0)),
        rates.join(", "),
        machine::measured(results[0]["program"].as_str().unwrap_or_default())?,
    ))
}
