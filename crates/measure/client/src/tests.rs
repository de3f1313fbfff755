//! Sessions in a world that is made up: what is asked for depends on nothing else.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::*;

/// All that was sent, over whichever connection.
type Sent = Rc<RefCell<Vec<u8>>>;

/// A world whose servers take everything and close the connection when they should answer.
#[derive(Default)]
struct Silent {
    sent: Sent,
    /// What is random here.
    chance: u8,
}

struct Closing(Sent);

impl Wire for Closing {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Err(Fault::of_connection(&std::io::ErrorKind::ConnectionReset.into()))
    }

    fn start_tls(&mut self, _: &str, _: &NfsTls) -> Result<String> {
        Ok(String::new())
    }
}

impl World for Silent {
    type Wire = Closing;

    fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr> {
        assert_eq!(host, "server");
        Ok(([192, 0, 2, 1], port).into())
    }

    fn connect(&self, _: SocketAddr, _: Framing) -> Result<Closing> {
        Ok(Closing(Rc::clone(&self.sent)))
    }

    fn is_reachable(&self, _: SocketAddr) -> bool {
        false
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        buffer.fill(self.chance);
        Ok(())
    }

    fn credential_cache(&self) -> Result<Vec<u8>> {
        Err(Fault::new(FaultKind::ThisMachine, "there is none"))
    }

    fn now(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }
}

/// What an SMB client says first, and what became of it.
fn smb_first(chance: u8) -> (Vec<u8>, FaultKind) {
    let world = Silent { chance, ..Silent::default() };
    let target = SmbTarget {
        logon: SmbLogon::Password { user: "ann".to_owned(), password: "secret".to_owned() },
        host: "server".to_owned(),
        port: 445,
        share: "Data".to_owned(),
    };
    let opened = smb::Session::open(&world, &target, &Security::default(), 1, &[], 1);
    let fault = opened.err().expect("nobody has answered");
    (world.sent.take(), fault.kind)
}

/// The same of an NFS client.
fn nfs_first(v41: bool, chance: u8) -> (Vec<u8>, FaultKind) {
    let world = Silent { chance, ..Silent::default() };
    let target = NfsTarget {
        host: "server".to_owned(),
        port: 2049,
        mount_port: Some(2049),
        path: "/data".to_owned(),
        v41,
        uid: 7,
        gid: 8,
        security: NfsSecurity::Sys,
        tls: None,
    };
    let fault = nfs::Session::open(&world, &target, 1, &[], 1).err().expect("nobody has answered");
    (world.sent.take(), fault.kind)
}

#[test]
fn in_one_world_the_same_is_said() {
    assert_eq!(smb_first(1), smb_first(1));
    assert_ne!(smb_first(1), smb_first(2));
    assert_eq!(nfs_first(true, 1), nfs_first(true, 1));
    assert_ne!(nfs_first(true, 1), nfs_first(true, 2));
    assert_eq!(nfs_first(false, 1), nfs_first(false, 2));
}

#[test]
fn a_server_that_closes_the_connection_is_told_of() {
    for (sent, kind) in [smb_first(0), nfs_first(false, 0), nfs_first(true, 0)] {
        assert!(!sent.is_empty());
        assert_eq!(kind, FaultKind::Closed);
    }
}

#[test]
fn what_is_said_is_whole_messages() {
    let (mut sent, _) = smb_first(0);
    let whole = sent.len();
    let (message, next) = next_message(Framing::Smb, &mut sent).unwrap().unwrap();
    assert_eq!((next, sent.get(message).unwrap().first_chunk()), (whole, Some(b"\xfeSMB")));
    for v41 in [false, true] {
        let (mut sent, _) = nfs_first(v41, 0);
        let whole = sent.len();
        assert_eq!(next_message(Framing::Rpc, &mut sent).unwrap().unwrap().1, whole);
        assert_eq!(next_message(Framing::Rpc, &mut sent[..whole - 1]).unwrap(), None);
    }
}
