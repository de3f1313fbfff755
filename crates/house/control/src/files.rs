//! What clients have open and what they have locked: `/v1/files` and `/v1/locks`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Refusal;

/// The most entries of an answer.
pub const ENTRIES_MAX: usize = 10_000;

/// The open files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The files, by share and path.
    pub files: Vec<OpenFile>,
    /// How many entries more there are than one answer has.
    pub left_out: u64,
}

/// A file or directory that a client has open, or an NFSv4 delegation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// The number of the open. It stays the same while the file is open, and is not used again before the server starts anew.
    pub id: FileId,
    /// The share.
    pub share: String,
    /// The present path from the share's root, with slashes; for an object that was removed, the path by which it was opened.
    pub path: String,
    /// `smb` or `nfs4`.
    pub protocol: String,
    /// The client.
    pub client: OpenedBy,
    /// Whether the object is a directory.
    pub directory: bool,
    /// Whether the entry is a delegation.
    pub delegation: bool,
    /// What the open may do: some of `read`, `write`, `delete`; none of them for attributes only.
    pub access: Vec<String>,
    /// What other opens may do meanwhile: some of `read`, `write`, `delete`.
    pub sharing: Vec<String>,
    /// What the client may keep in its cache: some of `read`, `write`, `handle`.
    pub caching: Vec<String>,
    /// Whether the file is removed when the open ends.
    pub delete_on_close: bool,
    /// The number of byte ranges that are locked: by the open, or by the NFSv4 client on this file.
    pub locks: u64,
}

/// Who has a file open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedBy {
    /// The address of the client; none if the client has lost its connection and the server does not know it.
    pub address: Option<IpAddr>,
    /// Whether the client is connected. An open may be kept for a client that is not.
    pub connected: bool,
    /// The user of SMB, or the user of NFS who has shown a ticket; none for one whose uid the client states.
    pub user: Option<String>,
    /// The uid of the user in the share; none for SMB.
    pub uid: Option<u32>,
    /// The SMB session, as in the list of clients.
    pub session: Option<String>,
    /// The name by which an NFSv4 client calls itself.
    pub name: Option<String>,
}

/// The byte-range locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locks {
    /// The locks, by share, path and offset.
    pub locks: Vec<Lock>,
    /// How many entries more there are than one answer has.
    pub left_out: u64,
}

/// One byte-range lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The open under which the range was locked; for NFSv4, one of the client's opens of the file.
    pub file: FileId,
    /// The share.
    pub share: String,
    /// The path, as of the open.
    pub path: String,
    /// `smb` or `nfs4`.
    pub protocol: String,
    /// The client.
    pub client: OpenedBy,
    /// Whether others may hold no lock on the range. If not, they may hold shared locks.
    pub exclusive: bool,
    /// Whether the lock also stops reads and writes of others, as locks of SMB do.
    pub mandatory: bool,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; none: to the end of the file, whatever its size.
    pub length: Option<u64>,
}

/// What was ended of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnected {
    /// SMB sessions.
    pub smb_sessions: u64,
    /// NFSv4 clients with their sessions, opens and locks.
    pub nfs_clients: u64,
    /// Connections of NFS.
    pub nfs_connections: u64,
}

/// An open that was ended by command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The number of the open.
    pub id: FileId,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only those of this share.
    pub share: Option<String>,
    /// Only those of the client at this address.
    pub client: Option<IpAddr>,
}

/// The number of an open: that of its share, and that of the open in the share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileId {
    /// The number of the share.
    pub share: u32,
    /// The number of the open in the share.
    pub open: u64,
}

/// The text is not the number of an open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the ID of an open file: expected two numbers, such as 1-42")]
pub struct NotAFileId(String);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.share, self.open)
    }
}

impl FromStr for FileId {
    type Err = NotAFileId;

    fn from_str(text: &str) -> Result<Self, NotAFileId> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let parts = text.split_once('-').filter(|(share, open)| digits(share) && digits(open));
        let numbers = parts.and_then(|(share, open)| Some((share.parse().ok()?, open.parse().ok()?)));
        numbers.map(|(share, open)| Self { share, open }).ok_or_else(|| NotAFileId(text.to_owned()))
    }
}

impl TryFrom<String> for FileId {
    type Error = NotAFileId;

    fn try_from(text: String) -> Result<Self, NotAFileId> {
        text.parse()
    }
}

impl From<FileId> for String {
    fn from(id: FileId) -> Self {
        id.to_string()
    }
}

/// A client that is to be disconnected: an address, or one SMB session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientName {
    /// Everything from this address.
    Address(IpAddr),
    /// The SMB session with this SessionId.
    Session(u64),
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Session(id) => write!(f, "0x{id:x}"),
        }
    }
}

/// The text names no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no client: expected an address, or an SMB session such as 0x1a")]
pub struct NotAClient(String);

impl FromStr for ClientName {
    type Err = NotAClient;

    fn from_str(text: &str) -> Result<Self, NotAClient> {
        let session = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let address = || text.parse::<IpAddr>().ok().map(|address| Self::Address(address.to_canonical()));
        session.map(Self::Session).or_else(address).ok_or_else(|| NotAClient(text.to_owned()))
    }
}

/// What clients hold in the shares, and its end. The calls may wait for a disk, so they are made on threads of their own.
pub trait Holdings: Send + Sync {
    /// The open files that pass the filter, in no order.
    fn files(&self, filter: &Filter) -> Vec<OpenFile>;
    /// The locks on files that pass the filter, in no order.
    fn locks(&self, filter: &Filter) -> Vec<Lock>;
    /// Ends an open as its client would, or revokes it. Returns false if there is no such open.
    ///
    /// # Errors
    /// The system lacks resources.
    fn close(&self, id: FileId) -> Result<bool, Refusal>;
    /// Ends the sessions and connections of a client, and what it holds. Nothing keeps it from connecting again.
    ///
    /// # Errors
    /// The system lacks resources.
    fn disconnect(&self, client: ClientName) -> Result<Disconnected, Refusal>;
}

/// The answer to a list of files: in order, and no longer than it may be.
pub(crate) fn in_answer(mut files: Vec<OpenFile>) -> Files {
    files.sort_unstable_by(|a, b| (&a.share, &a.path, a.id).cmp(&(&b.share, &b.path, b.id)));
    let left_out = files.len().saturating_sub(ENTRIES_MAX) as u64;
    files.truncate(ENTRIES_MAX);
    Files { files, left_out }
}

/// The answer to a list of locks: in order, and no longer than it may be.
pub(crate) fn locks_in_answer(mut locks: Vec<Lock>) -> Locks {
    let place = |lock: &Lock| (lock.offset, lock.length, lock.file);
    locks.sort_unstable_by(|a, b| (&a.share, &a.path, place(a)).cmp(&(&b.share, &b.path, place(b))));
    let left_out = locks.len().saturating_sub(ENTRIES_MAX) as u64;
    locks.truncate(ENTRIES_MAX);
    Locks { locks, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_two_numbers() {
        let id = FileId { share: 3, open: u64::MAX };
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in
            ["", "-", "1", "1-", "-1", "1-2-3", "+1-2", "4294967296-1", "1-18446744073709551616", "a-b"]
        {
            assert!(bad.parse::<FileId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_client_is_an_address_or_a_session() {
        let address = |text: &str| Ok(ClientName::Address(text.parse().unwrap()));
        assert_eq!("10.0.0.1".parse(), address("10.0.0.1"));
        assert_eq!("::ffff:10.0.0.1".parse(), address("10.0.0.1"));
        assert_eq!("2001:db8::1".parse(), address("2001:db8::1"));
        assert_eq!("0x1f".parse(), Ok(ClientName::Session(31)));
        for name in ["10.0.0.1", "2001:db8::1", "0x1f"] {
            assert_eq!(name.parse::<ClientName>().unwrap().to_string(), name);
        }
        for bad in ["", "0x", "31", "anna", "10.0.0.1:445", "0xfffffffffffffffff"] {
            assert!(bad.parse::<ClientName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_answer_is_sorted_and_bounded() {
        let file = |open: u64| OpenFile {
            id: FileId { share: 1, open },
            share: "data".to_owned(),
            path: format!("{:05}", 20_000 - open),
            protocol: "smb".to_owned(),
            client: OpenedBy {
                address: None,
                connected: false,
                user: None,
                uid: None,
                session: None,
                name: None,
            },
            directory: false,
            delegation: false,
            access: Vec::new(),
            sharing: Vec::new(),
            caching: Vec::new(),
            delete_on_close: false,
            locks: 0,
        };
        let answer = in_answer((0..10_002).map(file).collect());
        assert_eq!((answer.files.len(), answer.left_out), (ENTRIES_MAX, 2));
        assert!(answer.files.is_sorted_by_key(|file| file.path.clone()));
    }
}
