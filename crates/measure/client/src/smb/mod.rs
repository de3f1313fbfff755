//! SMB 3.1.1 ([MS-SMB2] 3.2, the client's role): one session with 1 to 32 channels.

mod channel;
mod compound;
mod logon;
mod protection;
mod session;
mod status;

pub use session::Session;
