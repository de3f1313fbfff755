//! The place of a gateway among others. While it has one, it may serve vservers; when it loses it, it ends them all at once, and lets
//! none go: whatever it still had to do may meet their next owner.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use net::Term;
use state::cluster::Member;

use crate::vservers::Vservers;

/// How often the lease on the gateway's name is renewed.
const RENEW: Duration = Duration::from_secs(1);
/// How long before the end of the lease the gateway ends what it serves, and answers its clients no more.
const MARGIN: Duration = Duration::from_millis(500);

/// Renews the lease as long as this value lives, and watches its end on a thread of its own: the store may hold up the renewal.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) member: Arc<Member>,
    /// Until when vservers are served. Once it is over, the place is lost: a late renewal gives it back to nobody, because what was served
    /// is ended.
    term: Term,
    stop: Vec<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Membership {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn begin(member: Arc<Member>, vservers: Arc<Vservers>) -> io::Result<Self> {
        let term = Term::until(member.until() - MARGIN);
        let mut begun = Self { member, term, stop: Vec::new(), threads: Vec::new() };
        let (renewed, term) = (Arc::clone(&begun.member), begun.term.clone());
        begun.run("lease", move |stopped| renew(&renewed, &term, &stopped))?;
        let (watched, term) = (Arc::clone(&begun.member), begun.term.clone());
        begun.run("lease end", move |stopped| {
            if ends(&term, &stopped) {
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

    /// Until when vservers are served here.
    pub(crate) fn term(&self) -> Term {
        self.term.clone()
    }

    /// Whether the lease holds for long enough to begin something. If not, the place is lost, although a late renewal may still succeed.
    pub(crate) fn holds(&self) -> bool {
        !self.term.is_over()
    }
}

fn renew(member: &Member, term: &Term, stopped: &mpsc::Receiver<()>) {
    while stopped.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) && !term.is_over() {
        match member.renew() {
            Ok(true) if term.extend(member.until() - MARGIN) => {}
            Ok(true) => return,
            Ok(false) => return tracing::error!("another gateway has the name {}", member.name()),
            Err(error) => {
                tracing::warn!("the lease of the gateway {} is not renewed: {error}", member.name())
            }
        }
    }
}

/// Waits until the term is over. False: it was stopped before.
fn ends(term: &Term, stopped: &mpsc::Receiver<()>) -> bool {
    loop {
        let left = term.left();
        if left.is_zero() {
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
