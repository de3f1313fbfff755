//! The opens of one open-owner on one file: the OPENs in effect, and their union (RFC 8881 9.7, 18.16, 18.18).

use bitflags::bitflags;

use super::stateid::Other;

bitflags! {
    /// OPEN4_SHARE_ACCESS_*: what an open may do (RFC 8881 18.16.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ShareAccess: u32 {
        /// Read.
        const READ = 1;
        /// Write.
        const WRITE = 2;
    }

    /// OPEN4_SHARE_DENY_*: what others may not do meanwhile.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ShareDeny: u32 {
        /// Read.
        const READ = 1;
        /// Write.
        const WRITE = 2;
    }
}

/// The bits of share_access that say which delegation is wanted (RFC 8881 18.16.1; RFC 9754 4, 5).
const WANT_BITS: u32 = 0x0033_ff00;

/// The access and denial that an OPEN or OPEN_DOWNGRADE asks for, without the delegation bits. None for what RFC 8881
/// 18.16.3 answers with NFS4ERR_INVAL: no access, or undefined bits.
#[must_use]
pub fn share_of(access: u32, deny: u32) -> Option<(ShareAccess, ShareDeny)> {
    let access = ShareAccess::from_bits(access & !WANT_BITS).filter(|access| !access.is_empty())?;
    Some((access, ShareDeny::from_bits(deny)?))
}

/// One OPEN in effect, or several that asked for the same.
#[derive(Debug, Clone)]
pub struct Opened<O> {
    /// The access of the open.
    pub access: ShareAccess,
    /// The access that the open denies to others.
    pub deny: ShareDeny,
    /// What the server holds for it.
    pub held: O,
}

/// All OPENs in effect of one open-owner for one file: one for each pair of access and denial, so at most 12.
#[derive(Debug)]
pub struct OpenState<O> {
    pub(super) owner: Box<[u8]>,
    pub(super) opens: Vec<Opened<O>>,
    /// The sets of byte-range locks that were taken under the open.
    pub(super) lock_states: Vec<Other>,
}

/// Why an OPEN_DOWNGRADE is refused: the requested access is not a union of OPENs in effect (NFS4ERR_INVAL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the union of OPENs in effect")]
pub struct NoSuchUnion;

impl<O> OpenState<O> {
    pub(super) fn new(owner: &[u8], first: Opened<O>) -> Self {
        Self { owner: owner.into(), opens: vec![first], lock_states: Vec::new() }
    }

    /// The OPENs in effect.
    #[must_use]
    pub fn opens(&self) -> &[Opened<O>] {
        &self.opens
    }

    /// The union of the access and of the denials.
    #[must_use]
    pub fn union(&self) -> (ShareAccess, ShareDeny) {
        union(self.opens.iter())
    }

    /// An open with this access.
    #[must_use]
    pub fn for_access(&self, access: ShareAccess) -> Option<&O> {
        // A single open with all of the access is needed; two opens with half of it each do not suffice.
        self.opens.iter().find(|open| open.access.contains(access)).map(|open| &open.held)
    }

    /// Any of the opens.
    #[must_use]
    pub fn any(&self) -> Option<&O> {
        self.opens.first().map(|open| &open.held)
    }

    /// Adds another OPEN by the same owner. If an open is returned, it is not needed: such an OPEN is already in
    /// effect.
    pub(super) fn add(&mut self, new: Opened<O>) -> Option<O> {
        if self.opens.iter().any(|open| (open.access, open.deny) == (new.access, new.deny)) {
            return Some(new.held);
        }
        self.opens.push(new);
        None
    }

    /// Keeps the OPENs that together have the requested access. Returns those that are dropped.
    ///
    /// RFC 8881 18.18.3: "The bits in share_access SHOULD equal the union of the share_access bits [...] specified for
    /// some subset of the OPENs in effect", and so the bits of share_deny.
    pub(super) fn downgrade(&mut self, access: ShareAccess, deny: ShareDeny) -> Result<Vec<O>, NoSuchUnion> {
        let stays = |open: &Opened<O>| access.contains(open.access) && deny.contains(open.deny);
        if union(self.opens.iter().filter(|open| stays(open))) != (access, deny) {
            return Err(NoSuchUnion);
        }
        let (stay, go) = std::mem::take(&mut self.opens).into_iter().partition(stays);
        self.opens = stay;
        let go: Vec<Opened<O>> = go;
        Ok(go.into_iter().map(|open| open.held).collect())
    }
}

fn union<'a, O: 'a>(opens: impl Iterator<Item = &'a Opened<O>>) -> (ShareAccess, ShareDeny) {
    opens.fold((ShareAccess::empty(), ShareDeny::empty()), |(access, deny), open| {
        (access | open.access, deny | open.deny)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: ShareAccess = ShareAccess::READ;
    const W: ShareAccess = ShareAccess::WRITE;
    const NONE: ShareDeny = ShareDeny::empty();

    fn opened(access: ShareAccess, deny: ShareDeny, held: u32) -> Opened<u32> {
        Opened { access, deny, held }
    }

    #[test]
    fn what_an_open_may_ask_for() {
        assert_eq!(share_of(1, 0), Some((R, NONE)));
        assert_eq!(share_of(3 | 0x0400, 3), Some((R | W, ShareDeny::all())));
        assert_eq!(share_of(2 | 0x33_0300, 0), Some((W, NONE)));
        for (access, deny) in [(0, 0), (0x0100, 0), (4, 0), (1, 4), (1 | 0x8000_0000, 0)] {
            assert_eq!(share_of(access, deny), None, "{access:x} {deny:x}");
        }
    }

    #[test]
    fn a_downgrade_leaves_opens_that_there_were() {
        let mut state = OpenState::new(b"owner", opened(R, ShareDeny::WRITE, 1));
        assert_eq!(state.add(opened(R | W, NONE, 2)), None);
        assert_eq!(state.union(), (R | W, ShareDeny::WRITE));
        // A case that a simpler table would accept: no OPEN asked for reading without denying anything.
        assert_eq!(state.downgrade(R, NONE), Err(NoSuchUnion));
        assert_eq!(state.downgrade(W, NONE), Err(NoSuchUnion));
        assert_eq!(state.downgrade(R, ShareDeny::WRITE), Ok(vec![2]));
        assert_eq!((state.for_access(R), state.for_access(W)), (Some(&1), None));
        // To its present state.
        assert_eq!(state.downgrade(R, ShareDeny::WRITE), Ok(vec![]));
    }

    #[test]
    fn the_same_open_again_is_given_back() {
        let mut state = OpenState::new(b"owner", opened(R, NONE, 1));
        assert_eq!(state.add(opened(R, NONE, 2)), Some(2));
        assert_eq!(state.add(opened(W, NONE, 3)), None);
        assert_eq!(state.downgrade(R | W, NONE), Ok(vec![]));
        assert_eq!(state.opens().len(), 2);
    }
}
