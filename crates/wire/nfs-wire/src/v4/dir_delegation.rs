//! GET_DIR_DELEGATION, RFC 8881 18.39: ask for a delegation of the current directory.

use crate::v4::attr::AttributeSet;
use crate::v4::status::Status;
use crate::v4::types::{Bitmap, Stateid, Time, Verifier};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "GET_DIR_DELEGATION4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Whether the client wants to be told when a delegation becomes available.
    pub signal_available: bool,
    /// The notifications that the client would like.
    pub notification_types: Bitmap,
    /// How long changes of children's attributes may be delayed.
    pub child_attributes_delay: Time,
    /// How long changes of the directory's attributes may be delayed.
    pub dir_attributes_delay: Time,
    /// The attributes of children to report.
    pub child_attributes: AttributeSet,
    /// The attributes of the directory to report.
    pub dir_attributes: AttributeSet,
}

xdr_struct!(Args {
    signal_available,
    notification_types,
    child_attributes_delay,
    dir_attributes_delay,
    child_attributes,
    dir_attributes
});

/// Success.
#[doc(alias = "GET_DIR_DELEGATION4res_non_fatal")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResOk {
    /// The delegation.
    #[doc(alias = "GDD4_OK")]
    Granted(Granted),
    /// No delegation is available now.
    #[doc(alias = "GDD4_UNAVAIL")]
    Unavailable {
        /// Whether the server will tell when one becomes available.
        will_signal: bool,
    },
}

/// A delegation of a directory.
#[doc(alias = "GET_DIR_DELEGATION4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// The directory's state.
    pub cookie_verifier: Verifier,
    /// The delegation.
    pub stateid: Stateid,
    /// The notifications that the client will get.
    pub notification_types: Bitmap,
    /// The attributes of children to report.
    pub child_attributes: AttributeSet,
    /// The attributes of the directory to report.
    pub dir_attributes: AttributeSet,
}

xdr_struct!(Granted { cookie_verifier, stateid, notification_types, child_attributes, dir_attributes });

impl Encode for ResOk {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Granted(granted) => {
                writer.u32(0);
                granted.encode(writer);
            }
            Self::Unavailable { will_signal } => {
                writer.u32(1);
                writer.bool(*will_signal);
            }
        }
    }
}

impl Decode<'_> for ResOk {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Decode::decode(reader).map(Self::Granted),
            1 => Ok(Self::Unavailable { will_signal: reader.bool()? }),
            value => Err(XdrError::UndefinedValue { kind: "gddrnf4_status", value }),
        }
    }
}

/// Result.
#[doc(alias = "GET_DIR_DELEGATION4res")]
pub type Res = Result<ResOk, Status>;
