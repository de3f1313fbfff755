//! The PAC of a ticket: who the client is, in the domain of this machine. [MS-PAC].
//!
//! All lengths are those of names that were checked before and of SIDs; what would not fit makes no PAC.

use acl::Sid;
use krb5::Time;
use krb5::crypto::ChecksumKey;

/// The types of the buffers. [MS-PAC] 2.4.
const LOGON_INFO: u32 = 1;
const SERVER_SIGNATURE: u32 = 6;
const KDC_SIGNATURE: u32 = 7;
const CLIENT_INFO: u32 = 10;
const REQUESTOR: u32 = 18;
/// DOMAIN_GROUP_RID_USERS, the group of all users of a domain. [MS-DTYP] 2.4.2.4.
const DOMAIN_USERS: u32 = 513;
/// SE_GROUP_MANDATORY, SE_GROUP_ENABLED_BY_DEFAULT, SE_GROUP_ENABLED. [MS-PAC] 2.2.1.
const GROUP_ATTRIBUTES: u32 = 7;
/// USER_NORMAL_ACCOUNT. [MS-SAMR] 2.2.1.12.
const NORMAL_ACCOUNT: u32 = 0x10;
/// A FILETIME that never comes. [MS-PAC] 2.5.
const NEVER: u64 = 0x7fff_ffff_ffff_ffff;
/// The bytes of PAC_SIGNATURE_DATA before the signature.
const SIGNATURE_TYPE_LEN: usize = 4;

/// Whom a PAC is about.
pub(crate) struct Subject<'a> {
    /// The client's name
    pub(crate) name: &'a str,
    /// The name of its domain
    pub(crate) domain: &'a str,
    pub(crate) sid: &'a Sid,
    pub(crate) auth_time: Time,
}

/// The PAC with both signatures: that of the service's key, over all, and that of the KDC's, over the first.
/// [MS-PAC] 2.8.2, 2.8.3.
pub(crate) fn signed(subject: &Subject<'_>, server: &ChecksumKey, kdc: &ChecksumKey) -> Option<Vec<u8>> {
    let mut requestor = Vec::new();
    subject.sid.encode_into(&mut requestor);
    let buffers = [
        (LOGON_INFO, logon_info(subject)?),
        (CLIENT_INFO, client_info(subject)?),
        (REQUESTOR, requestor),
        (SERVER_SIGNATURE, unsigned(server)),
        (KDC_SIGNATURE, unsigned(kdc)),
    ];
    let (mut pac, places) = laid_out(&buffers)?;
    let [.., server_at, kdc_at] = places.as_slice() else { return None };
    let first = server.tag(&[&pac]);
    put_signature(&mut pac, *server_at, first.as_ref())?;
    put_signature(&mut pac, *kdc_at, kdc.tag(&[first.as_ref()]).as_ref())?;
    Some(pac)
}

/// PAC_SIGNATURE_DATA with zeros in place of the signature.
fn unsigned(key: &ChecksumKey) -> Vec<u8> {
    let mut bytes = key.enctype().checksum_number().to_le_bytes().to_vec();
    bytes.resize(SIGNATURE_TYPE_LEN.saturating_add(key.enctype().tag_len()), 0);
    bytes
}

fn put_signature(pac: &mut [u8], at: usize, signature: &[u8]) -> Option<()> {
    let start = at.checked_add(SIGNATURE_TYPE_LEN)?;
    pac.get_mut(start..)?.get_mut(..signature.len())?.copy_from_slice(signature);
    Some(())
}

/// PACTYPE with its buffers, each at a multiple of 8, and where they are. [MS-PAC] 2.3, 2.4.
fn laid_out(buffers: &[(u32, Vec<u8>)]) -> Option<(Vec<u8>, Vec<usize>)> {
    let mut head = u32::try_from(buffers.len()).ok()?.to_le_bytes().to_vec();
    head.extend([0; 4]);
    let start = buffers.len().checked_mul(16)?.checked_add(head.len())?;
    let (mut content, mut places) = (Vec::new(), Vec::new());
    for (kind, bytes) in buffers {
        let place = start.checked_add(content.len())?;
        places.push(place);
        head.extend(kind.to_le_bytes());
        head.extend(u32::try_from(bytes.len()).ok()?.to_le_bytes());
        head.extend(u64::try_from(place).ok()?.to_le_bytes());
        content.extend_from_slice(bytes);
        content.resize(content.len().checked_next_multiple_of(8)?, 0);
    }
    head.extend(content);
    Some((head, places))
}

/// PAC_CLIENT_INFO: `ClientId` (the authtime), `NameLength` in bytes, `Name`. [MS-PAC] 2.7.
fn client_info(subject: &Subject<'_>) -> Option<Vec<u8>> {
    let name = utf16(subject.name);
    let length = u16::try_from(name.len()).ok()?;
    let mut bytes = subject.auth_time.to_filetime().to_le_bytes().to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.extend(name);
    Some(bytes)
}

/// KERB_VALIDATION_INFO, serialised. [MS-PAC] 2.5, [MS-RPCE] 2.2.6.
fn logon_info(subject: &Subject<'_>) -> Option<Vec<u8>> {
    let (domain, rid) = subject.sid.in_domain()?;
    let texts = [subject.name, "", "", "", "", ""];
    let mut ndr = Ndr::default();
    ndr.pointer();
    ndr.time(subject.auth_time.to_filetime()); // LogonTime
    [NEVER, NEVER, 0, 0, NEVER].into_iter().for_each(|time| ndr.time(time));
    for text in texts {
        ndr.text_pointer(text)?;
    }
    ndr.u32(0); // LogonCount, BadPasswordCount
    ndr.u32(rid);
    ndr.u32(DOMAIN_USERS);
    ndr.u32(1); // GroupCount
    ndr.pointer();
    ndr.u32(0); // UserFlags
    ndr.0.extend([0; 16]); // UserSessionKey
    ndr.text_pointer(subject.domain)?; // LogonServer
    ndr.text_pointer(subject.domain)?;
    ndr.pointer(); // LogonDomainId
    ndr.u32(0);
    ndr.u32(0); // Reserved1
    ndr.u32(NORMAL_ACCOUNT);
    (0..7).for_each(|_| ndr.u32(0)); // SubAuthStatus to Reserved3
    ndr.u32(0); // SidCount
    ndr.u32(0);
    ndr.u32(0); // ResourceGroupDomainSid
    ndr.u32(0); // ResourceGroupCount
    ndr.u32(0);
    for text in texts {
        ndr.text(text)?;
    }
    ndr.u32(1);
    ndr.u32(DOMAIN_USERS);
    ndr.u32(GROUP_ATTRIBUTES);
    ndr.text(subject.domain)?;
    ndr.text(subject.domain)?;
    ndr.sid(&domain)?;
    let length = u32::try_from(ndr.0.len()).ok()?;
    let mut bytes = vec![1, 0x10, 8, 0, 0xcc, 0xcc, 0xcc, 0xcc];
    bytes.extend(length.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(ndr.0);
    Some(bytes)
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Writes values one after another, each at a multiple of 4. [C706] 14.
#[derive(Default)]
struct Ndr(Vec<u8>);

impl Ndr {
    fn u32(&mut self, value: u32) {
        let at = self.0.len().checked_next_multiple_of(4).unwrap_or(self.0.len());
        self.0.resize(at, 0);
        self.0.extend(value.to_le_bytes());
    }

    /// The values of pointers differ, and mean nothing.
    fn pointer(&mut self) {
        let place = u32::try_from(self.0.len()).unwrap_or_default();
        self.u32(place | 0x2_0000);
    }

    /// Two numbers of 32 bits, the lower one first.
    fn time(&mut self, filetime: u64) {
        let [a, b, c, d, high @ ..] = filetime.to_le_bytes();
        self.u32(u32::from_le_bytes([a, b, c, d]));
        self.u32(u32::from_le_bytes(high));
    }

    /// RPC_UNICODE_STRING: `Length`, `MaximumLength`, and a pointer to the text.
    fn text_pointer(&mut self, text: &str) -> Option<()> {
        let length = u32::from(u16::try_from(utf16(text).len()).ok()?);
        self.u32(length | length << 16);
        self.pointer();
        Some(())
    }

    /// A conformant and varying array of UTF-16 units.
    fn text(&mut self, text: &str) -> Option<()> {
        let bytes = utf16(text);
        let units = u32::try_from(bytes.len() / 2).ok()?;
        self.u32(units);
        self.u32(0);
        self.u32(units);
        self.0.extend(bytes);
        Some(())
    }

    fn sid(&mut self, sid: &Sid) -> Option<()> {
        self.u32(u32::try_from(sid.sub_authorities().len()).ok()?);
        sid.encode_into(&mut self.0);
        Some(())
    }
}
