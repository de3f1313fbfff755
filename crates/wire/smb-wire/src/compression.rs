//! Compressed messages, [MS-SMB2] 2.2.42: recognised, but not decoded. A connection that has not negotiated compression
//! treats one as a malformed message.

/// The first four bytes of a compressed message.
pub const PROTOCOL_ID: [u8; 4] = [0xFC, b'S', b'M', b'B'];
