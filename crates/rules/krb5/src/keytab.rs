//! Keytabs: files with the keys of services. The format of MIT krb5 with version 0x0502
//! ([its description](https://web.mit.edu/kerberos/krb5-latest/doc/formats/keytab_file_format.html)).

use std::fmt;

use crate::HostRule;
use crate::crypto::{ChecksumKey, CryptoError, KeyUsage, Opener};
use crate::name::{NameError, Principal};
use crate::reason::Reason;
use crate::time::Time;
use crate::{Enctype, Key};

const VERSION: [u8; 2] = [5, 2];
/// The version of old programs, in the byte order of their machine.
const OLD_VERSION: [u8; 2] = [5, 1];
/// The most bytes of a file.
pub const BYTES_MAX: usize = 1 << 20;
/// The most entries of a keytab.
const ENTRIES_MAX: usize = 4096;

/// Why a keytab cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeytabError {
    /// Another file
    #[error("this is not a keytab: it does not begin with 05 02")]
    NotKeytab,
    /// A keytab of version 1
    #[error(
        "this is a keytab of version 1, which depends on the machine: write a new one with ktutil or kadmin"
    )]
    OldVersion,
    /// More than 1 MiB
    #[error("the keytab is larger than 1 MiB")]
    TooLarge,
    /// More than 4,096 entries
    #[error("the keytab has more than 4096 keys")]
    TooManyEntries,
    /// An entry is cut off
    #[error("the keytab is damaged: the entry at byte {offset} is cut off")]
    Truncated {
        /// Where the entry begins
        offset: usize,
    },
    /// An entry has a name that cannot be used
    #[error("the keytab has a name at byte {offset} that cannot be used: {error}")]
    Name {
        /// Where the entry begins
        offset: usize,
        /// What is wrong with the name
        error: NameError,
    },
    /// A key of the wrong length
    #[error("the keytab is damaged: the key at byte {offset} has {given} bytes, and its type is {}", .enctype.name())]
    KeyLength {
        /// Where the entry begins
        offset: usize,
        /// The type of the key
        enctype: Enctype,
        /// The number of bytes
        given: usize,
    },
    /// No AES key
    #[error(
        "the keytab has no AES key ({skipped} of other types): let the account use AES and export the keytab again"
    )]
    NoKeys {
        /// Keys of other types
        skipped: usize,
    },
    /// The library refused
    #[error("the cryptographic library has refused")]
    Library,
}

impl From<CryptoError> for KeytabError {
    fn from(_: CryptoError) -> Self {
        Self::Library
    }
}

/// The keys of a server's services. What tickets need of each is derived when the keytab is read.
#[derive(Debug)]
pub struct Keytab {
    entries: Vec<Entry>,
    skipped: usize,
}

/// A key of a service.
pub struct Entry {
    principal: Principal,
    kvno: u32,
    timestamp: Time,
    key: Key,
    pub(crate) tickets: Opener,
    pub(crate) pacs: ChecksumKey,
}

impl Entry {
    /// A key of a service: the service's name, the version of the key, when the key was written, the key.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn new(principal: Principal, kvno: u32, timestamp: Time, key: Key) -> Result<Self, CryptoError> {
        let deriver = key.deriver()?;
        let (tickets, pacs) = (deriver.opener(KeyUsage::TICKET)?, deriver.checksum_key(KeyUsage::PAC)?);
        Ok(Self { principal, kvno, timestamp, key, tickets, pacs })
    }

    /// The service.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The version of the key. Some programs write its lowest 8 bits only.
    #[must_use]
    pub fn kvno(&self) -> u32 {
        self.kvno
    }

    /// The type of the key.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.key.enctype()
    }

    /// When the key was written into the keytab.
    #[must_use]
    pub fn timestamp(&self) -> Time {
        self.timestamp
    }

    /// Whether the key has this version. A keytab may have only the lowest 8 bits of it.
    fn has_version(&self, kvno: Option<u32>) -> bool {
        kvno.is_none_or(|wanted| wanted == self.kvno || (self.kvno < 0x100 && wanted & 0xff == self.kvno))
    }

    fn is_same_key(&self, other: &Self) -> bool {
        self.kvno == other.kvno
            && self.principal == other.principal
            && self.enctype() == other.enctype()
            && self.key.as_bytes() == other.key.as_bytes()
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("principal", &self.principal)
            .field("kvno", &self.kvno)
            .field("enctype", &self.enctype())
            .finish_non_exhaustive()
    }
}

impl Keytab {
    /// A keytab of these keys.
    ///
    /// # Errors
    /// [`KeytabError::NoKeys`], [`KeytabError::TooManyEntries`].
    pub fn new(entries: Vec<Entry>) -> Result<Self, KeytabError> {
        match entries.len() {
            0 => Err(KeytabError::NoKeys { skipped: 0 }),
            1..=ENTRIES_MAX => Ok(Self { entries, skipped: 0 }),
            _ => Err(KeytabError::TooManyEntries),
        }
    }

    /// The keys in the bytes of a file. Keys of other types than AES are left out, and keys that are there twice.
    ///
    /// # Errors
    /// [`KeytabError`].
    pub fn parse(file: &[u8]) -> Result<Self, KeytabError> {
        if file.len() > BYTES_MAX {
            return Err(KeytabError::TooLarge);
        }
        let mut input = match file.split_first_chunk() {
            Some((&VERSION, rest)) => Input { rest, offset: VERSION.len() },
            Some((&OLD_VERSION, _)) => return Err(KeytabError::OldVersion),
            _ => return Err(KeytabError::NotKeytab),
        };
        let mut keytab = Self { entries: Vec::new(), skipped: 0 };
        while let Some(record) = input.record()? {
            if keytab.entries.len().saturating_add(keytab.skipped) == ENTRIES_MAX {
                return Err(KeytabError::TooManyEntries);
            }
            match record.entry()? {
                Some(entry) if keytab.entries.iter().any(|known| known.is_same_key(&entry)) => {}
                Some(entry) => keytab.entries.push(entry),
                None => keytab.skipped = keytab.skipped.saturating_add(1),
            }
        }
        if keytab.entries.is_empty() {
            Err(KeytabError::NoKeys { skipped: keytab.skipped })
        } else {
            Ok(keytab)
        }
    }

    /// The keys.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of keys of other types, which were left out.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Adds the keys of another keytab: those that were in force before, for instance. Keys that are there already are
    /// left out.
    ///
    /// # Errors
    /// [`KeytabError::TooManyEntries`].
    pub fn add(&mut self, other: Self) -> Result<(), KeytabError> {
        for entry in other.entries {
            if self.entries.iter().any(|known| known.is_same_key(&entry)) {
                continue;
            }
            if self.entries.len() >= ENTRIES_MAX {
                return Err(KeytabError::TooManyEntries);
            }
            self.entries.push(entry);
        }
        Ok(())
    }

    /// The keys that a ticket may have been made with.
    pub(crate) fn keys<'k>(
        &'k self,
        service: &Principal,
        enctype: Enctype,
        kvno: Option<u32>,
        hosts: HostRule,
    ) -> impl Iterator<Item = &'k Entry> {
        // the cheap comparisons first
        let fits = move |entry: &&Entry| entry.enctype() == enctype && entry.has_version(kvno);
        let named = move |entry: &&Entry| hosts == HostRule::Any || entry.principal.is_same(service);
        self.entries.iter().filter(fits).filter(named)
    }

    /// Why there is no key.
    pub(crate) fn missing(&self, service: &Principal, enctype: Enctype, kvno: Option<u32>) -> Reason {
        let mut of_service = self.entries.iter().filter(|entry| entry.principal.is_same(service)).peekable();
        if of_service.peek().is_none() {
            return Reason::NoSuchService;
        }
        let newest = of_service.filter(|entry| entry.enctype() == enctype).map(Entry::kvno).max();
        match (newest, kvno) {
            (Some(newest), Some(wanted)) => Reason::NoSuchKeyVersion { wanted, newest },
            _ => Reason::NoSuchEnctype { number: enctype.number().into() },
        }
    }
}

/// What has not been read of a file or an entry, and where it is.
#[derive(Clone, Copy)]
struct Input<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Input<'a> {
    /// The next entry: its length, then its bytes. A negative length is that of a hole, which is passed over; zero is
    /// the end.
    fn record(&mut self) -> Result<Option<Record<'a>>, KeytabError> {
        while !self.rest.is_empty() {
            let offset = self.offset;
            let length = i32::from_be_bytes(self.array(offset)?);
            let bytes = self.take(usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX), offset)?;
            match length {
                1.. => return Ok(Some(Record { input: Self { rest: bytes, offset }, offset })),
                0 => break,
                _ => {}
            }
        }
        Ok(None)
    }

    fn take(&mut self, length: usize, entry: usize) -> Result<&'a [u8], KeytabError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or(KeytabError::Truncated { offset: entry })?;
        *self = Self { rest, offset: self.offset.saturating_add(length) };
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, entry: usize) -> Result<[u8; N], KeytabError> {
        let taken = self.take(N, entry)?;
        taken.try_into().map_err(|_| KeytabError::Truncated { offset: entry })
    }
}

/// The bytes of an entry.
struct Record<'a> {
    input: Input<'a>,
    offset: usize,
}

impl<'a> Record<'a> {
    /// Components, realm, type of the name, time, version (8 bits), type of the key, key, and in newer files the version
    /// once more with 32 bits. `None` if the type of the key is not used here.
    fn entry(mut self) -> Result<Option<Entry>, KeytabError> {
        let count = self.u16()?;
        let realm = self.counted()?;
        let mut parts: [&[u8]; crate::name::COMPONENTS_MAX] = [&[]; crate::name::COMPONENTS_MAX];
        let named = |error| KeytabError::Name { offset: self.offset, error };
        let places =
            parts.get_mut(..usize::from(count)).ok_or_else(|| named(NameError::TooManyComponents))?;
        for place in &mut *places {
            *place = self.counted()?;
        }
        let _name_type: [u8; 4] = self.array()?;
        let timestamp = Time::from_unix(u32::from_be_bytes(self.array()?).into());
        let [short_kvno] = self.array()?;
        let number = i16::from_be_bytes(self.array()?);
        let bytes = self.counted()?;
        let Some(enctype) = Enctype::from_number(number.into()) else { return Ok(None) };
        let principal = Principal::collect(places.iter().map(|part| Ok(*part)), realm)
            .map_err(|error| KeytabError::Name { offset: self.offset, error })?;
        let kvno = match self.input.rest.first_chunk().map(|kvno| u32::from_be_bytes(*kvno)) {
            None | Some(0) => u32::from(short_kvno),
            Some(kvno) => kvno,
        };
        let key = Key::new(enctype, bytes).map_err(|error| KeytabError::KeyLength {
            offset: self.offset,
            enctype,
            given: error.given,
        })?;
        Ok(Some(Entry::new(principal, kvno, timestamp, key)?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], KeytabError> {
        self.input.array(self.offset)
    }

    fn u16(&mut self) -> Result<u16, KeytabError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A length and as many bytes.
    fn counted(&mut self) -> Result<&'a [u8], KeytabError> {
        let length = self.u16()?;
        self.input.take(length.into(), self.offset)
    }
}

#[cfg(test)]
mod tests;
