//! Changes and views over NFSv4.1, without opens.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use nfs_wire::v4::attr::{Attribute, AttributeSet, AttributesBuf, Value};
use nfs_wire::v4::compound::{self, ArgOp, ResOp};
use nfs_wire::v4::create::{self, What};
use nfs_wire::v4::types::{Name, StableHow, Stateid, Verifier};
use nfs_wire::v4::{commit, lookup, read, readdir, remove, rename, setattr, write};
use nfs_wire::xdr::Decode;

use crate::model::{Change, Seen};
use crate::session::{Nfs4 as Session, put, status};

const PIECE: u32 = 32_768;

/// A session, and the share. It outlives a revert.
pub(crate) struct Nfs4 {
    session: Session,
    share: String,
}

fn results(body: &[u8]) -> Vec<ResOp<'_>> {
    compound::Res::from_bytes(body).unwrap().results.map(Result::unwrap).collect()
}

/// Whether this is a change that NFSv4.1 makes without an open.
pub(crate) fn has(change: &Change) -> bool {
    use Change::{MakeDirectory, Remove, Rename, Resize, SetMode, Write};
    matches!(change, Write(..) | Resize(..) | SetMode(..) | Rename(..) | Remove(..) | MakeDirectory(..))
}

impl Nfs4 {
    pub(crate) fn connect(address: &str, share: &str) -> Self {
        let session = Session::start(IpAddr::V4(Ipv4Addr::LOCALHOST), address, share);
        Self { session, share: share.to_owned() }
    }

    /// All of these operations succeed.
    fn ok(&mut self, operations: &[ArgOp<'_>]) -> Vec<u8> {
        let body = self.session.compound(operations);
        assert_eq!(status(&body), Ok(()), "{operations:?}");
        body
    }

    fn lookup(&mut self, directory: &[u8], name: &str) -> Option<Vec<u8>> {
        let name = ArgOp::Lookup(lookup::Args { name: Name(name.as_bytes()) });
        let body = self.session.compound(&[put(directory), name, ArgOp::GetFh]);
        results(&body).into_iter().find_map(|result| match result {
            ResOp::GetFh(Ok(found)) => Some(found.object.0.to_vec()),
            _ => None,
        })
    }

    fn find(&mut self, path: &str) -> Vec<u8> {
        let names = path.split('/').filter(|name| !name.is_empty());
        let root = self.session.top(&self.share).unwrap();
        names.fold(root, |directory, name| {
            self.lookup(&directory, name).unwrap_or_else(|| panic!("{path} is not there over NFSv4.1"))
        })
    }

    fn place<'p>(&mut self, path: &'p str) -> (Vec<u8>, &'p str) {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.find(above), name)
    }

    /// Makes a change that it [`has`]; a write is on stable storage when it is answered, or not.
    pub(crate) fn change(&mut self, change: &Change, unstable: bool) {
        match change {
            Change::MakeDirectory(path) => {
                let (above, name) = self.place(path);
                let attributes = [Value::Mode(0o755)].into_iter().collect::<AttributesBuf>();
                let attributes = attributes.as_attributes();
                let make = create::Args { what: What::Directory, name: Name(name.as_bytes()), attributes };
                self.ok(&[put(&above), ArgOp::Create(make)]);
            }
            Change::Write(path, at, data) => {
                let (file, offset) = (self.find(path), u64::try_from(*at).unwrap());
                let stable = if unstable { StableHow::Unstable } else { StableHow::FileSync };
                let write = write::Args { stateid: Stateid::ANONYMOUS, offset, stable, data };
                let body = self.ok(&[put(&file), ArgOp::Write(write)]);
                let Some(ResOp::Write(Ok(done))) = results(&body).pop() else { panic!("{body:?}") };
                assert_eq!(usize::try_from(done.count).unwrap(), data.len());
            }
            Change::Resize(path, length) => self.set(path, Value::Size(u64::try_from(*length).unwrap())),
            Change::SetMode(path, mode) => self.set(path, Value::Mode(*mode)),
            Change::Rename(from, to) => {
                let ((old, old_name), (new, new_name)) = (self.place(from), self.place(to));
                let (old_name, new_name) = (Name(old_name.as_bytes()), Name(new_name.as_bytes()));
                let rename = ArgOp::Rename(rename::Args { old_name, new_name });
                self.ok(&[put(&old), ArgOp::SaveFh, put(&new), rename]);
            }
            Change::Remove(path) => {
                let (above, name) = self.place(path);
                self.ok(&[put(&above), ArgOp::Remove(remove::Args { target: Name(name.as_bytes()) })]);
            }
            _ => panic!("not over NFSv4.1: {change:?}"),
        }
    }

    fn set(&mut self, path: &str, value: Value<'_>) {
        let (file, attributes) = (self.find(path), [value].into_iter().collect::<AttributesBuf>());
        let attributes = attributes.as_attributes();
        self.ok(&[put(&file), ArgOp::SetAttr(setattr::Args { stateid: Stateid::ANONYMOUS, attributes })]);
    }

    /// What was written to a file is on stable storage.
    pub(crate) fn commit(&mut self, path: &str) {
        let file = self.find(path);
        self.ok(&[put(&file), ArgOp::Commit(commit::Args { offset: 0, count: 0 })]);
    }

    /// All that the share holds, now or in a snapshot.
    pub(crate) fn view(&mut self, snapshot: Option<&str>) -> BTreeMap<String, Seen> {
        let top = snapshot.map_or(String::new(), |name| format!(".snapshot/{name}"));
        let mut directories = vec![(String::new(), self.find(&top))];
        let mut found = BTreeMap::new();
        while let Some((directory, handle)) = directories.pop() {
            for (name, is_dir, mode) in self.list(&handle) {
                let object = self.lookup(&handle, &name).expect("what was listed");
                let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                let data = (!is_dir).then(|| self.read(&object));
                if is_dir {
                    directories.push((path.clone(), object));
                }
                let seen = Seen { data, mode: Some(mode), ..Seen::default() };
                assert!(found.insert(path, seen).is_none(), "listed twice");
            }
        }
        found
    }

    /// Names, whether they are of directories, and modes.
    fn list(&mut self, directory: &[u8]) -> Vec<(String, bool, u32)> {
        let (mut all, mut cookie, mut cookie_verifier) = (Vec::new(), 0, Verifier([0; 8]));
        let request = AttributeSet::of(&[Attribute::Type, Attribute::Mode]);
        loop {
            let list = readdir::Args { cookie, cookie_verifier, dir_count: 0, max_count: PIECE, request };
            let body = self.ok(&[put(directory), ArgOp::ReadDir(list)]);
            let Some(ResOp::ReadDir(Ok(listed))) = results(&body).pop() else { panic!("{body:?}") };
            cookie_verifier = listed.cookie_verifier;
            for entry in &listed.listing.entries {
                cookie = entry.cookie;
                let (mut is_dir, mut mode) = (false, 0);
                for value in entry.attributes.values() {
                    match value.unwrap() {
                        Value::Type(kind) => is_dir = kind == nfs_wire::v4::types::FileType::Directory,
                        Value::Mode(bits) => mode = bits,
                        _ => {}
                    }
                }
                all.push((String::from_utf8(entry.name.0.to_vec()).unwrap(), is_dir, mode));
            }
            if listed.listing.eof {
                return all;
            }
        }
    }

    fn read(&mut self, file: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        loop {
            let offset = u64::try_from(data.len()).unwrap();
            let read = read::Args { stateid: Stateid::ANONYMOUS, offset, count: PIECE };
            let body = self.ok(&[put(file), ArgOp::Read(read)]);
            let Some(ResOp::Read(Ok(piece))) = results(&body).pop() else { panic!("{body:?}") };
            data.extend_from_slice(piece.data);
            if piece.eof {
                return data;
            }
            assert!(!piece.data.is_empty(), "nothing, and no end");
        }
    }
}
