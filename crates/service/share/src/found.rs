//! What a look-up finds: an object, where it was, and when.

use std::sync::Arc;

use acl::SecurityDescriptor;
use storage::{Attributes, FileFlags, MayWait, NodeRef, Protection, Wait};

use crate::Result;
use crate::security::Object;

/// The directory and name by which a file was opened. A rename changes it for all opens by that name.
#[derive(Debug, Clone)]
pub struct Location {
    /// The directory.
    pub parent: NodeRef,
    /// The name in it.
    pub name: Vec<u8>,
}

impl Location {
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.parent.id() == other.parent.id() && self.name == other.name
    }
}

/// The file and name of a named stream.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The file or directory.
    pub file: NodeRef,
    /// The name that the stream was created with.
    pub name: Vec<u8>,
}

impl Stream {
    pub(crate) fn location(&self) -> Location {
        Location { parent: Arc::clone(&self.file), name: self.name.clone() }
    }
}

/// When an object was looked up, counted in removals. An object removed since cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Epoch(pub(crate) u64);

impl Epoch {
    /// For an object that was reached without a name, and for one that was just created: its creator must not look it up
    /// again, since the name would exist already.
    pub(crate) const NEVER_GONE: Self = Self(u64::MAX);
}

/// An object that was found, and where.
#[derive(Debug, Clone)]
pub struct Found {
    /// The object.
    pub node: NodeRef,
    /// The attributes of the object.
    pub attributes: Attributes,
    /// The security descriptor in force.
    pub security: Option<Arc<SecurityDescriptor>>,
    /// The directory that holds it; None for the root, and when it was not reached by a name.
    pub dir: Option<NodeRef>,
    /// What decides about access to that directory; for `.` and `..`, to the directory of the lookup.
    pub dir_protection: Option<Protection>,
    /// The name as the directory has it.
    pub name: Vec<u8>,
    /// For a named stream, whose node is in `node`: the stream's file and name. All other fields are the file's.
    pub stream: Option<Arc<Stream>>,
    /// When the object was looked up.
    pub(crate) epoch: Epoch,
}

impl Found {
    /// What decides about access to the object.
    #[must_use]
    pub fn object(&self) -> Object<'_> {
        Object::new(&self.attributes, self.security.as_deref())
    }

    /// What decides about access to the directory; None if the object was reached as `.` or `..`.
    pub(crate) fn dir_object(&self) -> Option<Object<'_>> {
        self.dir.as_ref()?;
        self.dir_protection.as_ref().map(Object::from)
    }

    /// Reads the security descriptor.
    pub(crate) fn secured(mut self, may: MayWait<'_>) -> Result<Self> {
        self.security = self.node.security(&self.attributes, Wait::May(may))?;
        Ok(self)
    }

    /// An object that was reached without its directory. Its descriptor has not been read yet.
    pub(crate) fn alone(node: NodeRef, attributes: Attributes) -> Self {
        Self {
            node,
            attributes,
            security: None,
            dir: None,
            dir_protection: None,
            name: Vec::new(),
            stream: None,
            epoch: Epoch::NEVER_GONE,
        }
    }

    /// The object as one that was not reached by a name, like the root.
    #[must_use]
    pub fn without_name(self) -> Self {
        Self { dir: None, dir_protection: None, name: Vec::new(), ..self }
    }

    pub(crate) fn location(&self) -> Option<Location> {
        if let Some(stream) = &self.stream {
            return Some(stream.location());
        }
        let parent = Arc::clone(self.dir.as_ref()?);
        Some(Location { parent, name: self.name.clone() })
    }
}

/// Whether a flag of the object keeps its data and its name as they are.
pub(crate) fn is_marked_read_only(attributes: &Attributes) -> bool {
    attributes.flags.is_some_and(|flags| flags.contains(FileFlags::READONLY))
}
