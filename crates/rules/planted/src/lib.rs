//! Faults that a simulation plants in the servers, to show that it finds them.
//!
//! Where a fault could happen, the server calls [`strikes`]. In a program that is built without debug assertions,
//! `strikes` always returns `false`, and the compiler removes the call. With debug assertions, a fault strikes only on
//! a thread on which a simulation has planted it.
#![warn(missing_docs)]

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A fault that file servers have had.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            /// All faults.
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
    /// A message is queued for a client, and the task of the connection is not woken.
    LostWakeUp,
    /// A reply is sent twice.
    ReplyRepeated,
    /// A reply is not sent.
    ReplyLost,
    /// A reply is signed wrongly.
    WrongSignature,
    /// A write is acknowledged and not carried out.
    WriteLost,
    /// Only the first half of an acknowledged write is carried out.
    WriteTorn,
    /// A lock is granted although another client's lock conflicts with it.
    LockNotChecked,
    /// Unlocking an SMB range frees all exclusive locks of its owner.
    UnlockTooMuch,
    /// No break is sent to a client when another changes what the client caches.
    BreakNotSent,
    /// A repeated request of an NFSv4.1 session is carried out again.
    RetryCarriedOut,
    /// A repeated call of NFSv3 is carried out again.
    DuplicateCarriedOut,
    /// The metadata cache keeps what it knows of a directory that has changed.
    ChangeMissed,
    /// New opens and locks are admitted before the clients from before a restart have reclaimed theirs.
    GraceForgotten,
}

/// Whether faults can be planted in this build.
pub const CAN_BE_PLANTED: bool = cfg!(debug_assertions);

#[cfg(debug_assertions)]
mod thread {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        /// The planted fault, that it strikes once in this many opportunities, and the number of opportunities so far.
        static PLANTED: Cell<Option<(Fault, u64, u64)>> = const { Cell::new(None) };
    }

    /// Plants a fault on this thread. From now on, the fault strikes once in `one_in` opportunities.
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

#[cfg(debug_assertions)]
pub use thread::{plant, strikes};

/// Plants a fault on this thread: not in this build ([`CAN_BE_PLANTED`]).
#[cfg(not(debug_assertions))]
pub const fn plant(_: Fault, _one_in: u64) {}

/// Whether the fault strikes here and now. Without debug assertions, it never does.
#[cfg(not(debug_assertions))]
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

    #[cfg(debug_assertions)]
    #[test]
    fn a_planted_fault_strikes_as_often_as_it_is_to() {
        plant(Fault::WriteLost, 3);
        let struck: Vec<_> = (0..6).map(|_| strikes(Fault::WriteLost)).collect();
        assert_eq!(struck, [false, false, true, false, false, true]);
        assert!(!strikes(Fault::WriteTorn));
    }
}
