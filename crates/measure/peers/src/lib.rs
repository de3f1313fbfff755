//! Samba and NFS-Ganesha on this machine, from Debian's packages, for as long as something is measured beside them.
//!
//! A server is a [`Daemon`] with directories of its own ([`Scratch`]): it ends, and they go, when they are dropped, and
//! [`kill_all`] ends at once all that run. What load is made on is a [`Contender`].
//!
//! It will never know who measures, nor change anything of this machine that is there without it: no service, no account, no
//! configuration of a package.

mod daemon;
mod error;
pub mod ganesha;
mod place;
pub mod samba;
mod scratch;
mod site;

pub use daemon::{Daemon, kill_all};
pub use error::{Cause, Error, Result};
pub use place::{Contender, Medium, Shares};
pub use scratch::{Account, Scratch, trouble};
pub use site::Site;
