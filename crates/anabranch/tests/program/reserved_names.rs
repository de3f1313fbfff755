//! ceph-fuse does not tell the name of its snapshot directories: the share is served only if the configuration names it.

use crate::fuse::Fuse;
use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::server::{Server, path, program};

const ROOT: (u32, u32) = (0, 0);

#[test]
fn a_ceph_fuse_without_dot_snap_needs_reserved_names() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("ceph");
    std::fs::create_dir(&at).unwrap();
    let Some(_mounted) = Fuse::mount_as("fuse.ceph-fuse", &at) else {
        return needs::not_tested("there is no FUSE here, or no right to mount");
    };
    let config = path(&directory, "anabranch.toml");
    let configure = |reserved: &str| {
        let any = "127.0.0.1:0";
        let state = path(&directory, "state");
        let text = format!(
            "smb = \"off\"\nnfs = {any:?}\ncontrol = {any:?}\nstate = {state:?}\nnfs-squash = \"none\"\n\
             [[share]]\nname = \"ceph\"\ndirectory = {at:?}\n{reserved}"
        );
        std::fs::write(&config, text).unwrap();
    };
    configure("");
    let refused = program(&["serve", "--config", &config]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains("client_snapdir") && said.contains("reserved-names = [\"NAME\"]"), "{said}");

    // The file of this file system stands for a snapshot directory.
    configure("reserved-names = [\"File\"]\n");
    let mut server = Server::start(&["serve", "--config", &config]);
    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/ceph").unwrap();
    for name in ["file", ".snap", ".SNAP"] {
        assert_eq!(client.lookup(ROOT, &root, name), Err(Status::NOENT), "{name}");
        assert_eq!(client.mkdir(ROOT, &root, name), Status::ACCES, "{name}");
    }
    assert_eq!(server.end_with("TERM"), Some(0));
}
