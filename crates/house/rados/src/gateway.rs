//! [`ClusterStore`] in a pool, as one gateway sees it.

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use state::Error;
use state::cluster::{ClusterStore, Fenced, Heard, Holder, Listening, Owner, Taken};
use state::store::{Store, StoreError};

use crate::pool::{Place, Pool, Step};
use crate::records::{Records, object};
use crate::watch::{self, Watch};

/// The attribute in which a group has its owner.
pub(crate) const OWNER: &CStr = c"owner";
/// The name of the lock of a lease.
const LEASE: &CStr = c"lease";
/// How often a lease may be free again, and another faster, until that is an error.
const TRIES: u32 = 10;

/// A gateway that is connected to a pool. It is fenced by the address of this connection.
#[derive(Debug)]
pub struct Gateway {
    pool: Arc<Pool>,
    name: String,
    cookie: CString,
}

impl Gateway {
    /// Connects a gateway of this name.
    ///
    /// # Errors
    /// Ceph's library is not there, or the place: each with what to do about it. The name has a NUL in it.
    pub fn connect(place: &Place, name: &str) -> Result<Self, Error> {
        let cookie = CString::new(name).map_err(|_| Error::new("the gateway's name has a NUL in it", ""))?;
        Ok(Self { pool: Pool::connect(place)?, name: name.to_owned(), cookie })
    }
}

/// The error of an operation.
pub(crate) fn trouble(error: Errno) -> StoreError {
    match error {
        // EBLOCKLISTED of Ceph
        Errno::SHUTDOWN => Fenced.into(),
        Errno::TIMEDOUT => "the Ceph cluster does not answer".into(),
        _ => format!("the Ceph cluster: {error}").into(),
    }
}

/// Whose the group in an object is.
pub(crate) fn owner_of(pool: &Pool, object: &CStr) -> Result<Option<Owner>, StoreError> {
    let kept = pool.attribute(object, OWNER).map_err(trouble)?;
    kept.map(|kept| Owner::of_kept(&kept)).transpose()
}

impl ClusterStore for Gateway {
    fn take_lease(&self, lease: &str, length: Duration) -> Result<Taken, StoreError> {
        let object = object("lease", lease)?;
        for _ in 0..TRIES {
            let until = Instant::now() + length;
            if self.pool.lock(&object, LEASE, &self.cookie, length).map_err(trouble)? {
                return Ok(Taken::Until(until));
            }
            // It may be free by now.
            if let Some(holder) = self.lease_holder(lease)? {
                return Ok(Taken::By(holder));
            }
        }
        Err(format!("the lease {lease} was free and taken {TRIES} times").into())
    }

    fn renew_lease(&self, lease: &str, length: Duration) -> Result<Option<Instant>, StoreError> {
        let until = Instant::now() + length;
        let renewed = self.pool.renew(&object("lease", lease)?, LEASE, &self.cookie, length);
        Ok(renewed.map_err(trouble)?.then_some(until))
    }

    fn end_lease(&self, lease: &str) -> Result<(), StoreError> {
        self.pool.unlock(&object("lease", lease)?, LEASE, &self.cookie).map_err(trouble)
    }

    fn lease_holder(&self, lease: &str) -> Result<Option<Holder>, StoreError> {
        let locker = self.pool.locker(&object("lease", lease)?, LEASE).map_err(trouble)?;
        Ok(locker.map(|(gateway, address)| Holder { gateway, address }))
    }

    fn fence(&self, holder: &Holder) -> Result<(), StoreError> {
        self.pool.refuse(&CString::new(&*holder.address)?).map_err(trouble)
    }

    fn owner(&self, group: &str) -> Result<Option<Owner>, StoreError> {
        owner_of(&self.pool, &object("group", group)?)
    }

    fn take(&self, group: &str, instead_of: Option<&Owner>) -> Result<Option<Owner>, StoreError> {
        let owner = Owner::next(instead_of, &self.name);
        let (seen, kept) = (instead_of.map(Owner::kept), owner.kept());
        let first = seen.as_ref().map_or(Step::CreateNew, |seen| Step::CompareAttribute(OWNER, seen));
        match self.pool.change(&object("group", group)?, &[first, Step::SetAttribute(OWNER, &kept)]) {
            Ok(()) => Ok(Some(owner)),
            Err(Errno::EXIST | Errno::CANCELED | Errno::NOENT) => Ok(None),
            Err(error) => Err(trouble(error)),
        }
    }

    fn records(&self, group: &str, owner: &Owner) -> Result<Arc<dyn Store>, StoreError> {
        let object = object("group", group)?;
        let (pool, group, owner) = (Arc::clone(&self.pool), group.to_owned(), owner.clone());
        Ok(Arc::new(Records { pool, object, group, owner }))
    }

    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        let object = object("topic", topic)?;
        match watch::tell(&self.pool, &object, message) {
            // Nobody has ever listened.
            Err(Errno::NOENT) => Ok(()),
            told => told.map_err(trouble),
        }
    }

    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError> {
        let object = object("topic", topic)?;
        self.pool.change(&object, &[Step::Create]).map_err(trouble)?;
        Ok(Box::new(Watch::begin(Arc::clone(&self.pool), object, heard).map_err(trouble)?))
    }
}
