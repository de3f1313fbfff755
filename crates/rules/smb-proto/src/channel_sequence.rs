//! Open.ChannelSequence: distinguishes a request that is sent again after a channel failed from one that arrives late.
//! [MS-SMB2] 3.3.5.2.10, 3.3.4.1.
//!
//! Only for SMB 3.x and commands that name a file. Every request that is counted on arrival is discounted when it is
//! answered.

/// The request may be a late one: WRITE, SET_INFO and IOCTL fail with STATUS_FILE_NOT_AVAILABLE, other commands are
/// served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the channel sequence is not the open's")]
pub struct Late;

/// The counters of one open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelSequence {
    /// Open.ChannelSequence
    current: u16,
    /// Open.OutstandingRequestCount: requests under way with the current sequence number
    outstanding: u32,
    /// Open.OutstandingPreRequestCount: requests under way since before the sequence number changed
    outstanding_before: u32,
}

impl ChannelSequence {
    /// The counters of an open that was created by a CREATE with this ChannelSequence.
    pub fn new(current: u16) -> Self {
        Self { current, ..Self::default() }
    }

    /// A request arrives with `sequence` (ChannelSequence of its header); `replay` is SMB2_FLAGS_REPLAY_OPERATION.
    ///
    /// # Errors
    /// [`Late`]. Such a request is not counted, so [`ChannelSequence::answer`] must not be called for it.
    pub fn arrive(&mut self, sequence: u16, replay: bool) -> Result<(), Late> {
        let ahead = sequence.wrapping_sub(self.current);
        if ahead > 0x7fff {
            return Err(Late);
        }
        if ahead != 0 {
            self.outstanding_before = self.outstanding_before.saturating_add(self.outstanding);
            (self.outstanding, self.current) = (0, sequence);
        }
        if replay && self.outstanding_before > 0 {
            return Err(Late);
        }
        self.outstanding = self.outstanding.saturating_add(1);
        Ok(())
    }

    /// A request that [`ChannelSequence::arrive`] accepted is answered. [MS-SMB2] 3.3.4.1.
    pub fn answer(&mut self, sequence: u16) {
        if sequence == self.current {
            self.outstanding = self.outstanding.saturating_sub(1);
        } else {
            self.outstanding_before = self.outstanding_before.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the counters represent: the requests under way, each with its sequence number, and the newest sequence
    /// number.
    #[derive(Default)]
    struct Model {
        current: u16,
        under_way: Vec<u16>,
    }

    impl Model {
        fn arrive(&mut self, sequence: u16, replay: bool) -> bool {
            if sequence.wrapping_sub(self.current) >= 0x8000 {
                return false;
            }
            self.current = sequence;
            let passes = !replay || self.under_way.iter().all(|earlier| *earlier == sequence);
            if passes {
                self.under_way.push(sequence);
            }
            passes
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The sequence number, as a distance from the newest so far, and whether it is a replay.
        Arrive(i16, bool),
        /// One of the requests under way.
        Answer(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (-2..3_i16, any::<bool>()).prop_map(|(ahead, replay)| Step::Arrive(ahead, replay)),
            1 => (any::<i16>(), any::<bool>()).prop_map(|(ahead, replay)| Step::Arrive(ahead, replay)),
            3 => any::<prop::sample::Index>().prop_map(Step::Answer),
        ]
    }

    proptest! {
        /// As long as no sequence number is repeated while earlier requests are under way: the two counters of the
        /// specification cannot distinguish a request of 65536 changes ago from a current one.
        #[test]
        fn the_counters_are_those_of_the_requests_under_way(
            start in any::<u16>(),
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let mut model = Model { current: start, ..Model::default() };
            let mut open = ChannelSequence::new(start);
            let mut changes = 0_u32;
            for step in steps {
                match step {
                    Step::Arrive(ahead, replay) => {
                        let sequence = model.current.wrapping_add_signed(ahead);
                        changes += u32::try_from(ahead).unwrap_or(0);
                        if changes >= 0x1_0000 {
                            return Ok(());
                        }
                        prop_assert_eq!(open.arrive(sequence, replay).is_ok(), model.arrive(sequence, replay));
                    }
                    Step::Answer(which) if !model.under_way.is_empty() => {
                        open.answer(model.under_way.swap_remove(which.index(model.under_way.len())));
                    }
                    Step::Answer(_) => {}
                }
                let now = model.under_way.iter().filter(|sequence| **sequence == model.current).count();
                prop_assert_eq!(open.outstanding as usize, now);
                prop_assert_eq!(open.outstanding_before as usize, model.under_way.len() - now);
            }
        }
    }

    #[test]
    fn a_request_from_before_the_failure_is_late() {
        let mut open = ChannelSequence::new(0);
        assert_eq!(open.arrive(0, false), Ok(()));
        assert_eq!(open.arrive(1, false), Ok(()));
        assert_eq!(open.arrive(0, false), Err(Late));
        assert_eq!(open.arrive(0, true), Err(Late));
        assert_eq!(open.arrive(0x8000, false), Ok(())); // 0x7fff ahead
        assert_eq!(open.arrive(0, false), Err(Late)); // 0x8000 ahead: behind
    }

    #[test]
    fn sequences_wrap() {
        let mut open = ChannelSequence::new(0xffff);
        assert_eq!(open.arrive(0, false), Ok(()));
        assert_eq!(open.arrive(0xffff, false), Err(Late));
    }

    #[test]
    fn a_replay_waits_until_everything_from_before_is_answered() {
        let mut open = ChannelSequence::new(0);
        open.arrive(0, false).unwrap();
        assert_eq!(open.arrive(1, true), Err(Late));
        assert_eq!(open.arrive(1, true), Err(Late));
        open.answer(0);
        assert_eq!(open.arrive(1, true), Ok(()));
        open.answer(1);
        assert_eq!(open, ChannelSequence::new(1));
        assert_eq!(open.arrive(1, true), Ok(()));
    }
}
