//! `anabranch demo`: something to mount, in one command.

use std::fmt::Write;
use std::fs::{self, DirBuilder};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use gateway::settings::ShareSettings;
use gateway::{Addresses, PortmapSockets, Sockets};
use service_address::Raised;

use crate::cli::Demo;
use crate::control_access::write_private;
use crate::log;
use crate::ports::{self, Role};
use crate::problem::{Cause, Problem, Result, serving};
use crate::process::Process;
use crate::serve::{self, Reached};
use crate::settings::{Given, Settings, ShareGiven, Squash, UserGiven};

/// Made where the program is started.
const DIRECTORY: &str = "anabranch-demo";
const SHARE: &str = "demo";
const USER: &str = "demo";
/// Longest password that every client's prompt takes, without letters that look alike.
const PASSWORD_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const PASSWORD_LENGTH: usize = 12;

/// The file of the password, in the state directory.
const PASSWORD_FILE: &str = "demo-password";

/// Serves `./anabranch-demo` until a signal asks to end.
///
/// # Errors
/// The directory cannot be made, or no port is free.
pub(crate) fn run(demo: &Demo) -> Result<()> {
    let directory = PathBuf::from(DIRECTORY);
    let share = directory.join("share");
    let state = demo.state.clone().unwrap_or_else(|| directory.join("state"));
    make_directory(&share, 0o777)?;
    make_directory(&state, 0o700)?;
    let password = password(&state.join(PASSWORD_FILE))?;
    let settings = settings(&state, &share, &password)?;
    let prepared = serve::prepare(&settings)?;
    let sockets = Sockets {
        smb: vec![listen(ports::SMB, demo.listen, demo.smb)?],
        smb_quic: Vec::new(),
        nfs: vec![listen(ports::NFS, demo.listen, demo.nfs)?],
        control: listen(ports::CONTROL, Ipv4Addr::LOCALHOST.into(), demo.control)?,
        portmap: PortmapSockets::default(),
    };
    serve::serve(None, prepared, Reached { sockets, raised: Raised::default() }, Process::begin()?, |at| {
        log::say(std::io::stdout(), &instructions(demo.listen, at, &share, &password));
    })
}

/// Listens on the port that was given, or near the one that anyone may take.
fn listen(role: Role, ip: IpAddr, port: Option<u16>) -> Result<TcpListener> {
    match port {
        Some(port) => ports::listen(role, SocketAddr::new(ip, port)),
        None => ports::first_free(role, SocketAddr::new(ip, role.free_port)),
    }
}

fn make_directory(directory: &Path, mode: u32) -> Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(|e| {
        let what = format!("cannot make the directory {}: {e}", directory.display());
        Problem::new(Cause::Directory, what, "Start the demo in a directory that you may write.")
    })
}

/// The password of the demo before this one, so that what is mounted stays so; else a new one.
fn password(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Ok(kept) if !kept.trim().is_empty() => return Ok(kept.trim().to_owned()),
        _ => {}
    }
    let mut random = [0; PASSWORD_LENGTH];
    getrandom::fill(&mut random).map_err(serving("no random numbers"))?;
    let made: String =
        random.iter().map(|byte| char::from(PASSWORD_LETTERS[usize::from(byte % 32)])).collect();
    write_private(file, &made)?;
    Ok(made)
}

/// NFS clients are taken for the user who started the demo: their own numbers mean nothing here.
fn settings(state: &Path, share: &Path, password: &str) -> Result<Settings> {
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let given = Given {
        share: vec![ShareGiven(ShareSettings::new(SHARE, share))],
        user: vec![UserGiven {
            name: USER.to_owned(),
            password: Some(password.to_owned()),
            nt_hash: None,
            gid_or_password: None,
            uid: Some(me.0),
            gid: Some(me.1),
            groups: None,
        }],
        state: Some(state.to_owned()),
        nfs_squash: Some(Squash::All),
        ..Given::default()
    };
    let mut settings = Settings::new(given)?;
    settings.gateway.nfs_anonymous = Some(me);
    Ok(settings)
}

fn instructions(listen: IpAddr, at: &Addresses, share: &Path, password: &str) -> String {
    let here = share.canonicalize().unwrap_or_else(|_| share.to_owned());
    let open = listen.is_unspecified();
    let host = if open { "THIS-MACHINE".to_owned() } else { listen.to_string() };
    let [smb, nfs] = [&at.smb, &at.nfs].map(|at| at.first().map_or(0, SocketAddr::port));
    let mut text = String::new();
    let _ = write!(
        text,
        "Serving {here} as the share {SHARE}, over SMB and NFS at the same time.

    user       {USER}
    password   {password}

Linux, SMB:
    sudo mount -t cifs //{host}/{SHARE} /mnt -o vers=3.1.1,port={smb},username={USER},password={password},uid=$(id -u)
Linux, NFS (vers=4.1 too):
    sudo mount -t nfs {host}:/{SHARE} /mnt -o vers=4.2,proto=tcp,port={nfs},nconnect=4
Linux, NFS version 3:
    sudo mount -t nfs {host}:/{SHARE} /mnt -o vers=3,proto=tcp,port={nfs},mountport={nfs},mountproto=tcp,nolock
Windows (11 24H2 or newer, PowerShell):
    New-SmbMapping -LocalPath X: -RemotePath \\\\{host}\\{SHARE} -TcpPort {smb} -UserName {USER} -Password {password}
macOS, SMB:
    mkdir -p ~/{SHARE} && mount_smbfs //{USER}:{password}@{host}:{smb}/{SHARE} ~/{SHARE}
macOS, NFS:
    mkdir -p ~/{SHARE} && mount_nfs -o vers=3,tcp,port={nfs},mountport={nfs},nolocks {host}:/{SHARE} ~/{SHARE}
Without mounting:
    smbclient //{host}/{SHARE} -p {smb} -U {USER}%{password} -c ls

Health and metrics: http://{control}/metrics
",
        here = here.display(),
        control = at.control,
    );
    text.push_str(if open {
        "Other machines can reach it, and NFS asks for no password. "
    } else {
        "Only this machine can reach it; `anabranch demo --listen 0.0.0.0` admits others (NFS asks for no password). "
    });
    text.push_str("Ctrl-C ends it.\n");
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_instructions_name_the_ports_that_were_had() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let text = instructions(
            [127, 0, 0, 1].into(),
            &Addresses {
                smb: vec![at(10446)],
                smb_quic: Vec::new(),
                nfs: vec![at(12050)],
                control: at(18081),
            },
            Path::new("."),
            "pw",
        );
        for expected in [
            "//127.0.0.1/demo /mnt -o vers=3.1.1,port=10446",
            "vers=4.2,proto=tcp,port=12050,nconnect=4",
            "port=12050,mountport=12050",
            "\\\\127.0.0.1\\demo -TcpPort 10446",
            "http://127.0.0.1:18081/metrics",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn each_demo_has_a_password_of_its_own_and_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| password(&directory.path().join(name)).unwrap();
        let (one, other) = (of("one"), of("other"));
        assert_eq!(one.len(), PASSWORD_LENGTH);
        assert_ne!(one, other);
        assert_eq!(of("one"), one);
        let mode = fs::metadata(directory.path().join("one")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
