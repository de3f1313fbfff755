//! What Kerberos and TLS cost an NFS server.

mod ganesha;
mod section;

use std::process::{Command, ExitCode};

use clap::Args;

use self::ganesha::Ganesha;
use super::program;
use super::program::{json, number};
use super::realm::{Realm, SHA1, SHA384};
use super::rounds::rotated;
use crate::command::{Chore, output};
use crate::markdown::write_section;
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
/// The block of the reads.
const BLOCK_BYTES: usize = 64 << 10;
/// How often each primitive is timed in a round.
const PRIMITIVE_TIMES: &str = "500";

/// A way to protect calls.
struct Mode {
    name: &'static str,
    /// What the target says.
    query: &'static str,
    /// The encryption type of the session key.
    enctype: &'static str,
    /// The bare primitive that does the same to the data, by its name in the example `primitive_cost`.
    primitive: Option<&'static str>,
}

const MODES: [Mode; 7] = [
    Mode { name: "plain (AUTH_SYS)", query: "", enctype: SHA1, primitive: None },
    Mode { name: "krb5", query: "&sec=krb5", enctype: SHA1, primitive: None },
    Mode {
        name: "krb5i, aes256-sha1",
        query: "&sec=krb5i",
        enctype: SHA1,
        primitive: Some("checksum aes256-sha1"),
    },
    Mode {
        name: "krb5i, aes256-sha384",
        query: "&sec=krb5i",
        enctype: SHA384,
        primitive: Some("checksum aes256-sha384"),
    },
    Mode {
        name: "krb5p, aes256-sha1",
        query: "&sec=krb5p",
        enctype: SHA1,
        primitive: Some("encryption aes256-sha1"),
    },
    Mode {
        name: "krb5p, aes256-sha384",
        query: "&sec=krb5p",
        enctype: SHA384,
        primitive: Some("encryption aes256-sha384"),
    },
    Mode {
        name: "TLS, AES-256-GCM",
        query: "&xprtsec=tls&ca=",
        enctype: SHA1,
        primitive: Some("encryption TLS"),
    },
];

#[derive(Args)]
pub(super) struct NfsSecurityArguments {
    /// Interleaved rounds; one more warms up
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The version of NFS: 3 or 4.1
    #[arg(long, default_value = "3")]
    version: String,
    /// The same modes of NFS-Ganesha in turns with those of Anabranch, but TLS, which it does not have
    #[arg(long)]
    ganesha: bool,
    /// Write the section of docs/measured/performance.md
    #[arg(long)]
    write: bool,
}

/// A round: the server's CPU for one read in each mode, the same of Ganesha, and the time of each primitive, in microseconds.
struct Round {
    cpu: [f64; MODES.len()],
    /// NaN where Ganesha is not measured.
    ganesha: [f64; MODES.len()],
    primitives: Vec<(String, f64)>,
}

/// A server in the realm.
struct Served {
    port: u16,
    /// The path of the share, without the first slash.
    path: String,
    /// What else the target says of the server.
    query: String,
    pid: u32,
}

pub(super) fn run(given: &NfsSecurityArguments) -> Chore {
    let anabranch = program::anabranch()?;
    let primitives = program::example("primitive_cost")?;
    let realm = Realm::make()?;
    let server = realm.serve(&anabranch)?;
    let (port, path) = (server.address("nfs").port(), "data".to_owned());
    let ours = Served { port, path, query: String::new(), pid: server.pid() };
    let ganesha = given.ganesha.then(|| Ganesha::start(&realm)).transpose()?;
    let theirs = ganesha.as_ref().map(|ganesha| ganesha.served(&given.version)).transpose()?;
    let mut rounds = Vec::new();
    for round in 0..=given.rounds {
        let mut cpu = [[f64::NAN; MODES.len()]; 2];
        for mode in rotated::<{ MODES.len() }>(round) {
            let peer = theirs.as_ref().filter(|_| !MODES[mode].is_tls());
            // Each server is the first one in every other round.
            let mut servers = vec![(0, &ours)];
            servers.extend(peer.map(|peer| (1, peer)));
            if !round.is_multiple_of(2) {
                servers.reverse();
            }
            for (which, served) in servers {
                cpu[which][mode] = cpu_of_read(given, &realm, served, &MODES[mode])?;
            }
        }
        let [cpu, ganesha] = cpu;
        rounds.push(Round { cpu, ganesha, primitives: timed(&mut Command::new(&primitives))? });
    }
    server.stop()?;
    let section = section::section(given, rounds.get(1..).unwrap_or_default())?;
    println!("{section}");
    if given.write {
        write_section(&repository::top().join(PAGE), &section)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Mode {
    fn is_tls(&self) -> bool {
        self.query.contains("tls")
    }
}

/// The server's CPU for one read, in microseconds.
fn cpu_of_read(
    given: &NfsSecurityArguments,
    realm: &Realm,
    server: &Served,
    mode: &Mode,
) -> Result<f64, String> {
    let Mode { name, query, enctype, .. } = mode;
    let Served { port, path, query: of_server, pid } = server;
    let authority = if mode.is_tls() { realm.authority() } else { String::new() };
    let user = if query.contains("krb5") { "" } else { "&uid=1000&gid=1000" };
    let version = &given.version;
    let target =
        format!("nfs://files.lab.test:{port}/{path}?vers={version}{of_server}{user}{query}{authority}");
    let mut command = realm.client(&program::anabranch()?, enctype);
    command.args(["bench", "job", "--target", &target, "--block-size", "64k", "--queue-depth", "8"]);
    command.args(["--server-pid", &pid.to_string(), "--seconds", &given.seconds.to_string()]);
    command.args(["--repetitions", "1", "--file-size", "16M", "--json"]);
    let measured = json(&mut command).map_err(|e| format!("{name}: {e}"))?;
    // The KDC chooses the type of the session key.
    let negotiated = &measured["environment"]["negotiated"];
    let is_of_type = |field: &str| negotiated[field].as_str().is_some_and(|text| text.ends_with(enctype));
    let is_protected = ["krb5i", "krb5p"].iter().any(|how| query.ends_with(how));
    if is_protected && !is_of_type("signing") && !is_of_type("cipher") {
        return Err(format!("{name}: the session key is not of the type {enctype}: {negotiated}"));
    }
    Ok(number(&measured["rows"][0]["measure"]["server_cpu_us"]["median"]))
}

/// The times of the primitives, in microseconds.
fn timed(primitives: &mut Command) -> Result<Vec<(String, f64)>, String> {
    let printed = output(primitives.args([&BLOCK_BYTES.to_string(), PRIMITIVE_TIMES]))?;
    let line = |line: &str| {
        let (name, time) = line.split_once('\t')?;
        Some((name.to_owned(), time.parse::<f64>().ok()? / 1000.0))
    };
    printed.lines().map(line).collect::<Option<_>>().ok_or_else(|| "the figures cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_microseconds() {
        let said = timed(Command::new("printf").arg("checksum aes256-sha1\\t12500\\n"));
        assert_eq!(said, Ok(vec![("checksum aes256-sha1".to_owned(), 12.5)]));
        assert!(timed(Command::new("echo").arg("nothing")).is_err());
    }
}
