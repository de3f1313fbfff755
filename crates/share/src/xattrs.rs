//! Extended attributes.

use std::sync::Arc;

use storage::{NodeRef, XattrMode};

use crate::notify::ChangeKinds;
use crate::schedule::Work;
use crate::{File, Result, Share};

/// An extended attribute: its name, without the name space, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedAttribute {
    /// Its name. Names that differ in the case of ASCII letters only are one and the same to SMB clients.
    pub name: Vec<u8>,
    /// Its value; in a change, an empty one removes it.
    pub value: Vec<u8>,
}

impl Share {
    /// The extended attributes of an object, in the order of their names; none where the store keeps none.
    ///
    /// # Errors
    /// The store's.
    pub async fn extended_attributes(self: &Arc<Self>, node: &NodeRef) -> Result<Vec<ExtendedAttribute>> {
        let node = Arc::clone(node);
        self.run(Work::Metadata, move |_| read_all(&node)).await
    }

    /// Sets or removes extended attributes, one after the other; removing one that is not there is no error.
    /// Whether the caller may is the caller's to check (WRITE_EA).
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`], [`storage::Error::AttributeTooLarge`], [`storage::Error::NoSpace`]; the
    /// changes before the one that failed are made.
    pub async fn set_extended_attributes(
        self: &Arc<Self>,
        file: &File,
        changes: Vec<ExtendedAttribute>,
    ) -> Result<()> {
        self.check_writable()?;
        let file = file.clone();
        self.run(Work::Metadata, move |share| {
            for change in &changes {
                set(file.node(), change)?;
            }
            share.tell_modified(&file, ChangeKinds::EA);
            Ok(())
        })
        .await
    }
}

fn names(node: &NodeRef) -> Result<Vec<Vec<u8>>> {
    match node.xattrs() {
        Err(storage::Error::NotSupported) => Ok(Vec::new()),
        answer => Ok(answer?),
    }
}

fn read_all(node: &NodeRef) -> Result<Vec<ExtendedAttribute>> {
    let mut all = Vec::new();
    for name in names(node)? {
        match node.xattr(&name) {
            Ok(value) => all.push(ExtendedAttribute { name, value }),
            Err(storage::Error::NoAttribute) => {} // it has just gone
            Err(e) => return Err(e.into()),
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn set(node: &NodeRef, change: &ExtendedAttribute) -> Result<()> {
    let existing = names(node)?.into_iter().find(|name| name.eq_ignore_ascii_case(&change.name));
    match existing {
        Some(name) if change.value.is_empty() => Ok(node.remove_xattr(&name)?),
        None if change.value.is_empty() => Ok(()),
        name => Ok(node.set_xattr(name.as_ref().unwrap_or(&change.name), &change.value, XattrMode::Set)?),
    }
}
