//! Why there is no advice on a server that runs, or no trial of it.

/// Why there is no advice on a server that runs, or no trial of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be asked, or refuses.
    #[error(transparent)]
    Control(#[from] control_client::Error),
    /// Nobody who is connected goes by this name.
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
    /// The configuration declares a share: no command changes it.
    #[error("the share {share} is declared in {place}: no command changes it")]
    Declared {
        /// The name of the share.
        share: String,
        /// Where it is declared.
        place: String,
    },
    /// What was measured is a share of the same name, of another server.
    #[error("{target} is not the share {share} of the server that runs here: that saw nothing of it")]
    OtherServer {
        /// What was measured.
        target: String,
        /// The name of the share.
        share: String,
    },
    /// Somebody wanted a trial to stop.
    #[error("stopped: the share {share} is unchanged")]
    Stopped {
        /// The name of the share.
        share: String,
    },
}

/// The outcome of a question to a server, or of a trial.
pub type Result<T> = std::result::Result<T, Error>;
