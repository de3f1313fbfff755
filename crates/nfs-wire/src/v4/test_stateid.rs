//! TEST_STATEID, RFC 8881 18.48: whether state is still there.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "TEST_STATEID4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    /// Which.
    pub stateids: Vec<Stateid>,
}

xdr_struct!(Args { stateids });

/// Success.
#[doc(alias = "TEST_STATEID4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk {
    /// For each of them, in their order.
    pub statuses: Vec<Result<(), Status>>,
}

xdr_struct!(ResOk { statuses });

/// Result.
#[doc(alias = "TEST_STATEID4res")]
pub type Res = Result<ResOk, Status>;
