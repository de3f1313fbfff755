//! Samba, from Debian's packages, with directories of its own: on the loopback, or in namespaces.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use load::ServerProcess;
use load::target::{SmbLogon, SmbTarget, Target};

use super::daemon::{Daemon, find, version};
use super::place::{Contender, Medium, Shares};
use super::scratch::{Account, Scratch, trouble};
use super::site::Site;
use crate::error::{Cause, Error, Result};

/// Samba that runs.
#[derive(Debug)]
pub struct Samba {
    daemon: Daemon,
    name: String,
    address: Ipv4Addr,
    port: u16,
    account: Account,
    password: String,
    shares: Shares,
}

impl Samba {
    /// Starts it.
    ///
    /// # Errors
    /// A package is missing, or it does not start.
    pub fn start(
        site: &Site,
        scratch: &Scratch,
        shares: Shares,
        account: Account,
        password: &str,
    ) -> Result<Self> {
        let smbd = find("smbd", "samba")?;
        let smbpasswd = find("smbpasswd", "samba-common-bin")?;
        let (state, port) = (scratch.path().join("samba"), site.port(445)?);
        for part in ["private", "lock", "state", "cache", "run", "ncalrpc"] {
            let path = state.join(part);
            fs::create_dir_all(&path).map_err(|e| trouble(&path, &e))?;
        }
        let file = state.join("smb.conf");
        fs::write(&file, configuration(site, &state, port, account, &shares))
            .map_err(|e| trouble(&file, &e))?;
        let seen = site.seen(&file);
        add_account(site.command(&smbpasswd), &seen, account, password)?;
        let words = site.words(&smbd);
        let arguments = ["--foreground", "--no-process-group", "-s"].map(OsStr::new);
        let arguments = words.iter().skip(1).map(OsString::as_os_str).chain(arguments);
        let arguments: Vec<&OsStr> = arguments.chain([seen.as_os_str()]).collect();
        let first = words.first().map_or(smbd.as_path(), Path::new);
        let daemon = Daemon::start("smbd", first, &arguments, &[], state.join("said"))?;
        daemon.wait_for(port)?;
        let name = format!("Samba {}", version(&smbd, "--version"));
        Ok(Self { daemon, name, address: site.address, port, account, password: password.to_owned(), shares })
    }

    /// What is measured of it in a place.
    #[must_use]
    pub fn contender(&self, place: Medium) -> Contender {
        let target = Target::Smb(SmbTarget {
            logon: SmbLogon::Password { user: self.account.name.to_owned(), password: self.password.clone() },
            host: self.address.to_string(),
            port: self.port,
            share: place.peers().share().to_owned(),
        });
        let process = ServerProcess { pid: self.daemon.pid() };
        Contender::new("samba", &self.name, target, process, self.shares.of(place.peers()))
    }
}

/// Several channels, large credits and asynchronous I/O; signed and encrypted where the client asks for it. Nothing that
/// another program might change beside it is looked for.
fn configuration(site: &Site, state: &Path, port: u16, account: Account, shares: &Shares) -> String {
    let (state, address) = (site.seen(state), site.address);
    let state = state.display();
    let mut text = format!(
        "[global]
    netbios name = PEER
    server role = standalone server
    smb ports = {port}
    interfaces = \"{address};speed=10000000000,capability=RSS\"
    bind interfaces only = yes
    disable netbios = yes
    disable spoolss = yes
    load printers = no
    printcap name = /dev/null
    server min protocol = SMB3
    server max protocol = SMB3_11
    server multi channel support = yes
    server signing = default
    server smb encrypt = default
    aio read size = 1
    aio write size = 1
    smb2 max credits = 8192
    private dir = {state}/private
    lock directory = {state}/lock
    state directory = {state}/state
    cache directory = {state}/cache
    pid directory = {state}/run
    ncalrpc dir = {state}/ncalrpc
    passdb backend = tdbsam:{state}/private/passdb.tdb
    log file = {state}/log
    log level = 1
    map to guest = never
    store dos attributes = yes
    strict locking = auto
    kernel oplocks = no
    kernel share modes = no
    posix locking = no
    durable handles = yes
    rpc_server:srvsvc = embedded
"
    );
    for (place, directory) in shares.peers() {
        let (share, path, user) = (place.share(), site.seen(directory), account.name);
        let path = path.display();
        text.push_str(&format!(
            "[{share}]\n    path = {path}\n    read only = no\n    valid users = {user}\n"
        ));
    }
    text
}

/// An account of Samba's own database; the user of the machine is not touched.
fn add_account(mut command: Command, file: &Path, account: Account, password: &str) -> Result<()> {
    let failed = |why: String| Error::new(Cause::Serving, format!("smbpasswd: {why}"), "");
    command.arg("-c").arg(file).args(["-L", "-s", "-a", account.name]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        writeln!(input, "{password}\n{password}").map_err(|e| failed(e.to_string()))?;
    }
    let ended = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if ended.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&ended.stderr).into_owned()))
    }
}

/// What must be there for it.
///
/// # Errors
/// A package is missing.
pub fn check_packages() -> Result<()> {
    let programs: [(&str, &str); 2] = [("smbd", "samba"), ("smbpasswd", "samba-common-bin")];
    programs.into_iter().try_for_each(|(program, package)| find(program, package).map(|_: PathBuf| ()))
}
