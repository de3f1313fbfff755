//! What an operation does, for the access log.

use access_log::Kind;

/// What an operation does.
#[derive(Debug, Default)]
pub(crate) struct Deed {
    /// None: what its row says.
    pub(crate) kind: Option<Kind>,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) new_path: Option<Vec<u8>>,
}
