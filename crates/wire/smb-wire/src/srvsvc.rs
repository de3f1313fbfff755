//! The Server Service, [MS-SRVS], through which clients list the shares of a server. Stubs in NDR.

use crate::codec::WireError;
use crate::dcerpc::SyntaxId;
use crate::dtyp::Guid;
use crate::ndr::{NdrReader, NdrWriter};

/// The interface, 4b324fc8-1670-01d3-1278-5a47bf6ee188 version 3.0.
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0xc8, 0x4f, 0x32, 0x4b, 0x70, 0x16, 0xd3, 0x01, 0x12, 0x78, 0x5a, 0x47, 0xbf, 0x6e, 0xe1, 0x88,
    ]),
    version: 3,
};

/// Win32 errors that the procedures return ([MS-ERREF] 2.2).
pub mod win32 {
    /// ERROR_SUCCESS
    pub const SUCCESS: u32 = 0;
    /// ERROR_ACCESS_DENIED
    pub const ACCESS_DENIED: u32 = 5;
    /// ERROR_INVALID_PARAMETER
    pub const INVALID_PARAMETER: u32 = 87;
    /// ERROR_INVALID_LEVEL
    pub const INVALID_LEVEL: u32 = 124;
    /// ERROR_MORE_DATA
    pub const MORE_DATA: u32 = 234;
    /// NERR_NetNameNotFound
    pub const NET_NAME_NOT_FOUND: u32 = 2310;
}

/// Types of shares, [MS-SRVS] 2.2.2.4.
pub mod share_type {
    /// STYPE_DISKTREE
    pub const DISK: u32 = 0x0000_0000;
    /// STYPE_PRINTQ
    pub const PRINT: u32 = 0x0000_0001;
    /// STYPE_IPC
    pub const IPC: u32 = 0x0000_0003;
    /// STYPE_SPECIAL: hidden from users, like IPC$.
    pub const SPECIAL: u32 = 0x8000_0000;
}

/// PLATFORM_ID_NT
pub const PLATFORM_ID_NT: u32 = 500;

mod opnum {
    pub(super) const SHARE_ENUM: u16 = 15;
    pub(super) const SHARE_GET_INFO: u16 = 16;
    pub(super) const SERVER_GET_INFO: u16 = 21;
    pub(super) const SHARE_ENUM_STICKY: u16 = 36;
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// NetrShareEnum, and NetrShareEnumSticky, which has the same form
    ShareEnum {
        /// Whether to list only the shares that survive a restart of the server: NetrShareEnumSticky.
        sticky: bool,
        /// The server's name as the client knows it.
        server_name: Option<String>,
        /// The level of [`Share`]; 0, 1, 2 and 502 are supported.
        level: u32,
        /// The most bytes of the response; `u32::MAX` for no limit.
        preferred_maximum_length: u32,
        /// Where to continue.
        resume_handle: Option<u32>,
    },
    /// NetrShareGetInfo
    ShareGetInfo {
        /// The server's name as the client knows it.
        server_name: Option<String>,
        /// The share.
        net_name: String,
        /// The level of [`Share`]; 0, 1, 2, 502 and 1005 are supported.
        level: u32,
    },
    /// NetrServerGetInfo
    ServerGetInfo {
        /// The server's name as the client knows it.
        server_name: Option<String>,
        /// The level of [`Server`]; 100 and 101 are supported.
        level: u32,
    },
}

impl Request {
    /// Decodes the stub of a request; `None` when this crate does not know the procedure
    /// ([`crate::dcerpc::fault::OP_RANGE_ERROR`]).
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub ([`crate::dcerpc::fault::BAD_STUB_DATA`]).
    pub fn decode(opnum: u16, stub: &[u8]) -> Result<Option<Self>, WireError> {
        let mut r = NdrReader::new(stub);
        Ok(Some(match opnum {
            opnum::SHARE_ENUM => Self::read_share_enum(&mut r, false)?,
            opnum::SHARE_ENUM_STICKY => Self::read_share_enum(&mut r, true)?,
            opnum::SHARE_GET_INFO => {
                Self::ShareGetInfo { server_name: r.unique_string()?, net_name: r.string()?, level: r.u32()? }
            }
            opnum::SERVER_GET_INFO => {
                Self::ServerGetInfo { server_name: r.unique_string()?, level: r.u32()? }
            }
            _ => return Ok(None),
        }))
    }

    fn read_share_enum(r: &mut NdrReader<'_>, sticky: bool) -> Result<Self, WireError> {
        let server_name = r.unique_string()?;
        let level = r.u32()?;
        if r.u32()? != level {
            return Err(WireError::Invalid("switch of SHARE_ENUM_UNION"));
        }
        // The container: the number of entries (0 in a request), and a pointer to them.
        if r.pointer()? && (r.u32()?, r.pointer()?) != (0, false) {
            return Err(WireError::Invalid("SHARE_ENUM_STRUCT"));
        }
        let preferred_maximum_length = r.u32()?;
        let resume_handle = r.unique_u32()?;
        Ok(Self::ShareEnum { sticky, server_name, level, preferred_maximum_length, resume_handle })
    }

    /// The procedure.
    #[must_use]
    pub const fn opnum(&self) -> u16 {
        match self {
            Self::ShareEnum { sticky: false, .. } => opnum::SHARE_ENUM,
            Self::ShareEnum { sticky: true, .. } => opnum::SHARE_ENUM_STICKY,
            Self::ShareGetInfo { .. } => opnum::SHARE_GET_INFO,
            Self::ServerGetInfo { .. } => opnum::SERVER_GET_INFO,
        }
    }

    /// Appends the stub.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        match self {
            Self::ShareEnum { server_name, level, preferred_maximum_length, resume_handle, .. } => {
                w.unique_string(server_name.as_deref())?;
                w.u32(*level);
                w.u32(*level);
                w.pointer(true);
                w.u32(0);
                w.pointer(false);
                w.u32(*preferred_maximum_length);
                w.unique_u32(*resume_handle);
            }
            Self::ShareGetInfo { server_name, net_name, level } => {
                w.unique_string(server_name.as_deref())?;
                w.string(net_name)?;
                w.u32(*level);
            }
            Self::ServerGetInfo { server_name, level } => {
                w.unique_string(server_name.as_deref())?;
                w.u32(*level);
            }
        }
        Ok(())
    }
}

/// A share. The level decides which of its fields are sent; the others have the values of [`Share::default`] after
/// decoding.
#[doc(alias = "SHARE_INFO_2")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Share {
    /// The name. All levels but 1005.
    pub name: String,
    /// The type ([`share_type`]). Levels 1, 2, 502.
    pub share_type: u32,
    /// A remark. Levels 1, 2, 502.
    pub remark: String,
    /// Not used; 0. Levels 2, 502.
    pub permissions: u32,
    /// The most connections; `u32::MAX` for no limit. Levels 2, 502.
    pub max_uses: u32,
    /// The number of connections. Levels 2, 502.
    pub current_uses: u32,
    /// The path on the server, `C:\...`. Levels 2, 502.
    pub path: String,
    /// SHI1005_FLAGS_*. Level 1005.
    pub flags: u32,
}

/// The fields that a level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShareLevel {
    Zero,
    One,
    Two,
    FiveHundredTwo,
    ThousandFive,
}

impl ShareLevel {
    const fn of(level: u32) -> Option<Self> {
        match level {
            0 => Some(Self::Zero),
            1 => Some(Self::One),
            2 => Some(Self::Two),
            502 => Some(Self::FiveHundredTwo),
            1005 => Some(Self::ThousandFive),
            _ => None,
        }
    }

    /// The level, if NetrShareEnum supports it.
    const fn for_enum(level: u32) -> Option<Self> {
        match Self::of(level) {
            Some(Self::ThousandFive) => None,
            level => level,
        }
    }
}

impl Share {
    /// Appends the part of fixed length, which the strings follow.
    fn put_fixed(&self, level: ShareLevel, w: &mut NdrWriter<'_>) {
        if level == ShareLevel::ThousandFive {
            return w.u32(self.flags);
        }
        w.pointer(true);
        if level == ShareLevel::Zero {
            return;
        }
        w.u32(self.share_type);
        w.pointer(true);
        if level == ShareLevel::One {
            return;
        }
        w.u32(self.permissions);
        w.u32(self.max_uses);
        w.u32(self.current_uses);
        w.pointer(true);
        // No password.
        w.pointer(false);
        if level == ShareLevel::FiveHundredTwo {
            // No security descriptor: its length and a pointer to it.
            w.u32(0);
            w.pointer(false);
        }
    }

    fn put_strings(&self, level: ShareLevel, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
        if level == ShareLevel::ThousandFive {
            return Ok(());
        }
        w.string(&self.name)?;
        if level == ShareLevel::Zero {
            return Ok(());
        }
        w.string(&self.remark)?;
        if level == ShareLevel::One { Ok(()) } else { w.string(&self.path) }
    }
}

/// A share whose strings have not been read yet: which of its pointers are not null.
#[derive(Debug)]
struct SharePointers {
    share: Share,
    name: bool,
    remark: bool,
    path: bool,
    password: bool,
}

impl SharePointers {
    fn read(level: ShareLevel, r: &mut NdrReader<'_>) -> Result<Self, WireError> {
        let mut this =
            Self { share: Share::default(), name: false, remark: false, path: false, password: false };
        if level == ShareLevel::ThousandFive {
            this.share.flags = r.u32()?;
            return Ok(this);
        }
        this.name = r.pointer()?;
        if level == ShareLevel::Zero {
            return Ok(this);
        }
        this.share.share_type = r.u32()?;
        this.remark = r.pointer()?;
        if level == ShareLevel::One {
            return Ok(this);
        }
        this.share.permissions = r.u32()?;
        this.share.max_uses = r.u32()?;
        this.share.current_uses = r.u32()?;
        this.path = r.pointer()?;
        this.password = r.pointer()?;
        if level == ShareLevel::FiveHundredTwo && (r.u32()?, r.pointer()?) != (0, false) {
            return Err(WireError::Invalid("security descriptor of a share"));
        }
        Ok(this)
    }

    fn read_strings(mut self, r: &mut NdrReader<'_>) -> Result<Share, WireError> {
        let mut string = |present| if present { r.string() } else { Ok(String::new()) };
        self.share.name = string(self.name)?;
        self.share.remark = string(self.remark)?;
        self.share.path = string(self.path)?;
        string(self.password)?;
        Ok(self.share)
    }
}

/// The server.
#[doc(alias = "SERVER_INFO_101")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// [`PLATFORM_ID_NT`]
    pub platform_id: u32,
    /// The name.
    pub name: String,
    /// The major version that the server claims. Level 101.
    pub version_major: u32,
    /// The minor version that the server claims. Level 101.
    pub version_minor: u32,
    /// SV_TYPE_*. Level 101.
    pub server_type: u32,
    /// A remark. Level 101.
    pub comment: String,
}

/// The results of a call, without the Win32 error at the end of every stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// NetrShareEnum
    ShareEnum {
        /// The level of the request.
        level: u32,
        /// The shares; none for an unsupported level ([`win32::INVALID_LEVEL`]).
        shares: Vec<Share>,
        /// The total number of shares.
        total_entries: u32,
        /// Where to continue, if the request had a handle.
        resume_handle: Option<u32>,
    },
    /// NetrShareGetInfo
    ShareGetInfo {
        /// The level of the request.
        level: u32,
        /// The share; None after an error.
        share: Option<Share>,
    },
    /// NetrServerGetInfo
    ServerGetInfo {
        /// The level of the request.
        level: u32,
        /// The server; None after an error.
        server: Option<Server>,
    },
}

impl Response {
    /// Appends the stub, which ends with `error` ([`win32`]).
    ///
    /// # Errors
    /// [`WireError::TooLong`]; [`WireError::Invalid`] for a share or server at an unsupported level.
    pub fn encode_into(&self, error: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        match self {
            Self::ShareEnum { level, shares, total_entries, resume_handle } => {
                put_shares(*level, shares, &mut w)?;
                w.u32(*total_entries);
                w.unique_u32(*resume_handle);
            }
            Self::ShareGetInfo { level, share } => {
                w.u32(*level);
                w.pointer(share.is_some());
                if let Some(share) = share {
                    let level = ShareLevel::of(*level).ok_or(WireError::Invalid("level of a share"))?;
                    share.put_fixed(level, &mut w);
                    share.put_strings(level, &mut w)?;
                }
            }
            Self::ServerGetInfo { level, server } => {
                w.u32(*level);
                w.pointer(server.is_some());
                if let Some(server) = server {
                    put_server(*level, server, &mut w)?;
                }
            }
        }
        w.u32(error);
        Ok(())
    }

    /// Decodes the stub of the response to a request with this `opnum`. Returns the response and the Win32 error.
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub or another procedure.
    pub fn decode(opnum: u16, stub: &[u8]) -> Result<(Self, u32), WireError> {
        let mut r = NdrReader::new(stub);
        let this = match opnum {
            opnum::SHARE_ENUM | opnum::SHARE_ENUM_STICKY => {
                let (level, shares) = read_shares(&mut r)?;
                Self::ShareEnum { level, shares, total_entries: r.u32()?, resume_handle: r.unique_u32()? }
            }
            opnum::SHARE_GET_INFO => {
                let level = r.u32()?;
                Self::ShareGetInfo { level, share: read_share(level, &mut r)? }
            }
            opnum::SERVER_GET_INFO => {
                let level = r.u32()?;
                Self::ServerGetInfo { level, server: read_server(level, &mut r)? }
            }
            _ => return Err(WireError::Invalid("opnum")),
        };
        Ok((this, r.u32()?))
    }
}

fn put_shares(level: u32, shares: &[Share], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.u32(level);
    w.u32(level);
    let Some(level) = ShareLevel::for_enum(level) else {
        w.pointer(false);
        return Ok(());
    };
    w.pointer(true);
    w.count(shares.len())?;
    w.pointer(true);
    w.count(shares.len())?;
    shares.iter().for_each(|share| share.put_fixed(level, w));
    shares.iter().try_for_each(|share| share.put_strings(level, w))
}

fn read_shares(r: &mut NdrReader<'_>) -> Result<(u32, Vec<Share>), WireError> {
    let level = r.u32()?;
    if r.u32()? != level {
        return Err(WireError::Invalid("switch of SHARE_ENUM_UNION"));
    }
    if !r.pointer()? {
        return Ok((level, Vec::new()));
    }
    let form = ShareLevel::for_enum(level).ok_or(WireError::Invalid("level of a share"))?;
    let count = r.u32()?;
    if !r.pointer()? {
        return Ok((level, Vec::new()));
    }
    if r.u32()? != count {
        return Err(WireError::Invalid("SHARE_INFO_CONTAINER"));
    }
    let pointers: Vec<_> = (0..count).map(|_| SharePointers::read(form, r)).collect::<Result<_, _>>()?;
    let shares = pointers.into_iter().map(|share| share.read_strings(r)).collect::<Result<_, _>>()?;
    Ok((level, shares))
}

fn read_share(level: u32, r: &mut NdrReader<'_>) -> Result<Option<Share>, WireError> {
    if !r.pointer()? {
        return Ok(None);
    }
    let form = ShareLevel::of(level).ok_or(WireError::Invalid("level of a share"))?;
    SharePointers::read(form, r)?.read_strings(r).map(Some)
}

fn put_server(level: u32, server: &Server, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.u32(server.platform_id);
    w.pointer(true);
    match level {
        100 => w.string(&server.name),
        101 => {
            w.u32(server.version_major);
            w.u32(server.version_minor);
            w.u32(server.server_type);
            w.pointer(true);
            w.string(&server.name)?;
            w.string(&server.comment)
        }
        _ => Err(WireError::Invalid("level of a server")),
    }
}

fn read_server(level: u32, r: &mut NdrReader<'_>) -> Result<Option<Server>, WireError> {
    if !r.pointer()? {
        return Ok(None);
    }
    let mut server = Server { platform_id: r.u32()?, ..Server::default() };
    let name = r.pointer()?;
    let comment = match level {
        100 => false,
        101 => {
            server.version_major = r.u32()?;
            server.version_minor = r.u32()?;
            server.server_type = r.u32()?;
            r.pointer()?
        }
        _ => return Err(WireError::Invalid("level of a server")),
    };
    let mut string = |present| if present { r.string() } else { Ok(String::new()) };
    server.name = string(name)?;
    server.comment = string(comment)?;
    Ok(Some(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_stubs_are_refused() {
        let mut stub = Vec::new();
        let request = Request::ShareGetInfo { server_name: None, net_name: "ab".to_owned(), level: 1 };
        request.encode_into(&mut stub).unwrap();
        // Pointer, then MaximumCount, Offset, ActualCount, "ab", zero, level
        assert_eq!(stub.len(), 4 + 12 + 6 + 2 + 4);
        let with = |at: usize, value: u8| {
            let mut stub = stub.clone();
            stub[at] = value;
            Request::decode(16, &stub)
        };
        assert_eq!(with(4, 3), Ok(Some(request)));
        // More characters than there is room for, an offset, no characters at all, no zero at the end
        for (at, lie) in [(4, 2), (8, 1), (12, 0), (12, 200), (20, 1)] {
            assert!(with(at, lie).is_err(), "{at} {lie}");
        }
        assert_eq!(Request::decode(99, &stub), Ok(None));
    }

    #[test]
    fn a_request_brings_no_entries() {
        let mut stub = Vec::new();
        let request = Request::ShareEnum {
            sticky: false,
            server_name: None,
            level: 1,
            preferred_maximum_length: 0,
            resume_handle: None,
        };
        request.encode_into(&mut stub).unwrap();
        assert_eq!(Request::decode(15, &stub), Ok(Some(request)));
        stub[16] = 1;
        assert!(Request::decode(15, &stub).is_err());
    }

    #[test]
    fn a_level_without_form_has_no_shares() {
        let response =
            Response::ShareEnum { level: 501, shares: vec![], total_entries: 0, resume_handle: None };
        let mut stub = Vec::new();
        response.encode_into(win32::INVALID_LEVEL, &mut stub).unwrap();
        assert_eq!(Response::decode(15, &stub), Ok((response, win32::INVALID_LEVEL)));
    }
}
