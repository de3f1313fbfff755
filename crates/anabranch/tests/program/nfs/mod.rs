//! The least of an NFSv3 client: what a test asks about who may use a share.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The status of an NFSv3 or MOUNT reply. RFC 1813 2.6 and appendix I: what both have has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const NOENT: Self = Self(2);
    pub(crate) const ACCES: Self = Self(13);
    pub(crate) const ROFS: Self = Self(30);
}

const MOUNT: u32 = 100_005;
pub(crate) const NFS: u32 = 100_003;

/// A connection. A user is a uid and a gid.
pub(crate) struct Nfs(TcpStream);

impl Nfs {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(stream)
    }

    /// The results of a call that ran, from their status on.
    pub(crate) fn call(
        &mut self,
        program: u32,
        procedure: u32,
        (uid, gid): (u32, u32),
        arguments: &[u8],
    ) -> Vec<u8> {
        // RFC 5531 section 9 and appendix A: AUTH_SYS of a machine without a name, no further groups.
        let words = [7, 0, 2, program, 3, procedure, 1, 20, 0, 0, uid, gid, 0, 0, 0];
        let mut call = self::words(&words);
        call.extend_from_slice(arguments);
        let mark = 0x8000_0000 | u32::try_from(call.len()).unwrap();
        self.0.write_all(&[&mark.to_be_bytes()[..], &call].concat()).unwrap();
        let mut mark = [0; 4];
        self.0.read_exact(&mut mark).unwrap();
        let mut reply = vec![0; usize::try_from(u32::from_be_bytes(mark) & 0x7fff_ffff).unwrap()];
        self.0.read_exact(&mut reply).unwrap();
        // xid, REPLY, accepted, AUTH_NONE, success
        assert_eq!(reply[4..24], [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat(), "the call did not run");
        reply.split_off(24)
    }

    /// The filehandle of a path.
    pub(crate) fn mount(&mut self, who: (u32, u32), path: &str) -> Result<Vec<u8>, Status> {
        file_handle(&self.call(MOUNT, 1, who, &opaque(path.as_bytes())))
    }

    /// LOOKUP: the filehandle of a name (RFC 1813 3.3.3).
    pub(crate) fn lookup(
        &mut self,
        who: (u32, u32),
        directory: &[u8],
        name: &str,
    ) -> Result<Vec<u8>, Status> {
        let arguments = [opaque(directory), opaque(name.as_bytes())].concat();
        file_handle(&self.call(NFS, 3, who, &arguments))
    }

    /// GETATTR.
    pub(crate) fn look(&mut self, who: (u32, u32), object: &[u8]) -> Status {
        status(&self.call(NFS, 1, who, &opaque(object)))
    }

    /// MKDIR without a mode.
    pub(crate) fn mkdir(&mut self, who: (u32, u32), directory: &[u8], name: &str) -> Status {
        let arguments = [opaque(directory), opaque(name.as_bytes()), vec![0; 24]].concat();
        status(&self.call(NFS, 9, who, &arguments))
    }
}

/// What MNT and LOOKUP return, as far as the filehandle.
fn file_handle(results: &[u8]) -> Result<Vec<u8>, Status> {
    match status(results) {
        Status::OK => {
            let length = usize::try_from(word(results, 4)).unwrap();
            Ok(results[8..8 + length].to_vec())
        }
        refused => Err(refused),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn status(results: &[u8]) -> Status {
    Status(word(results, 0))
}

/// RFC 4506 4.2
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// RFC 4506 4.10
pub(crate) fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut coded = [&words(&[u32::try_from(bytes.len()).unwrap()]), bytes].concat();
    coded.resize(coded.len().next_multiple_of(4), 0);
    coded
}
