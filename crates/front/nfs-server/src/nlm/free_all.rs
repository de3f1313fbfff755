//! FREE_ALL: a host without a status monitor has restarted. It is told as SM_NOTIFY would tell it.

use nfs_wire::nlm::FreeAllArgs;

use super::state::NlmState;
use crate::call::Request;

pub(super) async fn handle(request: &Request<'_>, nlm: &NlmState, args: &FreeAllArgs<'_>) {
    nlm.restarted(request.connection.client, args.caller.0, args.state).await;
}
