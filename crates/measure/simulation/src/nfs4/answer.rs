//! Decodes the server's replies and its callbacks.

use std::collections::HashMap;

use nfs_wire::rpc::Call;
use nfs_wire::v4::callback;
use nfs_wire::v4::compound::{Res, ResOp};
use nfs_wire::v4::open::Delegation;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Stateid, Text};
use nfs_wire::xdr::{Decode, Encode, Reader};

use super::Open;

/// Answers a callback (RFC 8881 20), and notes the delegation that it recalls.
pub(super) fn called(call: &[u8], recalled: &mut Vec<Stateid>) -> Option<(u32, Vec<u8>)> {
    let mut reader = Reader::new(call);
    let head = Call::decode(&mut reader).ok()?;
    if head.procedure == callback::PROCEDURE_NULL {
        return Some((head.xid, Vec::new()));
    }
    let arguments = callback::CompoundArgs::decode(&mut reader).ok()?;
    let mut results = Vec::new();
    for operation in arguments.operations {
        let operation = operation.ok()?;
        results.push(match &operation {
            callback::ArgOp::Sequence(args) => callback::ResOp::Sequence(Ok(callback::SequenceResOk {
                session_id: args.session_id,
                sequence_id: args.sequence_id,
                slot_id: args.slot_id,
                highest_slot_id: 0,
                target_highest_slot_id: 0,
            })),
            callback::ArgOp::Recall(args) => {
                recalled.push(args.stateid);
                callback::ResOp::Other(callback::Operation::Recall, Ok(()))
            }
            other => callback::ResOp::Other(other.operation(), Ok(())),
        });
    }
    let reply = callback::CompoundRes { status: Ok(()), tag: Text(b""), results };
    Some((head.xid, reply.encode_to_vec()))
}

/// Decodes the results of a COMPOUND, up to the first that failed. A reply that cannot be decoded counts as a failure
/// of the whole.
pub(super) fn results(answer: &[u8]) -> Option<(Result<(), Status>, Vec<ResOp<'_>>)> {
    let results = Res::decode(&mut Reader::new(answer)).ok()?;
    Some((results.status, results.results.collect::<Result<_, _>>().ok()?))
}

/// Whether the reply says that the server still works on the same request (RFC 8881 2.10.6.2). The client then asks
/// again later.
pub(super) fn is_under_way(answer: &[u8]) -> bool {
    let first = results(answer).and_then(|(_, all)| all.into_iter().next());
    matches!(first, Some(ResOp::Sequence(Err(Status::Delay))))
}

pub(super) fn found(answer: &[u8]) -> Option<Vec<u8>> {
    results(answer)?.1.iter().find_map(|result| match result {
        ResOp::GetFh(Ok(found)) => Some(found.object.0.to_vec()),
        _ => None,
    })
}

pub(super) fn opened(answer: &[u8]) -> Option<Open> {
    results(answer)?.1.iter().find_map(|result| match result {
        ResOp::Open(Ok(made)) => {
            let delegation = match &made.delegation {
                Delegation::Read(read) => Some(read.stateid),
                Delegation::Write(write) => Some(write.stateid),
                Delegation::None | Delegation::NoneExt(_) => None,
            };
            let (locks, locked, cached) = (None, Vec::new(), HashMap::new());
            Some(Open { stateid: made.stateid, locks, locked, delegation, cached })
        }
        _ => None,
    })
}

pub(super) fn locked(answer: &[u8]) -> Option<Stateid> {
    results(answer)?.1.iter().find_map(|result| match result {
        ResOp::Lock(Ok(made)) => Some(made.lock_stateid),
        _ => None,
    })
}
