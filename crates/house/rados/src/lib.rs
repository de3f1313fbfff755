//! [`state::cluster::ClusterStore`] in RADOS, the object store below Ceph; and what the monitors of a cluster tell of its data pools.
//!
//! Ceph's client library is loaded when a cluster is connected: a machine without Ceph needs none, and one program serves whatever
//! version there is.
//!
//! | in RADOS | what it is |
//! |---|---|
//! | object `lease.NAME` with a lock that runs out by the clock of its OSD | a lease; the lock's cookie is the gateway |
//! | object `group.NAME`, its attribute `owner` | epoch and gateway of the owner |
//! | the omap of that object | the records ([`keys`]): each call is one operation, which compares the attribute first |
//! | object `topic.NAME`, with a watch of each listener | a topic |
//! | the OSD map's blocklist | gateways that are fenced |

mod connection;
mod gateway;
mod keys;
mod library;
mod monitors;
mod new_pools;
mod placement;
mod pool;
mod records;
mod topology;
mod watch;

pub use gateway::Gateway;
pub use monitors::Monitors;
pub use new_pools::{Command, NewPool};
pub use placement::{Class, DataPool, Placement, Printed};
pub use pool::Place;
