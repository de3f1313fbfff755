//! MOUNT version 3, RFC 1813 appendix I: from an export's path to its root filehandle.

use crate::v3::types::FileHandle;
use crate::xdr::{Decode, Encode, Failure, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The program's number.
pub const PROGRAM: u32 = 100_005;
/// The program's version for NFSv3.
pub const VERSION: u32 = 3;
/// The longest path in bytes.
#[doc(alias = "MNTPATHLEN")]
pub const PATH_BYTES_MAX: usize = 1024;
/// The longest name in bytes.
#[doc(alias = "MNTNAMLEN")]
pub const NAME_BYTES_MAX: usize = 255;

xdr_enum! {
    /// The procedures, RFC 1813 5.2.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// Path to filehandle.
        Mnt = 1,
        /// The mounts of all clients.
        Dump = 2,
        /// Forget one mount.
        Umnt = 3,
        /// Forget all mounts of the caller.
        UmntAll = 4,
        /// The exports, and who may mount them.
        Export = 5,
    }
}

impl Procedure {
    /// The name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Mnt => "MNT",
            Self::Dump => "DUMP",
            Self::Umnt => "UMNT",
            Self::UmntAll => "UMNTALL",
            Self::Export => "EXPORT",
        }
    }
}

xdr_enum! {
    /// Why MNT failed, RFC 1813 5.1.5.
    #[doc(alias = "mountstat3")]
    Status {
        /// Not the owner.
        Perm = 1,
        /// No such export or directory.
        NoEnt = 2,
        /// A hard error.
        Io = 5,
        /// The caller may not mount this.
        Acces = 13,
        /// The path leads to an object that is not a directory.
        NotDir = 20,
        /// Invalid argument.
        Inval = 22,
        /// A name or the path is too long.
        NameTooLong = 63,
        /// Not supported.
        NotSupp = 10004,
        /// The server failed.
        ServerFault = 10006,
    }
}

/// A path: the argument of MNT and UMNT. At most [`PATH_BYTES_MAX`] bytes.
#[doc(alias = "dirpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DirPath<'a>(pub &'a [u8]);

impl Encode for DirPath<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for DirPath<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(PATH_BYTES_MAX).map(Self)
    }
}

/// A host's or group's name. At most [`NAME_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'a>(pub &'a [u8]);

impl Encode for Name<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Name<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(NAME_BYTES_MAX).map(Self)
    }
}

/// What MNT returns.
#[doc(alias = "mountres3_ok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MntOk {
    /// The root of the export, or of the directory below it that was asked for.
    pub file_handle: FileHandle,
    /// The authentication flavors that the export accepts, the preferred one first.
    pub auth_flavors: Vec<u32>,
}

/// The result of MNT.
#[doc(alias = "mountres3")]
pub type MntRes = Result<MntOk, Failure<Status, ()>>;

/// More flavors than exist; this only limits the decoder.
const AUTH_FLAVORS_MAX: usize = 64;

impl Encode for MntOk {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.file_handle.encode(writer);
        writer.length(self.auth_flavors.len());
        for flavor in &self.auth_flavors {
            writer.u32(*flavor);
        }
    }
}

impl Decode<'_> for MntOk {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        let file_handle = FileHandle::decode(reader)?;
        let count = reader.length(AUTH_FLAVORS_MAX)?;
        let auth_flavors = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
        Ok(Self { file_handle, auth_flavors })
    }
}

/// One line of what DUMP returns.
#[doc(alias = "mountbody")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountEntry<'a> {
    /// The client.
    pub host_name: Name<'a>,
    /// What it mounted.
    pub directory: DirPath<'a>,
}

xdr_struct!(MountEntry<'a> { host_name, directory });

/// One export of what EXPORT returns.
#[doc(alias = "exportnode")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry<'a> {
    /// The path to mount.
    pub directory: DirPath<'a>,
    /// The clients that may mount it; an empty list means everybody.
    pub groups: List<Name<'a>>,
}

xdr_struct!(ExportEntry<'a> { directory, groups });

/// A linked list of the specification (`mountlist`, `exports`, `groups`): a TRUE before each element, and a FALSE at
/// the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T: Encode> Encode for List<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        for element in &self.0 {
            writer.bool(true);
            element.encode(writer);
        }
        writer.bool(false);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let mut elements = Vec::new();
        while reader.bool()? {
            elements.push(T::decode(reader)?);
        }
        Ok(Self(elements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_at_most_1024_bytes_and_a_name_255() {
        let longest = [b'p'; 1024];
        assert_eq!(DirPath::from_bytes(&DirPath(&longest).encode_to_vec()), Ok(DirPath(&longest)));
        assert_eq!(
            DirPath::from_bytes(&DirPath(&[b'p'; 1025]).encode_to_vec()),
            Err(XdrError::TooLong { length: 1025, limit: 1024 })
        );
        assert_eq!(
            Name::from_bytes(&Name(&[b'n'; 256]).encode_to_vec()),
            Err(XdrError::TooLong { length: 256, limit: 255 })
        );
    }
}
