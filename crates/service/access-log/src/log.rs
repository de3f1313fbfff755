//! The access log of a server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::queue::Totals;
use crate::sink::{Sink, Target};
use crate::{Event, Kind, Kinds, OpenError, Outcomes, Settings, Users};

/// How long a sink that is no longer wanted may go on writing.
const LAST_LINES: Duration = Duration::from_secs(10);

/// The access log of a server. Cheap to clone: all clones are one log. The default is off.
#[derive(Clone, Default)]
pub struct AccessLog(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// [`Kinds`], none while there is no sink. Whoever ends an operation looks only at this.
    wanted: AtomicU16,
    totals: Arc<Totals>,
    /// Guards the sinks, and the outcomes and users that they get. Not held while something is written.
    active: RwLock<Active>,
}

#[derive(Default)]
struct Active {
    outcomes: Outcomes,
    users: Users,
    sinks: Vec<Sink>,
}

/// Lines since the server started, in all sinks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that were written.
    pub written: u64,
    /// Lines that were dropped: a sink did not take them in time.
    pub dropped: u64,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("wanted", &self.kinds()).finish_non_exhaustive()
    }
}

/// Clones of one log are equal.
impl PartialEq for AccessLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AccessLog {}

impl AccessLog {
    /// Whether operations of this kind are written. Off, this is all that an operation costs.
    #[must_use]
    #[inline]
    pub fn wants(&self, kind: Kind) -> bool {
        self.kinds().contains(kind)
    }

    #[inline]
    fn kinds(&self) -> Kinds {
        Kinds::from_bits(self.0.wanted.load(Ordering::Relaxed))
    }

    /// Writes an event, if its kind, outcome and user are wanted. Never waits for a disk or a reader.
    pub fn write(&self, event: &Event<'_>) {
        if !self.wants(event.kind) {
            return;
        }
        let active = self.0.active.read();
        if active.outcomes.include(event.outcome) && active.users.include(&event.who) {
            let line = event.line();
            active.sinks.iter().for_each(|sink| sink.write(event, &line));
        }
    }

    /// Uses these settings from now on. A file that stays is opened anew, so that it may have been renamed. May wait for the
    /// disk, so it must not run on a shard.
    ///
    /// # Errors
    /// A file or socket cannot be used; then nothing changes.
    pub fn use_settings(&self, settings: &Settings) -> Result<(), OpenError> {
        let wanted = Target::of(settings);
        let is_served =
            |active: &Active, target: &Target| active.sinks.iter().any(|sink| sink.target.is_same(target));
        let new: Vec<Target> = {
            let active = self.0.active.read();
            wanted.iter().filter(|target| !is_served(&active, target)).cloned().collect()
        };
        let mut started = Vec::new();
        for target in new {
            match Sink::start(target, &self.0.totals) {
                Ok(sink) => started.push(sink),
                Err(error) => {
                    started.iter().for_each(|sink: &Sink| sink.end(Instant::now()));
                    return Err(error);
                }
            }
        }
        let mut active = self.0.active.write();
        let (mut stays, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut active.sinks)
            .into_iter()
            .partition(|sink| wanted.iter().any(|target| target.is_same(&sink.target)));
        for sink in &mut stays {
            if let Some(target) = wanted.iter().find(|target| target.is_same(&sink.target)) {
                sink.reopen(target.clone());
            }
        }
        gone.iter().for_each(|sink| sink.end(Instant::now() + LAST_LINES));
        stays.extend(started);
        *active = Active { outcomes: settings.outcomes, users: settings.users.clone(), sinks: stays };
        let kinds = if active.sinks.is_empty() { Kinds::NONE } else { settings.kinds };
        self.0.wanted.store(kinds.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Lines since the server started.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Totals { written, dropped } = &*self.0.totals;
        Counts { written: written.load(Ordering::Relaxed), dropped: dropped.load(Ordering::Relaxed) }
    }

    /// Ends the log: waits until everything is written, but no longer than `patience`. What is not written by then is lost.
    pub fn finish(&self, patience: Duration) {
        self.0.wanted.store(Kinds::NONE.bits(), Ordering::Relaxed);
        let sinks = std::mem::take(&mut self.0.active.write().sinks);
        let until = Instant::now() + patience;
        sinks.iter().for_each(|sink| sink.end(until));
        sinks.iter().for_each(|sink| sink.wait(until));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::event::of_tests::removal;
    use crate::{FileSettings, Outcome, User};

    fn file(path: PathBuf) -> Option<FileSettings> {
        Some(FileSettings { path, bytes_max: None, kept: 1 })
    }

    fn paths(text: &str) -> Vec<String> {
        let path = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["path"].as_str().unwrap().to_owned()
        };
        text.lines().map(path).collect()
    }

    #[test]
    fn it_is_off_until_it_has_a_sink() {
        let log = AccessLog::default();
        assert!(Kind::ALL.into_iter().all(|kind| !log.wants(kind)));
        log.use_settings(&Settings::default()).unwrap();
        assert!(!log.wants(Kind::Delete));
        log.write(&removal(b"a"));
        assert_eq!(log.counts(), Counts::default());
    }

    #[test]
    fn settings_change_while_events_are_written() {
        let place = tempfile::tempdir().unwrap();
        let (one, other) = (place.path().join("one"), place.path().join("other"));
        let log = AccessLog::default();
        let settings = Settings { file: file(one.clone()), ..Settings::default() };
        log.use_settings(&settings).unwrap();
        let done = Event { outcome: Outcome::Done, ..removal(b"a") };
        log.write(&done);
        log.write(&Event { kind: Kind::Read, ..removal(b"read") });
        let failures = Settings { outcomes: Outcomes::Failures, ..settings.clone() };
        log.use_settings(&failures).unwrap();
        log.write(&Event { path: Some(b"b"), ..done.clone() });
        log.write(&removal(b"c"));
        let bad = Settings { file: file("/no/such/place".into()), ..settings.clone() };
        assert_eq!(log.use_settings(&bad).unwrap_err().path, PathBuf::from("/no/such/place"));
        log.write(&removal(b"d"));
        let others = Users { only: vec![User::Name("otto".to_owned())], except: Vec::new() };
        log.use_settings(&Settings { users: others, ..settings.clone() }).unwrap();
        log.write(&removal(b"not otto's"));
        log.use_settings(&Settings { file: file(other.clone()), ..settings }).unwrap();
        log.write(&removal(b"e"));
        log.finish(Duration::from_secs(60));
        log.write(&removal(b"f"));
        let deadline = Instant::now() + Duration::from_secs(60);
        let read = |path| paths(&std::fs::read_to_string(path).unwrap());
        while read(&one).len() < 3 {
            assert!(Instant::now() < deadline, "{:?}", read(&one));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(
            (read(&one), read(&other)),
            (vec!["/a".into(), "/c".into(), "/d".into()], vec!["/e".into()])
        );
        assert_eq!(log.counts(), Counts { written: 4, dropped: 0 });
    }
}
