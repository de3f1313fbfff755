//! What clients see of quotas.

use std::time::{Duration, Instant};

use net::Datagrams;
use nfs_wire::rpc::{AcceptStatus, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::rquota::{self, Args, Kind, Path, Quota, Res, UserArgs};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, fsstat};
use nfs_wire::xdr::{Decode, Encode, Reader};
use share::Squash;
use storage::fault::{Call, FaultyStore};

use crate::client::{Client, TestServer, call_record, export, rules};

/// Waits until all files were counted since the quotas were changed, or a count was asked for.
fn wait_for_count(server: &TestServer) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let status = || runtime.block_on(server.data.quota_status()).unwrap().unwrap();
    while status().is_counting {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(status().counted.is_some());
}

#[test]
fn a_full_quota_is_told_and_held() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &[1; 4096]);
    let owner = client.attributes(file).uid;
    server.data.set_quota_rules(vec![format!("{owner} hard=12KiB").parse().unwrap()]);
    wait_for_count(&server);
    let told: fsstat::Res = client.nfs(Procedure::FsStat, &fsstat::Args { root });
    let told = told.unwrap();
    assert_eq!((told.total_bytes, told.available_bytes), (3 * 4096, 2 * 4096));
    let refused = client.write(file, 4096, &[2; 2 * 4096 + 1]).unwrap_err();
    assert_eq!(refused.status, Status::DQuot);
    client.write(file, 4096, &[2; 2 * 4096]).unwrap();
    client.write(file, 0, &[3; 3 * 4096]).unwrap();
    assert_eq!(client.write(file, 3 * 4096, &[4]).unwrap_err().status, Status::DQuot);
}

const GET: u32 = rquota::Procedure::GetQuota as u32;
const GET_ACTIVE: u32 = rquota::Procedure::GetActiveQuota as u32;

/// GETQUOTA of version 2.
fn of(client: &mut Client, path: &str, kind: Kind, id: u32) -> Res {
    ask(client, GET, &Args { path: Path(path.as_bytes()), kind, id })
}

fn ask(client: &mut Client, procedure: u32, args: &Args<'_>) -> Res {
    let (body, results) = client.exchange((rquota::PROGRAM, 2, procedure), args);
    assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
    Res::from_bytes(&results).unwrap()
}

/// What GETQUOTA and GETACTIVEQUOTA tell user 7: whether the quota holds, used and hard limit in KiB.
fn told_both(client: &mut Client) -> [Option<(bool, u32, u32)>; 2] {
    [GET, GET_ACTIVE].map(|procedure| {
        match ask(client, procedure, &Args { path: Path(b"/data"), kind: Kind::User, id: 7 }) {
            Res::Quota(Quota { block_bytes: 1024, active, used, hard, .. }) => Some((active, used, hard)),
            _ => None,
        }
    })
}

/// A server on which user 7 has made a file of 8 KiB, with the store of the share.
fn with_file_of_seven() -> (TestServer, std::sync::Arc<FaultyStore>, Client, FileHandle) {
    let (server, store) = TestServer::faulty(|store| FaultyStore::new(store).into());
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, storage::conformance::MAY).unwrap();
    let (mut client, root) = server.mounted();
    client.user = Some((7, 70, Vec::new()));
    let file = client.make_file(root, "file", 0o600, &[1; 8192]);
    (server, store, client, file)
}

#[test]
fn before_the_first_count_has_ended_no_quota_is_active() {
    let (server, store, mut client, file) = with_file_of_seven();
    let stall = store.hang(Call::ReadDir);
    server.data.set_quota_rules(vec!["7 hard=12KiB".parse().unwrap()]);
    assert_eq!(told_both(&mut client), [Some((false, 0, 12)), None]);
    // Nobody is held back.
    client.write(file, 8192, &[2; 8192]).unwrap();
    assert_eq!(told_both(&mut client), [Some((false, 0, 12)), None]);
    drop(stall);
    wait_for_count(&server);
    assert_eq!(told_both(&mut client), [Some((true, 16, 12)); 2]);
    assert_eq!(client.write(file, 16384, &[3]).unwrap_err().status, Status::DQuot);
}

#[test]
fn while_files_are_counted_anew_quotas_are_told_and_held() {
    let (server, store, mut client, file) = with_file_of_seven();
    server.data.set_quota_rules(vec!["7 hard=12KiB".parse().unwrap()]);
    wait_for_count(&server);
    let before = store.calls(Call::ReadDir);
    let stall = store.hang(Call::ReadDir);
    server.data.count_quotas_again();
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.calls(Call::ReadDir) == before {
        assert!(Instant::now() < deadline, "no count begins");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(told_both(&mut client), [Some((true, 8, 12)); 2]);
    client.write(file, 8192, &[2; 4096]).unwrap();
    assert_eq!(client.write(file, 12288, &[3]).unwrap_err().status, Status::DQuot);
    assert!(server.data.quota_glance().unwrap().is_counting);
    drop(stall);
    wait_for_count(&server);
    assert_eq!(told_both(&mut client), [Some((true, 12, 12)); 2]);
}

fn hard_of(res: Res) -> Option<(u32, u32)> {
    match res {
        Res::Quota(Quota { block_bytes: 1024, active: true, used, hard, .. }) => Some((used, hard)),
        _ => None,
    }
}

/// A server on which user 7 holds 8 KiB, with quotas.
fn with_quotas(squash: Squash) -> TestServer {
    let server = TestServer::exporting(export(squash));
    let (mut client, root) = server.mounted();
    client.user = Some((7, 70, vec![71]));
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, storage::conformance::MAY).unwrap();
    client.make_file(root, "file", 0o600, &[1; 8192]);
    let quotas = ["7 soft=4KiB hard=12KiB", "* hard=1MiB", "@70 hard=2MiB", "/ hard=1GiB"];
    server.data.set_quota_rules(quotas.iter().map(|quota| quota.parse().unwrap()).collect());
    wait_for_count(&server);
    server
}

#[test]
fn users_are_told_their_quotas_and_those_of_their_groups() {
    let server = with_quotas(Squash::Root);
    let mut client = server.client_of(7, 70, &[71]);
    let Res::Quota(quota) = of(&mut client, "/data", Kind::User, 7) else { panic!("there is none") };
    assert_eq!((quota.used, quota.soft, quota.hard), (8, 4, 12));
    assert!((1..=7 * 24 * 60 * 60).contains(&quota.seconds_left), "{quota:?}");
    for path in ["/data/below/it", "data", "//data/./x"] {
        assert_eq!(hard_of(of(&mut client, path, Kind::User, 7)), Some((8, 12)), "{path}");
    }
    assert_eq!(hard_of(of(&mut client, "/data", Kind::Group, 70)), Some((8, 2048)));
    assert_eq!(of(&mut client, "/data", Kind::Group, 71), Res::None, "no quota holds");
    for (kind, id) in [(Kind::User, 8), (Kind::User, 0), (Kind::Group, 72)] {
        assert_eq!(of(&mut client, "/data", kind, id), Res::NotPermitted, "{kind:?} {id}");
    }
    assert_eq!(of(&mut client, "/none", Kind::User, 7), Res::None);
    assert_eq!(of(&mut client, "", Kind::User, 7), Res::None);
    // Version 1 knows users only.
    let args = UserArgs { path: Path(b"/data"), uid: 7 };
    for procedure in [GET, GET_ACTIVE] {
        let (_, results) = client.exchange((rquota::PROGRAM, 1, procedure), &args);
        assert_eq!(Res::from_bytes(&results), Ok(Res::Quota(quota)));
    }
    // Who holds nothing is held back all the same.
    let mut other = server.client_of(9, 9, &[]);
    assert_eq!(hard_of(of(&mut other, "/data", Kind::User, 9)), Some((0, 1024)));
}

#[test]
fn superusers_are_told_all_quotas_where_they_are_believed() {
    let server = with_quotas(Squash::None);
    assert_eq!(hard_of(of(&mut server.client_of(0, 0, &[]), "/data", Kind::User, 7)), Some((8, 12)));
    let server = with_quotas(Squash::Root);
    assert_eq!(of(&mut server.client_of(0, 0, &[]), "/data", Kind::User, 7), Res::NotPermitted);
    let mut nobody = server.client();
    nobody.user = None;
    assert_eq!(of(&mut nobody, "/data", Kind::User, 7), Res::NotPermitted);
    // A share that is not for this client tells it nothing.
    server.data.set_rules(rules(&["10.9.8.7"]));
    assert_eq!(of(&mut server.client_of(7, 70, &[]), "/data", Kind::User, 7), Res::NotPermitted);
}

#[test]
fn malformed_questions_about_quotas_are_refused() {
    let server = with_quotas(Squash::Root);
    let mut client = server.client_of(7, 70, &[]);
    let mut status = |version, procedure, args: &dyn Fn() -> Vec<u32>| {
        let args = args();
        client.exchange((rquota::PROGRAM, version, procedure), &Words(args)).0
    };
    let mismatch = ReplyBody::accepted(AcceptStatus::ProgramMismatch { low: 1, high: 2 });
    assert_eq!(status(3, GET, &Vec::new), mismatch);
    assert_eq!(status(0, GET, &Vec::new), mismatch);
    assert_eq!(status(2, 3, &Vec::new), ReplyBody::accepted(AcceptStatus::ProcedureUnavailable));
    assert_eq!(status(2, 0, &Vec::new), ReplyBody::accepted(AcceptStatus::Success));
    let garbage = ReplyBody::accepted(AcceptStatus::GarbageArgs);
    for args in [vec![], vec![0, 0], vec![0, 2, 7], vec![1025, 0, 0], vec![u32::MAX, 0, 7], vec![0, 0, 7, 7]]
    {
        assert_eq!(status(2, GET, &|| args.clone()), garbage, "{args:?}");
    }
}

/// These numbers.
struct Words(Vec<u32>);

impl Encode for Words {
    fn encode(&self, writer: &mut nfs_wire::xdr::Writer<'_>) {
        self.0.iter().for_each(|word| writer.u32(*word));
    }
}

#[test]
fn quotas_are_told_over_udp() {
    let server = with_quotas(Squash::Root);
    let ask = |uid: u32, version| {
        let body = server.client_of(uid, 70, &[]).credential().unwrap();
        let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body: &body };
        let args = UserArgs { path: Path(b"/data"), uid: 7 };
        let call = call_record(7, (rquota::PROGRAM, version, GET), credential, &args);
        let reply = Datagrams::answer(&*server.server, ([127, 0, 0, 1], 700).into(), &call).unwrap();
        assert!(reply.len() <= call.len(), "an answer is not longer than its question");
        let mut reader = Reader::new(&reply);
        let body = Reply::decode(&mut reader).unwrap().body;
        (body == ReplyBody::accepted(AcceptStatus::Success)).then(|| Res::decode(&mut reader).unwrap())
    };
    assert_eq!(ask(7, 1).and_then(hard_of), Some((8, 12)));
    assert_eq!(ask(8, 1), Some(Res::NotPermitted));
    assert_eq!(ask(7, 3), None);
    let args = UserArgs { path: Path(b"/data"), uid: 7 };
    for credential in [OpaqueAuth::NONE, OpaqueAuth { flavor: 6, body: &[1; 4] }] {
        let call = call_record(7, (rquota::PROGRAM, 1, GET), credential, &args);
        let reply = Datagrams::answer(&*server.server, ([127, 0, 0, 1], 700).into(), &call).unwrap();
        assert_eq!(Res::from_bytes(&reply[24..]), Ok(Res::NotPermitted));
    }
}
