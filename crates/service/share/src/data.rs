//! What is remembered for work on the data of files.

pub(crate) mod read_permits;
