//! A server for a test.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use anabranch_smb_server::{Config, Server, Service};
use auth::{Account, AccountList, nt_hash};
use net::{Listener, Shards};
use share::{Settings, Share, ShareId, ShareTable, Terms};
use smb_proto::dialect::Dialect;
use socket2::{Domain, Socket, Type};
use storage::memory::MemoryStore;

use super::{Client, Quic};

pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "correct horse";
pub(crate) const OTHER_USER: &str = "bob";
/// An account of the name that guests have.
pub(crate) const GUEST: &str = "guest";
pub(crate) const SHARE: &str = "Data";

/// A running server with the share [`SHARE`] and one that can only be read, `Fixed`. It ends when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// The shares that are served.
    pub(crate) table: Arc<ShareTable>,
    pub(crate) share: Arc<Share>,
    pub(crate) server: Arc<Server>,
    /// Where SMB over QUIC is served.
    pub(crate) quic: Quic,
    _shards: Shards,
}

impl TestServer {
    pub(crate) fn start(config: Config) -> Self {
        Self::start_on(config, Arc::new(MemoryStore::new()))
    }

    /// The share [`SHARE`] is on this store.
    pub(crate) fn start_on(config: Config, store: Arc<dyn storage::Storage>) -> Self {
        Self::sharing(config, Settings::new(SHARE), store)
    }

    /// [`SHARE`] is served on these terms.
    pub(crate) fn on_terms(config: Config, terms: Terms) -> Self {
        let settings = Settings { terms, ..Settings::new(SHARE) };
        Self::sharing(config, settings, Arc::new(MemoryStore::new()))
    }

    /// The same, with these settings of [`SHARE`].
    pub(crate) fn sharing(config: Config, settings: Settings, store: Arc<dyn storage::Storage>) -> Self {
        Self::prepared(config, settings, store, |_| {})
    }

    /// The same; `prepare` sees the server before it serves anybody.
    pub(crate) fn prepared(
        config: Config,
        settings: Settings,
        store: Arc<dyn storage::Storage>,
        prepare: impl FnOnce(&Server),
    ) -> Self {
        let share = Share::new(ShareId(1), settings, store);
        let read_only = Settings { terms: Terms::READ_ONLY, ..Settings::new("Fixed") };
        let fixed = Share::new(ShareId(2), read_only, Arc::new(MemoryStore::new()));
        let table = ShareTable::new([Arc::clone(&share), fixed]).unwrap();
        let account = |name: &str, uid| Account {
            name: name.to_owned(),
            nt_hash: Some(nt_hash(PASSWORD)),
            keys: None,
            uid,
            gid: uid,
            groups: Vec::new(),
            sid: None,
            disabled: name == "gone",
        };
        // The superuser of the store: what a user may do is not these tests' concern.
        let accounts = [(USER, 0), (OTHER_USER, 1000), ("gone", 1001), (GUEST, 1002)];
        let accounts = AccountList(accounts.map(|(name, uid)| account(name, uid)).to_vec());
        let server = Server::new(config, Arc::clone(&table), Arc::new(accounts));
        prepare(&server);
        let shards = Shards::start(2).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scavenged = Arc::clone(&server);
        let scavenge = move || {
            let scavenged = Arc::clone(&scavenged);
            async move { scavenged.scavenge().await }
        };
        shards.spawn(scavenge).unwrap();
        let (quic, over_quic) = Quic::listen();
        let listeners = [Listener::Tcp(listener), Listener::Quic(over_quic)];
        shards.listen_at_all(listeners, Arc::new(Service::new(Arc::clone(&server)))).unwrap();
        Self { address, table, share, server, quic, _shards: shards }
    }

    /// [`SHARE`] is served no more.
    pub(crate) fn withdraw(&self) -> Arc<Share> {
        let gone = self.table.withdraw(self.share.id()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(self.server.end_share(&gone));
        gone
    }

    /// A connection on which nothing has been said.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// The same, over QUIC.
    pub(crate) fn connect_over_quic(&self) -> Client {
        Client::over(self.quic.connect())
    }

    /// The same, from this address of the client's.
    pub(crate) fn connect_from(&self, source: IpAddr) -> Client {
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(source, 0).into()).unwrap();
        socket.connect(&self.address.into()).unwrap();
        Client::over(socket.into())
    }

    /// A connection with SMB 3.1.1 and a session of [`USER`].
    pub(crate) fn log_in(&self) -> Client {
        let mut client = self.connect();
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(USER, PASSWORD).unwrap();
        client
    }

    /// The same, connected to [`SHARE`].
    pub(crate) fn client(&self) -> Client {
        let mut client = self.log_in();
        client.tree_connect(SHARE).unwrap();
        client
    }
}
