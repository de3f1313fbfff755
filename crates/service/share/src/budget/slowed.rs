//! Clients that are held to one operation a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::agreement::Opener;

/// How long each operation takes its turn.
const TURN: Duration = Duration::from_secs(1);

/// The clients. The lock guards which they are; the operations of a client have their turns one after the other.
#[derive(Debug, Default)]
pub(super) struct Slowed(Mutex<HashMap<Opener, Arc<tokio::sync::Mutex<()>>>>);

impl Slowed {
    /// Slows these clients, and no others. Whether there are any is told before others can change that.
    pub(super) fn set(&self, clients: impl FnOnce() -> Vec<Opener>, tell: impl FnOnce(bool)) {
        let mut slowed = self.0.lock();
        let clients = clients();
        slowed.retain(|client, _| clients.contains(client));
        for client in clients {
            slowed.entry(client).or_default();
        }
        tell(!slowed.is_empty());
    }

    /// Waits for the turn of an operation of this client. Returns how long that took; None: it is not slowed.
    pub(super) async fn wait(&self, client: Option<Opener>) -> Option<Duration> {
        let begun = Instant::now();
        let turns = || client.and_then(|client| self.0.lock().get(&client).cloned());
        let queue = turns()?;
        let _turn = queue.lock().await;
        // Perhaps not any more: then all who wait go on.
        if turns().is_some() {
            tokio::time::sleep(TURN).await;
        }
        Some(begun.elapsed())
    }
}
