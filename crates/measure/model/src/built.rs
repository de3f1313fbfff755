//! A model that is built, with a server that runs in it.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::result::Protocol;
use load::target::{NfsSecurity, NfsTarget, SmbLogon, SmbTarget, Target};
use load::workers::{WorkerPlace, Workers};
use peers::ganesha::Ganesha;
use peers::samba::Samba;
use peers::{Account, Contender, Daemon, Medium, Scratch, Shares, Site};

use crate::calibration::Calibration;
use crate::ceiling::{Ceiling, Direction, Shape};
use crate::delays::RoundTrip;
use crate::description::Model;
use crate::machine::Machine;
use crate::network::Network;
use crate::observed::{Counters, Forwarded, Link};
use crate::slow_storage::{Storage, StorageDelay};
use crate::trouble::Trouble;

/// The name of the share.
const SHARE: &str = "model";
/// Where the server's files are in its machine: in memory.
const HOME: &str = "/dev/shm";
/// Channels of a session: as many as the families have rows for. Four is what the server admits otherwise.
const CHANNELS: u32 = 16;

/// A model that is built. Dropping it ends its server and its machines, and with them all that they have.
#[derive(Debug)]
pub struct Built {
    anabranch: Option<Daemon>,
    peer: Option<Peer>,
    /// What delays the storage: it ends after the server that uses it.
    storage: Option<Daemon>,
    /// The files of a peer end after it.
    scratch: Option<Scratch>,
    network: Network,
    password: String,
    account: Account,
}

/// A server that a model can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// This program.
    Anabranch,
    /// Samba, over SMB.
    Samba,
    /// NFS-Ganesha, over NFS.
    Ganesha,
}

/// A server that is not Anabranch.
#[derive(Debug)]
enum Peer {
    Samba(Samba),
    Ganesha(Ganesha),
}

/// What a server's directory is made slow with.
#[derive(Debug, Clone, Copy)]
struct Slow<'a> {
    /// For data and for metadata; None: as fast as it is.
    delays: Option<[Duration; 2]>,
    program: &'a Path,
}

impl Slow<'_> {
    /// Makes a directory of a machine's memory slow, which is at `directory` for this program.
    fn storage(self, machine: &Machine, directory: &Path) -> Result<Option<Daemon>, Trouble> {
        let Some(delays) = self.delays else { return Ok(None) };
        let storage = Storage { machine, program: self.program, home: HOME };
        let name = directory.strip_prefix(machine.memory()).unwrap_or(directory);
        storage.delayed(name, delays).map(Some)
    }
}

impl Which {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anabranch => "Anabranch",
            Self::Samba => "Samba",
            Self::Ganesha => "NFS-Ganesha",
        }
    }

    /// Whether it serves over a protocol.
    #[must_use]
    pub fn serves(self, protocol: Protocol) -> bool {
        match self {
            Self::Anabranch => true,
            Self::Samba => protocol == Protocol::Smb,
            Self::Ganesha => matches!(protocol, Protocol::Nfs3 | Protocol::Nfs41),
        }
    }
}

impl Built {
    /// Builds a model, and starts a server in it.
    ///
    /// # Errors
    /// The program does not run as root, a program is missing, the kernel lacks something that the model needs, or the server
    /// does not start.
    pub fn build(model: &Model, which: Which, program: &Path, password: String) -> Result<Self, Trouble> {
        let network = Network::build(model)?;
        let account = Account::of_this_machine();
        let (anabranch, peer, storage, scratch) = (None, None, None, None);
        let mut built = Self { anabranch, peer, storage, scratch, network, password, account };
        let (delays, password) = (model.server.storage_delays(), built.password.clone());
        let slow = Slow { delays, program };
        match which {
            Which::Anabranch => built.anabranch = Some(built.serve(model, slow)?),
            Which::Samba => built.serve_peer(slow, |site, scratch, shares| {
                Samba::start(site, scratch, shares, account, &password).map(Peer::Samba)
            })?,
            Which::Ganesha => built.serve_peer(slow, |site, scratch, shares| {
                Ganesha::start(site, scratch, shares, account).map(Peer::Ganesha)
            })?,
        }
        Ok(built)
    }

    /// Starts a peer, with its files and all that it keeps in the memory of its machine.
    fn serve_peer(
        &mut self,
        slow: Slow<'_>,
        start: impl FnOnce(&Site, &Scratch, Shares) -> peers::Result<Peer>,
    ) -> Result<(), Trouble> {
        let machine = self.network.server().ok_or(Trouble::NotRoot)?;
        let failed = |e: peers::Error| Trouble::Server { what: e.what, advice: e.advice };
        let site = Site {
            address: self.network.server_address(),
            entering: machine.entering(),
            directory: (machine.memory(), HOME.into()),
        };
        let scratch = Scratch::make(&machine.memory()).map_err(failed)?;
        let files = scratch.directory(SHARE, self.account).map_err(failed)?;
        self.storage = slow.storage(machine, &files)?;
        let shares = Shares { memory: files.clone(), disk: files.clone(), provisioned: files };
        self.peer = Some(start(&site, &scratch, shares).map_err(failed)?);
        self.scratch = Some(scratch);
        Ok(())
    }

    /// The server's name, and its version where that is not the program's own.
    #[must_use]
    pub fn server_name(&self, protocol: Protocol) -> Option<String> {
        self.contender(protocol)?.access.server.name
    }

    fn contender(&self, protocol: Protocol) -> Option<Contender> {
        Some(match self.peer.as_ref()? {
            Peer::Samba(samba) => samba.contender(Medium::Memory),
            Peer::Ganesha(ganesha) => ganesha.contender(protocol, Medium::Memory),
        })
    }

    /// Starts Anabranch.
    fn serve(&mut self, model: &Model, slow: Slow<'_>) -> Result<Daemon, Trouble> {
        let failed = |e: std::io::Error| Trouble::Server {
            what: format!("the server's files: {e}"),
            advice: String::new(),
        };
        let machine = self.network.server().ok_or(Trouble::NotRoot)?;
        let home = machine.memory();
        let directory = home.join("files");
        std::fs::create_dir(&directory).map_err(failed)?;
        chown(&directory, Some(self.account.uid), Some(self.account.gid)).map_err(failed)?;
        self.storage = slow.storage(machine, &directory)?;
        // It has a password.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join("config.toml"));
        file.and_then(|mut file| file.write_all(self.configuration(model).as_bytes())).map_err(failed)?;
        let entering = machine.entering();
        let config = format!("{HOME}/config.toml");
        let rest = entering.iter().skip(1).map(OsStr::new);
        let arguments: Vec<&OsStr> = rest
            .chain([
                slow.program.as_os_str(),
                OsStr::new("serve"),
                OsStr::new("--config"),
                OsStr::new(&config),
            ])
            .collect();
        let nsenter = entering.first().map_or("nsenter", String::as_str);
        let started = Daemon::start("anabranch", Path::new(nsenter), &arguments, &[], home.join("said"));
        let ready = started.and_then(|daemon| {
            daemon.wait_until(|said| said.lines().any(|line| line.starts_with("ready ")).then_some(()))?;
            Ok(daemon)
        });
        ready.map_err(|e| Trouble::Server { what: e.what, advice: e.advice })
    }

    /// The server's settings. Signing is left to the client, and nobody is squashed, as where Anabranch is measured beside its peers.
    fn configuration(&self, model: &Model) -> String {
        let Account { name, uid, gid } = self.account;
        let address = self.network.server_address();
        let password = &self.password;
        let mut text = format!(
            "smb = \"{address}:445\"\nnfs = \"{address}:2049\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{HOME}/state\"\nlog = \"warn\"\n\
             max-channels = {CHANNELS}\nsmb-signing = \"enabled\"\nnfs-squash = \"none\"\n\
             [[user]]\nname = \"{name}\"\npassword = \"{password}\"\nuid = {uid}\ngid = {gid}\n\
             [[share]]\nname = \"{SHARE}\"\ndirectory = \"{HOME}/files\"\n"
        );
        if let Some(plan) = &model.server.plan {
            text.push_str(&format!("plan = \"{}\"\n", plan.at_scale(*model.scale.as_ref())));
        }
        if let Some(cache) = model.server.metadata_cache {
            text.push_str(&format!("metadata-cache = {cache}\n"));
        }
        text
    }

    /// What load is made on.
    #[must_use]
    pub fn target(&self, protocol: Protocol) -> Target {
        if let Some(contender) = self.contender(protocol) {
            return contender.target;
        }
        let host = self.network.server_address().to_string();
        match protocol {
            Protocol::Smb | Protocol::Directory => Target::Smb(SmbTarget {
                logon: SmbLogon::Password {
                    user: self.account.name.to_owned(),
                    password: self.password.clone(),
                },
                host,
                port: 445,
                share: SHARE.to_owned(),
            }),
            Protocol::Nfs3 | Protocol::Nfs41 => Target::Nfs(NfsTarget {
                host,
                port: 2049,
                mount_port: None,
                path: format!("/{SHARE}"),
                v41: protocol == Protocol::Nfs41,
                uid: self.account.uid,
                gid: self.account.gid,
                security: NfsSecurity::Sys,
                tls: None,
            }),
        }
    }

    /// A client process in each client's machine, to be started by a run.
    #[must_use]
    pub fn workers(&self, program: &Path) -> Workers {
        let place = |(name, machine): (&str, &Machine)| {
            let mut command = machine.entering();
            command.push(program.to_string_lossy().into_owned());
            command.extend(["bench", "worker", "--stdio"].map(str::to_owned));
            WorkerPlace::Command { name: name.to_owned(), command }
        };
        Workers { places: self.network.clients().map(place).collect(), token: None }
    }

    /// The words before a command that start it in a client's machine: of the name, or the first.
    ///
    /// # Errors
    /// There is no such client.
    pub fn entering(&self, client: Option<&str>) -> Result<Vec<String>, Trouble> {
        let found = self.network.clients().find(|(name, _)| client.is_none_or(|wanted| wanted == *name));
        let machine = found.ok_or_else(|| Trouble::NoClient(client.unwrap_or_default().to_owned()))?;
        Ok(machine.1.entering())
    }

    /// Measures what this machine carries of what the model's links let through: each of [`Model::calibrations`]. What is asked
    /// for after it is to stop is left out.
    ///
    /// # Errors
    /// Connections cannot be made.
    pub fn calibrate(
        &self,
        needed: &[(Shape, Direction, Ceiling)],
        window: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<Calibration>, Trouble> {
        self.network.behave(false, false);
        let each = needed.iter().filter_map(|one| self.network.calibrate(*one, window, stop).transpose());
        let found = each.collect::<std::io::Result<_>>();
        self.network.behave(true, true);
        found.map_err(|e| Trouble::Calibrating(e.to_string()))
    }

    /// Measures round trips of each client whose link has a delay or losses. Ends early when it is to stop.
    ///
    /// # Errors
    /// An echo does not come.
    pub fn round_trips(&self, stop: &AtomicBool) -> Result<Vec<RoundTrip>, Trouble> {
        let found = self.network.round_trips(stop);
        self.network.behave(true, true);
        found.map_err(|e| Trouble::Calibrating(e.to_string()))
    }

    /// Measures how long the server's storage takes for accesses, if it has delays. Ends early when it is to stop.
    ///
    /// # Errors
    /// The storage cannot be had.
    pub fn storage_delays(
        &self,
        model: &Model,
        program: &Path,
        stop: &AtomicBool,
    ) -> Result<Vec<StorageDelay>, Trouble> {
        let Some(delays) = model.server.storage_delays() else { return Ok(Vec::new()) };
        let machine = self.network.server().ok_or(Trouble::NotRoot)?;
        Storage { machine, program, home: HOME }.measure(delays, stop)
    }

    /// What the forwarders of links with a delay or losses have done until now, in both directions.
    #[must_use]
    pub fn forwarded(&self) -> Vec<Forwarded> {
        self.network.forwarded()
    }

    /// All links: those of the server and of the clients, in both directions, with their counters to come.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        self.network.links()
    }

    /// The bytes that have passed each of [`Built::links`], as the switch counts them: there all of them end.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.network.counters()
    }
}
