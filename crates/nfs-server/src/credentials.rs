//! From the credential of a call to the user in whose name it is carried out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;

use nfs_proto::export::{ClientRule, Credentials};
use nfs_wire::auth_sys::AuthSys;
use nfs_wire::rpc::{AuthStatus, OpaqueAuth, flavor};
use nfs_wire::xdr::Decode;
use share::{Caller, Client, Identity, Protocol, ShareId};

/// Users of one client that a connection remembers; with more it starts over.
const CALLERS_MAX: usize = 256;

/// What a credential states: nothing (AUTH_NONE), or a user (AUTH_SYS).
///
/// # Errors
/// [`AuthStatus::BadCredential`] for an AUTH_SYS body that does not decode; [`AuthStatus::RejectedCredential`] for
/// another flavor, as RFC 2203 (erratum 4067) expects of a server without RPCSEC_GSS.
pub(crate) fn stated<'a>(credential: &OpaqueAuth<'a>) -> Result<Option<AuthSys<'a>>, AuthStatus> {
    match credential.flavor {
        flavor::AUTH_NONE => Ok(None),
        flavor::AUTH_SYS => {
            AuthSys::from_bytes(credential.body).map(Some).map_err(|_| AuthStatus::BadCredential)
        }
        _ => Err(AuthStatus::RejectedCredential),
    }
}

/// The callers behind the credentials that this connection has seen: a client's users send the same again and again.
#[derive(Debug)]
pub(crate) struct CallerCache {
    client: Client,
    /// By the credential's body.
    known: RefCell<HashMap<Box<[u8]>, Callers>>,
}

/// Who sends a credential, in each share.
type Callers = Vec<(ShareId, Caller)>;

impl CallerCache {
    /// Nobody from this address has sent anything yet.
    pub(crate) fn new(client: IpAddr) -> Self {
        Self { client: Client::Address(client), known: RefCell::default() }
    }

    /// Who a caller of this version of NFS is in a share, by the rule that holds for this client there.
    pub(crate) fn caller(
        &self,
        protocol: Protocol,
        share: ShareId,
        rule: &ClientRule,
        credential: &OpaqueAuth<'_>,
        stated: Option<&AuthSys<'_>>,
    ) -> Caller {
        let mut known = self.known.borrow_mut();
        let found = known.get(credential.body).and_then(|callers| {
            callers.iter().find(|(id, caller)| *id == share && caller.protocol == protocol)
        });
        if let Some((_, caller)) = found {
            return caller.clone();
        }
        let Credentials { uid, gid, groups } = rule.credentials(stated);
        let caller = Caller::new(protocol, Identity { uid, gid, groups }).at(self.client);
        if known.len() >= CALLERS_MAX {
            known.clear();
        }
        known.entry(credential.body.into()).or_default().push((share, caller.clone()));
        caller
    }
}
