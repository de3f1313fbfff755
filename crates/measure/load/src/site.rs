//! The place of a run on its target: a folder that the run made, with files, and nothing outside of it.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::engine::{self, CYCLE_NAMES, FIRST_THREAD_DIRECTORY, Measured, cycle_name, directory};
use crate::fault::{Fault, Result};
use crate::files::Files;
use crate::link::{Link, LinkReply, Network};
use crate::result::{Key, Mix, Negotiated, ProblemKind};
use crate::security::Security;
use crate::server::Server;
use crate::target::{NfsTarget, Target};
use crate::workers::Workers;
use crate::workload::Workload;
use client::{Handle, Request, nfs, smb};

/// How a target is spoken to.
#[derive(Debug, Clone)]
pub struct Access {
    /// How messages of SMB are protected.
    pub security: Security,
    /// Addresses of further channels or connections, in turn.
    pub addresses: Vec<IpAddr>,
    /// After this long without an answer a reply counts as lost.
    pub timeout: Duration,
    /// What is known of the server besides what it says over its protocol.
    pub server: Server,
    /// Who makes the load in the place of this process.
    pub workers: Option<Workers>,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            security: Security::default(),
            addresses: Vec::new(),
            timeout: Duration::from_secs(30),
            server: Server::default(),
            workers: None,
        }
    }
}

/// A run's folder.
pub(crate) struct Site<'a> {
    target: &'a Target,
    access: &'a Access,
    name: String,
    /// Directories by number: the target's root, the run's, one a thread of the metadata workload.
    directories: Vec<Handle>,
    pub(crate) files: Files,
    made_files: usize,
    /// Runs of metadata load whose cycles may have left files: their number and their places.
    left: Vec<(u32, usize)>,
    rounds: u32,
}

/// Connections of one or several clients, with the run's files open.
pub(crate) struct Clients {
    pub(crate) links: Vec<Link>,
    pub(crate) negotiated: Negotiated,
}

/// How long a folder is left alone whose files are still open.
const STILL_OPEN: Duration = Duration::from_millis(20);

impl<'a> Site<'a> {
    /// Makes the run's folder.
    pub(crate) fn make(target: &'a Target, access: &'a Access) -> Result<Self> {
        let mut number = [0; 8];
        getrandom::fill(&mut number)
            .map_err(|e| Fault::new(ProblemKind::ThisMachine, format!("no random numbers: {e}")))?;
        let run = u64::from_le_bytes(number);
        let mut site = Self {
            target,
            access,
            name: format!("anabranch-bench-{run:016x}"),
            directories: Vec::new(),
            files: Files::new(run, &[], 4096),
            made_files: 0,
            left: Vec::new(),
            rounds: 0,
        };
        if let Target::Directory(path) = target {
            fs::create_dir(path.join(&site.name)).map_err(|e| directory::fault("mkdir", &e))?;
            return Ok(site);
        }
        let (mut link, root, _) = site.first_link(1)?;
        site.directories = vec![root];
        let name = site.name.clone();
        let made = site.make_directory(&mut link, 0, &name)?;
        site.directories.push(made);
        Ok(site)
    }

    /// The name of the run's folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What a run's files belong to.
    pub(crate) fn run_number(&self) -> u64 {
        u64::from_str_radix(self.name.rsplit('-').next().unwrap_or("0"), 16).unwrap_or(0)
    }

    fn path(&self) -> PathBuf {
        match self.target {
            Target::Directory(path) => path.join(&self.name),
            Target::Smb(_) | Target::Nfs(_) => PathBuf::new(),
        }
    }

    /// A session with its root.
    fn session(
        &self,
        connections: u32,
        security: &Security,
        tags: usize,
    ) -> Result<(Vec<Link>, Handle, Negotiated)> {
        let Access { addresses, timeout, .. } = self.access;
        let world = Network { timeout: *timeout };
        match self.target {
            Target::Smb(target) => {
                let session = smb::Session::open(&world, target, security, connections, addresses, tags)?;
                let links = session.links.into_iter().map(Link::from).collect();
                Ok((links, Handle::Path(String::new()), session.negotiated.into()))
            }
            Target::Nfs(target) => {
                let session = nfs::Session::open(&world, target, connections, addresses, tags)?;
                let links = session.links.into_iter().map(Link::from).collect();
                Ok((links, session.root, session.negotiated.into()))
            }
            Target::Directory(_) => {
                Err(Fault::new(ProblemKind::ThisMachine, "a directory has no connections"))
            }
        }
    }

    fn first_link(&self, tags: usize) -> Result<(Link, Handle, Negotiated)> {
        let (links, root, negotiated) = self.session(1, &self.access.security, tags)?;
        let mut link = links.into_iter().next().ok_or_else(|| Fault::protocol("no connection"))?;
        let known = if self.directories.is_empty() { std::slice::from_ref(&root) } else { &self.directories };
        link.client.adopt(known, &[]);
        Ok((link, root, negotiated))
    }

    fn make_directory(&self, link: &mut Link, parent: usize, name: &str) -> Result<Handle> {
        let made = match link.ask(&Request::MakeDirectory { parent, name })? {
            LinkReply::Handle(handle) => handle,
            LinkReply::Done => match self.directories.get(parent) {
                Some(Handle::Path(path)) if !path.is_empty() => Handle::Path(format!("{path}\\{name}")),
                _ => Handle::Path(name.to_owned()),
            },
        };
        let known = [self.directories.as_slice(), std::slice::from_ref(&made)].concat();
        link.client.adopt(&known, &[]);
        Ok(made)
    }

    /// Makes files of these sizes, for blocks that are multiples of `block`, and writes them.
    pub(crate) fn make_files(&mut self, sizes: &[u64], block: u64, stop: &AtomicBool) -> Result<()> {
        self.files = Files::new(self.run_number(), sizes, block);
        let write = self.largest_write()?;
        self.make_empty_files()?;
        let mut fill = write.min(1 << 20);
        while fill > block && !self.files.suits(fill) {
            fill /= 2;
        }
        let key = Key {
            connections: 1,
            block_bytes: fill.max(block),
            mix: Mix::ReadPercent(0),
            random: false,
            files: u32::try_from(sizes.len()).unwrap_or(u32::MAX),
            threads: 1,
            queue_depth: 16,
            clients: 1,
            settings: std::collections::BTreeMap::new(),
        };
        let workload = Workload::new(key, Duration::ZERO, Duration::ZERO);
        let measured = self.load(&workload, &self.access.security.clone(), true, stop)?;
        measured.0.fault.map_or(Ok(()), Err)
    }

    fn largest_write(&self) -> Result<u64> {
        match self.target {
            Target::Directory(_) => Ok(1 << 20),
            Target::Smb(_) | Target::Nfs(_) => {
                let (_, _, negotiated) = self.first_link(1)?;
                let largest = u64::from(negotiated.write_bytes_max.max(4096));
                Ok(1 << largest.ilog2())
            }
        }
    }

    fn make_empty_files(&mut self) -> Result<()> {
        if let Target::Directory(_) = self.target {
            for file in 0..self.files.count() {
                fs::File::create_new(directory::file_path(&self.path(), file))
                    .map_err(|e| directory::fault("create", &e))?;
                self.made_files = file + 1;
            }
            return Ok(());
        }
        let (mut link, _, _) = self.first_link(1)?;
        for file in 0..self.files.count() {
            let name = format!("f{file}");
            let handle = link.handle(&Request::Open { directory: 1, name: &name, make: true })?;
            self.made_files = file + 1;
            link.client.adopt(&self.directories, &[handle]);
            link.ask(&Request::Close { file: Some(0) })?;
        }
        link.ask(&Request::Leave).map(|_| ())
    }

    /// Makes the directories of the threads of the metadata workload.
    pub(crate) fn make_thread_directories(&mut self, threads: u32) -> Result<()> {
        let threads = threads as usize;
        if let Target::Directory(_) = self.target {
            let paths = (0..threads).map(|thread| directory::thread_path(&self.path(), thread));
            return paths
                .filter(|path| !path.exists())
                .try_for_each(|path| fs::create_dir(path).map_err(|e| directory::fault("mkdir", &e)));
        }
        let (mut link, _, _) = self.first_link(1)?;
        while self.directories.len() < FIRST_THREAD_DIRECTORY + threads {
            let name = format!("t{}", self.directories.len() - FIRST_THREAD_DIRECTORY);
            let made = self.make_directory(&mut link, 1, &name)?;
            self.directories.push(made);
        }
        Ok(())
    }

    /// The connections for a workload, with the files open in each session.
    fn clients(&self, key: &Key, security: &Security, tags: usize) -> Result<Clients> {
        let mut all = Clients { links: Vec::new(), negotiated: Negotiated::default() };
        for _ in 0..key.clients.max(1) {
            let (mut links, _, negotiated) = self.session(key.connections.max(1), security, tags)?;
            let first = links.first_mut().ok_or_else(|| Fault::protocol("no connection"))?;
            first.client.adopt(&self.directories, &[]);
            let mut files = Vec::new();
            if key.mix != Mix::Metadata {
                for file in 0..self.files.count() {
                    let name = format!("f{file}");
                    files.push(first.handle(&Request::Open { directory: 1, name: &name, make: false })?);
                }
            }
            for link in &mut links {
                link.client.adopt(&self.directories, &files);
            }
            all.links.append(&mut links);
            all.negotiated = negotiated;
        }
        let peers = all.links.iter().filter_map(|link| link.wire.stream.peer_addr().ok());
        let addresses: BTreeSet<_> = peers.map(|peer| peer.ip()).collect();
        all.negotiated.addresses = addresses.iter().map(ToString::to_string).collect();
        Ok(all)
    }

    /// Runs load, over connections of its own, and measures it.
    pub(crate) fn load(
        &mut self,
        workload: &Workload,
        security: &Security,
        fill: bool,
        stop: &AtomicBool,
    ) -> Result<(Measured, Negotiated)> {
        self.load_after(workload, security, fill, stop, &mut || Ok(()))
    }

    /// The same; the load begins when all connections are made and `wait` has returned.
    pub(crate) fn load_after(
        &mut self,
        workload: &Workload,
        security: &Security,
        fill: bool,
        stop: &AtomicBool,
        wait: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Measured, Negotiated)> {
        self.rounds += 1;
        let round = self.rounds;
        if workload.key.mix == Mix::Metadata {
            self.left.push((round, workload.places()));
        }
        let (measured, negotiated) = if let Target::Directory(_) = self.target {
            wait()?;
            let path = self.path();
            let server = &self.access.server;
            let load =
                directory::Load { directory: &path, files: &self.files, workload, fill, stop, server, round };
            (directory::run(&load), Negotiated { connections: 1, ..Negotiated::default() })
        } else {
            let mut clients = self.clients(&workload.key, security, workload.places())?;
            wait()?;
            let measured = engine::run(engine::Load {
                links: &mut clients.links,
                files: &self.files,
                workload,
                fill,
                stop,
                timeout: self.access.timeout,
                server: &self.access.server,
                round,
            });
            if measured.fault.is_none() {
                self.leave(&workload.key, &mut clients)?;
            }
            (measured, clients.negotiated)
        };
        if measured.fault.is_none() {
            self.left.retain(|(left, _)| *left != round);
        }
        Ok((measured, negotiated))
    }

    /// Ends NFSv4.1 sessions with what they have open, as a client does that unmounts: a server would keep them until their
    /// leases are over, and each takes from the slots of the others.
    fn leave(&self, key: &Key, clients: &mut Clients) -> Result<()> {
        let Target::Nfs(NfsTarget { v41: true, .. }) = self.target else { return Ok(()) };
        let files = if key.mix == Mix::Metadata { 0 } else { self.files.count() };
        for link in clients.links.iter_mut().step_by(key.connections.max(1) as usize) {
            for file in 0..files {
                link.ask(&Request::Close { file: Some(file) })?;
            }
            link.ask(&Request::Leave)?;
        }
        Ok(())
    }

    /// Writes the run's files to the disk and drops what is kept of them in memory, where their directory is one of this
    /// machine; false where it is not known.
    pub(crate) fn empty_caches(&self) -> Result<bool> {
        let directory = match self.target {
            Target::Directory(path) => path,
            Target::Smb(_) | Target::Nfs(_) => match &self.access.server.directory {
                Some(path) => path,
                None => return Ok(false),
            },
        };
        for file in 0..self.made_files {
            let file = fs::File::open(directory::file_path(&directory.join(&self.name), file))
                .map_err(|e| directory::fault("open", &e))?;
            file.sync_data().map_err(|e| directory::fault("fdatasync", &e))?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(|e| directory::fault("posix_fadvise", &e.into()))?;
        }
        Ok(true)
    }

    /// The time of the smallest request, in microseconds: the median of several; and what was agreed on.
    pub(crate) fn round_trip(&self) -> Result<(Option<f64>, Negotiated)> {
        const ASKED: usize = 31;
        if let Target::Directory(_) = self.target {
            return Ok((None, Negotiated::default()));
        }
        let (mut link, _, negotiated) = self.first_link(1)?;
        let mut times = Vec::new();
        for _ in 0..ASKED {
            let begin = Instant::now();
            link.ask(&Request::Nothing)?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        Ok((crate::statistics::median(&times), negotiated))
    }

    /// Removes all that the run has made.
    pub(crate) fn remove(self) -> Result<()> {
        let not_removed = |fault: Fault| {
            Fault::new(
                ProblemKind::NotRemoved,
                format!("{} in {} could not be removed: {fault}", self.name, self.target),
            )
        };
        if let Target::Directory(path) = self.target {
            return remove_directory(&path.join(&self.name)).map_err(not_removed);
        }
        self.remove_over_a_connection().map_err(not_removed)
    }

    fn remove_over_a_connection(&self) -> Result<()> {
        let (mut link, _, _) = self.first_link(1)?;
        for (round, places) in &self.left {
            for place in 0..*places {
                let threads = self.directories.len() - FIRST_THREAD_DIRECTORY;
                let directory = FIRST_THREAD_DIRECTORY + place % threads.max(1);
                for cycle in 0..CYCLE_NAMES {
                    // It is not there unless something went wrong at the wrong moment.
                    let _ = link.ask(&Request::Delete { directory, name: &cycle_name(*round, place, cycle) });
                }
            }
        }
        for thread in 0..self.directories.len().saturating_sub(FIRST_THREAD_DIRECTORY) {
            self.remove_folder(&mut link, 1, &format!("t{thread}"))?;
        }
        for file in 0..self.made_files {
            link.ask(&Request::Delete { directory: 1, name: &format!("f{file}") })?;
        }
        self.remove_folder(&mut link, 0, &self.name)
    }

    /// Removes a folder. Over SMB it goes with its last close, and the close succeeds even if the folder stays because it has
    /// entries: removed files are such until the server has closed what a connection that was given up had open. So the
    /// folder is removed until it is not found.
    fn remove_folder(&self, link: &mut Link, parent: usize, name: &str) -> Result<()> {
        let remove = Request::RemoveDirectory { parent, name };
        link.ask(&remove)?;
        let Target::Smb(_) = self.target else { return Ok(()) };
        let patient_until = Instant::now() + self.access.timeout;
        loop {
            match link.ask(&remove) {
                Err(fault) if fault.is_of_connection() => return Err(fault),
                Err(_) => return Ok(()),
                Ok(_) if Instant::now() > patient_until => {
                    let text = format!("{name} has files that are still open");
                    return Err(Fault::new(ProblemKind::NotRemoved, text));
                }
                Ok(_) => std::thread::sleep(STILL_OPEN),
            }
        }
    }
}

fn remove_directory(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(|e| directory::fault("remove", &e))
}
