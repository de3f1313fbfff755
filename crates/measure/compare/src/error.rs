//! Why servers cannot be compared.

use std::path::PathBuf;

use load::result::FileError;

/// Why servers cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Samba and NFS-Ganesha are requested, and the program does not run as root.
    #[error("Samba and NFS-Ganesha serve only when root starts them")]
    NotRoot,
    /// A server cannot be started.
    #[error(transparent)]
    Server(#[from] peers::Error),
    /// Anabranch runs, but its control address is not known.
    #[error("{}", .0.what)]
    Control(gateway::Problem),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    NoRandom(getrandom::Error),
    /// The selection leaves no row of a family.
    #[error("no row of {family} is of these connections and block sizes")]
    NoRow {
        /// The family.
        family: String,
    },
    /// There is not enough space for the files of the servers.
    #[error("{family} needs {needed_mib} MiB in {}", .directory.display())]
    NoRoom {
        /// The family.
        family: &'static str,
        /// The size of all files, in MiB.
        needed_mib: u64,
        /// The directory for the files.
        directory: PathBuf,
        /// The free space there, in MiB.
        free_mib: u64,
    },
    /// The families cannot be measured in this time.
    #[error("that is not enough time for {measurements} measurements")]
    TooLittleTime {
        /// The number of measurements.
        measurements: usize,
        /// The least time for them, in whole minutes.
        minutes_min: f64,
    },
    /// A result cannot be written.
    #[error("the result cannot be written to {}: {error}", .path.display())]
    NotSaved {
        /// The file, or its directory.
        path: PathBuf,
        /// Why.
        error: FileError,
    },
    /// A section cannot be written. The document is unchanged.
    #[error("nothing is written to {}: {why}", .document.display())]
    NotWritten {
        /// The document.
        document: PathBuf,
        /// Why, in words.
        why: String,
    },
}

/// The outcome of a comparison.
pub type Result<T> = std::result::Result<T, Error>;
