//! The throughput of one connection and of four if links are the limit.

mod page;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};

use clap::{Args, ValueEnum};

use super::afterwards::{Afterwards, Scratch};
use super::program::{self, json};
use super::server::{Server, Settings};
use super::words;
use crate::command::{Chore, ran};
use crate::repository;

const PAGE: &str = "docs/measured/links.md";
const LINKS: u8 = 4;
/// The capacity of each link, in Mbit/s.
const RATE: u32 = 200;

#[derive(Args)]
pub(super) struct LinksArguments {
    /// Parts to measure [default: all]
    parts: Vec<Part>,
    /// Keep results here: parts may be measured one after the other
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Only write the page of the results that are there
    #[arg(long, requires = "results")]
    write: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Multifile,
    Singlefile,
    SingleThread,
    Trunks,
    Flows,
    SingleThreadNfs,
}

const PARTS: [Part; 6] =
    [Part::Multifile, Part::Singlefile, Part::SingleThread, Part::Trunks, Part::Flows, Part::SingleThreadNfs];

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Multifile => "multifile",
            Self::Singlefile => "singlefile",
            Self::SingleThread => "single-thread",
            Self::Trunks => "trunks",
            Self::Flows => "flows",
            Self::SingleThreadNfs => "single-thread-nfs",
        }
    }

    /// The limit during the measurement: a function of links-net.sh.
    fn limits(self) -> String {
        match self {
            Self::SingleThread | Self::SingleThreadNfs => format!("limit_links {LINKS} {RATE} bare"),
            Self::Flows => format!("limit_flows {RATE}"),
            _ => format!("limit_links {LINKS} {RATE}"),
        }
    }

    /// The family to measure, its target and its flags.
    fn family(self, server: &Server) -> (&'static str, String, Vec<String>) {
        let every = || (0..LINKS).flat_map(|link| ["--address".to_owned(), address(link).to_string()]);
        let quick = || "--quick".to_owned();
        match self {
            Self::Multifile => ("smb-mc-multifile", server.smb(), vec![quick()]),
            Self::Singlefile => ("smb-mc-singlefile", server.smb(), vec![quick()]),
            Self::SingleThread => ("single-thread", server.smb(), Vec::new()),
            Self::Trunks => {
                ("nfs-nconnect", server.nfs("4.1", None), [quick()].into_iter().chain(every()).collect())
            }
            Self::Flows => ("nfs-nconnect", server.nfs("3", None), vec![quick()]),
            Self::SingleThreadNfs => ("single-thread", server.nfs("4.1", None), every().collect()),
        }
    }
}

pub(super) fn run(given: &LinksArguments) -> Chore {
    let anabranch = program::anabranch()?;
    let home = Scratch::make(None).map_err(|e| format!("a scratch folder: {e}"))?;
    let results = given.results.as_deref().unwrap_or_else(|| home.path());
    fs::create_dir_all(results).map_err(|e| format!("{}: {e}", results.display()))?;
    if !given.write {
        measure(&anabranch, if given.parts.is_empty() { &PARTS } else { &given.parts }, results)?;
    }
    let file = |part: Part| results.join(format!("{}.json", part.name()));
    if let Some(missing) = PARTS.iter().find(|part| !file(**part).exists()) {
        println!("{PAGE} is not written: {} is missing", missing.name());
        return Ok(ExitCode::SUCCESS);
    }
    let read = |part: &Part| {
        let path = file(*part);
        let result = program::read_json(&path)?;
        let advice = json(Command::new(&anabranch).args(["advise", "--json"]).arg(&path))?;
        Ok(page::Measured { part: *part, result, advice })
    };
    let measured = PARTS.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    fs::write(repository::top().join(PAGE), page::page(&measured)?).map_err(|e| format!("{PAGE}: {e}"))?;
    println!("wrote {PAGE}");
    Ok(ExitCode::SUCCESS)
}

fn measure(anabranch: &Path, parts: &[Part], results: &Path) -> Result<(), String> {
    let links = Links::make()?;
    let settings = Settings {
        in_memory: true,
        listen: [445, 2049].map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        reached_at: Some(address(0)),
        before: words(&format!("ip netns exec {}", links.server)),
        ..Settings::default()
    };
    let server = Server::start(anabranch, &settings)?;
    for part in parts {
        println!("== {}", part.name());
        links.call(&part.limits())?;
        let (family, target, flags) = part.family(&server);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &links.client]).arg(anabranch).args(["bench", "run", family]);
        command.args(["--repetitions", "6", "--seconds", "0.4", "--ramp", "0.15", "--file-size", "4M"]);
        command.args(["--target", &target, "--out"]).arg(results.join(format!("{}.json", part.name())));
        ran(command.args(flags))?;
    }
    server.stop()
}

/// The server's address on a link (numbered from 0).
fn address(link: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, link, 1).into()
}

/// Two network namespaces with several links between them. Dropping this value removes them.
struct Links {
    server: String,
    client: String,
    _removed: Afterwards,
}

impl Links {
    fn make() -> Result<Self, String> {
        let id = process::id();
        let [server, client] = ["server", "client"].map(|end| format!("anabranch-{end}-{id}"));
        let remove = format!("(ip netns del {server}; ip netns del {client}) 2>/dev/null; true");
        let removed = Afterwards::run(&remove).map_err(|e| e.to_string())?;
        let links = Self { server, client, _removed: removed };
        links.call(&format!("can_make_links && make_links {LINKS}"))?;
        Ok(links)
    }

    /// Calls a function of tests/interop/links-net.sh.
    fn call(&self, function: &str) -> Result<(), String> {
        let script = format!(". tests/interop/links-net.sh && {function}");
        let mut command = Command::new("bash");
        command.args(["-uc", &script]).env("server_ns", &self.server).env("client_ns", &self.client);
        ran(command.current_dir(repository::top())).map_err(|e| format!("{function}: {e}"))
    }
}
