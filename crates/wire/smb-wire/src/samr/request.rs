//! The arguments of calls. [MS-SAMR] 3.1.5.

use acl::Sid;

use super::{Handle, Kind, LOOKUPS_MAX};
use crate::codec::WireError;
use crate::ndr::NdrReader;

mod opnum {
    pub(super) const CONNECT: u16 = 0;
    pub(super) const CLOSE: u16 = 1;
    pub(super) const QUERY_SECURITY: u16 = 3;
    pub(super) const LOOKUP_DOMAIN: u16 = 5;
    pub(super) const ENUMERATE_DOMAINS: u16 = 6;
    pub(super) const OPEN_DOMAIN: u16 = 7;
    pub(super) const QUERY_DOMAIN: u16 = 8;
    pub(super) const ENUMERATE_GROUPS: u16 = 11;
    pub(super) const ENUMERATE_USERS: u16 = 13;
    pub(super) const ENUMERATE_ALIASES: u16 = 15;
    pub(super) const ALIAS_MEMBERSHIP: u16 = 16;
    pub(super) const LOOKUP_NAMES: u16 = 17;
    pub(super) const LOOKUP_RIDS: u16 = 18;
    pub(super) const OPEN_GROUP: u16 = 19;
    pub(super) const QUERY_GROUP: u16 = 20;
    pub(super) const GROUP_MEMBERS: u16 = 25;
    pub(super) const OPEN_ALIAS: u16 = 27;
    pub(super) const QUERY_ALIAS: u16 = 28;
    pub(super) const ALIAS_MEMBERS: u16 = 33;
    pub(super) const OPEN_USER: u16 = 34;
    pub(super) const QUERY_USER: u16 = 36;
    pub(super) const GROUPS_OF_USER: u16 = 39;
    pub(super) const QUERY_DISPLAY: u16 = 40;
    pub(super) const USER_PASSWORD_RULES: u16 = 44;
    pub(super) const QUERY_DOMAIN2: u16 = 46;
    pub(super) const QUERY_USER2: u16 = 47;
    pub(super) const QUERY_DISPLAY2: u16 = 48;
    pub(super) const QUERY_DISPLAY3: u16 = 51;
    pub(super) const PASSWORD_RULES: u16 = 56;
    pub(super) const CONNECT2: u16 = 57;
    pub(super) const CONNECT4: u16 = 62;
    pub(super) const CONNECT5: u16 = 64;
    pub(super) const RID_TO_SID: u16 = 65;
}

/// Which entries of a list are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enumeration {
    /// Where the list goes on: what the answer before has said, and 0 at first.
    pub resume: u32,
    /// About how many bytes the entries may have.
    pub bytes_max: u32,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// SamrConnect, SamrConnect2, SamrConnect4 and SamrConnect5. The arguments are not decoded: the name of the server is to be
    /// ignored ([MS-SAMR] 3.1.5.1.1), and a server that lets nobody change anything has no rights to give.
    Connect {
        /// Whether the answer has the form of SamrConnect5.
        revision: bool,
    },
    /// SamrCloseHandle
    Close(Handle),
    /// SamrQuerySecurityObject. What is asked for of the descriptor is not decoded.
    QuerySecurity(Handle),
    /// SamrLookupDomainInSamServer
    LookupDomain {
        /// The server.
        server: Handle,
        /// The domain's name.
        name: String,
    },
    /// SamrEnumerateDomainsInSamServer
    EnumerateDomains {
        /// The server.
        server: Handle,
        /// Which of them.
        list: Enumeration,
    },
    /// SamrOpenDomain
    OpenDomain {
        /// The server.
        server: Handle,
        /// The domain.
        sid: Sid,
    },
    /// SamrQueryInformationDomain and SamrQueryInformationDomain2
    QueryDomain {
        /// The domain.
        domain: Handle,
        /// DOMAIN_INFORMATION_CLASS ([MS-SAMR] 2.2.3.16)
        class: u16,
    },
    /// SamrEnumerateUsersInDomain, SamrEnumerateGroupsInDomain and SamrEnumerateAliasesInDomain
    Enumerate {
        /// The domain.
        domain: Handle,
        /// What is listed.
        kind: Kind,
        /// Of users: those that have one of these bits ([`super::account_control`]); 0: all.
        control: u32,
        /// Which of them.
        list: Enumeration,
    },
    /// SamrGetAliasMembership
    AliasMembership {
        /// The domain of the aliases.
        domain: Handle,
        /// The members, at most [`LOOKUPS_MAX`].
        sids: Vec<Sid>,
    },
    /// SamrLookupNamesInDomain
    LookupNames {
        /// The domain.
        domain: Handle,
        /// The names, at most [`LOOKUPS_MAX`].
        names: Vec<String>,
    },
    /// SamrLookupIdsInDomain
    LookupRids {
        /// The domain.
        domain: Handle,
        /// The RIDs, at most [`LOOKUPS_MAX`].
        rids: Vec<u32>,
    },
    /// SamrOpenUser, SamrOpenGroup and SamrOpenAlias
    Open {
        /// The domain.
        domain: Handle,
        /// What is opened.
        kind: Kind,
        /// Which one.
        rid: u32,
    },
    /// SamrQueryInformationGroup and SamrQueryInformationAlias
    QueryGroup {
        /// The group or alias.
        group: Handle,
        /// Which of both.
        kind: Kind,
        /// GROUP_INFORMATION_CLASS or ALIAS_INFORMATION_CLASS ([MS-SAMR] 2.2.4.6, 2.2.5.5)
        class: u16,
    },
    /// SamrGetMembersInGroup
    GroupMembers(Handle),
    /// SamrGetMembersInAlias
    AliasMembers(Handle),
    /// SamrQueryInformationUser and SamrQueryInformationUser2
    QueryUser {
        /// The user.
        user: Handle,
        /// USER_INFORMATION_CLASS ([MS-SAMR] 2.2.6.28)
        class: u16,
    },
    /// SamrGetGroupsForUser
    GroupsOfUser(Handle),
    /// SamrQueryDisplayInformation and its two later forms
    QueryDisplay {
        /// The domain.
        domain: Handle,
        /// DOMAIN_DISPLAY_INFORMATION ([MS-SAMR] 2.2.8.12)
        class: u16,
        /// How many entries to leave out.
        first: u32,
        /// How many entries may come.
        entries_max: u32,
        /// About how many bytes they may have.
        bytes_max: u32,
    },
    /// SamrGetUserDomainPasswordInformation, and SamrGetDomainPasswordInformation, which has no handle
    PasswordRules(Option<Handle>),
    /// SamrRidToSid
    RidToSid {
        /// An object of the domain.
        object: Handle,
        /// The last part of the SID.
        rid: u32,
    },
    /// A call that would change something. Its arguments are not decoded.
    Change {
        /// How many bytes, all of them zeros, are before the status in the answer of a failed call: handles and numbers.
        zeros: usize,
    },
}

impl Request {
    /// Decodes the stub of a request; `None` when this crate does not know the procedure
    /// ([`crate::dcerpc::fault::OP_RANGE_ERROR`]).
    ///
    /// # Errors
    /// [`WireError`] for a malformed stub ([`crate::dcerpc::fault::BAD_STUB_DATA`]).
    pub fn decode(opnum: u16, stub: &[u8]) -> Result<Option<Self>, WireError> {
        if let Some(zeros) = zeros_of_change(opnum) {
            return Ok(Some(Self::Change { zeros }));
        }
        match opnum {
            opnum::CONNECT | opnum::CONNECT2 | opnum::CONNECT4 => {
                return Ok(Some(Self::Connect { revision: false }));
            }
            opnum::CONNECT5 => return Ok(Some(Self::Connect { revision: true })),
            opnum::PASSWORD_RULES => return Ok(Some(Self::PasswordRules(None))),
            _ => {}
        }
        let r = &mut NdrReader::new(stub);
        // Every other procedure begins with a handle, and no shorter stub is one of a known procedure.
        let Ok(handle) = r.array().map(Handle) else {
            return if is_known(opnum) { Err(WireError::Invalid("handle of an object")) } else { Ok(None) };
        };
        match Self::of_domain(opnum, handle, r)? {
            None => Self::of_object(opnum, handle, r),
            known => Ok(known),
        }
    }

    /// Calls on the server and on a domain.
    fn of_domain(opnum: u16, handle: Handle, r: &mut NdrReader<'_>) -> Result<Option<Self>, WireError> {
        let (server, domain) = (handle, handle);
        Ok(Some(match opnum {
            opnum::LOOKUP_DOMAIN => Self::LookupDomain {
                server,
                name: if r.counted()? { r.characters()? } else { String::new() },
            },
            opnum::ENUMERATE_DOMAINS => Self::EnumerateDomains { server, list: Enumeration::read(r)? },
            opnum::OPEN_DOMAIN => {
                let _access = r.u32()?;
                Self::OpenDomain { server, sid: r.sid()? }
            }
            opnum::QUERY_DOMAIN | opnum::QUERY_DOMAIN2 => Self::QueryDomain { domain, class: r.u16()? },
            opnum::ENUMERATE_USERS => {
                let (resume, control) = (r.u32()?, r.u32()?);
                let list = Enumeration { resume, bytes_max: r.u32()? };
                Self::Enumerate { domain, kind: Kind::User, control, list }
            }
            opnum::ENUMERATE_GROUPS | opnum::ENUMERATE_ALIASES => {
                let kind = if opnum == opnum::ENUMERATE_GROUPS { Kind::Group } else { Kind::Alias };
                Self::Enumerate { domain, kind, control: 0, list: Enumeration::read(r)? }
            }
            opnum::ALIAS_MEMBERSHIP => Self::AliasMembership { domain, sids: read_sids(r)? },
            opnum::LOOKUP_NAMES => Self::LookupNames { domain, names: read_names(r)? },
            opnum::LOOKUP_RIDS => {
                let count = read_array(r)?;
                Self::LookupRids { domain, rids: (0..count).map(|_| r.u32()).collect::<Result<_, _>>()? }
            }
            opnum::OPEN_USER | opnum::OPEN_GROUP | opnum::OPEN_ALIAS => {
                let kind = match opnum {
                    opnum::OPEN_USER => Kind::User,
                    opnum::OPEN_GROUP => Kind::Group,
                    _ => Kind::Alias,
                };
                let _access = r.u32()?;
                Self::Open { domain, kind, rid: r.u32()? }
            }
            opnum::QUERY_DISPLAY | opnum::QUERY_DISPLAY2 | opnum::QUERY_DISPLAY3 => Self::QueryDisplay {
                domain,
                class: r.u16()?,
                first: r.u32()?,
                entries_max: r.u32()?,
                bytes_max: r.u32()?,
            },
            _ => return Ok(None),
        }))
    }

    /// Calls on a user, a group or an alias, and those on any object.
    fn of_object(opnum: u16, handle: Handle, r: &mut NdrReader<'_>) -> Result<Option<Self>, WireError> {
        Ok(Some(match opnum {
            opnum::CLOSE => Self::Close(handle),
            opnum::QUERY_SECURITY => Self::QuerySecurity(handle),
            opnum::QUERY_GROUP => Self::QueryGroup { group: handle, kind: Kind::Group, class: r.u16()? },
            opnum::QUERY_ALIAS => Self::QueryGroup { group: handle, kind: Kind::Alias, class: r.u16()? },
            opnum::GROUP_MEMBERS => Self::GroupMembers(handle),
            opnum::ALIAS_MEMBERS => Self::AliasMembers(handle),
            opnum::QUERY_USER | opnum::QUERY_USER2 => Self::QueryUser { user: handle, class: r.u16()? },
            opnum::GROUPS_OF_USER => Self::GroupsOfUser(handle),
            opnum::USER_PASSWORD_RULES => Self::PasswordRules(Some(handle)),
            opnum::RID_TO_SID => Self::RidToSid { object: handle, rid: r.u32()? },
            _ => return Ok(None),
        }))
    }
}

impl Enumeration {
    fn read(r: &mut NdrReader<'_>) -> Result<Self, WireError> {
        Ok(Self { resume: r.u32()?, bytes_max: r.u32()? })
    }
}

/// The procedures that begin with a handle.
fn is_known(opnum: u16) -> bool {
    matches!(opnum, 1 | 3 | 5..=8 | 11 | 13 | 15..=20 | 25 | 27 | 28 | 33 | 34 | 36 | 39 | 40 | 44 | 46..=48 | 51 | 65)
}

/// Procedures that change something, and how many bytes of zeros the answer to a failed one begins with. [MS-SAMR] 6
fn zeros_of_change(opnum: u16) -> Option<usize> {
    /// A handle, a RID and, of SamrCreateUser2InDomain, the access that is granted.
    const HANDLE: usize = 20;
    const NUMBER: usize = 4;
    Some(match opnum {
        // SamrCreateGroupInDomain, SamrCreateUserInDomain, SamrCreateAliasInDomain
        10 | 12 | 14 => HANDLE + NUMBER,
        // SamrCreateUser2InDomain
        50 => HANDLE + NUMBER + NUMBER,
        // SamrDeleteGroup, SamrDeleteAlias, SamrDeleteUser
        23 | 30 | 35 => HANDLE,
        // Set, add, remove, change a password
        2 | 9 | 21 | 22 | 24 | 26 | 29 | 31 | 32 | 37 | 38 | 45 | 52..=55 | 58 | 66 => 0,
        _ => return None,
    })
}

/// The number of elements of an array with the form `[size_is(1000), length_is(count)]`, after its count.
fn read_array(r: &mut NdrReader<'_>) -> Result<usize, WireError> {
    let count = limited(r.u32()?)?;
    let (most, offset, actual) = (r.u32()?, r.u32()?, r.u32()?);
    if offset != 0 || actual > most || usize::try_from(actual) != Ok(count) {
        return Err(WireError::Invalid("NDR array"));
    }
    Ok(count)
}

fn limited(count: u32) -> Result<usize, WireError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count <= LOOKUPS_MAX { Ok(count) } else { Err(WireError::Invalid("number of look-ups")) }
}

fn read_names(r: &mut NdrReader<'_>) -> Result<Vec<String>, WireError> {
    let count = read_array(r)?;
    let present = (0..count).map(|_| r.counted()).collect::<Result<Vec<bool>, _>>()?;
    present.into_iter().map(|present| if present { r.characters() } else { Ok(String::new()) }).collect()
}

/// SAMPR_PSID_ARRAY, [MS-SAMR] 2.2.3.7.
fn read_sids(r: &mut NdrReader<'_>) -> Result<Vec<Sid>, WireError> {
    let count = limited(r.u32()?)?;
    if !r.pointer()? {
        return if count == 0 { Ok(Vec::new()) } else { Err(WireError::Invalid("SIDs to look up")) };
    }
    if limited(r.u32()?)? != count {
        return Err(WireError::Invalid("number of SIDs"));
    }
    for _ in 0..count {
        if !r.pointer()? {
            return Err(WireError::Invalid("SID to look up"));
        }
    }
    (0..count).map(|_| r.sid()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_begins_with_a_handle_needs_one() {
        for opnum in 0..=70 {
            let no_handle = Request::decode(opnum, &[7; 19]);
            let is_known = matches!(
                Request::decode(opnum, &[[0; 20].as_slice(), &[0; 64]].concat()),
                Ok(Some(_)) | Err(_)
            );
            assert_eq!(is_known, !matches!(no_handle, Ok(None)), "{opnum}: {no_handle:?}");
        }
    }

    #[test]
    fn arrays_are_as_long_as_they_say_and_no_longer_than_a_thousand() {
        let with = |numbers: &[u32], rids: usize| {
            let stub = [&[0; 20][..], &words(numbers), &words(&vec![5; rids])].concat();
            Request::decode(18, &stub)
        };
        let Ok(Some(Request::LookupRids { rids, .. })) = with(&[1000, 1000, 0, 1000], 1000) else { panic!() };
        assert_eq!(rids, [5; 1000]);
        for wrong in [[1001, 1001, 0, 1001], [2, 1000, 1, 2], [2, 1000, 0, 1], [2, 1, 0, 2]] {
            assert!(with(&wrong, 1001).is_err(), "{wrong:?}");
        }
        assert!(with(&[2, 1000, 0, 2], 1).is_err());
    }

    #[test]
    fn a_change_is_known_whatever_its_arguments() {
        assert_eq!(Request::decode(50, &[]), Ok(Some(Request::Change { zeros: 28 })));
        assert_eq!(Request::decode(37, &[]), Ok(Some(Request::Change { zeros: 0 })));
    }
}
