//! A directory that a local program moves out of a share is no way out of it.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::nfs::{Nfs, Status};
use crate::server::{Server, flags, path};

const ROOT: (u32, u32) = (0, 0);
const STALE: Status = Status(70);

/// What a call is refused with once it is; it may go well for a second.
fn refused(mut call: impl FnMut(usize) -> Status) -> Status {
    let deadline = Instant::now() + Duration::from_secs(60);
    for turn in 0.. {
        match call(turn) {
            Status::OK => assert!(Instant::now() < deadline, "it is not refused"),
            refused => return refused,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    unreachable!()
}

#[test]
fn nothing_is_made_in_a_directory_that_was_moved_out() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::create_dir_all(path(&directory, "data/d/e")).unwrap();
    let mut nfs = Nfs::connect(server.address("nfs"));
    let top = nfs.mount(ROOT, "/data").unwrap();
    let d = nfs.lookup(ROOT, &top, "d").unwrap();
    let e = nfs.lookup(ROOT, &d, "e").unwrap();
    for dir in [&d, &e] {
        assert_eq!(nfs.mkdir(ROOT, dir, "before"), Status::OK);
    }
    std::fs::rename(path(&directory, "data/d"), path(&directory, "outside")).unwrap();
    for dir in [&e, &d] {
        assert_eq!(refused(|turn| nfs.mkdir(ROOT, dir, &format!("after{turn}"))), STALE);
        assert_eq!(nfs.mkdir(ROOT, dir, "later"), STALE);
        assert_eq!(nfs.lookup(ROOT, dir, "before"), Err(STALE));
    }
    assert!(!std::path::Path::new(&path(&directory, "outside/later")).exists());
    std::fs::rename(path(&directory, "outside"), path(&directory, "data/again")).unwrap();
    assert_eq!(nfs.mkdir(ROOT, &d, "back"), Status::OK, "it is below the root again");
}
