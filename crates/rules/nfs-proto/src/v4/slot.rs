//! The slots of a session's fore channel, which run every request exactly once (RFC 8881 2.10.6).
//!
//! A slot carries one request at a time. Its sequence ID distinguishes a new request from a retry. The reply is kept
//! until the next request shows that the client has received it.

use std::hash::Hasher;
use std::sync::Arc;

use nfs_wire::v4::status::Status;
use planted::Fault;
use siphasher::sip::SipHasher13;

/// How many bytes of a request the fingerprint covers.
pub const FINGERPRINT_BYTES: usize = 512;

/// Distinguishes a retry from a different request with the same sequence ID, by the caller's credential and the
/// beginning of the operations (RFC 8881 2.10.6.1.3.1, "False Retry").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a request with this credential and these arguments.
    #[must_use]
    pub fn new(credential: &[u8], arguments: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write_usize(credential.len());
        hasher.write(credential);
        hasher.write_usize(arguments.len());
        hasher.write(arguments.get(..FINGERPRINT_BYTES).unwrap_or(arguments));
        Self(hasher.finish())
    }
}

/// The arguments of SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `sa_slotid`.
    pub slot: u32,
    /// `sa_sequenceid`.
    pub sequence: u32,
    /// `sa_highest_slotid`.
    pub highest_slot: u32,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// New: run the request, then call [`SlotTable::end`].
    New,
    /// A retry of a request whose reply was kept: send the reply again.
    Replay(Arc<[u8]>),
    /// A retry of a request whose reply the client did not ask to keep. SEQUENCE succeeds, and the next operation is
    /// answered with NFS4ERR_RETRY_UNCACHED_REP (RFC 8881 2.10.6.1.3).
    Uncached,
}

/// Whether a reply is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptReply {
    /// The client did not ask to keep the reply.
    No,
    /// The reply, and the fingerprint of the request.
    Reply(Arc<[u8]>, Fingerprint),
}

#[derive(Debug, Default)]
enum SlotState {
    /// No request has come yet: a session starts "with the error NFS4ERR_SEQ_MISORDERED" in each slot
    /// (RFC 8881 18.36.4).
    #[default]
    Unused,
    Running,
    Done(KeptReply),
    /// The client has given the slot back. When they use it again, some clients continue its sequence and others begin
    /// with 1.
    Retired,
}

#[derive(Debug, Default)]
struct Slot {
    /// The sequence ID of the last request.
    sequence: u32,
    state: SlotState,
    /// Whether a retry of the last request came while that request was running.
    is_awaited: bool,
    /// Which reduction of the target the reply to the last request announced.
    told: u32,
}

/// The slots of one session, and the replies that they keep.
#[derive(Debug)]
pub struct SlotTable {
    /// Grows up to `granted` as the client uses further slots.
    slots: Vec<Slot>,
    /// The number of slots negotiated with CREATE_SESSION.
    most: u32,
    granted: u32,
    /// The number of slots that the client should use. It is less than `granted` until the client is known to have
    /// learned of it.
    target: u32,
    /// How often the target was reduced.
    falls: u32,
    running: u32,
    running_max: u32,
    highest_used: Option<u32>,
    kept_bytes: usize,
}

/// How a session's slots are used at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Slots that the client may use.
    pub granted: u32,
    /// Requests that are running.
    pub running: u32,
    /// The most requests that ran at the same time.
    pub running_max: u32,
    /// The highest slot that was ever used.
    pub highest_used: Option<u32>,
    /// Bytes of replies that are kept.
    pub kept_bytes: usize,
}

impl SlotTable {
    /// A table of this many slots, at least one.
    #[must_use]
    pub fn new(granted: u32) -> Self {
        let most = granted.max(1);
        Self {
            slots: Vec::new(),
            most,
            granted: most,
            target: most,
            falls: 0,
            running: 0,
            running_max: 0,
            highest_used: None,
            kept_bytes: 0,
        }
    }

    /// The highest slot that the client may use: `sr_highest_slotid`.
    #[must_use]
    pub fn highest_slot(&self) -> u32 {
        self.granted.saturating_sub(1)
    }

    /// The highest slot that the client should use from now on: `sr_target_highest_slotid`.
    #[must_use]
    pub fn target_highest_slot(&self) -> u32 {
        self.target.saturating_sub(1)
    }

    /// The number of slots that the client may use.
    #[must_use]
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// Sets how many slots the client should use, up to the number negotiated (RFC 8881 2.10.6.1). An increase takes
    /// effect at once, a reduction when a request shows that the client has learned of it. Returns whether a reduction
    /// is still pending.
    pub fn aim(&mut self, slots: u32) -> bool {
        let target = slots.clamp(1, self.most);
        if target < self.target {
            self.falls = self.falls.wrapping_add(1);
        }
        self.target = target;
        self.granted = self.granted.max(target);
        self.target < self.granted
    }

    /// The client has learned of the target and uses no slot above it: the slots above give up their replies.
    fn retire(&mut self) {
        let target = usize::try_from(self.target).unwrap_or(usize::MAX);
        let above = self.slots.get_mut(target..).unwrap_or_default();
        if above.iter().any(|slot| matches!(slot.state, SlotState::Running)) {
            return;
        }
        for slot in above.iter_mut().filter(|slot| !matches!(slot.state, SlotState::Unused)) {
            self.kept_bytes = self.kept_bytes.saturating_sub(slot.state.bytes());
            slot.state = SlotState::Retired;
        }
        self.granted = self.target;
    }

    /// A request has arrived. `fingerprint` is called only if the request may be a retry.
    ///
    /// # Errors
    /// After an error the slot is unchanged (RFC 8881 2.10.6.1.2): [`Status::BadSlot`], [`Status::BadHighSlot`];
    /// [`Status::SeqMisordered`] for a sequence ID that is neither the next nor the last; [`Status::Delay`] for a retry
    /// of a request that is still running (2.10.6.2); [`Status::SeqFalseRetry`].
    pub fn begin(
        &mut self,
        request: Request,
        fingerprint: impl FnOnce() -> Fingerprint,
    ) -> Result<Begun, Status> {
        if request.slot >= self.granted {
            return Err(Status::BadSlot);
        }
        if request.highest_slot >= self.granted {
            return Err(Status::BadHighSlot);
        }
        let index = usize::try_from(request.slot).map_err(|_| Status::BadSlot)?;
        if self.slots.len() <= index {
            self.slots.resize_with(index.saturating_add(1), Slot::default);
        }
        let slot = self.slots.get_mut(index).ok_or(Status::BadSlot)?;
        let is_anew = matches!(slot.state, SlotState::Retired) && request.sequence == 1;
        if request.sequence == slot.sequence && !is_anew && planted::strikes(Fault::RetryCarriedOut) {
            slot.state = SlotState::Running;
            self.running = self.running.saturating_add(1);
            return Ok(Begun::New);
        }
        if request.sequence == slot.sequence && !is_anew {
            return match &slot.state {
                SlotState::Unused | SlotState::Retired => Err(Status::SeqMisordered),
                SlotState::Running => {
                    slot.is_awaited = true;
                    Err(Status::Delay)
                }
                SlotState::Done(KeptReply::No) => Ok(Begun::Uncached),
                SlotState::Done(KeptReply::Reply(_, first)) if *first != fingerprint() => {
                    Err(Status::SeqFalseRetry)
                }
                SlotState::Done(KeptReply::Reply(reply, _)) => Ok(Begun::Replay(Arc::clone(reply))),
            };
        }
        let is_next = request.sequence == slot.sequence.wrapping_add(1) || is_anew;
        if !is_next || matches!(slot.state, SlotState::Running) {
            return Err(Status::SeqMisordered);
        }
        slot.sequence = request.sequence;
        slot.is_awaited = false;
        // The client has received the reply to the previous request, which announced the target, and reports that it
        // has no request under way above the target. A request sent before the client knew of the target may not be the
        // last one above it.
        let has_heard = slot.told == self.falls && request.highest_slot < self.target;
        slot.told = self.falls;
        let before = std::mem::replace(&mut slot.state, SlotState::Running);
        self.kept_bytes = self.kept_bytes.saturating_sub(before.bytes());
        self.running = self.running.saturating_add(1);
        self.running_max = self.running_max.max(self.running);
        self.highest_used = self.highest_used.max(Some(request.slot));
        if has_heard && self.target < self.granted {
            self.retire();
        }
        Ok(Begun::New)
    }

    /// A request for which [`SlotTable::begin`] returned `New` has run. Returns whether a retry of it came meanwhile and
    /// was answered with [`Status::Delay`].
    pub fn end(&mut self, slot: u32, kept: KeptReply) -> bool {
        let slot = usize::try_from(slot).ok().and_then(|index| self.slots.get_mut(index));
        let Some(slot) = slot.filter(|slot| matches!(slot.state, SlotState::Running)) else { return false };
        slot.state = SlotState::Done(kept);
        self.kept_bytes = self.kept_bytes.saturating_add(slot.state.bytes());
        debug_assert!(self.running > 0, "the request of a running slot was counted");
        self.running = self.running.saturating_sub(1);
        slot.is_awaited
    }

    /// How the slots are used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            granted: self.granted,
            running: self.running,
            running_max: self.running_max,
            highest_used: self.highest_used,
            kept_bytes: self.kept_bytes,
        }
    }
}

impl SlotState {
    fn bytes(&self) -> usize {
        match self {
            Self::Done(KeptReply::Reply(reply, _)) => reply.len(),
            Self::Unused | Self::Running | Self::Retired | Self::Done(KeptReply::No) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(slot: u32, sequence: u32) -> Request {
        Request { slot, sequence, highest_slot: slot }
    }

    fn print(text: &str) -> Fingerprint {
        Fingerprint::new(b"root", text.as_bytes())
    }

    fn reply(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    fn begin(slots: &mut SlotTable, slot: u32, sequence: u32, text: &str) -> Result<Begun, Status> {
        slots.begin(request(slot, sequence), || print(text))
    }

    fn run(slots: &mut SlotTable, slot: u32, sequence: u32, text: &str) {
        assert_eq!(begin(slots, slot, sequence, text), Ok(Begun::New));
        slots.end(slot, KeptReply::Reply(reply(text), print(text)));
    }

    #[test]
    fn a_request_that_is_sent_again_has_the_first_reply() {
        let mut slots = SlotTable::new(4);
        run(&mut slots, 0, 1, "remove");
        assert_eq!(begin(&mut slots, 0, 1, "remove"), Ok(Begun::Replay(reply("remove"))));
        assert_eq!(slots.usage().kept_bytes, 6);
        run(&mut slots, 0, 2, "link");
        assert_eq!(slots.usage().kept_bytes, 4, "the client has the first reply");
        assert_eq!(begin(&mut slots, 0, 1, "remove"), Err(Status::SeqMisordered));
    }

    #[test]
    fn a_request_that_runs_is_not_run_again() {
        let mut slots = SlotTable::new(4);
        assert_eq!(begin(&mut slots, 0, 1, "a"), Ok(Begun::New));
        assert_eq!(begin(&mut slots, 0, 1, "a"), Err(Status::Delay));
        assert_eq!(begin(&mut slots, 0, 2, "b"), Err(Status::SeqMisordered), "the client did not wait");
        assert!(slots.end(0, KeptReply::No), "the retry waits");
        assert_eq!(begin(&mut slots, 0, 1, "a"), Ok(Begun::Uncached));
        assert_eq!(begin(&mut slots, 0, 2, "b"), Ok(Begun::New));
        assert!(!slots.end(0, KeptReply::No), "no retry of this request came");
    }

    #[test]
    fn the_first_sequence_is_one() {
        for sequence in [0, 2, u32::MAX] {
            assert_eq!(begin(&mut SlotTable::new(1), 0, sequence, ""), Err(Status::SeqMisordered));
        }
    }

    #[test]
    fn the_sequence_wraps_to_zero() {
        let mut slots = SlotTable::new(1);
        run(&mut slots, 0, 1, "first");
        slots.slots[0].sequence = u32::MAX;
        run(&mut slots, 0, 0, "after the last");
        assert_eq!(begin(&mut slots, 0, u32::MAX, ""), Err(Status::SeqMisordered));
        run(&mut slots, 0, 1, "next");
    }

    #[test]
    fn another_request_or_caller_is_a_false_retry() {
        let mut slots = SlotTable::new(1);
        run(&mut slots, 0, 1, "remove");
        assert_eq!(begin(&mut slots, 0, 1, "rename"), Err(Status::SeqFalseRetry));
        let other_user = || Fingerprint::new(b"alice", b"remove");
        assert_eq!(slots.begin(request(0, 1), other_user), Err(Status::SeqFalseRetry));
        assert_eq!(
            begin(&mut slots, 0, 1, "remove"),
            Ok(Begun::Replay(reply("remove"))),
            "nothing has changed"
        );
    }

    #[test]
    fn slots_end_where_they_were_granted() {
        let mut slots = SlotTable::new(3);
        assert_eq!(begin(&mut slots, 3, 1, ""), Err(Status::BadSlot));
        assert_eq!(begin(&mut slots, u32::MAX, 1, ""), Err(Status::BadSlot));
        let high = Request { slot: 0, sequence: 1, highest_slot: 3 };
        assert_eq!(slots.begin(high, || print("")), Err(Status::BadHighSlot));
        assert!(slots.slots.is_empty(), "what is refused takes no memory");
        assert_eq!(begin(&mut slots, 2, 1, ""), Ok(Begun::New));
        assert_eq!(slots.highest_slot(), 2);
        let usage = slots.usage();
        assert_eq!((usage.granted, usage.running, usage.highest_used), (3, 1, Some(2)));
    }

    #[test]
    fn slots_are_taken_back_once_the_client_has_heard_of_it() {
        let mut slots = SlotTable::new(8);
        (0..8).for_each(|slot| run(&mut slots, slot, 1, "reply"));
        let busy = |slot, highest_slot| Request { slot, sequence: 2, highest_slot };
        assert_eq!((slots.usage().kept_bytes, slots.aim(2)), (40, true));
        assert_eq!((slots.highest_slot(), slots.target_highest_slot()), (7, 1));
        // A request that was sent before the client could know.
        assert_eq!(slots.begin(busy(0, 0), || print("")), Ok(Begun::New));
        assert_eq!((slots.begin(busy(5, 5), || print("")), slots.granted()), (Ok(Begun::New), 8));
        slots.end(0, KeptReply::No);
        // The client has learned of it, and one request is still under way.
        run(&mut slots, 0, 3, "a");
        assert_eq!(slots.granted(), 8);
        slots.end(5, KeptReply::Reply(reply("late"), print("")));
        assert_eq!(slots.begin(busy(5, 5), || print("")), Ok(Begun::Replay(reply("late"))), "not yet");
        let above = Request { slot: 0, sequence: 4, highest_slot: 5 };
        assert_eq!((slots.begin(above, || print("")), slots.granted()), (Ok(Begun::New), 8), "it uses it");
        slots.end(0, KeptReply::No);
        run(&mut slots, 0, 5, "b");
        assert_eq!((slots.granted(), slots.highest_slot(), slots.usage().kept_bytes), (2, 1, 1 + 5));
        assert_eq!(begin(&mut slots, 2, 2, ""), Err(Status::BadSlot));
        let high = Request { slot: 0, sequence: 6, highest_slot: 2 };
        assert_eq!(slots.begin(high, || print("")), Err(Status::BadHighSlot));
    }

    #[test]
    fn slots_that_come_again_begin_anew_or_go_on() {
        for next in [1, 3] {
            let mut slots = SlotTable::new(4);
            (1..=2).for_each(|sequence| run(&mut slots, 3, sequence, "reply"));
            assert!(slots.aim(1));
            (1..=2).for_each(|sequence| run(&mut slots, 0, sequence, "reply"));
            assert_eq!(slots.granted(), 1);
            assert!(!slots.aim(9));
            assert_eq!((slots.granted(), slots.target_highest_slot()), (4, 3));
            assert_eq!(
                begin(&mut slots, 3, 2, "reply"),
                Err(Status::SeqMisordered),
                "its reply was given up"
            );
            assert_eq!(begin(&mut slots, 3, next, "reply"), Ok(Begun::New));
        }
    }

    #[test]
    fn what_ends_twice_ends_once() {
        let mut slots = SlotTable::new(2);
        run(&mut slots, 0, 1, "a");
        slots.end(0, KeptReply::No);
        slots.end(1, KeptReply::No);
        assert_eq!(begin(&mut slots, 0, 1, "a"), Ok(Begun::Replay(reply("a"))));
        assert_eq!(slots.usage().running, 0);
    }

    /// What can happen to a client's request on an unreliable network.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        /// The request arrives, and so does its reply.
        Arrives,
        /// The request is lost.
        Lost,
        /// The request arrives, and its reply is lost.
        ReplyLost,
        /// An older request arrives late.
        Late(u32),
    }

    fn fate() -> impl Strategy<Value = (u32, Fate)> {
        let fate = prop_oneof![
            4 => Just(Fate::Arrives),
            1 => Just(Fate::Lost),
            2 => Just(Fate::ReplyLost),
            1 => (1..5_u32).prop_map(Fate::Late),
        ];
        (0..3_u32, fate)
    }

    proptest! {
        /// Whatever is lost, repeated or late: each request runs once, and its client gets the reply of that run.
        #[test]
        fn every_request_runs_exactly_once(fates in proptest::collection::vec(fate(), 1..200)) {
            let mut server = SlotTable::new(3);
            let mut runs = std::collections::HashMap::new();
            // The last request that the client sent on each slot, and whether it has the reply.
            let mut sent = [(0_u32, true); 3];
            let mut deliver = |slot: u32, sequence: u32| {
                let name = format!("{slot}/{sequence}");
                let begun = server.begin(request(slot, sequence), || print(&name));
                if begun == Ok(Begun::New) {
                    *runs.entry(name.clone()).or_insert(0) += 1;
                    server.end(slot, KeptReply::Reply(reply(&name), print(&name)));
                    return Ok(reply(&name));
                }
                begun.map(|begun| match begun {
                    Begun::Replay(reply) => reply,
                    other => panic!("{other:?}"),
                })
            };
            for (slot, fate) in fates {
                let (sequence, answered) = &mut sent[slot as usize];
                if let Fate::Late(back) = fate {
                    if let Some(old) = sequence.checked_sub(back).filter(|old| *old > 0) {
                        // If the newer requests were lost, nothing has arrived since: then this is the last one again.
                        let answer = deliver(slot, old);
                        let again = Ok(reply(&format!("{slot}/{old}")));
                        prop_assert!(answer == Err(Status::SeqMisordered) || answer == again, "{:?}", answer);
                    }
                    continue;
                }
                if *answered {
                    *sequence += 1;
                }
                *answered = false;
                match fate {
                    Fate::Lost | Fate::Late(_) => {}
                    Fate::ReplyLost => drop(deliver(slot, *sequence)),
                    Fate::Arrives => {
                        prop_assert_eq!(deliver(slot, *sequence), Ok(reply(&format!("{slot}/{sequence}"))));
                        *answered = true;
                    }
                }
            }
            prop_assert!(runs.values().all(|count| *count == 1), "{:?}", runs);
        }
    }
}
