//! Asynchronous copies: the stateids with which a client queries and cancels them, and is told of their end (RFC 7862
//! 4.8, 15.2, 15.8, 15.9, 16.1).

use nfs_wire::v4::status::Status;

use super::limits::LimitReached;
use super::stateid::{FileKey, Other, Stateid, StateidError};

/// The most copies of one client that are known at a time: those under way, and those whose end the client has not
/// acknowledged.
pub const OFFLOADS_MAX: usize = 16;

/// The progress of a copy. `R` is what the server keeps with a copy that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<R> {
    /// Under way.
    Running(R),
    /// The copy has ended; the client has not acknowledged that.
    Ended {
        /// Bytes that were copied.
        copied: u64,
        /// Whether everything was copied that could be.
        outcome: Result<(), Status>,
    },
}

#[derive(Debug)]
struct Offload<R> {
    other: Other,
    /// The destination file.
    file: FileKey,
    progress: Progress<R>,
}

/// The copies of one client, in the order in which they began.
#[derive(Debug)]
pub struct Offloads<R>(Vec<Offload<R>>);

impl<R> Default for Offloads<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> Offloads<R> {
    /// A copy to a file continues after the reply. The oldest copy whose end was reported and not acknowledged makes
    /// room for it.
    ///
    /// # Errors
    /// [`LimitReached`] while [`OFFLOADS_MAX`] copies are under way.
    pub fn begin(&mut self, other: Other, file: FileKey, running: R) -> Result<Stateid, LimitReached> {
        if self.0.len() >= OFFLOADS_MAX {
            let oldest = self.0.iter().position(|offload| matches!(offload.progress, Progress::Ended { .. }));
            self.0.remove(oldest.ok_or(LimitReached("copies"))?);
        }
        self.0.push(Offload { other, file, progress: Progress::Running(running) });
        // 4.8: "A copy offload stateid's seqid MUST NOT be zero."
        Ok(Stateid { seqid: 1, other })
    }

    fn place(&self, sent: Stateid, file: FileKey) -> Result<usize, StateidError> {
        let of = |offload: &Offload<R>| offload.other == sent.other && offload.file == file;
        // 4.8: "a copy offload stateid with a seqid of zero MUST be considered invalid"; the seqid never changes.
        self.0.iter().position(of).filter(|_| sent.seqid == 1).ok_or(StateidError::Bad)
    }

    /// OFFLOAD_STATUS for a copy to this file.
    ///
    /// # Errors
    /// [`StateidError::Bad`].
    pub fn progress(&self, sent: Stateid, file: FileKey) -> Result<&Progress<R>, StateidError> {
        let place = self.place(sent, file)?;
        self.0.get(place).map(|offload| &offload.progress).ok_or(StateidError::Bad)
    }

    /// OFFLOAD_CANCEL: the stateid ends. The caller must stop a copy that is under way.
    ///
    /// # Errors
    /// [`StateidError::Bad`].
    pub fn cancel(&mut self, sent: Stateid, file: FileKey) -> Result<Progress<R>, StateidError> {
        let place = self.place(sent, file)?;
        Ok(self.0.remove(place).progress)
    }

    /// A copy has ended. Returns whether the client still knows its stateid.
    pub fn ended(&mut self, other: Other, copied: u64, outcome: Result<(), Status>) -> bool {
        let offload = self.0.iter_mut().find(|offload| offload.other == other);
        let is_known = offload.is_some();
        if let Some(offload) = offload {
            offload.progress = Progress::Ended { copied, outcome };
        }
        is_known
    }

    /// The client has answered CB_OFFLOAD: the stateid ends.
    pub fn acknowledged(&mut self, other: Other) {
        self.0.retain(|offload| offload.other != other);
    }

    /// Whether a copy is under way.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.0.iter().any(|offload| matches!(offload.progress, Progress::Running(_)))
    }

    /// All stateids end: the client is gone. The caller must stop the copies that are under way.
    pub fn end(&mut self) -> Vec<R> {
        self.take(|_| true)
    }

    /// All stateids of a share end: the share is gone. The caller must stop the copies that are under way.
    pub fn end_share(&mut self, share: u32) -> Vec<R> {
        self.take(|offload| offload.file.share == share)
    }

    fn take(&mut self, which: impl Fn(&Offload<R>) -> bool) -> Vec<R> {
        let taken = self.0.extract_if(.., |offload| which(offload));
        taken
            .filter_map(|offload| match offload.progress {
                Progress::Running(running) => Some(running),
                Progress::Ended { .. } => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::stateid::Names;

    const FILE: FileKey = FileKey::live(1, 2);
    const OTHER_FILE: FileKey = FileKey::live(2, 2);

    fn begin(offloads: &mut Offloads<u32>, names: &mut Names, file: FileKey, running: u32) -> Stateid {
        offloads.begin(names.make().unwrap(), file, running).unwrap()
    }

    #[test]
    fn a_copy_is_known_by_its_stateid_until_its_end_is_acknowledged() {
        let (mut offloads, mut names) = (Offloads::default(), Names::new(1, 1));
        let stateid = begin(&mut offloads, &mut names, FILE, 7);
        assert_eq!((stateid.seqid, offloads.progress(stateid, FILE)), (1, Ok(&Progress::Running(7))));
        for seqid in [0, 2, u32::MAX] {
            assert_eq!(offloads.progress(Stateid { seqid, ..stateid }, FILE), Err(StateidError::Bad));
        }
        assert_eq!(offloads.progress(stateid, OTHER_FILE), Err(StateidError::Bad));
        assert!(offloads.is_running() && offloads.ended(stateid.other, 5, Err(Status::NoSpc)));
        let ended = Progress::Ended { copied: 5, outcome: Err(Status::NoSpc) };
        assert_eq!((offloads.progress(stateid, FILE), offloads.is_running()), (Ok(&ended), false));
        offloads.acknowledged(stateid.other);
        assert_eq!(offloads.progress(stateid, FILE), Err(StateidError::Bad));
    }

    #[test]
    fn a_copy_that_is_cancelled_is_not_known_any_more() {
        let (mut offloads, mut names) = (Offloads::default(), Names::new(1, 1));
        let stateid = begin(&mut offloads, &mut names, FILE, 7);
        assert_eq!(offloads.cancel(Stateid { seqid: 0, ..stateid }, FILE), Err(StateidError::Bad));
        assert_eq!(offloads.cancel(stateid, FILE), Ok(Progress::Running(7)));
        assert_eq!(offloads.cancel(stateid, FILE), Err(StateidError::Bad));
        assert!(!offloads.ended(stateid.other, 5, Ok(())), "nobody is to be told");
    }

    #[test]
    fn a_client_has_so_many_and_the_oldest_that_ended_makes_room() {
        let (mut offloads, mut names) = (Offloads::default(), Names::new(1, 1));
        let all: Vec<_> =
            (0..).take(OFFLOADS_MAX).map(|n| begin(&mut offloads, &mut names, FILE, n)).collect();
        let refused = offloads.begin(names.make().unwrap(), FILE, 99);
        assert_eq!(refused, Err(LimitReached("copies")));
        offloads.ended(all[3].other, 1, Ok(()));
        offloads.ended(all[1].other, 1, Ok(()));
        begin(&mut offloads, &mut names, FILE, 99);
        assert_eq!(offloads.progress(all[1], FILE), Err(StateidError::Bad));
        assert!(offloads.progress(all[3], FILE).is_ok() && offloads.0.len() == OFFLOADS_MAX);
    }

    #[test]
    fn copies_end_with_their_share_and_with_their_client() {
        let (mut offloads, mut names) = (Offloads::default(), Names::new(1, 1));
        let (one, two) =
            (begin(&mut offloads, &mut names, FILE, 1), begin(&mut offloads, &mut names, OTHER_FILE, 2));
        let ended = begin(&mut offloads, &mut names, FILE, 3);
        offloads.ended(ended.other, 0, Ok(()));
        assert_eq!(offloads.end_share(1), [1]);
        assert_eq!(offloads.progress(one, FILE), Err(StateidError::Bad));
        assert_eq!(offloads.progress(ended, FILE), Err(StateidError::Bad));
        assert_eq!(offloads.progress(two, OTHER_FILE), Ok(&Progress::Running(2)));
        assert_eq!((offloads.end(), offloads.end().len()), (vec![2], 0));
    }
}
