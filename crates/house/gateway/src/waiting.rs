//! Waits for work of the servers, on threads that may wait.

use std::future::Future;

use control::{Refusal, RefusalKind};

/// Waits for work of the servers. This thread may wait, because it does not belong to a shard.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> Result<T, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let failed = |e| Refusal::new(RefusalKind::Failed, format!("cannot start a runtime: {e}"), "");
    Ok(runtime.map_err(failed)?.block_on(work))
}
