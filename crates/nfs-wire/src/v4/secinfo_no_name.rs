//! SECINFO_NO_NAME, RFC 8881 18.45: which security flavors the current filehandle or its parent may be used with.

use crate::xdr::{xdr_enum, xdr_struct};

pub use crate::v4::secinfo::{Res, ResOk};

/// Arguments.
#[doc(alias = "SECINFO_NO_NAME4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Of what.
    pub style: Style,
}

xdr_struct!(Args { style });

xdr_enum! {
    /// Of what.
    #[doc(alias = "secinfo_style4")]
    Style {
        /// The current filehandle.
        CurrentFh = 0,
        /// Its parent.
        Parent = 1,
    }
}
