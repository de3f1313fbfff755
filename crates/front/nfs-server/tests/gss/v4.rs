//! NFSv4 with RPCSEC_GSS: sessions of machines, SECINFO and NFS4ERR_WRONGSEC (RFC 8881 2.6.3).

use nfs_wire::gss::Service;
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::rpc::ReplyBody;
use nfs_wire::v4::compound::{self, ArgOp, ResOp};
use nfs_wire::v4::create_session::{self, ChannelAttributes, Flags};
use nfs_wire::v4::exchange_id::{self, ClientOwner, ProtectedOperations, StateProtectArgs, StateProtectRes};
use nfs_wire::v4::open::{Claim, CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::secinfo::SecInfo;
use nfs_wire::v4::secinfo_no_name::Style;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{
    Bitmap, ClientId, FileHandle, Name, OwnerId, SecurityParameters, SessionId, StateOwner, Stateid, Verifier,
};
use nfs_wire::v4::{
    self, Operation, attr, bind_conn_to_session, close, destroy_clientid, destroy_session, lookup, open,
    open_downgrade, putfh, read, reclaim_complete, secinfo, secinfo_no_name, sequence,
};
use nfs_wire::xdr::{Decode, Encode, Writer};
use share::Terms;

use crate::client::{Context, Outcome, server, ticket};
use crate::server::{Client, TestServer};

const IDS: (u32, u32, u32) = (v4::PROGRAM, v4::VERSION, v4::Procedure::Compound as u32);

struct Compound<'a>(&'a [ArgOp<'a>]);

impl Encode for Compound<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        compound::encode_args(writer, "gss", 1, self.0);
    }
}

/// A client with a session that a machine has made, whose calls come with `context`, or with AUTH_SYS.
struct V4 {
    client: Client,
    machine: Context,
    id: ClientId,
    session: SessionId,
    next: u32,
}

/// The operations that a machine protects, and those that it may send for its users; None: its state is not protected.
type Agreed = Option<ProtectedOperations>;

fn create(client_id: ClientId, sequence_id: u32) -> ArgOp<'static> {
    let channel = ChannelAttributes {
        header_pad_bytes: 0,
        request_bytes_max: 1 << 20,
        response_bytes_max: 1 << 20,
        response_cached_bytes_max: 8 << 10,
        operations_max: 16,
        requests_max: 8,
        rdma_ird: None,
    };
    ArgOp::CreateSession(create_session::Args {
        client_id,
        sequence_id,
        flags: Flags::empty(),
        fore_channel: channel,
        back_channel: channel,
        callback_program: 0x4000_0001,
        callback_security: vec![SecurityParameters::None],
    })
}

/// The status of each result.
fn statuses(results: &[u8]) -> Vec<Result<(), Status>> {
    let res = compound::Res::from_bytes(results).unwrap();
    let count = res.results.clone().count();
    let mut all = vec![Ok(()); count.saturating_sub(1)];
    all.push(res.status);
    all
}

impl V4 {
    fn start(server: &TestServer) -> Self {
        Self::protected(server, StateProtectArgs::None).0
    }

    /// A client whose state is protected in this way, and how the server answers that.
    fn protected(server: &TestServer, state_protect: StateProtectArgs<'_>) -> (Self, Agreed) {
        let mut client = server.client();
        let machine = Context::begin(&mut client, &ticket(&["nfs", "client.lab.test"]), Service::Integrity);
        let (id, session) = (ClientId(0), SessionId::default());
        let mut this = Self { client, machine, id, session, next: 1 };
        let exchange = ArgOp::ExchangeId(exchange_id::Args {
            client_owner: ClientOwner { verifier: Verifier([7; 8]), owner_id: OwnerId(b"a machine") },
            flags: exchange_id::Flags::empty(),
            state_protect,
            implementation: None,
        });
        let results = this.by_machine(&[exchange]);
        let mut answers = compound::Res::from_bytes(&results).unwrap().results;
        let Some(Ok(ResOp::ExchangeId(Ok(exchanged)))) = answers.next() else { panic!("{results:?}") };
        let agreed = match exchanged.state_protect {
            StateProtectRes::None => None,
            StateProtectRes::MachineCredential(operations) => Some(operations),
            StateProtectRes::Ssv(_) => panic!("not asked for"),
        };
        this.id = exchanged.client_id;
        let create = |sequence_id| create(exchanged.client_id, sequence_id);
        // Another principal may not confirm the client (18.36.4).
        let (body, results) = this.client.exchange(IDS, &Compound(&[create(exchanged.sequence_id)]));
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
        assert_eq!(statuses(&results), [Err(Status::ClidInUse)]);
        let results = this.by_machine(&[create(exchanged.sequence_id)]);
        let mut answers = compound::Res::from_bytes(&results).unwrap().results;
        let Some(Ok(ResOp::CreateSession(Ok(created)))) = answers.next() else { panic!("{results:?}") };
        this.session = created.session_id;
        let done = [this.sequence(), ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })];
        assert_eq!(statuses(&this.by_machine(&done)), [Ok(()), Ok(())]);
        (this, agreed)
    }

    fn by_machine(&mut self, operations: &[ArgOp<'_>]) -> Vec<u8> {
        match self.machine.exchange(&mut self.client, IDS, &Compound(operations)) {
            Outcome::Ran(results) => results,
            other => panic!("{other:?}"),
        }
    }

    fn sequence(&mut self) -> ArgOp<'static> {
        let sequence_id = self.next;
        self.next += 1;
        ArgOp::Sequence(sequence::Args {
            session_id: self.session,
            sequence_id,
            slot_id: 0,
            highest_slot_id: 0,
            cache_this: false,
        })
    }

    /// Operations of the session, with this context or with AUTH_SYS.
    fn run(&mut self, context: Option<&mut Context>, operations: &[ArgOp<'_>]) -> Vec<u8> {
        let sequence = self.sequence();
        let all: Vec<ArgOp<'_>> = std::iter::once(sequence).chain(operations.iter().cloned()).collect();
        match context {
            Some(context) => match context.exchange(&mut self.client, IDS, &Compound(&all)) {
                Outcome::Ran(results) => results,
                other => panic!("{other:?}"),
            },
            None => {
                let (body, results) = self.client.exchange(IDS, &Compound(&all));
                assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
                results
            }
        }
    }
}

fn look(name: &str) -> ArgOp<'_> {
    ArgOp::Lookup(lookup::Args { name: Name(name.as_bytes()) })
}

fn ask(name: &str) -> ArgOp<'_> {
    ArgOp::SecInfo(secinfo::Args { name: Name(name.as_bytes()) })
}

fn put(handle: &[u8]) -> ArgOp<'_> {
    ArgOp::PutFh(putfh::Args { object: FileHandle(handle) })
}

fn handle(results: &[u8]) -> Vec<u8> {
    let found =
        compound::Res::from_bytes(results).unwrap().results.find_map(|result| match result.unwrap() {
            ResOp::GetFh(Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        });
    found.unwrap()
}

/// What SECINFO has answered: 0 for AUTH_SYS, or the service.
fn flavors(results: &[u8]) -> Vec<u32> {
    let last = compound::Res::from_bytes(results).unwrap().results.last().unwrap().unwrap();
    let (ResOp::SecInfo(Ok(flavors)) | ResOp::SecInfoNoName(Ok(flavors))) = last else { panic!("{last:?}") };
    let number = |flavor: SecInfo<'_>| match flavor {
        SecInfo::Flavor(1) => 0,
        SecInfo::Flavor(other) => panic!("{other}"),
        SecInfo::Gss { oid, qop, service } => {
            assert_eq!((oid, qop), (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2][..], 0));
            service
        }
    };
    flavors.into_iter().map(number).collect()
}

const OK: Result<(), Status> = Ok(());
const WRONG: Result<(), Status> = Err(Status::WrongSec);

#[test]
fn a_session_of_a_machine_serves_its_users() {
    let server = server();
    let mut v4 = V4::start(&server);
    for service in [Service::None, Service::Integrity, Service::Privacy] {
        let mut alice = Context::begin(&mut v4.client, &ticket(&["alice"]), service);
        let results = v4.run(Some(&mut alice), &[ArgOp::PutRootFh, look("data"), ArgOp::GetFh]);
        assert_eq!(statuses(&results), [OK; 4], "{service:?}");
    }
    let results = v4.run(None, &[ArgOp::PutRootFh, look("data"), ArgOp::GetFh]);
    assert_eq!(statuses(&results), [OK; 4]);
    assert_eq!(server.server.connections()[0].security, ["sys", "krb5", "krb5i", "krb5p"]);
}

#[test]
fn secinfo_names_the_flavors_of_a_share_to_any_call() {
    let server = server();
    let mut v4 = V4::start(&server);
    let top = handle(&v4.run(None, &[ArgOp::PutRootFh, look("data"), ArgOp::GetFh]));
    let no_name = |style| ArgOp::SecInfoNoName(secinfo_no_name::Args { style });
    for (terms, expected) in [
        (Terms::empty(), vec![0, 1, 2, 3]),
        (Terms::RPC_KRB5 | Terms::RPC_KRB5P, vec![1, 3]),
        (Terms::ENCRYPTED, vec![3]),
    ] {
        server.data.set_terms(terms);
        let results = v4.run(None, &[ArgOp::PutRootFh, ask("data")]);
        assert_eq!(flavors(&results), expected, "{terms:?}");
        let results = v4.run(None, &[put(&top), no_name(Style::CurrentFh)]);
        assert_eq!(flavors(&results), expected, "{terms:?}");
        let results = v4.run(None, &[put(&top), no_name(Style::Parent)]);
        assert_eq!(flavors(&results), [0, 1, 2, 3], "the root of all shares admits all");
    }
}

#[test]
fn the_right_operation_reports_a_flavor_that_is_not_admitted() {
    let server = server();
    let mut v4 = V4::start(&server);
    let (mut client, root) = server.mounted();
    client.make_dir(root, "dir", 0o755);
    let look_up = [ArgOp::PutRootFh, look("data"), ArgOp::GetFh, look("dir"), ArgOp::GetFh];
    let top = handle(&v4.run(None, &look_up[..3]));
    let inside = {
        let results = v4.run(None, &look_up);
        let all = compound::Res::from_bytes(&results).unwrap().results;
        let handles = all.filter_map(|result| match result.unwrap() {
            ResOp::GetFh(Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        });
        handles.last().unwrap()
    };
    server.data.set_terms(Terms::RPC_KRB5P);
    let (top, inside) = (put(&top), put(&inside));
    let get = ArgOp::GetFh;
    for (operations, expected) in [
        // 2.6.3.1.1.8: the operation that sets the filehandle reports it
        (vec![top.clone(), get.clone()], vec![OK, WRONG]),
        (vec![inside.clone(), get.clone()], vec![OK, WRONG]),
        // 2.6.3.1.1.7: nothing follows
        (vec![top.clone()], vec![OK, OK]),
        // 2.6.3.1.1.1: another one follows
        (vec![top.clone(), ArgOp::PutRootFh, get.clone()], vec![OK, OK, OK, OK]),
        // 2.6.3.1.1.3: the name that is looked up reports it
        (vec![ArgOp::PutRootFh, look("data")], vec![OK, OK, WRONG]),
        (vec![top.clone(), look("dir")], vec![OK, OK, WRONG]),
        // 2.6.3.1.1.4: the parent of the top is the root of all shares
        (vec![top.clone(), ArgOp::LookupP, get.clone()], vec![OK, OK, OK, OK]),
        (vec![inside.clone(), ArgOp::LookupP], vec![OK, OK, WRONG]),
        (vec![ArgOp::PutRootFh, look("other"), get.clone()], vec![OK, OK, OK, OK]),
        // 2.6.3.1.1.2: SAVEFH may leave it to RESTOREFH
        (
            vec![top.clone(), ArgOp::SaveFh, ArgOp::PutRootFh, ArgOp::RestoreFh, get],
            vec![OK, OK, OK, OK, WRONG],
        ),
    ] {
        let results = v4.run(None, &operations);
        assert_eq!(statuses(&results), expected, "{operations:?}");
    }
    let mut private = Context::begin(&mut v4.client, &ticket(&["alice"]), Service::Privacy);
    let results = v4.run(Some(&mut private), &[inside, ArgOp::LookupP, ArgOp::GetFh]);
    assert_eq!(statuses(&results), [OK; 4]);
    let mut signed = private.with(Service::Integrity);
    let results = v4.run(Some(&mut signed), &[ArgOp::PutRootFh, look("data")]);
    assert_eq!(statuses(&results), [OK, OK, WRONG]);
}

fn numbers(operations: &[Operation]) -> Bitmap {
    operations.iter().fold(Bitmap::EMPTY, |set, operation| set.with(*operation as u32))
}

/// What Linux asks for (6.1, nfs4_sp4_mach_cred_request), as far as it is about files.
fn as_linux_asks() -> StateProtectArgs<'static> {
    let manages = [Operation::BindConnToSession, Operation::ExchangeId, Operation::CreateSession];
    let ends = [Operation::DestroySession, Operation::DestroyClientId];
    let gives_up = [Operation::Close, Operation::OpenDowngrade, Operation::DelegReturn, Operation::LockU];
    let also = [Operation::SecInfo, Operation::TestStateid, Operation::FreeStateid, Operation::Write];
    StateProtectArgs::MachineCredential(ProtectedOperations {
        must_enforce: numbers(&[&manages[..], &ends].concat()),
        must_allow: numbers(&[&gives_up[..], &also].concat()),
    })
}

#[test]
fn a_client_whose_state_is_protected_is_managed_by_its_machine_alone() {
    let server = server();
    let (mut v4, agreed) = V4::protected(&server, as_linux_asks());
    let agreed = agreed.unwrap();
    let StateProtectArgs::MachineCredential(asked) = as_linux_asks() else { panic!() };
    assert_eq!(agreed.must_enforce, asked.must_enforce);
    let kept = asked.must_allow.difference(numbers(&[Operation::SecInfo, Operation::Write]));
    assert_eq!(agreed.must_allow, kept);
    let (session_id, client_id) = (v4.session, v4.id);
    let direction = bind_conn_to_session::ClientDirection::Fore;
    let managing = [
        create(client_id, 2),
        ArgOp::BindConnToSession(bind_conn_to_session::Args { session_id, direction, use_rdma: false }),
        ArgOp::DestroySession(destroy_session::Args { session_id }),
        ArgOp::DestroyClientId(destroy_clientid::Args { client_id }),
    ];
    let machine = ["nfs", "client.lab.test"];
    let mut others = vec![
        Context::begin(&mut v4.client, &ticket(&["alice"]), Service::Privacy),
        Context::begin(&mut v4.client, &ticket(&["nfs", "other.lab.test"]), Service::Integrity),
        Context::begin(&mut v4.client, &ticket(&machine), Service::None),
    ];
    for operation in &managing {
        let refused = [Err(Status::WrongCred)];
        let (_, results) = v4.client.exchange(IDS, &Compound(std::slice::from_ref(operation)));
        assert_eq!(statuses(&results), refused, "{operation:?}");
        for other in &mut others {
            let ran = other.exchange(&mut v4.client, IDS, &Compound(std::slice::from_ref(operation)));
            let Outcome::Ran(results) = ran else { panic!("{ran:?}") };
            assert_eq!(statuses(&results), refused, "{operation:?}");
        }
        assert_eq!(statuses(&v4.run(None, &[ArgOp::PutRootFh])), [OK, OK], "everybody uses the session");
    }
    for operation in &managing[..3] {
        let results = v4.by_machine(std::slice::from_ref(operation));
        assert_eq!(statuses(&results), [OK], "{operation:?}");
    }
}

#[test]
fn the_state_of_a_client_is_protected_if_it_asks_for_that_with_integrity() {
    let server = server();
    let mut client = server.client();
    for (service, expected) in
        [(Service::None, Err(Status::Inval)), (Service::Integrity, OK), (Service::Privacy, OK)]
    {
        let mut machine = Context::begin(&mut client, &ticket(&["nfs", "client.lab.test"]), service);
        let exchange = ArgOp::ExchangeId(exchange_id::Args {
            client_owner: ClientOwner { verifier: Verifier([7; 8]), owner_id: OwnerId(b"a machine") },
            flags: exchange_id::Flags::empty(),
            state_protect: as_linux_asks(),
            implementation: None,
        });
        let Outcome::Ran(results) = machine.exchange(&mut client, IDS, &Compound(&[exchange])) else {
            panic!()
        };
        assert_eq!(statuses(&results), [expected], "{service:?}");
    }
}

/// The user's ticket may have ended, and the share may demand more than the machine's calls have.
#[test]
fn a_machine_gives_up_what_its_users_have_and_does_nothing_else_for_them() {
    let server = server();
    let (mut v4, _) = V4::protected(&server, as_linux_asks());
    let mut alice = Context::begin(&mut v4.client, &ticket(&["alice"]), Service::Privacy);
    server.data.set_terms(Terms::RPC_KRB5P);
    let client_id = v4.id;
    let open = |share_access: ShareAccess| {
        ArgOp::Open(open::Args {
            seqid: 0,
            share_access: share_access.with_want(Want::None),
            share_deny: ShareDeny::NONE,
            owner: StateOwner { client_id, owner: OwnerId(b"alice") },
            how: How::Create(CreateHow::Unchecked(attr::Attributes::EMPTY)),
            claim: Claim::Null(Name(b"file")),
        })
    };
    let opened = |results: &[u8]| -> Stateid {
        let mut answers = compound::Res::from_bytes(results).unwrap().results;
        let stateid = answers.find_map(|result| match result.unwrap() {
            ResOp::Open(Ok(ok)) => Some(ok.stateid),
            _ => None,
        });
        stateid.unwrap()
    };
    let mut open_as_alice = |access| {
        let operations = [ArgOp::PutRootFh, look("data"), open(access), ArgOp::GetFh];
        v4.run(Some(&mut alice), &operations)
    };
    open_as_alice(ShareAccess::READ);
    let results = open_as_alice(ShareAccess::BOTH);
    let (stateid, file) = (opened(&results), handle(&results));
    let count = 1;
    let read = ArgOp::Read(read::Args { stateid, offset: 0, count });
    let mut machine = v4.machine.clone();
    assert_eq!(statuses(&v4.run(Some(&mut machine), &[put(&file), read])), [OK, WRONG]);
    let downgrade = ArgOp::OpenDowngrade(open_downgrade::Args {
        open_stateid: stateid,
        seqid: 0,
        share_access: ShareAccess::READ,
        share_deny: ShareDeny::NONE,
    });
    assert_eq!(statuses(&v4.run(Some(&mut machine), &[put(&file), downgrade])), [OK; 3]);
    let close = |seqid| {
        let open_stateid = Stateid { seqid, ..stateid };
        ArgOp::Close(close::Args { seqid: 0, open_stateid })
    };
    assert_eq!(statuses(&v4.run(Some(&mut machine), &[put(&file), close(0)])), [OK; 3]);
    let gone = [OK, OK, Err(Status::BadStateId)];
    assert_eq!(statuses(&v4.run(Some(&mut alice), &[put(&file), close(0)])), gone);
}
