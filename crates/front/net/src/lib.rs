//! Shards, listeners, pooled buffers and the connection loop that both protocols run on.
//!
//! There is one thread per core, with its own runtime (a *shard*). A connection lives on one shard. The loop takes
//! everything that has arrived, answers the requests that need not wait, and sends the replies as one vectored write. A
//! reply that has to wait is finished in its own task and sent when it is ready. So a slow request never holds up its
//! connection, and no request ever blocks a shard. Unsolicited messages of the server reach a connection from any shard
//! through its [`Mailbox`].

mod buffer;
mod connection;
mod crew;
mod datagrams;
mod ended;
mod give_back;
mod interfaces;
mod listeners;
mod mailbox;
mod notice;
mod origin;
mod outbox;
mod outgoing;
mod patience;
mod places;
mod protocol;
mod pulse;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "quic")]
mod quic_stream;
mod ration;
mod repeats;
mod retransmissions;
mod room;
mod round_trip;
mod shards;
mod single_shard;
mod socket;
mod stop;
mod term;
mod tls;
pub mod turn_clock;

pub use buffer::{Buffer, HEADROOM};
pub use crew::Keeper;
pub use datagrams::{DATAGRAM_BYTES_MAX, Datagrams};
pub use interfaces::{InterfaceAddr, interface_addrs};
pub use listeners::{Listeners, NewListeners};
pub use mailbox::{Mailbox, PostError};
pub use origin::Origin;
pub use outbox::Outbox;
pub use outgoing::{Outgoing, OutgoingError};
pub use places::{ConnectionLimits, Occupancy, Occupied};
pub use protocol::{Answer, Later, Limits, Prefix, PrefixError, Protocol};
pub use pulse::Pulse;
#[cfg(feature = "quic")]
pub use quic::{QuicError, QuicListener};
pub use ration::{STRANGERS_BYTES_MAX, STRANGERS_OF_ORIGIN_BYTES_MAX};
pub use repeats::Repeats;
pub use room::{REPLIES_BYTES_MAX, Room, SMALL_REPLIES_BYTES, SMALL_REPLY_BYTES_MAX};
pub use round_trip::RoundTrip;
pub use shards::{Listener, Peer, Service, Shards, ShardsError, Transport};
pub use single_shard::SingleShard;
pub use socket::Socket;
pub use term::Term;
pub use tls::{PeerCertificate, Secured};
