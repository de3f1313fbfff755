//! What of an object is open: itself, or what is below it when it is a directory.

use file_state::Operation;
use storage::{FileId, FileKind, NodeRef};

use crate::Share;

impl Share {
    /// Whether the object is open, or anything below it when it is a directory: such cannot be renamed or
    /// replaced by SMB clients.
    #[must_use]
    pub fn is_open(&self, node: &NodeRef) -> bool {
        !self.open_within(node).is_empty()
    }

    /// As [`Share::is_open`], once clients that have something open there only to use it again later were asked to close it:
    /// one after the other, and nobody more when one keeps it open ([MS-FSA] 2.1.4.2). What is opened meanwhile counts.
    pub async fn stays_open(&self, node: &NodeRef) -> bool {
        let mut asked = self.open_within(node);
        // Those whom nobody needs to ask.
        asked.sort_by_key(|id| self.files.with(*id, |entry| entry.state.has_grants()).unwrap_or(true));
        for id in asked {
            while let Some(answering) = self.take_back(id, None, Operation::SharingViolation) {
                answering.over().await;
            }
            if self.files.with(id, |_| ()).is_some() {
                return true;
            }
        }
        self.is_open(node)
    }

    /// What of the object is open: itself, or what is below it when it is a directory.
    fn open_within(&self, node: &NodeRef) -> Vec<FileId> {
        if node.kind() != FileKind::Directory {
            return self.files.with(node.id(), |_| node.id()).into_iter().collect();
        }
        let Ok(own) = node.path() else { return Vec::new() };
        let is_below = |other: &NodeRef| {
            let path = other.path().unwrap_or_default();
            path.strip_prefix(own.as_slice()).is_some_and(|rest| rest.starts_with(b"/") || own.is_empty())
        };
        let others = self.files.others(node.id());
        others.iter().filter(|other| is_below(other)).map(|other| other.id()).collect()
    }
}
