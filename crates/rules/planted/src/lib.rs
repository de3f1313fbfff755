//! Faults that a simulation plants in the servers, to show that it finds them.
//!
//! Where a fault could be, the server asks [`strikes`]. In a program that is built without the feature `plant` the answer
//! is the constant `false`, and nothing is left of the question. With it, a fault strikes only on a thread on which a
//! simulation has planted it.
#![warn(missing_docs)]

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A fault that servers of files have had.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

faults! {
    /// A connection is given a message for its client, and its task is not woken.
    LostWakeUp,
    /// A reply is sent twice.
    ReplyRepeated,
    /// A reply is not sent.
    ReplyLost,
    /// A reply is signed wrongly.
    WrongSignature,
    /// A write is acknowledged and not made.
    WriteLost,
    /// Of a write that is acknowledged, only the first half is made.
    WriteTorn,
    /// A lock is granted though another client's lock is in the way.
    LockNotChecked,
    /// Unlocking a range frees all ranges of its owner.
    UnlockTooMuch,
    /// A client is not told that somebody else changes what it caches.
    BreakNotSent,
    /// A repeated request of an NFSv4.1 session is carried out again.
    RetryCarriedOut,
    /// A repeated call of NFSv3 is carried out again.
    DuplicateCarriedOut,
    /// Other clients are let in before those that were there before a restart have reclaimed.
    GraceForgotten,
}

#[cfg(feature = "plant")]
mod thread {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        /// What is planted, in how many places it does not strike, and how often it has been asked for.
        static PLANTED: Cell<Option<(Fault, u64, u64)>> = const { Cell::new(None) };
    }

    /// From now on, on this thread, one question in so many for this fault is answered with yes.
    pub fn plant(fault: Fault, one_in: u64) {
        PLANTED.set(Some((fault, one_in.max(1), 0)));
    }

    /// Whether the fault strikes here and now.
    #[must_use]
    pub fn strikes(fault: Fault) -> bool {
        let Some((planted, one_in, asked)) = PLANTED.get().filter(|(planted, ..)| *planted == fault) else {
            return false;
        };
        PLANTED.set(Some((planted, one_in, asked.wrapping_add(1))));
        asked % one_in == one_in.wrapping_sub(1)
    }
}

#[cfg(feature = "plant")]
pub use thread::{plant, strikes};

/// Whether the fault strikes here and now: never, in a program that is built without the feature `plant`.
#[cfg(not(feature = "plant"))]
#[must_use]
#[inline(always)]
pub const fn strikes(_: Fault) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_strikes_that_was_not_planted() {
        assert!(Fault::ALL.iter().all(|fault| !strikes(*fault)));
    }

    #[cfg(feature = "plant")]
    #[test]
    fn a_planted_fault_strikes_as_often_as_it_is_to() {
        plant(Fault::WriteLost, 3);
        let struck: Vec<_> = (0..6).map(|_| strikes(Fault::WriteLost)).collect();
        assert_eq!(struck, [false, false, true, false, false, true]);
        assert!(!strikes(Fault::WriteTorn));
    }
}
