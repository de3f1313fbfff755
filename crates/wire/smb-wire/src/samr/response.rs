//! The results of calls. [MS-SAMR] 2.2, 3.1.5.

use acl::Sid;

use super::{GROUP_ATTRIBUTES, Handle};
use crate::codec::WireError;
use crate::lsarpc::SidKind;
use crate::ndr::NdrWriter;

/// A moment that never comes, as an OLD_LARGE_INTEGER. [MS-SAMR] 2.2.2.2.
const NEVER: u64 = 0x7fff_ffff_ffff_ffff;
/// Hours of a week, each with a bit: SAMPR_LOGON_HOURS, [MS-SAMR] 2.2.6.5.
const HOURS_OF_WEEK: u16 = 168;
/// The most bytes of logon hours.
const LOGON_HOURS_BYTES_MAX: usize = 1260;
/// All fields of a user that have a name and are no secret: USER_ALL_USERNAME to USER_ALL_CODEPAGE, [MS-SAMR] 2.2.1.8.
const ALL_FIELDS: u32 = 0x00ff_ffff;

/// A name in a list, with its RID or, of a domain, its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The RID.
    pub rid: u32,
    /// The name.
    pub name: String,
}

/// What a domain says of itself, [MS-SAMR] 2.2.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainInformation {
    /// DomainPasswordInformation (1): there are no rules for passwords.
    Password,
    /// DomainGeneralInformation (2)
    General(DomainGeneral),
    /// DomainLogoffInformation (3): nobody is logged off by the clock.
    Logoff,
    /// DomainOemInformation (4), DomainNameInformation (5) and DomainReplicationInformation (6), whose class it names
    Text(u16, String),
    /// DomainServerRoleInformation (7): the one that has the accounts.
    Role,
    /// DomainModifiedInformation (8): when it was changed is not known.
    Modified,
    /// DomainStateInformation (9): enabled.
    State,
    /// DomainLockoutInformation (12): nobody is locked out.
    Lockout,
}

/// SAMPR_DOMAIN_GENERAL_INFORMATION
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainGeneral {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub comment: String,
    /// How many users it has.
    pub users: u32,
    /// How many groups.
    pub groups: u32,
    /// How many aliases.
    pub aliases: u32,
}

/// What a group or an alias says of itself, [MS-SAMR] 2.2.4, 2.2.5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupInformation {
    /// GroupGeneralInformation (1) and GroupReplicationInformation (5), whose class it names
    Group(u16, String, u32),
    /// AliasGeneralInformation (1)
    Alias(String, u32),
    /// GroupNameInformation (2) and AliasNameInformation (2)
    Name(String),
    /// GroupAttributeInformation (3)
    Attributes,
    /// GroupAdminCommentInformation (4) and AliasAdminCommentInformation (3), whose class it names: there is no comment
    Comment(u16),
}

/// A user, and the class of what is asked, [MS-SAMR] 2.2.6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInformation {
    /// UserGeneralInformation (1), UserNameInformation (6), UserAccountNameInformation (7), UserFullNameInformation (8),
    /// UserPrimaryGroupInformation (9), UserAdminCommentInformation (13), UserControlInformation (16),
    /// UserAllInformation (21)
    pub class: u16,
    /// The name.
    pub name: String,
    /// The RID.
    pub rid: u32,
    /// The RID of the first group.
    pub primary_group: u32,
    /// UserAccountControl
    pub control: u32,
}

impl UserInformation {
    /// The classes that can be encoded.
    pub const CLASSES: [u16; 8] = [1, 6, 7, 8, 9, 13, 16, 21];
}

/// An entry of a list to be shown, [MS-SAMR] 2.2.8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayEntry {
    /// Its place in the list, from 1.
    pub index: u32,
    /// The RID.
    pub rid: u32,
    /// UserAccountControl of a user, attributes of a group.
    pub control: u32,
    /// The name.
    pub name: String,
}

/// The results of a call, without the status at the end of every stub. What is `None` was not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A handle; zeros after an error and of SamrCloseHandle.
    Handle(Handle),
    /// SamrConnect5
    Connected(Handle),
    /// SamrQuerySecurityObject: a security descriptor
    Security(Option<Vec<u8>>),
    /// SamrLookupDomainInSamServer, SamrRidToSid
    Sid(Option<Sid>),
    /// What a list has.
    Entries {
        /// Where it goes on.
        resume: u32,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// SamrQueryInformationDomain
    Domain(Option<DomainInformation>),
    /// SamrGetAliasMembership
    Rids(Vec<u32>),
    /// SamrLookupNamesInDomain: what each name is; RID 0 of unknown ones.
    Ids(Vec<(u32, SidKind)>),
    /// SamrLookupIdsInDomain: what each RID is; no name of unknown ones.
    Names(Vec<(String, SidKind)>),
    /// SamrQueryInformationGroup, SamrQueryInformationAlias
    Group(Option<GroupInformation>),
    /// SamrGetMembersInGroup
    GroupMembers(Option<Vec<u32>>),
    /// SamrGetMembersInAlias
    AliasMembers(Vec<Sid>),
    /// SamrQueryInformationUser
    User(Option<UserInformation>),
    /// SamrGetGroupsForUser
    GroupsOfUser(Option<Vec<u32>>),
    /// SamrQueryDisplayInformation
    Display {
        /// 1 users, 2 machines, 3 groups
        class: u16,
        /// How many bytes all entries have, about.
        bytes_total: u32,
        /// How many these have.
        bytes: u32,
        /// The entries.
        entries: Vec<DisplayEntry>,
    },
    /// The rules for passwords: there are none.
    PasswordRules,
    /// A call that has changed nothing: [`super::Request::Change`].
    Unchanged {
        /// How many bytes of zeros.
        zeros: usize,
    },
}

impl Response {
    /// Appends the stub, which ends with `status`.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, status: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut w = NdrWriter::new(out);
        self.put(&mut w)?;
        w.u32(status);
        Ok(())
    }

    fn put(&self, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
        match self {
            Self::Handle(Handle(bytes)) => w.bytes(bytes),
            Self::Connected(Handle(bytes)) => {
                // OutVersion, the switch of the union, Revision 3, SupportedFeatures. [MS-SAMR] 2.2.7.15
                [1, 1, 3, 0].into_iter().for_each(|word| w.u32(word));
                w.bytes(bytes);
            }
            Self::Security(descriptor) => put_descriptor(descriptor.as_deref(), w)?,
            Self::Sid(sid) => {
                w.pointer(sid.is_some());
                sid.as_ref().map_or(Ok(()), |sid| w.sid(sid))?;
            }
            Self::Entries { resume, entries } => put_entries(*resume, entries, w)?,
            Self::Domain(information) => {
                w.pointer(information.is_some());
                information.as_ref().map_or(Ok(()), |information| put_domain(information, w))?;
            }
            Self::Rids(rids) => put_numbers(rids.iter().copied(), w)?,
            Self::Ids(ids) => {
                put_numbers(ids.iter().map(|(rid, _)| *rid), w)?;
                put_numbers(ids.iter().map(|(_, kind)| u32::from(*kind as u16)), w)?;
            }
            Self::Names(names) => put_names(names, w)?,
            Self::Group(information) => {
                w.pointer(information.is_some());
                information.as_ref().map_or(Ok(()), |information| put_group(information, w))?;
            }
            Self::GroupMembers(members) => put_members(members.as_deref(), w)?,
            Self::AliasMembers(sids) => put_sids(sids, w)?,
            Self::User(information) => {
                w.pointer(information.is_some());
                information.as_ref().map_or(Ok(()), |information| put_user(information, w))?;
            }
            Self::GroupsOfUser(groups) => put_memberships(groups.as_deref(), w)?,
            Self::Display { class, bytes_total, bytes, entries } => {
                w.u32(*bytes_total);
                w.u32(*bytes);
                put_display(*class, entries, w)?;
            }
            // MinPasswordLength, PasswordProperties
            Self::PasswordRules => {
                w.u16(0);
                w.u32(0);
            }
            Self::Unchanged { zeros } => w.bytes(&vec![0; *zeros]),
        }
        Ok(())
    }
}

/// SAMPR_SR_SECURITY_DESCRIPTOR, [MS-SAMR] 2.2.3.11.
fn put_descriptor(descriptor: Option<&[u8]>, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.pointer(descriptor.is_some());
    let Some(bytes) = descriptor else { return Ok(()) };
    w.count(bytes.len())?;
    w.pointer(true);
    w.count(bytes.len())?;
    w.bytes(bytes);
    Ok(())
}

/// SAMPR_ENUMERATION_BUFFER, [MS-SAMR] 2.2.3.10, with what is before and behind it.
fn put_entries(resume: u32, entries: &[Entry], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.u32(resume);
    w.pointer(true);
    w.count(entries.len())?;
    w.pointer(true);
    w.count(entries.len())?;
    for Entry { rid, name } in entries {
        w.u32(*rid);
        w.counted(name)?;
    }
    entries.iter().try_for_each(|entry| w.characters(&entry.name))?;
    w.count(entries.len())
}

/// SAMPR_ULONG_ARRAY, [MS-SAMR] 2.2.3.8.
fn put_numbers(numbers: impl ExactSizeIterator<Item = u32>, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.count(numbers.len())?;
    w.pointer(true);
    w.count(numbers.len())?;
    numbers.for_each(|number| w.u32(number));
    Ok(())
}

/// SAMPR_RETURNED_USTRING_ARRAY, [MS-SAMR] 2.2.3.9, and the kinds.
fn put_names(names: &[(String, SidKind)], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.count(names.len())?;
    w.pointer(true);
    w.count(names.len())?;
    names.iter().try_for_each(|(name, _)| w.counted(name))?;
    names.iter().try_for_each(|(name, _)| w.characters(name))?;
    put_numbers(names.iter().map(|(_, kind)| u32::from(*kind as u16)), w)
}

/// SAMPR_GET_MEMBERS_BUFFER, [MS-SAMR] 2.2.4.3.
fn put_members(members: Option<&[u32]>, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.pointer(members.is_some());
    let Some(members) = members else { return Ok(()) };
    w.count(members.len())?;
    w.pointer(true);
    w.pointer(true);
    w.count(members.len())?;
    members.iter().for_each(|rid| w.u32(*rid));
    w.count(members.len())?;
    members.iter().for_each(|_| w.u32(GROUP_ATTRIBUTES));
    Ok(())
}

/// SAMPR_PSID_ARRAY_OUT, [MS-SAMR] 2.2.3.7.
fn put_sids(sids: &[Sid], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.count(sids.len())?;
    w.pointer(true);
    w.count(sids.len())?;
    sids.iter().for_each(|_| w.pointer(true));
    sids.iter().try_for_each(|sid| w.sid(sid))
}

/// SAMPR_GET_GROUPS_BUFFER, [MS-SAMR] 2.2.6.13.
fn put_memberships(groups: Option<&[u32]>, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.pointer(groups.is_some());
    let Some(groups) = groups else { return Ok(()) };
    w.count(groups.len())?;
    w.pointer(true);
    w.count(groups.len())?;
    for rid in groups {
        w.u32(*rid);
        w.u32(GROUP_ATTRIBUTES);
    }
    Ok(())
}

/// OLD_LARGE_INTEGER: two numbers, the lower one first.
fn put_time(time: u64, w: &mut NdrWriter<'_>) {
    w.align(4);
    w.bytes(&time.to_le_bytes());
}

/// SAMPR_DOMAIN_INFO_BUFFER, [MS-SAMR] 2.2.3.17.
fn put_domain(information: &DomainInformation, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    match information {
        DomainInformation::Password => {
            w.u16(1);
            w.align(4);
            // MinPasswordLength, PasswordHistoryLength, PasswordProperties, MaxPasswordAge, MinPasswordAge
            w.u16(0);
            w.u16(0);
            w.u32(0);
            put_time(0, w);
            put_time(0, w);
        }
        DomainInformation::General(general) => {
            w.u16(2);
            put_general(general, w)?;
        }
        DomainInformation::Logoff => {
            w.u16(3);
            put_time(NEVER, w);
        }
        DomainInformation::Text(class, text) => {
            w.u16(*class);
            w.align(4);
            w.counted(text)?;
            w.characters(text)?;
        }
        DomainInformation::Role => {
            w.u16(7);
            w.u32(ROLE_PRIMARY);
        }
        DomainInformation::Modified => {
            w.u16(8);
            put_time(0, w);
            put_time(0, w);
        }
        DomainInformation::State => {
            w.u16(9);
            w.u32(STATE_ENABLED);
        }
        DomainInformation::Lockout => {
            w.u16(12);
            w.align(8);
            // LockoutDuration, LockoutObservationWindow, LockoutThreshold
            w.bytes(&[0; 16]);
            w.u16(0);
        }
    }
    Ok(())
}

/// DomainServerRolePrimary, [MS-SAMR] 2.2.3.2; DomainServerEnabled, 2.2.3.2.
const ROLE_PRIMARY: u32 = 3;
const STATE_ENABLED: u32 = 1;

fn put_general(general: &DomainGeneral, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    let DomainGeneral { name, comment, users, groups, aliases } = general;
    put_time(NEVER, w); // ForceLogoff
    let texts = [comment, name, ""];
    texts.iter().try_for_each(|text| w.counted(text))?;
    put_time(0, w); // DomainModifiedCount
    w.u32(STATE_ENABLED);
    w.u32(ROLE_PRIMARY);
    w.u32(0); // UasCompatibilityRequired, a byte
    [users, groups, aliases].into_iter().for_each(|count| w.u32(*count));
    texts.iter().try_for_each(|text| w.characters(text))
}

/// SAMPR_GROUP_INFO_BUFFER and SAMPR_ALIAS_INFO_BUFFER, [MS-SAMR] 2.2.4.7, 2.2.5.6.
fn put_group(information: &GroupInformation, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    let class = match information {
        GroupInformation::Group(class, ..) | GroupInformation::Comment(class) => *class,
        GroupInformation::Alias(..) => 1,
        GroupInformation::Name(_) => 2,
        GroupInformation::Attributes => 3,
    };
    w.u16(class);
    w.align(4);
    match information {
        GroupInformation::Group(_, name, members) => {
            w.counted(name)?;
            w.u32(GROUP_ATTRIBUTES);
            w.u32(*members);
            w.counted("")?;
            w.characters(name)?;
            w.characters("")
        }
        GroupInformation::Alias(name, members) => {
            w.counted(name)?;
            w.u32(*members);
            w.counted("")?;
            w.characters(name)?;
            w.characters("")
        }
        GroupInformation::Attributes => {
            w.u32(GROUP_ATTRIBUTES);
            Ok(())
        }
        GroupInformation::Name(text) => put_text(text, w),
        GroupInformation::Comment(_) => put_text("", w),
    }
}

fn put_text(text: &str, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.counted(text)?;
    w.characters(text)
}

/// SAMPR_USER_INFO_BUFFER, [MS-SAMR] 2.2.6.29.
fn put_user(user: &UserInformation, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    let UserInformation { class, name, primary_group, control, .. } = user;
    w.u16(*class);
    w.align(4);
    match class {
        1 => {
            // UserName, FullName, PrimaryGroupId, AdminComment, UserComment
            w.counted(name)?;
            w.counted("")?;
            w.u32(*primary_group);
            w.counted("")?;
            w.counted("")?;
            w.characters(name)?;
            ["", "", ""].iter().try_for_each(|none| w.characters(none))
        }
        6 => {
            w.counted(name)?;
            w.counted("")?;
            w.characters(name)?;
            w.characters("")
        }
        7 => put_text(name, w),
        8 | 13 => put_text("", w),
        9 => {
            w.u32(*primary_group);
            Ok(())
        }
        16 => {
            w.u32(*control);
            Ok(())
        }
        21 => put_all(user, w),
        _ => Err(WireError::Invalid("class of information about a user")),
    }
}

/// SAMPR_USER_ALL_INFORMATION, [MS-SAMR] 2.2.6.6. Nothing is known of when anybody has logged on.
fn put_all(user: &UserInformation, w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    let UserInformation { name, rid, primary_group, control, .. } = user;
    // LastLogon, LastLogoff, PasswordLastSet, AccountExpires, PasswordCanChange, PasswordMustChange
    [0, NEVER, 0, NEVER, 0, NEVER].into_iter().for_each(|time| put_time(time, w));
    // UserName, and nine more, of which none is kept: FullName to Parameters
    let texts = [&**name, "", "", "", "", "", "", "", "", ""];
    texts.iter().try_for_each(|text| w.counted(text))?;
    // LmOwfPassword and NtOwfPassword, which nobody gets
    for _ in 0..2 {
        w.u16(0);
        w.u16(0);
        w.pointer(false);
    }
    w.counted("")?; // PrivateData
    w.u32(0); // SecurityDescriptor
    w.pointer(false);
    [*rid, *primary_group, *control, ALL_FIELDS].into_iter().for_each(|number| w.u32(number));
    w.u16(HOURS_OF_WEEK);
    w.align(4);
    w.pointer(true);
    // BadPasswordCount, LogonCount, CountryCode, CodePage; LmPasswordPresent, NtPasswordPresent, PasswordExpired,
    // PrivateDataSensitive
    w.bytes(&[0; 12]);
    texts.iter().try_for_each(|text| w.characters(text))?;
    w.characters("")?;
    let hours = [0xff; HOURS_OF_WEEK as usize / 8];
    w.count(LOGON_HOURS_BYTES_MAX)?;
    w.u32(0);
    w.count(hours.len())?;
    w.bytes(&hours);
    Ok(())
}

/// SAMPR_DISPLAY_INFO_BUFFER, [MS-SAMR] 2.2.8.13: users (1), machines (2) or groups (3).
fn put_display(class: u16, entries: &[DisplayEntry], w: &mut NdrWriter<'_>) -> Result<(), WireError> {
    w.u16(class);
    w.align(4);
    w.count(entries.len())?;
    w.pointer(!entries.is_empty());
    if entries.is_empty() {
        return Ok(());
    }
    // The name, a comment and, of users, a full name
    let further = if class == 1 { 2 } else { 1 };
    w.count(entries.len())?;
    for DisplayEntry { index, rid, control, name } in entries {
        [*index, *rid, *control].into_iter().for_each(|number| w.u32(number));
        w.counted(name)?;
        (0..further).try_for_each(|_| w.counted(""))?;
    }
    for entry in entries {
        w.characters(&entry.name)?;
        (0..further).try_for_each(|_| w.characters(""))?;
    }
    Ok(())
}
