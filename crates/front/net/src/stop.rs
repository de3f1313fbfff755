//! The signal by which what runs on a shard is told to end, and the count of what has not ended yet.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells what runs on one shard to end. Dropping it tells so, too.
#[derive(Debug)]
pub(crate) struct Stopping {
    told: watch::Sender<bool>,
    present: Present,
}

/// Held by what has not ended yet. It is there once for a whole group, on all shards.
#[derive(Debug, Clone, Default)]
pub(crate) struct Present(Arc<()>);

/// What is to end when it is told so. It counts as present until this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    told: watch::Receiver<bool>,
    present: Present,
}

impl Stopping {
    pub(crate) fn new(present: Present) -> Self {
        Self { told: watch::Sender::new(false), present }
    }

    pub(crate) fn stop(&self) {
        self.told.send_replace(true);
    }

    /// The signal, for something that begins.
    pub(crate) fn signal(&self) -> Stop {
        Stop { told: self.told.subscribe(), present: self.present.clone() }
    }

    pub(crate) fn present(&self) -> &Present {
        &self.present
    }
}

impl Present {
    /// Whether this is the only one: all others have ended.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl Stop {
    /// Resolves when it is time to end.
    pub(crate) async fn given(&mut self) {
        // An error: nobody is left to say so.
        let _ = self.told.wait_for(|told| *told).await;
    }

    /// What counts as present beside the holder of the signal.
    pub(crate) fn present(&self) -> Present {
        self.present.clone()
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self::new(Present::default())
    }
}
