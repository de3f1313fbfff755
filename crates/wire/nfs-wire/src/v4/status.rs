//! `nfsstat4`: RFC 8881 15.1, RFC 7862 11.1 and RFC 8276 8.3.

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum};

xdr_enum! {
    /// Why an operation failed. NFS4_OK is not a failure and therefore not listed.
    #[doc(alias = "nfsstat4")]
    Status {
        /// Not the owner, or only permitted to a privileged user.
        Perm = 1,
        /// The name does not exist.
        NoEnt = 2,
        /// A hard error of the storage.
        Io = 5,
        /// Outside the object (SEEK beyond the end), or no such device.
        NxIo = 6,
        /// Permission denied.
        Access = 13,
        /// The name exists already.
        Exist = 17,
        /// A link or rename across file systems.
        XDev = 18,
        /// The object is not a directory.
        NotDir = 20,
        /// The object is a directory.
        IsDir = 21,
        /// An argument that is invalid or not supported for this object.
        Inval = 22,
        /// The file would become larger than the server permits.
        FBig = 27,
        /// No space left.
        NoSpc = 28,
        /// The file system is read-only.
        RoFs = 30,
        /// Too many hard links.
        MLink = 31,
        /// The name is too long.
        NameTooLong = 63,
        /// The directory is not empty.
        NotEmpty = 66,
        /// The quota is exceeded.
        DQuot = 69,
        /// The object of the filehandle no longer exists.
        Stale = 70,
        /// The filehandle does not belong to this server.
        BadHandle = 10001,
        /// READDIR's cookie is stale.
        BadCookie = 10003,
        /// Not supported.
        NotSupp = 10004,
        /// The buffer or the request is too small.
        TooSmall = 10005,
        /// An error without a status of its own.
        ServerFault = 10006,
        /// An object of this type cannot be made here.
        BadType = 10007,
        /// The operation takes longer: the client should retry later.
        Delay = 10008,
        /// NVERIFY: the attributes are the same.
        Same = 10009,
        /// The lock is held by another owner.
        Denied = 10010,
        /// The state's lease has expired.
        Expired = 10011,
        /// A byte-range lock conflicts with a read or write.
        Locked = 10012,
        /// The server is in its grace period.
        Grace = 10013,
        /// The filehandle was volatile and has expired.
        FhExpired = 10014,
        /// A share reservation conflicts.
        ShareDenied = 10015,
        /// Another security flavor is needed here.
        WrongSec = 10016,
        /// The client owner is in use by another principal.
        ClidInUse = 10017,
        /// NFSv4.0 only: out of resources.
        Resource = 10018,
        /// The file system has moved.
        Moved = 10019,
        /// There is no current (or saved) filehandle.
        NoFileHandle = 10020,
        /// The minor version is not supported.
        MinorVersMismatch = 10021,
        /// The client ID does not belong to this server instance.
        StaleClientId = 10022,
        /// NFSv4.0 only: the stateid belongs to an earlier server instance.
        StaleStateId = 10023,
        /// The seqid of the stateid is an earlier one.
        OldStateId = 10024,
        /// The stateid does not belong to this server, or has another kind.
        BadStateId = 10025,
        /// NFSv4.0 only: the owner's sequence number is wrong.
        BadSeqId = 10026,
        /// VERIFY: the attributes differ.
        NotSame = 10027,
        /// The server cannot lock this range in this way.
        LockRange = 10028,
        /// The object is a symbolic link, where a file or directory is needed.
        SymLink = 10029,
        /// NFSv4.0 only: there is no saved filehandle.
        RestoreFh = 10030,
        /// NFSv4.0 only: some state has moved.
        LeaseMoved = 10031,
        /// An attribute to set is not supported.
        AttrNotSupp = 10032,
        /// A reclaim outside the grace period.
        NoGrace = 10033,
        /// A reclaim of state that the client did not have.
        ReclaimBad = 10034,
        /// A reclaim that conflicts with another.
        ReclaimConflict = 10035,
        /// The arguments do not decode.
        BadXdr = 10036,
        /// Byte-range locks are held.
        LocksHeld = 10037,
        /// The open does not permit this.
        OpenMode = 10038,
        /// An owner or a principal that cannot be translated.
        BadOwner = 10039,
        /// A character that is not supported here.
        BadChar = 10040,
        /// A name that is not permitted here.
        BadName = 10041,
        /// A range that the server cannot lock.
        BadRange = 10042,
        /// Locks cannot be upgraded or downgraded atomically.
        LockNotSupp = 10043,
        /// The minor version does not have the operation.
        OpIllegal = 10044,
        /// Waiting for the lock would be a deadlock.
        Deadlock = 10045,
        /// The file is open, which does not permit this.
        FileOpen = 10046,
        /// The state was revoked by an administrator.
        AdminRevoked = 10047,
        /// The back channel does not work.
        CbPathDown = 10048,
        /// The layout's iomode does not match.
        BadIoMode = 10049,
        /// The layout is invalid.
        BadLayout = 10050,
        /// SET_SSV's digest does not match.
        BadSessionDigest = 10051,
        /// No such session.
        BadSession = 10052,
        /// No such slot.
        BadSlot = 10053,
        /// RECLAIM_COMPLETE was sent before.
        CompleteAlready = 10054,
        /// The connection is not associated with the session.
        ConnNotBoundToSession = 10055,
        /// The want is registered already.
        DelegAlreadyWanted = 10056,
        /// The back channel has requests outstanding.
        BackChanBusy = 10057,
        /// No layout is available now.
        LayoutTryLater = 10058,
        /// Layouts are not available for this file.
        LayoutUnavailable = 10059,
        /// No layout matches the recall.
        NoMatchingLayout = 10060,
        /// Unavailable while a recall is under way.
        RecallConflict = 10061,
        /// The layout type is not supported.
        UnknownLayoutType = 10062,
        /// The sequence ID is neither the next nor the last.
        SeqMisordered = 10063,
        /// SEQUENCE is not the first operation.
        SequencePos = 10064,
        /// The request is larger than the channel permits.
        ReqTooBig = 10065,
        /// The reply would be larger than the channel permits.
        RepTooBig = 10066,
        /// The reply would be larger than what is cached.
        RepTooBigToCache = 10067,
        /// A retry of a request whose reply was not cached.
        RetryUncachedRep = 10068,
        /// Retry and recovery of this compound would be too difficult.
        UnsafeCompound = 10069,
        /// More operations than the channel permits.
        TooManyOps = 10070,
        /// The operation must follow a SEQUENCE.
        OpNotInSession = 10071,
        /// No hash algorithm in common.
        HashAlgUnsupp = 10072,
        /// The client still has sessions or state.
        ClientIdBusy = 10074,
        /// Input or output in a hole of a sparse file layout.
        PnfsIoHole = 10075,
        /// A retry that differs from the request that it claims to repeat.
        SeqFalseRetry = 10076,
        /// The highest slot of the request is invalid.
        BadHighSlot = 10077,
        /// The session is being destroyed.
        DeadSession = 10078,
        /// No encryption algorithm in common.
        EncrAlgUnsupp = 10079,
        /// Input or output without a layout.
        PnfsNoLayout = 10080,
        /// The operation must be the only one.
        NotOnlyOp = 10081,
        /// The state belongs to another principal.
        WrongCred = 10082,
        /// The object's type is wrong for this operation.
        WrongType = 10083,
        /// A directory delegation is not available.
        DirDelegUnavail = 10084,
        /// The client rejects the delegation.
        RejectDeleg = 10085,
        /// Another return of a layout is under way.
        ReturnConflict = 10086,
        /// The delegation was revoked.
        DelegRevoked = 10087,
        /// NFSv4.2: no copy between servers.
        PartnerNotSupp = 10088,
        /// NFSv4.2: no authorization for a copy between servers.
        PartnerNoAuth = 10089,
        /// NFSv4.2: this arm of the union is not supported.
        UnionNotSupp = 10090,
        /// NFSv4.2: the copy is not allowed by the destination.
        OffloadDenied = 10091,
        /// NFSv4.2: the label's format is not supported.
        WrongLfs = 10092,
        /// NFSv4.2: the label is invalid.
        BadLabel = 10093,
        /// NFSv4.2: a copy of the kind required is not supported.
        OffloadNoReqs = 10094,
        /// RFC 8276: no such extended attribute.
        NoXattr = 10095,
        /// RFC 8276: the extended attribute's value is too large.
        XattrTooBig = 10096,
    }
}

/// Arguments that do not decode are answered with NFS4ERR_BADXDR (RFC 8881 15.1.1.1).
impl From<XdrError> for Status {
    fn from(_: XdrError) -> Self {
        Self::BadXdr
    }
}

/// `union switch (nfsstat4)` with a void body on failure, as nearly all operations have: 0 and the successful arm, or a
/// status.
impl<T: Encode> Encode for Result<T, Status> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Ok(value) => {
                writer.u32(0);
                value.encode(writer);
            }
            Err(status) => status.encode(writer),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Result<T, Status> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(match decode_outcome(reader)? {
            Ok(()) => Ok(T::decode(reader)?),
            Err(status) => Err(status),
        })
    }
}

/// The discriminant of a result's union.
pub(crate) fn decode_outcome(reader: &mut Reader<'_>) -> Result<Result<(), Status>, XdrError> {
    match reader.u32()? {
        0 => Ok(Ok(())),
        status => Status::try_from(status).map(Err),
    }
}
