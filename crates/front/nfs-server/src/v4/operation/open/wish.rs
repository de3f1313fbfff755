//! The request of an OPEN, after invalid values have been refused (RFC 8881 18.16.3).

use nfs_proto::v4::open_state::{ShareAccess, ShareDeny, share_of};
use nfs_wire::v4::open::{Args, Claim, Delegation, DelegationType, How, Want, WhyNone};
use nfs_wire::v4::status::Status;
use share::Sharing;

/// A request to open a file.
pub(super) struct Wish<'a> {
    pub(super) access: ShareAccess,
    pub(super) deny: ShareDeny,
    pub(super) want: Want,
    pub(super) owner: &'a [u8],
    pub(super) how: How<'a>,
    pub(super) claim: Claimed<'a>,
}

/// The claim with which a file is opened.
pub(super) struct Claimed<'a>(pub(super) Claim<'a>);

impl Claimed<'_> {
    /// Whether the client had the open before the server restarted.
    pub(super) fn is_reclaim(&self) -> bool {
        matches!(self.0, Claim::Previous(_))
    }

    /// Whether the client has opened the file locally, under a delegation. RFC 8881 18.16.3: "the server need not
    /// return NFS4ERR_GRACE when these are received during the grace period".
    pub(super) fn stands_on_delegation(&self) -> bool {
        matches!(self.0, Claim::DelegateCur(..) | Claim::DelegCurFh(_))
    }
}

impl<'a> Wish<'a> {
    /// # Errors
    /// [`Status::Inval`].
    pub(super) fn of(args: &Args<'a>) -> Result<Self, Status> {
        let want = args.share_access.want()?;
        let (access, deny) =
            share_of(args.share_access.bits(), args.share_deny.bits()).ok_or(Status::Inval)?;
        // "If opentype is OPEN4_CREATE, then the claim field [...] MUST be one of CLAIM_NULL, CLAIM_DELEGATE_CUR, or
        // CLAIM_DELEGATE_PREV"
        let has_name = matches!(args.claim, Claim::Null(_) | Claim::DelegateCur(..) | Claim::DelegatePrev(_));
        if matches!(args.how, How::Create(_)) && !has_name {
            return Err(Status::Inval);
        }
        let owner = args.owner.owner.0;
        Ok(Self { access, deny, want, owner, how: args.how, claim: Claimed(args.claim) })
    }

    /// The delegation that the client wants.
    pub(super) fn delegation(&self) -> Want {
        match self.claim.0 {
            // "A partial exception is the reclaim (CLAIM_PREVIOUS) case, in which a delegation type is claimed."
            Claim::Previous(DelegationType::Read) => Want::Read,
            Claim::Previous(DelegationType::Write) => Want::Write,
            Claim::Previous(DelegationType::None | DelegationType::NoneExt) => Want::None,
            // A client that opened the file under a delegation is about to return the delegation.
            Claim::DelegateCur(..) | Claim::DelegCurFh(_) => Want::None,
            _ => self.want,
        }
    }

    /// The reply to a client that gets no delegation: the reason, if the client expressed a want.
    pub(super) fn no_delegation(&self, why: WhyNone) -> Delegation<'static> {
        if self.want == Want::NoPreference { Delegation::None } else { Delegation::NoneExt(why) }
    }

    /// The accesses that others may have meanwhile. Removing and renaming are never denied.
    pub(super) fn sharing(&self) -> Sharing {
        let mut sharing = Sharing::all();
        sharing.set(Sharing::READ, !self.deny.contains(ShareDeny::READ));
        sharing.set(Sharing::WRITE, !self.deny.contains(ShareDeny::WRITE));
        sharing
    }
}
