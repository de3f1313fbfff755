//! Protection of single messages: MIC and Wrap tokens, in place. RFC 4121 4.2.

use std::ops::Range;

use crate::crypto::{CONFOUNDER_LEN, ChecksumKey, CryptoError, KeyUsage, Opener, Sealer};
use crate::{Enctype, Key};

/// The head of a token. RFC 4121 4.2.6.
const HEAD_LEN: usize = 16;
const MIC_TOKEN: [u8; 2] = [4, 4];
const WRAP_TOKEN: [u8; 2] = [5, 4];
const FILLER: u8 = 0xff;
/// Flags of a token. RFC 4121 4.2.2.
const SENT_BY_ACCEPTOR: u8 = 1;
const SEALED: u8 = 2;
const ACCEPTOR_SUBKEY: u8 = 4;
const TAG_LEN_MAX: usize = 24;

/// Which side of a security context we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client
    Initiator,
    /// The server
    Acceptor,
}

/// Whose key protects the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The acceptor's subkey, which all tokens must say
    Acceptor,
    /// The initiator's subkey, or the ticket's key
    Initiator,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerMessageError {
    /// Not the bytes of such a token
    #[error("not a token of RFC 4121")]
    Malformed,
    /// The token was sent by our own side
    #[error("the token was sent by this side")]
    OwnToken,
    /// The token is protected with another key than the context's
    #[error("the token names another key than the context has")]
    OtherKey,
    /// The message was changed, or is of another context
    #[error("the message was changed, or belongs to another context")]
    Changed,
}

impl From<CryptoError> for PerMessageError {
    fn from(_: CryptoError) -> Self {
        Self::Changed
    }
}

/// How a message in a Wrap token is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Against changes, and nobody else can read it
    Sealed,
    /// Against changes
    Signed,
}

/// What was in a Wrap token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped {
    /// The number that the sender gave the message. The caller checks the order
    pub sequence_number: u64,
    /// How the message was protected
    pub protection: Protection,
    /// Where the message is in the buffer
    pub message: Range<usize>,
}

/// A MIC token.
#[derive(Clone, Copy)]
pub struct Mic {
    bytes: [u8; HEAD_LEN.saturating_add(TAG_LEN_MAX)],
    length: usize,
}

impl AsRef<[u8]> for Mic {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The keys that protect the messages of a context, both ways.
#[derive(Debug)]
pub struct PerMessage {
    own_flags: u8,
    peer_flags: u8,
    tag_len: usize,
    seal: Sealer,
    open: Opener,
    /// For Wrap tokens that are not sealed. RFC 4121 2 has one usage for all Wrap tokens, "seal".
    sign: ChecksumKey,
    verify: ChecksumKey,
    mic: ChecksumKey,
    verify_mic: ChecksumKey,
}

impl PerMessage {
    /// The bytes that a sealed message has before it.
    pub const SEALED_HEAD: usize = HEAD_LEN.saturating_add(CONFOUNDER_LEN);
    /// The bytes that a signed message has before it.
    pub const SIGNED_HEAD: usize = HEAD_LEN;

    /// The keys of one side.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn new(key: &Key, side: Side, origin: KeyOrigin) -> Result<Self, CryptoError> {
        let deriver = key.deriver()?;
        let subkey = match origin {
            KeyOrigin::Acceptor => ACCEPTOR_SUBKEY,
            KeyOrigin::Initiator => 0,
        };
        let acceptor = (SENT_BY_ACCEPTOR | subkey, KeyUsage::ACCEPTOR_SEAL, KeyUsage::ACCEPTOR_SIGN);
        let initiator = (subkey, KeyUsage::INITIATOR_SEAL, KeyUsage::INITIATOR_SIGN);
        let ((own_flags, seal, mic), (peer_flags, open, verify_mic)) = match side {
            Side::Acceptor => (acceptor, initiator),
            Side::Initiator => (initiator, acceptor),
        };
        Ok(Self {
            own_flags,
            peer_flags,
            tag_len: key.enctype().tag_len(),
            seal: deriver.sealer(seal)?,
            open: deriver.opener(open)?,
            sign: deriver.checksum_key(seal)?,
            verify: deriver.checksum_key(open)?,
            mic: deriver.checksum_key(mic)?,
            verify_mic: deriver.checksum_key(verify_mic)?,
        })
    }

    /// The type of the key.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.seal.enctype()
    }

    /// The bytes that a sealed message has behind it.
    #[must_use]
    pub fn sealed_tail(&self) -> usize {
        HEAD_LEN.saturating_add(self.tag_len)
    }

    /// The bytes that a signed message has behind it.
    #[must_use]
    pub fn signed_tail(&self) -> usize {
        self.tag_len
    }

    /// The MIC of a message that consists of these parts. RFC 4121 4.2.4: the checksum is over the message and then the
    /// head of the token.
    #[must_use]
    pub fn mic(&self, sequence_number: u64, message: &[&[u8]]) -> Mic {
        let head = head(MIC_TOKEN, self.own_flags, [FILLER; 4], sequence_number);
        let tag = tag(&self.mic, message, &head);
        let mut mic = Mic { bytes: [0; HEAD_LEN.saturating_add(TAG_LEN_MAX)], length: 0 };
        let made = head.iter().chain(tag.as_ref());
        mic.bytes.iter_mut().zip(made).for_each(|(place, byte)| *place = *byte);
        mic.length = HEAD_LEN.saturating_add(self.tag_len);
        mic
    }

    /// Checks the peer's MIC of a message, and returns its sequence number.
    ///
    /// # Errors
    /// [`PerMessageError`].
    pub fn verify_mic(&self, message: &[&[u8]], token: &[u8]) -> Result<u64, PerMessageError> {
        let (head, tag) = token.split_first_chunk::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        let [a, b, flags, FILLER, FILLER, FILLER, FILLER, FILLER, number @ ..] = head else {
            return Err(PerMessageError::Malformed);
        };
        if [*a, *b] != MIC_TOKEN || flags & SEALED != 0 {
            return Err(PerMessageError::Malformed);
        }
        self.check_flags(*flags)?;
        verify(&self.verify_mic, message, head, tag)?;
        Ok(u64::from_be_bytes(*number))
    }

    /// Seals a message in place: `buffer` is [`Self::SEALED_HEAD`] bytes, the message, and [`Self::sealed_tail`] bytes.
    /// The confounder is random.
    ///
    /// # Errors
    /// [`PerMessageError::Malformed`] if the buffer is too short.
    pub fn seal(
        &self,
        sequence_number: u64,
        confounder: &[u8; CONFOUNDER_LEN],
        buffer: &mut [u8],
    ) -> Result<(), PerMessageError> {
        // RFC 4121 4.2.4: encrypted are the message, EC bytes of filler (none here), and a copy of the head
        let head = head(WRAP_TOKEN, self.own_flags | SEALED, [0; 4], sequence_number);
        let sealed = buffer.len().checked_sub(self.tag_len).ok_or(PerMessageError::Malformed)?;
        let (sealed, tag) = buffer.split_at_mut_checked(sealed).ok_or(PerMessageError::Malformed)?;
        let (front, sealed) = sealed.split_first_chunk_mut::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        let (message, copy) = sealed.split_last_chunk_mut::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        *message.first_chunk_mut().ok_or(PerMessageError::Malformed)? = *confounder;
        *front = head;
        *copy = head;
        tag.copy_from_slice(self.seal.seal(sealed)?.as_ref());
        Ok(())
    }

    /// Signs a message in place: `buffer` is [`Self::SIGNED_HEAD`] bytes, the message, and [`Self::signed_tail`] bytes.
    ///
    /// # Errors
    /// [`PerMessageError::Malformed`] if the buffer is too short.
    pub fn sign(&self, sequence_number: u64, buffer: &mut [u8]) -> Result<(), PerMessageError> {
        // RFC 4121 4.2.4: for the checksum, EC and RRC are zero; then EC is the length of the checksum
        let [_, length] = u16::try_from(self.tag_len).map_err(|_| PerMessageError::Malformed)?.to_be_bytes();
        let signed = buffer.len().checked_sub(self.tag_len).ok_or(PerMessageError::Malformed)?;
        let (signed, place) = buffer.split_at_mut_checked(signed).ok_or(PerMessageError::Malformed)?;
        let (front, message) =
            signed.split_first_chunk_mut::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        let covered = head(WRAP_TOKEN, self.own_flags, [0; 4], sequence_number);
        place.copy_from_slice(self.sign.tag(&[message, &covered]).as_ref());
        *front = head(WRAP_TOKEN, self.own_flags, [0, length, 0, 0], sequence_number);
        Ok(())
    }

    /// Checks and opens the peer's Wrap token in place.
    ///
    /// # Errors
    /// [`PerMessageError`]; the content of the buffer is undefined then.
    pub fn unwrap(&self, token: &mut [u8]) -> Result<Unwrapped, PerMessageError> {
        let (head, body) = token.split_first_chunk_mut::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        let [a, b, flags, FILLER, extra_high, extra_low, turn_high, turn_low, number @ ..] = *head else {
            return Err(PerMessageError::Malformed);
        };
        if [a, b] != WRAP_TOKEN {
            return Err(PerMessageError::Malformed);
        }
        self.check_flags(flags & !SEALED)?;
        let (extra, turn) = ([extra_high, extra_low], [turn_high, turn_low]);
        turn_back(body, u16::from_be_bytes(turn));
        let sequence_number = u64::from_be_bytes(number);
        let (protection, message) = if flags & SEALED == 0 {
            (Protection::Signed, self.check_signed(body, flags, extra, sequence_number)?)
        } else {
            (Protection::Sealed, self.open_sealed(body, flags, extra, sequence_number)?)
        };
        let message = message.start.saturating_add(HEAD_LEN)..message.end.saturating_add(HEAD_LEN);
        Ok(Unwrapped { sequence_number, protection, message })
    }

    /// Where the message is in the decrypted body.
    fn open_sealed(
        &self,
        body: &mut [u8],
        flags: u8,
        extra: [u8; 2],
        sequence_number: u64,
    ) -> Result<Range<usize>, PerMessageError> {
        let plain = self.open.open(body)?;
        let (plain, copy) = plain.split_last_chunk::<HEAD_LEN>().ok_or(PerMessageError::Malformed)?;
        // RFC 4121 4.2.5: in the copy, RRC is zero
        let [high, low] = extra;
        if *copy != head(WRAP_TOKEN, flags, [high, low, 0, 0], sequence_number) {
            return Err(PerMessageError::Changed);
        }
        let length = plain.len().checked_sub(usize::from(u16::from_be_bytes(extra)));
        let length = length.ok_or(PerMessageError::Malformed)?;
        Ok(CONFOUNDER_LEN..CONFOUNDER_LEN.saturating_add(length))
    }

    /// Where the message is in the body, whose checksum is checked.
    fn check_signed(
        &self,
        body: &[u8],
        flags: u8,
        extra: [u8; 2],
        sequence_number: u64,
    ) -> Result<Range<usize>, PerMessageError> {
        if usize::from(u16::from_be_bytes(extra)) != self.tag_len {
            return Err(PerMessageError::Malformed);
        }
        let length = body.len().checked_sub(self.tag_len).ok_or(PerMessageError::Malformed)?;
        let (message, tag) = body.split_at_checked(length).ok_or(PerMessageError::Malformed)?;
        let covered = head(WRAP_TOKEN, flags, [0; 4], sequence_number);
        self.verify.verify(&[message, &covered], tag)?;
        Ok(0..length)
    }

    fn check_flags(&self, flags: u8) -> Result<(), PerMessageError> {
        if (flags ^ self.peer_flags) & SENT_BY_ACCEPTOR != 0 {
            return Err(PerMessageError::OwnToken);
        }
        if flags == self.peer_flags { Ok(()) } else { Err(PerMessageError::OtherKey) }
    }
}

/// The head of a token: its kind, flags, filler, four bytes (EC and RRC in a Wrap token), the number of the message.
fn head(kind: [u8; 2], flags: u8, extra: [u8; 4], sequence_number: u64) -> [u8; HEAD_LEN] {
    let ([a, b], [e, f, g, h]) = (kind, extra);
    let [i, j, k, l, m, n, o, p] = sequence_number.to_be_bytes();
    [a, b, flags, FILLER, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// Undoes RRC, the "right rotation count" of the body. RFC 4121 4.2.5.
fn turn_back(body: &mut [u8], count: u16) {
    if let Some(count) = usize::from(count).checked_rem(body.len()) {
        body.rotate_left(count);
    }
}

/// The most parts of a message whose checksum is made without a list of its own.
const PARTS_MAX: usize = 7;

fn tag(key: &ChecksumKey, message: &[&[u8]], head: &[u8]) -> crate::crypto::Tag {
    with_head(message, head, |parts| key.tag(parts))
}

fn verify(key: &ChecksumKey, message: &[&[u8]], head: &[u8], tag: &[u8]) -> Result<(), CryptoError> {
    with_head(message, head, |parts| key.verify(parts, tag))
}

/// Calls `made` with the parts of the message and the head behind them.
fn with_head<T>(message: &[&[u8]], head: &[u8], made: impl FnOnce(&[&[u8]]) -> T) -> T {
    let mut parts: [&[u8]; PARTS_MAX.saturating_add(1)] = [&[]; PARTS_MAX.saturating_add(1)];
    if message.len() > PARTS_MAX {
        return made(&[message, &[head]].concat());
    }
    parts.iter_mut().zip(message.iter().chain([&head])).for_each(|(place, part)| *place = *part);
    made(&parts)
}

#[cfg(test)]
mod tests;
