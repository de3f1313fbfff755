//! What an Anabranch server counts itself, asked at its control address while load is on.

use std::sync::Arc;

use control::activity::ShareActivity;
use gateway::control_access::Access;
use load::result::ServerCounters;
use load::server::Counts;

/// What a server counts in one share.
#[derive(Debug)]
struct ShareCounts {
    control: Access,
    path: String,
}

/// What a server counts in a share.
#[must_use]
pub fn of_share(control: Access, share: &str) -> Arc<dyn Counts> {
    Arc::new(ShareCounts {
        control,
        path: format!("/v1/shares/{}/activity", control_client::path_part(share)),
    })
}

impl Counts for ShareCounts {
    fn counters(&self) -> Option<ServerCounters> {
        let activity: ShareActivity = control_client::get(&self.control, &self.path).ok()?;
        let bytes = |name: &str| {
            let of_it = activity.apis.iter().filter(|api| api.api == name);
            of_it.map(|api| api.bytes).sum()
        };
        Some(ServerCounters {
            operations: activity.apis.iter().map(|api| api.calls).sum(),
            read_bytes: bytes("Read"),
            written_bytes: bytes("Write"),
            throttled: activity.waits.iter().map(|waits| waits.operations).sum(),
            server_latency_seconds: Some(activity.apis.iter().map(|api| api.seconds).sum()),
        })
    }
}
