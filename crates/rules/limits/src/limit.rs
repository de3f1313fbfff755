//! The limits that operations may have to wait for: one row for each.

use crate::Limits;

/// For what a limit holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The share as a whole.
    Share,
    /// Each client.
    Client,
    /// Each file.
    File,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Operations of any kind.
    Operations,
    /// Operations on names and attributes.
    MetadataOperations,
    /// Bytes read and written.
    Bytes,
    /// Bytes read.
    BytesRead,
    /// Bytes written.
    BytesWritten,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $scope:ident, $counted:ident, $field:ident);+ $(;)?) => {
        /// A limit that an operation may have to wait for. An operation passes the limits that apply to it in this
        /// order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Limit { $($(#[$doc])* $name),+ }

        impl Limit {
            /// All limits, in the order in which operations pass them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name of the limit in plans and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// For what it holds.
            #[must_use]
            pub fn scope(self) -> Scope {
                match self { $(Self::$name => Scope::$scope),+ }
            }

            /// What it counts.
            #[must_use]
            pub fn counted(self) -> Counted {
                match self { $(Self::$name => Counted::$counted),+ }
            }
        }

        impl Limits {
            /// The rate of a limit, per second; `None` when it is unlimited.
            #[must_use]
            pub fn rate(&self, limit: Limit) -> Option<u64> {
                match limit { $(Limit::$name => self.$field),+ }
            }

            /// The same, to be changed.
            pub fn rate_mut(&mut self, limit: Limit) -> &mut Option<u64> {
                match limit { $(Limit::$name => &mut self.$field),+ }
            }
        }
    };
}

limits! {
    /// Operations per second of one client.
    ClientIops = "client-iops", Client, Operations, client_iops;
    /// Operations per second of one client on names and attributes.
    ClientMetadata = "client-metadata-iops", Client, MetadataOperations, client_metadata_iops;
    /// Bytes per second of one client.
    ClientThroughput = "client-throughput", Client, Bytes, client_throughput;
    /// Operations per second on names and attributes.
    Metadata = "metadata-iops", Share, MetadataOperations, metadata_iops;
    /// Operations per second on the data of one file.
    FileIops = "file-iops", File, Operations, file_iops;
    /// Bytes per second of one file.
    FileThroughput = "file-throughput", File, Bytes, file_throughput;
    /// Bytes read per second (Azure: egress).
    Read = "read", Share, BytesRead, read;
    /// Bytes written per second (Azure: ingress).
    Write = "write", Share, BytesWritten, write;
    /// Bytes read and written per second.
    Throughput = "throughput", Share, Bytes, throughput;
    /// Operations per second: the baseline, the burst above it, and its credits.
    Iops = "iops", Share, Operations, iops;
}
