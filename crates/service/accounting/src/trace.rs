//! Recording the operations of clients on a share, so that they can be replayed against a plan.
//!
//! The recording is held in memory until it is fetched, up to [`HELD_MAX`]. It ends when its time is over, or when nothing
//! has been fetched for [`PATIENCE`].

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Api, Client};

/// Operations that wait to be fetched. Further operations are lost, and counted.
const HELD_MAX: usize = 262_144;

/// How long a recording goes on without being fetched.
const PATIENCE: Duration = Duration::from_secs(30);

/// An operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// When it arrived, since the recording began.
    pub at: Duration,
    /// The operation.
    pub api: &'static Api,
    /// The client.
    pub client: Client,
    /// The data that it moved; None for names and attributes.
    pub data: Option<TracedData>,
}

/// The data that an operation moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedData {
    /// The number of the file.
    pub file: u64,
    /// The offset in bytes.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// The operations that ended since the last fetch, in the order in which they ended.
    pub operations: Vec<Traced>,
    /// Operations lost since the recording began, because they were not fetched in time.
    pub lost: u64,
    /// Whether the recording has ended and this is its last part.
    pub is_over: bool,
}

/// The share is being recorded already.
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

/// The recorder of one share.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Option<Recording>>);

impl Recorder {
    pub fn begin(&self, now: Instant, time: Duration) -> Result<(), AlreadyRecording> {
        let mut recording = self.0.lock();
        if recording.as_ref().is_some_and(|recording| !recording.is_over(now)) {
            return Err(AlreadyRecording);
        }
        *recording = Some(Recording { begun: now, ends: now + time, taken: now, held: Vec::new(), lost: 0 });
        Ok(())
    }

    /// Records an operation that arrived at `arrived` and has ended. Returns whether the recording goes on.
    pub fn note(
        &self,
        arrived: Instant,
        (api, client): (&'static Api, Client),
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
        // An operation that arrived before the recording began is not part of it.
        if let Some(at) = arrived.checked_duration_since(present.begun) {
            present.held.push(Traced { at, api, client, data });
        }
        true
    }

    /// What was recorded since the last fetch; None if nothing is being recorded. The last part ends the recording.
    #[must_use]
    pub fn take(&self, now: Instant) -> Option<Recorded> {
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
    use crate::api::of_tests::{CLOSE, READ};

    const CLIENT: Client = Client::Guid([7; 16]);

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_comes_in_its_time_is_told_once() {
        let read = (&READ, CLIENT);
        let (recorder, now) = (Recorder::default(), Instant::now());
        assert!(!recorder.note(now, read, None) && recorder.take(now).is_none());
        recorder.begin(now, SECOND).unwrap();
        assert_eq!(recorder.begin(now, SECOND), Err(AlreadyRecording));
        let data = Some(TracedData { file: 7, offset: 4096, bytes: 512 });
        assert!(recorder.note(now + SECOND / 2, read, data));
        let taken = recorder.take(now + SECOND / 2).unwrap();
        let expected = Traced { at: SECOND / 2, api: &READ, client: CLIENT, data };
        assert_eq!((taken.operations, taken.lost, taken.is_over), (vec![expected], 0, false));
        assert!(!recorder.note(now + SECOND, read, data), "its time is over");
        assert_eq!(recorder.take(now + SECOND), Some(Recorded { is_over: true, ..Recorded::default() }));
        assert_eq!(recorder.take(now + SECOND), None);
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_forgotten() {
        let close = (&CLOSE, CLIENT);
        let (recorder, now) = (Recorder::default(), Instant::now());
        recorder.begin(now, SECOND * 3600).unwrap();
        for _ in 0..HELD_MAX + 3 {
            assert!(recorder.note(now, close, None));
        }
        let taken = recorder.take(now).unwrap();
        assert_eq!((taken.operations.len(), taken.lost), (HELD_MAX, 3));
        assert!(recorder.note(now, close, None));
        assert!(!recorder.note(now + PATIENCE, close, None));
        assert!(recorder.0.lock().is_none());
        recorder.begin(now + PATIENCE, SECOND).unwrap();
    }
}
