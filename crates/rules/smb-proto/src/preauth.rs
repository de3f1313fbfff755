//! The preauthentication integrity hash: a SHA-512 chain over NEGOTIATE and SESSION_SETUP.
//! [MS-SMB2] 3.3.5.4, 3.3.5.5.
//!
//! A connection starts one chain and adds its NEGOTIATE request and response. Every session (and every binding of a
//! session) continues from a copy of it with its own SESSION_SETUP messages. All messages are complete: SMB2 header and
//! body, without the transport's length prefix. The final, successful SESSION_SETUP response is not added.

use aws_lc_rs::digest::{Context, SHA512};

/// The value of the chain so far: 64 bytes, all zero at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreauthHash([u8; 64]);

impl Default for PreauthHash {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl PreauthHash {
    /// The chain at the start of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one complete message, as sent.
    pub fn update(&mut self, message: &[u8]) {
        let mut context = Context::new(&SHA512);
        context.update(&self.0);
        context.update(message);
        for (byte, digested) in self.0.iter_mut().zip(context.finish().as_ref()) {
            *byte = *digested;
        }
    }

    /// The 64 bytes that are the context of key derivation.
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_starts_with_zeros_and_depends_on_order() {
        let mut one = PreauthHash::new();
        assert_eq!(one.as_bytes(), &[0; 64]);
        one.update(b"a");
        one.update(b"b");
        let mut other = PreauthHash::new();
        other.update(b"b");
        other.update(b"a");
        assert_ne!(one, other);
    }
}
