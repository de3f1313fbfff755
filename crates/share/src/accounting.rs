//! What calls cost: a counter and a latency histogram per API name, protocol and share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Protocol;

macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a client asked for: an SMB command, an NFSv3 procedure or an NFSv4 operation. Where two have one of the
        /// same name and meaning they share it; [`Protocol`] tells them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Api { $($(#[$doc])* $name),+ }

        impl Api {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name in metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

apis! {
    /// SMB CREATE, NFS CREATE.
    Create,
    /// SMB CLOSE, NFSv4 CLOSE.
    Close,
    /// SMB READ, NFS READ.
    Read,
    /// SMB WRITE, NFS WRITE.
    Write,
    /// SMB FLUSH.
    Flush,
    /// SMB LOCK, NFSv4 LOCK.
    Lock,
    /// SMB IOCTL.
    Ioctl,
    /// SMB QUERY_DIRECTORY.
    QueryDirectory,
    /// SMB CHANGE_NOTIFY.
    ChangeNotify,
    /// SMB QUERY_INFO.
    QueryInfo,
    /// SMB SET_INFO.
    SetInfo,
    /// SMB OPLOCK_BREAK acknowledgment.
    OplockBreak,
    /// SMB TREE_CONNECT.
    TreeConnect,
    /// SMB TREE_DISCONNECT.
    TreeDisconnect,
    /// NFS GETATTR.
    GetAttr,
    /// NFS SETATTR.
    SetAttr,
    /// NFS LOOKUP.
    Lookup,
    /// NFS ACCESS.
    Access,
    /// NFS READLINK.
    ReadLink,
    /// NFS MKDIR.
    MkDir,
    /// NFS SYMLINK.
    SymLink,
    /// NFS MKNOD.
    MkNod,
    /// NFS REMOVE.
    Remove,
    /// NFS RMDIR.
    RmDir,
    /// NFS RENAME.
    Rename,
    /// NFS LINK.
    Link,
    /// NFS READDIR.
    ReadDir,
    /// NFS READDIRPLUS.
    ReadDirPlus,
    /// NFS FSSTAT.
    FsStat,
    /// NFS FSINFO.
    FsInfo,
    /// NFS PATHCONF.
    PathConf,
    /// NFS COMMIT.
    Commit,
    /// MOUNT MNT.
    Mount,
    /// NFSv4 OPEN.
    Open,
    /// NFSv4 OPEN_DOWNGRADE.
    OpenDowngrade,
    /// NFSv4 LOCKT.
    LockTest,
    /// NFSv4 LOCKU.
    Unlock,
    /// NFSv4 DELEGRETURN.
    DelegReturn,
    /// NFSv4 VERIFY and NVERIFY.
    Verify,
    /// NFSv4 SECINFO and SECINFO_NO_NAME.
    SecInfo,
    /// NFSv4.2 SEEK.
    Seek,
    /// NFSv4.2 ALLOCATE.
    Allocate,
    /// NFSv4.2 DEALLOCATE.
    Deallocate,
    /// NFSv4.2 READ_PLUS.
    ReadPlus,
    /// NFSv4.2 COPY.
    Copy,
    /// NFSv4.2 CLONE.
    Clone,
    /// NFSv4.2 IO_ADVISE.
    IoAdvise,
    /// NFSv4 GETXATTR (RFC 8276).
    GetXattr,
    /// NFSv4 SETXATTR (RFC 8276).
    SetXattr,
    /// NFSv4 LISTXATTRS (RFC 8276).
    ListXattrs,
    /// NFSv4 REMOVEXATTR (RFC 8276).
    RemoveXattr,
}

/// Buckets of a latency histogram: [`bucket_limit`].
pub const HISTOGRAM_BUCKETS: usize = 24;

/// The upper limit of a bucket: 2^n microseconds; the last bucket has none.
#[must_use]
pub fn bucket_limit(bucket: usize) -> Option<Duration> {
    (bucket + 1 < HISTOGRAM_BUCKETS).then(|| Duration::from_micros(1 << bucket))
}

fn bucket_of(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    let bits = micros.saturating_sub(1).checked_ilog2().map_or(0, |log| log as usize + 1);
    bits.min(HISTOGRAM_BUCKETS - 1)
}

/// The counters of one API name of one protocol.
#[derive(Debug)]
pub struct Cell {
    /// Calls that ended.
    pub calls: AtomicU64,
    /// Calls that failed.
    pub errors: AtomicU64,
    /// Payload bytes received and sent.
    pub bytes: AtomicU64,
    /// Time from the arrival of the request to its answer, summed, in nanoseconds.
    pub nanos: AtomicU64,
    /// Calls by that time.
    pub latency: [AtomicU64; HISTOGRAM_BUCKETS],
}

impl Default for Cell {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            calls: zero(),
            errors: zero(),
            bytes: zero(),
            nanos: zero(),
            latency: std::array::from_fn(|_| zero()),
        }
    }
}

/// All counters of one share.
#[derive(Debug)]
pub struct Accounting(Vec<Cell>);

impl Default for Accounting {
    fn default() -> Self {
        Self((0..Protocol::ALL.len() * Api::ALL.len()).map(|_| Cell::default()).collect())
    }
}

/// One call under measurement.
#[derive(Debug, Clone, Copy)]
#[must_use = "a call that is begun must be ended to be counted"]
pub struct Measure {
    api: Api,
    protocol: Protocol,
    begun: Instant,
}

impl Measure {
    /// A call begins.
    pub fn begin(api: Api, protocol: Protocol) -> Self {
        Self { api, protocol, begun: Instant::now() }
    }

    /// When the call began.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }
}

impl Accounting {
    /// The counters of one API name of one protocol.
    #[must_use]
    pub fn cell(&self, api: Api, protocol: Protocol) -> &Cell {
        &self.0[protocol as usize * Api::ALL.len() + api as usize]
    }

    /// A call has ended, having moved `bytes` of payload.
    pub fn end(&self, measure: Measure, bytes: u64, ok: bool) {
        let cell = self.cell(measure.api, measure.protocol);
        let latency = measure.begun.elapsed();
        let add = |counter: &AtomicU64, n: u64| counter.fetch_add(n, Ordering::Relaxed);
        add(&cell.calls, 1);
        add(&cell.errors, u64::from(!ok));
        add(&cell.bytes, bytes);
        add(&cell.nanos, u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        add(&cell.latency[bucket_of(latency)], 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_their_limit_says() {
        for nanos in [0, 999, 1_000, 1_001, 2_000, 2_001, 1_000_000, 3_999_999_999, u64::MAX] {
            let latency = Duration::from_nanos(nanos);
            let bucket = bucket_of(latency);
            let micros = Duration::from_micros(u64::try_from(latency.as_micros()).unwrap());
            assert!(bucket_limit(bucket).is_none_or(|limit| micros <= limit), "{nanos}");
            assert!(bucket == 0 || bucket_limit(bucket - 1).is_some_and(|limit| micros > limit), "{nanos}");
        }
    }

    #[test]
    fn calls_are_counted_in_their_own_cell() {
        let accounting = Accounting::default();
        accounting.end(Measure::begin(Api::Read, Protocol::Nfs3), 4096, true);
        accounting.end(Measure::begin(Api::Read, Protocol::Nfs3), 0, false);
        let cell = accounting.cell(Api::Read, Protocol::Nfs3);
        assert_eq!(cell.calls.load(Ordering::Relaxed), 2);
        assert_eq!(cell.errors.load(Ordering::Relaxed), 1);
        assert_eq!(cell.bytes.load(Ordering::Relaxed), 4096);
        assert_eq!(cell.latency.iter().map(|c| c.load(Ordering::Relaxed)).sum::<u64>(), 2);
        assert_eq!(accounting.cell(Api::Read, Protocol::Smb).calls.load(Ordering::Relaxed), 0);
        for (number, api) in Api::ALL.iter().enumerate() {
            assert_eq!(*api as usize, number);
        }
    }
}
