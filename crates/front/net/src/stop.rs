//! The signal by which what runs on a shard is told to end, and the count of what has not ended yet.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Term;

/// Tells what runs on one shard to end. Dropping it tells so, too.
#[derive(Debug)]
pub(crate) struct Stopping {
    told: watch::Sender<bool>,
    present: Present,
    term: Option<Term>,
}

/// Held by what has not ended yet. It is there once for a whole group, on all shards.
#[derive(Debug, Clone, Default)]
pub(crate) struct Present(Arc<()>);

/// What is to end when it is told so. It counts as present until this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    told: watch::Receiver<bool>,
    present: Present,
    term: Option<Term>,
}

impl Stopping {
    /// `term`: until when clients may be answered; None: until they are told to end.
    pub(crate) fn new(present: Present, term: Option<Term>) -> Self {
        Self { told: watch::Sender::new(false), present, term }
    }

    /// The same for what takes the place of this one.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.present.clone(), self.term.clone())
    }

    pub(crate) fn stop(&self) {
        self.told.send_replace(true);
    }

    /// The signal, for something that begins.
    pub(crate) fn signal(&self) -> Stop {
        Stop { told: self.told.subscribe(), present: self.present.clone(), term: self.term.clone() }
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

    /// Until when clients may be answered; None: until they are told to end.
    pub(crate) fn term(&self) -> Option<Term> {
        self.term.clone()
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self::new(Present::default(), None)
    }
}
