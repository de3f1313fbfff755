//! What an open may do, and what it lets others do.

use bitflags::bitflags;

bitflags! {
    /// What an open may do: the bits that the access masks of [MS-DTYP] 2.4.3, [MS-SMB2] 2.2.13.1 and
    /// RFC 8881 6.2.1.3.1 have in common. Generic rights are resolved before they come here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Access: u32 {
        /// Read the data.
        const READ_DATA = 0x1;
        /// Read the names of a directory.
        const LIST_DIRECTORY = 0x1;
        /// Write the data.
        const WRITE_DATA = 0x2;
        /// Make a file in a directory.
        const ADD_FILE = 0x2;
        /// Write at the end of the data.
        const APPEND_DATA = 0x4;
        /// Make a directory in a directory.
        const ADD_SUBDIRECTORY = 0x4;
        /// Read extended attributes.
        const READ_EA = 0x8;
        /// Write extended attributes.
        const WRITE_EA = 0x10;
        /// Execute the file.
        const EXECUTE = 0x20;
        /// Pass through the directory.
        const TRAVERSE = 0x20;
        /// Remove what is in the directory.
        const DELETE_CHILD = 0x40;
        /// Read attributes.
        const READ_ATTRIBUTES = 0x80;
        /// Change attributes.
        const WRITE_ATTRIBUTES = 0x100;
        /// Remove the object.
        const DELETE = 0x1_0000;
        /// Read the security descriptor.
        const READ_CONTROL = 0x2_0000;
        /// Change the access control list.
        const WRITE_DAC = 0x4_0000;
        /// Change the owner.
        const WRITE_OWNER = 0x8_0000;
        /// Wait for the object.
        const SYNCHRONIZE = 0x10_0000;
    }
}

bitflags! {
    /// What an open lets others do: the bits of SMB's share access ([MS-SMB2] 2.2.13).
    /// NFSv4's deny mode is the complement. An NFSv4 open always shares [`Sharing::DELETE`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Sharing: u8 {
        /// Others may read or execute.
        const READ = 0x1;
        /// Others may write or append.
        const WRITE = 0x2;
        /// Others may delete or rename.
        const DELETE = 0x4;
    }
}

impl Access {
    /// What other opens must share for this access to be granted ([MS-FSA] 2.1.5.1.2.2): reading and executing need
    /// [`Sharing::READ`], writing and appending [`Sharing::WRITE`], deleting [`Sharing::DELETE`].
    /// An open that needs nothing conflicts with no other open.
    #[must_use]
    pub fn needs(self) -> Sharing {
        let mut needs = Sharing::empty();
        needs.set(Sharing::READ, self.intersects(Self::READ_DATA | Self::EXECUTE));
        needs.set(Sharing::WRITE, self.intersects(Self::WRITE_DATA | Self::APPEND_DATA));
        needs.set(Sharing::DELETE, self.contains(Self::DELETE));
        needs
    }
}
