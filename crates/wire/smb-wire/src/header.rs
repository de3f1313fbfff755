//! The SMB2 packet header, [MS-SMB2] 2.2.1.

use std::ops::Range;

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError};
use crate::ntstatus::NtStatus;

/// Bytes of a header.
pub const LEN: usize = crate::codec::HEADER;

/// The first four bytes of every plain SMB2 message.
pub const PROTOCOL_ID: [u8; 4] = [0xFE, b'S', b'M', b'B'];

/// The place of the signature in a header. Signing covers the message with these bytes set to zero ([MS-SMB2] 3.1.4.1).
pub const SIGNATURE: Range<usize> = 48..64;

const NEXT_COMMAND: Range<usize> = 20..24;

wire_enum! {
    /// The command of a message.
    pub enum Command: u16 {
        /// SMB2 NEGOTIATE
        Negotiate = 0x0000,
        /// SMB2 SESSION_SETUP
        SessionSetup = 0x0001,
        /// SMB2 LOGOFF
        Logoff = 0x0002,
        /// SMB2 TREE_CONNECT
        TreeConnect = 0x0003,
        /// SMB2 TREE_DISCONNECT
        TreeDisconnect = 0x0004,
        /// SMB2 CREATE
        Create = 0x0005,
        /// SMB2 CLOSE
        Close = 0x0006,
        /// SMB2 FLUSH
        Flush = 0x0007,
        /// SMB2 READ
        Read = 0x0008,
        /// SMB2 WRITE
        Write = 0x0009,
        /// SMB2 LOCK
        Lock = 0x000A,
        /// SMB2 IOCTL
        Ioctl = 0x000B,
        /// SMB2 CANCEL
        Cancel = 0x000C,
        /// SMB2 ECHO
        Echo = 0x000D,
        /// SMB2 QUERY_DIRECTORY
        QueryDirectory = 0x000E,
        /// SMB2 CHANGE_NOTIFY
        ChangeNotify = 0x000F,
        /// SMB2 QUERY_INFO
        QueryInfo = 0x0010,
        /// SMB2 SET_INFO
        SetInfo = 0x0011,
        /// SMB2 OPLOCK_BREAK
        OplockBreak = 0x0012,
        /// SMB2 SERVER_TO_CLIENT_NOTIFICATION
        ServerToClientNotification = 0x0013,
    }
}

bitflags! {
    /// `Flags` of the header. When a header is written, [`Header::target`] decides about ASYNC_COMMAND.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct HeaderFlags: u32 {
        /// The message is a response.
        const SERVER_TO_REDIR = 0x0000_0001;
        /// `AsyncId` replaces `TreeId`.
        const ASYNC_COMMAND = 0x0000_0002;
        /// A compounded request that inherits session, tree and file from the previous one.
        const RELATED_OPERATIONS = 0x0000_0004;
        /// The message carries a signature.
        const SIGNED = 0x0000_0008;
        /// SMB 3.1.1: the priority of the request, three bits ([`HeaderFlags::priority`]).
        const PRIORITY_MASK = 0x0000_0070;
        /// The request is a DFS operation.
        const DFS_OPERATIONS = 0x1000_0000;
        /// SMB 3.x: a replay of a request after its channel failed.
        const REPLAY_OPERATION = 0x2000_0000;
        const _ = !0;
    }
}

impl HeaderFlags {
    /// The priority of the request, 0 to 7 (SMB 3.1.1).
    #[must_use]
    pub const fn priority(self) -> u8 {
        let [low, ..] = self.bits().to_le_bytes();
        (low & 0x70) >> 4
    }
}

/// What a message refers to: bytes 32 to 40 of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The header without ASYNC_COMMAND, [MS-SMB2] 2.2.1.2.
    Sync {
        /// The tree connect, 0 where there is none.
        tree_id: u32,
    },
    /// The header with ASYNC_COMMAND, [MS-SMB2] 2.2.1.1.
    Async {
        /// The server's identifier for a request that waits.
        async_id: u64,
    },
}

/// An SMB2 header.
#[doc(alias = "SMB2_HEADER")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How many credits the request costs (SMB 2.1 and later).
    pub credit_charge: u16,
    /// In a response the status; in an SMB 3.x request the channel sequence in the low 16 bits.
    pub status_or_channel_sequence: u32,
    /// The command that the message requests or answers.
    pub command: Command,
    /// Credits requested or granted.
    pub credits: u16,
    /// Direction, signing, compounding.
    pub flags: HeaderFlags,
    /// Bytes from this header to the next one of a compound; 0 in the last.
    pub next_command: u32,
    /// The number of the request on its connection; `u64::MAX` in an oplock break notification.
    pub message_id: u64,
    /// The tree connect, or the waiting request.
    pub target: Target,
    /// The session, 0 before there is one.
    pub session_id: u64,
    /// The signature, or zeros.
    pub signature: [u8; 16],
}

impl Header {
    /// Decodes the header at the start of a message.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::ProtocolId`] or [`WireError::StructureSize`].
    #[inline]
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let fixed: &[u8; LEN] = message.first_chunk().ok_or(WireError::Truncated)?;
        let mut r = Reader::new(fixed);
        if r.array::<4>()? != PROTOCOL_ID {
            return Err(WireError::ProtocolId);
        }
        let mut r = r.structure_size(64)?;
        let credit_charge = r.u16()?;
        let status_or_channel_sequence = r.u32()?;
        let command = Command::from(r.u16()?);
        let credits = r.u16()?;
        let flags = HeaderFlags::from_bits_retain(r.u32()?);
        let next_command = r.u32()?;
        let message_id = r.u64()?;
        let target = if flags.contains(HeaderFlags::ASYNC_COMMAND) {
            Target::Async { async_id: r.u64()? }
        } else {
            r.skip(4)?;
            Target::Sync { tree_id: r.u32()? }
        };
        Ok(Self {
            credit_charge,
            status_or_channel_sequence,
            command,
            credits,
            flags,
            next_command,
            message_id,
            target,
            session_id: r.u64()?,
            signature: r.array()?,
        })
    }

    /// The header of a response to this request: same command, message id, tree and session; no credits yet.
    /// RELATED_OPERATIONS and the priority are kept; signature and `NextCommand` are zero.
    #[must_use]
    pub fn response(&self, status: NtStatus) -> Self {
        let kept = HeaderFlags::RELATED_OPERATIONS | HeaderFlags::PRIORITY_MASK;
        Self {
            status_or_channel_sequence: status.0,
            flags: (self.flags & kept) | HeaderFlags::SERVER_TO_REDIR,
            credits: 0,
            next_command: 0,
            signature: [0; 16],
            ..*self
        }
    }

    /// The status of a response.
    #[must_use]
    pub const fn status(&self) -> NtStatus {
        NtStatus(self.status_or_channel_sequence)
    }

    /// The channel sequence of an SMB 3.x request.
    #[must_use]
    pub const fn channel_sequence(&self) -> u16 {
        let [a, b, ..] = self.status_or_channel_sequence.to_le_bytes();
        u16::from_le_bytes([a, b])
    }

    /// The tree, unless the message is asynchronous.
    #[must_use]
    pub const fn tree_id(&self) -> Option<u32> {
        match self.target {
            Target::Sync { tree_id } => Some(tree_id),
            Target::Async { .. } => None,
        }
    }

    /// The header in wire form.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        self.write_to(&mut bytes);
        bytes
    }

    /// Writes the header into room that was reserved for it.
    #[inline]
    pub fn write_to(&self, room: &mut [u8; LEN]) {
        let (flags, target) = match self.target {
            Target::Sync { tree_id } => {
                (self.flags.difference(HeaderFlags::ASYNC_COMMAND), u64::from(tree_id) << 32)
            }
            Target::Async { async_id } => (self.flags | HeaderFlags::ASYNC_COMMAND, async_id),
        };
        room[0..4].copy_from_slice(&PROTOCOL_ID);
        room[4..6].copy_from_slice(&64_u16.to_le_bytes());
        room[6..8].copy_from_slice(&self.credit_charge.to_le_bytes());
        room[8..12].copy_from_slice(&self.status_or_channel_sequence.to_le_bytes());
        room[12..14].copy_from_slice(&u16::from(self.command).to_le_bytes());
        room[14..16].copy_from_slice(&self.credits.to_le_bytes());
        room[16..20].copy_from_slice(&flags.bits().to_le_bytes());
        room[20..24].copy_from_slice(&self.next_command.to_le_bytes());
        room[24..32].copy_from_slice(&self.message_id.to_le_bytes());
        room[32..40].copy_from_slice(&target.to_le_bytes());
        room[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        room[48..64].copy_from_slice(&self.signature);
    }

    /// Appends the header.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put(&self.to_bytes());
    }
}

/// Writes a signature into the message at the start of `message`. Does nothing if there is no complete header.
pub fn set_signature(message: &mut [u8], signature: &[u8; 16]) {
    if let Some(field) = message.get_mut(SIGNATURE) {
        field.copy_from_slice(signature);
    }
}

/// Writes `NextCommand` into the message at the start of `message`. Does nothing if there is no complete header.
pub fn set_next_command(message: &mut [u8], next_command: u32) {
    if let Some(field) = message.get_mut(NEXT_COMMAND) {
        field.copy_from_slice(&next_command.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; LEN] {
        let target = Target::Sync { tree_id: 7 };
        Header {
            credit_charge: 1,
            status_or_channel_sequence: 0xFFFF_0002,
            command: Command::Unknown(0x14),
            credits: 2,
            flags: HeaderFlags::from_bits_retain(0x50),
            next_command: 0,
            message_id: 3,
            target,
            session_id: 4,
            signature: [5; 16],
        }
        .to_bytes()
    }

    #[test]
    fn a_header_is_64_bytes_of_smb2() {
        assert_eq!(Header::decode(&bytes()[..63]), Err(WireError::Truncated));
        let mut other = bytes();
        other[0] = 0xFF;
        assert_eq!(Header::decode(&other), Err(WireError::ProtocolId));
        let mut other = bytes();
        other[4] = 65;
        assert_eq!(Header::decode(&other), Err(WireError::StructureSize { expected: 64, found: 65 }));
    }

    #[test]
    fn an_unknown_command_can_be_answered() {
        let request = Header::decode(&bytes()).unwrap();
        assert_eq!(request.command, Command::Unknown(0x14));
        assert_eq!((request.channel_sequence(), request.flags.priority()), (2, 5));
        let response = request.response(NtStatus::INVALID_PARAMETER);
        assert_eq!((response.command, response.message_id), (request.command, 3));
        assert_eq!((response.status(), response.tree_id()), (NtStatus::INVALID_PARAMETER, Some(7)));
        assert_eq!((response.signature, response.credits), ([0; 16], 0));
    }

    #[test]
    fn the_target_decides_about_async_command() {
        let mut header = Header::decode(&bytes()).unwrap();
        header.target = Target::Async { async_id: 0x0102_0304_0506_0708 };
        let bytes = header.to_bytes();
        assert_eq!(bytes[16] & 2, 2);
        assert_eq!(bytes[32..40], [8, 7, 6, 5, 4, 3, 2, 1]);
        header.flags |= HeaderFlags::ASYNC_COMMAND;
        header.target = Target::Sync { tree_id: 1 };
        assert_eq!(header.to_bytes()[16] & 2, 0);
    }
}
