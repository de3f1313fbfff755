//! What clients see of quotas.

use std::time::{Duration, Instant};

use nfs_wire::v3::status::Status;
use nfs_wire::v3::{Procedure, fsstat};

use crate::client::TestServer;

#[test]
fn a_full_quota_is_told_and_held() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &[1; 4096]);
    let owner = client.attributes(file).uid;
    server.data.set_quota_rules(vec![format!("{owner} hard=12KiB").parse().unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while runtime.block_on(server.data.quota_status()).unwrap().unwrap().counted.is_none() {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(2));
    }
    let told: fsstat::Res = client.nfs(Procedure::FsStat, &fsstat::Args { root });
    let told = told.unwrap();
    assert_eq!((told.total_bytes, told.available_bytes), (3 * 4096, 2 * 4096));
    let refused = client.write(file, 4096, &[2; 2 * 4096 + 1]).unwrap_err();
    assert_eq!(refused.status, Status::DQuot);
    client.write(file, 4096, &[2; 2 * 4096]).unwrap();
    client.write(file, 0, &[3; 3 * 4096]).unwrap();
    assert_eq!(client.write(file, 3 * 4096, &[4]).unwrap_err().status, Status::DQuot);
}
