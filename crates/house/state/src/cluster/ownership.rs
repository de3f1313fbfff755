//! The planned beginning and end of ownership: a gateway serves a vserver whose records are a group that it owns, until it hands the
//! group over.
//!
//! A gateway holds a lease on its own name, so that no two gateways have one name. The records of a group say whether its owner serves
//! it. Who ends serving says so as its last change; then any gateway may take the group. A gateway that has ended without saying so is
//! followed by one of the same name alone, which fences it first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{ClusterStore, Holder, NotOwner, Owner, Taken};
use crate::ServerRecords;
use crate::store::{Form, Store, StoreError, Table};

/// What a lease on a gateway's name is: longer than a short fault of the store, and what clients wait for at least if a gateway dies.
pub const LEASE: Duration = Duration::from_secs(3);

/// Whether the owner serves the group.
const SERVED: Table = Table { name: "served", form: Form::TextToBytes };
/// The key there: where the owner talks to the store from.
const FROM: &[u8] = b"from";
/// How often another may be faster until that is an error.
const TRIES: u32 = 16;

/// A gateway that holds the lease on its name.
#[derive(Debug)]
pub struct Member {
    store: Arc<dyn ClusterStore>,
    /// Itself, as others see it.
    holder: Holder,
    /// Guards until when nobody else holds the lease.
    until: Mutex<Instant>,
}

/// What has become of an attempt to own a vserver.
#[derive(Debug)]
pub enum Begun {
    /// This gateway owns it.
    Owned(Ownership),
    /// This one does, and serves it.
    By(Owner),
}

/// A vserver that this gateway owns, until [`Ownership::end`].
#[derive(Debug)]
pub struct Ownership {
    store: Arc<dyn ClusterStore>,
    vserver: String,
    owner: Owner,
}

fn lease(gateway: &str) -> String {
    format!("gateway {gateway}")
}

fn group(vserver: &str) -> String {
    format!("vserver {vserver}")
}

impl Member {
    /// Takes the lease on this name; inside: another gateway has it.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn join(store: Arc<dyn ClusterStore>, name: &str) -> Result<Result<Self, Holder>, StoreError> {
        let until = match store.take_lease(&lease(name), LEASE)? {
            Taken::Until(until) => until,
            Taken::By(holder) => return Ok(Err(holder)),
        };
        let holder = store.lease_holder(&lease(name))?.ok_or("the lease ran out as soon as it was taken")?;
        Ok(Ok(Self { store, holder, until: Mutex::new(until) }))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.holder.gateway
    }

    /// Itself, as others see it.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Until when nobody else has the name: whoever serves something ends that before.
    pub fn until(&self) -> Instant {
        *self.until.lock()
    }

    /// Holds the lease for longer. False: it ran out, or another has it.
    ///
    /// # Errors
    /// The store does not answer; the lease is what it was.
    pub fn renew(&self) -> Result<bool, StoreError> {
        let renewed = self.store.renew_lease(&lease(self.name()), LEASE)?;
        if let Some(until) = renewed {
            *self.until.lock() = until;
        }
        Ok(renewed.is_some())
    }

    /// Gives the lease back. Nothing is served any more.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn leave(&self) -> Result<(), StoreError> {
        self.store.end_lease(&lease(self.name()))
    }

    /// Takes a vserver that nobody serves. One that an earlier process of this name has served is taken after that is fenced.
    ///
    /// # Errors
    /// The store does not answer, or others take the vserver again and again.
    pub fn own(&self, vserver: &str) -> Result<Begun, StoreError> {
        let group = group(vserver);
        for _ in 0..TRIES {
            let seen = self.store.owner(&group)?;
            if let Some(owner) = &seen {
                match self.served_from(&group, owner)? {
                    Served::No => {}
                    Served::From(address)
                        if owner.gateway == self.name() && address != self.holder.address =>
                    {
                        self.store.fence(&Holder { gateway: owner.gateway.clone(), address })?;
                    }
                    Served::From(_) => return Ok(Begun::By(owner.clone())),
                    Served::Over => continue,
                }
            }
            let Some(owner) = self.store.take(&group, seen.as_ref())? else { continue };
            if self.is_written_down(&group, &owner)? {
                let (store, vserver) = (Arc::clone(&self.store), vserver.to_owned());
                return Ok(Begun::Owned(Ownership { store, vserver, owner }));
            }
        }
        Err(format!("others have taken the vserver {vserver} {TRIES} times meanwhile").into())
    }

    fn served_from(&self, group: &str, owner: &Owner) -> Result<Served, StoreError> {
        let found = self.store.records(group, owner)?.read(SERVED, FROM);
        Ok(match unless_over(found)? {
            None => Served::Over,
            Some(None) => Served::No,
            Some(Some(address)) => Served::From(String::from_utf8(address)?),
        })
    }

    /// Writes down that this gateway serves the group. False: it belongs to another already.
    fn is_written_down(&self, group: &str, owner: &Owner) -> Result<bool, StoreError> {
        let change = SERVED.put(FROM, self.holder.address.as_bytes());
        let written = self.store.records(group, owner)?.write(&vec![change].into());
        Ok(unless_over(written)?.is_some())
    }
}

/// Whether the owner of a group serves it.
enum Served {
    No,
    /// From this address.
    From(String),
    /// The group has another owner by now.
    Over,
}

/// None: the epoch is over.
fn unless_over<T>(found: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is::<NotOwner>() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Ownership {
    /// The name of the vserver.
    pub fn vserver(&self) -> &str {
        &self.vserver
    }

    /// This gateway, and the epoch.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What the vserver remembers, as long as this gateway owns it.
    ///
    /// # Errors
    /// The store has no groups of such names.
    pub fn records(&self) -> Result<ServerRecords, StoreError> {
        let place = format!("the records of the vserver {}", self.vserver);
        Ok(ServerRecords::new(self.store()?, place))
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.records(&group(&self.vserver), &self.owner)
    }

    /// Lets any gateway take the vserver. Nothing of it is served here any more, and nothing is written after this.
    ///
    /// # Errors
    /// The store does not answer, or the group has another owner already ([`NotOwner`]).
    pub fn end(self) -> Result<(), StoreError> {
        self.store()?.write(&vec![SERVED.remove(FROM)].into()).map(drop)
    }
}
