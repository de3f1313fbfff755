//! Message signatures with extended session security: here they protect the SPNEGO mechanism list.
//! [MS-NLMP] 2.2.2.9.1, 3.4.4.2, 3.4.5.2, 3.4.5.3.

use md5::{Digest, Md5};
use rc4::{Rc4, StreamCipher};

use super::crypto::{hmac_md5, rc4, verify_hmac_md5};
use super::message::NegotiateFlags;

/// The sender of the messages that a signer handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From client to server
    Client,
    /// From server to client
    Server,
}

const VERSION: [u8; 4] = [1, 0, 0, 0];

/// Signs, or checks, the messages of one side in order.
pub struct MessageSigner {
    signing_key: [u8; 16],
    sealing: Option<Box<Rc4>>,
    sequence: u32,
}

impl MessageSigner {
    /// The signer for the messages of one side, or `None` without extended session security: the older signatures are
    /// not implemented.
    pub fn new(session_key: &[u8; 16], flags: NegotiateFlags, side: Side) -> Option<Self> {
        if !flags.contains(NegotiateFlags::EXTENDED_SESSION_SECURITY) {
            return None;
        }
        let (signing_magic, sealing_magic) = match side {
            Side::Client => (
                &b"session key to client-to-server signing key magic constant\0"[..],
                &b"session key to client-to-server sealing key magic constant\0"[..],
            ),
            Side::Server => (
                &b"session key to server-to-client signing key magic constant\0"[..],
                &b"session key to server-to-client sealing key magic constant\0"[..],
            ),
        };
        // [MS-NLMP] 3.4.5.3: the sealing key is weakened unless 128 bits are negotiated
        let strength = if flags.contains(NegotiateFlags::BITS_128) {
            16
        } else if flags.contains(NegotiateFlags::BITS_56) {
            7
        } else {
            5
        };
        let weakened = session_key.get(..strength).unwrap_or(session_key);
        let sealing =
            flags.contains(NegotiateFlags::KEY_EXCH).then(|| Box::new(rc4(&md5(&[weakened, sealing_magic]))));
        Some(Self { signing_key: md5(&[session_key, signing_magic]), sealing, sequence: 0 })
    }

    /// The signature of the next message.
    pub fn sign(&mut self, message: &[u8]) -> [u8; 16] {
        let sequence = self.sequence.to_le_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        let [a, b, c, d, e, f, g, h, ..] = hmac_md5(&self.signing_key, &[&sequence, message]);
        let mut checksum = [a, b, c, d, e, f, g, h];
        if let Some(sealing) = &mut self.sealing {
            sealing.apply_keystream(&mut checksum);
        }
        let mut signature = [0; 16];
        for (byte, value) in signature.iter_mut().zip(VERSION.into_iter().chain(checksum).chain(sequence)) {
            *byte = value;
        }
        signature
    }

    /// Encrypts with the stream that encrypts checksums, as sealing would.
    #[cfg(test)]
    pub(super) fn encrypt(&mut self, data: &mut [u8]) {
        self.sealing.as_mut().unwrap().apply_keystream(data);
    }

    /// Whether this is the signature of the next message, in constant time.
    pub fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        let sequence = self.sequence.to_le_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        let Some(([version @ .., a, b, c, d, e, f, g, h], number)) = signature
            .split_last_chunk::<4>()
            .and_then(|(head, number)| <&[u8; 12]>::try_from(head).ok().map(|head| (head, number)))
        else {
            return false;
        };
        let mut checksum = [*a, *b, *c, *d, *e, *f, *g, *h];
        if let Some(sealing) = &mut self.sealing {
            sealing.apply_keystream(&mut checksum);
        }
        let right = verify_hmac_md5(&self.signing_key, &[&sequence, message], &checksum);
        right && *version == VERSION && *number == sequence
    }
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part);
    }
    md5.finalize().into()
}
