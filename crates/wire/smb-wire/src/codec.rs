//! Bounds-checked reading, little-endian writing, UTF-16 text, and the one error of this crate.

use std::fmt;

/// Why bytes are not a valid message, or why a value cannot be encoded.
///
/// A server answers a request that does not decode with STATUS_INVALID_PARAMETER ([MS-SMB2] 3.3.5.2), or closes the
/// connection if the header itself is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There are fewer bytes than the fixed part of the structure has.
    #[error("truncated")]
    Truncated,
    /// `StructureSize` differs from the specification's value for this structure.
    #[error("StructureSize is {found}, not {expected}")]
    StructureSize {
        /// The value in the specification.
        expected: u16,
        /// The value in the bytes.
        found: u16,
    },
    /// An offset or length points outside the message or into the fixed part.
    #[error("{0} lies outside the message or inside its fixed part")]
    OutOfBounds(&'static str),
    /// An offset is not aligned as required.
    #[error("{0} is misaligned")]
    Misaligned(&'static str),
    /// A field has an undefined value.
    #[error("{0} is invalid")]
    Invalid(&'static str),
    /// The first four bytes name another protocol.
    #[error("not an SMB2 message")]
    ProtocolId,
    /// Text with an odd number of bytes or a lone surrogate.
    #[error("malformed UTF-16")]
    Utf16,
    /// A value is longer than its length field can express.
    #[error("{0} is too long")]
    TooLong(&'static str),
}

impl From<acl::Malformed> for WireError {
    fn from(malformed: acl::Malformed) -> Self {
        match malformed {
            acl::Malformed::Truncated => Self::Truncated,
            acl::Malformed::OutOfBounds(field) => Self::OutOfBounds(field),
            acl::Malformed::Invalid(field) => Self::Invalid(field),
            acl::Malformed::TooLong(field) => Self::TooLong(field),
        }
    }
}

/// Bytes of an SMB2 header; every body starts here.
pub(crate) const HEADER: usize = 64;

/// Reads little-endian integers from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The fixed part of a message's body (`N` bytes after the header), after its `StructureSize`.
    #[inline]
    pub(crate) fn body<const N: usize>(message: &'a [u8], structure_size: u16) -> Result<Self, WireError> {
        let fixed: &[u8; N] =
            message.get(HEADER..).and_then(<[u8]>::first_chunk).ok_or(WireError::Truncated)?;
        Self::new(fixed).structure_size(structure_size)
    }

    /// Reads and checks a `StructureSize`.
    #[inline]
    pub(crate) fn structure_size(mut self, expected: u16) -> Result<Self, WireError> {
        match self.u16()? {
            found if found == expected => Ok(self),
            found => Err(WireError::StructureSize { expected, found }),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length or offset of two bytes.
    #[inline]
    pub(crate) fn len16(&mut self) -> Result<usize, WireError> {
        self.u16().map(usize::from)
    }

    /// A length or offset of four bytes.
    #[inline]
    pub(crate) fn len32(&mut self) -> Result<usize, WireError> {
        self.u32().map(|value| value as usize)
    }

    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), WireError> {
        self.bytes(count).map(|_| ())
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The bytes that have not been read yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The variable part `bytes[offset..offset + length]`, which must lie at or after `fixed_end`. The offset of an empty
/// part is ignored, since clients send any value there.
#[inline]
pub(crate) fn variable<'a>(
    bytes: &'a [u8],
    fixed_end: usize,
    offset: usize,
    length: usize,
    field: &'static str,
) -> Result<&'a [u8], WireError> {
    if length == 0 {
        return Ok(&[]);
    }
    let end = offset.checked_add(length).ok_or(WireError::OutOfBounds(field))?;
    if offset < fixed_end {
        return Err(WireError::OutOfBounds(field));
    }
    bytes.get(offset..end).ok_or(WireError::OutOfBounds(field))
}

/// Little-endian appending.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Appends `count` zero bytes.
pub(crate) fn put_zeros(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len().saturating_add(count), 0);
}

/// Appends zero bytes until `out` is a multiple of `alignment` bytes longer than `start`.
pub(crate) fn pad_from(out: &mut Vec<u8>, start: usize, alignment: usize) {
    let length = out.len().saturating_sub(start);
    put_zeros(out, aligned(length, alignment).saturating_sub(length));
}

/// `length` rounded up to a multiple of `alignment` (a power of two).
pub(crate) const fn aligned(length: usize, alignment: usize) -> usize {
    let mask = alignment.wrapping_sub(1);
    length.saturating_add(mask) & !mask
}

/// Overwrites four bytes that were appended earlier. Does nothing outside `out`.
pub(crate) fn patch_u32(out: &mut [u8], at: usize, value: u32) {
    if let Some(field) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = value.to_le_bytes();
    }
}

/// A length as a field of one byte.
pub(crate) fn len_u8(length: usize, field: &'static str) -> Result<u8, WireError> {
    u8::try_from(length).map_err(|_| WireError::TooLong(field))
}

/// A length as a field of two bytes.
pub(crate) fn len_u16(length: usize, field: &'static str) -> Result<u16, WireError> {
    u16::try_from(length).map_err(|_| WireError::TooLong(field))
}

/// A length as a field of four bytes.
pub(crate) fn len_u32(length: usize, field: &'static str) -> Result<u32, WireError> {
    u32::try_from(length).map_err(|_| WireError::TooLong(field))
}

/// Text that is UTF-16LE on the wire: bytes of a message, or a Rust string that will be encoded.
///
/// Two values are equal if they are equal on the wire.
#[derive(Clone, Copy)]
pub struct Utf16<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Wire(&'a [u8]),
    Text(&'a str),
}

impl<'a> Utf16<'a> {
    /// Empty text.
    pub const EMPTY: Self = Self(Source::Wire(&[]));

    /// Text in a message. Surrogates are checked by [`Self::decode`].
    ///
    /// # Errors
    /// [`WireError::Utf16`] when the number of bytes is odd.
    pub const fn from_wire(bytes: &'a [u8]) -> Result<Self, WireError> {
        if bytes.len().is_multiple_of(2) { Ok(Self(Source::Wire(bytes))) } else { Err(WireError::Utf16) }
    }

    /// The text.
    /// # Errors
    /// [`WireError::Utf16`] when a surrogate has no partner.
    pub fn decode(&self) -> Result<String, WireError> {
        match self.0 {
            Source::Text(text) => Ok(text.to_owned()),
            Source::Wire(_) => {
                char::decode_utf16(self.units()).collect::<Result<_, _>>().map_err(|_| WireError::Utf16)
            }
        }
    }

    /// The UTF-16 code units.
    pub fn units(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (wire, text) = match self.0 {
            Source::Wire(bytes) => (bytes, ""),
            Source::Text(text) => (&[][..], text),
        };
        let (pairs, _) = wire.as_chunks::<2>();
        pairs.iter().copied().map(u16::from_le_bytes).chain(text.encode_utf16())
    }

    /// The number of bytes on the wire.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        match self.0 {
            Source::Wire(bytes) => bytes.len(),
            Source::Text(text) => text.encode_utf16().count().saturating_mul(2),
        }
    }

    /// Whether the text is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self.0 {
            Source::Wire(bytes) => bytes.is_empty(),
            Source::Text(text) => text.is_empty(),
        }
    }

    /// Appends the text as UTF-16LE.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self.0 {
            Source::Wire(bytes) => out.extend_from_slice(bytes),
            Source::Text(text) => text.encode_utf16().for_each(|unit| out.put_u16(unit)),
        }
    }

    /// The text as UTF-16LE.
    #[must_use]
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.byte_len());
        self.encode_into(&mut out);
        out
    }
}

impl<'a> From<&'a str> for Utf16<'a> {
    fn from(text: &'a str) -> Self {
        Self(Source::Text(text))
    }
}

impl Default for Utf16<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for Utf16<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Source::Wire(a), Source::Wire(b)) => a == b,
            (Source::Text(a), Source::Text(b)) => a == b,
            _ => self.units().eq(other.units()),
        }
    }
}

impl Eq for Utf16<'_> {}

impl PartialEq<str> for Utf16<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Utf16::from(other)
    }
}

impl PartialEq<&str> for Utf16<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Quoted text; a lone surrogate is shown as U+FFFD.
impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String =
            char::decode_utf16(self.units()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        fmt::Debug::fmt(&text, f)
    }
}

/// An enumeration on the wire that keeps undefined values: `Unknown(n)`.
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub enum $name:ident: $repr:ident { $($(#[$vmeta:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A value that the specification does not define.
            Unknown($repr),
        }

        impl From<$repr> for $name {
            fn from(value: $repr) -> Self {
                match value {
                    $($value => Self::$variant,)+
                    other => Self::Unknown(other),
                }
            }
        }

        impl $name {
            /// The value on the wire.
            #[must_use]
            pub const fn number(self) -> $repr {
                match self {
                    $(Self::$variant => $value,)+
                    Self::Unknown(other) => other,
                }
            }
        }

        impl From<$name> for $repr {
            fn from(value: $name) -> Self {
                value.number()
            }
        }
    };
}

/// A body of four bytes without content: `StructureSize` 4 and a reserved field.
macro_rules! empty_body {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name;

        impl $name {
            /// Decodes the body of `message`.
            ///
            /// # Errors
            /// [`WireError::Truncated`](crate::WireError::Truncated) or
            /// [`WireError::StructureSize`](crate::WireError::StructureSize).
            pub fn decode(message: &[u8]) -> Result<Self, crate::WireError> {
                crate::codec::Reader::body::<4>(message, 4).map(|_| Self)
            }

            /// Appends the body.
            pub fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&[4, 0, 0, 0]);
            }
        }
    };
}

/// A response that consists of one output buffer: `StructureSize` 9, an offset of two bytes, a length of four.
macro_rules! output_buffer_response {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name<'a> {
            /// The output buffer.
            pub output_buffer: &'a [u8],
        }

        impl<'a> $name<'a> {
            /// Offset of the output buffer, from the header.
            pub const BUFFER_OFFSET: u16 = 64 + 8;

            /// Decodes the body of `message`.
            ///
            /// # Errors
            /// [`WireError::Truncated`](crate::WireError::Truncated),
            /// [`WireError::StructureSize`](crate::WireError::StructureSize) or
            /// [`WireError::OutOfBounds`](crate::WireError::OutOfBounds).
            pub fn decode(message: &'a [u8]) -> Result<Self, crate::WireError> {
                let mut r = crate::codec::Reader::body::<8>(message, 9)?;
                let (offset, length) = (r.len16()?, r.len32()?);
                let fixed_end = Self::BUFFER_OFFSET.into();
                let output_buffer = crate::codec::variable(message, fixed_end, offset, length, "OutputBuffer")?;
                Ok(Self { output_buffer })
            }

            /// Appends the body.
            ///
            /// # Errors
            /// [`WireError::TooLong`](crate::WireError::TooLong).
            pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), crate::WireError> {
                use crate::codec::Put as _;
                out.put_u16(9);
                out.put_u16(Self::BUFFER_OFFSET);
                out.put_u32(crate::codec::len_u32(self.output_buffer.len(), "OutputBuffer")?);
                out.put(self.output_buffer);
                Ok(())
            }
        }
    };
}

/// A value of fixed length inside a [`fixed_struct`].
pub(crate) trait Field: Sized {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError>;
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! field {
    ($($type:ty: $r:ident, $out:ident, $self:ident => $read:expr, $put:expr;)+) => {
        $(impl Field for $type {
            #[inline]
            fn read($r: &mut Reader<'_>) -> Result<Self, WireError> {
                $read
            }
            #[inline]
            fn put(&$self, $out: &mut Vec<u8>) {
                $put
            }
        })+
    };
}

field! {
    u8: r, out, self => r.u8(), out.put_u8(*self);
    u16: r, out, self => r.u16(), out.put_u16(*self);
    u32: r, out, self => r.u32(), out.put_u32(*self);
    u64: r, out, self => r.u64(), out.put_u64(*self);
    u128: r, out, self => r.array().map(u128::from_le_bytes), Put::put(out, &self.to_le_bytes());
    bool: r, out, self => r.u8().map(|byte| byte != 0), out.put_u8((*self).into());
    crate::dtyp::FileTime: r, out, self => Self::read(r), Self::put(*self, out);
    crate::dtyp::Guid: r, out, self => Self::read(r), Self::put(*self, out);
    crate::dtyp::FileId: r, out, self => Self::read(r), Self::put(*self, out);
}

impl<const N: usize> Field for [u8; N] {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        r.array()
    }
    fn put(&self, out: &mut Vec<u8>) {
        Put::put(out, self);
    }
}

/// Makes bitflags a [`Field`].
macro_rules! flags_field {
    ($($type:ty),+ $(,)?) => {
        $(impl crate::codec::Field for $type {
            fn read(r: &mut crate::codec::Reader<'_>) -> Result<Self, crate::WireError> {
                crate::codec::Field::read(r).map(Self::from_bits_retain)
            }
            fn put(&self, out: &mut Vec<u8>) {
                crate::codec::Field::put(&self.bits(), out);
            }
        })+
    };
}

/// A structure of `LEN` bytes: its fields in order, then reserved zeros. Bytes after it are ignored.
macro_rules! fixed_struct {
    ($(#[$meta:meta])* pub struct $name:ident [$len:literal] { $($(#[$fmeta:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $type,)+
        }

        impl $name {
            /// Bytes on the wire.
            pub const LEN: usize = $len;

            /// Reads the structure at the start of `bytes`.
            ///
            /// # Errors
            /// [`WireError::Truncated`](crate::WireError::Truncated).
            pub fn decode(bytes: &[u8]) -> Result<Self, crate::WireError> {
                let fixed: &[u8; $len] = bytes.first_chunk().ok_or(crate::WireError::Truncated)?;
                let mut r = crate::codec::Reader::new(fixed);
                Ok(Self { $($field: crate::codec::Field::read(&mut r)?,)+ })
            }

            /// Appends the structure.
            pub fn encode_into(&self, out: &mut Vec<u8>) {
                let end = out.len().saturating_add($len);
                $(crate::codec::Field::put(&self.$field, out);)+
                out.resize(end, 0);
            }
        }

        impl crate::codec::Field for $name {
            fn read(r: &mut crate::codec::Reader<'_>) -> Result<Self, crate::WireError> {
                Self::decode(r.bytes($len)?)
            }
            fn put(&self, out: &mut Vec<u8>) {
                self.encode_into(out);
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_lie_between_the_fixed_part_and_the_end() {
        let bytes = [1, 2, 3, 4, 5, 6];
        assert_eq!(variable(&bytes, 2, 2, 4, "x"), Ok(&bytes[2..]));
        assert_eq!(variable(&bytes, 2, 5, 1, "x"), Ok(&bytes[5..]));
        assert_eq!(variable(&bytes, 2, 1, 1, "x"), Err(WireError::OutOfBounds("x")));
        assert_eq!(variable(&bytes, 2, 3, 4, "x"), Err(WireError::OutOfBounds("x")));
        assert_eq!(variable(&bytes, 2, 7, 1, "x"), Err(WireError::OutOfBounds("x")));
        assert_eq!(variable(&bytes, 2, usize::MAX, 2, "x"), Err(WireError::OutOfBounds("x")));
        assert_eq!(variable(&bytes, 2, 4, usize::MAX, "x"), Err(WireError::OutOfBounds("x")));
    }

    #[test]
    fn an_empty_part_has_any_offset() {
        assert_eq!(variable(&[1, 2], 2, 0, 0, "x"), Ok(&[][..]));
        assert_eq!(variable(&[1, 2], 2, usize::MAX, 0, "x"), Ok(&[][..]));
    }

    #[test]
    fn lengths_round_up() {
        assert_eq!([0, 1, 7, 8, 9].map(|length| aligned(length, 8)), [0, 8, 8, 8, 16]);
        assert_eq!(aligned(usize::MAX, 8), usize::MAX & !7);
    }

    #[test]
    fn text_must_be_whole_units_and_whole_pairs() {
        assert_eq!(Utf16::from_wire(b"a"), Err(WireError::Utf16));
        let lone_high = Utf16::from_wire(&[0x3D, 0xD8]).unwrap();
        assert_eq!(lone_high.decode(), Err(WireError::Utf16));
        let lone_low = Utf16::from_wire(&[0x00, 0xDE, b'a', 0]).unwrap();
        assert_eq!(lone_low.decode(), Err(WireError::Utf16));
        assert_eq!(format!("{lone_low:?}"), "\"\u{FFFD}a\"");
        let smile = Utf16::from_wire(&[0x3D, 0xD8, 0x00, 0xDE]).unwrap();
        assert_eq!(smile.decode().as_deref(), Ok("\u{1F600}"));
        assert_eq!(smile, "\u{1F600}");
    }

    #[test]
    fn a_length_that_does_not_fit_is_refused() {
        assert_eq!(len_u16(65_535, "x"), Ok(65_535));
        assert_eq!(len_u16(65_536, "x"), Err(WireError::TooLong("x")));
        assert_eq!(len_u8(256, "x"), Err(WireError::TooLong("x")));
    }
}
