//! Where the repository is.

use std::env;
use std::path::PathBuf;

/// The top of the repository: the folder that holds this crate's. Cargo says where that is to what it runs.
pub(crate) fn top() -> PathBuf {
    let mut top =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into();
    PathBuf::pop(&mut top);
    top
}
