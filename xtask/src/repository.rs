//! The location of the repository.

use std::env;
use std::path::PathBuf;

/// The top of the repository: the folder that contains this crate's. Cargo tells it to the programs that it runs.
pub(crate) fn top() -> PathBuf {
    let of_this_build = || env!("CARGO_MANIFEST_DIR").into();
    let mut top: PathBuf = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(of_this_build).into();
    top.pop();
    top
}

/// The folder for Cargo's builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| top().join("target"), PathBuf::from)
}
