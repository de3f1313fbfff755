//! Rights. [MS-DTYP] 2.4.3, [MS-SMB2] 2.2.13.1.

use bitflags::bitflags;

bitflags! {
    /// Rights that are requested, granted, or listed in an access control entry. The low bits have one meaning for a
    /// file and another for a directory; both names are defined here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
    pub struct AccessMask: u32 {
        /// File: read. Directory: FILE_LIST_DIRECTORY.
        const READ_DATA = 0x0000_0001;
        /// Directory: enumerate.
        const LIST_DIRECTORY = 0x0000_0001;
        /// File: write. Directory: FILE_ADD_FILE.
        const WRITE_DATA = 0x0000_0002;
        /// Directory: create files.
        const ADD_FILE = 0x0000_0002;
        /// File: append. Directory: FILE_ADD_SUBDIRECTORY.
        const APPEND_DATA = 0x0000_0004;
        /// Directory: create directories.
        const ADD_SUBDIRECTORY = 0x0000_0004;
        /// Read extended attributes.
        const READ_EA = 0x0000_0008;
        /// Write extended attributes.
        const WRITE_EA = 0x0000_0010;
        /// File: execute. Directory: FILE_TRAVERSE.
        const EXECUTE = 0x0000_0020;
        /// Directory: traverse.
        const TRAVERSE = 0x0000_0020;
        /// Directory: delete entries.
        const DELETE_CHILD = 0x0000_0040;
        /// Read attributes.
        const READ_ATTRIBUTES = 0x0000_0080;
        /// Write attributes.
        const WRITE_ATTRIBUTES = 0x0000_0100;
        /// Delete.
        const DELETE = 0x0001_0000;
        /// Read owner, group and DACL.
        const READ_CONTROL = 0x0002_0000;
        /// Change the DACL.
        const WRITE_DAC = 0x0004_0000;
        /// Change the owner.
        const WRITE_OWNER = 0x0008_0000;
        /// Synchronize
        const SYNCHRONIZE = 0x0010_0000;
        /// Read and change the SACL.
        const ACCESS_SYSTEM_SECURITY = 0x0100_0000;
        /// All rights that the user has.
        const MAXIMUM_ALLOWED = 0x0200_0000;
        /// GENERIC_ALL
        const GENERIC_ALL = 0x1000_0000;
        /// GENERIC_EXECUTE
        const GENERIC_EXECUTE = 0x2000_0000;
        /// GENERIC_WRITE
        const GENERIC_WRITE = 0x4000_0000;
        /// GENERIC_READ
        const GENERIC_READ = 0x8000_0000;
        const _ = !0;
    }
}

impl AccessMask {
    /// FILE_GENERIC_READ
    pub const FILE_READ: Self = Self::READ_DATA
        .union(Self::READ_EA)
        .union(Self::READ_ATTRIBUTES)
        .union(Self::READ_CONTROL)
        .union(Self::SYNCHRONIZE);
    /// FILE_GENERIC_WRITE
    pub const FILE_WRITE: Self = Self::WRITE_DATA
        .union(Self::APPEND_DATA)
        .union(Self::WRITE_EA)
        .union(Self::WRITE_ATTRIBUTES)
        .union(Self::READ_CONTROL)
        .union(Self::SYNCHRONIZE);
    /// FILE_GENERIC_EXECUTE
    pub const FILE_EXECUTE: Self =
        Self::EXECUTE.union(Self::READ_ATTRIBUTES).union(Self::READ_CONTROL).union(Self::SYNCHRONIZE);
    /// FILE_ALL_ACCESS
    pub const FILE_ALL: Self = Self::from_bits_retain(0x001F_01FF);

    const GENERIC: [(Self, Self); 4] = [
        (Self::GENERIC_READ, Self::FILE_READ),
        (Self::GENERIC_WRITE, Self::FILE_WRITE),
        (Self::GENERIC_EXECUTE, Self::FILE_EXECUTE),
        (Self::GENERIC_ALL, Self::FILE_ALL),
    ];

    /// The rights, with generic rights replaced by the specific rights of files and directories ([MS-SMB2] 2.2.13.1).
    #[must_use]
    pub fn mapped(self) -> Self {
        let stands = |mask: Self, (generic, rights): &(Self, Self)| {
            if mask.contains(*generic) { mask.difference(*generic).union(*rights) } else { mask }
        };
        Self::GENERIC.iter().fold(self, stands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_rights_stand_for_others() {
        // winnt.h FILE_GENERIC_READ and so on
        for (generic, rights) in [
            (0x8000_0000, 0x0012_0089),
            (0x4000_0000, 0x0012_0116),
            (0x2000_0000, 0x0012_00A0),
            (0x1000_0000, 0x001F_01FF),
        ] {
            assert_eq!(AccessMask::from_bits_retain(generic).mapped().bits(), rights);
            assert_eq!(
                AccessMask::from_bits_retain(generic | 0x0100_0000).mapped().bits(),
                rights | 0x0100_0000
            );
        }
        assert_eq!(AccessMask::from_bits_retain(0xC000_0000).mapped().bits(), 0x0012_019F);
    }
}
