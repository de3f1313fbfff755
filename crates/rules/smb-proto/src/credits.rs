//! How many credits a response grants. [MS-SMB2] 3.3.1.2, 3.3.4.1.2.

use crate::sequence_window::SequenceWindow;

/// The most credits that a client may hold, and the width of its sequence window: what Windows Server 2016 and Samba
/// allow, and what smbtorture's smb2.credits asks for.
pub const CREDITS_MAX: u16 = 8192;

/// The most credits that a connection holds before a session is valid on it.
pub const CREDITS_MAX_UNAUTHENTICATED: u16 = 64;

/// The CreditResponse of one response, and the window grown by it.
///
/// The client gets what it asks for, but never less than the request cost (so a client that asks for little does not
/// run dry), nor so much that it holds more than `limit`, nor more than the window's width allows. It always keeps at
/// least one credit: "The server MUST ensure that the number of credits held by the client is never reduced to zero."
///
/// `credit_charge` is what [`SequenceWindow::consume`] was called with for this request; 0 for a response that answers
/// no request of its own (then `requested` is 0 as well and this grants nothing). A final response after an interim
/// one grants nothing either: all is granted in the interim response ([MS-SMB2] 3.3.4.2).
pub fn grant(window: &mut SequenceWindow, credit_charge: u16, requested: u16, limit: u16) -> u16 {
    let wanted = requested.max(credit_charge);
    let held = window.outstanding();
    // What the request cost is granted again whatever the limit: otherwise an ECHO outside the session to which the
    // client's other requests belong would use the credits up.
    let allowed = u64::from(limit).saturating_sub(held).max(credit_charge.into());
    let bounded = u16::try_from(allowed).map_or(wanted, |allowed| wanted.min(allowed));
    let least = u16::from(held == 0 && wanted > 0);
    window.grant(bounded.max(least))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_client_gets_what_it_asks_for_up_to_the_limit() {
        let mut window = SequenceWindow::new(CREDITS_MAX);
        window.consume(0, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 65_535, CREDITS_MAX_UNAUTHENTICATED), 64);
        window.consume(1, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 65_535, CREDITS_MAX), 8192 - 63);
        assert_eq!(window.outstanding(), 8192);
        window.consume(2, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 65_535, CREDITS_MAX), 1);
    }

    #[test]
    fn a_client_that_wants_one_credit_has_one() {
        let mut window = SequenceWindow::new(CREDITS_MAX);
        for id in 0..5 {
            window.consume(id, 1).unwrap();
            assert_eq!(grant(&mut window, 1, 1, CREDITS_MAX), 1);
        }
        window.consume(5, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 0, CREDITS_MAX), 1);
    }

    #[test]
    fn a_large_request_does_not_shrink_the_window() {
        let mut window = SequenceWindow::new(CREDITS_MAX);
        window.grant(255);
        window.consume(0, 128).unwrap();
        assert_eq!(grant(&mut window, 128, 1, CREDITS_MAX), 128);
        assert_eq!(window.outstanding(), 256);
    }

    #[test]
    fn what_a_request_cost_comes_back_beyond_the_limit() {
        let mut window = SequenceWindow::new(CREDITS_MAX);
        window.grant(300);
        window.consume(0, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 1, CREDITS_MAX_UNAUTHENTICATED), 1);
        window.consume(1, 1).unwrap();
        assert_eq!(grant(&mut window, 1, 10, CREDITS_MAX_UNAUTHENTICATED), 1);
    }

    proptest! {
        /// Whatever a well-behaved client asks for, it can always send the next request.
        #[test]
        fn no_client_is_left_without_credits(
            requests in prop::collection::vec((0..9u16, 0..20u16), 1..300),
            limit in 1..40u16,
        ) {
            let mut window = SequenceWindow::new(32);
            let mut next = 0;
            for (charge, requested) in requests {
                let charge = charge.min(u16::try_from(window.outstanding()).unwrap()).max(1);
                prop_assert_eq!(window.consume(next, charge), Ok(()));
                next += u64::from(charge);
                grant(&mut window, charge, requested, limit);
                prop_assert!(window.outstanding() >= 1);
                prop_assert!(window.outstanding() <= 32);
            }
        }
    }
}
