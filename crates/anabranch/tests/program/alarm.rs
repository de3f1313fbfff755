//! A storage that fills up, or takes no changes any more, while it is served: everybody who looks is told, and the log once.

use std::path::Path;
use std::process::Command;

use crate::asked::{OK, ask, health, until, until_health};
use crate::logged::logged;
use crate::needs;
use crate::nfs::{NFS, Nfs, Status, opaque, words};
use crate::server::{Server, flags, path, program};

const ROOT: (u32, u32) = (0, 0);
/// NFS3ERR_NOSPC
const NOSPC: u32 = 28;
const ROFS: Status = Status(30);

/// A file system of a mebibyte in memory, mounted as long as this lives.
struct Small<'a>(&'a Path);

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

impl<'a> Small<'a> {
    /// None for who may not mount.
    fn mount(at: &'a Path) -> Option<Self> {
        mount(at, "size=1m").then(|| Self(at))
    }

    /// A server that has a file open for writing a moment longer is in the way of `ro`.
    fn remount(&self, options: &str) {
        until(options, || mount(self.0, &format!("remount,{options}")));
    }
}

fn mount(at: &Path, options: &str) -> bool {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "test"]).arg(at).output();
    mounted.is_ok_and(|output| output.status.success())
}

/// An unstable WRITE (RFC 1813 3.3.7); its status.
fn write_64_kib(client: &mut Nfs, file: &[u8], offset: u32) -> u32 {
    let arguments = [opaque(file), words(&[0, offset, 1 << 16, 0]), opaque(&[1; 1 << 16])].concat();
    u32::from_be_bytes(client.call(NFS, 7, ROOT, &arguments)[..4].try_into().unwrap())
}

/// Whether the metrics say that something is wrong, or not.
fn metric(server: &Server, kind: &str) -> String {
    let name = format!("anabranch_share_alarm{{share=\"small\",kind=\"{kind}\"}} ");
    let metrics = ask(server, "/metrics");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_default().to_owned()
}

fn list(state: &str) -> String {
    let output = program(&["share", "list", "--state", state]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    listed.lines().find(|line| line.starts_with("small ")).unwrap().to_owned()
}

fn until_it_is_well(server: &Server) {
    until_health(server, |said| said.ends_with(OK));
}

#[test]
fn a_storage_that_fills_up_or_turns_read_only_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("small");
    std::fs::create_dir(&at).unwrap();
    let Some(small) = Small::mount(&at) else {
        return needs::not_tested("no right to mount");
    };
    let mut arguments = flags(&directory);
    arguments.extend(["--share".to_owned(), format!("small={}", path(&directory, "small"))]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let log = directory.path().join("log");
    let server = Server::start_logging(&arguments, std::fs::File::create(&log).unwrap().into());
    assert!(health(&server).ends_with(OK));
    assert_eq!((metric(&server, "full").as_str(), metric(&server, "read-only").as_str()), ("0", "0"));

    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/small").unwrap();
    std::fs::write(at.join("most"), vec![1; 900 << 10]).unwrap();
    std::fs::write(at.join("more"), b"").unwrap();
    let more = client.lookup(ROOT, &root, "more").unwrap();
    let statuses: Vec<u32> = (0..8).map(|n| write_64_kib(&mut client, &more, n << 16)).collect();
    assert!(statuses.contains(&NOSPC) && statuses.iter().all(|s| [0, NOSPC].contains(s)), "{statuses:?}");
    let said = health(&server);
    assert!(said.starts_with("HTTP/1.0 200 "), "{said}");
    assert!(said.ends_with("\r\n\r\ndegraded\nshare small: its storage is full\n"), "{said}");
    assert_eq!(metric(&server, "full"), "1");
    assert!(list(&path(&directory, "state")).contains("served, full"));
    std::fs::remove_file(at.join("most")).unwrap();
    until_it_is_well(&server);

    small.remount("ro");
    assert_eq!(client.mkdir(ROOT, &root, "other"), ROFS);
    assert!(health(&server).ends_with("degraded\nshare small: its storage is read-only\n"));
    assert_eq!(metric(&server, "read-only"), "1");
    assert!(list(&path(&directory, "state")).contains("served, read-only"));
    small.remount("rw");
    until_it_is_well(&server);
    assert!(!list(&path(&directory, "state")).contains("served, "));
    let said = logged(&log, "the storage has become read-only");
    for once in ["the storage is full", "the storage is no longer full", "the storage has become read-only"] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
}

#[test]
fn a_directory_that_is_renamed_or_replaced_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("small");
    std::fs::create_dir(&at).unwrap();
    let mut arguments = flags(&directory);
    arguments.extend(["--share".to_owned(), format!("small={}", path(&directory, "small"))]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let log = directory.path().join("log");
    let server = Server::start_logging(&arguments, std::fs::File::create(&log).unwrap().into());
    until_it_is_well(&server);
    let elsewhere = directory.path().join("elsewhere");
    std::fs::rename(&at, &elsewhere).unwrap();
    std::fs::create_dir(&at).unwrap();
    until("it was replaced", || metric(&server, "moved") == "1");
    assert!(health(&server).ends_with("share small: its directory was renamed or replaced\n"));
    assert!(list(&path(&directory, "state")).contains("served, moved"));
    std::fs::remove_dir(&at).unwrap();
    std::fs::rename(&elsewhere, &at).unwrap();
    until_it_is_well(&server);
    let said = logged(&log, "is in its place again");
    for once in ["was renamed or replaced", "is in its place again"] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
}
