//! On what terms clients use a share. They change while clients work.

use std::sync::atomic::{AtomicU8, Ordering};

bitflags::bitflags! {
    /// What an administrator says of all clients of a share. What a protocol has no word for means nothing there.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Terms: u8 {
        /// Nothing can be changed through it.
        const READ_ONLY = 1;
        /// Listings show only what their reader may read.
        const ACCESS_BASED_ENUMERATION = 1 << 1;
        /// Clients without an account are let in, as nobody.
        const GUESTS = 1 << 2;
        /// What goes to and from it is encrypted, whatever the protocol demands elsewhere.
        const ENCRYPTED = 1 << 3;
        /// Clients may have opens that outlive the server.
        const CONTINUOUSLY_AVAILABLE = 1 << 4;
    }
}

/// The terms that hold now.
#[derive(Debug)]
pub(crate) struct Present(AtomicU8);

impl Present {
    pub(crate) fn new(terms: Terms) -> Self {
        Self(AtomicU8::new(terms.bits()))
    }

    pub(crate) fn load(&self) -> Terms {
        Terms::from_bits_truncate(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, terms: Terms) {
        self.0.store(terms.bits(), Ordering::Relaxed);
    }
}
