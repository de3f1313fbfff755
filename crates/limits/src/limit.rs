//! The names of the limits.

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What an operation can wait for. An operation passes those that concern it in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Limit { $($(#[$doc])* $name),+ }

        impl Limit {
            /// All of them, in the order in which they are passed.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name in plans and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

limits! {
    /// Operations of one client in a second.
    ClientIops = "client-iops",
    /// Bytes of one client in a second.
    ClientThroughput = "client-throughput",
    /// Operations on names and attributes in a second.
    Metadata = "metadata-iops",
    /// Operations on the data of one file in a second.
    FileIops = "file-iops",
    /// Bytes of one file in a second.
    FileThroughput = "file-throughput",
    /// Bytes read in a second (Azure: egress).
    Read = "read",
    /// Bytes written in a second (Azure: ingress).
    Write = "write",
    /// Bytes read and written in a second.
    Throughput = "throughput",
    /// Operations in a second: the baseline, the burst above it, and its credits.
    Iops = "iops",
}
