//! A server to test, and a client to test it with.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anabranch_nfs_server::{Anonymous, Config, NfsServer, Squashing};
use net::Shards;
use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::mount::{self, DirPath, MntOk, MntRes};
use nfs_wire::record_mark::{MARK_BYTES, Mark, Scan, scan};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v3::attr::{Attributes, SetAttributes};
use nfs_wire::v3::types::{DirOpArgs, FileHandle, Name};
use nfs_wire::v3::{self, Procedure, create, getattr, lookup, mkdir, write};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use share::{ClientRule, Rules, Settings, Share, ShareId, ShareTable, Squash};
use storage::fault::FaultyStore;
use storage::memory::MemoryStore;

/// Nobody waits longer for a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with the shares `data` and `other`.
pub(crate) struct TestServer {
    _shards: Shards,
    pub(crate) address: SocketAddr,
    pub(crate) server: Arc<NfsServer>,
    pub(crate) table: Arc<ShareTable>,
    pub(crate) data: Arc<Share>,
    pub(crate) store: Arc<MemoryStore>,
}

/// Whom a server believes, and whom the share `data` is for.
#[derive(Clone)]
pub(crate) struct Export {
    squash: Squash,
    rules: Rules,
}

/// An export to everybody.
pub(crate) fn export(squash: Squash) -> Export {
    Export { squash, rules: Rules::default() }
}

/// An export to those whom this list lets in; their users are believed.
pub(crate) fn listed(clients: &[&str]) -> Export {
    Export { squash: Squash::None, rules: rules(clients) }
}

/// The rules of this list.
pub(crate) fn rules(clients: &[&str]) -> Rules {
    let clients: Vec<ClientRule> = clients.iter().map(|rule| rule.parse().unwrap()).collect();
    Rules { clients, ..Rules::default() }
}

impl TestServer {
    /// A server whose clients are believed.
    pub(crate) fn start() -> Self {
        Self::exporting(export(Squash::None))
    }

    pub(crate) fn exporting(export: Export) -> Self {
        Self::over(Arc::new(MemoryStore::new()), export, 1)
    }

    /// A run of the server over what an earlier one may have left.
    pub(crate) fn over(store: Arc<MemoryStore>, data_export: Export, run: u8) -> Self {
        Self::with(store, data_export, run, |_| {}, |_| {})
    }

    /// The same, with other settings.
    pub(crate) fn with(
        store: Arc<MemoryStore>,
        data_export: Export,
        run: u8,
        of_share: impl Fn(&mut Settings),
        of_server: impl FnOnce(&mut Config),
    ) -> Self {
        Self::on(Arc::clone(&store) as _, store, data_export, run, of_share, of_server)
    }

    /// The same; the share `data` is on `front`, which may be something in front of `store`.
    pub(crate) fn on(
        front: Arc<dyn storage::Storage>,
        store: Arc<MemoryStore>,
        data_export: Export,
        run: u8,
        of_share: impl Fn(&mut Settings),
        of_server: impl FnOnce(&mut Config),
    ) -> Self {
        let share = |id, name, store| {
            let mut settings = Settings::new(name);
            of_share(&mut settings);
            Share::new(ShareId(id), settings, store)
        };
        let data = share(7, "data", front);
        let other = share(8, "other", Arc::new(MemoryStore::new()));
        data.set_rules(data_export.rules);
        let anonymous = Anonymous { uid: 5000, gid: 5001 };
        let squashing = Squashing { squash: data_export.squash, anonymous, ..Squashing::default() };
        let table = ShareTable::new([Arc::clone(&data), other]).unwrap();
        let mut config = Config::new(Arc::clone(&table), squashing, *b"key of the tests", [run; 8]);
        of_server(&mut config);
        let server = NfsServer::new(config);
        let shards = Shards::start(2).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        shards.listen(listener, Arc::clone(&server)).unwrap();
        Self { _shards: shards, address, server, table, data, store }
    }

    /// A server whose share `data` is on a store that fails as it is told.
    pub(crate) fn faulty(
        front: impl FnOnce(Arc<MemoryStore>) -> Arc<FaultyStore>,
    ) -> (Self, Arc<FaultyStore>) {
        let store = Arc::new(MemoryStore::new());
        let faulty = front(Arc::clone(&store));
        let server = Self::on(Arc::clone(&faulty) as _, store, export(Squash::None), 1, |_| {}, |_| {});
        (server, faulty)
    }

    /// Ends what clients have to do with a share that was withdrawn.
    pub(crate) fn end_share(&self, gone: &Share) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(self.server.end_share(gone));
    }

    /// A client whose user is the superuser.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// A client whose user is this one.
    pub(crate) fn client_of(&self, uid: u32, gid: u32, groups: &[u32]) -> Client {
        let mut client = self.client();
        client.user = Some((uid, gid, groups.to_vec()));
        client
    }

    /// The superuser's client, and the root of `/data`.
    pub(crate) fn mounted(&self) -> (Client, FileHandle) {
        let mut client = self.client();
        let root = client.mount("/data").unwrap().file_handle;
        (client, root)
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// The next call's.
    pub(crate) xid: u32,
    /// uid, gid and groups; `None` sends AUTH_NONE.
    pub(crate) user: Option<(u32, u32, Vec<u32>)>,
}

/// A whole call without its mark.
pub(crate) fn call_record(
    xid: u32,
    ids: (u32, u32, u32),
    credential: OpaqueAuth<'_>,
    args: &impl Encode,
) -> Vec<u8> {
    let (program, version, procedure) = ids;
    let call = Call { xid, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
    let mut record = Vec::new();
    let mut writer = Writer::new(&mut record);
    call.encode(&mut writer);
    args.encode(&mut writer);
    record
}

/// Any bytes as they are.
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl Encode for Raw<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        assert_eq!(self.0.len() % 4, 0);
        writer.opaque_fixed(self.0);
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, xid: 1, user: Some((0, 0, Vec::new())) }
    }

    /// The body of the credential.
    pub(crate) fn credential(&self) -> Option<Vec<u8>> {
        let (uid, gid, groups) = self.user.clone()?;
        let (machine_name, groups) = (MachineName(b"test"), Groups::new(&groups).unwrap());
        Some(AuthSys { stamp: 0, machine_name, uid, gid, groups }.encode_to_vec())
    }

    pub(crate) fn send_record(&mut self, record: &[u8]) {
        let mark = Mark::whole_record(record.len()).to_bytes();
        self.stream.write_all(&[&mark[..], record].concat()).unwrap();
    }

    /// The next reply, without its mark.
    pub(crate) fn receive_record(&mut self) -> Vec<u8> {
        let mut mark = [0; MARK_BYTES];
        self.stream.read_exact(&mut mark).unwrap();
        let mut record = vec![0; Mark::from_bytes(mark).length as usize];
        self.stream.read_exact(&mut record).unwrap();
        let whole = [&mark[..], &record].concat();
        assert_eq!(scan(&whole, usize::MAX), Ok(Scan::Whole { message: MARK_BYTES..whole.len() }));
        record
    }

    /// Whether the server has ended the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }

    pub(crate) fn send(&mut self, ids: (u32, u32, u32), args: &impl Encode) {
        let body = self.credential();
        let credential = match &body {
            Some(body) => OpaqueAuth { flavor: flavor::AUTH_SYS, body },
            None => OpaqueAuth::NONE,
        };
        let record = call_record(self.xid, ids, credential, args);
        self.xid += 1;
        self.send_record(&record);
    }

    /// Calls and returns how the call was received, and the results.
    pub(crate) fn exchange(
        &mut self,
        ids: (u32, u32, u32),
        args: &impl Encode,
    ) -> (ReplyBody<'static>, Vec<u8>) {
        let xid = self.xid;
        self.send(ids, args);
        let record = self.receive_record();
        let mut reader = Reader::new(&record);
        let reply = Reply::decode(&mut reader).unwrap();
        assert_eq!(reply.xid, xid);
        let body = match reply.body {
            ReplyBody::Accepted { verifier, status } => {
                assert_eq!(verifier, OpaqueAuth::NONE);
                ReplyBody::accepted(status)
            }
            ReplyBody::Denied(denied) => ReplyBody::Denied(denied),
        };
        (body, reader.rest().to_vec())
    }

    /// The results of an NFS procedure, to be decoded.
    pub(crate) fn raw(&mut self, procedure: Procedure, args: &impl Encode) -> Vec<u8> {
        let (body, results) = self.exchange((v3::PROGRAM, v3::VERSION, procedure as u32), args);
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
        results
    }

    /// Calls an NFS procedure.
    pub(crate) fn nfs<R: for<'a> Decode<'a>>(&mut self, procedure: Procedure, args: &impl Encode) -> R {
        R::from_bytes(&self.raw(procedure, args)).unwrap()
    }

    /// Calls a MOUNT procedure.
    pub(crate) fn mount_raw(&mut self, procedure: mount::Procedure, args: &impl Encode) -> Vec<u8> {
        let ids = (mount::PROGRAM, mount::VERSION, procedure as u32);
        let (body, results) = self.exchange(ids, args);
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
        results
    }

    pub(crate) fn mount(&mut self, path: &str) -> Result<MntOk, mount::Status> {
        let results = self.mount_raw(mount::Procedure::Mnt, &DirPath(path.as_bytes()));
        MntRes::from_bytes(&results).unwrap().map_err(|failure| failure.status)
    }

    // --- what many tests begin with ---

    pub(crate) fn attributes(&mut self, object: FileHandle) -> Attributes {
        let result: getattr::Res = self.nfs(Procedure::GetAttr, &getattr::Args { object });
        result.unwrap().object_attributes
    }

    pub(crate) fn lookup(&mut self, dir: FileHandle, name: &str) -> lookup::Res {
        self.nfs(Procedure::Lookup, &lookup::Args { what: place(dir, name) })
    }

    /// Makes a file of this mode and content.
    pub(crate) fn make_file(&mut self, dir: FileHandle, name: &str, mode: u32, data: &[u8]) -> FileHandle {
        let how = create::How::Guarded(with_mode(mode));
        let made: create::Res = self.nfs(Procedure::Create, &create::Args { place: place(dir, name), how });
        let file = made.unwrap().object.unwrap();
        if !data.is_empty() {
            self.write(file, 0, data).unwrap();
        }
        file
    }

    pub(crate) fn make_dir(&mut self, dir: FileHandle, name: &str, mode: u32) -> FileHandle {
        let args = mkdir::Args { place: place(dir, name), attributes: with_mode(mode) };
        let made: mkdir::Res = self.nfs(Procedure::MkDir, &args);
        made.unwrap().object.unwrap()
    }

    pub(crate) fn write(&mut self, file: FileHandle, offset: u64, data: &[u8]) -> write::Res {
        let count = u32::try_from(data.len()).unwrap();
        let stable = v3::types::StableHow::Unstable;
        self.nfs(Procedure::Write, &write::Args { file, offset, count, stable, data })
    }
}

pub(crate) fn place(dir: FileHandle, name: &str) -> DirOpArgs<'_> {
    DirOpArgs { dir, name: Name(name.as_bytes()) }
}

pub(crate) fn with_mode(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..SetAttributes::default() }
}

static SMB: share::Front = share::Front {
    name: "smb",
    patience: share::Patience::AsLongAsHolders,
    directories: share::DirectoryReport::Nothing,
};
static BY_SMB: share::Operation = share::Operation::new(&SMB, 1, "Create");

/// An operation of an SMB client.
pub(crate) fn by_smb(uid: u32, gid: u32) -> share::Call {
    let caller = share::Caller::new(share::Identity::unix(uid, gid, Vec::new()), share::Proof::Stated);
    let call = share::Call::new(&BY_SMB, caller, std::time::Instant::now());
    call.needs_no_turn();
    call
}
