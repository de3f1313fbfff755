//! What the tests of tests/interop/vservers.sh do: a gateway that serves vservers in CephFS, or a client of one.
//!
//! vservers serve NAME CONFIGURATION USER POOL STATE    a gateway, which does what its lines of input say:
//!     begin VSERVER DIRECTORY ADDRESS    serves the share `data` over NFS
//!     end VSERVER                        lets it go
//! vservers watch ADDRESS SECONDS    a client with an open file, which writes every 10 ms
//! vservers hold ADDRESS NAME SECONDS [FILES]    a client with open files (one) and a lock in each, which writes every 10 ms, and reads
//!     at the end
#![expect(clippy::unwrap_used, reason = "an example fails by panicking")]

mod hold;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../../../../anabranch/tests/program/nfs4/mod.rs"]
mod nfs4;
#[path = "../../tests/no_program/mod.rs"]
mod no_program;
mod watch;

use std::io::BufRead;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_gateway::settings::{Settings, ShareSettings};
use anabranch_gateway::{
    Gateway, NewVserver, PortmapSockets, Prepared, Problem, Reach, Sockets, VserverShare,
};
use rados::Place;
use state::cluster::Member;

use no_program::NoProgram;

/// How long the end of a gateway may take.
const PATIENCE: Duration = Duration::from_secs(60);
const DESCRIPTORS: u64 = 1000;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["serve", name, configuration, user, pool, state] => {
            let place = Place {
                configuration: configuration.into(),
                user: user.to_owned(),
                pool: pool.to_owned(),
                namespace: "vservers".to_owned(),
            };
            serve(name, &place, Path::new(state))
        }
        ["watch", address, seconds] => {
            watch::watch(address, Duration::from_secs(seconds.parse().unwrap()));
            Ok(())
        }
        ["hold", address, name, seconds] => {
            hold::hold(address, name, Duration::from_secs(seconds.parse().unwrap()), 1);
            Ok(())
        }
        ["hold", address, name, seconds, files] => {
            let length = Duration::from_secs(seconds.parse().unwrap());
            hold::hold(address, name, length, files.parse().unwrap());
            Ok(())
        }
        _ => return ExitCode::from(2),
    };
    if let Err(problem) = done {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn serve(name: &str, place: &Place, state: &Path) -> Result<(), Problem> {
    let own = state.with_extension("own");
    std::fs::create_dir_all(&own).unwrap();
    let ceph = storage_ceph::Place {
        configuration: place.configuration.clone(),
        user: place.user.clone(),
        file_system: None,
    };
    let settings =
        Settings { shares: vec![ShareSettings::new("own", own)], ceph, ..Settings::new(state.to_owned()) };
    let sockets = Sockets {
        smb: Vec::new(),
        smb_quic: Vec::new(),
        nfs: Vec::new(),
        control: listen("127.0.0.1:0"),
        portmap: PortmapSockets::default(),
    };
    let gateway = Gateway::start(Prepared::new(&settings, DESCRIPTORS)?, sockets, Arc::new(NoProgram))?;
    let store = rados::Gateway::connect(place, name)?;
    match Member::join(Arc::new(store), name, "").unwrap() {
        Ok(member) => gateway.join(Arc::new(member))?,
        Err(holder) => println!("{} has the name", holder.gateway),
    }
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let (line, begun) = (line.unwrap(), Instant::now());
        let words: Vec<_> = line.split(' ').collect();
        let done = match words[..] {
            ["begin", vserver, directory, address] => gateway.serve_vserver(new(vserver, directory, address)),
            ["end", vserver] => gateway.end_vserver(vserver).map(drop),
            _ => panic!("{line}"),
        };
        match done {
            Ok(()) => println!("{} {} ms", words[..2].join(" "), begun.elapsed().as_millis()),
            Err(problem) => println!("refused: {}", problem.what),
        }
    }
    assert!(gateway.stop()?.within(PATIENCE));
    Ok(())
}

fn new(vserver: &str, directory: &str, address: &str) -> NewVserver {
    let share = VserverShare::new("data", directory);
    let reach = Reach::Sockets { smb: Vec::new(), nfs: vec![listen(address)] };
    NewVserver { name: vserver.to_owned(), shares: vec![share], coming: Vec::new(), reach }
}

fn listen(address: &str) -> TcpListener {
    TcpListener::bind(address.parse::<SocketAddr>().unwrap()).unwrap()
}
