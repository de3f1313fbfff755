//! A worker that listens: one coordinator after the other.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use super::seal::Token;
use super::session::serve_connection;
use crate::fault::Fault;
use crate::result::ProblemKind;

/// How often the worker looks for a connection, and whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Serves the coordinators that connect, one after the other, until `ended` becomes true. `lost` is called for each lost
/// coordinator, with the reason.
///
/// # Errors
/// The listener fails.
pub fn serve_listener(
    listener: &TcpListener,
    token: &Token,
    program: &str,
    ended: &AtomicBool,
    mut lost: impl FnMut(SocketAddr, Fault),
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    while !ended.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, from)) => {
                let awaited = stream.set_nonblocking(false);
                let served = awaited
                    .map_err(|e| Fault::new(ProblemKind::Closed, e.to_string()))
                    .and_then(|()| serve_connection(stream, token, program, ended));
                if let Err(why) = served {
                    lost(from, why);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => sleep(LOOK),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
