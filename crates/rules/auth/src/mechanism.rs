//! The mechanisms by which clients authenticate.

use krb5::gss::IAKERB;

use crate::spnego::{KERBEROS, MS_KERBEROS, NTLMSSP};

/// A mechanism of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A ticket
    Kerberos,
    /// A password, with which the client gets a ticket through this server
    Iakerb,
    /// A password, or nothing
    Ntlm,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 3] = [Self::Kerberos, Self::Iakerb, Self::Ntlm];

    /// A name for metrics and programs that does not change.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Kerberos => "kerberos",
            Self::Iakerb => "iakerb",
            Self::Ntlm => "ntlm",
        }
    }

    /// The OBJECT IDENTIFIERs by which it goes, the one to offer first in front.
    #[must_use]
    pub fn oids(self) -> &'static [&'static [u8]] {
        match self {
            Self::Kerberos => &[MS_KERBEROS, KERBEROS],
            Self::Iakerb => &[IAKERB],
            Self::Ntlm => &[NTLMSSP],
        }
    }
}
