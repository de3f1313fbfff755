//! RPCSEC_GSS through sockets: the client makes its tickets itself, with the key of the server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate krb5 as anabranch_krb5;

#[expect(dead_code, reason = "what the tests of TLS use")]
#[path = "../server/authority.rs"]
mod authority;
mod calls;
mod client;
mod contexts;
mod flavors;
#[path = "../../../../rules/krb5/tests/mint/mod.rs"]
mod mint;
mod numbers;
#[allow(dead_code, reason = "the tests of NFSv3 use the rest")]
#[expect(clippy::result_large_err, reason = "results with attributes in both arms")]
#[path = "../server/client.rs"]
mod server;
mod tls;
mod v4;
