//! FSCTL_SRV_ENUMERATE_SNAPSHOTS: the times of which there is a version of a file. [MS-SMB2] 2.2.32.2, 3.3.5.15.1.

use net::Buffer;
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::SnapshotArray;
use smb_wire::ioctl::Request;

use super::{require_room, respond};
use crate::context::OnShare;
use crate::snapshot;
use crate::state::open::Open;
use crate::status::Failure;
use crate::tree::TreeTarget;

/// "If the MaxOutputResponse of the request is less than 16 bytes, the server MUST fail the request".
const OUTPUT_BYTES_MIN: usize = 16;

/// Answers the request: latest first, as Windows and Samba do. A client first asks with room for nothing but the size.
pub(super) async fn enumerate(
    ctx: &OnShare<'_>,
    open: &Open,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    require_room(request, OUTPUT_BYTES_MIN, NtStatus::INVALID_PARAMETER)?;
    let TreeTarget::Disk(share) = &ctx.tree.target else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    };
    let file = open.file()?;
    let node = file.file().unwrap_or(file).node();
    let versions = share.versions(ctx.call, &node.path()?).await?;
    let tokens: Vec<_> = versions.iter().rev().map(|version| snapshot::token(version.taken.secs)).collect();
    let room = usize::try_from(request.max_output_response).unwrap_or(usize::MAX);
    respond(ctx, request, &output(tokens, room)?)
}

/// The output for these times in a reply of at most so many bytes: all of them, or only their number.
fn output(tokens: Vec<String>, room: usize) -> Result<Vec<u8>, Failure> {
    let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let units: usize = tokens.iter().map(|token| token.len() + 1).sum();
    // Nothing is needed for none; else there is another zero at the end.
    let bytes = if tokens.is_empty() { 0 } else { 2 * (units + 1) };
    let array = |snapshots| SnapshotArray {
        number_of_snapshots: count,
        snapshot_array_size: u32::try_from(bytes).unwrap_or(u32::MAX),
        snapshots,
    };
    let mut output = Vec::new();
    array(tokens).encode_into(&mut output)?;
    if output.len() > room {
        output.clear();
        array(Vec::new()).encode_into(&mut output)?;
    }
    // Of the smallest reply, clients expect all 16 bytes.
    output.resize(output.len().max(OUTPUT_BYTES_MIN), 0);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: u32, room: usize) -> (usize, SnapshotArray) {
        let tokens = (0..count).map(|second| snapshot::token(second.into())).collect();
        let output = output(tokens, room).unwrap();
        (output.len(), SnapshotArray::decode(&output).unwrap())
    }

    #[test]
    fn all_are_told_or_none() {
        let (bytes, all) = told(2, 65_536);
        assert_eq!((bytes, all.number_of_snapshots, all.snapshot_array_size), (12 + 102, 2, 102));
        assert_eq!(all.snapshots, ["@GMT-1970.01.01-00.00.00", "@GMT-1970.01.01-00.00.01"]);
        assert_eq!(told(2, 12 + 102).1, all);
        for room in [16, 113] {
            let (bytes, none) = told(2, room);
            assert_eq!((bytes, none.number_of_snapshots, none.snapshot_array_size), (16, 2, 102));
            assert_eq!(none.snapshots, [""; 0]);
        }
        // [MS-SMB] 4.2: one snapshot takes 0x34 bytes.
        assert_eq!(told(1, 16).1.snapshot_array_size, 0x34);
    }

    #[test]
    fn there_may_be_none() {
        let (bytes, none) = told(0, 16);
        assert_eq!((bytes, none.number_of_snapshots, none.snapshot_array_size), (16, 0, 0));
    }
}
