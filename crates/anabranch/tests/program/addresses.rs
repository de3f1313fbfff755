//! Several addresses for each protocol, of both families.

use std::process::{Command, Output};

use smb_proto::dialect::Dialect;
use tempfile::TempDir;

use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::raw::Client;
use crate::server::{Server, flags, program};

const ROOT: (u32, u32) = (0, 0);

/// The flags of a server, with one address of each family for each protocol.
fn both(directory: &TempDir) -> Vec<String> {
    let mut flags = flags(directory);
    for flag in ["--smb", "--nfs"] {
        flags.extend([flag.to_owned(), "[::1]:0".to_owned()]);
    }
    flags
}

fn start(directory: &TempDir) -> Server {
    let flags = both(directory);
    Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn clients_of_both_families_are_served() {
    let directory = TempDir::new().unwrap();
    let mut server = start(&directory);
    let addresses = |name: &str| server.address(name).split(',').map(str::to_owned).collect::<Vec<_>>();
    let (smb, nfs) = (addresses("smb"), addresses("nfs"));
    for found in [&smb, &nfs] {
        assert_eq!(found.len(), 2, "{}", server.ready);
        assert!(found[0].starts_with("127.0.0.1:") && found[1].starts_with("[::1]:"), "{}", server.ready);
    }
    for (n, address) in smb.iter().enumerate() {
        let mut client = Client::connect(address.parse().unwrap());
        client.negotiate(&[Dialect::Smb311]);
        client.log_in("anna", "hush-hush").unwrap();
        client.tree_connect("data").unwrap();
        let mut kernel = Nfs::connect(&nfs[n]);
        let top = kernel.mount(ROOT, "/data").unwrap();
        assert_eq!(kernel.mkdir(ROOT, &top, &format!("by {n}")), Status::OK);
    }
    assert!(directory.path().join("data/by 1").exists());
    let port = smb[1].rsplit(':').next().unwrap();
    let mut samba = Command::new("smbclient");
    samba.args(["//::1/data", "-p", port, "-U", "anna%hush-hush", "-c", "mkdir by-samba"]);
    if let Some(ran) = needs::installed("smbclient", samba.output()) {
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(directory.path().join("data/by-samba").exists(), "{said}");
    }
    // The program's own clients carry data over IPv6, too.
    for target in [
        format!("smb://anna:hush-hush@{}/data", smb[1]),
        format!("nfs://{}/data?vers=3", nfs[1]),
        format!("nfs://{}/data?vers=4.1", nfs[1]),
    ] {
        let load = ["--seconds", "0.3", "--ramp", "0.1", "--repetitions", "1", "--file-size", "1M"];
        let arguments = [&["bench", "job", "--target", &target], &load[..]].concat();
        let Output { status, stderr, .. } = program(&arguments).output().unwrap();
        assert!(status.success(), "{target}: {}", String::from_utf8_lossy(&stderr));
    }
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn addresses_that_contradict_each_other_are_refused() {
    let directory = TempDir::new().unwrap();
    let flags = both(&directory);
    let with = |more: &[&str]| {
        let arguments: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let refused = program(&arguments).output().unwrap();
        (refused.status.code(), String::from_utf8(refused.stderr).unwrap())
    };
    let (status, said) = with(&["--smb", "off"]);
    assert!(status == Some(2) && said.contains("both addresses and `off`"), "{said}");
    let (status, said) = with(&["--nfs", "127.0.0.1:2", "--nfs", "127.0.0.1:2"]);
    assert!(status == Some(2) && said.contains("127.0.0.1:2 is given twice"), "{said}");
}
