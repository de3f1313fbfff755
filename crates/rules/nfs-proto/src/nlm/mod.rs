//! What the lock manager of NFSv3 remembers of earlier calls (RFC 1813 appendix II): hosts with their owners and the files
//! in which they hold locks, who waits for a lock, and the grace period after a restart.
//!
//! Rules only. The time is an argument, and nothing waits.

pub mod grace;
pub mod hosts;
