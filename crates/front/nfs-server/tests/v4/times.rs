//! Times that a client sets stay until a client does something.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nfs_wire::v4::attr::{Attribute, AttributeSet, AttributesBuf, Value};
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::types::{SetTime, Stateid, Time};
use nfs_wire::v4::{getattr, setattr};
use share::{Case, Settings, Squash};
use storage::Want;
use storage::memory::MemoryStore;
use storage_local::{LocalOptions, LocalStore};

use crate::client::{V4Client, put};
use crate::opens::runtime;
use crate::server::{TestServer, by_smb, export};

const EARLY: Time = Time { seconds: 1_000_000_000, nanoseconds: 0 };
const LATE: Time = Time { seconds: 1_100_000_000, nanoseconds: 0 };

/// A server whose share `data` is a directory of this machine; nothing that was read of it is kept.
fn serve(directory: &Path) -> TestServer {
    let front = Arc::new(LocalStore::open(directory, LocalOptions::default()).unwrap());
    let of_share = |settings: &mut Settings| settings.metadata_cache = false;
    TestServer::on(front, Arc::new(MemoryStore::new()), export(Squash::None), 1, of_share, |_| {})
}

/// Sets both times: with an earlier time of last access than that of the last change the next reader changes it (`relatime` of
/// mount(8)).
fn set_times(client: &mut V4Client, object: &[u8]) {
    let times =
        [Value::TimeAccessSet(SetTime::ClientTime(EARLY)), Value::TimeModifySet(SetTime::ClientTime(LATE))];
    let attributes: AttributesBuf = times.into_iter().collect();
    let attributes = attributes.as_attributes();
    client.ok(&[put(object), ArgOp::SetAttr(setattr::Args { stateid: Stateid::ANONYMOUS, attributes })]);
}

fn last_access(client: &mut V4Client, object: &[u8]) -> Time {
    let request = AttributeSet::of(&[Attribute::TimeAccess]);
    let reply = client.ok(&[put(object), ArgOp::GetAttr(getattr::Args { request })]);
    match reply.attribute(Attribute::TimeAccess) {
        Some(Value::TimeAccess(time)) => time,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_time_of_last_access_of_a_directory_is_left_alone_by_what_the_server_reads_for_itself() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("dir")).unwrap();
    std::fs::write(place.path().join("dir/file"), "four").unwrap();
    let server = serve(place.path());
    let mut client = V4Client::start(server.address, "one");
    let dir = client.path("/data/dir");

    // A name whatever its case: SMB.
    set_times(&mut client, &dir);
    let smb = by_smb(0, 0);
    let path = ["dir", "FILE"].map(|name| name.as_bytes().to_vec()).to_vec();
    let found = runtime().block_on(server.data.walk(&smb, path, Case::Insensitive, Want::empty())).unwrap();
    assert!(matches!(found, share::Walk::Found(_)));
    assert_eq!(last_access(&mut client, &dir), EARLY, "its names were read for an index");

    // What the share holds: its plan has a size.
    server.data.set_plan("custom capacity=1GiB".parse().unwrap(), SystemTime::now()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    runtime().block_on(server.data.space(&by_smb(0, 0), server.data.root())).unwrap();
    while server.data.limits_status().used.is_none() {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(last_access(&mut client, &dir), EARLY, "it was counted");
}
