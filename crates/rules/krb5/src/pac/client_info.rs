//! PAC_CLIENT_INFO: whose PAC it is. [MS-PAC] 2.7.

use super::{PacError, text, u16_at, u32_at};
use crate::name::Principal;
use crate::time::Time;

/// `ClientId` (a FILETIME: the authtime of the ticket), `NameLength` in bytes, `Name`: the client's name, in some
/// tickets with its realm behind `@`.
pub(super) fn check(bytes: &[u8], client: &Principal, auth_time: Time) -> Result<(), PacError> {
    let ticks = u64::from(u32_at(bytes, 0)?) | u64::from(u32_at(bytes, 4)?) << 32;
    let length = usize::from(u16_at(bytes, 8)?);
    let name = bytes.get(10..).and_then(|rest| rest.get(..length)).ok_or(PacError::Length)?;
    let name = text(name)?;
    let is_client = name.eq_ignore_ascii_case(client.name()) || name.eq_ignore_ascii_case(client.as_str());
    if is_client && Time::from_filetime(ticks) == Some(auth_time) {
        Ok(())
    } else {
        Err(PacError::OtherClient)
    }
}
