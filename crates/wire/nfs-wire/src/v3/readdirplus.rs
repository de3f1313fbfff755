//! READDIRPLUS, RFC 1813 3.3.17: names of a directory with their attributes and filehandles.

use crate::v3::attr::Attributes;
use crate::v3::readdir::Listing;
use crate::v3::types::{CookieVerifier, FileHandle, Name, ResWithAttributes};
use crate::xdr::{padding, xdr_struct};

/// Arguments.
#[doc(alias = "READDIRPLUS3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The directory.
    pub dir: FileHandle,
    /// Continue after the entry with this cookie; 0 starts.
    pub cookie: u64,
    /// The verifier returned with that cookie; zeros at the start.
    pub cookie_verifier: CookieVerifier,
    /// The most bytes of directory information: fileids, names and cookies ([`Entry::directory_bytes`]).
    pub dir_count: u32,
    /// The most bytes of the successful result, including all overhead.
    pub max_count: u32,
}

xdr_struct!(Args { dir, cookie, cookie_verifier, dir_count, max_count });

/// One entry and its object.
#[doc(alias = "entryplus3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The object's number.
    pub fileid: u64,
    /// The name.
    pub name: Name<'a>,
    /// The cookie with which to continue after this entry.
    pub cookie: u64,
    /// The object's attributes.
    pub attributes: Option<Attributes>,
    /// The object's filehandle.
    pub file_handle: Option<FileHandle>,
}

xdr_struct!(Entry<'a> { fileid, name, cookie, attributes, file_handle });

impl Entry<'_> {
    /// How much the entry counts towards [`Args::dir_count`]: its bytes without attributes and filehandle.
    #[must_use]
    pub fn directory_bytes(&self) -> usize {
        const FIXED_BYTES: usize = 4 + 8 + 4 + 8; // it follows, fileid, the name's length, cookie
        let name = self.name.0.len();
        FIXED_BYTES.saturating_add(name).saturating_add(padding(name))
    }
}

/// Success.
#[doc(alias = "READDIRPLUS3resok")]
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
#[doc(alias = "READDIRPLUS3res")]
pub type Res<'a> = ResWithAttributes<ResOk<'a>>;
