//! READDIR, RFC 1813 3.3.16: names of a directory.

use crate::v3::attr::Attributes;
use crate::v3::types::{CookieVerifier, FileHandle, Name, ResWithAttributes};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "READDIR3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The directory.
    pub dir: FileHandle,
    /// Continue after the entry with this cookie; 0 starts.
    pub cookie: u64,
    /// The verifier returned with that cookie; zeros at the start.
    pub cookie_verifier: CookieVerifier,
    /// The most bytes of the successful result, including all overhead.
    pub count: u32,
}

xdr_struct!(Args { dir, cookie, cookie_verifier, count });

/// One entry.
#[doc(alias = "entry3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The object's number.
    pub fileid: u64,
    /// The name.
    pub name: Name<'a>,
    /// The cookie with which to continue after this entry.
    pub cookie: u64,
}

xdr_struct!(Entry<'a> { fileid, name, cookie });

/// Success.
#[doc(alias = "READDIR3resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The directory's attributes.
    pub dir_attributes: Option<Attributes>,
    /// The verifier to send with the next call.
    pub cookie_verifier: CookieVerifier,
    /// The names, and whether there are more.
    pub listing: Listing<Entry<'a>>,
}

xdr_struct!(ResOk<'a> { dir_attributes, cookie_verifier, listing });

/// Result; on failure with the directory's attributes.
#[doc(alias = "READDIR3res")]
pub type Res<'a> = ResWithAttributes<ResOk<'a>>;

/// A linked list of entries and its end.
#[doc(alias = "dirlist3")]
#[doc(alias = "dirlistplus3")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<E> {
    /// The entries.
    pub entries: Vec<E>,
    /// Whether the last entry is the last one of the directory.
    pub eof: bool,
}

impl<E: Encode> Encode for Listing<E> {
    fn encode(&self, writer: &mut Writer<'_>) {
        for entry in &self.entries {
            writer.bool(true);
            entry.encode(writer);
        }
        writer.bool(false);
        writer.bool(self.eof);
    }
}

impl<'a, E: Decode<'a>> Decode<'a> for Listing<E> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let mut entries = Vec::new();
        while reader.bool()? {
            entries.push(E::decode(reader)?);
        }
        Ok(Self { entries, eof: reader.bool()? })
    }
}

/// Writes a [`Listing`] entry by entry within a budget of bytes, for a server that does not know how many will fit.
#[derive(Debug)]
pub struct ListingWriter<'w, 'b> {
    writer: &'w mut Writer<'b>,
    /// The position in the buffer that entries must not pass.
    end: usize,
}

impl<'w, 'b> ListingWriter<'w, 'b> {
    /// Bytes of the end of the list and of `eof`.
    const END_BYTES: usize = 8;

    /// Starts a listing. The successful result began at `start` in the buffer (after the status) and may have
    /// `bytes_max` bytes in all.
    #[must_use]
    pub fn new(writer: &'w mut Writer<'b>, start: usize, bytes_max: usize) -> Self {
        let end = start.saturating_add(bytes_max).saturating_sub(Self::END_BYTES);
        Self { writer, end }
    }

    /// Appends an entry if it fits. `false` means that nothing was written and the listing is full.
    #[must_use]
    pub fn push<E: Encode>(&mut self, entry: &E) -> bool {
        let before = self.writer.position();
        self.writer.bool(true);
        entry.encode(self.writer);
        let fits = self.writer.position() <= self.end;
        if !fits {
            self.writer.truncate(before);
        }
        fits
    }

    /// Ends the listing.
    pub fn finish(self, eof: bool) {
        self.writer.bool(false);
        self.writer.bool(eof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_fills_its_budget_exactly() {
        let entry = |cookie| Entry { fileid: 7, name: Name(b"four"), cookie };
        // 4 (follows) + 8 + 4 + 4 + 8 bytes per entry
        for (budget, expected) in [(7, 0), (8 + 27, 0), (8 + 28, 1), (8 + 55, 1), (8 + 56, 2), (1000, 3)] {
            let mut buffer = b"what was there before".to_vec();
            let start = buffer.len();
            let mut writer = Writer::new(&mut buffer);
            let mut listing = ListingWriter::new(&mut writer, start, budget);
            let written = (1..=3).take_while(|cookie| listing.push(&entry(*cookie))).count();
            listing.finish(written == 3);
            assert_eq!(written, expected, "budget {budget}");
            let listing = Listing::<Entry<'_>>::from_bytes(&buffer[start..]).unwrap();
            assert_eq!(listing.entries, (1..=3).take(expected).map(entry).collect::<Vec<_>>());
            assert_eq!(listing.eof, expected == 3);
            assert!(buffer.len() - start <= budget.max(8), "budget {budget}");
        }
    }
}
