//! `nfsstat3`, RFC 1813 2.6.

use crate::xdr::xdr_enum;

xdr_enum! {
    /// Why a procedure failed. NFS3_OK is not a failure and therefore not listed.
    #[doc(alias = "nfsstat3")]
    Status {
        /// Not the owner, or only permitted to a privileged user.
        Perm = 1,
        /// The name does not exist.
        NoEnt = 2,
        /// A hard error of the storage.
        Io = 5,
        /// No such device.
        NxIo = 6,
        /// Permission denied.
        Acces = 13,
        /// The name exists already.
        Exist = 17,
        /// A link or rename across file systems.
        XDev = 18,
        /// No such device.
        NoDev = 19,
        /// The object is not a directory.
        NotDir = 20,
        /// The object is a directory.
        IsDir = 21,
        /// An argument that is invalid or not supported for this object.
        Inval = 22,
        /// The file would become larger than the server permits.
        FBig = 27,
        /// No space left.
        NoSpc = 28,
        /// The file system is read-only.
        RoFs = 30,
        /// Too many hard links.
        MLink = 31,
        /// The name is too long.
        NameTooLong = 63,
        /// The directory is not empty.
        NotEmpty = 66,
        /// The quota is exceeded.
        DQuot = 69,
        /// The object of the filehandle no longer exists.
        Stale = 70,
        /// Too many levels of remote in the path.
        Remote = 71,
        /// The filehandle does not belong to this server.
        BadHandle = 10001,
        /// SETATTR's guard does not match.
        NotSync = 10002,
        /// READDIR's cookie is stale.
        BadCookie = 10003,
        /// Not supported.
        NotSupp = 10004,
        /// The buffer or the request is too small.
        TooSmall = 10005,
        /// An error without a status of its own.
        ServerFault = 10006,
        /// An object of this type cannot be made here.
        BadType = 10007,
        /// The operation takes longer: the client should retry later, with a new xid.
        JukeBox = 10008,
    }
}
