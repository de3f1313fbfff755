//! READDIR, RFC 8881 18.23: names and attributes of a directory.

use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::status::Status;
use crate::v4::types::{Name, Verifier};
use crate::xdr::xdr_struct;

pub use crate::v3::readdir::{Listing, ListingWriter};

/// Arguments.
#[doc(alias = "READDIR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Continue after the entry with this cookie; 0 starts. 1 and 2 are reserved (18.23.3).
    pub cookie: u64,
    /// The verifier returned with that cookie; zeros at the start.
    pub cookie_verifier: Verifier,
    /// The most bytes of cookies and names; 0 for no limit.
    pub dir_count: u32,
    /// The most bytes of the successful result, including all overhead.
    pub max_count: u32,
    /// The attributes to return for every entry.
    pub request: AttributeSet,
}

xdr_struct!(Args { cookie, cookie_verifier, dir_count, max_count, request });

/// One entry.
#[doc(alias = "entry4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The cookie with which to continue after this entry.
    pub cookie: u64,
    /// The name.
    pub name: Name<'a>,
    /// The object's attributes.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Entry<'a> { cookie, name, attributes });

/// Success.
#[doc(alias = "READDIR4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The verifier to send with the next call.
    pub cookie_verifier: Verifier,
    /// The names, and whether there are more.
    pub listing: Listing<Entry<'a>>,
}

xdr_struct!(ResOk<'a> { cookie_verifier, listing });

/// Result.
#[doc(alias = "READDIR4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
