//! Who may use a share, as the program is configured.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use tempfile::TempDir;

mod nfs;
mod server;

use nfs::{Nfs, Status};
use server::{Server, flags};

const ROOT: (u32, u32) = (0, 0);

fn start(flags: &[String]) -> Server {
    Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn root_of_an_nfs_client_is_nobody_unless_the_server_is_told_otherwise() {
    let directory = TempDir::new().unwrap();
    let mut flags = flags(&directory);
    let of_root = |flags: &[String]| {
        let mut server = start(flags);
        let mut nfs = Nfs::connect(server.address("nfs"));
        let top = nfs.mount(ROOT, "/data").unwrap();
        let status = nfs.mkdir(ROOT, &top, "made");
        assert_eq!(server.end_with("TERM"), Some(0));
        status
    };
    let squash = flags.iter().position(|flag| flag == "--nfs-squash").unwrap();
    let told: Vec<String> = flags.drain(squash..squash + 2).collect();
    assert_eq!(of_root(&flags), Status::ACCES);
    flags.extend(told);
    assert_eq!(of_root(&flags), Status::OK);
}
