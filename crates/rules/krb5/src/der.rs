//! The little DER that SPNEGO and Kerberos need: one-byte tags, definite lengths, elements inside elements. ITU-T X.690.

/// The bytes are not the DER that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DerError;

/// INTEGER
pub const INTEGER: u8 = 0x02;
/// BIT STRING
pub const BIT_STRING: u8 = 0x03;
/// OCTET STRING
pub const OCTET_STRING: u8 = 0x04;
/// OBJECT IDENTIFIER
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// ENUMERATED
pub const ENUMERATED: u8 = 0x0a;
/// GeneralizedTime
pub const GENERALIZED_TIME: u8 = 0x18;
/// UTF8String
pub const UTF8_STRING: u8 = 0x0c;
/// GeneralString
pub const GENERAL_STRING: u8 = 0x1b;
/// SEQUENCE and SEQUENCE OF
pub const SEQUENCE: u8 = 0x30;
/// `[APPLICATION 0]`, constructed: a GSS-API initial token.
pub const APPLICATION_0: u8 = 0x60;

/// `[APPLICATION number]`, constructed: the tags of Kerberos messages, all below 31.
pub const fn application(number: u8) -> u8 {
    0x60 | number
}

/// `[number]`, constructed: the context-specific tags of SPNEGO and Kerberos, all below 31.
pub const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Reads elements in sequence.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tag of the next element.
    pub fn peek_tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The content of the next element, which must have this tag.
    pub fn element(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        self.element_and_encoding(tag).map(|(content, _)| content)
    }

    /// The content of the next element, and the element as a whole.
    pub fn element_and_encoding(&mut self, tag: u8) -> Result<(&'a [u8], &'a [u8]), DerError> {
        let whole = self.0;
        let (first, rest) = whole.split_first().ok_or(DerError)?;
        if *first != tag {
            return Err(DerError);
        }
        let (length, rest) = read_length(rest)?;
        let (content, rest) = rest.split_at_checked(length).ok_or(DerError)?;
        self.0 = rest;
        let encoding = whole.get(..whole.len().saturating_sub(rest.len())).ok_or(DerError)?;
        Ok((content, encoding))
    }

    /// The content of the next element if it has this tag; otherwise None, and nothing is read.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, DerError> {
        if self.peek_tag() == Some(tag) { self.element(tag).map(Some) } else { Ok(None) }
    }

    /// What has not been read.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The next element, an INTEGER of at most eight bytes.
    pub fn integer(&mut self) -> Result<i64, DerError> {
        let content = self.element(INTEGER)?;
        let (first, _) = content.split_first().ok_or(DerError)?;
        if content.len() > 8 {
            return Err(DerError);
        }
        let sign = if *first < 0x80 { 0 } else { -1 };
        Ok(content.iter().fold(sign, |value, byte| (value << 8) | i64::from(*byte)))
    }

    /// The first 32 bits of the next element, a BIT STRING of at least as many. RFC 4120 5.2.8.
    pub fn flags(&mut self) -> Result<u32, DerError> {
        let (unused, bits) = self.element(BIT_STRING)?.split_first().ok_or(DerError)?;
        let bits = bits.first_chunk().ok_or(DerError)?;
        if *unused > 7 { Err(DerError) } else { Ok(u32::from_be_bytes(*bits)) }
    }
}

/// A definite length of at most four bytes, and what follows it.
fn read_length(bytes: &[u8]) -> Result<(usize, &[u8]), DerError> {
    let (first, rest) = bytes.split_first().ok_or(DerError)?;
    if *first < 0x80 {
        return Ok((usize::from(*first), rest));
    }
    let count = usize::from(*first & 0x7f);
    if count == 0 || count > 4 {
        return Err(DerError);
    }
    let (digits, rest) = rest.split_at_checked(count).ok_or(DerError)?;
    let length = digits.iter().fold(0usize, |length, digit| (length << 8) | usize::from(*digit));
    Ok((length, rest))
}

/// One element: its tag, the length of `content`, `content`.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(content.len().saturating_add(6));
    encoded.push(tag);
    let digits = content.len().to_be_bytes();
    let significant: Vec<u8> = digits.into_iter().skip_while(|digit| *digit == 0).collect();
    match (significant.as_slice(), u8::try_from(significant.len())) {
        ([], _) => encoded.push(0),
        ([only], _) if *only < 0x80 => encoded.push(*only),
        (_, count) => {
            encoded.push(0x80 | count.unwrap_or(0x7f));
            encoded.extend_from_slice(&significant);
        }
    }
    encoded.extend_from_slice(content);
    encoded
}

/// Writes elements from the last byte to the first, so that each length is known when it is written.
#[derive(Debug, Default)]
pub struct Builder {
    reversed: Vec<u8>,
}

impl Builder {
    /// A builder with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { reversed: Vec::with_capacity(capacity) }
    }

    /// Puts bytes in front of all that there is.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    /// Puts tag and length in front of what `content` writes.
    pub fn element(&mut self, tag: u8, content: impl FnOnce(&mut Self)) {
        let before = self.reversed.len();
        content(self);
        let digits = self.reversed.len().saturating_sub(before).to_le_bytes();
        let significant =
            digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last.saturating_add(1));
        let (digits, _) = digits.split_at_checked(significant).unwrap_or_default();
        match (digits, u8::try_from(significant)) {
            ([], _) => self.reversed.push(0),
            ([only], _) if *only < 0x80 => self.reversed.push(*only),
            (_, count) => {
                self.reversed.extend_from_slice(digits);
                self.reversed.push(0x80 | count.unwrap_or(0x7f));
            }
        }
        self.reversed.push(tag);
    }

    /// Puts an element with this content in front.
    pub fn primitive(&mut self, tag: u8, content: &[u8]) {
        self.element(tag, |inner| inner.bytes(content));
    }

    /// Puts an INTEGER in front.
    pub fn integer(&mut self, value: i64) {
        let digits = value.to_be_bytes();
        // a leading byte is superfluous if it only repeats the sign of the next one
        let repeats = |pair: &&[u8]| {
            matches!(pair, [0, next] if *next < 0x80) || matches!(pair, [0xff, next] if *next >= 0x80)
        };
        let superfluous = digits.windows(2).take_while(repeats).count();
        self.primitive(INTEGER, digits.get(superfluous..).unwrap_or_default());
    }

    /// All bytes, from the first to the last.
    pub fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_writes_what_element_writes() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let content: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut builder = Builder::default();
            builder.primitive(OCTET_STRING, &content);
            assert_eq!(builder.finish(), element(OCTET_STRING, &content), "{length}");
        }
        let mut builder = Builder::default();
        builder.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.bytes(&[4, 0]));
            fields.element(context(0), |field| field.integer(5));
        });
        assert_eq!(builder.finish(), [0x30, 9, 0xa0, 3, 2, 1, 5, 0xa1, 2, 4, 0]);
    }

    /// The bytes are those of X.690 8.3.
    #[test]
    fn integers_are_as_short_as_possible() {
        let cases: [(i64, &[u8]); 9] = [
            (0, &[2, 1, 0]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (256, &[2, 2, 1, 0]),
            (-1, &[2, 1, 0xff]),
            (-128, &[2, 1, 0x80]),
            (-129, &[2, 2, 0xff, 0x7f]),
            (0xffff_ffff, &[2, 5, 0, 0xff, 0xff, 0xff, 0xff]),
            (i64::MIN, &[2, 8, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (value, bytes) in cases {
            let mut builder = Builder::default();
            builder.integer(value);
            assert_eq!(builder.finish(), bytes, "{value}");
            assert_eq!(Reader::new(bytes).integer(), Ok(value));
        }
        assert_eq!(Reader::new(&[2, 0]).integer(), Err(DerError));
        assert_eq!(Reader::new(&[2, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0]).integer(), Err(DerError));
    }

    #[test]
    fn flags_are_the_first_32_bits() {
        assert_eq!(Reader::new(&[3, 5, 0, 0x40, 0xe1, 0, 1]).flags(), Ok(0x40e1_0001));
        assert_eq!(Reader::new(&[3, 6, 7, 0x40, 0xe1, 0, 1, 0x80]).flags(), Ok(0x40e1_0001));
        for bytes in [&[3, 4, 0, 0x40, 0xe1, 0][..], &[3, 0], &[3, 5, 8, 1, 2, 3, 4], &[4, 5, 0, 1, 2, 3, 4]]
        {
            assert_eq!(Reader::new(bytes).flags(), Err(DerError), "{bytes:x?}");
        }
    }

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        let encoded = |length: usize| element(OCTET_STRING, &vec![7; length]);
        assert_eq!(encoded(0), [4, 0]);
        assert_eq!(encoded(127)[..2], [4, 127]);
        assert_eq!(encoded(128)[..3], [4, 0x81, 128]);
        assert_eq!(encoded(0x1234)[..4], [4, 0x82, 0x12, 0x34]);
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let bytes = encoded(length);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.element(OCTET_STRING).unwrap().len(), length);
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn broken_elements_are_refused() {
        let broken: [&[u8]; 8] = [
            &[],
            &[4],
            &[4, 1],
            &[4, 0x80, 0, 0],
            &[4, 0x82, 1],
            &[4, 0x85, 0, 0, 0, 0, 1, 7],
            &[4, 0x84, 0xff, 0xff, 0xff, 0xff, 7],
            &[5, 0],
        ];
        for bytes in broken {
            assert_eq!(Reader::new(bytes).element(OCTET_STRING), Err(DerError), "{bytes:x?}");
        }
    }

    #[test]
    fn an_optional_element_is_left_when_it_is_another() {
        let mut reader = Reader::new(&[4, 1, 9, 0xa1, 0]);
        assert_eq!(reader.optional(context(1)), Ok(None));
        assert_eq!(reader.element_and_encoding(OCTET_STRING), Ok((&[9u8][..], &[4, 1, 9][..])));
        assert_eq!(reader.optional(context(1)), Ok(Some(&[][..])));
        assert_eq!(reader.optional(context(2)), Ok(None));
    }
}
