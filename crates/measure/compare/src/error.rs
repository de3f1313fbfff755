//! Why servers cannot be compared.

use std::path::PathBuf;

use load::result::FileError;

/// Why servers cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Samba and NFS-Ganesha are wanted, and this is not root.
    #[error("Samba and NFS-Ganesha serve only when root starts them")]
    NotRoot,
    /// A server cannot be started.
    #[error(transparent)]
    Server(#[from] peers::Error),
    /// Anabranch runs, and its control address is not known.
    #[error("{}", .0.what)]
    Control(gateway::Problem),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    NoRandom(getrandom::Error),
    /// No row of a family is wanted.
    #[error("no row of {family} is of these connections and block sizes")]
    NoRow {
        /// The family.
        family: String,
    },
    /// The files of the servers have no room.
    #[error("{family} needs {needed_mib} MiB in {}", .directory.display())]
    NoRoom {
        /// The family.
        family: &'static str,
        /// MiB that all files take.
        needed_mib: u64,
        /// Where they would be.
        directory: PathBuf,
        /// MiB that are free there.
        free_mib: u64,
    },
    /// The families cannot be measured in this time.
    #[error("that is not enough time for {measurements} measurements")]
    TooLittleTime {
        /// Measurements that there are to be.
        measurements: usize,
        /// Whole minutes that they take at least.
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
    /// A section cannot be written; the document is as it was.
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
