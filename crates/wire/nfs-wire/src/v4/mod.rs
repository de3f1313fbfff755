//! NFS version 4, minor versions 0 to 2: RFC 7530, RFC 8881, RFC 7862 and RFC 8276. One module for each operation, with
//! the operation's name. Sections without a document are those of RFC 8881.

use crate::xdr::xdr_enum;

pub mod access;
pub mod acl;
pub mod allocate;
pub mod attr;
pub mod backchannel_ctl;
pub mod bind_conn_to_session;
pub mod callback;
pub mod clone;
pub mod close;
pub mod commit;
pub mod compound;
pub mod copy;
pub mod copy_notify;
pub mod create;
pub mod create_session;
pub mod deallocate;
pub mod delegpurge;
pub mod delegreturn;
pub mod destroy_clientid;
pub mod destroy_session;
pub mod dir_delegation;
pub mod exchange_id;
pub mod free_stateid;
pub mod fs_locations;
pub mod getattr;
pub mod getfh;
pub mod getxattr;
pub mod io_advise;
pub mod link;
pub mod listxattrs;
pub mod lock;
pub mod lockt;
pub mod locku;
pub mod lookup;
pub mod nverify;
pub mod offload_cancel;
pub mod offload_status;
pub mod open;
pub mod open_confirm;
pub mod open_downgrade;
pub mod openattr;
pub mod putfh;
pub mod read;
pub mod read_plus;
pub mod readdir;
pub mod readlink;
pub mod reclaim_complete;
pub mod release_lockowner;
pub mod remove;
pub mod removexattr;
pub mod rename;
pub mod renew;
pub mod secinfo;
pub mod secinfo_no_name;
pub mod seek;
pub mod sequence;
pub mod set_ssv;
pub mod setattr;
pub mod setclientid;
pub mod setclientid_confirm;
pub mod setxattr;
pub mod status;
pub mod test_stateid;
pub mod types;
pub mod verify;
pub mod want_delegation;
pub mod write;

/// The program's number.
pub const PROGRAM: u32 = 100_003;
/// The program version of these modules.
pub const VERSION: u32 = 4;
/// The highest minor version of these modules.
pub const MINOR_VERSION_MAX: u32 = 2;

xdr_enum! {
    /// The procedures, RFC 8881 section 16.
    Procedure {
        /// 16.1: do nothing.
        Null = 0,
        /// 16.2: carry out a list of operations.
        Compound = 1,
    }
}

xdr_enum! {
    /// The operations, RFC 8881 section 18, RFC 7862 section 15 and RFC 8276 8.4.
    #[doc(alias = "nfs_opnum4")]
    Operation {
        /// 18.1: what the caller may do.
        Access = 3,
        /// 18.2: end an open.
        Close = 4,
        /// 18.3: put written data on stable storage.
        Commit = 5,
        /// 18.4: create an object that is not a regular file.
        Create = 6,
        /// 18.5: give up delegations of an earlier incarnation.
        DelegPurge = 7,
        /// 18.6: return a delegation.
        DelegReturn = 8,
        /// 18.7: attributes.
        GetAttr = 9,
        /// 18.8: the current filehandle.
        GetFh = 10,
        /// 18.9: another name for a file.
        Link = 11,
        /// 18.10: lock a byte range.
        Lock = 12,
        /// 18.11: test whether a byte range could be locked.
        LockT = 13,
        /// 18.12: unlock a byte range.
        LockU = 14,
        /// 18.13: name to filehandle.
        Lookup = 15,
        /// 18.14: the parent directory.
        LookupP = 16,
        /// 18.15: continue only if attributes differ.
        NVerify = 17,
        /// 18.16: open a file.
        Open = 18,
        /// 18.17: the directory of named attributes.
        OpenAttr = 19,
        /// RFC 7530 16.18: confirm the first use of an open-owner (NFSv4.0 only).
        OpenConfirm = 20,
        /// 18.18: reduce an open's access.
        OpenDowngrade = 21,
        /// 18.19: set the current filehandle.
        PutFh = 22,
        /// 18.20: the public filehandle.
        PutPubFh = 23,
        /// 18.21: the root of the pseudo file system.
        PutRootFh = 24,
        /// 18.22: read data of a file.
        Read = 25,
        /// 18.23: names of a directory.
        ReadDir = 26,
        /// 18.24: a symbolic link's text.
        ReadLink = 27,
        /// 18.25: remove a name.
        Remove = 28,
        /// 18.26: rename.
        Rename = 29,
        /// RFC 7530 16.28: renew the lease (NFSv4.0 only).
        Renew = 30,
        /// 18.27: the saved filehandle becomes the current one.
        RestoreFh = 31,
        /// 18.28: the current filehandle becomes the saved one.
        SaveFh = 32,
        /// 18.29: security flavors of a name.
        SecInfo = 33,
        /// 18.30: change attributes.
        SetAttr = 34,
        /// RFC 7530 16.33: a client identifies itself (NFSv4.0 only).
        SetClientId = 35,
        /// RFC 7530 16.34: a client has received its client ID (NFSv4.0 only).
        SetClientIdConfirm = 36,
        /// 18.31: continue only if attributes are the same.
        Verify = 37,
        /// 18.32: write data to a file.
        Write = 38,
        /// RFC 7530 16.37: a lock-owner is no longer used (NFSv4.0 only).
        ReleaseLockOwner = 39,
        /// 18.33: program and credentials of the back channel.
        BackchannelCtl = 40,
        /// 18.34: another connection for a session.
        BindConnToSession = 41,
        /// 18.35: client and server identify themselves.
        ExchangeId = 42,
        /// 18.36: create a session.
        CreateSession = 43,
        /// 18.37: end a session.
        DestroySession = 44,
        /// 18.38: forget state.
        FreeStateid = 45,
        /// 18.39: delegation of a directory.
        GetDirDelegation = 46,
        /// 18.40: pNFS device.
        GetDeviceInfo = 47,
        /// 18.41: pNFS devices.
        GetDeviceList = 48,
        /// 18.42: pNFS.
        LayoutCommit = 49,
        /// 18.43: pNFS.
        LayoutGet = 50,
        /// 18.44: pNFS.
        LayoutReturn = 51,
        /// 18.45: security flavors of a filehandle.
        SecInfoNoName = 52,
        /// 18.46: the slot that a request uses.
        Sequence = 53,
        /// 18.47: change the secret state verifier.
        SetSsv = 54,
        /// 18.48: test whether state still exists.
        TestStateid = 55,
        /// 18.49: ask for a delegation.
        WantDelegation = 56,
        /// 18.50: forget a client.
        DestroyClientId = 57,
        /// 18.51: all reclaims are complete.
        ReclaimComplete = 58,
        /// RFC 7862 15.1: reserve space.
        Allocate = 59,
        /// RFC 7862 15.2: copy on the server.
        Copy = 60,
        /// RFC 7862 15.3: announce a copy to another server.
        CopyNotify = 61,
        /// RFC 7862 15.4: make a hole.
        Deallocate = 62,
        /// RFC 7862 15.5: how a file will be used.
        IoAdvise = 63,
        /// RFC 7862 15.6: pNFS.
        LayoutError = 64,
        /// RFC 7862 15.7: pNFS.
        LayoutStats = 65,
        /// RFC 7862 15.8: cancel a copy.
        OffloadCancel = 66,
        /// RFC 7862 15.9: the progress of a copy.
        OffloadStatus = 67,
        /// RFC 7862 15.10: data and holes.
        ReadPlus = 68,
        /// RFC 7862 15.11: the next data or hole.
        Seek = 69,
        /// RFC 7862 15.12: write a pattern.
        WriteSame = 70,
        /// RFC 7862 15.13: share data.
        Clone = 71,
        /// RFC 8276 8.4.1: an extended attribute.
        GetXattr = 72,
        /// RFC 8276 8.4.2: set an extended attribute.
        SetXattr = 73,
        /// RFC 8276 8.4.3: names of extended attributes.
        ListXattrs = 74,
        /// RFC 8276 8.4.4: remove an extended attribute.
        RemoveXattr = 75,
        /// 15.1.3.4: undefined operation; only in results.
        Illegal = 10044,
    }
}

impl Operation {
    /// The last operation of NFSv4.0; later ones were added by NFSv4.1.
    const LAST_OF_MINOR_VERSION_0: u32 = 39;
    /// The last operation of NFSv4.1; later ones were added by NFSv4.2.
    const LAST_OF_MINOR_VERSION_1: u32 = 58;

    /// The operation with this number in a minor version; `None` if that version does not have it. NFSv4.1 still has the
    /// operations that only NFSv4.0 uses: they "MUST NOT be implemented" there (RFC 8881 17), and NFS4ERR_NOTSUPP says so.
    #[must_use]
    pub fn in_minor_version(minor_version: u32, number: u32) -> Option<Self> {
        let operation = Self::try_from(number).ok().filter(|operation| *operation != Self::Illegal)?;
        let last = match minor_version {
            0 => Self::LAST_OF_MINOR_VERSION_0,
            1 => Self::LAST_OF_MINOR_VERSION_1,
            _ => u32::MAX,
        };
        (number <= last).then_some(operation)
    }

    /// The name in the specification.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one line an operation")]
    pub fn name(self) -> &'static str {
        match self {
            Self::Access => "ACCESS",
            Self::Close => "CLOSE",
            Self::Commit => "COMMIT",
            Self::Create => "CREATE",
            Self::DelegPurge => "DELEGPURGE",
            Self::DelegReturn => "DELEGRETURN",
            Self::GetAttr => "GETATTR",
            Self::GetFh => "GETFH",
            Self::Link => "LINK",
            Self::Lock => "LOCK",
            Self::LockT => "LOCKT",
            Self::LockU => "LOCKU",
            Self::Lookup => "LOOKUP",
            Self::LookupP => "LOOKUPP",
            Self::NVerify => "NVERIFY",
            Self::Open => "OPEN",
            Self::OpenAttr => "OPENATTR",
            Self::OpenConfirm => "OPEN_CONFIRM",
            Self::OpenDowngrade => "OPEN_DOWNGRADE",
            Self::PutFh => "PUTFH",
            Self::PutPubFh => "PUTPUBFH",
            Self::PutRootFh => "PUTROOTFH",
            Self::Read => "READ",
            Self::ReadDir => "READDIR",
            Self::ReadLink => "READLINK",
            Self::Remove => "REMOVE",
            Self::Rename => "RENAME",
            Self::Renew => "RENEW",
            Self::RestoreFh => "RESTOREFH",
            Self::SaveFh => "SAVEFH",
            Self::SecInfo => "SECINFO",
            Self::SetAttr => "SETATTR",
            Self::SetClientId => "SETCLIENTID",
            Self::SetClientIdConfirm => "SETCLIENTID_CONFIRM",
            Self::Verify => "VERIFY",
            Self::Write => "WRITE",
            Self::ReleaseLockOwner => "RELEASE_LOCKOWNER",
            Self::BackchannelCtl => "BACKCHANNEL_CTL",
            Self::BindConnToSession => "BIND_CONN_TO_SESSION",
            Self::ExchangeId => "EXCHANGE_ID",
            Self::CreateSession => "CREATE_SESSION",
            Self::DestroySession => "DESTROY_SESSION",
            Self::FreeStateid => "FREE_STATEID",
            Self::GetDirDelegation => "GET_DIR_DELEGATION",
            Self::GetDeviceInfo => "GETDEVICEINFO",
            Self::GetDeviceList => "GETDEVICELIST",
            Self::LayoutCommit => "LAYOUTCOMMIT",
            Self::LayoutGet => "LAYOUTGET",
            Self::LayoutReturn => "LAYOUTRETURN",
            Self::SecInfoNoName => "SECINFO_NO_NAME",
            Self::Sequence => "SEQUENCE",
            Self::SetSsv => "SET_SSV",
            Self::TestStateid => "TEST_STATEID",
            Self::WantDelegation => "WANT_DELEGATION",
            Self::DestroyClientId => "DESTROY_CLIENTID",
            Self::ReclaimComplete => "RECLAIM_COMPLETE",
            Self::Allocate => "ALLOCATE",
            Self::Copy => "COPY",
            Self::CopyNotify => "COPY_NOTIFY",
            Self::Deallocate => "DEALLOCATE",
            Self::IoAdvise => "IO_ADVISE",
            Self::LayoutError => "LAYOUTERROR",
            Self::LayoutStats => "LAYOUTSTATS",
            Self::OffloadCancel => "OFFLOAD_CANCEL",
            Self::OffloadStatus => "OFFLOAD_STATUS",
            Self::ReadPlus => "READ_PLUS",
            Self::Seek => "SEEK",
            Self::WriteSame => "WRITE_SAME",
            Self::Clone => "CLONE",
            Self::GetXattr => "GETXATTR",
            Self::SetXattr => "SETXATTR",
            Self::ListXattrs => "LISTXATTRS",
            Self::RemoveXattr => "REMOVEXATTR",
            Self::Illegal => "ILLEGAL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_belong_to_minor_versions() {
        // RFC 7531: 3 to 39; RFC 8881 16.2.1: 3 to 58; RFC 7863: up to 71; RFC 8276 8.4: up to 75
        let numbers =
            |minor| (0..20_000).filter(|n| Operation::in_minor_version(minor, *n).is_some()).collect();
        let (base, first, second): (Vec<u32>, Vec<u32>, Vec<u32>) = (numbers(0), numbers(1), numbers(2));
        assert_eq!(base, (3..=39).collect::<Vec<_>>());
        assert_eq!(first, (3..=58).collect::<Vec<_>>());
        assert_eq!(second, (3..=75).collect::<Vec<_>>());
    }
}
