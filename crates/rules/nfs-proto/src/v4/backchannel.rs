//! The slots of a session's back channel, on which the server sends requests to its client (RFC 8881 2.10.3, 20.9).
//!
//! On this channel the server is the requester: it may reuse a slot only when it knows that the client has seen the
//! previous request (2.10.6.2). A slot whose request was sent and never answered is in doubt, and is not used until the
//! answer comes.

/// The most slots of a back channel that this server uses, however many the client offers.
pub const BACK_SLOTS_MAX: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackSlotState {
    Free,
    Calling,
    /// The last request was sent and never answered.
    InDoubt,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The sequence ID of the last request.
    sequence: u32,
    state: BackSlotState,
}

/// The slots of one session's back channel.
#[derive(Debug)]
pub struct BackSlots {
    slots: Vec<Slot>,
}

/// A slot taken by a request, and the arguments for CB_SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// `csa_slotid`.
    pub slot: u32,
    /// `csa_sequenceid`.
    pub sequence: u32,
    /// `csa_highest_slotid`.
    pub highest_slot: u32,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client has answered: CB_SEQUENCE succeeded, whatever the result of the other operations.
    Answered,
    /// The client has not accepted the request, or the request was never sent: "the sequence ID of the slot MUST NOT
    /// change" (2.10.6.1.2).
    NotBegun,
    /// Unknown: the request was sent, and no answer came.
    Unanswered,
}

impl BackSlots {
    /// As many slots as the client offers, up to [`BACK_SLOTS_MAX`].
    #[must_use]
    pub fn new(offered: u32) -> Self {
        let count = usize::try_from(offered.clamp(1, BACK_SLOTS_MAX)).unwrap_or(1);
        Self { slots: vec![Slot { sequence: 0, state: BackSlotState::Free }; count] }
    }

    /// Takes the lowest free slot; None while all are taken.
    pub fn begin(&mut self) -> Option<Ticket> {
        let (index, slot) =
            self.slots.iter_mut().enumerate().find(|(_, slot)| slot.state == BackSlotState::Free)?;
        slot.state = BackSlotState::Calling;
        slot.sequence = slot.sequence.wrapping_add(1);
        let (sequence, slot) = (slot.sequence, u32::try_from(index).ok()?);
        let highest = self.slots.iter().rposition(|slot| slot.state == BackSlotState::Calling);
        let highest_slot = highest.and_then(|index| u32::try_from(index).ok()).unwrap_or(slot);
        Some(Ticket { slot, sequence, highest_slot })
    }

    /// A request has ended. An answer may also come for a request that was given up before.
    pub fn end(&mut self, ticket: Ticket, ended: Ended) {
        let slot = usize::try_from(ticket.slot).ok().and_then(|index| self.slots.get_mut(index));
        let Some(slot) =
            slot.filter(|slot| slot.sequence == ticket.sequence && slot.state != BackSlotState::Free)
        else {
            return;
        };
        slot.state = match ended {
            Ended::Answered => BackSlotState::Free,
            Ended::NotBegun => {
                slot.sequence = slot.sequence.wrapping_sub(1);
                BackSlotState::Free
            }
            Ended::Unanswered => BackSlotState::InDoubt,
        };
    }

    /// Whether every slot is in doubt: SEQ4_STATUS_BACKCHANNEL_FAULT (RFC 8881 18.46.3, "it has lost track of the sequence
    /// ID").
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        self.slots.iter().all(|slot| slot.state == BackSlotState::InDoubt)
    }

    /// Requests that wait for an answer.
    #[must_use]
    pub fn calling(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == BackSlotState::Calling).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(slot: u32, sequence: u32, highest_slot: u32) -> Option<Ticket> {
        Some(Ticket { slot, sequence, highest_slot })
    }

    #[test]
    fn requests_take_the_lowest_free_slot() {
        let mut slots = BackSlots::new(2);
        let first = slots.begin();
        assert_eq!(first, ticket(0, 1, 0));
        assert_eq!(slots.begin(), ticket(1, 1, 1));
        assert_eq!(slots.begin(), None);
        slots.end(first.unwrap(), Ended::Answered);
        assert_eq!(slots.begin(), ticket(0, 2, 1), "slot 1 is still in use");
        assert_eq!(slots.calling(), 2);
    }

    #[test]
    fn what_the_client_did_not_accept_took_no_sequence_id() {
        let mut slots = BackSlots::new(1);
        let refused = slots.begin().unwrap();
        slots.end(refused, Ended::NotBegun);
        assert_eq!(slots.begin(), Some(refused));
    }

    #[test]
    fn a_slot_in_doubt_rests_until_its_answer_comes() {
        let mut slots = BackSlots::new(2);
        let lost = slots.begin().unwrap();
        slots.end(lost, Ended::Unanswered);
        assert_eq!(slots.begin(), ticket(1, 1, 1));
        assert!(!slots.is_faulty());
        slots.end(ticket(1, 1, 1).unwrap(), Ended::Unanswered);
        assert!(slots.is_faulty() && slots.begin().is_none());
        slots.end(lost, Ended::Answered);
        assert_eq!(slots.begin(), ticket(0, 2, 0));
        slots.end(lost, Ended::Answered);
        assert_eq!(slots.calling(), 1, "an answer to an older request says nothing of this one");
    }

    #[test]
    fn the_server_uses_no_more_slots_than_it_needs() {
        for (offered, used) in
            [(0, 1), (1, 1), (BACK_SLOTS_MAX, 32), (BACK_SLOTS_MAX + 1, 32), (u32::MAX, 32)]
        {
            assert_eq!(BackSlots::new(offered).slots.len(), used);
        }
    }
}
