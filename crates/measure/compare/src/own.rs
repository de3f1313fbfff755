//! Anabranch itself: a program, with a state of its own.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gateway::control_access::{Access, find};
use load::ServerProcess;
use load::result::Protocol;
use load::target::{NfsSecurity, NfsTarget, SmbLogon, SmbTarget, Target};
use peers::{Account, Contender, Daemon, Medium, Scratch, Shares, trouble};

use crate::counts;
use crate::error::{Error, Result};

/// What is provisioned for the share of the family `limits`: less than any machine can do, so that it is what holds load
/// back.
const PLAN: &str =
    "custom iops=5000 throughput=100MiB/s metadata-iops=1000 file-iops=2000 file-throughput=50MiB/s";

/// Channels of a session: as many as the families have rows for. Four is what the server admits otherwise.
const CHANNELS: u32 = 16;

/// Anabranch that runs.
#[derive(Debug)]
pub(crate) struct Own {
    daemon: Daemon,
    smb_port: u16,
    nfs_port: u16,
    control: Access,
    account: Account,
    password: String,
    shares: Shares,
}

impl Own {
    /// Starts a program of this version.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(
        program: &Path,
        scratch: &Scratch,
        shares: Shares,
        account: Account,
        password: &str,
    ) -> Result<Self> {
        let home = scratch.path().join("anabranch");
        let state = home.join("state");
        fs::create_dir_all(&home).map_err(|e| trouble(&home, &e))?;
        let file = home.join("config.toml");
        let text = configuration(&state, account, password, &shares);
        // It has a password.
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| trouble(&file, &e))?;
        let arguments = [OsStr::new("serve"), OsStr::new("--config"), file.as_os_str()];
        let daemon = Daemon::start("anabranch", program, &arguments, &[], home.join("said"))?;
        let (smb_port, nfs_port) = daemon.wait_until(ports)?;
        let control = find(&state, None).map_err(Error::Control)?;
        let password = password.to_owned();
        Ok(Self { daemon, smb_port, nfs_port, control, account, password, shares })
    }

    pub(crate) fn contender(&self, protocol: Protocol, place: Medium) -> Contender {
        let (host, share) = ("127.0.0.1".to_owned(), place.share().to_owned());
        let target = match protocol {
            Protocol::Smb | Protocol::Directory => Target::Smb(SmbTarget {
                logon: SmbLogon::Password {
                    user: self.account.name.to_owned(),
                    password: self.password.clone(),
                },
                host,
                port: self.smb_port,
                share,
            }),
            Protocol::Nfs3 | Protocol::Nfs41 => Target::Nfs(NfsTarget {
                host,
                port: self.nfs_port,
                mount_port: None,
                path: format!("/{share}"),
                v41: protocol == Protocol::Nfs41,
                uid: self.account.uid,
                gid: self.account.gid,
                security: NfsSecurity::Sys,
                tls: None,
            }),
        };
        let process = ServerProcess { pid: self.daemon.pid() };
        let name = concat!("Anabranch ", env!("CARGO_PKG_VERSION"));
        let mut contender = Contender::new("anabranch", name, target, process, self.shares.of(place));
        contender.access.server.counts = Some(counts::of_share(self.control.clone(), place.share()));
        if place == Medium::Provisioned {
            contender.access.server.settings.insert("plan".to_owned(), PLAN.to_owned());
        }
        contender
    }
}

/// The ports in the ready line.
fn ports(said: &str) -> Option<(u16, u16)> {
    let line = said.lines().find(|line| line.starts_with("ready "))?;
    let port = |name: &str| {
        let word = line.split(' ').filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name);
        word?.1.rsplit_once(':')?.1.parse().ok()
    };
    Some((port("smb")?, port("nfs")?))
}

/// The file of settings. Signing is left to the client, and nobody is squashed: as the peers are set up.
fn configuration(state: &Path, account: Account, password: &str, shares: &Shares) -> String {
    let Account { name, uid, gid } = account;
    let state = state.display();
    let mut text = format!(
        "smb = \"127.0.0.1:0\"\nnfs = \"127.0.0.1:0\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{state}\"\nlog = \"warn\"\n\
         max-channels = {CHANNELS}\nsmb-signing = \"enabled\"\nnfs-squash = \"none\"\n\
         [[user]]\nname = \"{name}\"\npassword = \"{password}\"\nuid = {uid}\ngid = {gid}\n"
    );
    for (place, directory) in shares.all() {
        let (share, directory) = (place.share(), directory.display());
        text.push_str(&format!("[[share]]\nname = \"{share}\"\ndirectory = \"{directory}\"\n"));
        if place == Medium::Provisioned {
            text.push_str(&format!("plan = \"{PLAN}\"\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_has_the_ports() {
        let said = "WARN something\nready smb=127.0.0.1:401 nfs=127.0.0.1:402 control=127.0.0.1:403\n";
        assert_eq!(ports(said), Some((401, 402)));
        assert_eq!(ports("WARN something\n"), None);
    }

    #[test]
    fn the_plan_is_one() {
        assert_eq!(PLAN.parse::<limits::Plan>().unwrap().to_string(), PLAN);
    }
}
