//! The servers as they ship, on one store, as tasks of the simulation.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use auth::{Account, AccountList, nt_hash};
use net::{Peer, SingleShard};
use nfs_proto::v4::recovery::ClientRecord;
use nfs_server::{ClientRecords, NfsServer, Squashing};
use share::{Settings, Share, ShareId, ShareTable, Squash, Workers};
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;

use crate::pipe::ServerEnd;
use crate::workers::Slow;

/// The account of all SMB clients.
pub(crate) const USER: &str = "anna";
pub(crate) const PASSWORD: &str = "hush-hush";
/// The share.
pub(crate) const SHARE: &str = "data";

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Front {
    Smb,
    Nfs,
}

/// The NFSv4 clients that hold state. This list outlives a run of the server, as its state directory does.
type Known = Arc<Mutex<Vec<ClientRecord>>>;

/// What one run of the server knows of these clients. A run that has ended changes nothing any more.
#[derive(Debug)]
struct Records {
    known: Known,
    ended: AtomicBool,
}

impl Records {
    fn change(&self, change: impl FnOnce(&mut Vec<ClientRecord>)) -> io::Result<()> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

impl ClientRecords for Records {
    fn keep(&self, record: &ClientRecord) -> io::Result<()> {
        self.change(|all| {
            if !all.contains(record) {
                all.push(record.clone());
            }
        })
    }

    fn forget(&self, records: &[ClientRecord]) -> io::Result<()> {
        self.change(|all| all.retain(|known| !records.contains(known)))
    }

    fn all(&self) -> io::Result<Vec<ClientRecord>> {
        Ok(self.known.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn answers_at_once(&self) -> bool {
        true
    }
}

/// One run of both servers.
struct Run {
    smb: SingleShard<smb_server::Service>,
    nfs: SingleShard<NfsServer>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    store: Arc<FaultyStore>,
    records: Arc<Records>,
}

/// The servers, and the state that outlives a run of them.
pub(crate) struct Servers {
    memory: Arc<MemoryStore>,
    is_distant: bool,
    tells_changes: bool,
    workers: Arc<Slow>,
    known: Known,
    runs: u8,
    started: Duration,
    run: Option<Run>,
}

impl Servers {
    /// Makes servers of an empty share. `is_distant`: the store is not known to be local, so its calls may wait, and it
    /// reports no changes. `tells_changes`: otherwise it does, so that directories are cached.
    pub(crate) fn new(workers: Arc<Slow>, is_distant: bool, tells_changes: bool) -> Self {
        let memory = MemoryStore::new();
        let memory = Arc::new(if tells_changes { memory.with_feeds() } else { memory });
        Self {
            memory,
            is_distant,
            tells_changes,
            workers,
            known: Arc::default(),
            runs: 0,
            started: Duration::ZERO,
            run: None,
        }
    }

    /// The store, for planting faults in it; `None` while the servers are stopped.
    pub(crate) fn store(&self) -> Option<&FaultyStore> {
        self.run.as_ref().map(|run| &*run.store)
    }

    /// Makes the store hang for this time: it answers no call that may wait.
    pub(crate) fn hang(&self, time: Duration) {
        self.workers.hang(time);
    }

    /// How often the servers have started.
    pub(crate) fn runs(&self) -> u8 {
        self.runs
    }

    /// When the servers were last started.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    /// Starts the servers with the state that an earlier run has left.
    pub(crate) fn start(&mut self) {
        self.runs = self.runs.wrapping_add(1);
        self.started = crate::machine::elapsed();
        let memory = Arc::clone(&self.memory) as Arc<dyn storage::Storage>;
        let store =
            Arc::new(if self.is_distant { FaultyStore::distant(memory) } else { FaultyStore::new(memory) });
        let records = Arc::new(Records { known: Arc::clone(&self.known), ended: AtomicBool::new(false) });
        let workers = Arc::clone(&self.workers) as Arc<dyn Workers>;
        // No time passes in a store without workers, so it is quick; of a quick store little is cached.
        let mut settings = Settings::new(SHARE);
        if self.tells_changes {
            settings.quick_answer = Duration::ZERO;
        }
        let share = Share::with_workers(ShareId(1), settings, Arc::clone(&store) as _, Some(workers));
        let Ok(shares) = ShareTable::new([share]) else { return };
        let account = Account {
            name: USER.to_owned(),
            nt_hash: Some(nt_hash(PASSWORD)),
            keys: None,
            uid: 0,
            gid: 0,
            groups: Vec::new(),
            sid: None,
            disabled: false,
        };
        let accounts = Arc::new(AccountList(vec![account]));
        let config = smb_server::Config { server_guid: Some([7; 16]), ..smb_server::Config::default() };
        let smb = smb_server::Server::new(config, Arc::clone(&shares), accounts);
        let squashing = Squashing { squash: Squash::None, ..Squashing::default() };
        let config = nfs_server::Config {
            client_records: Some(Arc::clone(&records) as _),
            ..nfs_server::Config::new(shares, squashing, *b"a simulated key!", [self.runs; 8])
        };
        let nfs = NfsServer::new(config);
        let (scavenged, looked_after) = (Arc::clone(&smb), Arc::clone(&nfs));
        let tasks = vec![
            tokio::task::spawn_local(async move { scavenged.scavenge().await }),
            tokio::task::spawn_local(async move { looked_after.look_after_clients().await }),
        ];
        let smb = SingleShard::new(Arc::new(smb_server::Service::new(smb)));
        self.run = Some(Run { smb, nfs: SingleShard::new(nfs), tasks, store, records });
    }

    /// Ends the run as the end of a process does: connections end, and state that was only in memory is gone.
    /// Operations under way no longer reach the store or the records.
    pub(crate) fn stop(&mut self) {
        let Some(run) = self.run.take() else { return };
        run.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        run.records.ended.store(true, Ordering::Relaxed);
        let more = [Call::Allocate, Call::PunchHole, Call::CopyRange, Call::CloneRange];
        for call in Call::METADATA.into_iter().chain(Call::DATA).chain(more) {
            run.store.inject(Rule::always(call, Fault::Fail(storage::Error::Io(0))));
        }
    }

    /// Begins to serve a connection. Returns false while the servers are stopped or have no place.
    pub(crate) fn connect(&self, front: Front, client: u32, socket: ServerEnd) -> bool {
        let Some(run) = &self.run else { return false };
        let address = |last: u32, port| SocketAddr::from((Ipv4Addr::from(0x0a00_0000 | last), port));
        let peer = |port| Peer {
            address: address(client + 2, 900),
            local: address(1, port),
            shard: 0,
            transport: net::Transport::Tcp,
        };
        match front {
            Front::Smb => run.smb.connect(socket, peer(445)),
            Front::Nfs => run.nfs.connect(socket, peer(2049)),
        }
    }
}
