//! Accepting Kerberos 5. For now: the DER that SPNEGO and Kerberos share.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

pub mod der;
