//! The client of SMB that the tests of that server use.

#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../../front/smb-server/tests/socket/client/protection.rs"]
mod protection;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../../front/smb-server/tests/socket/client/raw.rs"]
mod raw;

pub(crate) use protection::Protection;
pub(crate) use raw::{Client, Reply};
