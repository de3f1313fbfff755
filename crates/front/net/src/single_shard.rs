//! One shard without a thread: connections are served by tasks of the caller.

use std::rc::Rc;
use std::sync::Arc;

use crate::connection::serve;
use crate::places::Places;
use crate::ration::Rations;
use crate::repeats::Repeats;
use crate::shards::tell;
use crate::socket::Socket;
use crate::stop::Stopping;
use crate::{Outbox, Peer, Service};

/// Serves the connections of one service in a [`tokio::task::LocalSet`] of the caller, over sockets that the caller has
/// made. The loop of a connection, its limits and its places are those of [`crate::Shards`], but there are no threads
/// and no listeners. Dropping it ends the connections.
#[derive(Debug)]
pub struct SingleShard<S> {
    service: Arc<S>,
    places: Arc<Places>,
    rations: Arc<Rations>,
    repeats: Arc<Repeats>,
    stop: Stopping,
}

impl<S: Service> SingleShard<S> {
    /// A shard without connections.
    #[must_use]
    pub fn new(service: Arc<S>) -> Self {
        let places = Places::new(service.connections());
        let stop = Stopping::default();
        Self { service, places, rations: Arc::default(), repeats: Arc::default(), stop }
    }

    /// Begins to serve a connection in a task of the current `LocalSet`. Returns false when there is no place for the
    /// connection: its socket is dropped.
    pub fn connect(&self, socket: impl Socket, peer: Peer) -> bool {
        let Ok(place) = self.places.take(peer.address.ip()) else { return false };
        let service = Arc::clone(&self.service);
        let ration = self.rations.open(peer.address.ip().into());
        let (repeats, stop) = (Arc::clone(&self.repeats), self.stop.signal());
        tokio::task::spawn_local(async move {
            let limits = service.limits();
            let outbox = Outbox::new(limits.posted_frames);
            let connection: Rc<S::Connection> = service.connected(peer, outbox.clone());
            let ended = serve(socket, connection, outbox, limits, place, ration, stop).await;
            tell(peer.address, &ended, &repeats);
        });
        true
    }

    /// Ends all connections: each cleans up in its own task.
    pub fn stop(&self) {
        self.stop.stop();
    }
}

impl<S> Drop for SingleShard<S> {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
