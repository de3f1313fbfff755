//! LOCK, RFC 8881 18.10: lock a byte range.

use crate::v4::status::Status;
use crate::v4::types::{StateOwner, Stateid};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// Arguments.
#[doc(alias = "LOCK4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Shared or exclusive, and whether the client will wait for the lock.
    pub lock_type: LockType,
    /// Whether the client had the lock before the server restarted.
    pub reclaim: bool,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; all ones means up to the largest offset.
    pub length: u64,
    /// The owner.
    pub locker: Locker<'a>,
}

xdr_struct!(Args<'a> { lock_type, reclaim, offset, length, locker });

/// Success.
#[doc(alias = "LOCK4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The locks of this owner and this open.
    pub lock_stateid: Stateid,
}

xdr_struct!(ResOk { lock_stateid });

/// Result.
#[doc(alias = "LOCK4res")]
pub type Res<'a> = Result<ResOk, Failure<'a>>;

/// Why a lock was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// NFS4ERR_DENIED: another owner's lock conflicts.
    Denied(Denied<'a>),
    /// Any other status.
    Status(Status),
}

impl Failure<'_> {
    /// The status.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Denied(_) => Status::Denied,
            Self::Status(status) => *status,
        }
    }
}

impl From<Status> for Failure<'_> {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// `union switch (nfsstat4)`, with the conflicting lock after NFS4ERR_DENIED.
impl<T: Encode> Encode for Result<T, Failure<'_>> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Ok(value) => {
                writer.u32(0);
                value.encode(writer);
            }
            Err(Failure::Denied(denied)) => {
                Status::Denied.encode(writer);
                denied.encode(writer);
            }
            Err(Failure::Status(status)) => status.encode(writer),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Result<T, Failure<'a>> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(match reader.u32()? {
            0 => Ok(T::decode(reader)?),
            status => Err(match Status::try_from(status)? {
                Status::Denied => Failure::Denied(Denied::decode(reader)?),
                status => Failure::Status(status),
            }),
        })
    }
}

/// The conflicting lock.
#[doc(alias = "LOCK4denied")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied<'a> {
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; all ones means up to the largest offset.
    pub length: u64,
    /// Shared or exclusive.
    pub lock_type: LockType,
    /// The owner of the lock.
    pub owner: StateOwner<'a>,
}

xdr_struct!(Denied<'a> { offset, length, lock_type, owner });

xdr_enum! {
    /// Kinds of locks.
    #[doc(alias = "nfs_lock_type4")]
    LockType {
        /// Shared.
        #[doc(alias = "READ_LT")]
        Read = 1,
        /// Exclusive.
        #[doc(alias = "WRITE_LT")]
        Write = 2,
        /// Shared; the client will retry until it gets the lock.
        #[doc(alias = "READW_LT")]
        ReadWait = 3,
        /// Exclusive; the client will retry until it gets the lock.
        #[doc(alias = "WRITEW_LT")]
        WriteWait = 4,
    }
}

impl LockType {
    /// Whether the lock is exclusive.
    #[must_use]
    pub fn is_exclusive(self) -> bool {
        matches!(self, Self::Write | Self::WriteWait)
    }

    /// Whether the client will retry until it gets the lock.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::ReadWait | Self::WriteWait)
    }
}

/// The owner of the requested lock.
#[doc(alias = "locker4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locker<'a> {
    /// The first lock of an owner with this open.
    #[doc(alias = "open_to_lock_owner4")]
    New {
        /// The sequence number of the open-owner; ignored since NFSv4.1.
        open_seqid: u32,
        /// The open.
        open_stateid: Stateid,
        /// The sequence number of the lock-owner; ignored since NFSv4.1.
        lock_seqid: u32,
        /// The owner.
        owner: StateOwner<'a>,
    },
    /// A further lock.
    #[doc(alias = "exist_lock_owner4")]
    Existing {
        /// The stateid that the first lock returned.
        lock_stateid: Stateid,
        /// The sequence number of the lock-owner; ignored since NFSv4.1.
        lock_seqid: u32,
    },
}

impl Encode for Locker<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::New { open_seqid, open_stateid, lock_seqid, owner } => {
                writer.bool(true);
                writer.u32(*open_seqid);
                open_stateid.encode(writer);
                writer.u32(*lock_seqid);
                owner.encode(writer);
            }
            Self::Existing { lock_stateid, lock_seqid } => {
                writer.bool(false);
                lock_stateid.encode(writer);
                writer.u32(*lock_seqid);
            }
        }
    }
}

impl<'a> Decode<'a> for Locker<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(if reader.bool()? {
            Self::New {
                open_seqid: reader.u32()?,
                open_stateid: Decode::decode(reader)?,
                lock_seqid: reader.u32()?,
                owner: Decode::decode(reader)?,
            }
        } else {
            Self::Existing { lock_stateid: Decode::decode(reader)?, lock_seqid: reader.u32()? }
        })
    }
}
