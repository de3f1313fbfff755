//! A store that becomes like a snapshot of another store, on another machine.
//!
//! The *source* says what is different between two of its snapshots ([`changes()`]), and what single objects consist of
//! ([`write_objects`]). The *destination* carries that out ([`Convergence`]), directory by directory. It notes with each object which
//! object of the source it is and as of when, once the object is complete. So it can be interrupted anywhere and begin again: what
//! is as it should be is left alone. Meanwhile a [`MirrorStore`] shows the last complete snapshot.
//!
//! What goes between the two is of `replica-wire`; how it gets there is for the caller.

mod apply;
mod attributes;
mod changes;
mod converge;
mod data;
mod failure;
mod folder;
mod mirror;
mod note;
mod objects;
mod placing;
mod settle;
mod state;
mod tree;

pub use changes::{Compared, changes};
pub use converge::{Converged, Convergence, Progress, Takes};
pub use failure::{Failure, Result};
pub use folder::FOLDER;
pub use mirror::{MirrorStore, Shown};
pub use objects::write_objects;

use replica_wire::{Record, Wanted};

/// Records that arrive one after the other.
pub trait Records {
    /// The next record.
    ///
    /// # Errors
    /// [`Failure::Source`] if none can be read.
    fn next(&mut self) -> Result<Record>;
}

/// Where the destination asks for objects.
pub trait Source {
    /// Asks for these objects.
    ///
    /// # Errors
    /// [`Failure::Source`].
    fn objects(&mut self, wanted: &Wanted) -> Result<Box<dyn Records + '_>>;
}
