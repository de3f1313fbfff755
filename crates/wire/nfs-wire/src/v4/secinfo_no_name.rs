//! SECINFO_NO_NAME, RFC 8881 18.45: the security flavors with which the current filehandle or its parent may be used.

use crate::xdr::{xdr_enum, xdr_struct};

pub use crate::v4::secinfo::{Res, ResOk};

/// Arguments.
#[doc(alias = "SECINFO_NO_NAME4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Whose flavors are asked for.
    pub style: Style,
}

xdr_struct!(Args { style });

xdr_enum! {
    /// Whose flavors are asked for.
    #[doc(alias = "secinfo_style4")]
    Style {
        /// The current filehandle.
        CurrentFh = 0,
        /// The parent of the current filehandle.
        Parent = 1,
    }
}
