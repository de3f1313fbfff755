//! A forwarder between two tap devices, below TCP: frames pass it with a delay and with losses. It knows no connections.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::wire::{Conditions, Fate, Wire};

/// The longest frame, with room for a tag.
const FRAME_MAX: usize = 2048;
/// Frames that are read before those that are due are written.
const BATCH: usize = 64;

/// Forwards until it is dropped, or a device is gone.
#[derive(Debug)]
pub(crate) struct Forwarder {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What both directions know.
#[derive(Debug)]
struct Shared {
    conditions: Conditions,
    is_prompt: AtomicBool,
    is_lossless: AtomicBool,
    /// Readable once it is to end.
    end: OwnedFd,
    /// Of both directions, in the order of the devices that send.
    counts: [Counts; 2],
}

/// Frames of a direction.
#[derive(Debug, Default)]
struct Counts {
    seen: AtomicU64,
    lost: AtomicU64,
    dropped: AtomicU64,
}

/// Frames that came from a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// All.
    pub seen: u64,
    /// Lost, as the conditions say.
    pub lost: u64,
    /// Dropped, since the wire was full or the other device took none.
    pub dropped: u64,
}

impl Forwarder {
    /// Forwards between two devices. Each direction has a seed of its own.
    ///
    /// # Errors
    /// There are no threads or descriptors left.
    pub(crate) fn start(devices: [File; 2], conditions: Conditions, seeds: [u64; 2]) -> io::Result<Self> {
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        let shared = Arc::new(Shared {
            conditions,
            is_prompt: AtomicBool::new(false),
            is_lossless: AtomicBool::new(false),
            end,
            counts: Default::default(),
        });
        let mut forwarder = Self { shared, threads: Vec::new() };
        let [one, other] = devices;
        let back = (other.try_clone()?, one.try_clone()?);
        for (at, ((from, to), seed)) in [(one, other), back].into_iter().zip(seeds).enumerate() {
            let shared = Arc::clone(&forwarder.shared);
            let forward = move || shared.forward(at, &from, &to, Wire::new(seed));
            forwarder.threads.push(thread::Builder::new().name("wire".to_owned()).spawn(forward)?);
        }
        Ok(forwarder)
    }

    /// Frames are held, or pass at once.
    pub(crate) fn hold(&self, is_held: bool) {
        self.shared.is_prompt.store(!is_held, Ordering::Relaxed);
    }

    /// Frames are lost, or none is.
    pub(crate) fn lose(&self, is_lossy: bool) {
        self.shared.is_lossless.store(!is_lossy, Ordering::Relaxed);
    }

    /// What has come from each device.
    pub(crate) fn counted(&self) -> [Counted; 2] {
        self.shared.counts.each_ref().map(|counts| Counted {
            seen: counts.seen.load(Ordering::Relaxed),
            lost: counts.lost.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
        })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes()).is_ok() {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn conditions(&self) -> Conditions {
        let Conditions { delay, loss } = self.conditions;
        Conditions {
            delay: if self.is_prompt.load(Ordering::Relaxed) { Duration::ZERO } else { delay },
            loss: if self.is_lossless.load(Ordering::Relaxed) { 0.0 } else { loss },
        }
    }

    /// Forwards in one direction.
    fn forward(&self, at: usize, from: &File, mut to: &File, mut wire: Wire) {
        let Some(counts) = self.counts.get(at) else { return };
        // Otherwise the kernel wakes this thread up to 50 us late (PR_SET_TIMERSLACK(2const)).
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // It has little to do, and that in time; what else the machine does can wait.
        let _ = rustix::process::setpriority_process(None, -20);
        let begin = Instant::now();
        loop {
            while let Some(frame) = wire.take(begin.elapsed()) {
                if to.write(&frame).is_err() {
                    counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            let until = wire.next().map(|due| due.saturating_sub(begin.elapsed()));
            if !self.wait(from, until) || !self.read(from, &mut wire, begin, counts) {
                return;
            }
        }
    }

    /// Waits for a frame, or as long as none is due. False once this is to end.
    fn wait(&self, from: &File, until: Option<Duration>) -> bool {
        let mut both = [PollFd::new(from, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
        let until = until.and_then(|until| Timespec::try_from(until).ok());
        match poll(&mut both, until.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {
                let [frame, end] = both.map(|of| of.revents());
                end.is_empty() && !frame.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
            }
            Err(_) => false,
        }
    }

    /// Reads the frames that are there. False if the device is gone.
    fn read(&self, mut from: &File, wire: &mut Wire, begin: Instant, counts: &Counts) -> bool {
        let mut buffer = [0; FRAME_MAX];
        for _ in 0..BATCH {
            let frame = match from.read(&mut buffer) {
                Ok(bytes) => buffer.get(..bytes).unwrap_or_default(),
                Err(e) => return matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
            };
            counts.seen.fetch_add(1, Ordering::Relaxed);
            let counter = match wire.put(begin.elapsed(), frame, self.conditions()) {
                Fate::Held => continue,
                Fate::Lost => &counts.lost,
                Fate::Dropped => &counts.dropped,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}
