//! OPEN, RFC 8881 18.16: open a file, create it if asked to, and possibly get a delegation.

use crate::v4::acl::Ace;
use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name, StateOwner, Stateid, Verifier};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_bitflags, xdr_enum, xdr_struct};

/// Arguments.
#[doc(alias = "OPEN4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The sequence number of the open-owner; ignored since NFSv4.1.
    pub seqid: u32,
    /// The access, and the delegation that the client wants.
    pub share_access: ShareAccess,
    /// The access that is denied to others meanwhile.
    pub share_deny: ShareDeny,
    /// The owner.
    pub owner: StateOwner<'a>,
    /// Whether to create the file.
    pub how: How<'a>,
    /// Which file to open, and with which claim.
    pub claim: Claim<'a>,
}

xdr_struct!(Args<'a> { seqid, share_access, share_deny, owner, how, claim });

impl Args<'_> {
    /// Whether NFSv4.0 defines these values of `createmode4`, `open_claim_type4` and `open_delegation_type4` (RFC 7531).
    pub(crate) fn is_of_minor_version_0(&self) -> bool {
        let of_claim = match self.claim {
            Claim::Null(_) | Claim::DelegateCur(..) | Claim::DelegatePrev(_) => true,
            Claim::Previous(delegation) => delegation != DelegationType::NoneExt,
            Claim::Fh | Claim::DelegCurFh(_) | Claim::DelegPrevFh => false,
        };
        of_claim && !matches!(self.how, How::Create(CreateHow::ExclusiveWithAttributes(..)))
    }
}

/// Success. The file becomes the current filehandle.
#[doc(alias = "OPEN4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The open.
    pub stateid: Stateid,
    /// The directory.
    pub change: ChangeInfo,
    /// Properties of the open.
    pub flags: ResultFlags,
    /// The attributes that were set.
    pub attributes_set: AttributeSet,
    /// A delegation, or why there is none.
    pub delegation: Delegation<'a>,
}

xdr_struct!(ResOk<'a> { stateid, change, flags, attributes_set, delegation });

/// Result.
#[doc(alias = "OPEN4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;

xdr_bitflags! {
    /// The access of an open, and the delegation that the client wants (18.16.1).
    pub struct ShareAccess {
        /// Read.
        #[doc(alias = "OPEN4_SHARE_ACCESS_READ")]
        const READ = 0x1;
        /// Write.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WRITE")]
        const WRITE = 0x2;
        /// Tell the client when a delegation becomes available.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL")]
        const SIGNAL_WHEN_AVAILABLE = 0x1_0000;
        /// Push a delegation when it no longer conflicts with others.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED")]
        const PUSH_WHEN_UNCONTENDED = 0x2_0000;
        /// RFC 9754 5: with a delegation, also delegate the file's times.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS")]
        const DELEGATE_TIMES = 0x10_0000;
        /// RFC 9754 4: either the open or a delegation.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION")]
        const OPEN_XOR_DELEGATION = 0x20_0000;
    }
}

impl ShareAccess {
    /// Read and write.
    #[doc(alias = "OPEN4_SHARE_ACCESS_BOTH")]
    pub const BOTH: Self = Self::READ.union(Self::WRITE);
    /// The bits of [`Self::want`].
    #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_DELEG_MASK")]
    const WANT_MASK: u32 = 0xff00;

    /// The bits for reading and writing only.
    #[must_use]
    pub fn access(self) -> Self {
        self.intersection(Self::BOTH)
    }

    /// The delegation that the client wants.
    ///
    /// # Errors
    /// [`Status::Inval`] for an undefined value (18.16.3).
    pub fn want(self) -> Result<Want, Status> {
        Want::try_from(self.bits() & Self::WANT_MASK).map_err(|_| Status::Inval)
    }

    /// This access with a want.
    #[must_use]
    pub fn with_want(self, want: Want) -> Self {
        Self::from_bits_retain((self.bits() & !Self::WANT_MASK) | want as u32)
    }

    /// Whether all bits are defined.
    #[must_use]
    pub fn is_defined(self) -> bool {
        let named = Self::BOTH
            .union(Self::SIGNAL_WHEN_AVAILABLE)
            .union(Self::PUSH_WHEN_UNCONTENDED)
            .union(Self::DELEGATE_TIMES)
            .union(Self::OPEN_XOR_DELEGATION);
        self.bits() & !(named.bits() | Self::WANT_MASK) == 0 && self.want().is_ok()
    }
}

xdr_enum! {
    /// The delegation that a client wants.
    Want {
        /// No preference.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE")]
        NoPreference = 0x0000,
        /// A read delegation.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_READ_DELEG")]
        Read = 0x0100,
        /// A write delegation.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG")]
        Write = 0x0200,
        /// Either kind.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_ANY_DELEG")]
        Any = 0x0300,
        /// No delegation.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_NO_DELEG")]
        None = 0x0400,
        /// No delegation, and an earlier want is withdrawn.
        #[doc(alias = "OPEN4_SHARE_ACCESS_WANT_CANCEL")]
        Cancel = 0x0500,
    }
}

xdr_bitflags! {
    /// The access that is denied to others while a file is open.
    pub struct ShareDeny {
        /// Read.
        #[doc(alias = "OPEN4_SHARE_DENY_READ")]
        const READ = 0x1;
        /// Write.
        #[doc(alias = "OPEN4_SHARE_DENY_WRITE")]
        const WRITE = 0x2;
    }
}

impl ShareDeny {
    /// Nothing is denied.
    #[doc(alias = "OPEN4_SHARE_DENY_NONE")]
    pub const NONE: Self = Self::empty();
    /// Read and write.
    #[doc(alias = "OPEN4_SHARE_DENY_BOTH")]
    pub const BOTH: Self = Self::READ.union(Self::WRITE);

    /// Whether all bits are defined.
    #[must_use]
    pub fn is_defined(self) -> bool {
        Self::BOTH.contains(self)
    }
}

xdr_bitflags! {
    /// Properties of an open (18.16.1).
    pub struct ResultFlags {
        /// NFSv4.0 only: the client must confirm the open.
        #[doc(alias = "OPEN4_RESULT_CONFIRM")]
        const CONFIRM = 0x02;
        /// Locks may overlap and be split.
        #[doc(alias = "OPEN4_RESULT_LOCKTYPE_POSIX")]
        const LOCKTYPE_POSIX = 0x04;
        /// The file is kept while it is open, even if its last name is removed.
        #[doc(alias = "OPEN4_RESULT_PRESERVE_UNLINKED")]
        const PRESERVE_UNLINKED = 0x08;
        /// The server may tell when a lock that was refused becomes available (CB_NOTIFY_LOCK).
        #[doc(alias = "OPEN4_RESULT_MAY_NOTIFY_LOCK")]
        const MAY_NOTIFY_LOCK = 0x20;
    }
}

/// Whether to create the file.
#[doc(alias = "openflag4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How<'a> {
    /// The file must exist.
    #[doc(alias = "OPEN4_NOCREATE")]
    NoCreate,
    /// The file may be created.
    #[doc(alias = "OPEN4_CREATE")]
    Create(CreateHow<'a>),
}

impl Encode for How<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::NoCreate => writer.u32(0),
            Self::Create(how) => {
                writer.u32(1);
                how.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for How<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Ok(Self::NoCreate),
            1 => CreateHow::decode(reader).map(Self::Create),
            value => Err(XdrError::UndefinedValue { kind: "opentype4", value }),
        }
    }
}

/// What to do if the name exists.
#[doc(alias = "createhow4")]
#[doc(alias = "createmode4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateHow<'a> {
    /// Use the existing file; of the attributes only a size of 0 is then set (18.16.3).
    #[doc(alias = "UNCHECKED4")]
    Unchecked(Attributes<'a>),
    /// Fail if the name exists.
    #[doc(alias = "GUARDED4")]
    Guarded(Attributes<'a>),
    /// Fail if the name exists, unless an earlier transmission of the same call created the file, as the verifier shows.
    #[doc(alias = "EXCLUSIVE4")]
    Exclusive(Verifier),
    /// As [`Self::Exclusive`], with attributes.
    #[doc(alias = "EXCLUSIVE4_1")]
    #[doc(alias = "creatverfattr")]
    ExclusiveWithAttributes(Verifier, Attributes<'a>),
}

impl Encode for CreateHow<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Unchecked(attributes) => {
                writer.u32(0);
                attributes.encode(writer);
            }
            Self::Guarded(attributes) => {
                writer.u32(1);
                attributes.encode(writer);
            }
            Self::Exclusive(verifier) => {
                writer.u32(2);
                verifier.encode(writer);
            }
            Self::ExclusiveWithAttributes(verifier, attributes) => {
                writer.u32(3);
                verifier.encode(writer);
                attributes.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for CreateHow<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Decode::decode(reader).map(Self::Unchecked),
            1 => Decode::decode(reader).map(Self::Guarded),
            2 => Decode::decode(reader).map(Self::Exclusive),
            3 => Ok(Self::ExclusiveWithAttributes(Decode::decode(reader)?, Decode::decode(reader)?)),
            value => Err(XdrError::UndefinedValue { kind: "createmode4", value }),
        }
    }
}

/// Which file to open, and with which claim. The file is the current filehandle, or the given name in that directory.
#[doc(alias = "open_claim4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim<'a> {
    /// By name, without a special claim.
    #[doc(alias = "CLAIM_NULL")]
    Null(Name<'a>),
    /// Reclaimed after a restart of the server, with the delegation that the client had.
    #[doc(alias = "CLAIM_PREVIOUS")]
    Previous(DelegationType),
    /// By name, with the delegation that the client has.
    #[doc(alias = "CLAIM_DELEGATE_CUR")]
    DelegateCur(Stateid, Name<'a>),
    /// By name, with a delegation of an earlier incarnation of the client.
    #[doc(alias = "CLAIM_DELEGATE_PREV")]
    DelegatePrev(Name<'a>),
    /// The current filehandle, without a special claim.
    #[doc(alias = "CLAIM_FH")]
    Fh,
    /// The current filehandle, with the delegation that the client has.
    #[doc(alias = "CLAIM_DELEG_CUR_FH")]
    DelegCurFh(Stateid),
    /// The current filehandle, with a delegation of an earlier incarnation of the client.
    #[doc(alias = "CLAIM_DELEG_PREV_FH")]
    DelegPrevFh,
}

impl Encode for Claim<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Null(name) => {
                writer.u32(0);
                name.encode(writer);
            }
            Self::Previous(delegation_type) => {
                writer.u32(1);
                delegation_type.encode(writer);
            }
            Self::DelegateCur(stateid, name) => {
                writer.u32(2);
                stateid.encode(writer);
                name.encode(writer);
            }
            Self::DelegatePrev(name) => {
                writer.u32(3);
                name.encode(writer);
            }
            Self::Fh => writer.u32(4),
            Self::DelegCurFh(stateid) => {
                writer.u32(5);
                stateid.encode(writer);
            }
            Self::DelegPrevFh => writer.u32(6),
        }
    }
}

impl<'a> Decode<'a> for Claim<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Decode::decode(reader).map(Self::Null),
            1 => Decode::decode(reader).map(Self::Previous),
            2 => Ok(Self::DelegateCur(Decode::decode(reader)?, Decode::decode(reader)?)),
            3 => Decode::decode(reader).map(Self::DelegatePrev),
            4 => Ok(Self::Fh),
            5 => Decode::decode(reader).map(Self::DelegCurFh),
            6 => Ok(Self::DelegPrevFh),
            value => Err(XdrError::UndefinedValue { kind: "open_claim_type4", value }),
        }
    }
}

xdr_enum! {
    /// Kinds of delegations.
    #[doc(alias = "open_delegation_type4")]
    DelegationType {
        /// No delegation.
        #[doc(alias = "OPEN_DELEGATE_NONE")]
        None = 0,
        /// A read delegation.
        #[doc(alias = "OPEN_DELEGATE_READ")]
        Read = 1,
        /// A write delegation.
        #[doc(alias = "OPEN_DELEGATE_WRITE")]
        Write = 2,
        /// No delegation, with the reason.
        #[doc(alias = "OPEN_DELEGATE_NONE_EXT")]
        NoneExt = 3,
    }
}

/// A delegation, or why there is none.
#[doc(alias = "open_delegation4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation<'a> {
    /// No delegation, for a client that expressed no want.
    None,
    /// A read delegation.
    Read(ReadDelegation<'a>),
    /// A write delegation.
    Write(WriteDelegation<'a>),
    /// No delegation, for a client that expressed a want.
    NoneExt(WhyNone),
}

/// A read delegation.
#[doc(alias = "open_read_delegation4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadDelegation<'a> {
    /// The delegation.
    pub stateid: Stateid,
    /// Whether the delegation must be returned at once.
    pub recall: bool,
    /// Who may open the file for reading without asking the server.
    pub permissions: Ace<'a>,
}

xdr_struct!(ReadDelegation<'a> { stateid, recall, permissions });

/// A write delegation.
#[doc(alias = "open_write_delegation4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteDelegation<'a> {
    /// The delegation.
    pub stateid: Stateid,
    /// Whether the delegation must be returned at once.
    pub recall: bool,
    /// How much the client may write without telling the server.
    pub space_limit: SpaceLimit,
    /// Who may open the file without asking the server.
    pub permissions: Ace<'a>,
}

xdr_struct!(WriteDelegation<'a> { stateid, recall, space_limit, permissions });

impl Encode for Delegation<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::None => DelegationType::None.encode(writer),
            Self::Read(delegation) => {
                DelegationType::Read.encode(writer);
                delegation.encode(writer);
            }
            Self::Write(delegation) => {
                DelegationType::Write.encode(writer);
                delegation.encode(writer);
            }
            Self::NoneExt(why) => {
                DelegationType::NoneExt.encode(writer);
                why.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for Delegation<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match DelegationType::decode(reader)? {
            DelegationType::None => Ok(Self::None),
            DelegationType::Read => Decode::decode(reader).map(Self::Read),
            DelegationType::Write => Decode::decode(reader).map(Self::Write),
            DelegationType::NoneExt => Decode::decode(reader).map(Self::NoneExt),
        }
    }
}

/// How much a client may write into its cache, so that the server will have room for it.
#[doc(alias = "nfs_space_limit4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceLimit {
    /// Up to this file size.
    #[doc(alias = "NFS_LIMIT_SIZE")]
    FileBytes(u64),
    /// Up to this many blocks.
    #[doc(alias = "NFS_LIMIT_BLOCKS")]
    #[doc(alias = "nfs_modified_limit4")]
    Blocks {
        /// The number of blocks.
        blocks: u32,
        /// The size of a block in bytes.
        bytes_per_block: u32,
    },
}

impl Encode for SpaceLimit {
    fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::FileBytes(bytes) => {
                writer.u32(1);
                writer.u64(bytes);
            }
            Self::Blocks { blocks, bytes_per_block } => {
                writer.u32(2);
                writer.u32(blocks);
                writer.u32(bytes_per_block);
            }
        }
    }
}

impl Decode<'_> for SpaceLimit {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            1 => reader.u64().map(Self::FileBytes),
            2 => Ok(Self::Blocks { blocks: reader.u32()?, bytes_per_block: reader.u32()? }),
            value => Err(XdrError::UndefinedValue { kind: "limit_by4", value }),
        }
    }
}

/// Why there is no delegation.
#[doc(alias = "open_none_delegation4")]
#[doc(alias = "why_no_delegation4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNone {
    /// The client did not want one.
    #[doc(alias = "WND4_NOT_WANTED")]
    NotWanted,
    /// Others use the file.
    #[doc(alias = "WND4_CONTENTION")]
    Contention {
        /// Whether the server will push one later.
        will_push: bool,
    },
    /// The server has too many delegations.
    #[doc(alias = "WND4_RESOURCE")]
    Resource {
        /// Whether the server will tell when one becomes available.
        will_signal: bool,
    },
    /// Not available for objects of this type.
    #[doc(alias = "WND4_NOT_SUPP_FTYPE")]
    TypeNotSupported,
    /// Not available for writing for objects of this type.
    #[doc(alias = "WND4_WRITE_DELEG_NOT_SUPP_FTYPE")]
    WriteNotSupported,
    /// Delegations cannot be upgraded.
    #[doc(alias = "WND4_NOT_SUPP_UPGRADE")]
    UpgradeNotSupported,
    /// Delegations cannot be downgraded.
    #[doc(alias = "WND4_NOT_SUPP_DOWNGRADE")]
    DowngradeNotSupported,
    /// The client has withdrawn its want.
    #[doc(alias = "WND4_CANCELLED")]
    Cancelled,
    /// The object is a directory.
    #[doc(alias = "WND4_IS_DIR")]
    IsDir,
}

impl Encode for WhyNone {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(match self {
            Self::NotWanted => 0,
            Self::Contention { .. } => 1,
            Self::Resource { .. } => 2,
            Self::TypeNotSupported => 3,
            Self::WriteNotSupported => 4,
            Self::UpgradeNotSupported => 5,
            Self::DowngradeNotSupported => 6,
            Self::Cancelled => 7,
            Self::IsDir => 8,
        });
        if let Self::Contention { will_push: later } | Self::Resource { will_signal: later } = *self {
            writer.bool(later);
        }
    }
}

impl Decode<'_> for WhyNone {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(match reader.u32()? {
            0 => Self::NotWanted,
            1 => Self::Contention { will_push: reader.bool()? },
            2 => Self::Resource { will_signal: reader.bool()? },
            3 => Self::TypeNotSupported,
            4 => Self::WriteNotSupported,
            5 => Self::UpgradeNotSupported,
            6 => Self::DowngradeNotSupported,
            7 => Self::Cancelled,
            8 => Self::IsDir,
            value => return Err(XdrError::UndefinedValue { kind: "why_no_delegation4", value }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_is_the_second_byte_of_the_access() {
        let access = ShareAccess::BOTH.with_want(Want::Write);
        assert_eq!(access.bits(), 0x0203); // OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG | OPEN4_SHARE_ACCESS_BOTH
        assert_eq!(access.access(), ShareAccess::BOTH);
        assert_eq!(access.want(), Ok(Want::Write));
        assert!(access.union(ShareAccess::SIGNAL_WHEN_AVAILABLE).is_defined());
        let undefined = ShareAccess::from_bits_retain(0x0601);
        assert_eq!(undefined.want(), Err(Status::Inval));
        assert!(!undefined.is_defined());
        assert!(!ShareAccess::from_bits_retain(0x5).is_defined());
        assert!(!ShareDeny::from_bits_retain(0x4).is_defined());
        assert!(ShareDeny::BOTH.is_defined());
    }
}
