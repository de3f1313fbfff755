//! Kerberos 5 between a client and a service: bytes in, bytes out; time and randomness are arguments.
//!
//! A server makes an [`Acceptor`] from its [keytab](keytab::Keytab), and passes it the token of each client
//! ([`Acceptor::accept`]). It gets the [client](Accepted::client), its SIDs (a [`Pac`]), a session key and a reply. A
//! [`Refused`] has the reason, and a KRB-ERROR for the client. [`PerMessage`] protects what follows.
//!
//! A client takes a ticket that it has from its [credential cache](ccache::CredentialCache), and shows it
//! ([`Initiator::begin`]). A KDC is asked for no ticket, only for its [time](clock).
//!
//! Followed are RFC 4120, RFC 4121 (the GSS-API mechanism), RFC 3961, 3962 and 8009 (AES, the only encryption types
//! here) and [MS-PAC]. The PAC's server signature is checked with our key; whoever has that key can make any PAC.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod acceptor;
mod ap_rep;
mod ap_req;
pub mod ccache;
mod channel;
pub mod clock;
pub mod crypto;
pub mod der;
pub mod fields;
pub mod gss;
pub mod iakerb;
mod initiator;
pub mod keytab;
mod krb_error;
mod name;
mod pac;
mod per_message;
mod reason;
mod replay;
mod ticket;
mod time;

pub use acceptor::{
    Accepted, Acceptor, Context, HostRule, PacRule, Randomness, Refused, Request, Settings, TOKEN_BYTES_MAX,
};
pub use ap_req::{ApReq, ContextFlags};
pub use channel::{Channel, ChannelBindingRule, ChannelBindings, Unbound};
pub use crypto::{CryptoError, Enctype, Key, KeyError, string_to_key};
pub use initiator::{Initiator, InitiatorError};
pub use krb_error::KrbError;
pub use name::{NameError, NameType, Principal};
pub use pac::{LogonInfo, Pac, PacError, UpnInfo};
pub use per_message::{KeyOrigin, Mic, PerMessage, PerMessageError, Protection, Side, Unwrapped};
pub use reason::{Reason, ReasonClass};
pub use replay::{Noted, ReplayCache, ReplayId, Replays};
pub use ticket::{Ticket, TicketContent, TicketFlags};
pub use time::Time;
