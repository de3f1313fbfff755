//! The command line of `anabranch share replicate`.

use std::path::PathBuf;

use clap::Args;

use super::snapshots::seconds;
use crate::asking::Asking;

/// Make an empty share a replica of a share on another server, and tell how it is. Clients of a replica can only read, and see the last
/// state of the source that was transferred completely
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args([
    "from", "status", "now", "break", "resync", "stop", "destinations", "forget",
]))]
pub(crate) struct ShareReplicate {
    /// The share
    pub(crate) name: String,
    /// The share that it becomes a replica of, with the control address of its server
    #[arg(long, value_name = "https://HOST:PORT/SHARE", requires = "token_file")]
    pub(crate) from: Option<String>,
    /// A file with what this command has printed there: anabranch token create NAME --scope replicate
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with that server's certificate: control-certificate.pem of its state directory
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) certificate_file: Option<PathBuf>,
    /// How often it is brought up to date [default: 10m]
    #[arg(long, value_name = "10m|1h|1d", value_parser = seconds, requires = "from")]
    pub(crate) every: Option<u64>,
    /// How much is transferred in a second at most
    #[arg(long, value_name = "100MiB/s", value_parser = bytes_a_second, requires = "from")]
    pub(crate) bandwidth: Option<u64>,
    /// Exchange the roles: that share was a replica of this one until it was broken off, and this one, which need not be empty, becomes its
    /// replica. What this one has stays as a snapshot
    #[arg(long, requires = "from")]
    pub(crate) reverse: bool,
    /// Show how the replica is
    #[arg(long)]
    pub(crate) status: bool,
    /// Bring it up to date now, and wait for that
    #[arg(long)]
    pub(crate) now: bool,
    /// Break it off: it is no longer brought up to date, and clients can write to it, as it was last complete
    #[arg(long)]
    pub(crate) r#break: bool,
    /// Make it a replica again; what clients have written meanwhile stays as a snapshot
    #[arg(long)]
    pub(crate) resync: bool,
    /// Make it an ordinary share, as it was last complete
    #[arg(long)]
    pub(crate) stop: bool,
    /// List the servers that replicate this share
    #[arg(long)]
    pub(crate) destinations: bool,
    /// Forget a server that replicates this share, and remove the snapshots that are kept for it
    #[arg(long, value_name = "DESTINATION")]
    pub(crate) forget: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// Bytes in a second: a number and its unit.
fn bytes_a_second(text: &str) -> Result<u64, String> {
    text.strip_suffix("/s").and_then(limits::parse_size).ok_or_else(|| {
        format!("{text:?} is no bandwidth: expected a number and a unit, such as 512KiB/s or 100MiB/s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_a_number_and_a_unit() {
        let given = ["512KiB/s", "100MiB/s", "1GiB/s"].map(|text| bytes_a_second(text).unwrap());
        assert_eq!(given, [512 << 10, 100 << 20, 1 << 30]);
        for bad in ["", "1", "1MiB", "MiB/s", "-1MiB/s", "1.5MiB/s", "1MB/s", "99999999999999999999KiB/s"] {
            assert!(bytes_a_second(bad).is_err(), "{bad}");
        }
    }
}
