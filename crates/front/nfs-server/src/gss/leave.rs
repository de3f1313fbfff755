//! Replies are protected: RFC 2203 5.3.3.2. The reply is finished by then, and stays where it is in its buffer.

use net::Buffer;
use nfs_wire::gss::{Numbered, Service};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::flavor;
use nfs_wire::xdr::padding;

use super::Protected;
use crate::reply::REPLY_HEADER_BYTES;
use krb5::{Mic, PerMessage};

/// Bytes in front of the results of an unprotected reply.
const PLAIN_FRONT_BYTES: usize = MARK_BYTES + REPLY_HEADER_BYTES;
/// The most bytes of a verifier: a head, and the longest checksum.
const VERIFIER_BYTES_MAX: usize = 16 + 24;
/// The most bytes that protecting a reply adds in front of it and behind it.
pub(crate) const OVERHEAD_BYTES_MAX: usize =
    VERIFIER_BYTES_MAX + 4 + PerMessage::SEALED_HEAD + Numbered::HEAD_BYTES + 4 + VERIFIER_BYTES_MAX + 16;

impl Protected {
    /// Protects a finished reply.
    pub(crate) fn close(&self, mut reply: Buffer) -> Buffer {
        // xid, REPLY, MSG_ACCEPTED or MSG_DENIED, the verifier (none), and how the call was accepted
        let head = reply.get(MARK_BYTES..PLAIN_FRONT_BYTES).and_then(|head| head.first_chunk::<24>());
        let Some(head) = head.copied() else { return reply };
        let [_, _, _, _, _, _, _, _, denied @ ..] = head;
        // A reply that denies the call has no verifier.
        if denied[..4] != [0; 4] {
            return reply;
        }
        reply.cut_front(PLAIN_FRONT_BYTES);
        let is_success = head.ends_with(&[0; 4]);
        match self.service {
            Service::Integrity if is_success => self.sign(&mut reply),
            Service::Privacy if is_success => self.seal(&mut reply),
            Service::None | Service::Integrity | Service::Privacy => {}
        }
        self.put_head(&mut reply, &head);
        reply
    }

    /// Puts the header in front of a protected body, with the checksum of the call's number as its verifier.
    fn put_head(&self, reply: &mut Buffer, plain: &[u8; REPLY_HEADER_BYTES]) {
        let mic = self.mic(&[&self.sequence.to_be_bytes()]);
        let mic = mic.as_ref();
        let [front @ .., a, b, c, d] = plain;
        reply.prepend(&[*a, *b, *c, *d]);
        reply.prepend(&[0; 3][..padding(mic.len())]);
        reply.prepend(mic);
        reply.prepend(&length(mic.len()));
        reply.prepend(&flavor::RPCSEC_GSS.to_be_bytes());
        reply.prepend(&front[..12]);
        let mark = Mark::whole_record(reply.len());
        reply.prepend(&mark.to_bytes());
    }

    /// 5.3.2.2: the number and the results, and their checksum.
    fn sign(&self, reply: &mut Buffer) {
        reply.prepend(&self.sequence.to_be_bytes());
        let (mic, body) = (self.mic(&[&**reply]), reply.len());
        let mic = mic.as_ref();
        reply.prepend(&length(body));
        reply.append(&[0; 3][..padding(body)]);
        reply.append(&length(mic.len()));
        reply.append(mic);
        reply.append(&[0; 3][..padding(mic.len())]);
    }

    /// 5.3.2.3: the number and the results, in a token.
    fn seal(&self, reply: &mut Buffer) {
        let keys = &self.context.keys;
        reply.prepend(&self.sequence.to_be_bytes());
        reply.prepend(&[0; PerMessage::SEALED_HEAD]);
        reply.append(&[0; 64][..keys.sealed_tail()]);
        let confounder = super::random();
        // The buffer has the room that a sealed message needs, so this cannot fail.
        let sealed = keys.seal(self.context.next_token(), &confounder, reply);
        debug_assert!(sealed.is_ok(), "a buffer with a head and a tail can be sealed");
        if sealed.is_err() {
            reply.truncate(0);
        }
        let token = reply.len();
        reply.prepend(&length(token));
        reply.append(&[0; 3][..padding(token)]);
    }

    fn mic(&self, message: &[&[u8]]) -> Mic {
        self.context.keys.mic(self.context.next_token(), message)
    }
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
