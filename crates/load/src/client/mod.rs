//! Clients of one connection each: values to bytes and back. They have no sockets and no clock, so that one loop drives
//! all of them ([`crate::engine`]). Sessions are made over what the [`world::World`] gives.

pub(crate) mod fault;
pub(crate) mod negotiated;
pub(crate) mod nfs;
pub(crate) mod smb;
pub(crate) mod world;

use nfs_wire::v3::types::FileHandle;
use nfs_wire::v4::types::Stateid;
use smb_wire::FileId;

use crate::client::fault::{Fault, Result};

/// Something that a server has and that a client names in requests.
#[derive(Debug, Clone)]
pub(crate) enum Handle {
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
pub(crate) enum Request<'a> {
    MakeDirectory {
        parent: usize,
        name: &'a str,
    },
    RemoveDirectory {
        parent: usize,
        name: &'a str,
    },
    /// Opens or makes a file: the tag's own open, and the handle in the outcome.
    Open {
        directory: usize,
        name: &'a str,
        make: bool,
    },
    /// Ends an open: that of a file, or the tag's own.
    Close {
        file: Option<usize>,
    },
    /// The attributes behind the tag's own open.
    Stat,
    List {
        directory: usize,
    },
    Delete {
        directory: usize,
        name: &'a str,
    },
    Read {
        file: usize,
        offset: u64,
        length: u32,
    },
    /// `fill` writes the data to where it is sent from.
    Write {
        file: usize,
        offset: u64,
        length: u32,
        fill: &'a dyn Fn(&mut [u8]),
    },
    /// The smallest request that there is.
    Nothing,
    /// Ends the session: nothing follows. The connection's end is enough for those that have no such request.
    Leave,
}

/// Whether a request went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the buffer.
    Yes,
    /// The server lets no further request in for now (credits, slots).
    NotNow,
    /// This protocol has no such request: it is done without one.
    NotNeeded,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome<'f> {
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
pub(crate) enum Framing {
    /// Direct TCP of SMB.
    Smb,
    /// Record marking of RPC.
    Rpc,
}

/// The client's side of one connection. A tag is the number of an operation under way, below the limit of `tags`.
pub(crate) trait Client: Send {
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
pub(crate) fn next_message(
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
