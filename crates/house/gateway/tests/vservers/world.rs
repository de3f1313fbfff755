//! Two gateways that agree in one store, as two nodes do, and the directories that both have.

use std::fs::Permissions;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use acl::Sid;
use anabranch_gateway::kerberos::KerberosSettings;
use anabranch_gateway::settings::{CephPlace, Settings, ShareSettings};
use anabranch_gateway::{
    Gateway, NewVserver, PortmapSockets, Prepared, Problem, Reach, Sockets, VserverShare,
};
use share::Terms;
use smb_proto::dialect::Dialect;
use smb_wire::Guid;
use smb_wire::negotiate::Capabilities;
use state::cluster::{Begun, Holder, Member, OneMachine, Ownership};
use storage::{Capabilities as Abilities, Storage as _};
use storage_local::{LocalOptions, LocalStore};
use tempfile::TempDir;

use crate::client::Client;
use crate::gss;
use crate::mint::{self, PacOf};
use crate::nfs4::Nfs4;
use crate::no_program::NoProgram;
use crate::ticket::{log_on, write_keytab};

/// How long something may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const DESCRIPTORS: u64 = 2000;
const USER: &str = "martha";
pub(crate) const SERVICE: [&str; 2] = ["cifs", "files.lab.test"];
pub(crate) const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A gateway and its place among the others.
pub(crate) struct Node {
    pub(crate) gateway: Gateway,
    pub(crate) member: Arc<Member>,
}

/// Where a vserver is found, wherever it is.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) smb: SocketAddr,
    pub(crate) nfs: SocketAddr,
}

pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) store: OneMachine,
}

impl World {
    /// None, which is told: file systems here have no handles that two gateways could have in common.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        if !local.capabilities().contains(Abilities::NATIVE_HANDLES) {
            println!("not tested: {test}: it needs root, and a file system with handles of its own");
            return None;
        }
        let database = redb::Database::create(directory.path().join("agreed")).unwrap();
        Some(Self { directory, store: OneMachine::new(database) })
    }

    /// Has the store refuse a gateway.
    pub(crate) fn fence(&self, node: &Node) {
        self.store.gateway("somebody").fence(node.member.holder()).unwrap();
    }

    /// A gateway of this name, of which there is nothing but its place among the others.
    pub(crate) fn member(&self, name: &str) -> Result<Member, Holder> {
        self.member_with(name, "")
    }

    /// The same, whose storage knows it by this session.
    pub(crate) fn member_with(&self, name: &str, session: &str) -> Result<Member, Holder> {
        Member::join(self.store.gateway(name), name, session).unwrap()
    }

    /// An empty directory that all gateways have, and all users may use.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        let data = self.directory.path().join(name);
        std::fs::create_dir_all(&data).unwrap();
        std::fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
        data
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        let gateway = self.gateway(name);
        let member = Arc::new(self.member(name).unwrap());
        gateway.join(Arc::clone(&member)).unwrap();
        Node { gateway, member }
    }

    /// A gateway that has no place among others.
    pub(crate) fn gateway(&self, name: &str) -> Gateway {
        write_keytab(&self.keytab(name), &[&SERVICE]);
        let prepared = Prepared::new(&self.settings(name), DESCRIPTORS).unwrap();
        let sockets = Sockets {
            smb: vec![listen(None)],
            smb_quic: Vec::new(),
            nfs: vec![listen(None)],
            control: listen(None),
            portmap: PortmapSockets::default(),
        };
        Gateway::start(prepared, sockets, Arc::new(NoProgram)).unwrap()
    }

    /// The file with the keys of a gateway.
    pub(crate) fn keytab(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("keytab of {name}"))
    }

    /// Those of a gateway.
    pub(crate) fn settings(&self, name: &str) -> Settings {
        let state = self.directory.path().join(format!("state of {name}"));
        let shares = vec![ShareSettings::new("own", self.data(&format!("own of {name}")))];
        let keytab = Some(self.keytab(name));
        let kerberos = KerberosSettings { keytab, domains: vec![domain()], ..KerberosSettings::default() };
        let configuration = self.directory.path().join("no ceph.conf");
        let ceph = CephPlace { configuration, ..CephPlace::default() };
        Settings { shares, kerberos, ceph, ..Settings::new(state) }
    }
}

impl Node {
    /// Owns a vserver without serving it.
    pub(crate) fn own(&self, vserver: &str) -> Ownership {
        match self.member.own(vserver).unwrap() {
            Begun::Owned(ownership) => ownership,
            Begun::By(owner) => panic!("{owner:?} serves it"),
        }
    }

    /// Serves a vserver with one share, `data`, in this directory; at the address where it was before.
    pub(crate) fn serve(&self, vserver: &str, directory: &Path, at: Option<At>) -> Result<At, Problem> {
        let (smb, nfs) = (listen(at.map(|at| at.smb)), listen(at.map(|at| at.nfs)));
        let at = At { smb: smb.local_addr().unwrap(), nfs: nfs.local_addr().unwrap() };
        let share =
            VserverShare { terms: Terms::CONTINUOUSLY_AVAILABLE, ..VserverShare::new("data", directory) };
        let reach = Reach::Sockets { smb: vec![smb], nfs: vec![nfs] };
        let new = NewVserver { name: vserver.to_owned(), shares: vec![share], coming: Vec::new(), reach };
        self.gateway.serve_vserver(new).map(|()| at)
    }

    pub(crate) fn stop(self) {
        assert!(self.gateway.stop().unwrap().within(PATIENCE));
    }
}

fn listen(at: Option<SocketAddr>) -> TcpListener {
    TcpListener::bind(at.unwrap_or_else(|| (HOME, 0).into())).unwrap()
}

/// A port that is free, and stays so until a gateway listens: no other test of this process gets it, and no connection is made from it
/// (ip_local_port_range begins at 32768).
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another process begins elsewhere.
    let first = 12_000 + u16::try_from(std::process::id() % 16_000).unwrap();
    let mut ports = (0..1000).map(|_| first + TAKEN.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind((HOME, *port)).is_ok()).unwrap()
}

/// An SMB client of the share `data`, and the server's GUID.
pub(crate) fn smb(at: At, guid: Guid, previous_session_id: u64) -> (Client, Guid) {
    let mut client = Client::connect(at.smb);
    client.capabilities |= Capabilities::PERSISTENT_HANDLES;
    client.client_guid = guid;
    client.previous_session_id = previous_session_id;
    let reply = client.negotiate(&[Dialect::Smb311]);
    let server = smb_wire::negotiate::Response::decode(&reply.message).unwrap().server_guid;
    log_on(&mut client, &member_of_domain(&SERVICE));
    client.tree_connect("data").unwrap();
    (client, server)
}

/// The ticket of a user of a domain for this service, whom both gateways know by the same SID.
pub(crate) fn member_of_domain<'a>(service: &'a [&'a str]) -> mint::Ticket<'a> {
    let ticket = gss::ticket(&[USER]);
    let pac = PacOf {
        name: USER,
        auth_time: ticket.auth_time,
        account: USER,
        domain: "AD",
        domain_sid: domain(),
        user: 1104,
        primary_group: 513,
        groups: vec![513],
        extra_sids: Vec::new(),
        resource_domain: None,
        resource_groups: Vec::new(),
        upn: None,
        requestor: None,
    };
    let authorization_data = Some(mint::around_pac(&pac.signed(&ticket.key)));
    mint::Ticket { service, authorization_data, ..ticket }
}

fn domain() -> Sid {
    "S-1-5-21-1-2-3".parse().unwrap()
}

/// An NFS client that has nothing to reclaim.
pub(crate) fn nfs(at: At, name: &str) -> Nfs4 {
    Nfs4::start(HOME, &at.nfs.to_string(), name)
}
