//! The Linux kernel's clients, in the guest of tests/lab, over several network interfaces of limited speed.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{self, Command, Stdio};

use super::afterwards::Afterwards;
use super::figures::{ends, median};
use super::server::{PASSWORD, Server, Settings};
use super::{machine, program, words};
use crate::command::ran;
use crate::repository;

pub(super) const INTERFACES: u8 = 4;
/// The capacity of each interface, in Mbit/s.
pub(super) const RATE: u32 = 200;
/// Four interfaces must carry this many times as much as one.
pub(super) const WANTED: f64 = 3.6;

const LAB: &str = "tests/lab/client-lab";

/// The output of a script in the guest.
pub(super) struct Said {
    lines: Vec<String>,
}

/// Serves a share in memory and runs a script of tests/lab/guest that measures it. Takes the name of the script, the
/// seconds that it may take, and its arguments besides the address of the server.
pub(super) fn measure(script: &str, timeout: u32, told: &[String]) -> Result<Said, String> {
    let anabranch = program::anabranch()?;
    let network = Network::make()?;
    let settings = Settings {
        in_memory: true,
        listen: [445, 2049].map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        reached_at: Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        before: words(&format!("ip netns exec {}", network.name)),
        ..Settings::default()
    };
    let server = Server::start(&anabranch, &settings)?;
    let ports =
        [("SMB_PORT", "smb"), ("NFS_PORT", "nfs")].map(|(name, of)| (name, server.address(of).port()));
    let mut command = lab("run");
    command.args(["--netns", &network.name, "--nics", &INTERFACES.to_string(), "--rate", &RATE.to_string()]);
    command
        .args(["--timeout", &timeout.to_string()])
        .args(ports.iter().flat_map(|(name, port)| ["-e".to_owned(), format!("{name}={port}")]));
    let share = settings.share;
    let user = [
        format!("SHARE={share}"),
        format!("EXPORT=/{share}"),
        "USER=bench".to_owned(),
        format!("PASS={PASSWORD}"),
    ];
    for setting in user.iter().chain(told) {
        command.args(["-e", setting]);
    }
    let said = echoed(command.arg(format!("tests/lab/guest/{script}")))?;
    server.stop()?;
    Ok(said)
}

/// The output of a command, which is also printed.
fn echoed(command: &mut Command) -> Result<Said, String> {
    let problem = |e: std::io::Error| format!("{LAB}: {e}");
    let mut process = command.stdout(Stdio::piped()).spawn().map_err(problem)?;
    let mut lines = Vec::new();
    for line in process.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.map_err(problem)?;
        println!("{line}");
        lines.push(line);
    }
    let status = process.wait().map_err(problem)?;
    if status.success() { Ok(Said { lines }) } else { Err(format!("{LAB}: {status}")) }
}

fn lab(what: &str) -> Command {
    let mut command = Command::new(repository::top().join(LAB));
    command.arg(what).current_dir(repository::top());
    command
}

/// A network namespace with the interfaces of the server. Dropping this value removes it.
struct Network {
    name: String,
    _removed: Afterwards,
}

impl Network {
    fn make() -> Result<Self, String> {
        ran(lab("build").stdout(Stdio::null()))?;
        let name = format!("anabranch-{}", process::id());
        let removed = Afterwards::run(&format!("ip netns del {name}")).map_err(|e| e.to_string())?;
        let network = Self { name, _removed: removed };
        ran(lab("net").args([&network.name, &INTERFACES.to_string(), &RATE.to_string()]))?;
        Ok(network)
    }
}

impl Said {
    /// The megabytes a second of each round (`rate WAY OPERATION FIGURE`).
    fn rates(&self, way: &str, operation: &str) -> Vec<f64> {
        let words = self.lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let rates = words.filter_map(|words| match words.as_slice() {
            ["rate", of, with, figure] if *of == way && *with == operation => figure.parse().ok(),
            _ => None,
        });
        rates.collect()
    }

    /// The median throughput of a way, as a number and as text.
    pub(super) fn carried(&self, way: &str, operation: &str) -> (f64, String) {
        let rates = self.rates(way, operation);
        let (middle, (least, most)) = (median(&rates), ends(&rates));
        (middle, format!("{middle:.1} ({least:.1} to {most:.1})"))
    }

    /// The note of the guest about this subject (`info NAME: ...`).
    pub(super) fn note(&self, name: &str) -> &str {
        let begin = format!("info {name}: ");
        self.lines.iter().find_map(|line| line.strip_prefix(&begin)).unwrap_or_default()
    }
}

/// The last line of a page.
pub(super) fn measured() -> Result<String, String> {
    Ok(format!(
        "Measured on {}, on a machine with {} processors shared by client and server; load average {} at the end.",
        machine::day()?,
        machine::processors(),
        machine::load_average(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_notes_are_read() {
        let lines = [
            "info one: 1 connection",
            "rate one read 24.0",
            "rate one read 25.0",
            "rate one write 1.0",
            "rate four read 2.0",
            "rate one read x",
        ];
        let said = Said { lines: lines.map(str::to_owned).into() };
        assert_eq!(said.rates("one", "read"), [24.0, 25.0]);
        assert_eq!(said.carried("one", "read").1, "24.5 (24.0 to 25.0)");
        assert_eq!(said.note("one"), "1 connection");
    }
}
