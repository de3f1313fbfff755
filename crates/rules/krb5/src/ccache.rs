//! Credential caches: files with the tickets of a user. The format of MIT krb5 with version 4
//! ([its description](https://web.mit.edu/kerberos/krb5-latest/doc/formats/ccache_file_format.html)).

use std::fmt;

use crate::name::{NameError, Principal};
use crate::time::Time;
use crate::{Enctype, Key};

const VERSION: [u8; 2] = [5, 4];
/// The most bytes of a file.
pub const BYTES_MAX: usize = 1 << 20;
/// The most addresses, or pieces of authorization data, of a ticket. Neither is used.
const LIST_MAX: u32 = 1024;

/// Why a credential cache cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialCacheError {
    /// Another file, or a version that depends on the machine
    #[error("this is not a credential cache of version 4: it does not begin with 05 04")]
    NotCache,
    /// More than 1 MiB
    #[error("the credential cache is larger than 1 MiB")]
    TooLarge,
    /// The file ends too early
    #[error("the credential cache is damaged: it ends inside of an entry")]
    Truncated,
}

/// The tickets of a user.
#[derive(Debug)]
pub struct CredentialCache(Vec<Credential>);

/// A ticket for a service, with the key that its bearer has to know.
#[derive(Clone)]
pub struct Credential {
    pub(crate) client: Principal,
    pub(crate) service: Principal,
    pub(crate) session_key: Key,
    end_time: Time,
    /// The ticket as the KDC encoded it
    pub(crate) ticket: Vec<u8>,
}

impl Credential {
    /// A ticket as the KDC encoded it, with what the KDC told its bearer.
    #[must_use]
    pub fn new(
        client: Principal,
        service: Principal,
        session_key: Key,
        end_time: Time,
        ticket: Vec<u8>,
    ) -> Self {
        Self { client, service, session_key, end_time, ticket }
    }

    /// Who the ticket is of.
    #[must_use]
    pub fn client(&self) -> &Principal {
        &self.client
    }

    /// What the ticket is for.
    #[must_use]
    pub fn service(&self) -> &Principal {
        &self.service
    }

    /// Until when the ticket is good.
    #[must_use]
    pub fn end_time(&self) -> Time {
        self.end_time
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("client", &self.client)
            .field("service", &self.service)
            .field("end_time", &self.end_time)
            .finish_non_exhaustive()
    }
}

impl CredentialCache {
    /// The tickets in the bytes of a file. Entries that are no tickets, and those with other keys than AES ones, are left
    /// out.
    ///
    /// # Errors
    /// [`CredentialCacheError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, CredentialCacheError> {
        if bytes.len() > BYTES_MAX {
            return Err(CredentialCacheError::TooLarge);
        }
        let Some((&VERSION, rest)) = bytes.split_first_chunk() else {
            return Err(CredentialCacheError::NotCache);
        };
        let mut reader = Reader(rest);
        let header = reader.number::<2>().map(u16::from_be_bytes)?;
        reader.take(header.into())?;
        let _default = principal(&mut reader)?;
        let mut credentials = Vec::new();
        while !reader.0.is_empty() {
            credentials.extend(credential(&mut reader)?);
        }
        Ok(Self(credentials))
    }

    /// The ticket for a service of a host that is good for longest. The case of the names does not matter.
    #[must_use]
    pub fn ticket(&self, service: &str, host: &str, now: Time) -> Option<&Credential> {
        let named = |credential: &&Credential| {
            let mut parts = credential.service.components();
            let is = |part: Option<&str>, wanted: &str| part.is_some_and(|p| p.eq_ignore_ascii_case(wanted));
            is(parts.next(), service) && is(parts.next(), host) && parts.next().is_none()
        };
        let good = self.0.iter().filter(named).filter(|credential| credential.end_time > now);
        good.max_by_key(|credential| credential.end_time)
    }
}

/// Numbers and counted bytes, the highest byte first.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], CredentialCacheError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CredentialCacheError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], CredentialCacheError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(CredentialCacheError::Truncated)?;
        self.0 = rest;
        Ok(*number)
    }

    fn u32(&mut self) -> Result<u32, CredentialCacheError> {
        self.number().map(u32::from_be_bytes)
    }

    fn data(&mut self) -> Result<&'a [u8], CredentialCacheError> {
        let length = usize::try_from(self.u32()?).map_err(|_| CredentialCacheError::Truncated)?;
        self.take(length)
    }

    /// Passes over addresses or authorization data: a count, and then a type and data of each.
    fn pass_list(&mut self) -> Result<(), CredentialCacheError> {
        let count = self.u32()?;
        if count > LIST_MAX {
            return Err(CredentialCacheError::Truncated);
        }
        (0..count).try_for_each(|_| {
            self.number::<2>()?;
            self.data().map(drop)
        })
    }
}

/// A name: its type, the number of components, the realm, the components. The inner error is of a name that cannot be used,
/// such as those of the entries in which MIT keeps settings.
fn principal(reader: &mut Reader<'_>) -> Result<Result<Principal, NameError>, CredentialCacheError> {
    let _name_type = reader.u32()?;
    let count = reader.u32()?;
    let realm = reader.data()?;
    // each component has at least its length
    if usize::try_from(count).map_or(true, |count| count > reader.0.len()) {
        return Err(CredentialCacheError::Truncated);
    }
    let mut components = Vec::new();
    for _ in 0..count {
        components.push(reader.data()?);
    }
    Ok(Principal::collect(components.into_iter().map(Ok), realm))
}

/// An entry, if it is a ticket that can be used.
fn credential(reader: &mut Reader<'_>) -> Result<Option<Credential>, CredentialCacheError> {
    let client = principal(reader)?;
    let service = principal(reader)?;
    let enctype = i16::from_be_bytes(reader.number()?);
    let key = reader.data()?;
    let (_auth_time, _start_time, end_time, _renew_until) =
        (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    let [is_session_key_ticket] = reader.number()?;
    let _flags = reader.u32()?;
    reader.pass_list()?;
    reader.pass_list()?;
    let ticket = reader.data()?;
    let _second_ticket = reader.data()?;
    let key = Enctype::from_number(enctype.into()).map(|enctype| Key::new(enctype, key));
    let (Ok(client), Ok(service), Some(Ok(session_key)), 0) = (client, service, key, is_session_key_ticket)
    else {
        return Ok(None);
    };
    let end_time = Time::from_unix(end_time.into());
    Ok(Some(Credential::new(client, service, session_key, end_time, ticket.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn name(components: &[&str], realm: &str) -> Vec<u8> {
        let count = u32::try_from(components.len()).unwrap().to_be_bytes();
        let parts = components.iter().flat_map(|part| data(part.as_bytes())).collect::<Vec<_>>();
        [&1_u32.to_be_bytes()[..], &count, &data(realm.as_bytes()), &parts].concat()
    }

    fn entry(service: &[&str], realm: &str, enctype: u16, key: &[u8], end_time: u32) -> Vec<u8> {
        let times = [1, 2, end_time, 4].map(u32::to_be_bytes).concat();
        let address = [&2_u16.to_be_bytes()[..], &data(&[127, 0, 0, 1])].concat();
        [
            &name(&["alice"], "LAB.TEST")[..],
            &name(service, realm),
            &enctype.to_be_bytes(),
            &data(key),
            &times,
            &[0],
            &0x40e0_0000_u32.to_be_bytes(),
            &1_u32.to_be_bytes(),
            &address,
            &0_u32.to_be_bytes(),
            &data(b"the ticket"),
            &data(b""),
        ]
        .concat()
    }

    fn file(entries: &[Vec<u8>]) -> Vec<u8> {
        let header = [0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        [&VERSION[..], &header, &name(&["alice"], "LAB.TEST"), &entries.concat()].concat()
    }

    const NFS: [&str; 2] = ["nfs", "files.lab.test"];

    #[test]
    fn the_ticket_that_is_good_for_longest_is_taken() {
        let settings = ["krb5_ccache_conf_data", "pa_type", "krbtgt/LAB.TEST@LAB.TEST"];
        let entries = [
            entry(&settings, "X-CACHECONF:", 0, b"", 0),
            entry(&["krbtgt", "LAB.TEST"], "LAB.TEST", 18, &[1; 32], 900),
            entry(&NFS, "LAB.TEST", 18, &[2; 32], 500),
            entry(&NFS, "LAB.TEST", 20, &[3; 32], 800),
            entry(&NFS, "LAB.TEST", 23, &[4; 16], 900),
        ];
        let cache = CredentialCache::parse(&file(&entries)).unwrap();
        assert_eq!(cache.0.len(), 3);
        let ticket = cache.ticket("nfs", "FILES.lab.test", Time::from_unix(400)).unwrap();
        assert_eq!(ticket.session_key.as_bytes(), [3; 32]);
        assert_eq!((ticket.client().as_str(), ticket.end_time().as_unix()), ("alice@LAB.TEST", 800));
        assert_eq!(ticket.ticket, b"the ticket");
        assert!(cache.ticket("nfs", "files.lab.test", Time::from_unix(800)).is_none());
        assert!(cache.ticket("nfs", "files", Time::from_unix(400)).is_none());
        assert!(!format!("{cache:?}").contains("the ticket"));
    }

    #[test]
    fn other_files_and_damaged_ones_are_refused() {
        let whole = file(&[entry(&NFS, "LAB.TEST", 18, &[2; 32], 500)]);
        let no_entries = file(&[]).len();
        for length in 0..whole.len() {
            let parsed = CredentialCache::parse(&whole[..length]);
            assert_eq!(parsed.is_ok(), length == no_entries, "{length}");
        }
        for first in [[5, 2], [5, 3], [4, 4], [0, 0]] {
            let other = [&first[..], &whole[2..]].concat();
            assert_eq!(CredentialCache::parse(&other).unwrap_err(), CredentialCacheError::NotCache);
        }
        let large = vec![0; BYTES_MAX + 1];
        assert_eq!(CredentialCache::parse(&large).unwrap_err(), CredentialCacheError::TooLarge);
    }
}
