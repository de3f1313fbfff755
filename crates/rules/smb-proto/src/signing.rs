//! Signatures of messages. [MS-SMB2] 3.1.4.1, 3.3.5.2.4.
//!
//! A message is signed in place, from the first byte of its SMB2 header to its last byte, including the padding in a
//! compound. The key is prepared once per channel; signing allocates nothing with GMAC and HMAC.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{cmac, hmac};

use crate::dialect::SigningAlgorithm;

const COMMAND: std::ops::Range<usize> = 12..14;
const FLAGS: usize = 16;
const MESSAGE_ID: std::ops::Range<usize> = 24..32;
const SIGNATURE: std::ops::Range<usize> = 48..64;
const COMMAND_CANCEL: [u8; 2] = [0x0c, 0];
/// SMB2_FLAGS_SIGNED, in the first byte of Flags. [MS-SMB2] 2.2.1.
const FLAG_SIGNED: u8 = 0x08;

/// Who sends the signed message. This is part of the nonce of AES-GMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client: requests
    Client,
    /// The server: responses and notifications
    Server,
}

/// Why a message's signature is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The message is shorter than an SMB2 header.
    #[error("the message is shorter than an SMB2 header")]
    Truncated,
    /// The signature does not match the message and the key.
    #[error("the signature does not match")]
    Mismatch,
    /// The cryptographic library refused.
    #[error("the cryptographic library failed")]
    Library,
}

/// A signing key, prepared for use on a channel.
pub struct SigningKey(Prepared);

enum Prepared {
    HmacSha256(Box<hmac::Key>),
    AesCmac(cmac::Key),
    AesGmac(Box<LessSafeKey>),
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({:?})", self.algorithm())
    }
}

impl SigningKey {
    /// Prepares a key.
    ///
    /// # Errors
    /// [`SignatureError::Library`] if the library cannot allocate its key schedule.
    pub fn new(algorithm: SigningAlgorithm, key: &[u8; 16]) -> Result<Self, SignatureError> {
        Ok(Self(match algorithm {
            SigningAlgorithm::HmacSha256 => {
                Prepared::HmacSha256(Box::new(hmac::Key::new(hmac::HMAC_SHA256, key)))
            }
            SigningAlgorithm::AesCmac => {
                Prepared::AesCmac(cmac::Key::new(cmac::AES_128, key).map_err(|_| SignatureError::Library)?)
            }
            SigningAlgorithm::AesGmac => {
                let unbound = UnboundKey::new(&AES_128_GCM, key).map_err(|_| SignatureError::Library)?;
                Prepared::AesGmac(Box::new(LessSafeKey::new(unbound)))
            }
        }))
    }

    /// The algorithm of this key.
    pub fn algorithm(&self) -> SigningAlgorithm {
        match self.0 {
            Prepared::HmacSha256(_) => SigningAlgorithm::HmacSha256,
            Prepared::AesCmac(_) => SigningAlgorithm::AesCmac,
            Prepared::AesGmac(_) => SigningAlgorithm::AesGmac,
        }
    }

    /// Sets SMB2_FLAGS_SIGNED and the Signature field of one complete message.
    ///
    /// A compound is signed element by element: `message` is one element with its padding.
    ///
    /// With AES-GMAC, two different messages with the same MessageId from one sender must never both be signed: they
    /// would share a nonce, which reveals the key. So an interim response is not signed if the final one is ([MS-SMB2]
    /// 3.3.4.1.1), nor are notifications, whose MessageId is all ones.
    ///
    /// # Errors
    /// [`SignatureError::Truncated`] if there is no complete header.
    pub fn sign(&self, message: &mut [u8], sender: Sender) -> Result<(), SignatureError> {
        *signature_field(message)? = [0; 16];
        *message.get_mut(FLAGS).ok_or(SignatureError::Truncated)? |= FLAG_SIGNED;
        let signature = self.compute(message, sender)?;
        *signature_field(message)? = signature;
        Ok(())
    }

    /// Checks the Signature field of one complete message from `sender`, in constant time.
    ///
    /// The field is zeroed for the computation and then restored: the message does not change.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`] when the signature is wrong; the connection decides what follows ([MS-SMB2]
    /// 3.3.5.2.4: STATUS_ACCESS_DENIED). [`SignatureError::Truncated`] if there is no complete header.
    pub fn verify(&self, message: &mut [u8], sender: Sender) -> Result<(), SignatureError> {
        let received = std::mem::take(signature_field(message)?);
        let computed = self.compute(message, sender);
        *signature_field(message)? = received;
        verify_slices_are_equal(&computed?, &received).map_err(|_| SignatureError::Mismatch)
    }

    /// The signature of a message that has a complete header and whose Signature field is zero.
    fn compute(&self, message: &[u8], sender: Sender) -> Result<[u8; 16], SignatureError> {
        let mut signature = [0; 16];
        match &self.0 {
            Prepared::HmacSha256(key) => copy_16(&mut signature, hmac::sign(key, message).as_ref()),
            Prepared::AesCmac(key) => {
                let tag = cmac::sign(key, message).map_err(|_| SignatureError::Library)?;
                copy_16(&mut signature, tag.as_ref());
            }
            Prepared::AesGmac(key) => {
                let nonce = Nonce::assume_unique_for_key(gmac_nonce(message, sender)?);
                let tag = key
                    .seal_in_place_separate_tag(nonce, Aad::from(message), &mut [])
                    .map_err(|_| SignatureError::Library)?;
                copy_16(&mut signature, tag.as_ref());
            }
        }
        Ok(signature)
    }
}

/// The Signature field of a message. If it exists the header is complete, since the field is the end of the header.
fn signature_field(message: &mut [u8]) -> Result<&mut [u8; 16], SignatureError> {
    message.get_mut(SIGNATURE).and_then(<[u8]>::first_chunk_mut).ok_or(SignatureError::Truncated)
}

fn copy_16(to: &mut [u8; 16], from: &[u8]) {
    for (byte, tag) in to.iter_mut().zip(from) {
        *byte = *tag;
    }
}

/// [MS-SMB2] 3.1.4.1: "First 8 bytes are set to MessageId. ... If the sender is a client, least significant bit is
/// set to zero, otherwise set to 1. If the message is SMB2 CANCEL request, the penultimate bit is set to 1".
fn gmac_nonce(message: &[u8], sender: Sender) -> Result<[u8; 12], SignatureError> {
    let id = message.get(MESSAGE_ID).and_then(<[u8]>::first_chunk).ok_or(SignatureError::Truncated)?;
    let [a, b, c, d, e, f, g, h]: [u8; 8] = *id;
    let is_cancel = message.get(COMMAND).is_some_and(|command| command == COMMAND_CANCEL);
    let bits = u8::from(sender == Sender::Server) | (u8::from(is_cancel) << 1);
    Ok([a, b, c, d, e, f, g, h, bits, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 4493 4: the CMAC of the first 0, 16, 40 and 64 bytes of one message.
    #[test]
    fn cmac_is_that_of_rfc_4493() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let message: Vec<u8> = [
            0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128,
            0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51,
            0x30c8_1c46_a35c_e411_e5fb_c119_1a0a_52ef,
            0xf69f_2445_df4f_9b17_ad2b_417b_e66c_3710,
        ]
        .iter()
        .flat_map(|block| block.to_be_bytes())
        .collect();
        let expected = [
            (0, 0xbb1d_6929_e959_3728_7fa3_7d12_9b75_6746_u128),
            (16, 0x070a_16b4_6b4d_4144_f79b_dd9d_d04a_287c),
            (40, 0xdfa6_6747_de9a_e630_30ca_3261_1497_c827),
            (64, 0x51f0_bebf_7e3b_9d92_fc49_7417_7936_3cfe),
        ];
        let key = SigningKey::new(SigningAlgorithm::AesCmac, &key).unwrap();
        for (length, tag) in expected {
            assert_eq!(key.compute(&message[..length], Sender::Client), Ok(tag.to_be_bytes()));
        }
    }

    fn message(command: u8, message_id: u64, body: &[u8]) -> Vec<u8> {
        let mut message = vec![0; SIGNATURE.end];
        message[..4].copy_from_slice(b"\xfeSMB");
        message[COMMAND.start] = command;
        message[MESSAGE_ID].copy_from_slice(&message_id.to_le_bytes());
        message.extend_from_slice(body);
        message
    }

    /// [MS-SMB2] 3.1.4.1.
    #[test]
    fn the_gmac_nonce_is_message_sender_and_cancel() {
        let nonce =
            |command, sender| gmac_nonce(&message(command, 0x0807_0605_0403_0201, b""), sender).unwrap();
        assert_eq!(nonce(5, Sender::Client), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        assert_eq!(nonce(5, Sender::Server), [1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0]);
        assert_eq!(nonce(12, Sender::Client), [1, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0, 0]);
    }

    #[test]
    fn what_has_no_header_is_neither_signed_nor_right() {
        let key = SigningKey::new(SigningAlgorithm::AesGmac, &[1; 16]).unwrap();
        for length in [0, 1, 63] {
            assert_eq!(key.sign(&mut vec![0; length], Sender::Server), Err(SignatureError::Truncated));
            assert_eq!(key.verify(&mut vec![0; length], Sender::Server), Err(SignatureError::Truncated));
        }
    }

    proptest! {
        #[test]
        fn a_signature_holds_for_its_message_only(
            which in 0..3usize,
            body in prop::collection::vec(any::<u8>(), 0..300),
            flip in any::<prop::sample::Index>(),
            bit in 0..8u32,
        ) {
            let key = SigningKey::new(SigningAlgorithm::ALL[which], &[3; 16]).unwrap();
            let mut signed = message(9, 77, &body);
            key.sign(&mut signed, Sender::Server).unwrap();
            prop_assert_eq!(signed[FLAGS] & FLAG_SIGNED, FLAG_SIGNED);
            prop_assert_eq!(key.verify(&mut signed, Sender::Server), Ok(()));
            let other = SigningKey::new(SigningAlgorithm::ALL[which], &[4; 16]).unwrap();
            prop_assert_eq!(other.verify(&mut signed, Sender::Server), Err(SignatureError::Mismatch));
            let at = flip.index(signed.len());
            signed[at] ^= 1 << bit;
            prop_assert_eq!(key.verify(&mut signed, Sender::Server), Err(SignatureError::Mismatch));
        }
    }
}
