//! The state that all connections share.

use std::sync::Arc;

use net::Repeats;
use nfs_proto::filehandle::FileHandleCodec;
use nfs_wire::v3::types::WriteVerifier;
use share::{AccessLog, Share, Terms};

use crate::config::{Exports, Squashing};
use crate::groups::UserDirectory;
use crate::gss::Gss;
use crate::gss::security::{Admitted, Channel};
use crate::mount::mounted::MountTable;
use crate::nlm::state::NlmState;
use crate::repeated::RepeatedCalls;
use crate::standing::Standing;
use crate::tls::Tls;
use crate::traffic::Connections;
use crate::v4::owner::OwnerNames;
use crate::v4::state::V4State;

/// The state of the server.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) exports: Exports,
    pub(crate) access_log: AccessLog,
    pub(crate) squashing: Squashing,
    pub(crate) encryption_required: bool,
    /// Who knows the groups of users; None: their clients.
    pub(crate) user_directory: Option<Arc<dyn UserDirectory>>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Connections with TLS that were logged lately.
    pub(crate) encrypted: Repeats,
    /// RPCSEC_GSS.
    pub(crate) gss: Gss,
    /// Who knows the names of owners.
    pub(crate) owner_names: Option<Arc<dyn OwnerNames>>,
    pub(crate) file_handles: FileHandleCodec,
    pub(crate) write_verifier: WriteVerifier,
    pub(crate) repeated: Arc<RepeatedCalls>,
    /// WRITE calls have their own cache, because they are many: they would evict calls that must be remembered for
    /// longer.
    pub(crate) repeated_writes: Arc<RepeatedCalls>,
    pub(crate) mounts: MountTable,
    pub(crate) connections: Connections,
    pub(crate) v4: V4State,
    /// NLM and NSM, if they are on.
    pub(crate) nlm: Option<Arc<NlmState>>,
}

impl ServerState {
    /// The terms of a share, with what the whole server requires.
    pub(crate) fn terms_of(&self, share: &Share) -> Terms {
        let required = if self.encryption_required { Terms::ENCRYPTED } else { Terms::empty() };
        share.terms() | required
    }

    /// The flavors that a share admits over such a connection.
    pub(crate) fn admitted_by(&self, share: &Share, channel: Channel) -> Admitted {
        Admitted::by(self.terms_of(share), channel, &self.gss)
    }

    /// Whether clients can come to a share in any way.
    pub(crate) fn can_serve(&self, share: &Share) -> bool {
        self.lacking(share, Channel::Plain) != Standing::Refused
    }

    /// The standing of a call that is not secured as the share demands: what else would do.
    pub(crate) fn lacking(&self, share: &Share, channel: Channel) -> Standing {
        let admits = |channel| self.admitted_by(share, channel).all().next().is_some();
        if admits(channel) {
            Standing::TooWeak
        } else if self.tls.is_some() && admits(Channel::Encrypted) {
            Standing::Unencrypted
        } else {
            Standing::Refused
        }
    }
}
