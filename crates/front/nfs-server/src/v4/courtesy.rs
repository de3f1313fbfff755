//! Ends clients with an expired lease that are in the way of others (RFC 8881 8.4.3).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use nfs_proto::v4::lease::Standing;
use share::{Courtesy, ShareId};

use crate::server::ServerState;

impl Courtesy for ServerState {
    fn end_late(self: Arc<Self>, share: ShareId) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let late = self.v4.late_in(share, Instant::now());
        if late.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let mut ended = Vec::new();
            for client in late {
                // The client may have returned while others were ended.
                if self.v4.standing(&client, Instant::now()) == Standing::Current {
                    continue;
                }
                // The client must not reclaim after a restart what another client has had meanwhile.
                self.v4.expire_client(client.id).leave(&self.v4.recovery).await;
                ended.push(client);
            }
            if let Some(first) = ended.first() {
                let (count, first) = (ended.len(), first.shown());
                tracing::info!(count, first, "silent NFSv4 clients make room for others");
            }
        }))
    }
}
