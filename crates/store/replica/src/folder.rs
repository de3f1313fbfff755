//! The folder in the root of the destination for what has left its place, and for what is not complete yet.
//!
//! It is there only while the store is made like a snapshot of the source, and no snapshot that is shown has it.

use std::ops::ControlFlow;

use replica_wire::Number;
use storage::{
    Error, FileKind, MayWait, Name, NewKind, NewNode, Node, NodeRef, Replace, Storage, Wait, Want,
};

use crate::failure::Result;

/// The name of the folder. An entry of the source's root with this name is not replicated.
pub const FOLDER: &str = ".anabranch-replica";

/// How names begin of what is not complete.
const NEW: &str = "new-";
/// How names begin of what nobody will ask for.
const OLD: &str = "old-";
/// How deep directories are that are removed.
const DEPTH_MAX: usize = 4096;

pub(crate) struct Folder<'a> {
    root: NodeRef,
    node: NodeRef,
    may: MayWait<'a>,
    /// The last number of something that nobody will ask for.
    last: u64,
}

impl<'a> Folder<'a> {
    /// The folder, which is made unless it is there. What an attempt that was interrupted has not completed is removed.
    pub(crate) fn open(store: &dyn Storage, may: MayWait<'a>) -> Result<Self> {
        let (root, name) = (store.root(), Name::new(FOLDER.as_bytes())?);
        let node = match root.lookup(name, Wait::May(may)) {
            Ok(node) if node.kind() == FileKind::Directory => node,
            Ok(_) => {
                root.remove_file(name, may)?;
                root.create(name, &new(NewKind::Directory), may)?
            }
            Err(Error::NotFound) => root.create(name, &new(NewKind::Directory), may)?,
            Err(e) => return Err(e.into()),
        };
        let folder = Self { root, node, may, last: 0 };
        for name in folder.names()? {
            if name.starts_with(NEW.as_bytes()) || name.starts_with(OLD.as_bytes()) {
                remove_all(&folder.node, &name, may)?;
            }
        }
        Ok(folder)
    }

    fn names(&self) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        self.node.survey(self.may, &mut |entry| {
            names.push(entry.name.to_vec());
            ControlFlow::Continue(())
        })?;
        Ok(names)
    }

    /// Moves something out of the way: for its new place if its number is known, and otherwise only until the end.
    pub(crate) fn take_in(&mut self, dir: &NodeRef, name: Name<'_>, number: Option<Number>) -> Result<()> {
        if let Some(number) = number {
            let place = place(number);
            match dir.rename(name, &*self.node, Name::new(place.as_bytes())?, Replace::Never, self.may) {
                // Perhaps another name of it.
                Err(Error::Exists) => {}
                done => return Ok(done?),
            }
        }
        loop {
            self.last += 1;
            let place = format!("{OLD}{}", self.last);
            match dir.rename(name, &*self.node, Name::new(place.as_bytes())?, Replace::Never, self.may) {
                Err(Error::Exists) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Moves what has this number from here to its place, where nothing is. Returns it, if it is here and of this kind.
    pub(crate) fn take_out(
        &self,
        number: Number,
        kind: FileKind,
        dir: &NodeRef,
        name: Name<'_>,
    ) -> Result<Option<NodeRef>> {
        let place = place(number);
        let place = Name::new(place.as_bytes())?;
        match self.node.lookup(place, Wait::May(self.may)) {
            Ok(node) if node.kind() == kind => {
                self.node.rename(place, &**dir, name, Replace::Never, self.may)?;
                Ok(Some(node))
            }
            Ok(_) | Err(Error::NotFound) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes something that is not complete.
    pub(crate) fn make(&self, number: Number, kind: NewKind<'_>) -> Result<NodeRef> {
        let name = unfinished(number);
        let name = Name::new(name.as_bytes())?;
        match self.node.create(name, &new(kind), self.may) {
            Err(Error::Exists) => {
                remove_all(&self.node, name.as_bytes(), self.may)?;
                Ok(self.node.create(name, &new(kind), self.may)?)
            }
            made => Ok(made?),
        }
    }

    /// Moves what was made to its place.
    pub(crate) fn place(&self, number: Number, dir: &NodeRef, name: Name<'_>) -> Result<()> {
        let from = unfinished(number);
        Ok(self.node.rename(Name::new(from.as_bytes())?, &**dir, name, Replace::Yes, self.may)?)
    }

    /// Removes the folder, with all that has not found a place.
    pub(crate) fn remove(self) -> Result<()> {
        remove_all(&self.root, FOLDER.as_bytes(), self.may)
    }
}

fn place(Number { fs, number }: Number) -> String {
    format!("{fs}-{number}")
}

fn unfinished(number: Number) -> String {
    format!("{NEW}{}", place(number))
}

/// Nobody but the server has access to it until it is like the other.
pub(crate) fn new(kind: NewKind<'_>) -> NewNode<'_> {
    let mode = if kind == NewKind::Directory { 0o700 } else { 0o600 };
    NewNode { kind, mode, uid: 0, gid: 0 }
}

/// Removes an entry, with all that is in it.
fn remove_all(dir: &NodeRef, name: &[u8], may: MayWait<'_>) -> Result<()> {
    let mut levels = vec![(NodeRef::clone(dir), vec![name.to_vec()])];
    while let Some((dir, names)) = levels.last_mut() {
        let Some(name) = names.last().cloned() else {
            // It is empty now, and is tried again.
            levels.pop();
            continue;
        };
        let found = dir.lookup_attributes(Name::new(&name)?, Want::empty(), Wait::May(may));
        let (node, attributes) = match found {
            Err(Error::NotFound) => {
                names.pop();
                continue;
            }
            found => found?,
        };
        match dir.remove_found(Name::new(&name)?, &attributes, may) {
            Ok(()) => _ = names.pop(),
            Err(Error::NotEmpty) if levels.len() < DEPTH_MAX => {
                let inside = inside(&*node, may)?;
                if inside.is_empty() {
                    // What is in it is not for us.
                    return Err(Error::NotEmpty.into());
                }
                levels.push((node, inside));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

fn inside(dir: &dyn Node, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    dir.survey(may, &mut |entry| {
        names.push(entry.name.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(names)
}
