//! The metadata cache: a layer over a store.
//!
//! A store with this layer in front of it ([`Layer::over`]) answers from memory where it can: for the names that
//! directories have, and for the attributes of the directories themselves. The layer also finds names regardless of
//! case ([`FoldedNames`]), and tells whether others have changed a directory during a change by a caller ([`Watch`]).
//!
//! **The invariant**: an answer from memory is one that the store could have given after the request arrived, no matter
//! who has changed the directory until then. `cache.rs` says how the invariant is kept.

mod cache;
mod clock;
mod fold;
mod folded;
mod layer;
mod search;
mod short_name;

pub use cache::{Cache, CacheCount, CacheCounts, QUICK, Watch};
pub use fold::fold;
pub use folded::FoldedNames;
pub use layer::{BYTES_MAX, Layer, Settings};
pub use search::{Effort, Stopped};
pub use short_name::{is_short_name, short_name};
