//! Recording what clients ask a share for: so that it can be replayed against a plan.
//!
//! What is recorded waits in memory until somebody takes it, and no more than [`HELD_MAX`]; nothing is recorded any more when
//! its time is over, or nobody has taken anything for [`PATIENCE`].

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Api, Client, Protocol};

/// Operations that wait to be taken; those that come when there are so many are lost, and counted.
const HELD_MAX: usize = 262_144;

/// So long it goes on without being asked for what it has.
const PATIENCE: Duration = Duration::from_secs(30);

/// An operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// When it came, since the recording began.
    pub at: Duration,
    /// What it was.
    pub api: Api,
    /// How it came.
    pub protocol: Protocol,
    /// Whose it was.
    pub client: Client,
    /// What data it moved; none for names and attributes.
    pub data: Option<TracedData>,
}

/// What data an operation has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedData {
    /// The number of the file.
    pub file: u64,
    /// From where on.
    pub offset: u64,
    /// How much, in bytes.
    pub bytes: u64,
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// What has ended since the last time, in the order in which it ended.
    pub operations: Vec<Traced>,
    /// Operations that were lost, since the recording began, as nobody took them in time.
    pub lost: u64,
    /// Whether nothing more comes.
    pub is_over: bool,
}

/// There is a recording of the share already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the share is being recorded already")]
pub struct AlreadyRecording;

#[derive(Debug)]
struct Recording {
    begun: Instant,
    ends: Instant,
    taken: Instant,
    held: Vec<Traced>,
    lost: u64,
}

impl Recording {
    fn is_over(&self, now: Instant) -> bool {
        now >= self.ends || now.saturating_duration_since(self.taken) >= PATIENCE
    }
}

/// Records one share.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Option<Recording>>);

impl Recorder {
    pub(crate) fn begin(&self, now: Instant, time: Duration) -> Result<(), AlreadyRecording> {
        let mut recording = self.0.lock();
        if recording.as_ref().is_some_and(|recording| !recording.is_over(now)) {
            return Err(AlreadyRecording);
        }
        *recording = Some(Recording { begun: now, ends: now + time, taken: now, held: Vec::new(), lost: 0 });
        Ok(())
    }

    /// An operation that came at `arrived` has ended; whether there is more to record.
    pub(crate) fn note(
        &self,
        arrived: Instant,
        api: Api,
        of: (Protocol, Client),
        data: Option<TracedData>,
    ) -> bool {
        let mut recording = self.0.lock();
        let Some(present) = recording.as_mut() else { return false };
        if present.is_over(arrived) {
            if !present.held.is_empty() && arrived.saturating_duration_since(present.taken) >= PATIENCE {
                *recording = None; // nobody wants it
            }
            return false;
        }
        if present.held.len() >= HELD_MAX {
            present.lost += 1;
            return true;
        }
        // What came before the recording began is no part of it.
        if let Some(at) = arrived.checked_duration_since(present.begun) {
            present.held.push(Traced { at, api, protocol: of.0, client: of.1, data });
        }
        true
    }

    /// What was recorded since the last time; none: nothing is recorded. With the last part the recording is forgotten.
    pub(crate) fn take(&self, now: Instant) -> Option<Recorded> {
        let mut recording = self.0.lock();
        let present = recording.as_mut()?;
        let is_over = present.is_over(now);
        present.taken = now;
        let taken = Recorded { operations: std::mem::take(&mut present.held), lost: present.lost, is_over };
        if is_over {
            *recording = None;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const OF: (Protocol, Client) = (Protocol::Smb, Client::Unknown);

    #[test]
    fn what_comes_in_its_time_is_told_once() {
        let (recorder, now) = (Recorder::default(), Instant::now());
        assert!(!recorder.note(now, Api::Read, OF, None) && recorder.take(now).is_none());
        recorder.begin(now, SECOND).unwrap();
        assert_eq!(recorder.begin(now, SECOND), Err(AlreadyRecording));
        let data = Some(TracedData { file: 7, offset: 4096, bytes: 512 });
        assert!(recorder.note(now + SECOND / 2, Api::Read, OF, data));
        let taken = recorder.take(now + SECOND / 2).unwrap();
        let (protocol, client) = OF;
        let expected = Traced { at: SECOND / 2, api: Api::Read, protocol, client, data };
        assert_eq!((taken.operations, taken.lost, taken.is_over), (vec![expected], 0, false));
        assert!(!recorder.note(now + SECOND, Api::Read, OF, data), "its time is over");
        assert_eq!(recorder.take(now + SECOND), Some(Recorded { is_over: true, ..Recorded::default() }));
        assert_eq!(recorder.take(now + SECOND), None);
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_forgotten() {
        let (recorder, now) = (Recorder::default(), Instant::now());
        recorder.begin(now, SECOND * 3600).unwrap();
        for _ in 0..HELD_MAX + 3 {
            assert!(recorder.note(now, Api::Close, OF, None));
        }
        let taken = recorder.take(now).unwrap();
        assert_eq!((taken.operations.len(), taken.lost), (HELD_MAX, 3));
        assert!(recorder.note(now, Api::Close, OF, None));
        assert!(!recorder.note(now + PATIENCE, Api::Close, OF, None));
        assert!(recorder.0.lock().is_none());
        recorder.begin(now + PATIENCE, SECOND).unwrap();
    }
}
