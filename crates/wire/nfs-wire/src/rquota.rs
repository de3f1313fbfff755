//! Quotas of remote users: the program of `rquotad`, versions 1 and 2 (rquota.x of SunOS; version 2, ext_rquota, adds groups).

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The program's number.
pub const PROGRAM: u32 = 100_011;
/// The version that knows users only.
#[doc(alias = "RQUOTAVERS")]
pub const VERSION_1: u32 = 1;
/// The version that knows users and groups.
#[doc(alias = "EXT_RQUOTAVERS")]
pub const VERSION_2: u32 = 2;
/// The longest path in bytes.
#[doc(alias = "RQ_PATHLEN")]
pub const PATH_BYTES_MAX: usize = 1024;

xdr_enum! {
    /// The procedures. Those of version 2 that set quotas are not here.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// The quota of a user.
        GetQuota = 1,
        /// The same, if it is active.
        GetActiveQuota = 2,
    }
}

xdr_enum! {
    /// What a number stands for in version 2.
    Kind {
        /// A user.
        User = 0,
        /// A group.
        Group = 1,
    }
}

/// A path as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path<'a>(pub &'a [u8]);

impl Encode for Path<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Path<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(PATH_BYTES_MAX).map(Self)
    }
}

/// Whose quota is asked for in version 1.
#[doc(alias = "getquota_args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserArgs<'a> {
    /// The path that is mounted.
    pub path: Path<'a>,
    /// The user.
    pub uid: u32,
}

xdr_struct!(UserArgs<'a> { path, uid });

/// Whose quota is asked for in version 2.
#[doc(alias = "ext_getquota_args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Args<'a> {
    /// The path that is mounted.
    pub path: Path<'a>,
    /// What `id` stands for.
    pub kind: Kind,
    /// The user or group.
    pub id: u32,
}

xdr_struct!(Args<'a> { path, kind, id });

/// A quota. Amounts are blocks of `block_bytes`; a limit of 0 limits nothing.
#[doc(alias = "rquota")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Whether the quota holds.
    pub active: bool,
    /// The hard limit.
    pub hard: u32,
    /// The soft limit.
    pub soft: u32,
    /// What is held.
    pub used: u32,
    /// The most files.
    pub files_hard: u32,
    /// Files from which on the user is warned.
    pub files_soft: u32,
    /// The files.
    pub files: u32,
    /// Seconds for which more than the soft limit may still be held, as a signed number; 0 if no more is held.
    pub seconds_left: u32,
    /// The same of files.
    pub files_seconds_left: u32,
}

xdr_struct!(Quota {
    block_bytes,
    active,
    hard,
    soft,
    used,
    files_hard,
    files_soft,
    files,
    seconds_left,
    files_seconds_left
});

/// The result of both procedures.
#[doc(alias = "getquota_rslt")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Res {
    /// Q_OK
    Quota(Quota),
    /// Q_NOQUOTA
    None,
    /// Q_EPERM
    NotPermitted,
}

impl Encode for Res {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Quota(quota) => {
                writer.u32(1);
                quota.encode(writer);
            }
            Self::None => writer.u32(2),
            Self::NotPermitted => writer.u32(3),
        }
    }
}

impl Decode<'_> for Res {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            1 => Quota::decode(reader).map(Self::Quota),
            2 => Ok(Self::None),
            3 => Ok(Self::NotPermitted),
            value => Err(XdrError::UndefinedValue { kind: "gqr_status", value }),
        }
    }
}
