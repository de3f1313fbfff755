//! What the clients of a running server have open and locked, and its end on an administrator's order.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use control::Refusal;
use control::files::{ClientName, Disconnected, FileId, Filter, Lock, OpenFile, OpenedBy};
use nfs_server::NfsServer;
use share::{Access, ByteRangeLock, Caching, LockKind, LockOwner, Open, OpenKey, Share, ShareId, Sharing};
use storage::ObjectId;

use crate::vservers::Vservers;
use crate::waiting::wait_for;

/// The servers that are asked.
#[derive(Debug)]
pub(crate) struct Holdings {
    pub(crate) smb: Arc<smb_server::Server>,
    pub(crate) nfs: Arc<NfsServer>,
    /// Their clients can be disconnected. Which files these have open is not told.
    pub(crate) vservers: Arc<Vservers>,
}

impl control::files::Holdings for Holdings {
    fn files(&self, filter: &Filter) -> Vec<OpenFile> {
        let mut locked = Locked::default();
        let smb = self.smb.open_files();
        let smb = smb.iter().filter(|file| passes(filter, &file.share, file.client));
        let mut files: Vec<OpenFile> = smb
            .map(|file| of_smb(file, locked.of(&file.share, &file.open).by_open(file.open.key())))
            .collect();
        let nfs = self.nfs.open_files();
        let nfs = nfs.iter().filter(|file| passes(filter, &file.share, Some(file.address)));
        files.extend(
            nfs.map(|file| of_nfs(file, locked.of(&file.share, &file.open).by_client(file.client_number))),
        );
        files
    }

    fn locks(&self, filter: &Filter) -> Vec<Lock> {
        let mut locked = Locked::default();
        let mut all = Vec::new();
        for file in self.smb.open_files().iter().filter(|file| passes(filter, &file.share, file.client)) {
            let locks = locked.of(&file.share, &file.open).by_open(file.open.key());
            all.extend(told(locks, || of_smb(file, locks)));
        }
        // A client's locks on a file are the same under all its opens.
        let mut seen = HashSet::new();
        for file in
            self.nfs.open_files().iter().filter(|file| passes(filter, &file.share, Some(file.address)))
        {
            if !file.is_delegation && seen.insert(file.of_client()) {
                let locks = locked.of(&file.share, &file.open).by_client(file.client_number);
                all.extend(told(locks, || of_nfs(file, locks)));
            }
        }
        all
    }

    fn close(&self, id: FileId) -> Result<bool, Refusal> {
        let (share, key) = (ShareId(id.share), OpenKey(id.open));
        let closed = wait_for(async {
            self.smb.close_file(share, key).await || self.nfs.close_file(share, key).await
        })?;
        if closed {
            tracing::info!(file = %id, "an open file was closed by command");
        }
        Ok(closed)
    }

    fn disconnect(&self, client: ClientName) -> Result<Disconnected, Refusal> {
        // A vserver that ends waits for nothing that clients of others have open.
        let vservers = self.vservers.seen().into_iter();
        let vservers: Vec<_> =
            vservers.map(|of| (Arc::downgrade(&of.smb), Arc::downgrade(&of.nfs))).collect();
        let Disconnected { smb_sessions, nfs_clients, nfs_connections } = wait_for(async {
            let mut ended = disconnect(&self.smb, &self.nfs, client).await;
            for (smb, nfs) in vservers {
                let (Some(smb), Some(nfs)) = (smb.upgrade(), nfs.upgrade()) else { continue };
                let more = disconnect(&smb, &nfs, client).await;
                ended.smb_sessions += more.smb_sessions;
                ended.nfs_clients += more.nfs_clients;
                ended.nfs_connections += more.nfs_connections;
            }
            ended
        })?;
        tracing::info!(
            %client,
            smb_sessions,
            nfs_clients,
            nfs_connections,
            "a client was disconnected by command"
        );
        Ok(Disconnected { smb_sessions, nfs_clients, nfs_connections })
    }
}

/// Ends the sessions and connections of a client of one server, and what it holds there.
async fn disconnect(smb: &smb_server::Server, nfs: &NfsServer, client: ClientName) -> Disconnected {
    let is_meant = |session: u64, addresses: &[IpAddr]| match client {
        ClientName::Session(meant) => session == meant,
        ClientName::Address(meant) => addresses.contains(&meant),
    };
    let (nfs_clients, nfs_connections) = match client {
        ClientName::Address(address) => nfs.disconnect(address).await,
        ClientName::Session(_) => (0, 0),
    };
    let smb_sessions = smb.end_sessions(is_meant).await;
    let count = |number: usize| number as u64;
    Disconnected {
        smb_sessions: count(smb_sessions),
        nfs_clients: count(nfs_clients),
        nfs_connections: count(nfs_connections),
    }
}

/// The locks of the files that were looked at: each file is asked once, however many opens it has.
#[derive(Debug, Default)]
struct Locked(HashMap<(ShareId, ObjectId), OfFile>);

/// The locks of one file by their owners.
#[derive(Debug, Default)]
struct OfFile {
    by_open: HashMap<OpenKey, Vec<ByteRangeLock>>,
    /// By the number of the client.
    by_client: HashMap<u64, Vec<ByteRangeLock>>,
}

impl Locked {
    fn of(&mut self, share: &Share, open: &Open) -> &OfFile {
        let id = open.node().id();
        self.0.entry((share.id(), id)).or_insert_with(|| OfFile::new(share.locks(id)))
    }
}

impl OfFile {
    fn new(locks: Vec<ByteRangeLock>) -> Self {
        let mut of_file = Self::default();
        for lock in locks {
            match (lock.owner, lock.owner.client()) {
                (LockOwner::Open(key), _) => of_file.by_open.entry(key).or_default().push(lock),
                (_, Some(client)) => of_file.by_client.entry(client).or_default().push(lock),
                (LockOwner::Client(_), None) => {}
            }
        }
        of_file
    }

    fn by_open(&self, key: OpenKey) -> &[ByteRangeLock] {
        self.by_open.get(&key).map_or(&[], Vec::as_slice)
    }

    fn by_client(&self, number: u64) -> &[ByteRangeLock] {
        self.by_client.get(&number).map_or(&[], Vec::as_slice)
    }
}

fn passes(filter: &Filter, share: &Share, client: Option<IpAddr>) -> bool {
    filter.share.as_ref().is_none_or(|name| share::folded_name(name) == share::folded_name(share.name()))
        && filter.client.is_none_or(|wanted| client == Some(wanted.to_canonical()))
}

fn of_smb(file: &smb_server::report::OpenFile, locks: &[ByteRangeLock]) -> OpenFile {
    let opened_as = file.name.replace('\\', "/");
    // The stream of a file is not part of the file's path.
    let (opened_as, stream) =
        opened_as.split_once(':').map_or((&*opened_as, None), |(path, stream)| (path, Some(stream)));
    let present = present_path(file.open.file().unwrap_or(&file.open));
    let mut path = present.unwrap_or_else(|| opened_as.to_owned());
    if let Some(stream) = stream {
        path = format!("{path}:{stream}");
    }
    let client = OpenedBy {
        address: file.client,
        connected: file.session.is_some(),
        user: Some(file.user.clone()),
        uid: None,
        session: file.session.map(|id| format!("0x{id:x}")),
        name: None,
    };
    let locks = locks.len() as u64;
    OpenFile {
        directory: file.is_directory,
        locks,
        ..told_open("smb", &file.share, &file.open, path, client)
    }
}

fn of_nfs(file: &nfs_server::OpenFile, locks: &[ByteRangeLock]) -> OpenFile {
    let by_name = || file.share.location(&file.open).map(|at| String::from_utf8_lossy(&at.name).into_owned());
    let path = present_path(&file.open).or_else(by_name).unwrap_or_default();
    let client = OpenedBy {
        address: Some(file.address),
        connected: file.is_connected,
        user: file.user.as_deref().map(str::to_owned),
        uid: Some(file.uid),
        session: None,
        name: Some(file.client.clone()),
    };
    let locks = locks.len() as u64;
    let told = told_open(file.protocol(), &file.share, &file.open, path, client);
    OpenFile { delegation: file.is_delegation, locks, ..told }
}

fn told_open(protocol: &str, share: &Share, open: &Open, path: String, client: OpenedBy) -> OpenFile {
    let holding = share.holding_without_locks(open);
    let names = |set: &[(bool, &str)]| {
        set.iter().filter(|(is_in, _)| *is_in).map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>()
    };
    let access = holding.as_ref().map_or(Access::empty(), |holding| holding.access);
    let sharing = holding.as_ref().map_or(Sharing::empty(), |holding| holding.sharing);
    let caching = holding.as_ref().map_or(Caching::empty(), |holding| holding.caching);
    OpenFile {
        id: FileId { share: share.id().0, open: open.key().0 },
        share: share.name().to_owned(),
        path,
        protocol: protocol.to_owned(),
        client,
        directory: false,
        delegation: false,
        access: names(&[
            (access.intersects(Access::READ_DATA | Access::EXECUTE), "read"),
            (access.intersects(Access::WRITE_DATA | Access::APPEND_DATA), "write"),
            (access.contains(Access::DELETE), "delete"),
        ]),
        sharing: names(&[
            (sharing.contains(Sharing::READ), "read"),
            (sharing.contains(Sharing::WRITE), "write"),
            (sharing.contains(Sharing::DELETE), "delete"),
        ]),
        caching: names(&[
            (caching.contains(Caching::READ), "read"),
            (caching.contains(Caching::WRITE), "write"),
            (caching.contains(Caching::HANDLE), "handle"),
        ]),
        delete_on_close: holding.as_ref().is_some_and(|holding| holding.delete_on_close),
        locks: 0,
    }
}

/// The path of an open's object now; None for one that was removed.
fn present_path(open: &Open) -> Option<String> {
    open.node().path().ok().map(|path| String::from_utf8_lossy(&path).into_owned())
}

fn told(locks: &[ByteRangeLock], of: impl FnOnce() -> OpenFile) -> Vec<Lock> {
    if locks.is_empty() {
        return Vec::new();
    }
    let file = of();
    let lock = |lock: &ByteRangeLock| Lock {
        file: file.id,
        share: file.share.clone(),
        path: file.path.clone(),
        protocol: file.protocol.clone(),
        client: file.client.clone(),
        exclusive: lock.kind == LockKind::Exclusive,
        mandatory: lock.owner.is_mandatory(),
        offset: lock.range.offset(),
        length: length(lock),
    };
    locks.iter().map(lock).collect()
}

/// The number of bytes of a lock; None: to the end.
fn length(lock: &ByteRangeLock) -> Option<u64> {
    (!lock.range.reaches_end()).then(|| lock.range.length())
}
