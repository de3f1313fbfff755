//! Calls from the server to a host: it is asked for its ports first, and then called.
//!
//! A host is only ever called at the address from which it has called.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use net::{Outgoing, OutgoingError};
use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::portmap::{self, Mapping, TCP};
use nfs_wire::record_mark::Mark;
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::rpcbind::{self, Binding, Text, netid};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

/// Why a host was not called.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallbackError {
    /// The host has not received the call.
    #[error("{0}")]
    NotSent(String),
    /// The host may have received the call.
    #[error("{0}")]
    Unanswered(String),
}

impl From<OutgoingError> for CallbackError {
    fn from(error: OutgoingError) -> Self {
        match error {
            OutgoingError::NotSent(error) => Self::NotSent(error.to_string()),
            OutgoingError::Unanswered(error) => Self::Unanswered(error.to_string()),
        }
    }
}

/// A program, its version and a procedure.
type Target = (u32, u32, u32);

/// Calls to hosts.
#[derive(Debug)]
pub(crate) struct Callbacks {
    outgoing: Arc<Outgoing>,
    next_xid: AtomicU32,
}

impl Callbacks {
    pub(super) fn new(outgoing: Arc<Outgoing>) -> Self {
        Self { outgoing, next_xid: AtomicU32::new(1) }
    }

    /// Calls a program of a host, from the address by which it knows this server. `result` reads the result.
    ///
    /// # Errors
    /// [`CallbackError`].
    pub(super) async fn call<T>(
        &self,
        (from, host): (IpAddr, SocketAddr),
        target: Target,
        args: &impl Encode,
        result: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Result<T, CallbackError> {
        let port = self.port_of((from, host), target).await?;
        let mut to = host;
        to.set_port(port);
        self.call_at((from, to), target, args, result).await
    }

    /// The port of TCP on which a host has a program.
    async fn port_of(
        &self,
        (from, host): (IpAddr, SocketAddr),
        (program, version, _): Target,
    ) -> Result<u16, CallbackError> {
        let mut binder = host;
        binder.set_port(portmap::PORT);
        // An answer of which nothing follows is no call.
        let asked = match host.ip() {
            IpAddr::V4(_) => {
                let procedure = portmap::Procedure::GetPort as u32;
                let args = Mapping { program, version, protocol: TCP, port: 0 };
                let port =
                    |reader: &mut Reader<'_>| reader.u32().ok().and_then(|port| u16::try_from(port).ok());
                self.call_at((from, binder), (portmap::PROGRAM, portmap::VERSION, procedure), &args, port)
                    .await
            }
            IpAddr::V6(_) => {
                let procedure = rpcbind::Procedure::GetAddr as u32;
                let text = |text: &'static str| Text(text.as_bytes());
                let (netid, address, owner) = (text(netid::TCP6), text(""), text(""));
                let args = Binding { program, version, netid, address, owner };
                let port = |reader: &mut Reader<'_>| {
                    let text = Text::decode(reader).ok()?;
                    Some(rpcbind::from_universal(text.0).map_or(0, |address| address.port()))
                };
                self.call_at((from, binder), (portmap::PROGRAM, rpcbind::VERSION_3, procedure), &args, port)
                    .await
            }
        };
        match asked {
            Ok(0) => Err(CallbackError::NotSent(format!("the host has no program {program} over TCP"))),
            Ok(port) => Ok(port),
            Err(error) => Err(CallbackError::NotSent(format!("its port mapper: {error}"))),
        }
    }

    async fn call_at<T>(
        &self,
        (from, to): (IpAddr, SocketAddr),
        (program, version, procedure): Target,
        args: &impl Encode,
        result: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Result<T, CallbackError> {
        let xid = self.next_xid.fetch_add(1, Ordering::Relaxed);
        let record = record(xid, (program, version, procedure), args);
        let answer = self.outgoing.exchange(from, to, &record).await?;
        let mut reader = Reader::new(&answer);
        let is_success = matches!(
            Reply::decode(&mut reader),
            Ok(Reply { xid: of, body: ReplyBody::Accepted { status: AcceptStatus::Success, .. } }) if of == xid
        );
        let read = is_success.then(|| result(&mut reader)).flatten();
        read.ok_or_else(|| CallbackError::Unanswered("the answer is refused or malformed".to_owned()))
    }
}

/// A call with its record mark. Some hosts want a credential with a user; it is not proof of anything.
fn record(xid: u32, (program, version, procedure): Target, args: &impl Encode) -> Vec<u8> {
    let nobody =
        AuthSys { stamp: 0, machine_name: MachineName(b""), uid: 0, gid: 0, groups: Groups::default() };
    let body = nobody.encode_to_vec();
    let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body: &body };
    let mut message = Vec::new();
    let mut writer = Writer::new(&mut message);
    Call { xid, program, version, procedure, credential, verifier: OpaqueAuth::NONE }.encode(&mut writer);
    args.encode(&mut writer);
    [&Mark::whole_record(message.len()).to_bytes()[..], &message].concat()
}
