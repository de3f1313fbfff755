//! TLS on a connection that has begun without it. RFC 9289 4.1.

use nfs_wire::record_mark::MARK_BYTES;
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Encode, Reader};

use super::rpc::{Procedure, finish, garbled};
use crate::{Fault, FaultKind, NfsTarget, Result, Wire};

/// What a server with TLS writes into its verifier. RFC 9289 4.1.
const STARTTLS: &[u8] = b"STARTTLS";

/// Begins TLS on a connection if the target asks for that, and returns the cipher suite. `null` is the procedure that is
/// called to ask for it.
pub(super) fn protect(wire: &mut impl Wire, target: &NfsTarget, null: Procedure) -> Result<Option<String>> {
    let Some(tls) = &target.tls else { return Ok(None) };
    let Procedure { program, version, number: procedure } = null;
    let credential = OpaqueAuth { flavor: flavor::AUTH_TLS, body: &[] };
    let call = Call { xid: 0, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
    let mut record = [vec![0; MARK_BYTES], call.encode_to_vec()].concat();
    finish(&mut record, 0);
    wire.send(&record)?;
    let reply = wire.receive()?;
    match Reply::decode(&mut Reader::new(&reply)).map_err(garbled)?.body {
        ReplyBody::Accepted { verifier, status: AcceptStatus::Success } if verifier.body == STARTTLS => {
            wire.start_tls(&target.host, tls).map(Some)
        }
        _ => Err(Fault::new(FaultKind::Refused, format!("{} has no TLS for NFS", target.host))),
    }
}
