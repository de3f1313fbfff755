//! The terms on which clients use a share. They can change while clients work.

use std::sync::atomic::{AtomicU32, Ordering};

bitflags::bitflags! {
    /// The terms for all clients of a share. A protocol ignores terms that it cannot express.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Terms: u32 {
        /// The share refuses all changes.
        const READ_ONLY = 1;
        /// Listings show only objects that the user may read.
        const ACCESS_BASED_ENUMERATION = 1 << 1;
        /// Clients without an account are admitted as guests.
        const GUESTS = 1 << 2;
        /// All traffic of the share is encrypted, whatever the protocol requires elsewhere.
        const ENCRYPTED = 1 << 3;
        /// Clients may have opens that outlive the server.
        const CONTINUOUSLY_AVAILABLE = 1 << 4;
        /// The superuser of a client may create device nodes, even if the share has a client list.
        const DEVICES = 1 << 5;
        /// Likewise it may set the set-user-id and set-group-id bits of files.
        const SET_ID = 1 << 6;
        /// Clients of a protocol whose ports show who sent a call ([`Protocols::shows_ports`](access::Protocols::shows_ports)) must use
        /// privileged ports.
        const SECURE_PORT = 1 << 7;
        /// The share does not appear in lists of shares.
        const HIDDEN = 1 << 8;
        /// Clients of a protocol whose sessions have one user see, in place of the share's directory, its subdirectory with the
        /// name of that user.
        const HOMES = 1 << 9;
        /// What clients do in the share is not written to the access log.
        const UNLOGGED = 1 << 10;
        /// Clients of a protocol on RPC may use the share with AUTH_SYS (RFC 5531 8.2). If none of the four is set, they may use it
        /// with each of them.
        const RPC_SYS = 1 << 11;
        /// Likewise with RPCSEC_GSS that protects the headers of calls.
        const RPC_KRB5 = 1 << 12;
        /// Likewise with RPCSEC_GSS that protects calls against changes.
        const RPC_KRB5I = 1 << 13;
        /// Likewise with RPCSEC_GSS that encrypts calls.
        const RPC_KRB5P = 1 << 14;
        /// Clients of a protocol that does not encrypt by itself must use TLS.
        const TLS = 1 << 15;
        /// The groups of users whom clients state are those that this machine knows. If neither of the two is set, the
        /// configuration of the server decides that.
        const GROUPS_OF_SERVER = 1 << 16;
        /// Likewise they are those that clients state.
        const GROUPS_OF_CLIENT = 1 << 17;
        /// Clients of a protocol without times find the snapshots of a directory in its folder `.snapshot`.
        const SNAPSHOT_FOLDER = 1 << 18;
        /// Listings of the share's root show this folder.
        const SNAPSHOT_FOLDER_SHOWN = 1 << 19;
        /// The folder, and whether it is shown.
        const SNAPSHOT_FOLDERS = Self::SNAPSHOT_FOLDER.bits() | Self::SNAPSHOT_FOLDER_SHOWN.bits();
        /// The four flavors.
        const RPC_FLAVORS = Self::RPC_SYS.bits() | Self::RPC_KRB5.bits() | Self::RPC_KRB5I.bits() | Self::RPC_KRB5P.bits();
    }
}

/// The terms in force.
#[derive(Debug)]
pub(crate) struct CurrentTerms(AtomicU32);

impl CurrentTerms {
    pub(crate) fn new(terms: Terms) -> Self {
        Self(AtomicU32::new(terms.bits()))
    }

    pub(crate) fn load(&self) -> Terms {
        Terms::from_bits_truncate(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, terms: Terms) {
        self.0.store(terms.bits(), Ordering::Relaxed);
    }
}
