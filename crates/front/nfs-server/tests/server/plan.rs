//! What clients see of a share's plan: waiting, sizes, the largest file.

use std::time::{Duration, Instant, SystemTime};

use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{PROGRAM, Procedure, VERSION, fsinfo, fsstat, read};
use nfs_wire::xdr::Decode as _;

use crate::client::{Client, TestServer};

const DEADLINE: Duration = Duration::from_secs(60);

fn plan(server: &TestServer, plan: &str) {
    server.data.set_plan(plan.parse().unwrap(), SystemTime::now()).unwrap();
}

fn waits_until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn size(client: &mut Client, file: FileHandle) -> u64 {
    client.attributes(file).size
}

#[test]
fn what_is_over_budget_waits_and_does_not_fail() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"data");
    plan(&server, "custom iops=40");
    let begun = Instant::now();
    for _ in 0..40 {
        assert_eq!(size(&mut client, file), 4);
    }
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    let counts = server.data.accounting().total("nfs3", "GetAttr");
    assert!(counts.errors == 0 && counts.throttled.iter().sum::<u64>() > 0, "{counts:?}");
    assert!(!counts.limit.time.is_zero() && counts.limit.time <= counts.time, "{counts:?}");
}

#[test]
fn attributes_of_one_client_have_a_limit_of_their_own() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"data");
    plan(&server, "custom client-metadata-iops=40");
    let begun = Instant::now();
    for _ in 0..40 {
        assert_eq!(size(&mut client, file), 4);
        let results = client.raw(Procedure::Read, &read::Args { file, offset: 0, count: 4 });
        assert_eq!(read::Res::from_bytes(&results).unwrap().unwrap().data, b"data");
    }
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    let throttled = |api| server.data.accounting().total("nfs3", api).throttled.iter().sum::<u64>();
    assert!(throttled("GetAttr") > 0 && throttled("Read") == 0);
}

#[test]
fn a_client_that_goes_away_frees_its_place() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &[1; 65_536]);
    plan(&server, "custom read=1KiB/s");
    let whole = read::Args { file, offset: 0, count: 65_536 };
    client.raw(Procedure::Read, &whole);
    for _ in 0..3 {
        client.send((PROGRAM, VERSION, Procedure::Read as u32), &whole);
    }
    waits_until("three wait", || server.data.limits_status().waiting == 3);
    drop(client);
    waits_until("nobody waits", || server.data.limits_status().waiting == 0);
}

#[test]
fn the_size_of_the_share_is_told_and_held() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    plan(&server, "custom capacity=1MiB");
    // This begins the count. A file that is written meanwhile might be counted twice for a moment.
    let _: fsstat::Res = client.nfs(Procedure::FsStat, &fsstat::Args { root });
    waits_until("what is used is counted", || server.data.limits_status().used == Some(0));
    let file = client.make_file(root, "file", 0o600, &[1; 600 * 1024]);
    let told: fsstat::Res = client.nfs(Procedure::FsStat, &fsstat::Args { root });
    let told = told.unwrap();
    assert_eq!((told.total_bytes, told.available_bytes), (1 << 20, (1 << 20) - 600 * 1024));
    let refused = client.write(file, 600 * 1024, &[2; 424 * 1024 + 1]).unwrap_err();
    assert_eq!(
        (refused.status, size(&mut client, file)),
        (Status::NoSpc, 600 * 1024),
        "nothing of it is written"
    );
    client.write(file, 600 * 1024, &[2; 424 * 1024]).unwrap();
    assert_eq!(client.write(file, 1 << 20, &[3; 1]).unwrap_err().status, Status::NoSpc);
    client.write(file, 0, &[4; 1000]).unwrap();
}

#[test]
fn the_largest_file_is_as_large_as_the_plan_says() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    plan(&server, "custom file-size=64KiB");
    let told: fsinfo::Res = client.nfs(Procedure::FsInfo, &fsinfo::Args { root });
    assert_eq!(told.unwrap().file_bytes_max, 65_536);
    let file = client.make_file(root, "file", 0o600, &[1; 1000]);
    // RFC 1813 2.6, NFS3ERR_FBIG: "The operation would have caused a file to grow beyond the server's limit."
    assert_eq!(client.write(file, 65_535, b"ab").unwrap_err().status, Status::FBig);
    assert_eq!(size(&mut client, file), 1000, "nothing of it is written");
    client.write(file, 65_535, b"a").unwrap();
    assert_eq!(size(&mut client, file), 65_536);
}
