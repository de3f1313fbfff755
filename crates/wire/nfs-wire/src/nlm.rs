//! The Network Lock Manager, version 4 (RFC 1813 appendix II; Open Group C702, chapters 10 and 14): byte-range locks and
//! share reservations for NFSv3.

use crate::v3::types::FileHandle;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The program's number.
pub const PROGRAM: u32 = 100_021;
/// The program's version for NFSv3. Versions 1 and 3 are for NFS version 2.
pub const VERSION: u32 = 4;
/// The longest name of a caller in bytes.
#[doc(alias = "LM_MAXSTRLEN")]
pub const NAME_BYTES_MAX: usize = 1024;
/// The longest cookie and the longest owner in bytes.
#[doc(alias = "MAXNETOBJ_SZ")]
pub const NETOBJ_BYTES_MAX: usize = 1024;

xdr_enum! {
    /// The procedures, RFC 1813 6.2 and 6.3. Each `Msg` procedure does what the one without the suffix does, and the result
    /// follows in a call of the `Res` procedure in the other direction.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// Whether a lock would be granted.
        Test = 1,
        /// Lock a range.
        Lock = 2,
        /// Give up a lock that is waited for.
        Cancel = 3,
        /// Unlock a range.
        Unlock = 4,
        /// From server to client: a lock that was waited for is granted.
        Granted = 5,
        /// TEST, answered by a call.
        TestMsg = 6,
        /// LOCK, answered by a call.
        LockMsg = 7,
        /// CANCEL, answered by a call.
        CancelMsg = 8,
        /// UNLOCK, answered by a call.
        UnlockMsg = 9,
        /// GRANTED, answered by a call.
        GrantedMsg = 10,
        /// The result of TEST_MSG.
        TestRes = 11,
        /// The result of LOCK_MSG.
        LockRes = 12,
        /// The result of CANCEL_MSG.
        CancelRes = 13,
        /// The result of UNLOCK_MSG.
        UnlockRes = 14,
        /// The result of GRANTED_MSG.
        GrantedRes = 15,
        /// Reserve a file against others.
        Share = 20,
        /// End a reservation.
        Unshare = 21,
        /// Lock a range for a client whose restarts are not monitored.
        NmLock = 22,
        /// Release everything that a host holds.
        FreeAll = 23,
    }
}

xdr_enum! {
    /// How a call has ended, RFC 1813 6.1.1.
    #[doc(alias = "nlm4_stats")]
    Status {
        /// Done.
        Granted = 0,
        /// Another lock or reservation conflicts.
        Denied = 1,
        /// The server has no room for more locks.
        DeniedNoLocks = 2,
        /// The lock is waited for: GRANTED will follow.
        Blocked = 3,
        /// Clients are reclaiming locks of before the restart of the server.
        DeniedGracePeriod = 4,
        /// The wait would never end.
        Deadlock = 5,
        /// The file system is read-only.
        RoFs = 6,
        /// The filehandle is stale.
        StaleFileHandle = 7,
        /// The range ends beyond the largest offset.
        FBig = 8,
        /// Anything else.
        Failed = 9,
    }
}

/// Opaque bytes of the caller: a cookie or an owner.
#[doc(alias = "netobj")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetObject<'a>(pub &'a [u8]);

impl Encode for NetObject<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for NetObject<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(NETOBJ_BYTES_MAX).map(Self)
    }
}

/// The name by which a host calls itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerName<'a>(pub &'a [u8]);

impl Encode for CallerName<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for CallerName<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(NAME_BYTES_MAX).map(Self)
    }
}

/// A range of a file, and who locks it.
#[doc(alias = "nlm4_lock")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock<'a> {
    /// The host.
    pub caller: CallerName<'a>,
    /// The file.
    #[doc(alias = "fh")]
    pub file: FileHandle,
    /// The owner, as the host names it.
    #[doc(alias = "oh")]
    pub owner: NetObject<'a>,
    /// The process of the owner.
    pub svid: u32,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; 0: to the end.
    pub length: u64,
}

xdr_struct!(Lock<'a> { caller, file, owner, svid, offset, length });

/// The arguments of LOCK and NM_LOCK.
#[doc(alias = "nlm4_lockargs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockArgs<'a> {
    /// Returned with the result.
    pub cookie: NetObject<'a>,
    /// Whether the caller waits for the lock.
    pub block: bool,
    /// Whether the lock excludes all others.
    pub exclusive: bool,
    /// The lock.
    pub lock: Lock<'a>,
    /// Whether the caller held the lock before the server was restarted.
    pub reclaim: bool,
    /// The state of the caller's status monitor.
    pub state: u32,
}

xdr_struct!(LockArgs<'a> { cookie, block, exclusive, lock, reclaim, state });

/// The arguments of CANCEL: those of the LOCK that is given up.
#[doc(alias = "nlm4_cancargs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelArgs<'a> {
    /// Returned with the result.
    pub cookie: NetObject<'a>,
    /// As in the LOCK.
    pub block: bool,
    /// As in the LOCK.
    pub exclusive: bool,
    /// As in the LOCK.
    pub lock: Lock<'a>,
}

xdr_struct!(CancelArgs<'a> { cookie, block, exclusive, lock });

/// The arguments of TEST, and of GRANTED.
#[doc(alias = "nlm4_testargs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestArgs<'a> {
    /// Returned with the result.
    pub cookie: NetObject<'a>,
    /// Whether the lock excludes all others.
    pub exclusive: bool,
    /// The lock.
    pub lock: Lock<'a>,
}

xdr_struct!(TestArgs<'a> { cookie, exclusive, lock });

/// The arguments of UNLOCK.
#[doc(alias = "nlm4_unlockargs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnlockArgs<'a> {
    /// Returned with the result.
    pub cookie: NetObject<'a>,
    /// The range to unlock.
    pub lock: Lock<'a>,
}

xdr_struct!(UnlockArgs<'a> { cookie, lock });

/// The result of most procedures.
#[doc(alias = "nlm4_res")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Res<'a> {
    /// That of the call.
    pub cookie: NetObject<'a>,
    /// How the call has ended.
    pub status: Status,
}

xdr_struct!(Res<'a> { cookie, status });

/// A lock that conflicts.
#[doc(alias = "nlm4_holder")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Whether it excludes all others.
    pub exclusive: bool,
    /// The process that holds it.
    pub svid: u32,
    /// The owner that holds it.
    pub owner: NetObject<'a>,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; 0: to the end.
    pub length: u64,
}

xdr_struct!(Holder<'a> { exclusive, svid, owner, offset, length });

/// The result of TEST.
#[doc(alias = "nlm4_testres")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestRes<'a> {
    /// That of the call.
    pub cookie: NetObject<'a>,
    /// What the test has found.
    pub found: Found<'a>,
}

xdr_struct!(TestRes<'a> { cookie, found });

/// What a test has found.
#[doc(alias = "nlm4_testrply")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// This lock conflicts.
    Conflict(Holder<'a>),
    /// Any status but DENIED.
    Other(Status),
}

impl Encode for Found<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Conflict(holder) => {
                Status::Denied.encode(writer);
                holder.encode(writer);
            }
            Self::Other(status) => status.encode(writer),
        }
    }
}

impl<'a> Decode<'a> for Found<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match Status::decode(reader)? {
            Status::Denied => Holder::decode(reader).map(Self::Conflict),
            status => Ok(Self::Other(status)),
        }
    }
}

xdr_enum! {
    /// What a reservation denies to others, RFC 1813 6.1.
    #[doc(alias = "fsh4_mode")]
    Mode {
        /// Nothing.
        DenyNone = 0,
        /// Reading.
        DenyRead = 1,
        /// Writing.
        DenyWrite = 2,
        /// Both.
        DenyBoth = 3,
    }
}

xdr_enum! {
    /// What a reservation is for.
    #[doc(alias = "fsh4_access")]
    Access {
        /// Nothing.
        None = 0,
        /// Reading.
        Read = 1,
        /// Writing.
        Write = 2,
        /// Both.
        Both = 3,
    }
}

/// A reservation of a file.
#[doc(alias = "nlm4_share")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<'a> {
    /// The host.
    pub caller: CallerName<'a>,
    /// The file.
    #[doc(alias = "fh")]
    pub file: FileHandle,
    /// The owner, as the host names it.
    #[doc(alias = "oh")]
    pub owner: NetObject<'a>,
    /// What is denied to others.
    pub mode: Mode,
    /// What the owner does.
    pub access: Access,
}

xdr_struct!(Share<'a> { caller, file, owner, mode, access });

/// The arguments of SHARE and UNSHARE.
#[doc(alias = "nlm4_shareargs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareArgs<'a> {
    /// Returned with the result.
    pub cookie: NetObject<'a>,
    /// The reservation.
    pub share: Share<'a>,
    /// Whether the caller had the reservation before the server was restarted.
    pub reclaim: bool,
}

xdr_struct!(ShareArgs<'a> { cookie, share, reclaim });

/// The result of SHARE and UNSHARE.
#[doc(alias = "nlm4_shareres")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareRes<'a> {
    /// That of the call.
    pub cookie: NetObject<'a>,
    /// How the call has ended.
    pub status: Status,
    /// Not used.
    pub sequence: u32,
}

xdr_struct!(ShareRes<'a> { cookie, status, sequence });

/// The argument of FREE_ALL.
#[doc(alias = "nlm4_notify")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeAllArgs<'a> {
    /// The host that has restarted.
    pub caller: CallerName<'a>,
    /// The state of its status monitor.
    pub state: u32,
}

xdr_struct!(FreeAllArgs<'a> { caller, state });
