//! Scale models: clients, links and a server that have the limits of the documents' machines, built on one machine.
//!
//! A model is a [`Model`], read from TOML. It holds only causes that a document names, with published parameters, at their real
//! size; `scale` says by what they are divided when the model is built. Nothing is fitted to a figure that the model is to
//! reproduce.
//!
//! What builds a model is data (`construction`). Each of its machines is namespaces that one process holds (`machine`), so the
//! kernel removes all of it when the program ends, however it does.

mod built;
mod built_in;
mod calibration;
mod carried;
mod ceiling;
mod construction;
mod delays;
mod description;
mod forwarder;
mod machine;
mod network;
mod observed;
mod parameter;
mod quantity;
mod read;
mod slow_storage;
mod source;
mod tap;
mod trouble;
mod wire;

pub use built::{Built, Which};
pub use built_in::BUILT_IN;
pub use calibration::{Calibration, Finding};
pub use ceiling::{Ceiling, Direction, Shape};
pub use construction::Ability;
pub use delays::RoundTrip;
pub use description::{Client, Job, Model, Over, Rows, Server};
pub use observed::{Counters, Forwarded, Link, Observer};
pub use parameter::Parameter;
pub use quantity::{BlockSize, Delay, Loss, Provision, Rate};
pub use read::{Error, read};
pub use slow_storage::StorageDelay;
pub use source::{Source, Statement};
pub use trouble::Trouble;
