//! Changes and views over SMB.

use std::collections::BTreeMap;

use acl::{Acl, Control, SecurityDescriptor};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::create_context::RequestContext;
use smb_wire::fscc::directory_info::entries;
use smb_wire::fscc::file_info::{EndOfFile, Rename, RenameFlags, Stream};
use smb_wire::fscc::{FileAttributes, FileInfoClass};
use smb_wire::query_directory::{self, QueryDirectoryFlags};
use smb_wire::query_info::{InfoType, SecurityInformation};
use smb_wire::{AccessMask, Command, FileId, FileTime, NtStatus, set_info};

use crate::client::{Client, Reply};
use crate::information::{Query, query, set_body};
use crate::model::{Change, Seen};
use crate::opening::Opening;

const READ: AccessMask = AccessMask::FILE_READ;

/// A session on the share.
pub(crate) struct Smb(Client);

/// A request that was sent, and the open to close once it is answered.
pub(crate) struct Sent(Option<FileId>);

impl Smb {
    pub(crate) fn connect(address: &str, share: &str) -> Self {
        let mut client = Client::connect(address.parse().unwrap());
        client.negotiate(&[Dialect::Smb311]);
        client.log_in("anna", "hush-hush").unwrap();
        client.tree_connect(share).unwrap();
        Self(client)
    }

    fn open(&mut self, opening: &Opening, path: &str) -> FileId {
        let opened = opening.send(&mut self.0, &path.replace('/', "\\"));
        opened.unwrap_or_else(|status| panic!("{path} over SMB: {status:?}")).id
    }

    /// Sends the one request that makes a change.
    pub(crate) fn send(&mut self, change: &Change) -> Sent {
        match change {
            Change::MakeFile(path) => self.make(path, CreateOptions::NON_DIRECTORY_FILE),
            Change::MakeDirectory(path) => self.make(path, CreateOptions::DIRECTORY_FILE),
            Change::MakeStream(path, name) => self.make(&stream(path, name), CreateOptions::empty()),
            Change::Write(path, at, data) => self.write(path, *at, data),
            Change::WriteStream(path, name, at, data) => self.write(&stream(path, name), *at, data),
            Change::Remove(path) => self.remove(path),
            Change::RemoveStream(path, name) => self.remove(&stream(path, name)),
            Change::Resize(path, length) => {
                let mut size = Vec::new();
                EndOfFile { end_of_file: u64::try_from(*length).unwrap() }.encode_into(&mut size);
                self.set(path, |file| set_body(file, FileInfoClass::EndOfFile, &size))
            }
            Change::Rename(from, to) => {
                let (mut wanted, to) = (Vec::new(), to.replace('/', "\\"));
                let flags = RenameFlags::REPLACE_IF_EXISTS;
                Rename { flags, root_directory: 0, name: to.as_str().into() }
                    .encode_into(&mut wanted)
                    .unwrap();
                self.set(from, |file| set_body(file, FileInfoClass::Rename, &wanted))
            }
            Change::SetEntries(path, aces) => {
                let dacl = Some(Acl { revision: 2, aces: aces.clone() });
                let control = Control::DACL_PRESENT;
                let mut buffer = Vec::new();
                SecurityDescriptor { control, dacl, ..SecurityDescriptor::default() }
                    .encode_into(&mut buffer)
                    .unwrap();
                self.set(path, |file_id| {
                    let mut body = Vec::new();
                    let (info_type, info_class) = (InfoType::Security, 0);
                    let additional_information = SecurityInformation::DACL.bits();
                    let buffer = &buffer[..];
                    set_info::Request { info_type, info_class, additional_information, file_id, buffer }
                        .encode(&mut body)
                        .unwrap();
                    body
                })
            }
            Change::SetMode(..) => panic!("SMB has no modes"),
        }
    }

    fn make(&mut self, path: &str, options: CreateOptions) -> Sent {
        let opening = Opening { options, ..Opening::with(CreateDisposition::Create) };
        self.0.send(Command::Create, &opening.body(&path.replace('/', "\\")));
        Sent(None)
    }

    fn write(&mut self, path: &str, at: usize, data: &[u8]) -> Sent {
        let file = self.open(&Opening::default(), path);
        self.0.send(Command::Write, &crate::client::write_body(file, u64::try_from(at).unwrap(), data));
        Sent(Some(file))
    }

    /// It is removed when the open ends.
    fn remove(&mut self, path: &str) -> Sent {
        let options = CreateOptions::DELETE_ON_CLOSE;
        let file = self.open(&Opening { access: AccessMask::DELETE, options, ..Opening::default() }, path);
        self.0.send(Command::Close, &crate::client::close_body(file));
        Sent(None)
    }

    fn set(&mut self, path: &str, body: impl FnOnce(FileId) -> Vec<u8>) -> Sent {
        let file = self.open(&Opening::default(), path);
        self.0.send(Command::SetInfo, &body(file));
        Sent(Some(file))
    }

    /// What the server has answered, if it has.
    pub(crate) fn answer(&mut self) -> Option<Reply> {
        loop {
            let reply = self.0.try_receive_all()?.remove(0);
            if reply.status() != NtStatus::PENDING {
                return Some(reply);
            }
        }
    }

    /// Makes a change.
    pub(crate) fn change(&mut self, change: &Change) {
        let Sent(open) = self.send(change);
        let reply = self.answer().expect("an answer");
        assert_eq!(reply.status(), NtStatus::SUCCESS, "{change:?} over SMB");
        let made = (reply.header.command == Command::Create)
            .then(|| smb_wire::create::Response::decode(&reply.message).unwrap().file_id);
        if let Some(file) = open.or(made) {
            self.0.close(file).unwrap();
        }
    }

    /// Whether there is a version of the share at a time.
    pub(crate) fn has_version(&mut self, time: FileTime) -> bool {
        let opened = reading(Some(time)).send(&mut self.0, "");
        opened.is_ok_and(|opened| self.0.close(opened.id).is_ok())
    }

    /// All that the share holds, now or in the snapshot of a time.
    pub(crate) fn view(&mut self, time: Option<FileTime>) -> BTreeMap<String, Seen> {
        let (mut found, mut directories) = (BTreeMap::new(), vec![String::new()]);
        while let Some(directory) = directories.pop() {
            for (name, is_dir) in self.list(&directory, time) {
                let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                if is_dir {
                    directories.push(path.clone());
                }
                let seen = self.see(&path, is_dir, time);
                assert!(found.insert(path, seen).is_none(), "listed twice");
            }
        }
        found
    }

    fn list(&mut self, directory: &str, time: Option<FileTime>) -> Vec<(String, bool)> {
        let file_id = self.open(&reading(time), directory);
        let class = FileInfoClass::IdBothDirectory;
        let request = query_directory::Request {
            file_information_class: class,
            flags: QueryDirectoryFlags::empty(),
            file_index: 0,
            file_id,
            file_name: "*".into(),
            output_buffer_length: 65536,
        };
        let (mut body, mut all) = (Vec::new(), Vec::new());
        request.encode(&mut body).unwrap();
        loop {
            let reply = self.0.call(Command::QueryDirectory, &body);
            if reply.status() == NtStatus::NO_MORE_FILES {
                break;
            }
            assert_eq!(reply.status(), NtStatus::SUCCESS, "listing {directory}");
            let data = query_directory::Response::decode(&reply.message).unwrap().output_buffer;
            let listed = entries(class, data).unwrap().map(|entry| {
                let entry = entry.unwrap();
                let is_dir = entry.file_attributes.contains(FileAttributes::DIRECTORY);
                (entry.name.decode().unwrap(), is_dir)
            });
            all.extend(listed.filter(|(name, _)| name != "." && name != ".."));
        }
        self.0.close(file_id).unwrap();
        all
    }

    fn see(&mut self, path: &str, is_dir: bool, time: Option<FileTime>) -> Seen {
        let file = self.open(&reading(time), path);
        let parts = SecurityInformation::OWNER | SecurityInformation::GROUP | SecurityInformation::DACL;
        let security = Query::security(parts).get(&mut self.0, file).unwrap();
        let listed = query(&mut self.0, file, FileInfoClass::Stream).unwrap_or_default();
        let names: Vec<String> =
            Stream::list(&listed).map(|stream| stream.unwrap().name.decode().unwrap()).collect();
        let data = (!is_dir).then(|| self.read(file));
        self.0.close(file).unwrap();
        let mut streams = BTreeMap::new();
        for name in names.iter().filter_map(|name| name.strip_prefix(':')?.strip_suffix(":$DATA")) {
            if !name.is_empty() {
                let file = self.open(&reading(time), &stream(path, name));
                streams.insert(name.to_owned(), self.read(file));
                self.0.close(file).unwrap();
            }
        }
        let security = Some(SecurityDescriptor::decode(&security).unwrap());
        Seen { data, streams: Some(streams), mode: None, security }
    }

    fn read(&mut self, file: FileId) -> Vec<u8> {
        match self.0.read(file, 0, 65536) {
            Err(NtStatus::END_OF_FILE) => Vec::new(),
            read => read.unwrap(),
        }
    }
}

fn stream(path: &str, name: &str) -> String {
    format!("{path}:{name}")
}

fn reading(time: Option<FileTime>) -> Opening {
    let contexts = time.map(RequestContext::TimewarpToken).into_iter().collect();
    Opening { access: READ, contexts, ..Opening::default() }
}
