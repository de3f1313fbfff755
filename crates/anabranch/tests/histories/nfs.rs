//! Changes and views over NFSv3.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nfs_wire::mount::{self, DirPath, MntRes};
use nfs_wire::v3::attr::{Attributes, SetAttributes};
use nfs_wire::v3::create::How;
use nfs_wire::v3::types::{DirOpArgs, FileHandle, FileType, Name, StableHow};
use nfs_wire::v3::{self, Procedure};
use nfs_wire::v3::{commit, create, lookup, mkdir, read, readdirplus, remove, rename, setattr, write};
use nfs_wire::xdr::{Decode, Encode};

use crate::model::{Change, Seen};

/// A connection, and the root of the share.
pub(crate) struct Nfs {
    stream: TcpStream,
    root: FileHandle,
    /// Of the last call: the same one again would be a repetition, which the server answers as it has answered before.
    xid: u32,
}

impl Nfs {
    pub(crate) fn connect(address: &str, share: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut nfs = Self { stream, root: FileHandle::new(&[]).unwrap(), xid: 0 };
        nfs.ask((mount::PROGRAM, mount::Procedure::Mnt as u32), &DirPath(format!("/{share}").as_bytes()));
        let results = nfs.answer().unwrap();
        nfs.root = MntRes::from_bytes(&results).unwrap().unwrap().file_handle;
        nfs
    }

    /// Sends a call. RFC 5531 section 9 and appendix A: AUTH_SYS of root on a machine without a name.
    fn ask(&mut self, (program, procedure): (u32, u32), arguments: &impl Encode) {
        self.xid += 1;
        let words = [self.xid, 0, 2, program, 3, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0];
        let mut call: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        call.extend_from_slice(&arguments.encode_to_vec());
        let mark = 0x8000_0000 | u32::try_from(call.len()).unwrap();
        self.stream.write_all(&[&mark.to_be_bytes()[..], &call].concat()).unwrap();
    }

    /// The results of a call, unless the server has gone.
    pub(crate) fn answer(&mut self) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        if let Err(e) = self.stream.read_exact(&mut mark) {
            assert_ne!(e.kind(), io::ErrorKind::WouldBlock, "no answer within a minute");
            return None;
        }
        let mut reply = vec![0; usize::try_from(u32::from_be_bytes(mark) & 0x7fff_ffff).unwrap()];
        self.stream.read_exact(&mut reply).unwrap();
        // xid, REPLY, accepted, AUTH_NONE, success
        assert_eq!(reply[4..24], [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat(), "the call did not run");
        Some(reply.split_off(24))
    }

    fn ask_v3(&mut self, procedure: Procedure, arguments: &impl Encode) {
        self.ask((v3::PROGRAM, procedure as u32), arguments);
    }

    fn call(&mut self, procedure: Procedure, arguments: &impl Encode) -> Vec<u8> {
        self.ask_v3(procedure, arguments);
        self.answer().expect("an answer")
    }

    fn lookup(&mut self, dir: FileHandle, name: &str) -> Option<FileHandle> {
        let what = DirOpArgs { dir, name: Name(name.as_bytes()) };
        let results = self.call(Procedure::Lookup, &lookup::Args { what });
        lookup::Res::from_bytes(&results).unwrap().ok().map(|found| found.object)
    }

    fn find(&mut self, path: &str) -> FileHandle {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(self.root, |dir, name| {
            self.lookup(dir, name).unwrap_or_else(|| panic!("{path} is not there over NFS"))
        })
    }

    fn place<'p>(&mut self, path: &'p str) -> DirOpArgs<'p> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        DirOpArgs { dir: self.find(above), name: Name(name.as_bytes()) }
    }

    /// Sends the one call that makes a change; a write is on stable storage when it is answered, or not.
    pub(crate) fn send(&mut self, change: &Change, is_directory: bool, stable: StableHow) {
        match change {
            Change::MakeFile(path) => {
                let how = How::Guarded(SetAttributes { mode: Some(0o644), ..SetAttributes::default() });
                let place = self.place(path);
                self.ask_v3(Procedure::Create, &create::Args { place, how });
            }
            Change::MakeDirectory(path) => {
                let attributes = SetAttributes { mode: Some(0o755), ..SetAttributes::default() };
                let place = self.place(path);
                self.ask_v3(Procedure::MkDir, &mkdir::Args { place, attributes });
            }
            Change::Write(path, at, data) => {
                let (offset, count) = (u64::try_from(*at).unwrap(), u32::try_from(data.len()).unwrap());
                let file = self.find(path);
                self.ask_v3(Procedure::Write, &write::Args { file, offset, count, stable, data });
            }
            Change::Resize(path, length) => {
                let size = Some(u64::try_from(*length).unwrap());
                self.set(path, SetAttributes { size, ..SetAttributes::default() });
            }
            Change::SetMode(path, mode) => {
                self.set(path, SetAttributes { mode: Some(*mode), ..SetAttributes::default() });
            }
            Change::Rename(from, to) => {
                let (from, to) = (self.place(from), self.place(to));
                self.ask_v3(Procedure::Rename, &rename::Args { from, to });
            }
            Change::Remove(path) => {
                let object = self.place(path);
                let procedure = if is_directory { Procedure::RmDir } else { Procedure::Remove };
                self.ask_v3(procedure, &remove::Args { object });
            }
            _ => panic!("not over NFS: {change:?}"),
        }
    }

    fn set(&mut self, path: &str, new_attributes: SetAttributes) {
        let object = self.find(path);
        let arguments = setattr::Args { object, new_attributes, guard: None };
        self.ask_v3(Procedure::SetAttr, &arguments);
    }

    /// Makes a change.
    pub(crate) fn change(&mut self, change: &Change, is_directory: bool, stable: StableHow) {
        self.send(change, is_directory, stable);
        let results = self.answer().expect("an answer");
        assert_eq!(status(&results), 0, "{change:?} over NFS");
    }

    /// What was written to a file is on stable storage.
    pub(crate) fn commit(&mut self, path: &str) {
        let file = self.find(path);
        let results = self.call(Procedure::Commit, &commit::Args { file, offset: 0, count: 0 });
        assert_eq!(status(&results), 0, "COMMIT of {path}");
    }

    /// Whether there is a snapshot of the share.
    pub(crate) fn has_version(&mut self, name: &str) -> bool {
        let above = self.lookup(self.root, ".snapshot");
        above.is_some_and(|above| self.lookup(above, name).is_some())
    }

    /// All that the share holds, now or in a snapshot.
    pub(crate) fn view(&mut self, snapshot: Option<&str>) -> BTreeMap<String, Seen> {
        let top = snapshot.map_or(String::new(), |name| format!(".snapshot/{name}"));
        let mut directories = vec![(String::new(), self.find(&top))];
        let mut found = BTreeMap::new();
        while let Some((directory, handle)) = directories.pop() {
            for (name, attributes, handle) in self.list(handle) {
                let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                let is_dir = attributes.file_type == FileType::Directory;
                if is_dir {
                    directories.push((path.clone(), handle));
                }
                let data = (!is_dir).then(|| self.read(handle));
                assert!(
                    data.as_ref().is_none_or(|data| data.len() as u64 == attributes.size),
                    "size of {path}"
                );
                let seen = Seen { data, mode: Some(attributes.mode), ..Seen::default() };
                assert!(found.insert(path, seen).is_none(), "listed twice");
            }
        }
        found
    }

    fn list(&mut self, dir: FileHandle) -> Vec<(String, Attributes, FileHandle)> {
        let (mut all, mut cookie, mut cookie_verifier) = (Vec::new(), 0, [0; 8]);
        loop {
            let arguments =
                readdirplus::Args { dir, cookie, cookie_verifier, dir_count: 16384, max_count: 65536 };
            let results = self.call(Procedure::ReadDirPlus, &arguments);
            let listed = readdirplus::Res::from_bytes(&results).unwrap().unwrap();
            cookie_verifier = listed.cookie_verifier;
            for entry in listed.listing.entries {
                cookie = entry.cookie;
                let name = String::from_utf8(entry.name.0.to_vec()).unwrap();
                if name != "." && name != ".." {
                    all.push((name, entry.attributes.unwrap(), entry.file_handle.unwrap()));
                }
            }
            if listed.listing.eof {
                return all;
            }
        }
    }

    fn read(&mut self, file: FileHandle) -> Vec<u8> {
        let mut data = Vec::new();
        loop {
            let offset = u64::try_from(data.len()).unwrap();
            let results = self.call(Procedure::Read, &read::Args { file, offset, count: 65536 });
            let piece = read::Res::from_bytes(&results).unwrap().unwrap();
            data.extend_from_slice(piece.data);
            if piece.eof {
                return data;
            }
            assert!(!piece.data.is_empty(), "nothing, and no end");
        }
    }
}

/// The status of any results (RFC 1813 2.6).
pub(crate) fn status(results: &[u8]) -> u32 {
    u32::from_be_bytes(*results.first_chunk().unwrap())
}
