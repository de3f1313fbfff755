//! Who is asking: accounts, SPNEGO and NTLMv2. Bytes in, bytes out; time and randomness are arguments.
//!
//! A server makes an [`Acceptor`] for each authentication and feeds it the client's tokens until it says who the client
//! is. A client makes an [`Initiator`]. Both speak NTLM inside SPNEGO; the acceptor takes bare NTLM as well.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod acceptor;
pub mod accounts;
mod der;
mod initiator;
pub mod ntlm;
pub mod spnego;

pub use acceptor::{Acceptor, Authenticated, Config, Failure, FailureClass, Identity, Reason, Step};
pub use accounts::{Account, AccountList, Accounts, folded_name, nt_hash, same_name};
pub use initiator::{Credentials, Initiator, InitiatorError, InitiatorStep, Randomness};
