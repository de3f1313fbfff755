//! The little DER that SPNEGO needs: one-byte tags, definite lengths, elements inside elements. ITU-T X.690.

/// The bytes are not the DER that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DerError;

pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const ENUMERATED: u8 = 0x0a;
pub const GENERAL_STRING: u8 = 0x1b;
pub const SEQUENCE: u8 = 0x30;
/// `[APPLICATION 0]`, constructed: a GSS-API initial token.
pub const APPLICATION_0: u8 = 0x60;

/// `[number]`, constructed: the context-specific tags of SPNEGO, all below 31.
pub const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Reads elements in sequence.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

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
