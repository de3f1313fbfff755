//! The store of a share, and where calls to it run.

pub(crate) mod alarm;
pub(crate) mod inside;
pub(crate) mod pool;
