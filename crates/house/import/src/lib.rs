//! The configuration of another server, turned into one for this server: text in, text and notes out.
//!
//! Nothing here opens a file: included files come from a [`Reader`], users of this machine from [`Machine`]. What cannot be carried
//! over is in [`Note`]s. Where leaving a setting out would admit more clients or users than the other server admits, the share is
//! written as a comment: an import never opens what was closed.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::panic))]

pub mod accounts;
mod clients;
mod draft;
mod exports;
mod note;
mod samba;

pub use draft::{Imported, ImportedShare, ImportedUser};
pub use exports::{File, exports};
pub use note::{Grade, Note, Place};
pub use samba::{Configuration, Samba, Section, Setting, read as read_samba, samba};

/// Reads included files.
pub trait Reader {
    /// The text of a file; None: it does not exist.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &str) -> Result<Option<String>, String>;
}

/// What is known of the machine that the configuration is for.
pub trait Machine {
    /// The uid and the home directory of a user.
    fn user(&self, name: &str) -> Option<(u32, String)>;
    /// The name of the machine.
    fn host_name(&self) -> Option<String>;
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
}

/// The text cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Error {
    /// The line.
    pub place: Place,
    /// What is wrong.
    pub what: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

impl Error {
    fn new(place: &Place, what: impl Into<String>, advice: &str) -> Self {
        Self { place: place.clone(), what: what.into(), advice: advice.to_owned() }
    }
}
