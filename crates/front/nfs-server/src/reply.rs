//! Encodes a result into its reply.

use net::Buffer;
use nfs_wire::record_mark::Mark;
use nfs_wire::rpc::{AcceptStatus, Call, CallError, Reply, ReplyBody};
use nfs_wire::xdr::{Encode, Reader, Writer};

/// Room for most replies, in bytes.
const REPLY_BYTES: usize = 512;

/// Bytes of the header of a reply to a call that ran (RFC 5531 section 9): xid, REPLY, accepted, AUTH_NONE, success.
pub(crate) const REPLY_HEADER_BYTES: usize = 24;

/// The reply to a call that ran.
pub(crate) fn success(xid: u32, result: &impl Encode) -> Buffer {
    reply(&Reply { xid, body: ReplyBody::accepted(AcceptStatus::Success) }, result)
}

/// A result that is encoded already.
pub(crate) struct Encoded(pub(crate) Vec<u8>);

impl Encode for Encoded {
    fn encode(&self, writer: &mut Writer<'_>) {
        // Without padding: the length of what is encoded is a multiple of four.
        writer.opaque_fixed(&self.0);
    }
}

/// The reply, without a record mark, to a message that should be a call; None: nothing is to be replied.
pub(crate) fn unmarked<'m>(
    message: &'m [u8],
    run: impl FnOnce(Call<'m>, Reader<'m>) -> Result<Vec<u8>, AcceptStatus>,
) -> Option<Vec<u8>> {
    let mut reader = Reader::new(message);
    let call = match Call::decode(&mut reader) {
        Ok(call) => call,
        Err(CallError::Rejected(reply)) => return Some(reply.encode_to_vec()),
        Err(CallError::Unanswerable) => return None,
    };
    let xid = call.xid;
    let (status, result) = match run(call, reader) {
        Ok(result) => (AcceptStatus::Success, result),
        Err(status) => (status, Vec::new()),
    };
    let mut reply = Reply { xid, body: ReplyBody::accepted(status) }.encode_to_vec();
    reply.extend(result);
    Some(reply)
}

/// A reply with its record mark.
pub(crate) fn reply(header: &Reply<'_>, result: &impl Encode) -> Buffer {
    let mut buffer = Buffer::with_capacity(REPLY_BYTES);
    buffer.append_with(|bytes, _| {
        let mut writer = Writer::new(bytes);
        header.encode(&mut writer);
        result.encode(&mut writer);
    });
    mark(buffer)
}

/// Puts the record mark in front of a complete reply.
pub(crate) fn mark(mut reply: Buffer) -> Buffer {
    let mark = Mark::whole_record(reply.len());
    reply.prepend(&mark.to_bytes());
    reply
}
