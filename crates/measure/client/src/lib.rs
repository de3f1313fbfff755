//! Clients of SMB 3.1.1, NFSv3 and NFSv4.1: requests to bytes, and bytes to what became of them.
//!
//! A [`World`] gives connections, names, chance and time. [`smb::Session::open`] and [`nfs::Session::open`] make a session with
//! all of its connections in it, and give each connection with its [`Client`]. From then on a client only turns a
//! [`Request`] into bytes and a message ([`next_message`]) into an [`Outcome`], so one loop can drive as many as it likes.
//!
//! It will never know a socket, a thread, a clock or a file: in one world the same requests are always the same bytes. Nor
//! will it know what it is used for.

#![warn(missing_docs)]

mod fault;
mod negotiated;
pub mod nfs;
mod security;
pub mod smb;
mod target;
mod ticket;
mod world;

pub use smb_proto::dialect::{Cipher, SigningAlgorithm};

pub use fault::{Fault, FaultKind, Result};
pub use negotiated::{Negotiated, ServerInterface};
pub use security::Security;
pub use target::{NfsSecurity, NfsTarget, NfsTls, SmbLogon, SmbTarget};
pub use world::{Wire, World};

use nfs_wire::v3::types::FileHandle;
use nfs_wire::v4::types::Stateid;
use smb_wire::FileId;

/// Something that a server has and that a client names in requests.
#[derive(Debug, Clone)]
pub enum Handle {
    /// An open of SMB.
    Open(FileId),
    /// A directory of a share: its path.
    Path(String),
    /// A file or directory of NFSv3.
    Nfs3(FileHandle),
    /// A file or directory of NFSv4, and the stateid under which a file is open.
    Nfs4(Vec<u8>, Option<Stateid>),
}

/// What a client asks for. Files and directories are named by their place in the lists that [`Client::adopt`] was given;
/// directory 0 is the root of the target.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// Makes a directory.
    MakeDirectory {
        /// The directory that it is made in.
        parent: usize,
        /// Its name there.
        name: &'a str,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// The directory that it is in.
        parent: usize,
        /// Its name there.
        name: &'a str,
    },
    /// Opens or makes a file: the tag's own open, and the handle in the outcome.
    Open {
        /// The directory that it is in.
        directory: usize,
        /// Its name there.
        name: &'a str,
        /// The file is made, and may not be there before.
        make: bool,
    },
    /// Ends an open: that of a file, or the tag's own.
    Close {
        /// The file; `None` stands for the tag's own open.
        file: Option<usize>,
    },
    /// The attributes behind the tag's own open.
    Stat,
    /// The names in a directory, as many as one answer holds.
    List {
        /// The directory.
        directory: usize,
    },
    /// Removes a file.
    Delete {
        /// The directory that it is in.
        directory: usize,
        /// Its name there.
        name: &'a str,
    },
    /// Reads a piece of a file.
    Read {
        /// The file.
        file: usize,
        /// Where the piece begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u32,
    },
    /// Writes a piece of a file.
    Write {
        /// The file.
        file: usize,
        /// Where the piece begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u32,
        /// Writes the data to where it is sent from.
        fill: &'a dyn Fn(&mut [u8]),
    },
    /// The smallest request that there is.
    Nothing,
    /// Ends the session: nothing follows. The connection's end is enough for those that have no such request.
    Leave,
}

/// Whether a request went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is in the buffer.
    Yes,
    /// The server lets no further request in for now (credits, slots).
    NotNow,
    /// This protocol has no such request: it is done without one.
    NotNeeded,
}

/// What became of a request.
#[derive(Debug)]
pub enum Outcome<'f> {
    /// Data that was read.
    Data(&'f [u8]),
    /// It was opened or made.
    Handle(Handle),
    /// It was done.
    Done,
    /// So many bytes were written.
    Written(u32),
    /// Send it again a little later.
    Later,
    /// The server has refused.
    Refused(Fault),
}

/// How a connection cuts its bytes into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Direct TCP of SMB.
    Smb,
    /// Record marking of RPC.
    Rpc,
}

/// The client's side of one connection. A tag is the number of an operation under way, below the limit of `tags`.
pub trait Client: Send {
    /// How its messages are cut.
    fn framing(&self) -> Framing;

    /// Learns what directories and files there are.
    fn adopt(&mut self, directories: &[Handle], files: &[Handle]);

    /// Appends a request to `out`.
    ///
    /// # Errors
    /// It cannot be put into bytes.
    fn submit(&mut self, tag: usize, request: &Request<'_>, out: &mut Vec<u8>) -> Result<Sent>;

    /// Takes one message. `done` is told of each operation that it ends.
    ///
    /// # Errors
    /// The message is none that this client can have been sent: the connection is of no more use.
    fn receive(&mut self, message: &mut [u8], done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()>;
}

/// Where the next message lies in what was received: its range, and where the one after it begins. `None` while it is
/// incomplete.
///
/// # Errors
/// What was received is no message, or a longer one than there can be.
pub fn next_message(
    framing: Framing,
    received: &mut [u8],
) -> Result<Option<(std::ops::Range<usize>, usize)>> {
    use nfs_wire::record_mark::{Scan, reassemble, scan};
    const RECORD_BYTES_MAX: usize = 64 << 20;
    match framing {
        Framing::Smb => {
            let Some(prefix) = received.first_chunk::<4>() else { return Ok(None) };
            let length =
                smb_wire::frame::decode_prefix(*prefix).map_err(|e| Fault::protocol(e.to_string()))?;
            let end = 4 + length;
            Ok((end <= received.len()).then_some((4..end, end)))
        }
        Framing::Rpc => match scan(received, RECORD_BYTES_MAX).map_err(|e| Fault::protocol(e.to_string()))? {
            Scan::Incomplete { .. } => Ok(None),
            Scan::Whole { message } => Ok(Some((message.clone(), message.end))),
            Scan::Fragmented { consumed, length } => {
                let whole = reassemble(received.get(..consumed).unwrap_or_default());
                if let Some(room) = received.get_mut(..length) {
                    room.copy_from_slice(&whole);
                }
                Ok(Some((0..length, consumed)))
            }
        },
    }
}

#[cfg(test)]
mod tests;
