//! On what terms clients use a share. They change while clients work.

use std::sync::atomic::{AtomicU16, Ordering};

bitflags::bitflags! {
    /// What an administrator says of all clients of a share. What a protocol has no word for means nothing there.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Terms: u16 {
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
        /// The superuser of an NFS client makes device nodes, also where the share has a list of its clients.
        const DEVICES = 1 << 5;
        /// Likewise it sets the set-user-id and set-group-id bits of files.
        const SET_ID = 1 << 6;
        /// NFS clients come from privileged ports.
        const SECURE_PORT = 1 << 7;
        /// Who lists the shares is not told of it.
        const HIDDEN = 1 << 8;
    }
}

/// The terms that hold now.
#[derive(Debug)]
pub(crate) struct Present(AtomicU16);

impl Present {
    pub(crate) fn new(terms: Terms) -> Self {
        Self(AtomicU16::new(terms.bits()))
    }

    pub(crate) fn load(&self) -> Terms {
        Terms::from_bits_truncate(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, terms: Terms) {
        self.0.store(terms.bits(), Ordering::Relaxed);
    }
}
