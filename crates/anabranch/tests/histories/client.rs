//! The client of SMB that the tests of that server use.

#[path = "../../../front/smb-server/tests/socket/client/protection.rs"]
mod protection;
#[path = "../../../front/smb-server/tests/socket/client/raw.rs"]
mod raw;

pub(crate) use raw::{Client, Reply, close_body, write_body};
