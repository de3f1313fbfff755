//! What of an object is open: itself, or what is below it when it is a directory.

use std::sync::Arc;

use file_state::Operation;
use storage::{FileKind, NodeRef};

use crate::Share;
use crate::files::Places;

/// Where what is open stands in the way of an object's rename.
enum Place {
    /// It is the object.
    Itself,
    /// Below a directory of this path.
    Below(Vec<u8>),
    /// The directory has no name any more.
    Nowhere,
}

impl Place {
    fn of(node: &NodeRef) -> Self {
        if node.kind() != FileKind::Directory {
            return Self::Itself;
        }
        node.path().map_or(Self::Nowhere, Self::Below)
    }

    /// Whether an object lies there now, by the name that the store knows.
    fn holds(&self, node: &NodeRef) -> bool {
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

impl Share {
    /// Whether the object is open, or anything below it when it is a directory: such cannot be renamed or
    /// replaced by SMB clients.
    #[must_use]
    pub fn is_open(&self, node: &NodeRef) -> bool {
        let place = Place::of(node);
        self.perhaps_open_within(node, &place).iter().any(|other| place.holds(other))
    }

    /// As [`Share::is_open`], once clients that have something open there only to use it again later were asked to close it:
    /// one after the other, and nobody more when one keeps it open ([MS-FSA] 2.1.4.2). What is opened meanwhile counts.
    pub async fn stays_open(&self, node: &NodeRef) -> bool {
        let place = Place::of(node);
        let mut others = self.perhaps_open_within(node, &place);
        // Those whom nobody needs to ask.
        others.sort_by_key(|other| {
            self.files.with(other.id(), |entry| entry.state.has_grants()).unwrap_or(true)
        });
        for other in others.iter().filter(|other| place.holds(other)) {
            while let Some(answering) = self.take_back(other.id(), None, Operation::SharingViolation) {
                answering.over().await;
            }
            if self.files.with(other.id(), |_| ()).is_some() {
                return true;
            }
        }
        self.is_open(node)
    }

    /// What of the object may be open: itself, or what was opened by a name below it when it is a directory. So the store is
    /// asked once for each directory in which something is open, not for each open file. What a local program has moved there
    /// from a directory elsewhere while it was open is not known to be there.
    fn perhaps_open_within(&self, node: &NodeRef, place: &Place) -> Vec<NodeRef> {
        match place {
            Place::Itself => {
                self.files.with(node.id(), |entry| Arc::clone(&entry.node)).into_iter().collect()
            }
            Place::Nowhere => Vec::new(),
            Place::Below(_) => {
                let Places { dirs, unnamed } = self.files.places_of_others(node.id());
                let dirs = dirs.into_values().filter(|(dir, _)| dir.id() == node.id() || place.holds(dir));
                dirs.flat_map(|(_, opened)| opened).chain(unnamed).collect()
            }
        }
    }
}
