//! The names of the limits.

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
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
        }
    };
}

limits! {
    /// Operations per second of one client.
    ClientIops = "client-iops",
    /// Bytes per second of one client.
    ClientThroughput = "client-throughput",
    /// Operations per second on names and attributes.
    Metadata = "metadata-iops",
    /// Operations per second on the data of one file.
    FileIops = "file-iops",
    /// Bytes per second of one file.
    FileThroughput = "file-throughput",
    /// Bytes read per second (Azure: egress).
    Read = "read",
    /// Bytes written per second (Azure: ingress).
    Write = "write",
    /// Bytes read and written per second.
    Throughput = "throughput",
    /// Operations per second: the baseline, the burst above it, and its credits.
    Iops = "iops",
}
