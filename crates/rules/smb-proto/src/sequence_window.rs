//! Connection.CommandSequenceWindow: which message identifiers a client may use. [MS-SMB2] 3.3.1.1, 3.3.1.7, 3.3.5.2.3,
//! 3.3.5.2.5.
//!
//! The window is a range `[low, high)` of granted identifiers, some of which have been used. Its width is limited: a
//! client that leaves an identifier unused gets no more credits once the window extends from there to the limit. The
//! state of a connection therefore has a fixed size, one bit for each identifier that may be granted.

/// The highest identifier is never granted: 0xFFFFFFFFFFFFFFFF is the MessageId of oplock break notifications.
const RESERVED_MESSAGE_ID: u64 = u64::MAX;

/// Bytes that one credit pays for. [MS-SMB2] 3.1.5.2.
const BYTES_PER_CREDIT: u32 = 65_536;

/// A request used an identifier outside the window, or one that was used before.
///
/// [MS-SMB2] 3.3.5.2.3: "the server SHOULD terminate the connection".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message identifier is not in the sequence window")]
pub struct NotInWindow;

/// The identifiers that a client may use on one connection.
#[derive(Clone, Debug)]
pub struct SequenceWindow {
    /// The lowest identifier that is granted and unused; `high` if there is none.
    low: u64,
    /// The lowest identifier that was never granted.
    high: u64,
    /// The most identifiers between `low` and `high`.
    width_max: u64,
    /// How many identifiers in `[low, high)` have been used.
    used: u64,
    /// A ring of one bit for each identifier in `[low, high)`: set when used.
    bits: Box<[u64]>,
}

impl SequenceWindow {
    /// The window of a new connection: the set { 0 }, which is one credit. It never becomes wider than `width_max` (at
    /// least 1), which is also the most credits that a client can hold.
    pub fn new(width_max: u16) -> Self {
        let width_max = width_max.max(1);
        let words = usize::from(width_max).next_power_of_two().div_ceil(64);
        Self { low: 0, high: 1, width_max: u64::from(width_max), used: 0, bits: vec![0; words].into() }
    }

    /// Uses the identifiers of one request: `credit_charge` of them, starting at `message_id` (0 counts as 1; on a
    /// connection without multi-credit support, pass 1). Not to be called for CANCEL, which uses none.
    ///
    /// # Errors
    /// [`NotInWindow`] if any of them was not granted or was used before. None is used then.
    pub fn consume(&mut self, message_id: u64, credit_charge: u16) -> Result<(), NotInWindow> {
        let end = message_id.checked_add(u64::from(credit_charge.max(1))).ok_or(NotInWindow)?;
        if message_id < self.low || end > self.high || (message_id..end).any(|id| self.is_used(id)) {
            return Err(NotInWindow);
        }
        for id in message_id..end {
            self.flip(id);
        }
        self.used += end - message_id;
        while self.low < self.high && self.is_used(self.low) {
            self.flip(self.low);
            self.low += 1;
            self.used -= 1;
        }
        Ok(())
    }

    /// Grants up to `count` more identifiers, as many as the width allows. Returns how many.
    pub fn grant(&mut self, count: u16) -> u16 {
        let room = self.width_max.saturating_sub(self.high - self.low).min(RESERVED_MESSAGE_ID - self.high);
        let granted = u16::try_from(room).map_or(count, |room| count.min(room));
        self.high += u64::from(granted);
        granted
    }

    /// The credits that the client holds: identifiers that are granted and unused.
    pub fn outstanding(&self) -> u64 {
        self.high - self.low - self.used
    }

    fn slot(&self, id: u64) -> (usize, u64) {
        let words = self.bits.len() as u64; // a power of two
        let word = ((id / 64) & (words - 1)) as usize;
        (word, 1 << (id % 64))
    }

    fn is_used(&self, id: u64) -> bool {
        let (word, bit) = self.slot(id);
        self.bits.get(word).is_none_or(|bits| bits & bit != 0)
    }

    fn flip(&mut self, id: u64) {
        let (word, bit) = self.slot(id);
        if let Some(bits) = self.bits.get_mut(word) {
            *bits ^= bit;
        }
    }
}

/// The CreditCharge that a request needs. [MS-SMB2] 3.1.5.2: (max(sent, expected back) - 1) / 65536 + 1.
pub fn credit_charge(request_payload_bytes: u32, response_payload_bytes_max: u32) -> u16 {
    let payload = request_payload_bytes.max(response_payload_bytes_max);
    let charge = payload.saturating_sub(1) / BYTES_PER_CREDIT + 1;
    u16::try_from(charge).unwrap_or(u16::MAX)
}

/// A request's CreditCharge does not cover its payload: STATUS_INVALID_PARAMETER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credit charge does not cover the payload")]
pub struct ChargeTooSmall;

/// Checks a request's CreditCharge against its payload and the largest possible response, on a connection that supports
/// multi-credit operations. [MS-SMB2] 3.3.5.2.5: a charge of 0 covers 64 KiB.
///
/// # Errors
/// [`ChargeTooSmall`].
pub fn check_charge(
    charge: u16,
    request_payload_bytes: u32,
    response_payload_bytes_max: u32,
) -> Result<(), ChargeTooSmall> {
    let needed = credit_charge(request_payload_bytes, response_payload_bytes_max);
    if charge.max(1) < needed { Err(ChargeTooSmall) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_connection_holds_the_set_of_zero() {
        let mut window = SequenceWindow::new(8192);
        assert_eq!(window.outstanding(), 1);
        assert_eq!(window.consume(1, 1), Err(NotInWindow));
        assert_eq!(window.consume(0, 1), Ok(()));
        assert_eq!(window.consume(0, 1), Err(NotInWindow));
        assert_eq!(window.outstanding(), 0);
    }

    /// The example of [MS-SMB2] 3.3.1.1: { 0 } and 3 credits make { 0, 1, 2, 3 }, used in any order.
    #[test]
    fn requests_may_come_out_of_order() {
        let mut window = SequenceWindow::new(8192);
        assert_eq!(window.grant(3), 3);
        for id in [2, 0, 3, 1] {
            assert_eq!(window.consume(id, 1), Ok(()));
        }
        assert_eq!(window.consume(4, 1), Err(NotInWindow));
    }

    #[test]
    fn a_charge_uses_a_run_of_identifiers_or_none() {
        let mut window = SequenceWindow::new(8192);
        window.grant(9); // 0..=9
        assert_eq!(window.consume(4, 2), Ok(()));
        assert_eq!(window.consume(3, 2), Err(NotInWindow)); // 4 was used
        assert_eq!(window.consume(3, 1), Ok(())); // so 3 was not
        assert_eq!(window.consume(8, 3), Err(NotInWindow)); // 10 was not granted
        assert_eq!(window.consume(8, 0), Ok(()));
        assert_eq!(window.outstanding(), 6);
        assert_eq!(window.consume(u64::MAX, 2), Err(NotInWindow));
    }

    /// What smbtorture's smb2.credits.skipped_mid does.
    #[test]
    fn a_skipped_identifier_holds_the_window_until_it_is_used() {
        let mut window = SequenceWindow::new(8192);
        assert_eq!(window.grant(u16::MAX), 8191);
        for id in 1..8192 {
            assert_eq!(window.consume(id, 1), Ok(()));
            assert_eq!(window.grant(1), 0);
        }
        assert_eq!(window.outstanding(), 1);
        assert_eq!(window.consume(0, 1), Ok(()));
        assert_eq!(window.grant(u16::MAX), 8192);
        assert_eq!(window.consume(8192 + 8191, 1), Ok(()));
    }

    #[test]
    fn the_last_identifier_is_never_granted() {
        let mut window = SequenceWindow::new(16);
        (window.low, window.high) = (u64::MAX - 3, u64::MAX - 3);
        assert_eq!(window.grant(10), 3);
        assert_eq!(window.grant(10), 0);
        assert_eq!(window.consume(u64::MAX - 3, 3), Ok(()));
        assert_eq!(window.consume(u64::MAX, 1), Err(NotInWindow));
        assert_eq!(window.grant(1), 0);
    }

    #[test]
    fn charges_are_those_of_the_formula() {
        let expected =
            [(0, 0, 1), (1, 0, 1), (65_536, 0, 1), (65_537, 0, 2), (0, 65_537, 2), (8 << 20, 0, 128)];
        for (request, response, charge) in expected {
            assert_eq!(credit_charge(request, response), charge);
        }
        assert_eq!(credit_charge(u32::MAX, 0), u16::MAX);
        assert_eq!(check_charge(0, 65_536, 65_536), Ok(()));
        assert_eq!(check_charge(0, 65_537, 0), Err(ChargeTooSmall));
        assert_eq!(check_charge(1, 0, 65_537), Err(ChargeTooSmall));
        assert_eq!(check_charge(2, 0, 65_537), Ok(()));
        assert_eq!(check_charge(200, 0, 65_537), Ok(()));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Consume { ahead: u64, charge: u16 },
        Grant(u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..80u64, 0..6u16).prop_map(|(ahead, charge)| Step::Consume { ahead, charge }),
            1 => (0..40u16).prop_map(Step::Grant),
        ]
    }

    proptest! {
        /// The window behaves as a plain set of the identifiers that may be used.
        #[test]
        fn the_window_is_a_set(width in 1..70u16, steps in prop::collection::vec(step(), 1..400)) {
            let mut window = SequenceWindow::new(width);
            let (mut set, mut next) = (BTreeSet::from([0u64]), 1u64);
            for step in steps {
                match step {
                    Step::Consume { ahead, charge } => {
                        let first = (window.low + ahead).saturating_sub(3);
                        let ids: Vec<u64> = (first..first + u64::from(charge.max(1))).collect();
                        let allowed = ids.iter().all(|id| set.contains(id));
                        prop_assert_eq!(window.consume(first, charge).is_ok(), allowed);
                        if allowed {
                            ids.iter().for_each(|id| { set.remove(id); });
                        }
                    }
                    Step::Grant(count) => {
                        let lowest = set.first().copied().unwrap_or(next);
                        let granted = u64::from(count).min(u64::from(width) - (next - lowest));
                        prop_assert_eq!(u64::from(window.grant(count)), granted);
                        set.extend(next..next + granted);
                        next += granted;
                    }
                }
                prop_assert_eq!(window.outstanding(), set.len() as u64);
            }
        }
    }
}
