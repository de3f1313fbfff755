//! Who may use a share, as the program is configured.

use std::fs;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::nfs::{Nfs, Status};
use crate::server::{Server, flags, path, program};

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

#[test]
fn the_log_says_once_what_to_do_where_a_directory_of_root_keeps_users_out() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let log = directory.path().join("log");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut server = Server::start_logging(&flags, fs::File::create(&log).unwrap().into());
    let mut nfs = Nfs::connect(server.address("nfs"));
    let anna = (1000, 1000);
    let top = nfs.mount(anna, "/data").unwrap();
    for name in ["one", "two"] {
        assert_eq!(nfs.mkdir(anna, &top, name), Status::ACCES);
    }
    assert_eq!(server.end_with("TERM"), Some(0));
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("chown 1000 DIRECTORY").count(), 1, "{log}");
}

#[test]
fn an_nfs_client_is_listed_with_the_share_that_it_uses() {
    let directory = TempDir::new().unwrap();
    let server = start(&flags(&directory));
    let mut nfs = Nfs::connect(server.address("nfs"));
    let top = nfs.mount(ROOT, "/data").unwrap();
    assert_eq!(nfs.mkdir(ROOT, &top, "made"), Status::OK);
    let state = path(&directory, "state");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = program(&["client", "list", "--state", &state]).output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        if text.contains("\n127.0.0.1  data    3 ") {
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
