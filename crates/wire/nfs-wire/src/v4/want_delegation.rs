//! WANT_DELEGATION, RFC 8881 18.49: ask for a delegation without an open.

use crate::v4::open::{Delegation, DelegationType, ShareAccess};
use crate::v4::status::Status;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "WANT_DELEGATION4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The delegation that is wanted: only the bits of [`ShareAccess::want`], and those for wants that are signalled or
    /// pushed.
    pub want: ShareAccess,
    /// The claim to the delegation.
    pub claim: Claim,
}

xdr_struct!(Args { want, claim });

/// Result.
#[doc(alias = "WANT_DELEGATION4res")]
pub type Res<'a> = Result<Delegation<'a>, Status>;

/// The claim with which a delegation is asked for.
#[doc(alias = "deleg_claim4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Reclaimed after a restart of the server.
    #[doc(alias = "CLAIM_PREVIOUS")]
    Previous(DelegationType),
    /// No special claim.
    #[doc(alias = "CLAIM_FH")]
    Fh,
    /// A delegation of an earlier incarnation of the client.
    #[doc(alias = "CLAIM_DELEG_PREV_FH")]
    DelegPrevFh,
}

impl Encode for Claim {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Previous(delegation_type) => {
                writer.u32(1);
                delegation_type.encode(writer);
            }
            Self::Fh => writer.u32(4),
            Self::DelegPrevFh => writer.u32(6),
        }
    }
}

impl Decode<'_> for Claim {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            1 => Decode::decode(reader).map(Self::Previous),
            4 => Ok(Self::Fh),
            6 => Ok(Self::DelegPrevFh),
            value => Err(XdrError::UndefinedValue { kind: "deleg_claim4", value }),
        }
    }
}
