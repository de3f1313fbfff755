//! PAC_SIGNATURE_DATA. [MS-PAC] 2.8.

use std::ops::Range;

use super::{Buffers, Kind, PacError, u32_at};
use crate::crypto::ChecksumKey;

/// KERB_CHECKSUM_HMAC_MD5: what the KDC may sign with towards itself.
const HMAC_MD5: i32 = -138;

const ZEROS: [u8; 24] = [0; 24];

/// Checks the server signature, which is over the whole PAC with zeros in place of both signatures. [MS-PAC] 2.8.2. The KDC's signature is made with a key that only KDCs have.
pub(super) fn verify(buffers: &Buffers<'_>, key: &ChecksumKey) -> Result<(), PacError> {
    let (server_type, server) = signature(buffers, Kind::ServerSignature)?;
    let (_, kdc) = signature(buffers, Kind::KdcSignature)?;
    if server_type != key.enctype().checksum_number() {
        return Err(PacError::SignatureType(server_type));
    }
    let pac = buffers.pac;
    let (first, second) = if server.start < kdc.start { (&server, &kdc) } else { (&kdc, &server) };
    let part = |range: Range<usize>| pac.get(range).ok_or(PacError::Length);
    let zeros = |range: &Range<usize>| ZEROS.get(..range.len()).ok_or(PacError::Length);
    let parts = [
        part(0..first.start)?,
        zeros(first)?,
        part(first.end..second.start)?,
        zeros(second)?,
        part(second.end..pac.len())?,
    ];
    key.verify(&parts, part(server.clone())?).map_err(|_| PacError::WrongSignature)
}

/// The type of a signature and where it is: `SignatureType`, `Signature`, and the number of a read-only KDC, if any.
fn signature(buffers: &Buffers<'_>, kind: Kind) -> Result<(i32, Range<usize>), PacError> {
    let buffer = buffers.range(kind).ok_or(PacError::Unsigned)?;
    let number = u32_at(buffers.pac, buffer.start)?.cast_signed();
    let length = match number {
        15 | 16 => 12,
        19 | HMAC_MD5 => 16,
        20 => 24,
        other => return Err(PacError::SignatureType(other)),
    };
    let start = buffer.start.checked_add(4).ok_or(PacError::Length)?;
    let end = start.checked_add(length).filter(|end| *end <= buffer.end).ok_or(PacError::Length)?;
    Ok((number, start..end))
}
