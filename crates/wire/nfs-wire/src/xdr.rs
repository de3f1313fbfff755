//! External Data Representation, RFC 4506: big-endian, every item padded to a multiple of four bytes.

use thiserror::Error;

/// Why bytes are not the expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum XdrError {
    /// The bytes end before the value does.
    #[error("the message ends {missing} bytes too early")]
    Truncated {
        /// How many bytes are missing from the item that was being read.
        missing: usize,
    },
    /// Bytes follow after the last item.
    #[error("{excess} bytes follow after the end of the message")]
    TrailingBytes {
        /// How many there are.
        excess: usize,
    },
    /// A variable-length item is longer than its definition allows.
    #[error("an item of {length} bytes or elements, where at most {limit} are permitted")]
    TooLong {
        /// The length stated in the message.
        length: usize,
        /// The limit in the definition.
        limit: usize,
    },
    /// A boolean or an enumeration has a value that its definition does not contain (RFC 4506 4.3, 4.4).
    #[error("{value} is no {kind}")]
    UndefinedValue {
        /// The type's name.
        kind: &'static str,
        /// The value found.
        value: u32,
    },
}

/// Reads XDR items from a message, in order. Returned slices borrow from the message.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the first byte of `message`.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The bytes that have not been read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Checks that everything has been read.
    ///
    /// # Errors
    /// [`XdrError::TrailingBytes`] if bytes are left.
    pub fn finish(&self) -> Result<(), XdrError> {
        if self.rest.is_empty() { Ok(()) } else { Err(XdrError::TrailingBytes { excess: self.rest.len() }) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], XdrError> {
        let missing = length.saturating_sub(self.rest.len());
        let (head, rest) = self.rest.split_at_checked(length).ok_or(XdrError::Truncated { missing })?;
        self.rest = rest;
        Ok(head)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let missing = N.saturating_sub(self.rest.len());
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(XdrError::Truncated { missing })?;
        self.rest = rest;
        Ok(*head)
    }

    /// Unsigned integer, RFC 4506 4.2.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// As many unsigned integers in one step; None, with nothing read, if the message ends before.
    pub fn words<const N: usize>(&mut self) -> Option<[u32; N]> {
        let (words, _) = self.rest.as_chunks::<4>();
        let words = words.first_chunk::<N>()?.map(u32::from_be_bytes);
        self.rest = self.rest.get(N.checked_mul(4)?..)?;
        Some(words)
    }

    /// Unsigned hyper integer, RFC 4506 4.5.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        self.chunk().map(u64::from_be_bytes)
    }

    /// Boolean, RFC 4506 4.4: 0 or 1.
    ///
    /// # Errors
    /// [`XdrError::Truncated`]; [`XdrError::UndefinedValue`] for any other value.
    pub fn bool(&mut self) -> Result<bool, XdrError> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(XdrError::UndefinedValue { kind: "bool", value }),
        }
    }

    /// Fixed-length opaque data, RFC 4506 4.9. The content of the padding is ignored.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    pub fn opaque_fixed<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let value = self.chunk()?;
        self.take(padding(N))?;
        Ok(value)
    }

    /// Variable-length opaque data or a string of at most `limit` bytes, RFC 4506 4.10 and 4.11.
    ///
    /// # Errors
    /// [`XdrError::TooLong`] when the message states a length of more than `limit` bytes; [`XdrError::Truncated`].
    pub fn opaque(&mut self, limit: usize) -> Result<&'a [u8], XdrError> {
        let length = self.length(limit)?;
        let value = self.take(length)?;
        self.take(padding(length))?;
        Ok(value)
    }

    /// The length word of a variable-length item of at most `limit` bytes or elements.
    ///
    /// # Errors
    /// [`XdrError::TooLong`]; [`XdrError::Truncated`].
    pub fn length(&mut self, limit: usize) -> Result<usize, XdrError> {
        let length = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if length > limit { Err(XdrError::TooLong { length, limit }) } else { Ok(length) }
    }
}

/// Appends XDR items to a buffer, which may already contain other bytes.
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
}

impl<'b> Writer<'b> {
    /// Appends to `buffer`.
    #[must_use]
    pub fn new(buffer: &'b mut Vec<u8>) -> Self {
        Self { buffer }
    }

    /// Bytes in the buffer, including those that precede this writer.
    #[must_use]
    pub fn position(&self) -> usize {
        self.buffer.len()
    }

    /// Removes everything that was written after `position`.
    pub fn truncate(&mut self, position: usize) {
        self.buffer.truncate(position);
    }

    /// Overwrites the unsigned integer at `position`. Bytes beyond the buffer are not written.
    pub fn patch_u32(&mut self, position: usize, value: u32) {
        let word = self.buffer.get_mut(position..).and_then(|rest| rest.first_chunk_mut::<4>());
        if let Some(word) = word {
            *word = value.to_be_bytes();
        }
    }

    /// Unsigned integer, RFC 4506 4.2.
    pub fn u32(&mut self, value: u32) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    /// Unsigned hyper integer, RFC 4506 4.5.
    pub fn u64(&mut self, value: u64) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    /// Boolean, RFC 4506 4.4.
    pub fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    /// Fixed-length opaque data with its padding, RFC 4506 4.9.
    pub fn opaque_fixed(&mut self, value: &[u8]) {
        self.buffer.extend_from_slice(value);
        self.pad(value.len());
    }

    /// Variable-length opaque data or a string: length, bytes, padding. RFC 4506 4.10 and 4.11.
    pub fn opaque(&mut self, value: &[u8]) {
        self.length(value.len());
        self.opaque_fixed(value);
    }

    /// The length word of a variable-length item.
    ///
    /// A length of more than 32 bits is written as the largest one, which a peer then refuses. No buffer of this
    /// project comes near that.
    pub fn length(&mut self, length: usize) {
        self.u32(u32::try_from(length).unwrap_or(u32::MAX));
    }

    /// The zero bytes that follow an item of `length` bytes, RFC 4506 3.
    pub fn pad(&mut self, length: usize) {
        const ZEROS: [u8; 3] = [0; 3];
        self.buffer.extend_from_slice(ZEROS.get(..padding(length)).unwrap_or_default());
    }
}

/// How many padding bytes, 0 to 3, follow an item of `length` bytes (RFC 4506 3).
#[must_use]
pub fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// A value that can be written to a message.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, writer: &mut Writer<'_>);

    /// The value alone, in a new buffer.
    #[must_use]
    fn encode_to_vec(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.encode(&mut Writer::new(&mut buffer));
        buffer
    }
}

/// A value that can be read from a message, and may borrow from it.
pub trait Decode<'a>: Sized {
    /// Reads the value and leaves the reader after it.
    ///
    /// # Errors
    /// [`XdrError`] when the bytes are not a valid value.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError>;

    /// Reads the value from the whole of `message`.
    ///
    /// # Errors
    /// [`XdrError`] when the bytes are not a valid value, or other bytes follow it.
    fn from_bytes(message: &'a [u8]) -> Result<Self, XdrError> {
        let mut reader = Reader::new(message);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

impl Encode for u32 {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(*self);
    }
}

impl Decode<'_> for u32 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u32()
    }
}

impl Encode for u64 {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u64(*self);
    }
}

impl Decode<'_> for u64 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u64()
    }
}

/// Hyper integer, RFC 4506 4.5.
impl Encode for i64 {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u64(self.cast_unsigned());
    }
}

impl Decode<'_> for i64 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u64().map(u64::cast_signed)
    }
}

impl Encode for bool {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bool(*self);
    }
}

impl Decode<'_> for bool {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.bool()
    }
}

/// The body of a `void` arm.
impl Encode for () {
    fn encode(&self, _writer: &mut Writer<'_>) {}
}

impl Decode<'_> for () {
    fn decode(_reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(())
    }
}

/// Fixed-length opaque data.
impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque_fixed(self);
    }
}

impl<const N: usize> Decode<'_> for [u8; N] {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.opaque_fixed()
    }
}

/// Variable-length opaque data without a limit of its own (`opaque data<>`, `string name<>`): the message limits it.
impl Encode for &[u8] {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self);
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(usize::MAX)
    }
}

/// Optional data, RFC 4506 4.19, and unions of a boolean and one value, which have the same encoding.
impl<T: Encode> Encode for Option<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bool(self.is_some());
        if let Some(value) = self {
            value.encode(writer);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(if reader.bool()? { Some(T::decode(reader)?) } else { None })
    }
}

/// Variable-length array without a limit of its own (`item items<>`, RFC 4506 4.13). The message limits it, since
/// memory is only allocated as items are read. Every item has at least four bytes.
impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.length(self.len());
        for item in self {
            item.encode(writer);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let count = reader.length(usize::MAX)?;
        let mut items = Self::new();
        for _ in 0..count {
            items.push(T::decode(reader)?);
        }
        Ok(items)
    }
}

/// The failing arm of a procedure's result: a status that is not OK, and the body of that arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<S, B> {
    /// The error.
    pub status: S,
    /// The body of the failing arm: nothing, attributes, or weak cache consistency data.
    pub body: B,
}

/// `union switch (status)`: 0 and the successful arm, or a status and the failing arm.
impl<T: Encode, S: Encode, B: Encode> Encode for Result<T, Failure<S, B>> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Ok(value) => {
                writer.u32(0);
                value.encode(writer);
            }
            Err(failure) => {
                failure.status.encode(writer);
                failure.body.encode(writer);
            }
        }
    }
}

impl<'a, T, S, B> Decode<'a> for Result<T, Failure<S, B>>
where
    T: Decode<'a>,
    S: TryFrom<u32, Error = XdrError>,
    B: Decode<'a>,
{
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Ok(Ok(T::decode(reader)?)),
            status => Ok(Err(Failure { status: S::try_from(status)?, body: B::decode(reader)? })),
        }
    }
}

/// Implements [`Encode`] and [`Decode`] for a structure: its fields in wire order.
macro_rules! xdr_struct {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        $crate::xdr::xdr_struct!(@encode $name, $($field),+);
        impl $crate::xdr::Decode<'_> for $name {
            fn decode(reader: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::XdrError> {
                Ok(Self { $($field: $crate::xdr::Decode::decode(reader)?),+ })
            }
        }
    };
    ($name:ident<'a> { $($field:ident),+ $(,)? }) => {
        $crate::xdr::xdr_struct!(@encode $name<'_>, $($field),+);
        impl<'a> $crate::xdr::Decode<'a> for $name<'a> {
            fn decode(reader: &mut $crate::xdr::Reader<'a>) -> Result<Self, $crate::xdr::XdrError> {
                Ok(Self { $($field: $crate::xdr::Decode::decode(reader)?),+ })
            }
        }
    };
    (@encode $name:ty, $($field:ident),+) => {
        impl $crate::xdr::Encode for $name {
            fn encode(&self, writer: &mut $crate::xdr::Writer<'_>) {
                $($crate::xdr::Encode::encode(&self.$field, writer);)+
            }
        }
    };
}
pub(crate) use xdr_struct;

/// Declares an enumeration (RFC 4506 4.3) with its codec. An undefined value is an error.
macro_rules! xdr_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name { $($(#[$variant_meta])* $variant = $value,)+ }

        impl TryFrom<u32> for $name {
            type Error = $crate::xdr::XdrError;

            fn try_from(value: u32) -> Result<Self, Self::Error> {
                match value {
                    $($value => Ok(Self::$variant),)+
                    _ => Err($crate::xdr::XdrError::UndefinedValue { kind: stringify!($name), value }),
                }
            }
        }

        impl $crate::xdr::Encode for $name {
            fn encode(&self, writer: &mut $crate::xdr::Writer<'_>) {
                writer.u32(*self as u32);
            }
        }

        impl $crate::xdr::Decode<'_> for $name {
            fn decode(reader: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::XdrError> {
                Self::try_from(reader.u32()?)
            }
        }
    };
}
pub(crate) use xdr_enum;

/// Declares a word of flags with its codec. Undefined bits are kept.
macro_rules! xdr_bitflags {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$($flag_meta:tt)*])* const $flag:ident = $value:expr;)+ }) => {
        bitflags::bitflags! {
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
            pub struct $name: u32 {
                $($(#[$($flag_meta)*])* const $flag = $value;)+
                const _ = !0;
            }
        }

        impl $crate::xdr::Encode for $name {
            fn encode(&self, writer: &mut $crate::xdr::Writer<'_>) {
                writer.u32(self.bits());
            }
        }

        impl $crate::xdr::Decode<'_> for $name {
            fn decode(reader: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::XdrError> {
                reader.u32().map(Self::from_bits_retain)
            }
        }
    };
}
pub(crate) use xdr_bitflags;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_is_padded_to_four_bytes() {
        for (value, bytes) in [
            (&b""[..], &b"\0\0\0\0"[..]),
            (b"a", b"\0\0\0\x01a\0\0\0"),
            (b"abc", b"\0\0\0\x03abc\0"),
            (b"abcd", b"\0\0\0\x04abcd"),
            (b"abcde", b"\0\0\0\x05abcde\0\0\0"),
        ] {
            assert_eq!(value.encode_to_vec(), bytes);
            assert_eq!(<&[u8]>::from_bytes(bytes), Ok(value));
        }
    }

    #[test]
    fn opaque_limit_is_inclusive() {
        let bytes = b"\0\0\0\x04abcd";
        assert_eq!(Reader::new(bytes).opaque(4), Ok(&b"abcd"[..]));
        assert_eq!(Reader::new(bytes).opaque(3), Err(XdrError::TooLong { length: 4, limit: 3 }));
    }

    #[test]
    fn a_length_beyond_the_message_is_refused() {
        let bytes = b"\xff\xff\xff\xffab";
        assert_eq!(
            Reader::new(bytes).opaque(usize::MAX),
            Err(XdrError::Truncated { missing: 0xffff_ffff_usize - 2 })
        );
    }

    #[test]
    fn missing_padding_is_refused() {
        assert_eq!(<&[u8]>::from_bytes(b"\0\0\0\x01a\0\0"), Err(XdrError::Truncated { missing: 1 }));
    }

    #[test]
    fn fixed_opaque_of_odd_length_is_padded() {
        assert_eq!([1_u8, 2, 3, 4, 5].encode_to_vec(), [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(<[u8; 5]>::from_bytes(&[1, 2, 3, 4, 5, 0, 0, 0]), Ok([1, 2, 3, 4, 5]));
    }

    #[test]
    fn a_boolean_is_zero_or_one() {
        assert_eq!(bool::from_bytes(&[0, 0, 0, 0]), Ok(false));
        assert_eq!(bool::from_bytes(&[0, 0, 0, 1]), Ok(true));
        assert_eq!(bool::from_bytes(&[0, 0, 0, 2]), Err(XdrError::UndefinedValue { kind: "bool", value: 2 }));
    }

    #[test]
    fn trailing_bytes_are_refused() {
        assert_eq!(u32::from_bytes(&[0, 0, 0, 1, 9]), Err(XdrError::TrailingBytes { excess: 1 }));
    }

    #[test]
    fn optional_data() {
        assert_eq!(Option::<u32>::from_bytes(&[0, 0, 0, 0]), Ok(None));
        assert_eq!(Option::<u32>::from_bytes(&[0, 0, 0, 1, 0, 0, 0, 7]), Ok(Some(7)));
        assert_eq!(Some(7_u32).encode_to_vec(), [0, 0, 0, 1, 0, 0, 0, 7]);
    }
}
