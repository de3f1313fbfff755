//! Snapshots as SMB clients know them: by their second.

use share::{Call, Share};
use smb_wire::{FileTime, NtStatus};
use std::sync::Arc;
use storage::date_and_time;

use crate::status::Failure;

/// The name of a time, in seconds since 1970. [MS-SMB2] 2.2.32.2: "an array of time stamps in GMT format, as specified by an @GMT
/// token".
pub(crate) fn token(secs: i64) -> String {
    let [year, month, day, hour, minute, second] = date_and_time(secs);
    format!("@GMT-{year:04}.{month:02}.{day:02}-{hour:02}.{minute:02}.{second:02}")
}

/// The view of a share at a time, of which parts of a second do not count.
///
/// # Errors
/// 3.3.5.9.4: STATUS_OBJECT_NAME_NOT_FOUND for a time without a snapshot.
pub(crate) async fn view(share: &Arc<Share>, call: &Call, time: FileTime) -> Result<Arc<Share>, Failure> {
    let (secs, _) = time.to_unix();
    let listed = match share.snapshots(call).await {
        Err(share::Error::Storage(storage::Error::NotSupported)) => None,
        listed => Some(listed?),
    };
    let of_then = listed.iter().flat_map(|listed| listed.iter()).find(|snapshot| snapshot.taken.secs == secs);
    let Some(id) = of_then.map(|snapshot| snapshot.id) else {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
    };
    Ok(share.at(call, id).await?)
}

/// The number of the volume that clients see: another one at each snapshot, so that they do not take a file for its earlier
/// version, which has the same number.
pub(crate) fn volume_number(share: &Share) -> u32 {
    // Multiplying by an odd number gives each snapshot another one.
    share.id().0 ^ share.snapshot().map_or(0, |snapshot| snapshot.id.0.wrapping_mul(0x9E37_79B1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_token() {
        assert_eq!(token(1_795_412_718), "@GMT-2026.11.23-05.45.18");
        assert_eq!(token(0), "@GMT-1970.01.01-00.00.00");
    }
}
