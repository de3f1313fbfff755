//! Two gateways in one process are independent: shares, state, sockets, administration and shutdown.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_gateway::settings::{Settings, ShareSettings};
use anabranch_gateway::{Cause, Gateway, PortmapSockets, Prepared, Sockets};
use control::Administration as _;
use control::shares::NewShare;
use tempfile::TempDir;

mod no_program;

use no_program::NoProgram;

/// How long a reply may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most descriptors of each gateway.
const DESCRIPTORS: u64 = 1000;

fn settings(directory: &Path, name: &str) -> Settings {
    let data = directory.join("data");
    std::fs::create_dir_all(&data).unwrap();
    let shares = vec![ShareSettings::new(name, data)];
    Settings { shares, ..Settings::new(directory.join("state")) }
}

fn sockets() -> Sockets {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    Sockets {
        smb: vec![listen()],
        smb_quic: Vec::new(),
        nfs: vec![listen()],
        control: listen(),
        portmap: PortmapSockets::default(),
    }
}

fn start(directory: &TempDir, name: &str) -> Gateway {
    let prepared = Prepared::new(&settings(directory.path(), name), DESCRIPTORS).unwrap();
    Gateway::start(prepared, sockets(), Arc::new(NoProgram)).unwrap()
}

/// Reads the reply after its length. Both protocols put the length in front; NFS adds a bit that marks the last part.
fn answer(address: SocketAddr, call: &[u8]) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.write_all(call).unwrap();
    let mut length = [0; 4];
    connection.read_exact(&mut length).unwrap();
    let mut answer = vec![0; (u32::from_be_bytes(length) & 0x7fff_ffff) as usize];
    connection.read_exact(&mut answer).unwrap();
    answer
}

/// Whether NULL of NFSv3 is answered (RFC 5531 9, RFC 1813 3.3.0).
fn answers_nfs(address: SocketAddr) -> bool {
    let words: [u32; 11] = [0x8000_0028, 7, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    let accepted: [u32; 6] = [7, 1, 0, 0, 0, 0];
    answer(address, &words.map(u32::to_be_bytes).concat()) == accepted.map(u32::to_be_bytes).concat()
}

/// The ServerGuid in the reply to a NEGOTIATE for 3.1.1 ([MS-SMB2] 2.2.3, 2.2.4).
fn server_guid(address: SocketAddr) -> Vec<u8> {
    let mut request = b"\xfeSMB\x40\0".to_vec(); // the header: its size, and zeros
    request.resize(64, 0);
    request.extend([36, 0, 1, 0, 1, 0, 0, 0, 0x44, 0, 0, 0]); // one dialect; signing; large MTU and encryption
    request.extend([5; 16]); // ClientGuid
    request.extend([104, 0, 0, 0, 1, 0, 0, 0]); // one context, at this offset
    request.extend([0x11, 3, 0, 0]); // the dialect, and padding
    request.extend([1, 0, 38, 0, 0, 0, 0, 0, 1, 0, 32, 0, 1, 0]); // preauthentication integrity by SHA-512, with salt
    request.extend([9; 32]);
    let length = u32::try_from(request.len()).unwrap().to_be_bytes();
    let answer = answer(address, &[&length[..], &request].concat());
    assert_eq!((&answer[..4], &answer[8..12]), (&b"\xfeSMB"[..], &[0; 4][..]), "the status of {answer:x?}");
    answer[64 + 8..64 + 24].to_vec()
}

fn share_names(gateway: &Gateway) -> Vec<String> {
    gateway.administration().shares().unwrap().shares.into_iter().map(|share| share.name).collect()
}

#[test]
fn each_serves_its_own_and_ends_alone() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, other] = [start(&directories[0], "one"), start(&directories[1], "other")];
    let smb = |gateway: &Gateway| gateway.addresses().smb[0];
    let nfs = |gateway: &Gateway| gateway.addresses().nfs[0];
    assert!(answers_nfs(nfs(&one)) && answers_nfs(nfs(&other)));
    let guids = [server_guid(smb(&one)), server_guid(smb(&other))];
    assert_ne!(guids[0], guids[1]);

    // Each gateway has its own state directory, even in one process.
    let refused = Prepared::new(&settings(directories[0].path(), "one"), DESCRIPTORS).unwrap_err();
    assert!(refused.cause == Cause::State && refused.what.contains("in use"), "{refused}");

    // A share created by command exists in one gateway only.
    let more = directories[0].path().join("more");
    std::fs::create_dir(&more).unwrap();
    let new =
        NewShare { name: "more".to_owned(), directory: more.display().to_string(), ..NewShare::default() };
    let made = one.administration().create_share(new).unwrap();
    assert!(made.served);
    assert_eq!(
        (share_names(&one), share_names(&other)),
        (vec!["more".into(), "one".into()], vec!["other".into()])
    );

    // The same holds for a new configuration: the other gateway takes the former name of the first.
    let renamed = settings(directories[0].path(), "renamed");
    Arc::clone(one.administration()).use_settings(&renamed).unwrap();
    assert_eq!(
        (share_names(&one), share_names(&other)),
        (vec!["more".into(), "renamed".into()], vec!["other".into()])
    );

    // One gateway stops, the other continues.
    let gone = nfs(&one);
    let ended = one.stop().unwrap();
    assert!(TcpStream::connect(gone).is_err());
    assert!(answers_nfs(nfs(&other)));
    assert_eq!(server_guid(smb(&other)), guids[1]);

    // The gateway is the same as before when it starts again. It may start when its state directory is free.
    assert!(ended.within(PATIENCE));
    let again = start(&directories[0], "one");
    assert_eq!(server_guid(smb(&again)), guids[0]);
    assert_eq!(share_names(&again), ["more", "one"]);
    for gateway in [again, other] {
        assert!(gateway.stop().unwrap().within(PATIENCE));
    }
}
