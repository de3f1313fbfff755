//! How long a connection may stay: reasons outside the connection's loop to end it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::ended::Ended;
use crate::notice::Notice;
use crate::places::Place;
use crate::{Limits, Protocol};

/// The state that the loop of a connection reports.
#[derive(Debug)]
pub(crate) struct Signs {
    /// When something last arrived; for strangers, a whole frame.
    pub(crate) heard: Cell<Instant>,
    /// Whether anything is under way: a request, or a reply that has not been sent.
    pub(crate) busy: Cell<bool>,
    /// Whether the client has identified itself; if not, it is a stranger.
    pub(crate) known: Cell<bool>,
}

impl Signs {
    pub(crate) fn new(known: bool) -> Self {
        Self { heard: Cell::new(Instant::now()), busy: Cell::new(false), known: Cell::new(known) }
    }
}

/// Resolves when the connection has to end, with the reason.
pub(crate) async fn outstayed<P: Protocol>(
    protocol: &P,
    signs: &Signs,
    place: &Place,
    stopped: &Notice,
    limits: &Limits,
) -> Ended {
    tokio::select! {
        () = nobody(protocol, limits.greeting) => Ended::Nobody,
        () = silent(protocol, signs, limits.silence) => Ended::Silent,
        () = place.given_away() => Ended::GaveWay,
        () = greedy(signs, stopped) => Ended::Greedy,
    }
}

/// Resolves when the client has not become welcome in time. A client that was welcome and no longer is (it has logged
/// off) gets the same time again.
async fn nobody<P: Protocol>(protocol: &P, greeting: Duration) {
    let mut is_late = true;
    loop {
        tokio::time::sleep(greeting).await;
        let is_welcome = protocol.is_welcome();
        if is_late && !is_welcome {
            return;
        }
        is_late = !is_welcome;
    }
}

/// Resolves when nothing has arrived for too long, from a client that has no reason to be silent.
async fn silent<P: Protocol>(protocol: &P, signs: &Signs, silence: Duration) {
    loop {
        let since = signs.heard.get().elapsed();
        let is_over = since >= silence;
        if is_over && !signs.busy.get() && !protocol.may_be_silent() {
            return;
        }
        tokio::time::sleep(if is_over { silence } else { silence.saturating_sub(since) }).await;
    }
}

/// Resolves when a stranger has to go because it has held too much memory.
async fn greedy(signs: &Signs, stopped: &Notice) {
    stopped.given().await;
    if signs.known.get() {
        std::future::pending::<()>().await;
    }
}
