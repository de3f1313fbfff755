//! NFS-Ganesha, from Debian's packages, with directories of its own: on the loopback, or in namespaces.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use load::ServerProcess;
use load::result::Protocol;
use load::target::{NfsSecurity, NfsTarget, Target};

use super::daemon::{Daemon, find, missing, version};
use super::place::{Contender, Medium, Shares};
use super::scratch::{Account, Scratch, trouble};
use super::site::Site;
use crate::error::{Cause, Error, Result};

/// Ganesha 4.3 ends when no port mapper takes its registration, and asks none about the ports that it is given: this answers
/// its two calls. A port mapper of this machine is not told of servers that are gone in a minute.
const NO_PORT_MAPPER: &str = "_Bool svc_reg(void) { return 1; }\n_Bool rpcb_unset(void) { return 1; }\n";

/// What it says, at the level EVENT, once it serves.
const INITIALIZED: &str = "NFS SERVER INITIALIZED";

/// Ganesha that runs.
#[derive(Debug)]
pub struct Ganesha {
    daemon: Daemon,
    name: String,
    site: Site,
    port: u16,
    mount_port: u16,
    account: Account,
    shares: Shares,
}

impl Ganesha {
    /// Starts it.
    ///
    /// # Errors
    /// A package is missing, or it does not start.
    pub fn start(site: &Site, scratch: &Scratch, shares: Shares, account: Account) -> Result<Self> {
        let program = find("ganesha.nfsd", "nfs-ganesha")?;
        let plugins = plugins()?;
        let state = scratch.path().join("ganesha");
        fs::create_dir_all(state.join("recovery")).map_err(|e| trouble(&state, &e))?;
        let preloaded = preloaded(&state)?;
        let [port, mount_port, lock_port] = [site.port(2049)?, site.port(20048)?, site.port(32803)?];
        let ports = [port, mount_port, lock_port];
        let file = state.join("ganesha.conf");
        fs::write(&file, configuration(site, &state, &plugins, ports, &shares))
            .map_err(|e| trouble(&file, &e))?;
        let (log, pid) = (state.join("said"), state.join("pid"));
        let (file, pid, preloaded) = (site.seen(&file), site.seen(&pid), site.seen(&preloaded));
        let words = site.words(&program);
        let own = [
            OsStr::new("-F"),
            OsStr::new("-f"),
            file.as_os_str(),
            OsStr::new("-L"),
            OsStr::new("STDERR"),
            OsStr::new("-p"),
            pid.as_os_str(),
        ];
        let arguments: Vec<&OsStr> = words.iter().skip(1).map(OsString::as_os_str).chain(own).collect();
        let first = words.first().map_or(program.as_path(), Path::new);
        let environment = [("LD_PRELOAD", preloaded.as_os_str())];
        let daemon = Daemon::start("ganesha.nfsd", first, &arguments, &environment, log)?;
        // It listens before it knows its own programs: a call that comes in between gets PROG_UNAVAIL.
        daemon.wait_until(|said| said.contains(INITIALIZED).then_some(()))?;
        let name = format!("NFS-Ganesha {}", version(&program, "-v"));
        Ok(Self { daemon, name, site: site.clone(), port, mount_port, account, shares })
    }

    /// What is measured of it in a place.
    #[must_use]
    pub fn contender(&self, protocol: Protocol, place: Medium) -> Contender {
        let (place, v41) = (place.peers(), protocol == Protocol::Nfs41);
        let directory = self.shares.of(place);
        let target = Target::Nfs(NfsTarget {
            host: self.site.address.to_string(),
            port: self.port,
            mount_port: Some(self.mount_port),
            path: if v41 {
                format!("/{}", place.share())
            } else {
                self.site.seen(directory).display().to_string()
            },
            v41,
            uid: self.account.uid,
            gid: self.account.gid,
            security: NfsSecurity::Sys,
            tls: None,
        });
        let process = ServerProcess { pid: self.daemon.pid() };
        Contender::new("ganesha", &self.name, target, process, directory)
    }
}

/// Where its ways to store files are; the one for local directories is a package of its own.
fn plugins() -> Result<PathBuf> {
    let places =
        fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path().join("ganesha"));
    let mut with_it = places.filter(|place| place.join("libfsalvfs.so").is_file());
    with_it.next().ok_or_else(|| missing("libfsalvfs.so", "nfs-ganesha-vfs"))
}

fn preloaded(state: &Path) -> Result<PathBuf> {
    let compiler = find("gcc", "gcc")?;
    let (source, library) = (state.join("no-port-mapper.c"), state.join("no-port-mapper.so"));
    fs::write(&source, NO_PORT_MAPPER).map_err(|e| trouble(&source, &e))?;
    let made = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    match made {
        Ok(done) if done.status.success() => Ok(library),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            Err(Error::new(Cause::Serving, format!("gcc cannot make a library: {said}"), ""))
        }
        Err(e) => Err(Error::new(Cause::Serving, format!("gcc: {e}"), "")),
    }
}

/// No grace period, since nobody has anything to reclaim; no access control lists, no delegations.
fn configuration(site: &Site, state: &Path, plugins: &Path, ports: [u16; 3], shares: &Shares) -> String {
    let (state, address) = (site.seen(state), site.address);
    let (state, plugins, [port, mount_port, lock_port]) = (state.display(), plugins.display(), ports);
    let mut text = format!(
        "NFS_CORE_PARAM {{
    Bind_addr = {address};
    NFS_Port = {port}; MNT_Port = {mount_port}; NLM_Port = {lock_port};
    Protocols = 3, 4;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
    Plugins_Dir = \"{plugins}\";
}}
NFSV4 {{
    Minor_Versions = 0, 1, 2;
    Graceless = true; Lease_Lifetime = 60;
    Delegations = false;
    RecoveryBackend = fs; RecoveryRoot = \"{state}/recovery\";
    Only_Numeric_Owners = true;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
LOG {{ Default_Log_Level = EVENT; }}
"
    );
    for (number, (place, directory)) in (1..).zip(shares.peers()) {
        let (share, path) = (place.share(), site.seen(directory));
        let path = path.display();
        text.push_str(&format!(
            "EXPORT {{
    Export_Id = {number}; Path = \"{path}\"; Pseudo = \"/{share}\";
    Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Transports = TCP;
    Protocols = 3, 4; PrivilegedPort = false; Disable_ACL = true;
    MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
    FSAL {{ Name = VFS; }}
}}
"
        ));
    }
    text
}

/// What must be there for it.
///
/// # Errors
/// A package is missing.
pub fn check_packages() -> Result<()> {
    find("ganesha.nfsd", "nfs-ganesha")?;
    plugins()?;
    find("gcc", "gcc").map(|_| ())
}
