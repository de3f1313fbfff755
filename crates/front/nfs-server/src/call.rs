//! A call under way, with its caller and the objects that it names.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use net::Buffer;
use nfs_proto::filehandle::FileHandleTarget;
use nfs_proto::v4::client::Principal;
use nfs_proto::v4::client::protection::Credential;
use nfs_wire::auth_sys::AuthSys;
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::{Decode, Encode, Reader};
use share::{Caller, Share, ShareId};

use crate::config::GroupsBy;
use crate::connection::Connection;
use crate::credentials::{Claimant, Sender};
use crate::groups::KnownGroups;
use crate::gss::security::Security;
use crate::gss::{self, Flavor};
use crate::object::CalledObject;
use crate::standing::Standing;
use crate::{reply, snapshots, status};

/// A call under way.
pub(crate) struct Request<'a> {
    pub(crate) connection: &'a Connection,
    /// The record, from which `call` and the arguments borrow.
    pub(crate) record: &'a Bytes,
    pub(crate) call: &'a Call<'a>,
    /// Who sends the call.
    pub(crate) sender: Sender<'a>,
    /// The groups of the user whom the sender states, as far as this machine was asked for them.
    pub(crate) groups: KnownGroups,
    /// How the call itself is secured.
    pub(crate) flavor: Flavor,
    /// Whether an object of NFSv3 was found to need another flavor, or TLS. NFSv4 has a status for that.
    pub(crate) is_too_weak: Cell<bool>,
}

/// The object that a filehandle of this server names.
pub(crate) struct Named<'h> {
    pub(crate) share: Arc<Share>,
    target: FileHandleTarget<'h>,
}

impl Named<'_> {
    /// The object, for a caller of this standing.
    ///
    /// # Errors
    /// [`Status::BadHandle`]; [`Status::Stale`] when the object, or the snapshot that it is of, no longer exists.
    pub(crate) async fn object<'c>(
        &self,
        call: &'c share::Call,
        standing: Standing,
    ) -> Result<CalledObject<'c>, Status> {
        snapshots::find(&self.share, call, &self.target, standing).await.map_err(status::of)
    }
}

/// Why a call did not run.
pub(crate) enum CallError {
    /// The call was accepted, but did not run for this reason.
    Accepted(AcceptStatus),
    /// The caller was not authenticated.
    Denied(AuthStatus),
}

impl From<AcceptStatus> for CallError {
    fn from(status: AcceptStatus) -> Self {
        Self::Accepted(status)
    }
}

impl From<AuthStatus> for CallError {
    fn from(status: AuthStatus) -> Self {
        Self::Denied(status)
    }
}

/// The arguments of a procedure.
pub(crate) fn decode<'a, T: Decode<'a>>(mut arguments: Reader<'a>) -> Result<T, CallError> {
    let decoded = T::decode(&mut arguments).and_then(|value| arguments.finish().map(|()| value));
    decoded.map_err(|_| AcceptStatus::GarbageArgs.into())
}

impl Request<'_> {
    /// The reply to a call that ran.
    pub(crate) fn success(&self, result: &impl Encode) -> Buffer {
        reply::success(self.call.xid, result)
    }

    /// The share to which a filehandle belongs, and the store's handle of the object.
    ///
    /// # Errors
    /// [`Status::BadHandle`] for a handle that this server did not make; [`Status::Stale`] when the share does not
    /// exist; [`Status::JukeBox`] when its store does not answer yet.
    pub(crate) fn named<'h>(&self, handle: &'h FileHandle) -> Result<Named<'h>, Status> {
        let connection = self.connection;
        let target = connection.server.file_handles.decode(handle).map_err(|_| Status::BadHandle)?;
        let (shares, id) = (&connection.shares, ShareId(target.share));
        // Clients give up a stale filehandle for good. A share whose store does not answer yet will exist once the
        // store answers.
        let missing = || if shares.is_awaited(id) { Status::JukeBox } else { Status::Stale };
        let share = shares.by_id(id).ok_or_else(missing)?;
        Ok(Named { share, target })
    }

    /// Another directory of the share of `first`, in which the same caller changes names (RENAME and LINK).
    ///
    /// # Errors
    /// Those of [`Request::named`] and of the lookup; [`Status::XDev`] when the object belongs to another share or is of a
    /// snapshot; [`Status::RoFs`] for a folder of snapshots.
    pub(crate) async fn beside<'c>(
        &self,
        first: &CalledObject<'c>,
        handle: &FileHandle,
    ) -> Result<CalledObject<'c>, Status> {
        let named = self.named(handle)?;
        if named.share.id() != first.share.id() {
            return Err(Status::XDev);
        }
        let object = named.object(first.call, first.standing).await?;
        if object.is_folder {
            return Err(Status::RoFs);
        }
        if Arc::ptr_eq(&object.share, &first.share) { Ok(object) } else { Err(Status::XDev) }
    }

    /// The caller in a share, and the caller's standing there. Waits for the groups of the user if this machine decides them in
    /// the share.
    pub(crate) async fn caller(&self, share: &Share) -> (Caller, Standing) {
        let server = &self.connection.server;
        if let (Sender::Stated(stated), Some(directory)) = (&self.sender, &server.user_directory)
            && server.squashing.groups_in(share) == GroupsBy::Server
        {
            self.groups.ask(&**directory, stated.uid).await;
        }
        self.caller_so_far(share)
    }

    /// The same without a wait. A user whose groups are not known is in none.
    pub(crate) fn caller_so_far(&self, share: &Share) -> (Caller, Standing) {
        let Self { connection, call, sender, groups, .. } = self;
        let server = &connection.server;
        let (caller, standing) =
            connection.callers.caller(share, &server.squashing, &call.credential, (sender, groups.get()));
        let security = self.security();
        if standing.is_refused() || security.suffices(server.terms_of(share)) {
            return (caller, standing);
        }
        (caller, server.lacking(share, security.channel))
    }

    /// How the call is secured, by itself and by the connection.
    pub(crate) fn security(&self) -> Security {
        Security { channel: self.connection.channel(), flavor: self.flavor }
    }

    /// The sender of the call, independent of the share.
    pub(crate) fn claimant(&self) -> Claimant {
        let nobody = self.connection.server.squashing.anonymous;
        Claimant::new(&self.connection.callers, self.security(), (&self.sender, self.groups.get()), nobody)
    }

    /// How many bytes the reply grows when it is protected, at most.
    pub(crate) fn protection_bytes(&self) -> usize {
        if self.flavor == Flavor::Sys { 0 } else { gss::OVERHEAD_BYTES_MAX }
    }

    /// What the call shows of its sender to those who manage clients.
    pub(crate) fn credential(&self) -> Credential {
        let is_protected = matches!(self.flavor, Flavor::Krb5i | Flavor::Krb5p);
        Credential { principal: self.principal(), is_protected }
    }

    /// Who sends the call, as far as NFSv4 distinguishes clients by it.
    pub(crate) fn principal(&self) -> Principal {
        match &self.sender {
            Sender::Anonymous => Principal::Nobody,
            Sender::Stated(AuthSys { uid, gid, .. }) => Principal::User { uid: *uid, gid: *gid },
            Sender::Proved(context) => Principal::Ticket(Arc::clone(&context.name)),
        }
    }
}
