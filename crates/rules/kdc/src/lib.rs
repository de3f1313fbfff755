//! A KDC for the accounts of one server. Bytes in, bytes out; time and randomness are arguments.
//!
//! It answers only clients that talk to it through the server (IAKERB), and makes tickets for that server alone. A client
//! proves its password first (PA-ENC-TIMESTAMP), always, and learns nothing of accounts that do not exist: they are
//! answered as those that do. There is no forwarding, no renewal, no postdating, no other realm and no FAST.
//!
//! Followed are RFC 4120, RFC 3962 and RFC 8009, and [MS-PAC] for what tickets say of their clients.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod client;
mod exchange;
mod options;
mod pac;
mod reply;
mod request;
mod tgs;
mod ticket;

pub use client::{Client, ClientKeys, Clients};
pub use exchange::{Answer, Kdc, Outcome, Randomness, Refusal, Settings};
