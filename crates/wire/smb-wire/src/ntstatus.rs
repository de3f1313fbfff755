//! The NTSTATUS values that a file server sends, [MS-ERREF] 2.3.1.

use std::fmt;

/// A status of a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NtStatus(pub u32);

macro_rules! statuses {
    ($($name:ident = $value:literal,)+) => {
        impl NtStatus {
            $(
                #[doc = concat!("STATUS_", stringify!($name))]
                pub const $name: Self = Self($value);
            )+

            /// The values that are named here.
            pub const NAMED: &[(Self, &str)] = &[$((Self($value), concat!("STATUS_", stringify!($name))),)+];

            /// The name in [MS-ERREF], for the values listed here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("STATUS_", stringify!($name))),)+
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0x0000_0000,
    PENDING = 0x0000_0103,
    MORE_ENTRIES = 0x0000_0105,
    SOME_NOT_MAPPED = 0x0000_0107,
    NOTIFY_CLEANUP = 0x0000_010B,
    NOTIFY_ENUM_DIR = 0x0000_010C,
    BUFFER_OVERFLOW = 0x8000_0005,
    NO_MORE_FILES = 0x8000_0006,
    NO_MORE_EAS = 0x8000_0012,
    EA_LIST_INCONSISTENT = 0x8000_0014,
    INVALID_EA_NAME = 0x8000_0013,
    NO_MORE_ENTRIES = 0x8000_001A,
    STOPPED_ON_SYMLINK = 0x8000_002D,
    UNSUCCESSFUL = 0xC000_0001,
    NOT_IMPLEMENTED = 0xC000_0002,
    INVALID_INFO_CLASS = 0xC000_0003,
    INFO_LENGTH_MISMATCH = 0xC000_0004,
    INVALID_HANDLE = 0xC000_0008,
    INVALID_PARAMETER = 0xC000_000D,
    NO_SUCH_DEVICE = 0xC000_000E,
    NO_SUCH_FILE = 0xC000_000F,
    INVALID_DEVICE_REQUEST = 0xC000_0010,
    END_OF_FILE = 0xC000_0011,
    MORE_PROCESSING_REQUIRED = 0xC000_0016,
    NO_MEMORY = 0xC000_0017,
    INVALID_VIEW_SIZE = 0xC000_001F,
    ACCESS_DENIED = 0xC000_0022,
    BUFFER_TOO_SMALL = 0xC000_0023,
    OBJECT_TYPE_MISMATCH = 0xC000_0024,
    OBJECT_NAME_INVALID = 0xC000_0033,
    OBJECT_NAME_NOT_FOUND = 0xC000_0034,
    OBJECT_NAME_COLLISION = 0xC000_0035,
    OBJECT_PATH_INVALID = 0xC000_0039,
    OBJECT_PATH_NOT_FOUND = 0xC000_003A,
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
    DATA_ERROR = 0xC000_003E,
    CRC_ERROR = 0xC000_003F,
    SHARING_VIOLATION = 0xC000_0043,
    QUOTA_EXCEEDED = 0xC000_0044,
    EAS_NOT_SUPPORTED = 0xC000_004F,
    EA_TOO_LARGE = 0xC000_0050,
    NONEXISTENT_EA_ENTRY = 0xC000_0051,
    NO_EAS_ON_FILE = 0xC000_0052,
    EA_CORRUPT_ERROR = 0xC000_0053,
    FILE_LOCK_CONFLICT = 0xC000_0054,
    LOCK_NOT_GRANTED = 0xC000_0055,
    DELETE_PENDING = 0xC000_0056,
    INVALID_OWNER = 0xC000_005A,
    INVALID_PRIMARY_GROUP = 0xC000_005B,
    NO_SUCH_LOGON_SESSION = 0xC000_005F,
    PRIVILEGE_NOT_HELD = 0xC000_0061,
    NO_SUCH_USER = 0xC000_0064,
    NO_SUCH_GROUP = 0xC000_0066,
    WRONG_PASSWORD = 0xC000_006A,
    LOGON_FAILURE = 0xC000_006D,
    ACCOUNT_RESTRICTION = 0xC000_006E,
    PASSWORD_EXPIRED = 0xC000_0071,
    ACCOUNT_DISABLED = 0xC000_0072,
    NONE_MAPPED = 0xC000_0073,
    INVALID_SID = 0xC000_0078,
    INVALID_SECURITY_DESCR = 0xC000_0079,
    RANGE_NOT_LOCKED = 0xC000_007E,
    DISK_FULL = 0xC000_007F,
    INTEGER_OVERFLOW = 0xC000_0095,
    INSUFFICIENT_RESOURCES = 0xC000_009A,
    INSTANCE_NOT_AVAILABLE = 0xC000_00AB,
    PIPE_NOT_AVAILABLE = 0xC000_00AC,
    INVALID_PIPE_STATE = 0xC000_00AD,
    PIPE_BUSY = 0xC000_00AE,
    PIPE_DISCONNECTED = 0xC000_00B0,
    PIPE_CLOSING = 0xC000_00B1,
    IO_TIMEOUT = 0xC000_00B5,
    FILE_FORCED_CLOSED = 0xC000_00B6,
    FILE_IS_A_DIRECTORY = 0xC000_00BA,
    NOT_SUPPORTED = 0xC000_00BB,
    DUPLICATE_NAME = 0xC000_00BD,
    UNEXPECTED_NETWORK_ERROR = 0xC000_00C4,
    NETWORK_NAME_DELETED = 0xC000_00C9,
    BAD_DEVICE_TYPE = 0xC000_00CB,
    BAD_NETWORK_NAME = 0xC000_00CC,
    REQUEST_NOT_ACCEPTED = 0xC000_00D0,
    NOT_SAME_DEVICE = 0xC000_00D4,
    FILE_RENAMED = 0xC000_00D5,
    PIPE_EMPTY = 0xC000_00D9,
    NO_SUCH_DOMAIN = 0xC000_00DF,
    INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
    INTERNAL_ERROR = 0xC000_00E5,
    UNEXPECTED_IO_ERROR = 0xC000_00E9,
    DIRECTORY_NOT_EMPTY = 0xC000_0101,
    FILE_CORRUPT_ERROR = 0xC000_0102,
    NOT_A_DIRECTORY = 0xC000_0103,
    NAME_TOO_LONG = 0xC000_0106,
    TOO_MANY_OPENED_FILES = 0xC000_011F,
    CANCELLED = 0xC000_0120,
    CANNOT_DELETE = 0xC000_0121,
    FILE_DELETED = 0xC000_0123,
    FILE_CLOSED = 0xC000_0128,
    NO_LOGON_SERVERS = 0xC000_005E,
    TIME_DIFFERENCE_AT_DC = 0xC000_0133,
    INVALID_LEVEL = 0xC000_0148,
    PIPE_BROKEN = 0xC000_014B,
    NO_SUCH_ALIAS = 0xC000_0151,
    INVALID_DEVICE_STATE = 0xC000_0184,
    IO_DEVICE_ERROR = 0xC000_0185,
    INVALID_LOCK_RANGE = 0xC000_01A1,
    PATH_NOT_COVERED = 0xC000_0257,
    USER_SESSION_DELETED = 0xC000_0203,
    INSUFF_SERVER_RESOURCES = 0xC000_0205,
    NOT_FOUND = 0xC000_0225,
    DUPLICATE_OBJECTID = 0xC000_022A,
    RETRY = 0xC000_022D,
    FS_DRIVER_REQUIRED = 0xC000_019C,
    ACCOUNT_LOCKED_OUT = 0xC000_0234,
    CONNECTION_DISCONNECTED = 0xC000_020C,
    NO_MATCH = 0xC000_0272,
    NOT_A_REPARSE_POINT = 0xC000_0275,
    IO_REPARSE_TAG_INVALID = 0xC000_0276,
    IO_REPARSE_TAG_MISMATCH = 0xC000_0277,
    IO_REPARSE_DATA_INVALID = 0xC000_0278,
    REPARSE_POINT_NOT_RESOLVED = 0xC000_0280,
    TOO_MANY_LINKS = 0xC000_0265,
    BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
    MEDIA_WRITE_PROTECTED = 0xC000_00A2,
    NTLM_BLOCKED = 0xC000_0418,
    FILE_SYSTEM_LIMITATION = 0xC000_0427,
    REQUEST_OUT_OF_SEQUENCE = 0xC000_042A,
    NETWORK_SESSION_EXPIRED = 0xC000_035C,
    SERVER_UNAVAILABLE = 0xC000_0466,
    FILE_NOT_AVAILABLE = 0xC000_0467,
    CONTEXT_MISMATCH = 0xC000_0719,
    HASH_NOT_SUPPORTED = 0xC000_A100,
    HASH_NOT_PRESENT = 0xC000_A101,
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D_0000,
}

impl NtStatus {
    /// Whether the status says that the request failed (severity "error", the top two bits).
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 >= 0xC000_0000
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:08X}", self.0),
        }
    }
}

impl fmt::Debug for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_ms_erref() {
        let table = include_str!("../testdata/ntstatus.tsv");
        let mut rows: Vec<(NtStatus, &str)> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let (number, name) = line.split_once('\t').unwrap();
                (NtStatus(u32::from_str_radix(number.strip_prefix("0x").unwrap(), 16).unwrap()), name)
            })
            .collect();
        let mut named = NtStatus::NAMED.to_vec();
        rows.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, rows, "every name here needs its row of [MS-ERREF] in testdata/ntstatus.tsv");
    }

    #[test]
    fn statuses_show_their_names() {
        assert_eq!(NtStatus::SHARING_VIOLATION.to_string(), "STATUS_SHARING_VIOLATION");
        assert_eq!(NtStatus(0xC000_FFFF).to_string(), "0xC000FFFF");
    }

    #[test]
    fn only_the_top_severity_is_an_error() {
        assert!(NtStatus::ACCESS_DENIED.is_error());
        assert!(NtStatus::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP.is_error());
        assert!(!NtStatus::BUFFER_OVERFLOW.is_error());
        assert!(!NtStatus::PENDING.is_error());
    }
}
