//! The share redirect, [MS-SMB2] 2.2.2.2.2: `ErrorContextData` that says which server has a share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::codec::{Put, Reader, Utf16, WireError, len_u32, variable};

/// Bytes in front of IPAddrMoveList.
const FIXED_BYTES: usize = 24;
/// Bytes of a MOVE_DST_IPADDR ([MS-SMB2] 2.2.2.2.2.1).
const ADDRESS_BYTES: usize = 24;
/// "This field MUST be set to 48, indicating the size of this structure with a single MOVE_DST_IPADDR structure", however
/// many there are.
const STRUCTURE_SIZE: u32 = 48;
/// SHARE_MOVE_NOTIFICATION, [MS-SWN] 2.2.2.4.
const SHARE_MOVE_NOTIFICATION: u32 = 3;
/// MOVE_DST_IPADDR_V4
const V4: u32 = 1;
/// MOVE_DST_IPADDR_V6
const V6: u32 = 2;

/// A share redirect. It answers TREE_CONNECT with STATUS_BAD_NETWORK_NAME in an error context of
/// [`ERROR_ID_SHARE_REDIRECT`](crate::error_response::ERROR_ID_SHARE_REDIRECT).
#[doc(alias = "SHARE_REDIRECT_ERROR_CONTEXT_RESPONSE")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRedirect<'a> {
    /// The addresses of the server that has the share.
    pub addresses: Vec<IpAddr>,
    /// The name of the share.
    pub resource_name: Utf16<'a>,
}

impl<'a> ShareRedirect<'a> {
    /// Decodes `ErrorContextData`.
    ///
    /// # Errors
    /// [`WireError`] for anything but a well-formed share redirect.
    pub fn decode(data: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(data);
        r.skip(4)?; // StructureSize, which older versions of the specification have as the size of the whole
        if r.u32()? != SHARE_MOVE_NOTIFICATION {
            return Err(WireError::Invalid("NotificationType of the share redirect"));
        }
        let (offset, length) = (r.len32()?, r.len32()?);
        r.skip(4)?; // Reserved, TargetType
        let count = r.len32()?;
        let addresses = (0..count).map(|_| read_address(&mut r)).collect::<Result<Vec<_>, _>>()?;
        let fixed_end = data.len().saturating_sub(r.rest().len());
        let name = variable(data, fixed_end, offset, length, "ResourceName")?;
        Ok(Self { addresses, resource_name: Utf16::from_wire(name)? })
    }

    /// The bytes of `ErrorContextData`.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let list = self.addresses.len().saturating_mul(ADDRESS_BYTES);
        let (offset, length) = (list.saturating_add(FIXED_BYTES), self.resource_name.byte_len());
        let mut out = Vec::with_capacity(offset.saturating_add(length));
        out.put_u32(STRUCTURE_SIZE);
        out.put_u32(SHARE_MOVE_NOTIFICATION);
        out.put_u32(len_u32(offset, "ResourceNameOffset")?);
        out.put_u32(len_u32(length, "ResourceName")?);
        out.put_u32(0);
        out.put_u32(len_u32(self.addresses.len(), "IPAddrCount")?);
        self.addresses.iter().for_each(|address| put_address(*address, &mut out));
        self.resource_name.encode_into(&mut out);
        Ok(out)
    }
}

fn read_address(r: &mut Reader<'_>) -> Result<IpAddr, WireError> {
    let kind = r.u32()?;
    r.skip(4)?;
    let bytes = r.array::<16>()?;
    match kind {
        V4 => {
            let [a, b, c, d, ..] = bytes;
            Ok(Ipv4Addr::new(a, b, c, d).into())
        }
        V6 => Ok(Ipv6Addr::from(bytes).into()),
        _ => Err(WireError::Invalid("Type of the MOVE_DST_IPADDR")),
    }
}

fn put_address(address: IpAddr, out: &mut Vec<u8>) {
    out.put_u32(if address.is_ipv4() { V4 } else { V6 });
    out.put_u32(0);
    match address {
        IpAddr::V4(address) => {
            out.put(&address.octets());
            out.put(&[0; 12]);
        }
        IpAddr::V6(address) => out.put(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields in the order and with the values of [MS-SMB2] 2.2.2.2.2 and 2.2.2.2.2.1.
    #[test]
    fn it_has_the_layout_of_the_specification() {
        let addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let redirect = ShareRedirect { addresses, resource_name: "ab".into() };
        let bytes = [
            &[48, 0, 0, 0, 3, 0, 0, 0, 72, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0][..],
            &[1, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0, 0, 0, 0, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[b'a', 0, b'b', 0],
        ]
        .concat();
        assert_eq!(redirect.encode().unwrap(), bytes);
        assert_eq!(ShareRedirect::decode(&bytes), Ok(redirect));
        for end in 0..bytes.len() {
            assert!(ShareRedirect::decode(&bytes[..end]).is_err(), "{end}");
        }
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            ShareRedirect::decode(&bytes).is_err()
        };
        assert!(with(4, 1), "another notification");
        assert!(with(23, 0xff), "more addresses than there are bytes");
        assert!(with(24, 3), "another type of address");
        assert!(with(8, 71), "the name begins within the addresses");
    }
}
