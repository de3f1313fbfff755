//! The distribution of the process's descriptors. Without descriptors for files and for sockets the server can serve no
//! client, so no client may take all of them.

/// The most connections of one protocol, however many descriptors there are.
const CONNECTIONS_MAX: usize = 65_536;

/// The limits of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allotment {
    /// Opens of one share, with two descriptors each.
    pub(crate) opens: usize,
    /// Connections of SMB.
    pub(crate) smb_connections: usize,
    /// Connections of NFS.
    pub(crate) nfs_connections: usize,
}

impl Allotment {
    /// Half of `descriptors` are for the files of all `shares`, an eighth for each protocol's connections. The rest is
    /// for short-lived uses.
    pub(crate) fn of(descriptors: u64, shares: usize) -> Self {
        let part = |of: usize| (usize::try_from(descriptors).unwrap_or(usize::MAX) / of).max(16);
        Self {
            opens: part(shares.max(1).saturating_mul(4)),
            smb_connections: part(8).min(CONNECTIONS_MAX),
            nfs_connections: part(8).min(CONNECTIONS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_all() {
        for (descriptors, shares) in [(1024_u64, 1), (1024, 3), (20_000, 1), (1 << 20, 10)] {
            let given = Allotment::of(descriptors, shares);
            let most = given.opens * 2 * shares + given.smb_connections + given.nfs_connections;
            assert!(u64::try_from(most).unwrap() <= descriptors / 4 * 3, "{descriptors} {shares}: {given:?}");
        }
        let few = Allotment { opens: 16, smb_connections: 16, nfs_connections: 16 };
        assert_eq!(Allotment::of(0, 0), few);
        let most = Allotment::of(u64::MAX, 1);
        assert_eq!((most.opens, most.smb_connections), (usize::MAX / 4, CONNECTIONS_MAX));
    }
}
