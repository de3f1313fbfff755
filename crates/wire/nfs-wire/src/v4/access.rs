//! ACCESS, RFC 8881 18.1: what the caller may do with the current filehandle's object; and RFC 8276 8.5.

use crate::v4::status::Status;
use crate::xdr::{xdr_bitflags, xdr_struct};

/// Arguments.
#[doc(alias = "ACCESS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The requested rights.
    pub access: Access,
}

xdr_struct!(Args { access });

/// Success.
#[doc(alias = "ACCESS4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The requested rights that the server can report.
    pub supported: Access,
    /// The supported rights that the caller has.
    pub access: Access,
}

xdr_struct!(ResOk { supported, access });

xdr_bitflags! {
    /// Rights.
    pub struct Access {
        /// Read data of a file or names of a directory.
        #[doc(alias = "ACCESS4_READ")]
        const READ = 0x0001;
        /// Look up a name in a directory.
        #[doc(alias = "ACCESS4_LOOKUP")]
        const LOOKUP = 0x0002;
        /// Rewrite existing data or directory entries.
        #[doc(alias = "ACCESS4_MODIFY")]
        const MODIFY = 0x0004;
        /// Write new data or add directory entries.
        #[doc(alias = "ACCESS4_EXTEND")]
        const EXTEND = 0x0008;
        /// Delete an existing directory entry.
        #[doc(alias = "ACCESS4_DELETE")]
        const DELETE = 0x0010;
        /// Execute a file.
        #[doc(alias = "ACCESS4_EXECUTE")]
        const EXECUTE = 0x0020;
        /// Read extended attributes.
        #[doc(alias = "ACCESS4_XAREAD")]
        const XATTR_READ = 0x0040;
        /// Write extended attributes.
        #[doc(alias = "ACCESS4_XAWRITE")]
        const XATTR_WRITE = 0x0080;
        /// List extended attributes.
        #[doc(alias = "ACCESS4_XALIST")]
        const XATTR_LIST = 0x0100;
    }
}

/// Result.
#[doc(alias = "ACCESS4res")]
pub type Res = Result<ResOk, Status>;
