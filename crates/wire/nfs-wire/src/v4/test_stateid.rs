//! TEST_STATEID, RFC 8881 18.48: test whether state still exists.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "TEST_STATEID4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    /// The stateids to test.
    pub stateids: Vec<Stateid>,
}

xdr_struct!(Args { stateids });

/// Success.
#[doc(alias = "TEST_STATEID4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk {
    /// A status for each stateid, in order.
    pub statuses: Vec<Result<(), Status>>,
}

xdr_struct!(ResOk { statuses });

/// Result.
#[doc(alias = "TEST_STATEID4res")]
pub type Res = Result<ResOk, Status>;
