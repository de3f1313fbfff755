//! The Local Security Authority, [MS-LSAT] and [MS-LSAD], through which clients turn SIDs into names and names into
//! SIDs. Stubs in NDR.

use acl::Sid;

use crate::codec::{WireError, len_u32};
use crate::dcerpc::SyntaxId;
use crate::dtyp::Guid;
use crate::ndr::{NdrReader, NdrWriter};

/// The interface, 12345778-1234-abcd-ef00-0123456789ab version 0.0.
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x78, 0x57, 0x34, 0x12, 0x34, 0x12, 0xcd, 0xab, 0xef, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
    ]),
    version: 0,
};

/// The most SIDs or names of one call, and the most domains of one answer ([MS-LSAT] 3.1.4.5 to 3.1.4.8).
pub const LOOKUPS_MAX: usize = 1000;
/// The index of a name or SID that belongs to no domain of the answer ([MS-LSAT] 2.2.13).
const NO_DOMAIN: u32 = u32::MAX;

mod opnum {
    pub(super) const CLOSE: u16 = 0;
    pub(super) const OPEN_POLICY: u16 = 6;
    pub(super) const QUERY_INFORMATION_POLICY: u16 = 7;
    pub(super) const LOOKUP_NAMES: u16 = 14;
    pub(super) const LOOKUP_SIDS: u16 = 15;
    pub(super) const OPEN_POLICY2: u16 = 44;
    pub(super) const GET_USER_NAME: u16 = 45;
    pub(super) const QUERY_INFORMATION_POLICY2: u16 = 46;
    pub(super) const LOOKUP_SIDS2: u16 = 57;
    pub(super) const LOOKUP_NAMES2: u16 = 58;
    pub(super) const LOOKUP_NAMES3: u16 = 68;
}

/// A handle of the policy object.
#[doc(alias = "LSAPR_HANDLE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyHandle(pub [u8; 20]);

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// LsarClose
    Close(PolicyHandle),
    /// LsarOpenPolicy and LsarOpenPolicy2. The arguments are not decoded: the object attributes are to be ignored
    /// ([MS-LSAD] 3.1.4.4.1), and a server that answers nothing but look-ups has no rights to give.
    OpenPolicy,
    /// LsarQueryInformationPolicy and LsarQueryInformationPolicy2
    QueryInformationPolicy {
        /// The policy object.
        policy: PolicyHandle,
        /// POLICY_INFORMATION_CLASS ([MS-LSAD] 2.2.4.1)
        class: u16,
    },
    /// LsarLookupSids and LsarLookupSids2
    LookupSids {
        /// The policy object.
        policy: PolicyHandle,
        /// Whether the answer has the form of LsarLookupSids2.
        extended: bool,
        /// The SIDs, at most [`LOOKUPS_MAX`].
        sids: Vec<Sid>,
    },
    /// LsarLookupNames, LsarLookupNames2 and LsarLookupNames3
    LookupNames {
        /// The policy object.
        policy: PolicyHandle,
        /// The form of the answer.
        form: SidsForm,
        /// The names, at most [`LOOKUPS_MAX`].
        names: Vec<String>,
    },
    /// LsarGetUserName
    GetUserName {
        /// Whether the domain of the user is asked for.
        domain: bool,
    },
}

/// The form in which SIDs are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SidsForm {
    /// Of LsarLookupNames: LSA_TRANSLATED_SID
    Rid,
    /// Of LsarLookupNames2: LSAPR_TRANSLATED_SID_EX
    RidExtended,
    /// Of LsarLookupNames3: LSAPR_TRANSLATED_SID_EX2
    Sid,
}

impl Request {
    /// Decodes the stub of a request; `None` when this crate does not know the procedure
    /// ([`crate::dcerpc::fault::OP_RANGE_ERROR`]).
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub ([`crate::dcerpc::fault::BAD_STUB_DATA`]).
    pub fn decode(opnum: u16, stub: &[u8]) -> Result<Option<Self>, WireError> {
        let mut r = NdrReader::new(stub);
        let mut policy = || r.array().map(PolicyHandle);
        Ok(Some(match opnum {
            opnum::OPEN_POLICY | opnum::OPEN_POLICY2 => Self::OpenPolicy,
            opnum::CLOSE => Self::Close(policy()?),
            opnum::QUERY_INFORMATION_POLICY | opnum::QUERY_INFORMATION_POLICY2 => {
                Self::QueryInformationPolicy { policy: policy()?, class: r.u16()? }
            }
            opnum::LOOKUP_SIDS | opnum::LOOKUP_SIDS2 => Self::LookupSids {
                policy: policy()?,
                extended: opnum == opnum::LOOKUP_SIDS2,
                sids: read_sids(&mut r)?,
            },
            opnum::LOOKUP_NAMES | opnum::LOOKUP_NAMES2 | opnum::LOOKUP_NAMES3 => {
                let form = match opnum {
                    opnum::LOOKUP_NAMES => SidsForm::Rid,
                    opnum::LOOKUP_NAMES2 => SidsForm::RidExtended,
                    _ => SidsForm::Sid,
                };
                Self::LookupNames { policy: policy()?, form, names: read_names(&mut r)? }
            }
            opnum::GET_USER_NAME => Self::read_get_user_name(&mut r)?,
            _ => return Ok(None),
        }))
    }

    fn read_get_user_name(r: &mut NdrReader<'_>) -> Result<Self, WireError> {
        r.unique_string()?;
        if r.pointer()? && r.counted()? {
            r.characters()?;
        }
        Ok(Self::GetUserName { domain: r.pointer()? })
    }
}

/// The number of entries of an array that follows, which its conformance repeats.
fn read_count(r: &mut NdrReader<'_>, count: u32) -> Result<usize, WireError> {
    let entries = r.u32()?;
    match usize::try_from(count) {
        Ok(count) if entries as usize == count && count <= LOOKUPS_MAX => Ok(count),
        _ => Err(WireError::Invalid("number of look-ups")),
    }
}

/// LSAPR_SID_ENUM_BUFFER, [MS-LSAT] 2.2.18.
fn read_sids(r: &mut NdrReader<'_>) -> Result<Vec<Sid>, WireError> {
    let count = r.u32()?;
    if !r.pointer()? {
        return if count == 0 { Ok(Vec::new()) } else { Err(WireError::Invalid("SIDs to look up")) };
    }
    let count = read_count(r, count)?;
    for _ in 0..count {
        if !r.pointer()? {
            return Err(WireError::Invalid("SID to look up"));
        }
    }
    (0..count).map(|_| r.sid()).collect()
}

fn read_names(r: &mut NdrReader<'_>) -> Result<Vec<String>, WireError> {
    let count = r.u32()?;
    let count = read_count(r, count)?;
    let present = (0..count).map(|_| r.counted()).collect::<Result<Vec<bool>, _>>()?;
    present.into_iter().map(|present| if present { r.characters() } else { Ok(String::new()) }).collect()
}

/// What a SID stands for.
#[doc(alias = "SID_NAME_USE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum SidKind {
    /// SidTypeUser
    User = 1,
    /// SidTypeGroup
    Group = 2,
    /// SidTypeDomain
    Domain = 3,
    /// SidTypeAlias: a local group.
    Alias = 4,
    /// SidTypeWellKnownGroup
    WellKnownGroup = 5,
    /// SidTypeUnknown
    Unknown = 8,
}

/// A domain, or another set of names.
#[doc(alias = "LSAPR_TRUST_INFORMATION")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Its SID, if it has one.
    pub sid: Option<Sid>,
}

/// The name of a SID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedName {
    /// What it is.
    pub kind: SidKind,
    /// The name; for an unknown SID the text of the SID.
    pub name: String,
    /// The index of its domain in the answer.
    pub domain: Option<usize>,
}

/// The SID of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedSid {
    /// What it is.
    pub kind: SidKind,
    /// The SID; None for an unknown name.
    pub sid: Option<Sid>,
    /// The index of its domain in the answer.
    pub domain: Option<usize>,
}

/// What the policy object says ([MS-LSAD] 2.2.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyInformation {
    /// PolicyPrimaryDomainInformation (3): the domain or workgroup that the server belongs to.
    PrimaryDomain(Domain),
    /// PolicyAccountDomainInformation (5): the set of the server's own accounts.
    AccountDomain(Domain),
    /// PolicyDnsDomainInformation (12), without a domain in DNS.
    DnsDomain(Domain),
}

/// The results of a call, without the status at the end of every stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// LsarOpenPolicy: the handle. LsarClose: zeros.
    Policy(PolicyHandle),
    /// LsarQueryInformationPolicy: None after an error.
    Information(Option<PolicyInformation>),
    /// LsarLookupSids
    Names {
        /// Whether the answer has the form of LsarLookupSids2.
        extended: bool,
        /// The domains of the names.
        domains: Vec<Domain>,
        /// One for each SID.
        names: Vec<TranslatedName>,
    },
    /// LsarLookupNames
    Sids {
        /// The form of the answer.
        form: SidsForm,
        /// The domains of the SIDs.
        domains: Vec<Domain>,
        /// One for each name.
        sids: Vec<TranslatedSid>,
    },
    /// LsarGetUserName
    UserName {
        /// The name of the user.
        name: String,
        /// The domain, if it was asked for.
        domain: Option<String>,
    },
}

impl Response {
    /// Appends the stub, which ends with `status`.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, status: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        match self {
            Self::Policy(PolicyHandle(bytes)) => w.bytes(bytes),
            Self::Information(information) => {
                w.pointer(information.is_some());
                if let Some(information) = information {
                    put_information(information, &mut w)?;
                }
            }
            Self::Names { extended, domains, names } => {
                put_domains(domains, &mut w)?;
                put_names(names, *extended, &mut w)?;
                w.count(names.iter().filter(|name| name.kind != SidKind::Unknown).count())?;
            }
            Self::Sids { form, domains, sids } => {
                put_domains(domains, &mut w)?;
                put_sids(sids, *form, &mut w)?;
                w.count(sids.iter().filter(|sid| sid.kind != SidKind::Unknown).count())?;
            }
            Self::UserName { name, domain } => {
                w.pointer(true);
                w.counted(name)?;
                w.characters(name)?;
                // A pointer to a pointer.
                w.pointer(domain.is_some());
                if let Some(domain) = domain {
                    w.pointer(true);
                    w.counted(domain)?;
                    w.characters(domain)?;
                }
            }
        }
        w.u32(status);
        Ok(())
    }
}

fn put_information(information: &PolicyInformation, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    let (class, domain) = match information {
        PolicyInformation::PrimaryDomain(domain) => (3, domain),
        PolicyInformation::AccountDomain(domain) => (5, domain),
        PolicyInformation::DnsDomain(domain) => (12, domain),
    };
    w.u16(class);
    // The union is aligned like its members.
    w.align(4);
    w.counted(&domain.name)?;
    let in_dns = matches!(information, PolicyInformation::DnsDomain(_));
    if in_dns {
        // No domain and no forest in DNS, and no GUID.
        w.counted("")?;
        w.counted("")?;
        w.bytes(&[0; 16]);
    }
    w.pointer(domain.sid.is_some());
    w.characters(&domain.name)?;
    if in_dns {
        w.characters("")?;
        w.characters("")?;
    }
    domain.sid.as_ref().map_or(Ok(()), |sid| w.sid(sid))
}

/// LSAPR_REFERENCED_DOMAIN_LIST, [MS-LSAT] 2.2.12.
fn put_domains(domains: &[Domain], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.pointer(true);
    w.count(domains.len())?;
    w.pointer(!domains.is_empty());
    w.u32(len_u32(LOOKUPS_MAX, "look-ups")?);
    if domains.is_empty() {
        return Ok(());
    }
    w.count(domains.len())?;
    for domain in domains {
        w.counted(&domain.name)?;
        w.pointer(domain.sid.is_some());
    }
    for domain in domains {
        w.characters(&domain.name)?;
        if let Some(sid) = &domain.sid {
            w.sid(sid)?;
        }
    }
    Ok(())
}

/// LSAPR_TRANSLATED_NAMES and LSAPR_TRANSLATED_NAMES_EX, [MS-LSAT] 2.2.20 and 2.2.22.
fn put_names(names: &[TranslatedName], extended: bool, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.count(names.len())?;
    w.pointer(!names.is_empty());
    if names.is_empty() {
        return Ok(());
    }
    w.count(names.len())?;
    for name in names {
        w.u16(name.kind as u16);
        w.align(4);
        w.counted(&name.name)?;
        put_index(name.domain, w)?;
        if extended {
            w.u32(0);
        }
    }
    names.iter().try_for_each(|name| w.characters(&name.name))
}

/// LSAPR_TRANSLATED_SIDS and the two forms that came later, [MS-LSAT] 2.2.15, 2.2.24 and 2.2.26.
fn put_sids(sids: &[TranslatedSid], form: SidsForm, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.count(sids.len())?;
    w.pointer(!sids.is_empty());
    if sids.is_empty() {
        return Ok(());
    }
    w.count(sids.len())?;
    for translated in sids {
        w.u16(translated.kind as u16);
        let sid = translated.sid.as_ref();
        match form {
            SidsForm::Sid => w.pointer(sid.is_some()),
            SidsForm::Rid | SidsForm::RidExtended => {
                w.u32(sid.and_then(|sid| sid.sub_authorities().last().copied()).unwrap_or(0));
            }
        }
        put_index(translated.domain, w)?;
        if form != SidsForm::Rid {
            w.u32(0);
        }
    }
    if form == SidsForm::Sid {
        sids.iter().filter_map(|translated| translated.sid.as_ref()).try_for_each(|sid| w.sid(sid))?;
    }
    Ok(())
}

fn put_index(domain: Option<usize>, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.u32(domain.map_or(Ok(NO_DOMAIN), |domain| len_u32(domain, "index of a domain"))?);
    Ok(())
}
