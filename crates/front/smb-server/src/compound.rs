//! Replies in their final form: linked, signed, encrypted. [MS-SMB2] 3.3.4.1.

use std::sync::Arc;

use net::{Buffer, Room};
use planted::Fault;
use smb_proto::channel::Channel;
use smb_proto::encryption::TRANSFORM_HEADER_LEN;
use smb_proto::related::Chain;
use smb_proto::session::SessionCrypto;
use smb_proto::signing::Sender;
use smb_wire::{Header, frame};

/// A compound, as far as it has been answered.
#[derive(Debug, Default)]
pub(crate) struct Compound {
    /// The values that a related request inherits from the previous request.
    pub(crate) chain: Chain,
    /// The keys that encrypt the replies; `None` if they are not encrypted.
    encryption: Option<Arc<SessionCrypto>>,
    /// The replies so far, linked. All but the last are signed.
    answers: Option<Answers>,
    /// Room for the replies so far, until they are sent.
    room: Option<Room>,
}

#[derive(Debug)]
struct Answers {
    buffer: Buffer,
    /// Where the last reply starts.
    last: usize,
    /// The channel that signs the last reply.
    signer: Option<Arc<Channel>>,
}

impl Compound {
    /// A frame in which no request has been answered yet.
    pub(crate) fn new(encryption: Option<Arc<SessionCrypto>>) -> Self {
        Self { encryption, ..Self::default() }
    }

    /// Bytes of the replies so far.
    pub(crate) fn answered_bytes(&self) -> usize {
        self.answers.as_ref().map_or(0, |answers| answers.buffer.len())
    }

    /// The room that is held for the replies so far, in bytes.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room.as_ref().map_or(0, Room::bytes)
    }

    /// Adds the room of a reply to that of the replies so far.
    pub(crate) fn keep_room(&mut self, room: Room) {
        match &mut self.room {
            Some(before) => before.add(room),
            none => *none = Some(room),
        }
    }

    /// Takes the room of the replies so far, which are about to be sent.
    pub(crate) fn take_room(&mut self) -> Option<Room> {
        self.room.take()
    }

    /// Adds a reply: a complete message with its header.
    ///
    /// # Errors
    /// A fault of this program.
    pub(crate) fn push(&mut self, message: Buffer, signer: Option<Arc<Channel>>) -> Result<(), ReplyError> {
        let answers = match self.answers.take() {
            None => Answers { buffer: message, last: 0, signer },
            Some(mut before) => {
                let start = before.buffer.len();
                let next = before.buffer.append_with(|bytes, origin| {
                    smb_wire::chain::link(bytes, origin.saturating_add(before.last)).map(|at| at - origin)
                });
                let next = next.map_err(|_| ReplyError("a compound of more than 4 GiB"))?;
                debug_assert!(next >= start, "linking pads");
                before.sign()?;
                before.buffer.append(&message);
                // 3.3.4.1.3: "The length of the last response in the compounded responses SHOULD be padded to a multiple
                // of 8 bytes."
                let odd = message.len() % 8;
                before.buffer.append([0; 8].get(odd..).filter(|_| odd > 0).unwrap_or_default());
                Answers { buffer: before.buffer, last: next, signer }
            }
        };
        self.answers = Some(answers);
        Ok(())
    }

    /// Takes the frame with all replies so far; `None` when there are none.
    ///
    /// # Errors
    /// A fault of this program.
    pub(crate) fn take_frame(&mut self) -> Result<Option<Buffer>, ReplyError> {
        let Some(mut answers) = self.answers.take() else { return Ok(None) };
        answers.sign()?;
        enclose(answers.buffer, self.encryption.as_deref()).map(Some)
    }
}

impl Answers {
    fn sign(&mut self) -> Result<(), ReplyError> {
        let Some(signer) = &self.signer else { return Ok(()) };
        sign(signer, self.buffer.get_mut(self.last..).unwrap_or_default())
    }
}

/// Signs a message with the key of a channel, if it has one.
///
/// # Errors
/// A fault of this program.
pub(crate) fn sign(channel: &Channel, message: &mut [u8]) -> Result<(), ReplyError> {
    let Some(key) = &channel.signing else { return Ok(()) };
    key.sign(message, Sender::Server).map_err(|_| ReplyError("signing failed"))?;
    if let Some(byte) = message.get_mut(48).filter(|_| planted::strikes(Fault::WrongSignature)) {
        *byte ^= 1;
    }
    Ok(())
}

/// A reply that cannot be sent, because of a fault of this program.
#[derive(Debug)]
pub(crate) struct ReplyError(pub(crate) &'static str);

/// A single message as a frame, for messages without a request context; `None` when it is too long or cannot be
/// encrypted.
pub(crate) fn frame_of(
    header: &Header,
    mut message: Buffer,
    encryption: Option<&SessionCrypto>,
) -> Option<Buffer> {
    header.write_to(message.first_chunk_mut()?);
    enclose(message, encryption).ok()
}

/// Makes a frame of messages: encrypts them if required, and adds the prefix.
fn enclose(mut messages: Buffer, encryption: Option<&SessionCrypto>) -> Result<Buffer, ReplyError> {
    if let Some(crypto) = encryption {
        let sealer = crypto.sealer.as_ref().ok_or(ReplyError("no key to encrypt with"))?;
        messages.prepend(&[0; TRANSFORM_HEADER_LEN]);
        sealer.seal(&mut messages).map_err(|_| ReplyError("encryption failed"))?;
    }
    let prefix = frame::encode_prefix(messages.len()).map_err(|_| ReplyError("a frame that is too long"))?;
    messages.prepend(&prefix);
    Ok(messages)
}
