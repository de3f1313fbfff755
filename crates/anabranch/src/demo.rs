//! `anabranch demo`: something to mount, in one command.

use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use limits::Plan;
use share::Terms;

use crate::ports::{self, Role};
use crate::problem::{Cause, Problem, Result};
use crate::serve::{self, Addresses, Prepared, Sockets, serving};
use crate::settings::{Given, Settings, ShareGiven, Squash, UserGiven};

/// Made where the program is started.
const DIRECTORY: &str = "anabranch-demo";
const SHARE: &str = "demo";
const USER: &str = "demo";
/// Longest password that every client's prompt takes, without letters that look alike.
const PASSWORD_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const PASSWORD_LENGTH: usize = 12;

/// Serves `./anabranch-demo` until a signal asks to end.
///
/// # Errors
/// The directory cannot be made, or no port is free.
pub(crate) fn run(listen: IpAddr) -> Result<()> {
    let directory = PathBuf::from(DIRECTORY);
    let share = directory.join("share");
    fs::create_dir_all(&share).map_err(|e| {
        let what = format!("cannot make the directory {}: {e}", share.display());
        Problem::new(Cause::Directory, what, "Start the demo in a directory that you may write.")
    })?;
    let password = password()?;
    let settings = settings(&directory, &share, &password)?;
    let prepared = Prepared::new(&settings)?;
    let on = |role: Role| ports::first_free(role, SocketAddr::new(listen, role.free_port));
    let loopback = SocketAddr::from(([127, 0, 0, 1], ports::CONTROL.free_port));
    let sockets = Sockets {
        smb: on(ports::SMB)?,
        nfs: on(ports::NFS)?,
        control: ports::first_free(ports::CONTROL, loopback)?,
    };
    serve::serve(&settings, prepared, sockets, |at| print!("{}", instructions(at, &share, &password)))
}

/// A new password at each start: the demo may be open to other machines.
fn password() -> Result<String> {
    let mut random = [0; PASSWORD_LENGTH];
    getrandom::fill(&mut random).map_err(serving("no random numbers"))?;
    Ok(random.iter().map(|byte| char::from(PASSWORD_LETTERS[usize::from(byte % 32)])).collect())
}

/// NFS clients are taken for the user who started the demo: their own numbers mean nothing here.
fn settings(directory: &Path, share: &Path, password: &str) -> Result<Settings> {
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let served = ShareGiven {
        name: SHARE.to_owned(),
        directory: share.to_owned(),
        terms: Terms::empty(),
        plan: Plan::Unlimited,
        metadata_cache: true,
    };
    let given = Given {
        share: vec![served],
        user: vec![UserGiven {
            name: USER.to_owned(),
            password: Some(password.to_owned()),
            uid: Some(me.0),
            gid: Some(me.1),
            groups: None,
        }],
        state: Some(directory.join("state")),
        nfs_squash: Some(Squash::All),
        ..Given::default()
    };
    Ok(Settings { nfs_anonymous: Some(me), ..Settings::new(given)? })
}

fn instructions(at: Addresses, share: &Path, password: &str) -> String {
    let here = share.canonicalize().unwrap_or_else(|_| share.to_owned());
    let open = at.smb.ip().is_unspecified();
    let host = if open { "THIS-MACHINE".to_owned() } else { at.smb.ip().to_string() };
    let (smb, nfs) = (at.smb.port(), at.nfs.port());
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
        "Only this machine can reach it; `anabranch demo --listen 0.0.0.0` lets others in (NFS asks for no password). "
    });
    text.push_str("Ctrl-C ends it.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_name_the_ports_that_were_had() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let text = instructions(
            Addresses { smb: at(10446), nfs: at(12050), control: at(18081) },
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
    fn passwords_differ() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert_eq!(one.len(), PASSWORD_LENGTH);
        assert_ne!(one, other);
    }
}
