//! A gateway: makes running servers from [`Settings`](settings::Settings), and changes them while clients work.
//!
//! A caller prepares a gateway ([`Prepared`]: the state database and the stores of the shares are open), gives it
//! sockets ([`Sockets`]) and runs it ([`Gateway`]). Its [`Administration`] creates, changes and removes shares, users
//! and tokens, and replaces the configuration as a whole. Signals, flags, configuration files and the log belong to the
//! caller.
//!
//! The invariant: the state of a gateway is in its values. Several gateways can live in one process independently; each
//! has its own state directory, sockets and threads.

mod abandoned;
mod accounts;
mod acquaintances;
mod administration;
mod admins;
mod announced;
mod apart;
mod asked;
mod at_rest;
mod background;
pub mod ceph_pools;
mod cephfs;
mod cluster;
pub mod control_access;
pub mod control_tls;
mod declared;
mod descriptors;
mod directories;
mod directory_names;
mod directory_numbers;
mod findings;
mod gateway;
mod held_up;
mod holdings;
mod iakerb;
mod identities;
pub mod in_time;
pub mod kdc_clock;
pub mod kerberos;
mod lent;
mod logged;
mod lookups;
mod membership;
mod moved;
mod name_service;
mod names;
mod nfs_tls;
mod numbers;
mod of_cluster;
mod opening;
mod opens_by_name;
mod passwords;
mod pool_spaces;
mod pools;
pub mod port_owner;
mod prepared;
mod problem;
mod reach;
mod registered;
mod renewal;
pub mod replication;
pub mod retention;
mod seen;
mod servers;
mod session_ends;
pub mod settings;
mod share_settings;
mod sid_names;
mod smb_quic;
mod snapshots;
mod sockets;
mod ticket_keys;
mod upkeep;
mod user_groups;
mod vserver;
mod vserver_commands;
mod vserver_share_changes;
mod vserver_shares;
mod vservers;
mod waiting;
mod without_ntlm;

pub use administration::{Administration, QUOTA_CHANGES_MAX};
pub use admins::Admin;
pub use cephfs::path_of as path_in_cephfs;
pub use cluster::Connect;
pub use findings::{Finding, Subject, findings};
pub use gateway::Gateway;
pub use identities::of_system as system_user;
pub use nfs_server::portmap::Registrar;
pub use prepared::{Prepared, check_something_to_serve};
pub use problem::{Cause, Problem, Result};
pub use reach::{Reach, VserverAddress};
pub use smb_quic::{HAS_QUIC, quic_socket};
pub use sockets::{Addresses, PortmapSockets, Sockets};
pub use state::Closed;
pub use storage_ceph::end_process;
pub use vserver_commands::NewVserver;
pub use vserver_shares::VserverShare;
pub use vservers::check_vserver_name;
