//! Counting all files, while they change.

use std::ops::ControlFlow;
use std::sync::Arc;

use storage::{FileKind, MayWait, Name, NodeRef, Wait, Want};

use super::places::Places;
use super::{Held, Quotas, TRIES_MAX, streams};

impl Quotas {
    /// Walks through the share and counts what it reaches. `goes_on` is asked now and then. Returns whether all was reached.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn walk(
        &self,
        goes_on: &mut dyn FnMut(MayWait<'_>) -> bool,
        may: MayWait<'_>,
    ) -> storage::Result<bool> {
        let places = self.places();
        // Paths, since each node may keep a file open.
        let mut left = vec![Vec::new()];
        loop {
            while let Some(path) = left.pop() {
                if !goes_on(may) {
                    return Ok(false);
                }
                let Some(dir) = self.reach(&path, may)? else { continue };
                self.visit(&dir, &places, &path, may)?;
                for name in names(&dir, may)? {
                    let below =
                        if path.is_empty() { name.clone() } else { [&path, &b"/"[..], &name].concat() };
                    if self.visit_name(&dir, &name, &places, &below, may)? {
                        left.push(below);
                    }
                }
            }
            // What was moved meanwhile may have been missed.
            let moved = self.books.lock().take_moved();
            if moved.is_empty() {
                return Ok(true);
            }
            for node in moved {
                let Ok(path) = node.path() else { continue };
                match node.kind() {
                    FileKind::Directory => left.push(path),
                    _ => self.visit(&node, &places, &path, may)?,
                }
            }
        }
    }

    /// The directory with this path; None if it has gone, or is elsewhere: then it is one of those that were moved.
    fn reach(&self, path: &[u8], may: MayWait<'_>) -> storage::Result<Option<NodeRef>> {
        let mut at = Arc::clone(&self.root);
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            match at.lookup(Name::new(name)?, Wait::May(may)) {
                Err(storage::Error::NotDirectory) => return Ok(None),
                found => match unless_gone(found)? {
                    Some(found) => at = found,
                    None => return Ok(None),
                },
            }
        }
        Ok((at.kind() == FileKind::Directory && at.id().is_live()).then_some(at))
    }

    /// Counts what has a name in a directory. Returns whether it is a directory, which is counted later.
    fn visit_name(
        &self,
        dir: &NodeRef,
        name: &[u8],
        places: &Places,
        path: &[u8],
        may: MayWait<'_>,
    ) -> storage::Result<bool> {
        let Ok(name) = Name::new(name) else { return Ok(false) };
        let Some(found) = unless_gone(dir.lookup(name, Wait::May(may)))? else { return Ok(false) };
        if !found.id().is_live() {
            return Ok(false); // snapshots are not counted
        }
        if found.kind() == FileKind::Directory {
            return Ok(true);
        }
        self.visit(&found, places, path, may)?;
        Ok(false)
    }

    /// Counts an object.
    fn visit(&self, node: &NodeRef, places: &Places, path: &[u8], may: MayWait<'_>) -> storage::Result<()> {
        let directory = places.above(path);
        for _ in 0..TRIES_MAX {
            let dropped = self.books.lock().dropped();
            let attributes = node.attributes(Want::empty(), Wait::May(may.fresh()));
            let Some(attributes) = unless_gone(attributes)? else { break };
            let Some(of_streams) = unless_gone(streams(node, may))? else { break };
            let held = Held::of_data(&attributes);
            let held = Held { bytes: held.bytes.saturating_add(of_streams), ..held };
            if self.books.lock().visit(node.id().number, &held, directory, dropped) {
                break;
            }
        }
        Ok(())
    }
}

/// The names in a directory; none if it has gone.
fn names(dir: &NodeRef, may: MayWait<'_>) -> storage::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    let listed = dir.survey(may, &mut |entry| {
        names.push(entry.name.to_vec());
        ControlFlow::Continue(())
    });
    unless_gone(listed)?;
    Ok(names)
}

/// An answer of the store about something that local programs or clients may have removed.
fn unless_gone<T>(answer: storage::Result<T>) -> storage::Result<Option<T>> {
    match answer {
        // One file of a bad disk does not keep all others from being counted.
        Err(storage::Error::Io(_)) => Ok(None),
        // What cannot be reached is not served either.
        Err(
            storage::Error::NotFound
            | storage::Error::Stale
            | storage::Error::PermissionDenied
            | storage::Error::NotPermitted
            | storage::Error::CrossDevice,
        ) => Ok(None),
        answer => answer.map(Some),
    }
}
