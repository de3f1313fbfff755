//! What several gateways must agree on: which of them are alive, whose a group of records is, the records themselves, and that something
//! has changed.
//!
//! A gateway lives as long as it renews its lease. A group of records belongs to one owner at a time, which has an epoch; each change of
//! the owner raises the epoch. Records are read and written under an epoch, and refused when it is not the group's any more: so whoever
//! was stopped, and goes on after another has taken the group, changes nothing.
//!
//! Who takes the groups of a gateway that died does it in this order: [`ClusterStore::fence`], then [`ClusterStore::take`] for each
//! group, and only then reads the records and serves. Where the records are on several machines, a fence reaches each of them with the
//! first change that is made there after it, which `take` is.

pub mod conformance;
mod one_machine;
mod ownership;
mod register;
mod vserver_record;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use one_machine::OneMachine;
pub use ownership::{Begun, Claim, Followed, LEASE, LastOwner, Member, Ownership, last_owner, living};
pub use register::{GatewayRecord, KEYTAB_BYTES_MAX, Listed, Register, Seen, Unreadable};
pub use vserver_record::{Coming, SharesServed, VserverRecord, VserverShareRecord};

use crate::store::{Store, StoreError};

/// Whose a group of records is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// How many owners the group has had. The first is 1.
    pub epoch: u64,
    /// The gateway.
    pub gateway: String,
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The gateway.
    pub gateway: String,
    /// Where it talks to the store from; empty: in this process.
    pub address: String,
}

/// What has become of an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Nobody else holds the lease before this moment.
    Until(Instant),
    /// Another gateway holds it.
    By(Holder),
}

/// What a gateway calls when it is told something. It is called on a thread of the store, and must not use the store.
pub type Heard = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Listens until it is dropped.
pub trait Listening: fmt::Debug + Send + Sync {
    /// Whether nothing is heard any more: whoever wants to hear more listens anew, and looks for what has changed meanwhile.
    fn is_broken(&self) -> bool;
}

/// The store as one gateway sees it. Calls block; they may come from several threads.
pub trait ClusterStore: fmt::Debug + Send + Sync {
    /// Takes a lease that nobody holds, or that this object holds already.
    ///
    /// # Errors
    /// The store does not answer, or this gateway was fenced ([`Fenced`]).
    fn take_lease(&self, lease: &str, length: Duration) -> Result<Taken, StoreError>;

    /// Holds a lease for longer: nobody else holds it before the moment that is returned. None: the lease ran out, or another holds it.
    ///
    /// # Errors
    /// As above. The lease may be renewed all the same, so a gateway counts from the last success.
    fn renew_lease(&self, lease: &str, length: Duration) -> Result<Option<Instant>, StoreError>;

    /// Gives a lease back before it runs out. One that this object does not hold stays as it is.
    ///
    /// # Errors
    /// As above.
    fn end_lease(&self, lease: &str) -> Result<(), StoreError>;

    /// Who holds a lease now.
    ///
    /// # Errors
    /// As above.
    fn lease_holder(&self, lease: &str) -> Result<Option<Holder>, StoreError>;

    /// Refuses whatever comes from this holder from now on, until it has connected anew.
    ///
    /// # Errors
    /// As above, or this gateway may not fence others.
    fn fence(&self, holder: &Holder) -> Result<(), StoreError>;

    /// Whose a group is. None: it has had no owner.
    ///
    /// # Errors
    /// As above.
    fn owner(&self, group: &str) -> Result<Option<Owner>, StoreError>;

    /// Makes this gateway the owner of a group instead of the one that it has seen, in the next epoch. None: somebody was faster, and
    /// nothing was changed.
    ///
    /// # Errors
    /// As above. It may have succeeded all the same, so a gateway looks at the owner.
    fn take(&self, group: &str, instead_of: Option<&Owner>) -> Result<Option<Owner>, StoreError>;

    /// The records of a group, under the epoch of this owner. When it is over, all calls fail with [`NotOwner`].
    ///
    /// # Errors
    /// The store has no groups of such names.
    fn records(&self, group: &str, owner: &Owner) -> Result<Arc<dyn Store>, StoreError>;

    /// Tells all that listen to a topic, and returns when they have heard it or have not answered for five seconds.
    ///
    /// # Errors
    /// As above.
    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError>;

    /// Hears what is told about a topic. Messages may be lost while the store is not reached: who listens also looks, from time to time.
    ///
    /// # Errors
    /// As above.
    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError>;
}

/// The group has another owner: who is told so must stop serving it, and answer nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOwner {
    /// The group.
    pub group: String,
    /// Under which epoch somebody tried.
    pub epoch: u64,
    /// Whose it is.
    pub now: Option<Owner>,
}

impl fmt::Display for NotOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} of {} is over: ", self.epoch, self.group)?;
        match &self.now {
            Some(now) => write!(f, "it belongs to {} in epoch {}", now.gateway, now.epoch),
            None => f.write_str("it does not exist"),
        }
    }
}

impl Error for NotOwner {}

/// Another gateway has fenced this one, which must end all that it serves. It may connect anew, and owns nothing then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced;

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another gateway has fenced this one")
    }
}

impl Error for Fenced {}

impl Owner {
    /// As it is kept: the epoch and the gateway.
    pub fn kept(&self) -> Vec<u8> {
        format!("{} {}", self.epoch, self.gateway).into_bytes()
    }

    /// What [`Self::kept`] was made of.
    ///
    /// # Errors
    /// It was made of no owner.
    pub fn of_kept(kept: &[u8]) -> Result<Self, StoreError> {
        let found = std::str::from_utf8(kept).ok().and_then(|kept| kept.split_once(' '));
        let epoch = found.and_then(|(epoch, _)| epoch.parse().ok()).filter(|epoch| *epoch < u64::MAX);
        match (epoch, found) {
            (Some(epoch), Some((_, gateway))) => Ok(Self { epoch, gateway: gateway.to_owned() }),
            _ => Err("the owner of a group is not readable".into()),
        }
    }

    /// The owner after this one.
    pub fn next(instead_of: Option<&Self>, gateway: &str) -> Self {
        Self { epoch: instead_of.map_or(0, |owner| owner.epoch) + 1, gateway: gateway.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_kept_and_found_again() {
        let first = Owner::next(None, "a b");
        assert_eq!(first, Owner { epoch: 1, gateway: "a b".into() });
        assert_eq!(Owner::of_kept(&first.kept()).unwrap(), first);
        assert_eq!(Owner::next(Some(&first), "c").epoch, 2);
    }

    #[test]
    fn what_is_no_owner_is_not_taken_for_one() {
        for kept in [&b""[..], b"7", b"x a", b"-1 a", b"18446744073709551615 a", b"7 \xff"] {
            assert!(Owner::of_kept(kept).is_err(), "{kept:?}");
        }
    }
}
