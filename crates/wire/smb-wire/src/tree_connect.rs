//! TREE_CONNECT, [MS-SMB2] 2.2.9 and 2.2.10.

use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, len_u16, variable};
use crate::create::AccessMask;

bitflags! {
    /// `Flags` of the request (SMB 3.1.1; reserved before).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RequestFlags: u16 {
        /// The client was connected to this clustered share before.
        const CLUSTER_RECONNECT = 0x0001;
        /// The client understands share redirects.
        const REDIRECT_TO_OWNER = 0x0002;
        /// The buffer starts with a tree connect request extension ([MS-SMB2] 2.2.9.1), which is not decoded. The path
        /// can still be found by its offset.
        const EXTENSION_PRESENT = 0x0004;
        const _ = !0;
    }
}

wire_enum! {
    /// The type of a share.
    pub enum ShareType: u8 {
        /// Files.
        Disk = 0x01,
        /// Named pipes (IPC$).
        Pipe = 0x02,
        /// A printer.
        Print = 0x03,
    }
}

bitflags! {
    /// `ShareFlags` of the response. The two bits of 0x30 are the caching mode for offline files; if none is set,
    /// caching is manual.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ShareFlags: u32 {
        /// SMB2_SHAREFLAG_AUTO_CACHING
        const AUTO_CACHING = 0x0000_0010;
        /// SMB2_SHAREFLAG_VDO_CACHING
        const VDO_CACHING = 0x0000_0020;
        /// SMB2_SHAREFLAG_NO_CACHING: both bits.
        const NO_CACHING = 0x0000_0030;
        /// SMB2_SHAREFLAG_DFS
        const DFS = 0x0000_0001;
        /// SMB2_SHAREFLAG_DFS_ROOT
        const DFS_ROOT = 0x0000_0002;
        /// SMB2_SHAREFLAG_RESTRICT_EXCLUSIVE_OPENS
        const RESTRICT_EXCLUSIVE_OPENS = 0x0000_0100;
        /// SMB2_SHAREFLAG_FORCE_SHARED_DELETE
        const FORCE_SHARED_DELETE = 0x0000_0200;
        /// SMB2_SHAREFLAG_ALLOW_NAMESPACE_CACHING
        const ALLOW_NAMESPACE_CACHING = 0x0000_0400;
        /// SMB2_SHAREFLAG_ACCESS_BASED_DIRECTORY_ENUM
        const ACCESS_BASED_DIRECTORY_ENUM = 0x0000_0800;
        /// SMB2_SHAREFLAG_FORCE_LEVELII_OPLOCK
        const FORCE_LEVELII_OPLOCK = 0x0000_1000;
        /// SMB2_SHAREFLAG_ENABLE_HASH_V1
        const ENABLE_HASH_V1 = 0x0000_2000;
        /// SMB2_SHAREFLAG_ENABLE_HASH_V2
        const ENABLE_HASH_V2 = 0x0000_4000;
        /// SMB2_SHAREFLAG_ENCRYPT_DATA
        const ENCRYPT_DATA = 0x0000_8000;
        /// SMB2_SHAREFLAG_IDENTITY_REMOTING
        const IDENTITY_REMOTING = 0x0004_0000;
        /// SMB2_SHAREFLAG_COMPRESS_DATA
        const COMPRESS_DATA = 0x0010_0000;
        /// SMB2_SHAREFLAG_ISOLATED_TRANSPORT
        const ISOLATED_TRANSPORT = 0x0020_0000;
        const _ = !0;
    }
}

bitflags! {
    /// `Capabilities` of the response (SMB2_SHARE_CAP_*).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ShareCapabilities: u32 {
        /// The share is in a DFS tree.
        const DFS = 0x0000_0008;
        /// Continuously available: persistent handles.
        const CONTINUOUS_AVAILABILITY = 0x0000_0010;
        /// The share is on a scale-out server.
        const SCALEOUT = 0x0000_0020;
        /// The share is on a clustered server.
        const CLUSTER = 0x0000_0040;
        /// The share can move to another server at any time.
        const ASYMMETRIC = 0x0000_0080;
        /// The share redirects synchronously to the owner.
        const REDIRECT_TO_OWNER = 0x0000_0100;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 8;

/// A TREE_CONNECT request.
#[doc(alias = "SMB2_TREE_CONNECT_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The flags.
    pub flags: RequestFlags,
    /// `\\server\share`
    pub path: Utf16<'a>,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`], [`WireError::OutOfBounds`] or
    /// [`WireError::Utf16`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<8>(message, 9)?;
        let flags = RequestFlags::from_bits_retain(r.u16()?);
        let (offset, length) = (r.len16()?, r.len16()?);
        let path = Utf16::from_wire(variable(message, REQUEST_FIXED_END, offset, length, "PathName")?)?;
        Ok(Self { flags, path })
    }

    /// Appends the body, without an extension.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(9);
        out.put_u16(self.flags.difference(RequestFlags::EXTENSION_PRESENT).bits());
        out.put_u16(len_u16(REQUEST_FIXED_END, "PathOffset")?);
        out.put_u16(len_u16(self.path.byte_len(), "PathName")?);
        self.path.encode_into(out);
        Ok(())
    }
}

/// A TREE_CONNECT response.
#[doc(alias = "SMB2_TREE_CONNECT_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The type of the share.
    pub share_type: ShareType,
    /// How clients should treat the share.
    pub share_flags: ShareFlags,
    /// The capabilities of the share.
    pub capabilities: ShareCapabilities,
    /// The maximal access of this user to the share.
    pub maximal_access: AccessMask,
}

impl Response {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<16>(message, 16)?;
        let share_type = ShareType::from(r.u8()?);
        r.skip(1)?;
        Ok(Self {
            share_type,
            share_flags: ShareFlags::from_bits_retain(r.u32()?),
            capabilities: ShareCapabilities::from_bits_retain(r.u32()?),
            maximal_access: AccessMask::from_bits_retain(r.u32()?),
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(16);
        out.put_u8(self.share_type.into());
        out.put_u8(0);
        out.put_u32(self.share_flags.bits());
        out.put_u32(self.capabilities.bits());
        out.put_u32(self.maximal_access.bits());
    }
}
