//! FSCTL_FILE_LEVEL_TRIM: parts of a file whose contents are no longer needed become holes. [MS-FSCC] 2.3.13, [MS-FSA]
//! 2.1.5.10.6.

use std::sync::Arc;

use net::Buffer;
use share::File;
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::{FileLevelTrim, TrimRange};
use smb_wire::ioctl::Request;
use storage::Capabilities;

use super::respond;
use super::sparse::data_file;
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// The most ranges that one request processes. The client learns the number, and sends the others again.
const RANGES_MAX: usize = 256;
/// Trimming begins and ends at a multiple of this, in bytes: Windows reduces the ranges to whole pages.
const PAGE: u64 = 4096;
/// Bytes of FILE_LEVEL_TRIM_OUTPUT, [MS-FSCC] 2.3.14.
const OUTPUT_BYTES: u32 = 4;

/// Answers the request.
pub(super) async fn handle(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let file = File::Open(Arc::clone(data_file(open)?));
    if !ctx.share.capabilities().contains(Capabilities::PUNCH_HOLE) {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    let wanted = FileLevelTrim::decode(request.input)?;
    // [MS-SMB2] 3.3.5.15.13: "If the Key field [...] is not zero, the server MUST fail the request".
    let room = request.max_output_response;
    if wanted.key != 0 || wanted.ranges.is_empty() || (1..OUTPUT_BYTES).contains(&room) {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let mut processed = 0_u32;
    for range in wanted.ranges.iter().take(RANGES_MAX) {
        let trimmed = match whole_pages(range) {
            Ok(Some((start, length))) => ctx.share.zero_range(ctx.call, &file, start, length).await,
            Ok(None) => Ok(()),
            Err(status) if processed == 0 => return Err(status.into()),
            Err(_) => break,
        };
        match trimmed {
            Ok(()) => processed += 1,
            Err(error) if processed == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    let output = processed.to_le_bytes();
    respond(ctx, request, if room == 0 { &[] } else { &output })
}

/// The start and the length of the whole pages in a range, if there are any.
fn whole_pages(range: &TrimRange) -> Result<Option<(u64, u64)>, NtStatus> {
    let end = range.offset.checked_add(range.length).ok_or(NtStatus::INTEGER_OVERFLOW)? / PAGE * PAGE;
    let start = range.offset.checked_next_multiple_of(PAGE).ok_or(NtStatus::INTEGER_OVERFLOW)?;
    Ok(end.checked_sub(start).filter(|length| *length > 0).map(|length| (start, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_reduced_to_whole_pages() {
        let pages = |offset, length| whole_pages(&TrimRange { offset, length });
        assert_eq!(pages(0, 4096), Ok(Some((0, 4096))));
        assert_eq!(pages(1, 8191), Ok(Some((4096, 4096))));
        assert_eq!(pages(0, 8191), Ok(Some((0, 4096))));
        assert_eq!((pages(1, 8190), pages(0, 4095), pages(5, 0)), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(pages(u64::MAX, 1), Err(NtStatus::INTEGER_OVERFLOW));
        assert_eq!(pages(u64::MAX, 0), Err(NtStatus::INTEGER_OVERFLOW));
        assert_eq!(pages(0, u64::MAX), Ok(Some((0, u64::MAX / 4096 * 4096))));
    }
}
