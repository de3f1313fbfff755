//! OPLOCK_BREAK, [MS-SMB2] 2.2.23 to 2.2.25: the server breaks an oplock or a lease, and the client acknowledges.
//! `StructureSize` distinguishes oplocks (24) from leases (44 in the notification, 36 in the others).

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError};
use crate::create::OplockLevel;
use crate::create_context::LeaseState;
use crate::dtyp::FileId;

bitflags! {
    /// `Flags` of a lease break notification.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LeaseBreakFlags: u32 {
        /// SMB2_NOTIFY_BREAK_LEASE_FLAG_ACK_REQUIRED
        const ACK_REQUIRED = 0x0000_0001;
        const _ = !0;
    }
}

const OPLOCK: u16 = 24;
const LEASE_NOTIFICATION: u16 = 44;
const LEASE_ACKNOWLEDGMENT: u16 = 36;

/// A break that the server sends. It has the form of a response with message id `u64::MAX`, and with tree and session
/// 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// An oplock is broken.
    Oplock(OplockBreak),
    /// A lease is broken.
    Lease(LeaseBreak),
}

/// An oplock and its new level; the same in notification, acknowledgment and response.
#[doc(alias = "SMB2_OPLOCK_BREAK_NOTIFICATION")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OplockBreak {
    /// What the client may cache from now on.
    pub oplock_level: OplockLevel,
    /// The open.
    pub file_id: FileId,
}

/// A change of a lease.
#[doc(alias = "SMB2_LEASE_BREAK_NOTIFICATION")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseBreak {
    /// Counts the changes of the lease's state (leases of version 2); otherwise 0.
    pub new_epoch: u16,
    /// Whether the client must acknowledge.
    pub flags: LeaseBreakFlags,
    /// The lease.
    pub lease_key: [u8; 16],
    /// The state before the break.
    pub current_lease_state: LeaseState,
    /// The state after the break.
    pub new_lease_state: LeaseState,
}

impl OplockBreak {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let oplock_level = OplockLevel::from(r.u8()?);
        r.skip(5)?;
        Ok(Self { oplock_level, file_id: FileId::read(r)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(OPLOCK);
        out.put_u8(self.oplock_level.into());
        out.put(&[0; 5]);
        self.file_id.put(out);
    }
}

impl Notification {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        if structure_size(message)? == OPLOCK {
            return Ok(Self::Oplock(OplockBreak::read(&mut Reader::body::<24>(message, OPLOCK)?)?));
        }
        let mut r = Reader::body::<44>(message, LEASE_NOTIFICATION)?;
        Ok(Self::Lease(LeaseBreak {
            new_epoch: r.u16()?,
            flags: LeaseBreakFlags::from_bits_retain(r.u32()?),
            lease_key: r.array()?,
            current_lease_state: LeaseState::from_bits_retain(r.u32()?),
            new_lease_state: LeaseState::from_bits_retain(r.u32()?),
        }))
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(out),
            Self::Lease(lease) => {
                out.put_u16(LEASE_NOTIFICATION);
                out.put_u16(lease.new_epoch);
                out.put_u32(lease.flags.bits());
                out.put(&lease.lease_key);
                out.put_u32(lease.current_lease_state.bits());
                out.put_u32(lease.new_lease_state.bits());
                out.put(&[0; 12]);
            }
        }
    }
}

/// The client's acknowledgment, and the server's confirmation: both have the same form.
#[doc(alias = "SMB2_OPLOCK_BREAK_ACKNOWLEDGMENT")]
#[doc(alias = "SMB2_LEASE_BREAK_ACKNOWLEDGMENT")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgment {
    /// The oplock has this level.
    Oplock(OplockBreak),
    /// The lease has this state.
    Lease {
        /// The lease.
        lease_key: [u8; 16],
        /// Its state.
        lease_state: LeaseState,
    },
}

/// A request with [`crate::Command::OplockBreak`].
pub type Request = Acknowledgment;

/// The response to a [`Request`].
pub type Response = Acknowledgment;

impl Acknowledgment {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        if structure_size(message)? == OPLOCK {
            return Ok(Self::Oplock(OplockBreak::read(&mut Reader::body::<24>(message, OPLOCK)?)?));
        }
        let mut r = Reader::body::<36>(message, LEASE_ACKNOWLEDGMENT)?;
        r.skip(6)?;
        Ok(Self::Lease { lease_key: r.array()?, lease_state: LeaseState::from_bits_retain(r.u32()?) })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(out),
            Self::Lease { lease_key, lease_state } => {
                out.put_u16(LEASE_ACKNOWLEDGMENT);
                out.put(&[0; 6]);
                out.put(lease_key);
                out.put_u32(lease_state.bits());
                out.put_u64(0);
            }
        }
    }
}

fn structure_size(message: &[u8]) -> Result<u16, WireError> {
    Reader::new(message.get(crate::codec::HEADER..).ok_or(WireError::Truncated)?).u16()
}
