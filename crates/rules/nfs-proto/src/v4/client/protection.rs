//! Who may manage a client and its sessions (RFC 8881 2.10.8.3).
//!
//! With SP4_MACH_CRED the operations that make and end sessions come from the machine of the client alone, proved with a ticket
//! and protected against changes. Nobody else on the network, and no user of the client, can end its sessions then, or bind a
//! connection to them.

use nfs_wire::v4::Operation;
use nfs_wire::v4::exchange_id::{ProtectedOperations, StateProtectArgs, StateProtectRes};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Bitmap;

use super::Principal;

/// What a request shows of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Who sends the request.
    pub principal: Principal,
    /// Whether RPCSEC_GSS protects the whole request: with integrity or privacy.
    pub is_protected: bool,
}

/// How the state of a client is protected, as was agreed when it introduced itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateProtection {
    /// SP4_NONE.
    #[default]
    None,
    /// SP4_MACH_CRED: [`MUST_ENFORCE`] come by the principal that has introduced the client.
    MachineCredential {
        /// The operations that this principal may send for users of the client, too.
        must_allow: Bitmap,
    },
}

/// The operations that manage a client. The server enforces these, whatever the client asks for: RFC 8881 18.35.3, "This list
/// comes from the results of EXCHANGE_ID".
pub const MUST_ENFORCE: Bitmap = Bitmap::of(&[
    Operation::BindConnToSession as u32,
    Operation::ExchangeId as u32,
    Operation::CreateSession as u32,
    Operation::DestroySession as u32,
    Operation::DestroyClientId as u32,
]);

/// The operations that a machine may send for its users, whose tickets may have ended: those that give something up, and none
/// that reads or changes data.
pub const MAY_ALLOW: Bitmap = Bitmap::of(&[
    Operation::Close as u32,
    Operation::DelegReturn as u32,
    Operation::FreeStateid as u32,
    Operation::LockU as u32,
    Operation::OpenDowngrade as u32,
    Operation::TestStateid as u32,
]);

impl StateProtection {
    /// What a client gets that asks for this.
    ///
    /// # Errors
    /// [`Status::Inval`]: RFC 8881 18.35.3, "the client MUST send the EXCHANGE_ID request with RPCSEC_GSS as the security flavor,
    /// and with a service of RPC_GSS_SVC_INTEGRITY or RPC_GSS_SVC_PRIVACY". [`Status::EncrAlgUnsupp`] for a secret state
    /// verifier: the server supports none of its algorithms.
    pub fn grant(asked: &StateProtectArgs<'_>, by: &Credential) -> Result<Self, Status> {
        match asked {
            StateProtectArgs::None => Ok(Self::None),
            StateProtectArgs::MachineCredential(_) if !by.is_protected => Err(Status::Inval),
            StateProtectArgs::MachineCredential(ProtectedOperations { must_allow, .. }) => {
                Ok(Self::MachineCredential { must_allow: must_allow.intersection(MAY_ALLOW) })
            }
            StateProtectArgs::Ssv(_) => Err(Status::EncrAlgUnsupp),
        }
    }

    /// What the client is told.
    #[must_use]
    pub fn told(self) -> StateProtectRes<'static> {
        match self {
            Self::None => StateProtectRes::None,
            Self::MachineCredential { must_allow } => {
                let operations = ProtectedOperations { must_enforce: MUST_ENFORCE, must_allow };
                StateProtectRes::MachineCredential(operations)
            }
        }
    }

    /// Whether a request comes from the principal that has introduced the client. RFC 8881 2.4.3: with SP4_MACH_CRED, "the
    /// RPCSEC_GSS service used MUST be integrity or privacy, and the same GSS mechanism and principal MUST be used". There is one
    /// mechanism.
    pub(super) fn is_of(self, principal: &Principal, by: &Credential) -> bool {
        by.principal == *principal && (self == Self::None || by.is_protected)
    }

    /// Whether a request may manage the client of this principal.
    pub(super) fn admits(self, principal: &Principal, by: &Credential) -> bool {
        self == Self::None || self.is_of(principal, by)
    }
}
