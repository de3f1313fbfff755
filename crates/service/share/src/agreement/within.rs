//! Finds what is open of an object: the object itself or, for a directory, anything below it.

use std::sync::Arc;

use file_state::Operation;
use storage::{FileKind, NodeRef};

use super::Agreement;
use super::files::Places;

/// Where an open conflicts with the rename of an object.
enum Conflict {
    /// On the object itself.
    Itself,
    /// Below the directory with this path.
    Below(Vec<u8>),
    /// The directory has no name any more.
    Nowhere,
}

impl Conflict {
    fn of(node: &NodeRef) -> Self {
        if node.kind() != FileKind::Directory {
            return Self::Itself;
        }
        node.path().map_or(Self::Nowhere, Self::Below)
    }

    /// Whether an open of this object conflicts now, by the name that the store knows.
    fn covers(&self, node: &NodeRef) -> bool {
        match self {
            Self::Itself => true,
            Self::Nowhere => false,
            Self::Below(own) => {
                let path = node.path().unwrap_or_default();
                path.strip_prefix(own.as_slice()).is_some_and(|rest| rest.starts_with(b"/") || own.is_empty())
            }
        }
    }
}

impl Agreement {
    /// Whether the object or, for a directory, anything below it is open.
    pub(crate) fn is_open(&self, node: &NodeRef) -> bool {
        let conflict = Conflict::of(node);
        self.perhaps_open_within(node, &conflict).iter().any(|other| conflict.covers(other))
    }

    /// As [`Agreement::is_open`], after asking clients that keep files open there only for later use to close them. The clients
    /// are asked one after the other, until one keeps its file open. Files opened meanwhile count.
    pub(crate) async fn stays_open(&self, node: &NodeRef) -> bool {
        let conflict = Conflict::of(node);
        let mut others = self.perhaps_open_within(node, &conflict);
        // Objects that no client needs to be asked about come first.
        others.sort_by_key(|other| {
            self.files.with(other.id(), |entry| entry.state.has_grants()).unwrap_or(true)
        });
        for other in others.iter().filter(|other| conflict.covers(other)) {
            while let Some(answering) = self.take_back(other.id(), None, Operation::SharingViolation) {
                answering.over().await;
            }
            if self.files.with(other.id(), |_| ()).is_some() {
                return true;
            }
        }
        self.is_open(node)
    }

    /// What may be open of the object: the object itself, or objects opened by a name below it. This asks the store once for
    /// each directory with open files, not for each open file. It misses files that a local program has moved there from
    /// another directory while they were open.
    fn perhaps_open_within(&self, node: &NodeRef, conflict: &Conflict) -> Vec<NodeRef> {
        match conflict {
            Conflict::Itself => {
                self.files.with(node.id(), |entry| Arc::clone(&entry.node)).into_iter().collect()
            }
            Conflict::Nowhere => Vec::new(),
            Conflict::Below(_) => {
                let Places { dirs, unnamed } = self.files.places_of_others(node.id());
                let dirs =
                    dirs.into_values().filter(|(dir, _)| dir.id() == node.id() || conflict.covers(dir));
                dirs.flat_map(|(_, opened)| opened).chain(unnamed).collect()
            }
        }
    }
}
