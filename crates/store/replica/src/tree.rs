//! How trees are looked at.

use std::ops::ControlFlow;

use storage::{FileKind, MayWait, Name, NodeRef, ObjectId, Wait};

use crate::failure::Result;

/// A name of a directory, as the directory has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: Vec<u8>,
    pub(crate) id: ObjectId,
    /// The type of the object, if the directory says it.
    pub(crate) kind: Option<FileKind>,
}

/// All names of a directory that a share has, in order: not the folder of a replication.
pub(crate) fn names(dir: &NodeRef, is_root: bool, may: MayWait<'_>) -> Result<Vec<Named>> {
    let mut names = Vec::new();
    let _all = dir.survey(may, &mut |entry| {
        if !(is_root && entry.name == crate::FOLDER.as_bytes()) {
            names.push(Named { name: entry.name.to_vec(), id: entry.id, kind: entry.kind });
        }
        ControlFlow::Continue(())
    })?;
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

/// What a path leads to. Symbolic links are not followed.
pub(crate) fn walk(root: &NodeRef, path: &[Vec<u8>], may: MayWait<'_>) -> storage::Result<NodeRef> {
    let mut at = NodeRef::clone(root);
    for name in path {
        if at.kind() != FileKind::Directory {
            return Err(storage::Error::NotDirectory);
        }
        at = at.lookup(Name::new(name)?, Wait::May(may))?;
    }
    Ok(at)
}
