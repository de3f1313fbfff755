//! The types that many procedures share, RFC 1813 2.5 and 2.6.

use std::fmt;

use crate::v3::attr::{Attributes, WccData};
use crate::v3::status::Status;
use crate::xdr::{Decode, Encode, Failure, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The longest filehandle in bytes.
#[doc(alias = "NFS3_FHSIZE")]
pub const FILE_HANDLE_BYTES_MAX: usize = 64;

/// The longest name of a directory entry in bytes.
///
/// The protocol itself sets no limit. A server reports its own with PATHCONF, and answers a longer name with
/// NFS3ERR_NAMETOOLONG.
pub const NAME_BYTES_MAX: usize = 255;

/// The longest text of a symbolic link in bytes (the protocol sets no limit; this is the limit of POSIX systems).
pub const PATH_BYTES_MAX: usize = 4095;

/// The server's name for an object. Only the server knows the meaning of the bytes.
#[doc(alias = "nfs_fh3")]
#[derive(Clone, Copy)]
pub struct FileHandle {
    length: u8,
    bytes: [u8; FILE_HANDLE_BYTES_MAX],
}

impl FileHandle {
    /// A handle of these bytes; `None` if there are more than [`FILE_HANDLE_BYTES_MAX`].
    #[must_use]
    pub fn new(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; FILE_HANDLE_BYTES_MAX];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { length: u8::try_from(value.len()).ok()?, bytes })
    }

    /// The bytes of the handle.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl PartialEq for FileHandle {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FileHandle {}

impl fmt::Debug for FileHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FileHandle(")?;
        for byte in self.as_bytes() {
            write!(formatter, "{byte:02x}")?;
        }
        formatter.write_str(")")
    }
}

impl Encode for FileHandle {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.as_bytes());
    }
}

impl Decode<'_> for FileHandle {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        let value = reader.opaque(FILE_HANDLE_BYTES_MAX)?;
        Self::new(value).ok_or(XdrError::TooLong { length: value.len(), limit: FILE_HANDLE_BYTES_MAX })
    }
}

/// The name of a directory entry as received: of any length, with any bytes.
#[doc(alias = "filename3")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'a>(pub &'a [u8]);

impl<'a> Name<'a> {
    /// The bytes of the name.
    ///
    /// # Errors
    /// [`Status::NameTooLong`] beyond [`NAME_BYTES_MAX`].
    pub fn within_limit(self) -> Result<&'a [u8], Status> {
        if self.0.len() > NAME_BYTES_MAX { Err(Status::NameTooLong) } else { Ok(self.0) }
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl Encode for Name<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Name<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Decode::decode(reader).map(Self)
    }
}

/// The text of a symbolic link as received.
#[doc(alias = "nfspath3")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path<'a>(pub &'a [u8]);

impl<'a> Path<'a> {
    /// The bytes of the text.
    ///
    /// # Errors
    /// [`Status::NameTooLong`] beyond [`PATH_BYTES_MAX`].
    pub fn within_limit(self) -> Result<&'a [u8], Status> {
        if self.0.len() > PATH_BYTES_MAX { Err(Status::NameTooLong) } else { Ok(self.0) }
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl Encode for Path<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Path<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Decode::decode(reader).map(Self)
    }
}

/// A name in a directory.
#[doc(alias = "diropargs3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirOpArgs<'a> {
    /// The directory.
    pub dir: FileHandle,
    /// The name in it.
    pub name: Name<'a>,
}

xdr_struct!(DirOpArgs<'a> { dir, name });

/// A moment: seconds since 1970 and nanoseconds, as on the wire.
#[doc(alias = "nfstime3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: u32,
    /// Nanoseconds; a valid time has less than 10^9.
    pub nanoseconds: u32,
}

xdr_struct!(Time { seconds, nanoseconds });

/// Major and minor number of a device.
#[doc(alias = "specdata3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpecData {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

xdr_struct!(SpecData { major, minor });

xdr_enum! {
    /// The type of an object.
    #[doc(alias = "ftype3")]
    FileType {
        /// Regular file.
        Regular = 1,
        /// Directory.
        Directory = 2,
        /// Block device.
        BlockDevice = 3,
        /// Character device.
        CharacterDevice = 4,
        /// Symbolic link.
        SymbolicLink = 5,
        /// Socket.
        Socket = 6,
        /// Named pipe.
        Fifo = 7,
    }
}

xdr_enum! {
    /// How durable a write must be, or was.
    #[doc(alias = "stable_how")]
    StableHow {
        /// Not durable yet: a COMMIT follows.
        Unstable = 0,
        /// The data, and what is needed to find it, are durable.
        DataSync = 1,
        /// The data and all attributes are durable.
        FileSync = 2,
    }
}

/// The verifier of READDIR, which identifies a state of the directory.
#[doc(alias = "cookieverf3")]
pub type CookieVerifier = [u8; 8];
/// The verifier of CREATE, which identifies an exclusive creation.
#[doc(alias = "createverf3")]
pub type CreateVerifier = [u8; 8];
/// The verifier of WRITE and COMMIT, which identifies a run of the server: when it changes, uncommitted data may be
/// lost.
#[doc(alias = "writeverf3")]
pub type WriteVerifier = [u8; 8];

/// What CREATE, MKDIR, SYMLINK and MKNOD return.
#[doc(alias = "CREATE3resok")]
#[doc(alias = "MKDIR3resok")]
#[doc(alias = "SYMLINK3resok")]
#[doc(alias = "MKNOD3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedOk {
    /// The new object's filehandle.
    pub object: Option<FileHandle>,
    /// The attributes of the object.
    pub object_attributes: Option<Attributes>,
    /// The directory before and after the operation.
    pub dir_wcc: WccData,
}

xdr_struct!(CreatedOk { object, object_attributes, dir_wcc });

/// A failure without attributes.
impl<B: Default> From<Status> for Failure<Status, B> {
    fn from(status: Status) -> Self {
        Self { status, body: B::default() }
    }
}

/// A result that contains an object's attributes on failure.
pub type ResWithAttributes<T> = Result<T, Failure<Status, Option<Attributes>>>;
/// A result that contains weak cache consistency data on failure.
pub type ResWithWcc<T> = Result<T, Failure<Status, WccData>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filehandle_has_at_most_64_bytes() {
        let longest = FileHandle::new(&[9; 64]).unwrap();
        assert_eq!(longest.as_bytes(), [9; 64]);
        assert_eq!(FileHandle::from_bytes(&longest.encode_to_vec()), Ok(longest));
        assert_eq!(FileHandle::new(&[9; 65]), None);
        let too_long = (&[9_u8; 65][..]).encode_to_vec();
        assert_eq!(FileHandle::from_bytes(&too_long), Err(XdrError::TooLong { length: 65, limit: 64 }));
        assert_eq!(FileHandle::from_bytes(&[0; 4]), Ok(FileHandle::new(&[]).unwrap()));
    }

    #[test]
    fn a_name_has_at_most_255_bytes_and_a_longer_one_has_its_own_status() {
        assert_eq!(Name(&[b'n'; 255]).within_limit(), Ok(&[b'n'; 255][..]));
        let longer = (&[b'n'; 256][..]).encode_to_vec();
        assert_eq!(Name::from_bytes(&longer).unwrap().within_limit(), Err(Status::NameTooLong));
    }

    #[test]
    fn a_path_has_at_most_4095_bytes() {
        assert!(Path(&[b'p'; 4095]).within_limit().is_ok());
        assert_eq!(Path(&[b'p'; 4096]).within_limit(), Err(Status::NameTooLong));
    }
}
