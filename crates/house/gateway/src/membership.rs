//! The place of a gateway among others. While it has one, it may serve vservers; when it loses it, it ends them all at once, and lets
//! none go: whatever it still had to do may meet their next owner.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use state::cluster::Member;

use crate::vservers::Vservers;

/// How often the lease on the gateway's name is renewed.
const RENEW: Duration = Duration::from_secs(1);
/// How long before the end of the lease the gateway ends what it serves.
const MARGIN: Duration = Duration::from_millis(500);

/// Renews the lease as long as this value lives, and watches its end on a thread of its own: the store may hold up the renewal.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) member: Arc<Member>,
    /// Whether the lease was about to end once. An answer that comes after that gives the place back to nobody: what was served is ended.
    is_lost: Arc<AtomicBool>,
    stop: Vec<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Membership {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn begin(member: Arc<Member>, vservers: Arc<Vservers>) -> io::Result<Self> {
        let is_lost = Arc::<AtomicBool>::default();
        let lost = Arc::clone(&is_lost);
        let mut begun = Self { member, is_lost, stop: Vec::new(), threads: Vec::new() };
        let renewed = Arc::clone(&begun.member);
        begun.run("lease", move |stopped| renew(&renewed, &lost, &stopped))?;
        let (watched, lost) = (Arc::clone(&begun.member), Arc::clone(&begun.is_lost));
        begun.run("lease end", move |stopped| {
            if ends(&watched, &lost, &stopped) {
                lost.store(true, Ordering::SeqCst);
                let name = watched.name();
                tracing::error!(
                    "the lease of the gateway {name} ends: it serves no vservers any more until it has a place again"
                );
                vservers.abandon_all();
            }
        })?;
        Ok(begun)
    }

    fn run(&mut self, name: &str, work: impl FnOnce(mpsc::Receiver<()>) + Send + 'static) -> io::Result<()> {
        let (stop, stopped) = mpsc::channel();
        self.threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(move || work(stopped))?);
        self.stop.push(stop);
        Ok(())
    }

    /// Gives the lease back. Nothing is served any more.
    pub(crate) fn end(self) {
        let member = Arc::clone(&self.member);
        drop(self);
        if let Err(error) = member.leave() {
            tracing::warn!("the lease of the gateway {} runs out by itself: {error}", member.name());
        }
    }

    /// Whether the lease holds for long enough to begin something. If not, the place is lost, although a late renewal may still succeed.
    pub(crate) fn holds(&self) -> bool {
        if Instant::now() + MARGIN >= self.member.until() {
            self.is_lost.store(true, Ordering::SeqCst);
        }
        !self.is_lost.load(Ordering::SeqCst)
    }
}

fn renew(member: &Member, is_lost: &AtomicBool, stopped: &mpsc::Receiver<()>) {
    while stopped.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) && !is_lost.load(Ordering::SeqCst) {
        match member.renew() {
            Ok(true) => {}
            Ok(false) => return tracing::error!("another gateway has the name {}", member.name()),
            Err(error) => {
                tracing::warn!("the lease of the gateway {} is not renewed: {error}", member.name())
            }
        }
    }
}

/// Waits until the lease is about to end, or somebody else has found that it was. False: it was stopped before.
fn ends(member: &Member, is_lost: &AtomicBool, stopped: &mpsc::Receiver<()>) -> bool {
    loop {
        let left = member.until().saturating_duration_since(Instant::now() + MARGIN);
        if left.is_zero() || is_lost.load(Ordering::SeqCst) {
            return true;
        }
        if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.stop.clear();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that holds the lease has failed");
            }
        }
    }
}
