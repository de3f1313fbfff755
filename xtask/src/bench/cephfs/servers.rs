//! A Ceph cluster of this machine, and servers of its file system.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;

use crate::bench::afterwards::Scratch;
use crate::command::{ran, said};
use crate::repository;

const LAB: &str = "tests/lab/ceph-lab";
const SAMBA: &str = "tests/peers/samba.sh";
const GANESHA: &str = "tests/peers/ganesha.sh";
/// Makes directories in which everybody may write.
const MAKE: &str = "
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id='admin')
fs.mount()
for path in sys.argv[2:]:
    fs.mkdir(path, 0o777)
    fs.chmod(path, 0o777)
fs.shutdown()
";
/// The password of Samba's user.
const PASSWORD: &str = "bench-pass";

/// A cluster of tests/lab. Dropping this value ends it.
pub(super) struct Cluster {
    state: Scratch,
}

/// A server as a target of the load generator.
pub(super) struct Served {
    pub(super) target: String,
    pub(super) pid: u32,
}

/// A running peer. Dropping this value ends it.
pub(super) struct Peer {
    pub(super) name: &'static str,
    ports: [u16; 2],
    path: &'static str,
    pid: u32,
    /// When it is dropped, the process ends.
    _state: Scratch,
}

impl Cluster {
    /// Starts a cluster.
    pub(super) fn start() -> Result<Self, String> {
        let lab = repository::top().join(LAB);
        let down = |state: &str| format!("CEPH_LAB_DIR={state}/ceph '{}' down >/dev/null;", lab.display());
        let state = Scratch::ended_by(None, down).map_err(|e| format!("{LAB}: {e}"))?;
        let cluster = Self { state };
        ran(Command::new(&lab).arg("up").env("CEPH_LAB_DIR", cluster.state.path().join("ceph")))?;
        Ok(cluster)
    }

    fn configuration(&self) -> PathBuf {
        self.state.path().join("ceph/ceph.conf")
    }

    /// The lines of a server's configuration.
    pub(super) fn lines(&self) -> String {
        format!("ceph-config = \"{}\"\nceph-user = \"client.admin\"\n", self.configuration().display())
    }

    /// Makes directories at the top of the file system.
    pub(super) fn make_directories(&self, paths: &[&str]) -> Result<(), String> {
        // Debian's Python has Ceph's module.
        ran(Command::new("/usr/bin/python3").args(["-c", MAKE]).arg(self.configuration()).args(paths))
    }
}

impl Peer {
    /// Samba with vfs_ceph.
    pub(super) fn samba(cluster: &Cluster, path: &'static str) -> Result<Self, String> {
        Self::start(cluster, "Samba", SAMBA, path)
    }

    /// NFS-Ganesha with FSAL_CEPH.
    pub(super) fn ganesha(cluster: &Cluster, path: &'static str) -> Result<Self, String> {
        Self::start(cluster, "NFS-Ganesha", GANESHA, path)
    }

    fn start(
        cluster: &Cluster,
        name: &'static str,
        script: &str,
        path: &'static str,
    ) -> Result<Self, String> {
        let problem = |e: std::io::Error| format!("{name}: {e}");
        let program = repository::top().join(script);
        let stop = |state: &str| format!("STATE={state}/peer '{}' stop >/dev/null;", program.display());
        let state = Scratch::ended_by(None, stop).map_err(problem)?;
        let ports = free_ports().map_err(problem)?;
        let of_script = |what: &str| {
            let mut command = Command::new(&program);
            command.arg(what).env("STATE", state.path().join("peer")).env("SHARE_DIR", path);
            command.env("CEPH", cluster.configuration()).env("BPASS", PASSWORD);
            command.env("PORT", ports[0].to_string()).env("MOUNT_PORT", ports[1].to_string());
            command
        };
        ran(&mut of_script("start"))?;
        let pid = said(&mut of_script("pid"))?.parse().map_err(|e| format!("{script} pid: {e}"))?;
        Ok(Self { name, ports, path, pid, _state: state })
    }

    /// Its share for clients of SMB or of a version of NFS.
    pub(super) fn served(&self, over: &str) -> Result<Served, String> {
        let [port, mount_port] = self.ports;
        let target = match over {
            "smb" => format!("smb://bench:{PASSWORD}@127.0.0.1:{port}/bench"),
            // NFSv3 mounts the directory, NFSv4 a place in the tree of the server.
            "3" => {
                format!("nfs://127.0.0.1:{port}{}?vers=3&mountport={mount_port}&uid=1000&gid=1000", self.path)
            }
            "4.1" => format!("nfs://127.0.0.1:{port}/data?vers=4.1&uid=1000&gid=1000"),
            other => return Err(format!("{} does not serve {other}", self.name)),
        };
        Ok(Served { target, pid: self.pid })
    }
}

/// Two ports that are free on this machine.
fn free_ports() -> std::io::Result<[u16; 2]> {
    let bound = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let [first, second] = bound.map(|bound| bound?.local_addr().map(|address| address.port()));
    Ok([first?, second?])
}
