//! Authentication: accounts, SPNEGO, Kerberos and NTLMv2. Bytes in, bytes out; time and randomness are arguments.
//!
//! A server makes an [`Acceptor`] for each authentication and passes it the client's tokens until the client is
//! identified. A client makes an [`Initiator`]. Both speak NTLM inside SPNEGO; the acceptor also accepts bare NTLM, and
//! Kerberos inside SPNEGO if it has keys ([`Kerberos`]).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod acceptor;
pub mod accounts;
pub mod brake;
mod failure;
mod iakerb;
mod initiator;
mod kerberos;
mod mechanism;
pub mod ntlm;
mod numbers;
mod refused;
mod session_key;
pub mod spnego;

pub use acceptor::{Acceptor, Authenticated, Config, Nonces, Ntlm, Step};
pub use accounts::{Account, AccountList, Accounts, Identity, folded_name, local_name, nt_hash, same_name};
pub use brake::{Brake, Failed};
pub use failure::{Failure, FailureClass, Reason};
pub use iakerb::Iakerb;
pub use initiator::{
    Credentials, Initiator, InitiatorError, InitiatorStep, Randomness, answer_to_ticket, offer_ticket,
};
pub use kerberos::{Kerberos, Mapping, Met};
pub use mechanism::Mechanism;
pub use numbers::{DomainUser, Identified, Ids, NumberSource, Numbering, Numbers, Unnumbered};
pub use refused::{RefusedTicket, RefusedTickets};
pub use session_key::SessionKey;
