//! Ctrl-C and SIGTERM: the run ends, what was measured is kept. A second Ctrl-C ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::problem::{Cause, Problem, Result};

static STOP: AtomicBool = AtomicBool::new(false);

/// Becomes true when a signal asks to end.
///
/// # Errors
/// Signals cannot be caught.
pub(crate) fn flag() -> Result<&'static AtomicBool> {
    let failed = |e: std::io::Error| Problem::new(Cause::Measuring, format!("cannot catch signals: {e}"), "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // The handlers stand before anything is made on the target.
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    let wait = move || {
        runtime.block_on(async move {
            let mut asked = 0;
            loop {
                tokio::select! {
                    _ = interrupt.recv() => asked += 1,
                    _ = terminate.recv() => asked += 1,
                }
                STOP.store(true, Ordering::Relaxed);
                if asked > 1 {
                    eprintln!("ended at once: what the run had made on the target is still there");
                    peers::kill_all();
                    std::process::exit(130);
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(&STOP)
}
