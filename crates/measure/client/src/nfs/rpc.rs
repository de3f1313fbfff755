//! Calls under way on one connection: numbers, credentials, record marks (RFC 5531).

use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

use super::gss::Context;
use crate::{Fault, FaultKind, NfsTarget, Result};

/// Calls under way at a time.
const WINDOW: usize = 8192;
/// The bytes of a verifier of AUTH_NONE.
const NO_VERIFIER_BYTES: usize = 8;

/// The calls of a connection. `K` is what is remembered of each.
pub(super) struct Calls<K> {
    next: u32,
    /// No call before this one is under way.
    oldest: u32,
    identity: Identity,
    pending: Vec<Option<Pending<K>>>,
}

/// How calls say who makes them.
#[derive(Debug)]
pub(super) enum Identity {
    /// AUTH_SYS: the encoded credential
    Stated(Vec<u8>),
    /// A security context with Kerberos
    Proved(Box<Context>),
}

impl Identity {
    /// What a target says of its user.
    pub(super) fn stated(target: &NfsTarget) -> Self {
        let credential = AuthSys {
            stamp: 0,
            machine_name: MachineName(b"anabranch-load"),
            uid: target.uid,
            gid: target.gid,
            groups: Groups::default(),
        };
        Self::Stated(credential.encode_to_vec())
    }

    /// How many calls may be under way, counted from the oldest one, if that is limited.
    fn window(&self) -> Option<u32> {
        match self {
            Self::Stated(_) => None,
            Self::Proved(context) => Some(context.window.max(1)),
        }
    }

    /// What calls are signed with, and what they are encrypted with.
    pub(super) fn protection(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::Stated(_) => (None, None),
            Self::Proved(context) => context.protection(),
        }
    }
}

/// A call that is not answered yet.
#[derive(Debug, Clone, Copy)]
struct Pending<K> {
    xid: u32,
    /// Its number in the security context, if there is one
    sequence: u32,
    kept: K,
}

/// Data at the end of a call's arguments, as an opaque.
#[derive(Clone, Copy)]
pub(super) struct Data<'a> {
    pub(super) length: u32,
    /// Writes the data.
    pub(super) fill: &'a dyn Fn(&mut [u8]),
}

impl Data<'_> {
    /// Puts the data behind arguments that end with its length (0 until now).
    fn append(self, out: &mut Vec<u8>) {
        let at = out.len();
        if let Some(room) = at.checked_sub(4).and_then(|from| out.get_mut(from..)) {
            room.copy_from_slice(&self.length.to_be_bytes());
        }
        let length = self.length as usize;
        out.resize(at + length + nfs_wire::xdr::padding(length), 0);
        (self.fill)(out.get_mut(at..at + length).unwrap_or_default());
    }
}

/// The program, version and procedure of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Procedure {
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) number: u32,
}

impl<K: Copy> Calls<K> {
    /// `first` is the number of the first call.
    pub(super) fn new(identity: Identity, first: u32) -> Self {
        Self { next: first, oldest: first, identity, pending: vec![None; WINDOW] }
    }

    /// Who makes the calls.
    pub(super) fn into_identity(self) -> Identity {
        self.identity
    }

    /// Whether a further call has room.
    ///
    /// RFC 2203 5.3.3.1: a server discards, without a reply, a call whose number lies below its window, and servers with
    /// several threads look at calls in any order. So no call is numbered beyond the window of the oldest one under way,
    /// however many behind that one are answered.
    pub(super) fn has_room(&mut self) -> bool {
        while self.oldest != self.next && self.slot(self.oldest).is_none() {
            self.oldest = self.oldest.wrapping_add(1);
        }
        let under_way = self.next.wrapping_sub(self.oldest);
        (under_way as usize) < WINDOW && self.identity.window().is_none_or(|window| under_way < window)
    }

    /// Appends a call whose arguments `arguments` appends, with the data behind them, if any.
    pub(super) fn call(
        &mut self,
        procedure: Procedure,
        kept: K,
        out: &mut Vec<u8>,
        arguments: impl FnOnce(&mut Writer<'_>),
        data: Option<Data<'_>>,
    ) -> Result<()> {
        let xid = self.next;
        self.next = self.next.wrapping_add(1);
        let mark = out.len();
        out.extend_from_slice(&[0; MARK_BYTES]);
        let sequence = self.append_header(xid, procedure, out);
        let begin = out.len();
        if let Identity::Proved(context) = &self.identity {
            context.append_head(sequence, out);
        }
        arguments(&mut Writer::new(out));
        if let Some(data) = data {
            data.append(out);
        }
        if let Identity::Proved(context) = &mut self.identity {
            context.protect(begin, out)?;
        }
        finish(out, mark);
        *self.slot(xid) = Some(Pending { xid, sequence, kept });
        Ok(())
    }

    /// Appends credential and verifier too; returns the call's number in the security context.
    fn append_header(&mut self, xid: u32, procedure: Procedure, out: &mut Vec<u8>) -> u32 {
        let header = out.len();
        let Procedure { program, version, number: procedure } = procedure;
        let call =
            |credential| Call { xid, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
        match &mut self.identity {
            Identity::Stated(body) => {
                call(OpaqueAuth { flavor: flavor::AUTH_SYS, body }).encode(&mut Writer::new(out));
                0
            }
            Identity::Proved(context) => {
                let (sequence, body) = context.credential();
                call(OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: &body }).encode(&mut Writer::new(out));
                out.truncate(out.len() - NO_VERIFIER_BYTES);
                context.append_verifier(header, out);
                sequence
            }
        }
    }

    /// Takes a reply: what was kept of its call, and its results.
    pub(super) fn reply<'m>(&mut self, message: &'m mut [u8]) -> Result<(K, Reader<'m>)> {
        let mut reader = Reader::new(message);
        let reply =
            Reply::decode(&mut reader).map_err(|e| Fault::protocol(format!("a reply that is none: {e}")))?;
        let begin = message.len() - reader.rest().len();
        let unasked = || Fault::protocol(format!("a reply to call {:#x}, which waits for none", reply.xid));
        let slot = self.slot(reply.xid);
        let pending = slot.filter(|pending| pending.xid == reply.xid).ok_or_else(unasked)?;
        *slot = None;
        let results = match reply.body {
            ReplyBody::Accepted { verifier, status: AcceptStatus::Success } => match &self.identity {
                Identity::Stated(_) => begin..message.len(),
                Identity::Proved(context) => {
                    let verifier = verifier.body.to_vec();
                    context.open(pending.sequence, &verifier, message, begin)?
                }
            },
            other => return Err(not_done(other)),
        };
        Ok((pending.kept, Reader::new(message.get(results).unwrap_or_default())))
    }

    fn slot(&mut self, xid: u32) -> &mut Option<Pending<K>> {
        &mut self.pending[xid as usize % WINDOW]
    }
}

/// What a reply without results means.
fn not_done(body: ReplyBody<'_>) -> Fault {
    match body {
        ReplyBody::Accepted { status, .. } => {
            Fault::new(FaultKind::Refused, format!("the server does not do the call: {status:?}"))
        }
        ReplyBody::Denied(why) => {
            Fault::new(FaultKind::WrongPassword, format!("the server does not accept the user: {why:?}"))
        }
    }
}

/// Writes the record mark of the record that began at `mark`.
pub(super) fn finish(out: &mut [u8], mark: usize) {
    let length = out.len() - mark - MARK_BYTES;
    if let Some(room) = out.get_mut(mark..mark + MARK_BYTES) {
        room.copy_from_slice(&Mark::whole_record(length).to_bytes());
    }
}

/// What a failed decoding means.
pub(super) fn garbled(error: impl std::fmt::Display) -> Fault {
    Fault::protocol(format!("results that are none: {error}"))
}
