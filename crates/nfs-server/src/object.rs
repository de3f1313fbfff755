//! The object that a filehandle names, together with who is asking.

use std::sync::Arc;

use nfs_proto::export::ClientRule;
use nfs_proto::filehandle::Target;
use nfs_wire::v3::attr::{Attributes, WccData};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::Failure;
use share::{Caller, File, Found, Protocol, Share, ShareId};
use storage::{Handle, NodeRef, Want};

use crate::attributes::told;
use crate::rpc_dispatch::Request;
use crate::{ServerState, status};

/// An object, and the caller as its share knows it.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) share: Arc<Share>,
    pub(crate) caller: Caller,
    pub(crate) node: NodeRef,
    /// Nothing may be changed through this export or share.
    read_only: bool,
}

impl Request<'_> {
    /// The object that a filehandle names.
    ///
    /// # Errors
    /// [`Status::BadHandle`] for a handle that this server did not make; [`Status::Stale`] when the object is gone, or
    /// the client may not (or no longer) use the share (RFC 1813 2.6).
    pub(crate) async fn object(&self, handle: &FileHandle) -> Result<Object, Status> {
        let connection = self.connection;
        let server = &connection.server;
        let Target { share, storage_handle } =
            server.file_handles.decode(handle).map_err(|_| Status::BadHandle)?;
        let named = connection.shares.by_id(ShareId(share)).ok_or(Status::Stale)?;
        let rule = server.exports.rules_of(&named).rule_for(connection.client).ok_or(Status::Stale)?;
        let is_first = self.share.get().is_none();
        let share = self.share.get_or_init(|| Arc::clone(&named));
        if !Arc::ptr_eq(share, &named) {
            return Err(Status::XDev); // a call with two filehandles: RENAME and LINK
        }
        let share = named;
        let caller = connection.callers.caller(
            Protocol::Nfs3,
            share.id(),
            rule,
            &self.call.credential,
            self.stated.as_ref(),
        );
        if is_first && let Some(api) = self.api {
            share.take_turn(&caller, api).await;
        }
        let handle = Handle::new(storage_handle).map_err(|_| Status::BadHandle)?;
        let node = share.by_handle(&handle).await.map_err(status::of)?;
        Ok(Object::new(share, caller, node, rule))
    }

    /// The object that a filehandle names, for a procedure that changes something.
    ///
    /// # Errors
    /// Those of [`Request::object`]; [`Status::RoFs`] when the export is read-only.
    pub(crate) async fn object_to_change(&self, handle: &FileHandle) -> Result<Object, Status> {
        let object = self.object(handle).await?;
        if object.read_only { Err(Status::RoFs) } else { Ok(object) }
    }
}

impl Object {
    pub(crate) fn new(share: Arc<Share>, caller: Caller, node: NodeRef, rule: &ClientRule) -> Self {
        let read_only = rule.read_only || share.is_read_only();
        Self { share, caller, node, read_only }
    }

    /// Another object of the same share, for the same caller.
    pub(crate) fn beside(&self, node: NodeRef) -> Self {
        Self { node, ..self.clone() }
    }

    /// The object for data and attribute calls: NFSv3 has no opens.
    pub(crate) fn file(&self) -> File {
        File::Stateless(Arc::clone(&self.node))
    }

    /// Whether nothing may be changed through this export or share.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The present attributes, as a share has them.
    pub(crate) async fn look(&self) -> Result<storage::Attributes, Status> {
        self.share.present_attributes(&self.caller, &self.node, Want::empty()).await.map_err(status::of)
    }

    /// The attributes of this directory, in which that object was found.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn of_directory(&self, found: &Found) -> share::Result<storage::Attributes> {
        match found.dir_protection.as_ref().and_then(|protection| protection.attributes) {
            Some(attributes) => Ok(attributes),
            None => self.share.attributes(&self.node, Want::empty()).await,
        }
    }

    /// The present attributes, if they can be had: for a reply that may leave them out.
    pub(crate) async fn attributes(&self) -> Option<Attributes> {
        self.look().await.ok().map(|attributes| self.told(&attributes))
    }

    /// Attributes of an object of the same share, as the wire tells them.
    pub(crate) fn told(&self, attributes: &storage::Attributes) -> Attributes {
        told(self.share.id(), attributes)
    }

    /// Weak cache consistency data of this object when nothing is known of it before.
    pub(crate) async fn wcc_after(&self) -> WccData {
        WccData { before: None, after: self.attributes().await }
    }

    /// A failure that tells this object's attributes.
    pub(crate) async fn failed(&self, status: Status) -> Failure<Status, Option<Attributes>> {
        Failure { status, body: self.attributes().await }
    }

    /// A failure to change this object, or something in this directory.
    pub(crate) async fn failed_change(&self, status: Status) -> Failure<Status, WccData> {
        Failure { status, body: self.wcc_after().await }
    }

    /// The filehandle of an object of the same share.
    ///
    /// # Errors
    /// Those of the store; [`Status::ServerFault`] for a storage handle that does not fit.
    pub(crate) fn file_handle_of(&self, server: &ServerState, node: &NodeRef) -> Result<FileHandle, Status> {
        let handle = node.handle().map_err(|error| status::of(error.into()))?;
        let target = Target { share: self.share.id().0, storage_handle: handle.as_bytes() };
        server.file_handles.encode(target).ok_or(Status::ServerFault)
    }
}
