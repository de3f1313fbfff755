//! Calls under way on one connection: numbers, credentials, record marks (RFC 5531).

use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

use crate::{Fault, FaultKind, Result};

/// Calls under way at a time.
const WINDOW: usize = 8192;

/// The calls of a connection. `K` is what is remembered of each.
pub(super) struct Calls<K> {
    next: u32,
    credential: Vec<u8>,
    pending: Vec<Option<(u32, K)>>,
}

/// The program, version and procedure of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Procedure {
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) number: u32,
}

impl<K: Copy> Calls<K> {
    /// A client that says it is this user. `first` is the number of its first call.
    pub(super) fn new(uid: u32, gid: u32, first: u32) -> Self {
        let credential = AuthSys {
            stamp: 0,
            machine_name: MachineName(b"anabranch-load"),
            uid,
            gid,
            groups: Groups::default(),
        };
        Self { next: first, credential: credential.encode_to_vec(), pending: vec![None; WINDOW] }
    }

    /// Whether a further call has room.
    pub(super) fn has_room(&mut self) -> bool {
        let next = self.next;
        self.slot(next).is_none()
    }

    /// Appends a call whose arguments `body` appends.
    pub(super) fn call(
        &mut self,
        procedure: Procedure,
        kept: K,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Writer<'_>),
    ) {
        let xid = self.next;
        self.next = self.next.wrapping_add(1);
        *self.slot(xid) = Some((xid, kept));
        let mark = out.len();
        out.extend_from_slice(&[0; MARK_BYTES]);
        let call = Call {
            xid,
            program: procedure.program,
            version: procedure.version,
            procedure: procedure.number,
            credential: OpaqueAuth { flavor: flavor::AUTH_SYS, body: &self.credential },
            verifier: OpaqueAuth::NONE,
        };
        let mut writer = Writer::new(out);
        call.encode(&mut writer);
        body(&mut writer);
        finish(out, mark);
    }

    /// Takes a reply: what was kept of its call, and its results.
    pub(super) fn reply<'m>(&mut self, message: &'m [u8]) -> Result<(K, Reader<'m>)> {
        let mut reader = Reader::new(message);
        let reply =
            Reply::decode(&mut reader).map_err(|e| Fault::protocol(format!("a reply that is none: {e}")))?;
        let unasked = || Fault::protocol(format!("a reply to call {:#x}, which waits for none", reply.xid));
        let slot = self.slot(reply.xid);
        let (_, kept) = slot.filter(|(xid, _)| *xid == reply.xid).ok_or_else(unasked)?;
        *slot = None;
        match reply.body {
            ReplyBody::Accepted { status: AcceptStatus::Success, .. } => Ok((kept, reader)),
            ReplyBody::Accepted { status, .. } => {
                Err(Fault::new(FaultKind::Refused, format!("the server does not do the call: {status:?}")))
            }
            ReplyBody::Denied(why) => Err(Fault::new(
                FaultKind::WrongPassword,
                format!("the server does not accept the user: {why:?}"),
            )),
        }
    }

    fn slot(&mut self, xid: u32) -> &mut Option<(u32, K)> {
        &mut self.pending[xid as usize % WINDOW]
    }
}

/// Writes the record mark of the record that began at `mark`.
pub(super) fn finish(out: &mut [u8], mark: usize) {
    let length = out.len() - mark - MARK_BYTES;
    if let Some(room) = out.get_mut(mark..mark + MARK_BYTES) {
        room.copy_from_slice(&Mark::whole_record(length).to_bytes());
    }
}

/// Puts `length` bytes of data, which `fill` writes, behind a record that ends with their length (0 until now).
pub(super) fn append_data(out: &mut Vec<u8>, mark: usize, length: u32, fill: &dyn Fn(&mut [u8])) {
    let at = out.len();
    if let Some(room) = at.checked_sub(4).and_then(|from| out.get_mut(from..)) {
        room.copy_from_slice(&length.to_be_bytes());
    }
    let length = length as usize;
    out.resize(at + length + nfs_wire::xdr::padding(length), 0);
    fill(out.get_mut(at..at + length).unwrap_or_default());
    finish(out, mark);
}

/// What a failed decoding means.
pub(super) fn garbled(error: impl std::fmt::Display) -> Fault {
    Fault::protocol(format!("results that are none: {error}"))
}
