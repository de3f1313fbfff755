//! The types that many operations share: RFC 8881 section 3 and RFC 7862 section 4 and 15.

use std::fmt;

use crate::auth_sys::AuthSys;
use crate::rpc::flavor;
use crate::v4::status::Status;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The longest filehandle in bytes.
#[doc(alias = "NFS4_FHSIZE")]
pub const FILE_HANDLE_BYTES_MAX: usize = 128;

/// The longest owner and the longest server scope, in bytes.
#[doc(alias = "NFS4_OPAQUE_LIMIT")]
pub const OPAQUE_BYTES_MAX: usize = 1024;

/// The longest name of a directory entry in bytes that a server of this project accepts.
pub const NAME_BYTES_MAX: usize = 255;

/// The longest text of a symbolic link in bytes (the protocol sets no limit; this is the limit of POSIX systems).
pub const PATH_BYTES_MAX: usize = 4095;

/// Declares opaque data of fixed length with its codec.
macro_rules! opaque_fixed {
    ($(#[$meta:meta])* $name:ident[$bytes:literal]) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
        pub struct $name(pub [u8; $bytes]);

        impl Encode for $name {
            fn encode(&self, writer: &mut Writer<'_>) {
                writer.opaque_fixed(&self.0);
            }
        }

        impl Decode<'_> for $name {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
                reader.opaque_fixed().map(Self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                debug_bytes(stringify!($name), &self.0, formatter)
            }
        }
    };
}

opaque_fixed! {
    /// The identifier of a session.
    #[doc(alias = "sessionid4")]
    SessionId[16]
}

opaque_fixed! {
    /// A value that only its creator compares and understands. It identifies the run of a client or server, an
    /// exclusive creation, or a state of a directory.
    #[doc(alias = "verifier4")]
    Verifier[8]
}

opaque_fixed! {
    /// The part of a stateid that identifies the state.
    StateidOther[12]
}

fn debug_bytes(name: &str, bytes: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(formatter, "{name}(")?;
    for byte in bytes {
        write!(formatter, "{byte:02x}")?;
    }
    formatter.write_str(")")
}

/// The server's number for a client.
#[doc(alias = "clientid4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

impl Encode for ClientId {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u64(self.0);
    }
}

impl Decode<'_> for ClientId {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u64().map(Self)
    }
}

/// The server's name for an object, of at most [`FILE_HANDLE_BYTES_MAX`] bytes. Only the server knows their meaning.
#[doc(alias = "nfs_fh4")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle<'a>(pub &'a [u8]);

impl fmt::Debug for FileHandle<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_bytes("FileHandle", self.0, formatter)
    }
}

impl Encode for FileHandle<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for FileHandle<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(FILE_HANDLE_BYTES_MAX).map(Self)
    }
}

/// A reference to state: an open, byte-range locks, a delegation or a copy under way (RFC 8881 8.2).
#[doc(alias = "stateid4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stateid {
    /// How often the state has changed; 0 means the current version.
    pub seqid: u32,
    /// The state.
    pub other: StateidOther,
}

xdr_struct!(Stateid { seqid, other });

impl Stateid {
    /// No open at all (8.2.3).
    pub const ANONYMOUS: Self = Self { seqid: 0, other: StateidOther([0; 12]) };
    /// As [`Self::ANONYMOUS`], but a READ may ignore share reservations and locks (8.2.3).
    pub const READ_BYPASS: Self = Self { seqid: u32::MAX, other: StateidOther([0xff; 12]) };
    /// The stateid that the previous operation of this COMPOUND returned (8.2.3, 16.2.3.1.2).
    pub const CURRENT: Self = Self { seqid: 1, other: StateidOther([0; 12]) };
    /// Never valid (8.2.3).
    pub const INVALID: Self = Self { seqid: u32::MAX, other: StateidOther([0; 12]) };

    /// Whether `other` is all zeros or all ones: then the stateid is a special one, or invalid (8.2.3).
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.other.0 == [0; 12] || self.other.0 == [0xff; 12]
    }
}

/// A component of a path as received: of any length, with any bytes.
#[doc(alias = "component4")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'a>(pub &'a [u8]);

impl<'a> Name<'a> {
    /// The bytes of the name, if a directory can contain it.
    ///
    /// # Errors
    /// The statuses of RFC 8881 15.1.7 and 14.5: [`Status::Inval`] if the name is empty or not UTF-8;
    /// [`Status::NameTooLong`] beyond [`NAME_BYTES_MAX`]; [`Status::BadChar`] if it has a slash or a NUL;
    /// [`Status::BadName`] for `.` and `..`, to which NFSv4 gives no meaning (18.13.4).
    pub fn checked(self) -> Result<&'a [u8], Status> {
        if self.0.is_empty() || std::str::from_utf8(self.0).is_err() {
            return Err(Status::Inval);
        }
        if self.0.len() > NAME_BYTES_MAX {
            return Err(Status::NameTooLong);
        }
        if self.0.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return Err(Status::BadChar);
        }
        if matches!(self.0, b"." | b"..") { Err(Status::BadName) } else { Ok(self.0) }
    }
}

/// Text: an owner, a tag, a symbolic link, a domain.
#[doc(alias = "utf8string")]
#[doc(alias = "linktext4")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text, if it is UTF-8.
    ///
    /// # Errors
    /// [`Status::Inval`] if the text is not UTF-8 (RFC 8881 14.5).
    pub fn as_str(self) -> Result<&'a str, Status> {
        std::str::from_utf8(self.0).map_err(|_| Status::Inval)
    }

    /// The bytes of a symbolic link's text.
    ///
    /// # Errors
    /// [`Status::Inval`] if the text is empty (RFC 8881 18.4.3); [`Status::NameTooLong`] beyond [`PATH_BYTES_MAX`].
    pub fn within_path_limit(self) -> Result<&'a [u8], Status> {
        match self.0.len() {
            0 => Err(Status::Inval),
            1..=PATH_BYTES_MAX => Ok(self.0),
            _ => Err(Status::NameTooLong),
        }
    }
}

/// Opaque data or text without a limit of its own, displayed as text.
macro_rules! shown_as_text {
    ($name:ident) => {
        impl fmt::Debug for $name<'_> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "\"{}\"", self.0.escape_ascii())
            }
        }

        impl Encode for $name<'_> {
            fn encode(&self, writer: &mut Writer<'_>) {
                writer.opaque(self.0);
            }
        }

        impl<'a> Decode<'a> for $name<'a> {
            fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
                Decode::decode(reader).map(Self)
            }
        }
    };
}

shown_as_text!(Name);
shown_as_text!(Text);

/// Opaque data of at most [`OPAQUE_BYTES_MAX`] bytes that names an owner or a scope.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId<'a>(pub &'a [u8]);

impl fmt::Debug for OwnerId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl Encode for OwnerId<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for OwnerId<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(OPAQUE_BYTES_MAX).map(Self)
    }
}

/// The owner of opens or byte-range locks: a process, or what the client treats as one.
#[doc(alias = "state_owner4")]
#[doc(alias = "open_owner4")]
#[doc(alias = "lock_owner4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateOwner<'a> {
    /// Identifies the client in NFSv4.0; ignored since NFSv4.1: the session does (RFC 8881 18.16.3, 18.10.3).
    pub client_id: ClientId,
    /// The name that the client gives to the owner.
    pub owner: OwnerId<'a>,
}

xdr_struct!(StateOwner<'a> { client_id, owner });

/// A moment: seconds since 1970, which may be negative, and nanoseconds, which always count upwards.
#[doc(alias = "nfstime4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds; a valid time has less than 10^9.
    pub nanoseconds: u32,
}

xdr_struct!(Time { seconds, nanoseconds });

/// How to set a time.
#[doc(alias = "settime4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// Set it to the server's time.
    #[doc(alias = "SET_TO_SERVER_TIME4")]
    ServerTime,
    /// Set it to this time.
    #[doc(alias = "SET_TO_CLIENT_TIME4")]
    ClientTime(Time),
}

impl Encode for SetTime {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::ServerTime => writer.u32(0),
            Self::ClientTime(time) => {
                writer.u32(1);
                time.encode(writer);
            }
        }
    }
}

impl Decode<'_> for SetTime {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Ok(Self::ServerTime),
            1 => Time::decode(reader).map(Self::ClientTime),
            value => Err(XdrError::UndefinedValue { kind: "time_how4", value }),
        }
    }
}

/// A file system.
#[doc(alias = "fsid4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fsid {
    /// Major part.
    pub major: u64,
    /// Minor part.
    pub minor: u64,
}

xdr_struct!(Fsid { major, minor });

/// Major and minor number of a device.
#[doc(alias = "specdata4")]
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
    #[doc(alias = "nfs_ftype4")]
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
        /// Directory of named attributes.
        AttributeDirectory = 8,
        /// Named attribute.
        NamedAttribute = 9,
    }
}

xdr_enum! {
    /// How durable a write must be, or was.
    #[doc(alias = "stable_how4")]
    StableHow {
        /// Not durable yet: a COMMIT follows.
        Unstable = 0,
        /// The data, and what is needed to find it, are durable.
        DataSync = 1,
        /// The data and all attributes are durable.
        FileSync = 2,
    }
}

/// A directory's change attribute before and after an operation (RFC 8881 3.3.8).
#[doc(alias = "change_info4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeInfo {
    /// Whether nothing else can have changed the directory between the two values.
    pub atomic: bool,
    /// Before the operation.
    pub before: u64,
    /// After the operation.
    pub after: u64,
}

xdr_struct!(ChangeInfo { atomic, before, after });

/// A network address, RFC 5665: universal addresses such as `192.0.2.1.8.1`.
#[doc(alias = "netaddr4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetAddr<'a> {
    /// `tcp`, `tcp6`, `rdma`, `rdma6`.
    pub netid: Text<'a>,
    /// The universal address.
    pub address: Text<'a>,
}

xdr_struct!(NetAddr<'a> { netid, address });

/// A set of small numbers: attributes, operations, notification types, hints. Numbers from [`Bitmap::NUMBERS`] on,
/// which are not assigned yet, are not kept.
#[doc(alias = "bitmap4")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bitmap(u128);

impl Bitmap {
    /// Numbers below this can be in a set.
    pub const NUMBERS: u32 = u128::BITS;
    /// The most 32-bit words of a received set.
    pub const WORDS_MAX: usize = 32;
    /// Words that are kept.
    const WORDS: u32 = Self::NUMBERS / u32::BITS;
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    const fn bit(number: u32) -> u128 {
        match 1_u128.checked_shl(number) {
            Some(bit) => bit,
            None => 0,
        }
    }

    /// Whether `number` is in the set.
    #[must_use]
    pub const fn contains(self, number: u32) -> bool {
        self.0 & Self::bit(number) != 0
    }

    /// The set with `number`.
    #[must_use]
    pub const fn with(self, number: u32) -> Self {
        Self(self.0 | Self::bit(number))
    }

    /// The set without `number`.
    #[must_use]
    pub const fn without(self, number: u32) -> Self {
        Self(self.0 & !Self::bit(number))
    }

    /// The numbers in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The numbers in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The numbers in this set that are not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let number = rest.0.trailing_zeros();
            let found = !rest.is_empty();
            rest = rest.without(number);
            found.then_some(number)
        })
    }

    /// The set of these numbers.
    #[must_use]
    pub const fn of(numbers: &[u32]) -> Self {
        let mut set = Self::EMPTY;
        let mut rest = numbers;
        while let Some((number, after)) = rest.split_first() {
            set = set.with(*number);
            rest = after;
        }
        set
    }

    /// The set's 32-bit words, without trailing words that are zero.
    fn words(self) -> impl Iterator<Item = u32> {
        let used = Self::NUMBERS.saturating_sub(self.0.leading_zeros()).div_ceil(u32::BITS);
        (0..used).map(move |word| {
            let shifted = self.0.checked_shr(word.saturating_mul(u32::BITS)).unwrap_or(0);
            u32::try_from(shifted & u128::from(u32::MAX)).unwrap_or(0)
        })
    }

    /// Overwrites another set, whose words are between `start` and `end` of the buffer, with this one. The other set's
    /// largest number must be at least as large.
    pub(crate) fn patch(self, writer: &mut Writer<'_>, start: usize, end: usize) {
        let positions = (start..end).step_by(4).skip(1);
        for (position, word) in positions.zip(self.words().chain(std::iter::repeat(0))) {
            writer.patch_u32(position, word);
        }
    }

    fn add_word(&mut self, word: u32, bits: u32) {
        self.0 |= u128::from(bits).checked_shl(word.saturating_mul(u32::BITS)).unwrap_or(0);
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl Encode for Bitmap {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.length(self.words().count());
        for word in self.words() {
            writer.u32(word);
        }
    }
}

impl Decode<'_> for Bitmap {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        let mut set = Self::EMPTY;
        for word in (0_u32..).take(reader.length(Self::WORDS_MAX)?) {
            let bits = reader.u32()?;
            if word < Self::WORDS {
                set.add_word(word, bits);
            }
        }
        Ok(set)
    }
}

/// A credential that a server may use in callbacks.
#[doc(alias = "callback_sec_parms4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityParameters<'a> {
    /// AUTH_NONE.
    None,
    /// AUTH_SYS, with this credential.
    Sys(AuthSys<'a>),
    /// RPCSEC_GSS.
    Gss(GssHandles<'a>),
}

/// Handles of existing GSS contexts.
#[doc(alias = "gss_cb_handles4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GssHandles<'a> {
    /// `rpc_gss_svc_t`: none, integrity, privacy.
    pub service: u32,
    /// The server's handle.
    pub from_server: &'a [u8],
    /// The client's handle.
    pub from_client: &'a [u8],
}

xdr_struct!(GssHandles<'a> { service, from_server, from_client });

impl Encode for SecurityParameters<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::None => writer.u32(flavor::AUTH_NONE),
            Self::Sys(credential) => {
                writer.u32(flavor::AUTH_SYS);
                credential.encode(writer);
            }
            Self::Gss(handles) => {
                writer.u32(flavor::RPCSEC_GSS);
                handles.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for SecurityParameters<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            flavor::AUTH_NONE => Ok(Self::None),
            flavor::AUTH_SYS => AuthSys::decode(reader).map(Self::Sys),
            flavor::RPCSEC_GSS => GssHandles::decode(reader).map(Self::Gss),
            value => Err(XdrError::UndefinedValue { kind: "callback_sec_parms4", value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filehandle_has_at_most_128_bytes() {
        let longest = (&[9_u8; 128][..]).encode_to_vec();
        assert_eq!(FileHandle::from_bytes(&longest), Ok(FileHandle(&[9; 128])));
        let longer = (&[9_u8; 129][..]).encode_to_vec();
        assert_eq!(FileHandle::from_bytes(&longer), Err(XdrError::TooLong { length: 129, limit: 128 }));
    }

    #[test]
    fn an_owner_has_at_most_1024_bytes() {
        assert!(OwnerId::from_bytes(&(&[1_u8; 1024][..]).encode_to_vec()).is_ok());
        let longer = (&[1_u8; 1025][..]).encode_to_vec();
        assert_eq!(OwnerId::from_bytes(&longer), Err(XdrError::TooLong { length: 1025, limit: 1024 }));
    }

    #[test]
    fn special_stateids_have_the_bytes_of_section_8_2_3() {
        assert_eq!(Stateid::ANONYMOUS.encode_to_vec(), [0; 16]);
        assert_eq!(Stateid::READ_BYPASS.encode_to_vec(), [0xff; 16]);
        let current = [&[0, 0, 0, 1][..], &[0; 12]].concat();
        assert_eq!(Stateid::CURRENT.encode_to_vec(), current);
        let invalid = [&[0xff; 4][..], &[0; 12]].concat();
        assert_eq!(Stateid::INVALID.encode_to_vec(), invalid);
        assert!(Stateid { seqid: 7, other: StateidOther([0xff; 12]) }.is_special());
        assert!(!Stateid { seqid: 0, other: StateidOther([1; 12]) }.is_special());
    }

    #[test]
    fn names_have_the_statuses_of_section_15_1_7() {
        assert_eq!(Name(&[b'n'; 255]).checked(), Ok(&[b'n'; 255][..]));
        assert_eq!(Name(&[b'n'; 256]).checked(), Err(Status::NameTooLong));
        assert_eq!(Name("na\u{ef}ve".as_bytes()).checked(), Ok("na\u{ef}ve".as_bytes()));
        for (name, status) in [
            (&b""[..], Status::Inval),
            (b"\xc3\x28", Status::Inval),
            (b"a/b", Status::BadChar),
            (b"a\0b", Status::BadChar),
            (b".", Status::BadName),
            (b"..", Status::BadName),
        ] {
            assert_eq!(Name(name).checked(), Err(status), "{}", name.escape_ascii());
        }
        assert_eq!(Name(b"...").checked(), Ok(&b"..."[..]));
    }

    #[test]
    fn a_path_has_1_to_4095_bytes() {
        assert!(Text(&[b'p'; 4095]).within_path_limit().is_ok());
        assert_eq!(Text(&[b'p'; 4096]).within_path_limit(), Err(Status::NameTooLong));
        assert_eq!(Text(b"").within_path_limit(), Err(Status::Inval));
    }

    #[test]
    fn a_bitmap_is_words_with_the_lowest_numbers_first() {
        // RFC 8881 3.2: "the first word has bits 0 to 31"; bit n is in word n / 32, at n mod 32
        let set = Bitmap::of(&[0, 33, 127]);
        let words: [u32; 5] = [4, 1, 2, 0, 0x8000_0000];
        assert_eq!(set.encode_to_vec(), words.map(u32::to_be_bytes).concat());
        assert_eq!(Bitmap::EMPTY.encode_to_vec(), [0; 4]);
        assert_eq!(Bitmap::of(&[31]).encode_to_vec(), [1, 0x8000_0000_u32].map(u32::to_be_bytes).concat());
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 33, 127]);
        assert_eq!(Bitmap::of(&[128]), Bitmap::EMPTY);
    }

    #[test]
    fn words_of_a_bitmap_that_nothing_is_known_of_are_dropped_up_to_a_limit() {
        let words = |count: u32| [vec![count], vec![1; count as usize]].concat();
        let bytes = |count| words(count).into_iter().flat_map(u32::to_be_bytes).collect::<Vec<_>>();
        assert_eq!(Bitmap::from_bytes(&bytes(32)), Ok(Bitmap::of(&[0, 32, 64, 96])));
        assert_eq!(Bitmap::from_bytes(&bytes(33)), Err(XdrError::TooLong { length: 33, limit: 32 }));
        let none = [2_u32, 0, 0].map(u32::to_be_bytes).concat();
        assert_eq!(Bitmap::from_bytes(&none), Ok(Bitmap::EMPTY));
    }

    #[test]
    fn times_before_1970_are_negative() {
        let time = Time { seconds: -1, nanoseconds: 999_999_999 };
        let bytes = [&[0xff; 8][..], &999_999_999_u32.to_be_bytes()].concat();
        assert_eq!(time.encode_to_vec(), bytes);
        assert_eq!(Time::from_bytes(&bytes), Ok(time));
    }
}
