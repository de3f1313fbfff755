//! Reading and setting security descriptors.

use std::sync::Arc;

use access_log::Kind;
use acl::SecurityDescriptor;
use file_state::{Access, Operation};
use storage::{Attributes, Capabilities, NodeRef, Wait, Want};

use crate::agreement::Admission;
use crate::charges::charged;
use crate::logged::path_of;
use crate::schedule::Work;
use crate::watch::ChangeKinds;
use crate::{Call, File, Result, SecurityChange, Share, security};

impl Share {
    /// The security descriptor of an object: the one in force, or one made from the permission bits.
    ///
    /// # Errors
    /// The store's.
    pub async fn security(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<SecurityDescriptor> {
        let attributes = self.attributes(call, node, Want::empty()).await?;
        let in_force = self.in_force(call, node, &attributes).await?;
        Ok(in_force.map_or_else(|| security::of_mode(&attributes), Arc::unwrap_or_clone))
    }

    /// The descriptor in force for an object with these attributes.
    pub(crate) async fn in_force(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        attributes: &Attributes,
    ) -> Result<Option<Arc<SecurityDescriptor>>> {
        match node.security(attributes, Wait::Never(call.view())) {
            Err(storage::Error::WouldBlock) => {
                let (node, attributes) = (Arc::clone(node), *attributes);
                self.run(call, Work::Blocking, move |_, may| Ok(node.security(&attributes, Wait::May(may))?))
                    .await
            }
            answer => Ok(answer?),
        }
    }

    /// Sets the owner, group and DACL of an object. Without an open, the object's permissions decide who
    /// may set the DACL.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] where the caller's role does not include it; [`Error::NotOpenedForThis`] without WRITE_OWNER or
    /// WRITE_DAC for what is set; [`Error::NotOwner`] where the permissions do not give them; [`Error::InvalidOwner`] and [`Error::InvalidGroup`]; [`storage::Error::NotSupported`]
    /// where the store keeps no descriptors and the permission bits cannot express this one; the store's.
    pub async fn set_security(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        change: SecurityChange,
    ) -> Result<()> {
        self.note(call, Kind::Permission, || (path_of(file.node()), None));
        self.check_writable(file.node().id())?;
        call.caller.check_changes_permissions()?;
        if let File::Open(open) = file {
            let owners = change.owner.is_some() || change.group.is_some();
            open.require(if owners { Access::WRITE_OWNER } else { Access::empty() })?;
            open.require(if change.dacl.is_some() { Access::WRITE_DAC } else { Access::empty() })?;
        }
        let (caller, file) = (call.caller.clone(), file.clone());
        self.run_settled(call, Work::Metadata, move |share, may| {
            let node = file.node();
            if let Some(answering) = share.agreement.take_back(
                node.id(),
                file.holder().or(caller.client),
                Operation::SetAttributes,
            ) {
                return Ok(Admission::Wait(answering));
            }
            let (asks_permission, is_kept) =
                (matches!(file, File::Stateless(_)), share.capabilities().contains(Capabilities::XATTRS));
            let people = share.people();
            let charge =
                |before: &Attributes, owners| share.charge_owners(charged(&file), before, owners, may);
            change.clone().carry_out((&caller, &people), node, asks_permission, is_kept, charge, may)?;
            share.tell_modified(&file, ChangeKinds::SECURITY, may);
            Ok(Admission::Done(()))
        })
        .await
    }
}
