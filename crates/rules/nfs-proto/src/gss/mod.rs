//! Security contexts of RPCSEC_GSS, RFC 2203: which there are, and which calls of each were seen.

pub mod contexts;
pub mod window;
