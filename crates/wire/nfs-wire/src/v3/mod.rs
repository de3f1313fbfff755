//! NFS version 3, RFC 1813. One module for each procedure, with the procedure's name.

use crate::xdr::xdr_enum;

pub mod access;
pub mod attr;
pub mod commit;
pub mod create;
pub mod fsinfo;
pub mod fsstat;
pub mod getattr;
pub mod link;
pub mod lookup;
pub mod mkdir;
pub mod mknod;
pub mod pathconf;
pub mod read;
pub mod readdir;
pub mod readdirplus;
pub mod readlink;
pub mod remove;
pub mod rename;
pub mod rmdir;
pub mod setattr;
pub mod status;
pub mod symlink;
pub mod types;
pub mod write;

/// The program's number.
pub const PROGRAM: u32 = 100_003;
/// The program version of these modules.
pub const VERSION: u32 = 3;

xdr_enum! {
    /// The procedures, RFC 1813 section 3.
    Procedure {
        /// 3.3.0: do nothing.
        Null = 0,
        /// 3.3.1: attributes.
        GetAttr = 1,
        /// 3.3.2: change attributes.
        SetAttr = 2,
        /// 3.3.3: name to filehandle.
        Lookup = 3,
        /// 3.3.4: what the caller may do.
        Access = 4,
        /// 3.3.5: a symbolic link's text.
        ReadLink = 5,
        /// 3.3.6: read data of a file.
        Read = 6,
        /// 3.3.7: write data to a file.
        Write = 7,
        /// 3.3.8: create a file.
        Create = 8,
        /// 3.3.9: create a directory.
        MkDir = 9,
        /// 3.3.10: create a symbolic link.
        SymLink = 10,
        /// 3.3.11: create a special file.
        MkNod = 11,
        /// 3.3.12: remove a file.
        Remove = 12,
        /// 3.3.13: remove a directory.
        RmDir = 13,
        /// 3.3.14: rename.
        Rename = 14,
        /// 3.3.15: another name for a file.
        Link = 15,
        /// 3.3.16: names of a directory.
        ReadDir = 16,
        /// 3.3.17: names, attributes and filehandles of a directory.
        ReadDirPlus = 17,
        /// 3.3.18: space and number of files in the file system.
        FsStat = 18,
        /// 3.3.19: limits and capabilities of the server.
        FsInfo = 19,
        /// 3.3.20: rules for names.
        PathConf = 20,
        /// 3.3.21: put written data on stable storage.
        Commit = 21,
    }
}

impl Procedure {
    /// The name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::GetAttr => "GETATTR",
            Self::SetAttr => "SETATTR",
            Self::Lookup => "LOOKUP",
            Self::Access => "ACCESS",
            Self::ReadLink => "READLINK",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Create => "CREATE",
            Self::MkDir => "MKDIR",
            Self::SymLink => "SYMLINK",
            Self::MkNod => "MKNOD",
            Self::Remove => "REMOVE",
            Self::RmDir => "RMDIR",
            Self::Rename => "RENAME",
            Self::Link => "LINK",
            Self::ReadDir => "READDIR",
            Self::ReadDirPlus => "READDIRPLUS",
            Self::FsStat => "FSSTAT",
            Self::FsInfo => "FSINFO",
            Self::PathConf => "PATHCONF",
            Self::Commit => "COMMIT",
        }
    }
}
