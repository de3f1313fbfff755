//! Periodic work of a gateway: records values that change by themselves, and checks the alarms of its shares.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use share::{Share, ShareTable};
use state::{State, burst_credits, copies};

use crate::control_tls::Identity;
use crate::renewal::Renewal;
use crate::vservers::Vservers;

/// How often the log says that the certificate expires soon.
const REMINDER: Duration = Duration::from_secs(24 * 3600);

/// Does the work as long as this value lives.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(
        shares: Arc<ShareTable>,
        state: Arc<State>,
        vservers: Arc<Vservers>,
        identity: Option<Arc<Identity>>,
        mut renewal: Option<Renewal>,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            // A copy was made at the start.
            let mut copying = DailyCopy { made: Instant::now() };
            let mut reminded = None;
            loop {
                look(&shares, &state);
                vservers.shares().iter().for_each(review);
                vservers.keep_credits();
                if let Some(renewal) = &mut renewal {
                    renewal.look();
                }
                let expires = identity.as_ref().and_then(|identity| identity.expires());
                remind(&mut reminded, expires, SystemTime::now());
                copying.make_if_due(&state, Instant::now());
                if stopped.recv_timeout(burst_credits::INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("upkeep".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn look(shares: &ShareTable, state: &State) {
    for share in shares.present().iter().filter(|share| !share.is_withdrawn()) {
        review(share);
        if let Err(error) = keep_graces(share, state) {
            tracing::error!("{}", error.what);
        }
    }
    if let Err(error) = burst_credits::keep(&shares.present(), state.server(), burst_credits::RESERVE) {
        tracing::error!("{}", error.what);
    }
}

fn review(share: &Arc<Share>) {
    share.review_alarms();
    share.close_idle_views();
    share.sweep_recycle_bin();
}

/// Writes down since when soft limits of quotas are exceeded, if that has changed.
fn keep_graces(share: &Share, state: &State) -> Result<(), state::Error> {
    let Some(graces) = share.quotas_over_since().filter(|_| share.has_quotas()) else { return Ok(()) };
    let graces = graces.into_iter().map(|(of, at)| (of, in_whole_seconds(at))).collect();
    if state.quota_graces(share.name())? == graces {
        return Ok(());
    }
    state.keep_quota_graces(share.name(), &graces)
}

fn in_whole_seconds(at: SystemTime) -> SystemTime {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// Logs once a day that the certificate expires soon, or has expired.
fn remind(last: &mut Option<SystemTime>, expires: Option<SystemTime>, now: SystemTime) {
    let is_due = last.is_none_or(|last| now.duration_since(last).is_ok_and(|since| since >= REMINDER));
    let left = expires.map(|expires| expires.duration_since(now).unwrap_or_default());
    if let Some(warning) = left.and_then(control::certificate_warning).filter(|_| is_due) {
        *last = Some(now);
        tracing::warn!("{warning}: renew it, and the server shows the new one within seconds");
    }
}

/// The copy of the state database that is made once a day.
struct DailyCopy {
    /// When the last one was begun.
    made: Instant,
}

impl DailyCopy {
    /// Begins a copy if the last one is old enough. It is made on a separate thread, so that a hanging disk holds up
    /// nothing else.
    fn make_if_due(&mut self, state: &Arc<State>, now: Instant) -> Option<JoinHandle<()>> {
        if now.saturating_duration_since(self.made) < copies::INTERVAL {
            return None;
        }
        self.made = now;
        let state = Arc::clone(state);
        Some(std::thread::spawn(move || state.keep_copy()))
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that keeps things up has failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: u64 = 24 * 60;

    #[test]
    fn the_state_database_is_copied_once_a_day() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let state = Arc::new(State::open(&directory).unwrap());
        let copy = copies::path(&directory);
        let start = Instant::now();
        let mut copying = DailyCopy { made: start };
        let mut is_made_after = |minutes: u64| {
            let _ = std::fs::remove_file(&copy);
            let begun = copying.make_if_due(&state, start + Duration::from_secs(minutes * 60));
            let is_begun = begun.is_some();
            begun.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(copy.exists(), is_begun, "after {minutes} minutes");
            is_begun
        };
        assert!(!is_made_after(0) && !is_made_after(DAY - 1));
        assert!(is_made_after(DAY) && !is_made_after(DAY + 1));
        // After a turn that came late, the next copy is made a day later.
        assert!(is_made_after(5 * DAY + 10) && !is_made_after(6 * DAY + 9) && is_made_after(6 * DAY + 10));
    }
}
