//! What the clients of a share must agree on: who has which file open and how, who has locked which bytes, who may cache what.

pub(crate) mod caching;
pub(crate) mod courtesy;
pub(crate) mod files;
pub(crate) mod lock;
pub(crate) mod openers;
pub(crate) mod reclaims;
pub(crate) mod removed;
mod within;
