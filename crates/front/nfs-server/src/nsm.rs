//! NSM, the status monitor (Open Group C702, chapter 11): hosts say that they have restarted, so that their locks end.
//!
//! The server monitors hosts for itself only, so the procedures for programs of the same machine are not there.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nfs_wire::nsm::{PROGRAM, Procedure, StatRes, StateChange, VERSION};
use nfs_wire::rpc::{AcceptStatus, Call};
use nfs_wire::xdr::{Decode, Encode, Reader};

use crate::NfsServer;
use crate::reply::unmarked;
use crate::rquota;
use crate::server::ServerState;

/// Answers NSM over UDP: hosts that start tell others of it so. And the program of `rquotad`, which clients ask over UDP only.
impl net::Datagrams for NfsServer {
    fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        unmarked(datagram, |call, reader| {
            if rquota::is_meant(&call) {
                return rquota::answer_datagram(&self.state, from, &call, reader);
            }
            let procedure = admitted(&call)?;
            answer(&self.state, from.ip().to_canonical(), procedure, reader)
        })
    }
}

fn admitted(call: &Call<'_>) -> Result<Procedure, AcceptStatus> {
    match (call.program, call.version) {
        (PROGRAM, VERSION) => {
            Procedure::try_from(call.procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)
        }
        (PROGRAM, _) => Err(AcceptStatus::ProgramMismatch { low: VERSION, high: VERSION }),
        _ => Err(AcceptStatus::ProgramUnavailable),
    }
}

/// The result of a procedure. What follows from a restart is done beside the reply.
///
/// # Errors
/// Why the procedure did not run.
pub(crate) fn answer(
    server: &Arc<ServerState>,
    from: IpAddr,
    procedure: Procedure,
    mut arguments: Reader<'_>,
) -> Result<Vec<u8>, AcceptStatus> {
    let nlm = server.nlm.as_ref().ok_or(AcceptStatus::ProgramUnavailable)?;
    match procedure {
        Procedure::Null => Ok(Vec::new()),
        // STAT_FAIL: the server monitors nobody for others.
        Procedure::Stat => Ok(StatRes { result: 1, state: nlm.monitor_state() }.encode_to_vec()),
        Procedure::Notify => {
            let change = StateChange::decode(&mut arguments).map_err(|_| AcceptStatus::GarbageArgs)?;
            let (server, name, state) = (Arc::clone(server), change.host.0.to_vec(), change.state);
            tokio::spawn(async move {
                if let Some(nlm) = &server.nlm {
                    nlm.restarted(from, &name, state).await;
                }
            });
            Ok(Vec::new())
        }
        Procedure::Mon | Procedure::UnMon | Procedure::UnMonAll | Procedure::SimuCrash => {
            Err(AcceptStatus::ProcedureUnavailable)
        }
    }
}
