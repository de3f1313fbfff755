//! Load on SMB and NFS servers without mounts, and what was measured.
//!
//! [`result`] is what a run leaves: one JSON file with everything that was measured and where. A report or advice is made
//! from it and from nothing else. [`histogram`] and [`statistics`] are the arithmetic behind it.
//!
//! A run has a [`target`], a [`plan`] of rows, each with a [`workload`], and is made by [`bench::run`]. It works in a folder
//! of its own (`site`), with clients that know no sockets ([`client`]), driven by one loop a thread (`engine`). Every
//! byte that comes back is compared with what was written (`files`, `pattern`).

pub mod bench;
mod cpu;
mod engine;
pub mod environment;
pub mod fault;
mod files;
mod grounds;
pub mod histogram;
pub mod import;
pub mod json_plus;
mod link;
pub mod logons;
mod pattern;
pub mod plan;
pub mod result;
pub mod security;
pub mod server;
mod site;
pub mod statistics;
pub mod target;
mod tls;
pub mod trace;
pub mod whole_file;
pub mod workers;
pub mod workload;

pub use server::{Server, ServerProcess};
pub use site::Access;
