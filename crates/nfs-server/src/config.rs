//! Settings of this server.

use std::collections::HashMap;
use std::sync::Arc;

use nfs_proto::duplicate_request;
use nfs_proto::export::Export;
use nfs_wire::v3::types::WriteVerifier;
use share::{Share, ShareId};

/// Most bytes of one READ or WRITE.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Most bytes of one call: a WRITE and what stands in front of its data.
pub(crate) const RECORD_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + 8 * 1024;

/// Most calls of one connection that wait for the device or for somebody else: each may hold a buffer of
/// [`TRANSFER_BYTES_MAX`].
pub(crate) const PENDING_CALLS_MAX: usize = 256;

/// Settings of a server.
#[derive(Debug)]
pub struct Config {
    /// What it serves: each share NAME as `/NAME`.
    pub shares: Vec<ExportedShare>,
    /// The secret key of the filehandles. Clients keep filehandles over a restart of the server, so it must too.
    pub file_handle_key: [u8; 16],
    /// Tells this run of the server from earlier ones: written data that was not committed may be lost with them
    /// (RFC 1813 3.3.7).
    pub write_verifier: WriteVerifier,
    /// Most connections at a time.
    pub connections_max: usize,
    /// How many repeated calls are recognised.
    pub repeated_calls: duplicate_request::Limits,
}

impl Config {
    /// The defaults, for these shares.
    #[must_use]
    pub fn new(shares: Vec<ExportedShare>, file_handle_key: [u8; 16], write_verifier: WriteVerifier) -> Self {
        Self {
            shares,
            file_handle_key,
            write_verifier,
            connections_max: 4096,
            repeated_calls: duplicate_request::Limits::default(),
        }
    }
}

/// A share and who may use it over NFS.
#[derive(Debug)]
pub struct ExportedShare {
    /// The share.
    pub share: Arc<Share>,
    /// Which clients may use it, and who their users are.
    pub export: Export,
}

/// The exports by the share's number and by its name.
#[derive(Debug)]
pub(crate) struct Exports(HashMap<ShareId, ExportedShare>);

impl Exports {
    pub(crate) fn new(shares: Vec<ExportedShare>) -> Self {
        Self(shares.into_iter().map(|exported| (exported.share.id(), exported)).collect())
    }

    pub(crate) fn by_id(&self, id: ShareId) -> Option<&ExportedShare> {
        self.0.get(&id)
    }

    pub(crate) fn by_name(&self, name: &[u8]) -> Option<&ExportedShare> {
        self.0.values().find(|exported| exported.share.name().as_bytes() == name)
    }

    /// All exports in the order of their names.
    pub(crate) fn in_order(&self) -> Vec<&ExportedShare> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|exported| exported.share.name());
        all
    }
}
