//! The object that a filehandle names, with the call that works on it.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use nfs_proto::filehandle::{FileHandleCodec, FileHandleTarget, Within};
use nfs_wire::v3::attr::{Attributes, WccData};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::Failure;
use share::{Call, File, Found, Share};
use storage::{FileKind, Handle, NodeRef, Want};

use crate::attributes::told;
use crate::standing::Standing;
use crate::{snapshots, status};

/// An object with a call that may go on to further objects, as NFSv4 operations do.
pub(crate) type Object = ObjectOf<Rc<Call>>;
/// An object with the one call that works on it.
pub(crate) type CalledObject<'c> = ObjectOf<&'c Call>;

/// An object, and the call that works on it, with the caller as known to the share.
#[derive(Debug, Clone)]
pub(crate) struct ObjectOf<C> {
    pub(crate) share: Arc<Share>,
    /// The call that works on the object, or was the last to do so.
    pub(crate) call: C,
    pub(crate) node: NodeRef,
    /// The caller's standing under the share's rules.
    pub(crate) standing: Standing,
    /// Whether not the directory itself is meant, but the folder of its snapshots ([`crate::snapshots`]).
    pub(crate) is_folder: bool,
}

impl<C: Deref<Target = Call> + Clone> ObjectOf<C> {
    pub(crate) fn new(share: Arc<Share>, call: C, node: NodeRef, standing: Standing) -> Self {
        Self { share, call, node, standing, is_folder: false }
    }

    /// Another object of the same share, for the same call.
    pub(crate) fn beside(&self, node: NodeRef) -> Self {
        Self { node, is_folder: false, ..self.clone() }
    }

    /// The folder of the snapshots of this directory.
    pub(crate) fn folder(&self) -> Self {
        Self { is_folder: true, ..self.clone() }
    }

    /// What the client sees of the object, which has these attributes.
    pub(crate) fn seen(&self, attributes: storage::Attributes) -> storage::Attributes {
        let is_own = attributes.id == self.node.id();
        if self.is_folder && is_own { snapshots::folder_attributes(attributes) } else { attributes }
    }

    /// The object as a file for data and attribute calls: NFSv3 has no opens.
    pub(crate) fn file(&self) -> File {
        File::Stateless(Arc::clone(&self.node))
    }

    /// Whether the caller may not change the object: anything in its share, or the object as such.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_folder || self.standing.is_read_only() || self.share.read_only(self.node.id()).is_some()
    }

    /// Whether the caller may create an object of this kind here, with these permission bits. Only the superuser may
    /// create devices (mknod(2)), and not everywhere.
    pub(crate) fn admits(&self, kind: FileKind, mode: Option<u32>) -> bool {
        if !self.call.caller.identity.is_superuser() {
            return !matches!(kind, FileKind::BlockDevice | FileKind::CharDevice);
        }
        self.standing.admits_kind(kind) && mode.is_none_or(|mode| self.standing.admits_mode(kind, mode))
    }

    /// Whether the share's rules let the caller give this object these permission bits.
    pub(crate) fn admits_mode(&self, mode: Option<u32>) -> bool {
        let (kind, who) = (self.node.kind(), &self.call.caller.identity);
        !who.is_superuser() || mode.is_none_or(|mode| self.standing.admits_mode(kind, mode))
    }

    /// The current attributes, as the share has them.
    pub(crate) async fn look(&self) -> Result<storage::Attributes, Status> {
        self.share.present_attributes(&self.call, &self.node, Want::empty()).await.map_err(status::of)
    }

    /// The attributes of this directory, in which `found` was looked up.
    ///
    /// # Errors
    /// The store's errors.
    pub(crate) async fn of_directory(&self, found: &Found) -> share::Result<storage::Attributes> {
        match found.dir_protection.as_ref().and_then(|protection| protection.attributes) {
            Some(attributes) => Ok(attributes),
            None => self.share.attributes(&self.call, &self.node, Want::empty()).await,
        }
    }

    /// The current attributes if they are available, for a reply that may omit them.
    pub(crate) async fn attributes(&self) -> Option<Attributes> {
        self.look().await.ok().map(|attributes| self.told(&attributes))
    }

    /// Attributes of an object of the same share, in wire form.
    pub(crate) fn told(&self, attributes: &storage::Attributes) -> Attributes {
        told(&self.share, &self.seen(*attributes))
    }

    /// Weak cache consistency data of this object when its earlier state is not known.
    pub(crate) async fn wcc_after(&self) -> WccData {
        WccData { before: None, after: self.attributes().await }
    }

    /// A failure that contains this object's attributes.
    pub(crate) async fn failed(&self, status: Status) -> Failure<Status, Option<Attributes>> {
        Failure { status, body: self.attributes().await }
    }

    /// A failure to change this object, or an entry of this directory.
    pub(crate) async fn failed_change(&self, status: Status) -> Failure<Status, WccData> {
        Failure { status, body: self.wcc_after().await }
    }

    /// What a filehandle for this object names, which has this handle in its store.
    pub(crate) fn target<'h>(&self, handle: &'h Handle) -> FileHandleTarget<'h> {
        let target = snapshots::target(&self.share, handle);
        if self.is_folder { FileHandleTarget { within: Within::Folder, ..target } } else { target }
    }

    /// The filehandle of an object of the same share.
    ///
    /// # Errors
    /// Those of the store; [`Status::ServerFault`] for a storage handle that is too long.
    pub(crate) fn file_handle_of(
        &self,
        codec: &FileHandleCodec,
        node: &NodeRef,
    ) -> Result<FileHandle, Status> {
        let handle = node.handle().map_err(|error| status::of(error.into()))?;
        let is_own = node.id() == self.node.id();
        let target = if is_own { self.target(&handle) } else { snapshots::target(&self.share, &handle) };
        codec.encode(target).ok_or(Status::ServerFault)
    }
}
