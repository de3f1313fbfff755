//! Errors of questions to a running server, and of trials.

/// Why there is no advice on a running server, or why a trial failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be asked, or refuses.
    #[error(transparent)]
    Control(#[from] control_client::Error),
    /// No connected client has this name.
    #[error("no client {client} is connected")]
    NoSuchClient {
        /// The name.
        client: String,
    },
    /// A target names no share.
    #[error("{target} names no share of the server that runs here")]
    NoShare {
        /// The target.
        target: String,
    },
    /// The configuration declares the share, so no command changes it.
    #[error("the share {share} is declared in {place}: no command changes it")]
    Declared {
        /// The name of the share.
        share: String,
        /// Where it is declared.
        place: String,
    },
    /// The target is a share of the same name on another server.
    #[error("{target} is not the share {share} of the server that runs here: that saw nothing of it")]
    OtherServer {
        /// The target.
        target: String,
        /// The name of the share.
        share: String,
    },
    /// The user stopped a trial.
    #[error("stopped: the share {share} is unchanged")]
    Stopped {
        /// The name of the share.
        share: String,
    },
}

/// The outcome of a question to a server, or of a trial.
pub type Result<T> = std::result::Result<T, Error>;
