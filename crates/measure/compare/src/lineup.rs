//! The servers that are measured in turns, and their directories.

use std::path::{Path, PathBuf};

use load::plan::{Extent, Family, Plan};
use load::result::{Mix, Protocol};
use peers::ganesha::{self, Ganesha};
use peers::samba::{self, Samba};
use peers::{Account, Contender, Medium, Scratch, Shares, Site};

use crate::error::{Error, Result};
use crate::own::Own;

/// A file system in memory that each Linux has.
const MEMORY: &str = "/dev/shm";

/// Which servers are measured, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Anabranch's program.
    pub program: PathBuf,
    /// Whether Samba is measured, too, over SMB.
    pub samba: bool,
    /// Whether NFS-Ganesha is measured, too, over NFS.
    pub ganesha: bool,
    /// The place of the servers' files. None: in memory, and for families of the disk below `/var/tmp`.
    pub directory: Option<PathBuf>,
}

/// The running servers. Dropping the line-up stops them and removes their directories.
#[derive(Debug)]
pub struct Lineup {
    own: Own,
    samba: Option<Samba>,
    ganesha: Option<Ganesha>,
    memory: Scratch,
    disk: Scratch,
}

impl Lineup {
    /// Starts Anabranch, and the requested peers that have one of these protocols.
    ///
    /// # Errors
    /// A package is missing, the program does not run as root, or a server does not start.
    pub fn start(wanted: &Wanted, over: &[Protocol]) -> Result<Self> {
        let nfs = over.iter().any(|protocol| matches!(protocol, Protocol::Nfs3 | Protocol::Nfs41));
        let with_samba = wanted.samba && over.contains(&Protocol::Smb);
        let with_ganesha = wanted.ganesha && nfs;
        check(with_samba, with_ganesha)?;
        let account = Account::of_this_machine();
        let password = password()?;
        let memory = Scratch::make(&directory(wanted, Path::new(MEMORY)))?;
        let disk = Scratch::make(&directory(wanted, &disk_directory()))?;
        let shares = |server: &str| -> Result<Shares> {
            Ok(Shares {
                memory: memory.directory(server, account)?,
                provisioned: memory.directory(&format!("{server}-provisioned"), account)?,
                disk: disk.directory(server, account)?,
            })
        };
        let site = Site::loopback();
        let own = Own::start(&wanted.program, &disk, shares("files-of-anabranch")?, account, &password)?;
        let samba = if with_samba {
            Some(Samba::start(&site, &disk, shares("files-of-samba")?, account, &password)?)
        } else {
            None
        };
        let ganesha = if with_ganesha {
            Some(Ganesha::start(&site, &disk, shares("files-of-ganesha")?, account)?)
        } else {
            None
        };
        Ok(Self { own, samba, ganesha, memory, disk })
    }

    /// The contenders: for each protocol the peer, if there is one, and Anabranch.
    #[must_use]
    pub fn contenders(&self, family: &Family, over: &[Protocol]) -> Vec<Contender> {
        let place = Medium::of_family(family);
        let mut contenders = Vec::new();
        for &protocol in over {
            let peer = match protocol {
                Protocol::Smb | Protocol::Directory => {
                    self.samba.as_ref().map(|samba| samba.contender(place))
                }
                Protocol::Nfs3 | Protocol::Nfs41 => {
                    self.ganesha.as_ref().map(|ganesha| ganesha.contender(protocol, place))
                }
            };
            contenders.extend(peer);
            contenders.push(self.own.contender(protocol, place));
        }
        let names: Vec<String> = contenders.iter().filter_map(|c| c.access.server.name.clone()).collect();
        for contender in &mut contenders {
            let known = &mut contender.access.server;
            let others = names.iter().filter(|name| known.name.as_ref() != Some(*name));
            let others: Vec<&str> = others.map(String::as_str).collect();
            known.settings.insert("in turns with".to_owned(), others.join(", "));
            known.settings.insert("files on".to_owned(), file_system(self.parent(place)));
            known.settings.insert("tcp congestion control".to_owned(), congestion_control());
        }
        contenders
    }

    fn parent(&self, place: Medium) -> &Path {
        if place == Medium::Disk { self.disk.path() } else { self.memory.path() }
    }

    /// Checks that there is space for the files of all servers.
    ///
    /// # Errors
    /// There is not enough space.
    pub fn check_space(&self, family: &Family, plans: &[Plan], extent: &Extent) -> Result<()> {
        let parent = self.parent(Medium::of_family(family));
        let files: u64 = plans.iter().map(|plan| u64::from(files(plan))).sum();
        let needed = files.saturating_mul(extent.file_bytes);
        let Ok(found) = rustix::fs::statvfs(parent) else { return Ok(()) };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if needed.saturating_add(needed / 8) <= free {
            return Ok(());
        }
        let (family, directory) = (family.name, parent.to_owned());
        Err(Error::NoRoom { family, needed_mib: needed >> 20, directory, free_mib: free >> 20 })
    }
}

/// Files that a plan works on.
pub(crate) fn files(plan: &Plan) -> u32 {
    let with_data = plan.rows.iter().filter(|row| row.key.mix != Mix::Metadata);
    with_data.map(|row| row.key.files).max().unwrap_or(0)
}

/// What must be there before anything is started.
fn check(samba: bool, ganesha: bool) -> Result<()> {
    if (samba || ganesha) && !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if samba {
        samba::check_packages()?;
    }
    if ganesha {
        ganesha::check_packages()?;
    }
    Ok(())
}

fn directory(wanted: &Wanted, usual: &Path) -> PathBuf {
    match &wanted.directory {
        Some(directory) => directory.clone(),
        None if usual.is_dir() => usual.to_owned(),
        None => std::env::temp_dir(),
    }
}

/// hier(7): what is kept in /var/tmp is on a disk, also where /tmp is not.
fn disk_directory() -> PathBuf {
    PathBuf::from("/var/tmp")
}

fn password() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Error::NoRandom)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A file system by its kind: those in memory are of another world than the rest.
fn file_system(directory: &Path) -> String {
    const TMPFS_MAGIC: u32 = 0x0102_1994;
    match rustix::fs::statfs(directory) {
        Ok(found) if u32::try_from(found.f_type) == Ok(TMPFS_MAGIC) => "tmpfs".to_owned(),
        _ => "disk".to_owned(),
    }
}

fn congestion_control() -> String {
    let read = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    read.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
