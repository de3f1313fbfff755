//! A server for a test, and a client that does what it is told, also what no honest client would do.

mod protection;
mod quic;
mod raw;
mod server;

pub(crate) use protection::Protection;
pub(crate) use quic::Quic;
pub(crate) use raw::{CLIENT_GUID, Client, Element, Reply, close_body, create_body, read_body, write_body};
pub(crate) use server::{GUEST, OTHER_USER, PASSWORD, SHARE, TestServer, USER};
