//! The rules of SMB 2 and 3: what a server remembers between messages, and what follows from that.
//!
//! No sockets, no clock, no threads and no runtime: time and randomness are arguments. The objects are those of
//! \[MS-SMB2\] 3.3.1:
//!
//! | object | section | module |
//! |---|---|---|
//! | Connection: dialect, ciphers, capabilities | 3.3.1.7, 3.3.5.4 | [`dialect`], [`negotiate`] |
//! | Connection.PreauthIntegrityHashValue | 3.3.5.4, 3.3.5.5 | [`preauth`] |
//! | Connection.CommandSequenceWindow, credits | 3.3.1.1, 3.3.1.2 | [`sequence_window`], [`credits`] |
//! | Connection.RequestList, AsyncCommandList | 3.3.1.7 | [`request`] |
//! | Session, Channel | 3.3.1.8, 3.3.1.14 | [`session`], [`channel`] |
//! | cryptographic keys, signatures, encryption | 3.1.4.1 to 3.1.4.3 | [`keys`], [`signing`], [`encryption`] |
//! | Open identifiers, Open.ChannelSequence | 3.3.1.10, 3.3.5.2.10 | [`open`], [`channel_sequence`] |
//! | opens that outlive their connection | 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12 | [`durable`] |
//! | related compounds | 3.3.5.2.7.2 | [`related`] |

// Tests index freely; code that meets a client's bytes does not.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod ccm;
pub mod channel;
pub mod channel_sequence;
pub mod credits;
pub mod dialect;
pub mod durable;
pub mod encryption;
pub mod keys;
pub mod negotiate;
pub mod open;
pub mod preauth;
pub mod related;
pub mod request;
pub mod sequence_window;
pub mod session;
pub mod signing;
