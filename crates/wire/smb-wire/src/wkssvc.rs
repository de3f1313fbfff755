//! The Workstation Service, [MS-WKST], through which Windows learns a server's name and domain. Only NetrWkstaGetInfo
//! at level 100.

use crate::codec::WireError;
use crate::dcerpc::SyntaxId;
use crate::dtyp::Guid;
use crate::ndr::{NdrReader, NdrWriter};

/// The interface, 6bffd098-a112-3610-9833-46c3f87e345a version 1.0.
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x98, 0xd0, 0xff, 0x6b, 0x12, 0xa1, 0x10, 0x36, 0x98, 0x33, 0x46, 0xc3, 0xf8, 0x7e, 0x34, 0x5a,
    ]),
    version: 1,
};

/// The procedure NetrWkstaGetInfo.
pub const OPNUM_WKSTA_GET_INFO: u16 = 0;

/// The arguments of NetrWkstaGetInfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WkstaGetInfoRequest {
    /// The server's name as the client knows it.
    pub server_name: Option<String>,
    /// The level; 100 is supported.
    pub level: u32,
}

impl WkstaGetInfoRequest {
    /// Decodes the stub.
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub.
    pub fn decode(stub: &[u8]) -> Result<Self, WireError> {
        let mut r = NdrReader::new(stub);
        Ok(Self { server_name: r.unique_string()?, level: r.u32()? })
    }

    /// Appends the stub.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        w.unique_string(self.server_name.as_deref())?;
        w.u32(self.level);
        Ok(())
    }
}

/// A computer.
#[doc(alias = "WKSTA_INFO_100")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wksta {
    /// [`crate::srvsvc::PLATFORM_ID_NT`]
    pub platform_id: u32,
    /// The name.
    pub computer_name: String,
    /// The domain or workgroup.
    pub domain: String,
    /// The major version that the computer claims.
    pub version_major: u32,
    /// The minor version that the computer claims.
    pub version_minor: u32,
}

/// The results of NetrWkstaGetInfo, without the Win32 error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WkstaGetInfoResponse {
    /// The level of the request.
    pub level: u32,
    /// The computer, at level 100; None after an error.
    pub wksta: Option<Wksta>,
}

impl WkstaGetInfoResponse {
    /// Appends the stub, which ends with `error` ([`crate::srvsvc::win32`]).
    ///
    /// # Errors
    /// [`WireError::TooLong`]; [`WireError::Invalid`] for a computer at any other level than 100.
    pub fn encode_into(&self, error: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        w.u32(self.level);
        w.pointer(self.wksta.is_some());
        if let Some(wksta) = &self.wksta {
            if self.level != 100 {
                return Err(WireError::Invalid("level of a computer"));
            }
            w.u32(wksta.platform_id);
            w.pointer(true);
            w.pointer(true);
            w.u32(wksta.version_major);
            w.u32(wksta.version_minor);
            w.string(&wksta.computer_name)?;
            w.string(&wksta.domain)?;
        }
        w.u32(error);
        Ok(())
    }

    /// Decodes the stub. Returns it with the Win32 error.
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub.
    pub fn decode(stub: &[u8]) -> Result<(Self, u32), WireError> {
        let mut r = NdrReader::new(stub);
        let level = r.u32()?;
        let wksta = if r.pointer()? { Some(Self::read_wksta(level, &mut r)?) } else { None };
        Ok((Self { level, wksta }, r.u32()?))
    }

    fn read_wksta(level: u32, r: &mut NdrReader<'_>) -> Result<Wksta, WireError> {
        if level != 100 {
            return Err(WireError::Invalid("level of a computer"));
        }
        let platform_id = r.u32()?;
        let (name, domain) = (r.pointer()?, r.pointer()?);
        let (version_major, version_minor) = (r.u32()?, r.u32()?);
        let mut string = |present| if present { r.string() } else { Ok(String::new()) };
        let (computer_name, domain) = (string(name)?, string(domain)?);
        Ok(Wksta { platform_id, computer_name, domain, version_major, version_minor })
    }
}
