//! The AUTH_SYS credential, RFC 5531 appendix A: user and group numbers that the client states without proof.

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// The longest machine name in bytes.
pub const MACHINE_NAME_BYTES_MAX: usize = 255;

/// The most supplementary groups that the credential can carry.
pub const GROUPS_MAX: usize = 16;

/// Who the caller says it is.
#[doc(alias = "authsys_parms")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSys<'a> {
    /// An arbitrary number chosen by the client.
    pub stamp: u32,
    /// The name by which the client calls itself.
    pub machine_name: MachineName<'a>,
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// The caller's supplementary groups.
    pub groups: Groups,
}

xdr_struct!(AuthSys<'a> { stamp, machine_name, uid, gid, groups });

/// `string machinename<255>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineName<'a>(pub &'a [u8]);

impl Encode for MachineName<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for MachineName<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(MACHINE_NAME_BYTES_MAX).map(Self)
    }
}

/// Up to [`GROUPS_MAX`] group numbers, stored inline.
#[derive(Debug, Clone, Copy, Default)]
pub struct Groups {
    count: usize,
    gids: [u32; GROUPS_MAX],
}

impl Groups {
    /// A list of these groups; `None` if there are more than [`GROUPS_MAX`].
    #[must_use]
    pub fn new(gids: &[u32]) -> Option<Self> {
        let mut groups = Self { count: gids.len(), gids: [0; GROUPS_MAX] };
        groups.gids.get_mut(..gids.len())?.copy_from_slice(gids);
        Some(groups)
    }

    /// The groups in wire order.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        self.gids.get(..self.count).unwrap_or_default()
    }
}

impl PartialEq for Groups {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Groups {}

impl Encode for Groups {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.length(self.count);
        for gid in self.as_slice() {
            writer.u32(*gid);
        }
    }
}

impl Decode<'_> for Groups {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        let count = reader.length(GROUPS_MAX)?;
        let mut groups = Self { count, ..Self::default() };
        for gid in groups.gids.iter_mut().take(count) {
            *gid = reader.u32()?;
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(name: usize, groups: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.u32(1);
        writer.opaque(&vec![b'm'; name]);
        writer.u32(1000);
        writer.u32(100);
        writer.u32(groups);
        for gid in 0..groups {
            writer.u32(gid);
        }
        bytes
    }

    #[test]
    fn groups_and_name_at_their_limits() {
        let bytes = credential(255, 16);
        let auth = AuthSys::from_bytes(&bytes).unwrap();
        assert_eq!((auth.uid, auth.gid, auth.machine_name.0.len()), (1000, 100, 255));
        assert_eq!(auth.groups.as_slice(), (0..16).collect::<Vec<_>>());

        let error = |name, groups| AuthSys::from_bytes(&credential(name, groups)).unwrap_err();
        assert_eq!(error(3, 17), XdrError::TooLong { length: 17, limit: 16 });
        assert_eq!(error(256, 0), XdrError::TooLong { length: 256, limit: 255 });
    }

    #[test]
    fn more_groups_than_the_wire_carries_are_refused() {
        assert!(Groups::new(&[5; 16]).is_some());
        assert!(Groups::new(&[5; 17]).is_none());
    }
}
