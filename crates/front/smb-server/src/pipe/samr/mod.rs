//! The Security Account Manager: the accounts and groups of this server. [MS-SAMR] 3.1.5. It can be read; what would change
//! something is answered with STATUS_ACCESS_DENIED.

mod book;
mod object;

use smb_wire::NtStatus;
use smb_wire::dcerpc::fault;
use smb_wire::lsarpc::SidKind;
use smb_wire::samr::{
    DisplayEntry, DomainGeneral, DomainInformation, Entry, Enumeration, GROUP_ATTRIBUTES, GroupInformation,
    Handle, Kind, LOOKUPS_MAX, Request, Response, UserInformation,
};

use self::book::Book;
use self::object::{Domain, Member, Object};
use super::{Fault, Host};

/// What a domain says of itself.
const COMMENT: &str = "Anabranch";
/// Bytes of an entry of a list besides its name.
const ENTRY_BYTES: usize = 24;

/// A result and its status.
type Answer = (Response, NtStatus);

/// Answers a call.
pub(super) fn call(host: &Host<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Fault> {
    let request = Request::decode(opnum, stub).map_err(|_| fault::BAD_STUB_DATA)?;
    let request = request.ok_or(fault::OP_RANGE_ERROR)?;
    // Who has an account here is no secret among users, and nobody else's business.
    if host.user.is_none() {
        return Err(fault::ACCESS_DENIED);
    }
    let (response, status) = answer(&Book::of(host), request)?;
    let mut results = Vec::new();
    response.encode_into(status.0, &mut results).map_err(|_| fault::PROTOCOL_ERROR)?;
    Ok(results)
}

fn answer(book: &Book<'_>, request: Request) -> Result<Answer, Fault> {
    Ok(match request {
        Request::Connect { revision: false } => opened(Object::Server),
        Request::Connect { revision: true } => {
            (Response::Connected(Object::Server.handle()), NtStatus::SUCCESS)
        }
        Request::Close(handle) => {
            Object::of(handle)?;
            (Response::Handle(Handle::default()), NtStatus::SUCCESS)
        }
        Request::QuerySecurity(handle) => {
            Object::of(handle)?;
            (Response::Security(None), NtStatus::ACCESS_DENIED)
        }
        Request::LookupDomain { server, name } => {
            Object::server(server)?;
            let domain = book.domains().into_iter().find(|(_, known)| auth::same_name(known, &name));
            sid(domain.and_then(|(domain, _)| book.sid(domain)))
        }
        Request::EnumerateDomains { server, list } => {
            Object::server(server)?;
            let numbered = (1..).zip(book.domains());
            entries(numbered.map(|(rid, (_, name))| Entry { rid, name }).collect(), list)
        }
        Request::OpenDomain { server, sid } => {
            Object::server(server)?;
            let is = |(domain, _): &(Domain, String)| book.sid(*domain) == Some(sid);
            match book.domains().into_iter().find(is) {
                Some((domain, _)) => opened(Object::Domain(domain)),
                None => (Response::Handle(Handle::default()), NtStatus::NO_SUCH_DOMAIN),
            }
        }
        Request::Open { domain, kind, rid } => open(book, Object::domain(domain)?, kind, rid),
        Request::RidToSid { object, rid } => {
            let domain = match Object::of(object)? {
                Object::Domain(domain) | Object::Member(Member { domain, .. }) => domain,
                Object::Server => return Err(fault::CONTEXT_MISMATCH),
            };
            sid(book.sid(domain).and_then(|domain| domain.member(rid)))
        }
        Request::PasswordRules(handle) => {
            handle.map_or(Ok(Object::Server), Object::of)?;
            (Response::PasswordRules, NtStatus::SUCCESS)
        }
        Request::Change { zeros } => (Response::Unchanged { zeros }, NtStatus::ACCESS_DENIED),
        request => return of_content(book, request),
    })
}

/// Calls on what is in a domain.
fn of_content(book: &Book<'_>, request: Request) -> Result<Answer, Fault> {
    Ok(match request {
        Request::QueryDomain { domain, class } => query_domain(book, Object::domain(domain)?, class),
        Request::Enumerate { domain, kind, control, list } => {
            let mut members = book.members(Object::domain(domain)?, kind);
            if kind == Kind::User && control != 0 {
                members.retain(|user| book.control(user.rid) & control != 0);
            }
            entries(members, list)
        }
        Request::LookupNames { domain, names } => {
            let domain = Object::domain(domain)?;
            let found: Vec<_> = names.iter().map(|name| book.named(domain, name)).collect();
            let status = mapped(&found);
            let ids = found.into_iter().map(|found| found.unwrap_or((0, SidKind::Unknown)));
            (Response::Ids(ids.collect()), status)
        }
        Request::LookupRids { domain, rids } => {
            let domain = Object::domain(domain)?;
            let found: Vec<_> = rids.iter().map(|rid| book.with_rid(domain, *rid)).collect();
            let status = mapped(&found);
            let names = found.into_iter().map(|found| found.unwrap_or((String::new(), SidKind::Unknown)));
            (Response::Names(names.collect()), status)
        }
        Request::AliasMembership { domain, sids } => {
            (Response::Rids(book.aliases_of(Object::domain(domain)?, &sids)), NtStatus::SUCCESS)
        }
        Request::QueryGroup { group, kind, class } => query_group(book, Object::member(group, kind)?, class),
        Request::GroupMembers(group) => match book.name_of(Object::member(group, Kind::Group)?) {
            Some(_) => (Response::GroupMembers(Some(book.of_group())), NtStatus::SUCCESS),
            None => (Response::GroupMembers(None), NtStatus::NO_SUCH_GROUP),
        },
        Request::AliasMembers(alias) => {
            let alias = Object::member(alias, Kind::Alias)?;
            match book.name_of(alias) {
                Some(_) => (Response::AliasMembers(book.of_alias(alias)), NtStatus::SUCCESS),
                None => (Response::AliasMembers(Vec::new()), NtStatus::NO_SUCH_ALIAS),
            }
        }
        Request::QueryUser { user, class } => query_user(book, Object::member(user, Kind::User)?, class),
        Request::GroupsOfUser(user) => match book.name_of(Object::member(user, Kind::User)?) {
            Some(_) => (Response::GroupsOfUser(Some(book.groups_of_user())), NtStatus::SUCCESS),
            None => (Response::GroupsOfUser(None), NtStatus::NO_SUCH_USER),
        },
        Request::QueryDisplay { domain, class, first, entries_max, bytes_max } => {
            display(book, Object::domain(domain)?, class, Part { first, entries_max, bytes_max })
        }
        _ => return Err(fault::OP_RANGE_ERROR),
    })
}

fn opened(object: Object) -> Answer {
    (Response::Handle(object.handle()), NtStatus::SUCCESS)
}

fn sid(sid: Option<acl::Sid>) -> Answer {
    let status = if sid.is_some() { NtStatus::SUCCESS } else { NtStatus::NO_SUCH_DOMAIN };
    (Response::Sid(sid), status)
}

fn open(book: &Book<'_>, domain: Domain, kind: Kind, rid: u32) -> Answer {
    let member = Member { domain, kind, rid };
    if book.name_of(member).is_some() {
        return opened(Object::Member(member));
    }
    (Response::Handle(Handle::default()), missing(kind))
}

fn missing(kind: Kind) -> NtStatus {
    match kind {
        Kind::User => NtStatus::NO_SUCH_USER,
        Kind::Group => NtStatus::NO_SUCH_GROUP,
        Kind::Alias => NtStatus::NO_SUCH_ALIAS,
    }
}

/// [MS-SAMR] 3.1.5.11.2: all, some or none are known.
fn mapped<T>(found: &[Option<T>]) -> NtStatus {
    match found.iter().flatten().count() {
        0 if !found.is_empty() => NtStatus::NONE_MAPPED,
        known if known < found.len() => NtStatus::SOME_NOT_MAPPED,
        _ => NtStatus::SUCCESS,
    }
}

/// The next part of a list by RID: what is behind the entry with which the last part ended, [`LOOKUPS_MAX`] entries at most,
/// and no more bytes than the client wants.
fn entries(mut entries: Vec<Entry>, list: Enumeration) -> Answer {
    entries.retain(|entry| entry.rid > list.resume);
    let fit = fitting(&entries, list.bytes_max);
    let status = if fit < entries.len() { NtStatus::MORE_ENTRIES } else { NtStatus::SUCCESS };
    entries.truncate(fit);
    let resume = entries.last().map_or(list.resume, |entry| entry.rid);
    (Response::Entries { resume, entries }, status)
}

/// How many entries an answer may have. A list goes on with every answer, however few bytes its client wants.
fn fitting(entries: &[Entry], bytes_max: u32) -> usize {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let sizes = entries.iter().map(bytes_of).scan(0_usize, |sum, bytes| {
        *sum = sum.saturating_add(bytes);
        Some(*sum)
    });
    sizes.take_while(|sum| *sum <= bytes_max).count().clamp(1, LOOKUPS_MAX).min(entries.len())
}

fn bytes_of(entry: &Entry) -> usize {
    entry.name.encode_utf16().count().saturating_mul(2).saturating_add(ENTRY_BYTES)
}

fn query_domain(book: &Book<'_>, domain: Domain, class: u16) -> Answer {
    let name = || {
        let is = |(known, _): &(Domain, String)| *known == domain;
        book.domains().into_iter().find(is).map(|(_, name)| name).unwrap_or_default()
    };
    let count = |kind| u32::try_from(book.count(domain, kind)).unwrap_or(u32::MAX);
    let information = match class {
        1 => DomainInformation::Password,
        2 => DomainInformation::General(DomainGeneral {
            name: name(),
            comment: COMMENT.to_owned(),
            users: count(Kind::User),
            groups: count(Kind::Group),
            aliases: count(Kind::Alias),
        }),
        3 => DomainInformation::Logoff,
        4 => DomainInformation::Text(class, COMMENT.to_owned()),
        5 => DomainInformation::Text(class, name()),
        6 => DomainInformation::Text(class, String::new()),
        7 => DomainInformation::Role,
        8 => DomainInformation::Modified,
        9 => DomainInformation::State,
        12 => DomainInformation::Lockout,
        _ => return (Response::Domain(None), NtStatus::INVALID_INFO_CLASS),
    };
    (Response::Domain(Some(information)), NtStatus::SUCCESS)
}

fn query_group(book: &Book<'_>, group: Member, class: u16) -> Answer {
    let Some(name) = book.name_of(group) else { return (Response::Group(None), missing(group.kind)) };
    let information = match (group.kind, class) {
        (Kind::Group, 1 | 5) => {
            let members = u32::try_from(book.of_group().len()).unwrap_or(u32::MAX);
            GroupInformation::Group(class, name, members)
        }
        (Kind::Alias, 1) => {
            let members = u32::try_from(book.of_alias(group).len()).unwrap_or(u32::MAX);
            GroupInformation::Alias(name, members)
        }
        (_, 2) => GroupInformation::Name(name),
        (Kind::Group, 3) => GroupInformation::Attributes,
        (Kind::Group, 4) | (Kind::Alias, 3) => GroupInformation::Comment(class),
        _ => return (Response::Group(None), NtStatus::INVALID_INFO_CLASS),
    };
    (Response::Group(Some(information)), NtStatus::SUCCESS)
}

fn query_user(book: &Book<'_>, user: Member, class: u16) -> Answer {
    let Some(name) = book.name_of(user) else { return (Response::User(None), NtStatus::NO_SUCH_USER) };
    if !UserInformation::CLASSES.contains(&class) {
        return (Response::User(None), NtStatus::INVALID_INFO_CLASS);
    }
    let (rid, control) = (user.rid, book.control(user.rid));
    let primary_group = book.groups_of_user().first().copied().unwrap_or_default();
    let information = UserInformation { class, name, rid, primary_group, control };
    (Response::User(Some(information)), NtStatus::SUCCESS)
}

/// Which entries of a list to be shown are asked for.
struct Part {
    first: u32,
    entries_max: u32,
    bytes_max: u32,
}

/// [MS-SAMR] 3.1.5.3.1: a list by place.
fn display(book: &Book<'_>, domain: Domain, class: u16, part: Part) -> Answer {
    let members = match class {
        1 => book.members(domain, Kind::User),
        2 => Vec::new(), // machines, which a server without a domain does not have
        3 => book.members(domain, Kind::Group),
        _ => {
            let none = Response::Display { class, bytes_total: 0, bytes: 0, entries: Vec::new() };
            return (none, NtStatus::INVALID_INFO_CLASS);
        }
    };
    let bytes = |entries: &[Entry]| {
        let sum = entries.iter().map(bytes_of).fold(0_usize, usize::saturating_add);
        u32::try_from(sum).unwrap_or(u32::MAX)
    };
    let bytes_total = bytes(&members);
    let first = usize::try_from(part.first).unwrap_or(usize::MAX);
    let rest = members.get(first..).unwrap_or_default();
    let entries_max = usize::try_from(part.entries_max).unwrap_or(usize::MAX).max(1);
    let (shown, left) = rest.split_at(fitting(rest, part.bytes_max).min(entries_max).min(rest.len()));
    let control = |rid| if class == 1 { book.control(rid) } else { GROUP_ATTRIBUTES };
    let entries = (part.first.saturating_add(1)..).zip(shown).map(|(index, entry)| {
        let Entry { rid, ref name } = *entry;
        DisplayEntry { index, rid, control: control(rid), name: name.clone() }
    });
    let response = Response::Display { class, bytes_total, bytes: bytes(shown), entries: entries.collect() };
    (response, if left.is_empty() { NtStatus::SUCCESS } else { NtStatus::MORE_ENTRIES })
}
