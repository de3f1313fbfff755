//! Extended attributes.

use std::sync::Arc;

use file_state::{Access, Operation};
use storage::{MayWait, NodeRef, Wait, Want, XattrMode};

use crate::agreement::Admission;
use crate::schedule::Work;
use crate::security::Object;
use crate::security::permission;
use crate::watch::ChangeKinds;
use crate::{Call, Caller, Changed, Error, File, Result, Share};

/// An extended attribute: its name, without the name space, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedAttribute {
    /// The name. Some fronts do not distinguish names that differ only in the case of ASCII letters.
    pub name: Vec<u8>,
    /// The value. In a change, an empty value removes the attribute.
    pub value: Vec<u8>,
}

impl Share {
    /// The extended attributes of an object, in the order of their names; none where the store keeps none.
    ///
    /// # Errors
    /// The store's.
    pub async fn extended_attributes(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
    ) -> Result<Vec<ExtendedAttribute>> {
        let node = Arc::clone(node);
        self.run(call, Work::Metadata, move |_, may| read_all(&node, may)).await
    }

    /// Sets or removes extended attributes, one after the other. Removing a missing attribute is no error. The caller must
    /// check its permission (WRITE_EA).
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`], [`storage::Error::AttributeTooLarge`], [`storage::Error::NoSpace`]; the
    /// changes before the one that failed are made.
    pub async fn set_extended_attributes(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        changes: Vec<ExtendedAttribute>,
    ) -> Result<()> {
        self.check_writable(file.node().id())?;
        let file = file.clone();
        self.run(call, Work::Metadata, move |share, may| {
            for change in &changes {
                set(file.node(), change, may)?;
            }
            share.tell_modified(&file, ChangeKinds::EA, may);
            Ok(())
        })
        .await
    }
}

impl Share {
    /// The value of one extended attribute. Here and below there is no open, so the object's permissions decide.
    ///
    /// # Errors
    /// [`crate::Error::AccessDenied`], [`storage::Error::NoAttribute`], the store's.
    pub async fn xattr(self: &Arc<Self>, call: &Call, node: &NodeRef, name: &[u8]) -> Result<Vec<u8>> {
        let (caller, node, name) = (call.caller.clone(), Arc::clone(node), name.to_vec());
        self.run(call, Work::Metadata, move |_, may| {
            check(&caller, &node, Access::READ_EA, may)?;
            Ok(node.xattr(&name, may)?)
        })
        .await
    }

    /// The names of the extended attributes, in order.
    ///
    /// # Errors
    /// [`crate::Error::AccessDenied`], the store's.
    pub async fn xattr_names(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<Vec<Vec<u8>>> {
        let (caller, node) = (call.caller.clone(), Arc::clone(node));
        self.run(call, Work::Metadata, move |_, may| {
            check(&caller, &node, Access::READ_EA, may)?;
            let mut names = node.xattrs(may)?;
            names.sort_unstable();
            Ok(names)
        })
        .await
    }

    /// Sets one extended attribute, or removes it if there is no value. The name is compared byte by byte.
    ///
    /// # Errors
    /// [`crate::Error::AccessDenied`], [`storage::Error::Exists`] and [`storage::Error::NoAttribute`] as `mode` says,
    /// the store's.
    pub async fn set_xattr(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Changed> {
        self.check_writable(file.node().id())?;
        let (caller, file, name) = (call.caller.clone(), file.clone(), name.to_vec());
        let value = value.map(<[u8]>::to_vec);
        self.run_settled(call, Work::Metadata, move |share, may| {
            let node = file.node();
            check(&caller, node, Access::WRITE_EA, may)?;
            if let Some(answering) = share.agreement.take_back(
                node.id(),
                file.holder().or(caller.client),
                Operation::SetAttributes,
            ) {
                return Ok(Admission::Wait(answering));
            }
            let before = node.attributes(Want::empty(), Wait::May(may))?;
            match &value {
                Some(value) => node.set_xattr(&name, value, mode, may)?,
                None => node.remove_xattr(&name, may)?,
            }
            let after = node.attributes(Want::empty(), Wait::May(may))?;
            share.tell_modified(&file, ChangeKinds::EA, may);
            Ok(Admission::Done(Changed { before, after }))
        })
        .await
    }
}

/// Checks that the object's permissions allow this.
fn check(caller: &Caller, node: &NodeRef, right: Access, may: MayWait<'_>) -> Result<()> {
    let attributes = node.attributes(Want::empty(), Wait::May(may))?;
    let security = node.security(&attributes, Wait::May(may))?;
    let object = Object::new(&attributes, security.as_deref());
    permission::check(&caller.identity, object, right)
}

fn names(node: &NodeRef, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
    match node.xattrs(may) {
        Err(storage::Error::NotSupported) => Ok(Vec::new()),
        answer => Ok(answer?),
    }
}

fn read_all(node: &NodeRef, may: MayWait<'_>) -> Result<Vec<ExtendedAttribute>> {
    let names = match names(node, may) {
        Err(Error::Storage(storage::Error::WrongKind)) => Vec::new(), // a symbolic link has none
        names => names?,
    };
    let mut all = Vec::new();
    for name in names {
        match node.xattr(&name, may) {
            Ok(value) => all.push(ExtendedAttribute { name, value }),
            Err(storage::Error::NoAttribute) => {} // it has just gone
            Err(e) => return Err(e.into()),
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn set(node: &NodeRef, change: &ExtendedAttribute, may: MayWait<'_>) -> Result<()> {
    let existing = names(node, may)?.into_iter().find(|name| name.eq_ignore_ascii_case(&change.name));
    match existing {
        Some(name) if change.value.is_empty() => Ok(node.remove_xattr(&name, may)?),
        None if change.value.is_empty() => Ok(()),
        name => {
            Ok(node.set_xattr(name.as_ref().unwrap_or(&change.name), &change.value, XattrMode::Set, may)?)
        }
    }
}
