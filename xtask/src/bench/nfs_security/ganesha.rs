//! NFS-Ganesha with the keys of the realm.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::path::PathBuf;

use super::Served;
use crate::bench::afterwards::Scratch;
use crate::bench::realm::Realm;
use crate::command::{ran, said};
use crate::repository;

const SCRIPT: &str = "tests/peers/ganesha.sh";
/// The user and group of the tickets.
const OWNER: u32 = 1000;

/// A running Ganesha. Dropping this value ends it and removes its files.
pub(super) struct Ganesha {
    directory: PathBuf,
    ports: [u16; 2],
    /// Its process.
    pid: u32,
    /// When it is dropped, the process ends.
    _state: Scratch,
}

impl Ganesha {
    /// Starts it in the namespace of a realm, with a share in memory.
    pub(super) fn start(realm: &Realm) -> Result<Self, String> {
        let problem = |e: std::io::Error| format!("NFS-Ganesha: {e}");
        let script = repository::top().join(SCRIPT);
        let stop = |state: &str| format!("STATE={state} '{}' stop;", script.display());
        let state = Scratch::ended_by(Some("/dev/shm"), stop).map_err(problem)?;
        let directory = state.path().join("share");
        std::fs::create_dir(&directory).map_err(problem)?;
        chown(&directory, Some(OWNER), Some(OWNER)).map_err(problem)?;
        let [port, mount_port] = free_ports().map_err(problem)?;
        let of_script = |what: &str| {
            let mut command = realm.peer(&script);
            command.arg(what).env("STATE", state.path()).env("SHARE_DIR", &directory);
            command.env("PORT", port.to_string()).env("MOUNT_PORT", mount_port.to_string());
            command.env("KUID", OWNER.to_string()).env("KGID", OWNER.to_string());
            command
        };
        ran(&mut of_script("start"))?;
        let pid = said(&mut of_script("pid"))?.parse().map_err(|e| format!("{SCRIPT} pid: {e}"))?;
        Ok(Self { directory, ports: [port, mount_port], pid, _state: state })
    }

    /// Its share for clients of a version of NFS.
    pub(super) fn served(&self, version: &str) -> Result<Served, String> {
        let [port, mount_port] = self.ports;
        // NFSv3 mounts the directory, NFSv4 a place in the tree of the server.
        let path = if version == "3" { self.directory.display().to_string() } else { "/data".to_owned() };
        let path = path.strip_prefix('/').ok_or("the share of NFS-Ganesha has no absolute path")?.to_owned();
        Ok(Served { port, path, query: format!("&mountport={mount_port}"), pid: self.pid })
    }
}

/// Two ports that are free on this machine. A new namespace has all of them.
fn free_ports() -> std::io::Result<[u16; 2]> {
    let bound = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let [first, second] = bound.map(|bound| bound?.local_addr().map(|address| address.port()));
    Ok([first?, second?])
}
