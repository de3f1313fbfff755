//! The beginning and the end of ownership: a gateway serves a vserver whose records are a group that it owns, until it hands the
//! group over.
//!
//! A gateway holds a lease on its own name, so that no two gateways have one name. The records of a group say whether its owner serves
//! it. Who ends serving says so as its last change; then any gateway may take the group. A gateway that does not say so keeps it as long
//! as it holds its lease. When the lease has run out, any gateway may take the group, and fences the one before first.

use std::collections::BTreeSet;
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
/// A key there: where the owner talks to the store from.
const FROM: &[u8] = b"from";
/// A key there: the owner's session with the storage of its shares.
const SESSION: &[u8] = b"session";
/// A key there: where that session comes from, as far as it is known.
const SESSION_FROM: &[u8] = b"session-from";
/// A key there: it is there once clients are answered.
const ANSWERS: &[u8] = b"answers";
/// Sessions with the storage that owners before have left, by name: they are to be ended before anything is served.
const LEFT: Table = Table { name: "left-sessions", form: Form::TextToBytes };
/// How often another may be faster until that is an error.
const TRIES: u32 = 16;

/// A gateway that holds the lease on its name.
#[derive(Debug)]
pub struct Member {
    store: Arc<dyn ClusterStore>,
    /// Itself, as others see it.
    holder: Holder,
    session: String,
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
    followed: Option<Followed>,
    left: Left,
}

/// Sessions with the storage that are to be ended.
#[derive(Debug)]
struct Left {
    of_others: Vec<String>,
    /// One of this gateway before.
    own: Option<String>,
}

/// What a gateway asks for that is to own a vserver.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The vserver.
    pub vserver: &'a str,
    /// Whether its shares are in the storage that knows the gateway by its session.
    pub has_session: bool,
    /// Whether this gateway may own it already, and does not serve it any more.
    pub is_given_up: bool,
}

/// A gateway that has ended, or lost its lease, without handing over what it served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The gateway.
    pub gateway: String,
    /// How long it took to fence it.
    pub fenced_in: Duration,
}

fn lease(gateway: &str) -> String {
    format!("gateway {gateway}")
}

fn group(vserver: &str) -> String {
    format!("vserver {vserver}")
}

impl Member {
    /// Takes the lease on this name; inside: another gateway has it. By the `session`, the storage of its shares knows the gateway.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn join(
        store: Arc<dyn ClusterStore>,
        name: &str,
        session: &str,
    ) -> Result<Result<Self, Holder>, StoreError> {
        let until = match store.take_lease(&lease(name), LEASE)? {
            Taken::Until(until) => until,
            Taken::By(holder) => return Ok(Err(holder)),
        };
        let holder = store.lease_holder(&lease(name))?.ok_or("the lease ran out as soon as it was taken")?;
        Ok(Ok(Self { store, holder, session: session.to_owned(), until: Mutex::new(until) }))
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

    /// Takes a vserver that nobody serves. If the gateway that has served it is dead, or has lost its lease, that is fenced first.
    ///
    /// # Errors
    /// The store does not answer, or others take the vserver again and again.
    pub fn own(&self, vserver: &str) -> Result<Begun, StoreError> {
        self.claim(Claim { vserver, has_session: true, is_given_up: false })
    }

    /// The same for a vserver that this gateway may own already, and does not serve any more: whatever it still writes in the epoch before
    /// is refused.
    ///
    /// # Errors
    /// The same.
    pub fn own_again(&self, vserver: &str) -> Result<Begun, StoreError> {
        self.claim(Claim { vserver, has_session: true, is_given_up: true })
    }

    /// What [`Member::own`] and [`Member::own_again`] do.
    ///
    /// # Errors
    /// The same.
    pub fn claim(&self, claim: Claim<'_>) -> Result<Begun, StoreError> {
        let Claim { vserver, has_session, is_given_up } = claim;
        let group = group(vserver);
        for _ in 0..TRIES {
            let seen = self.store.owner(&group)?;
            let before = match &seen {
                None => Served::No,
                Some(owner) => self.served(&group, owner)?,
            };
            let followed = match before {
                Served::Over => continue,
                Served::No => None,
                Served::By(holder) if is_given_up && holder == self.holder => None,
                Served::By(holder) => {
                    if self.is_alive(&holder)? {
                        let epoch = seen.map_or(0, |owner| owner.epoch);
                        return Ok(Begun::By(Owner { epoch, gateway: holder.gateway }));
                    }
                    let begun = Instant::now();
                    self.fence(&holder, self.session_of(&group, seen.as_ref()))?;
                    Some(Followed { gateway: holder.gateway, fenced_in: begun.elapsed() })
                }
            };
            let Some(owner) = self.store.take(&group, seen.as_ref())? else { continue };
            if let Some(left) = self.write_down(&group, &owner, has_session)? {
                let (store, vserver) = (Arc::clone(&self.store), vserver.to_owned());
                return Ok(Begun::Owned(Ownership { store, vserver, owner, followed, left }));
            }
        }
        Err(format!("others have taken the vserver {vserver} {TRIES} times meanwhile").into())
    }

    /// Whether this gateway holds the lease on its name.
    fn is_alive(&self, gateway: &Holder) -> Result<bool, StoreError> {
        Ok(self.store.lease_holder(&lease(&gateway.gateway))?.as_ref() == Some(gateway))
    }

    fn served(&self, group: &str, owner: &Owner) -> Result<Served, StoreError> {
        let found = self.store.records(group, owner)?.read(SERVED, FROM);
        let Some(address) = unless_over(found)? else { return Ok(Served::Over) };
        let address = address.map(String::from_utf8).transpose()?;
        Ok(address
            .map_or(Served::No, |address| Served::By(Holder { gateway: owner.gateway.clone(), address })))
    }

    /// Where the session of a dead owner with the storage comes from. None: that is not known, or the owner had the name of this gateway,
    /// which may go on in that session, and else has ended it by beginning another.
    fn session_of(&self, group: &str, owner: Option<&Owner>) -> Option<Holder> {
        let owner = owner.filter(|owner| owner.gateway != self.name())?;
        let read = || self.store.records(group, owner)?.read(SERVED, SESSION_FROM);
        let found = read().inspect_err(|error| {
            tracing::warn!(
                "where the session of the gateway {} comes from is not known: {error}",
                owner.gateway
            );
        });
        let address = String::from_utf8(found.ok()??).ok()?;
        Some(Holder { gateway: owner.gateway.clone(), address })
    }

    /// Has the cluster refuse a dead owner, and at the same time its session with the storage: metadata servers that begin would otherwise
    /// wait for that. The session is ended by its name afterwards, so it does no harm if it is not refused.
    fn fence(&self, owner: &Holder, session: Option<Holder>) -> Result<(), StoreError> {
        let fence_session = |session: &Holder| {
            if let Err(error) = self.store.fence(session) {
                let Holder { gateway, address } = session;
                tracing::warn!("the session of the gateway {gateway} from {address} is not refused: {error}");
            }
        };
        std::thread::scope(|scope| {
            if let Some(session) = &session {
                let thread = std::thread::Builder::new().name("fence".to_owned());
                if thread.spawn_scoped(scope, || fence_session(session)).is_err() {
                    fence_session(session);
                }
            }
            self.store.fence(owner)
        })
    }

    /// Writes down that this gateway serves the group, and in the same step, that the session of the owner before is to be ended. The
    /// sessions that are to be ended; None: the group belongs to another already.
    fn write_down(&self, group: &str, owner: &Owner, has_session: bool) -> Result<Option<Left>, StoreError> {
        let records = self.store.records(group, owner)?;
        // Nobody writes in an epoch before any more.
        let Some(last) = unless_over(records.read(SERVED, SESSION))? else { return Ok(None) };
        let Some(left) = unless_over(records.scan(LEFT))? else { return Ok(None) };
        let last = last.map(String::from_utf8).transpose()?.filter(|session| !session.is_empty());
        let left = left.into_iter().map(|(session, _)| String::from_utf8(session));
        let mut left = left.chain(last.map(Ok)).collect::<Result<BTreeSet<_>, _>>()?;
        let session = if has_session { &*self.session } else { "" };
        let mut changes = vec![
            SERVED.put(FROM, self.holder.address.as_bytes()),
            SERVED.put(SESSION, session.as_bytes()),
            SERVED.remove(SESSION_FROM),
            SERVED.remove(ANSWERS),
        ];
        changes.extend(left.iter().map(|session| LEFT.put(session.as_bytes(), b"")));
        let written = unless_over(records.write(&changes.into()))?;
        let own = left.take(&self.session);
        Ok(written.map(|_| Left { of_others: left.into_iter().collect(), own }))
    }
}

/// The gateway that holds the lease on this name.
///
/// # Errors
/// The store does not answer.
pub fn living(store: &dyn ClusterStore, gateway: &str) -> Result<Option<Holder>, StoreError> {
    store.lease_holder(&lease(gateway))
}

/// The gateway that has had a vserver last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOwner {
    /// The gateway, and its epoch.
    pub owner: Owner,
    /// The connection by which it has the vserver; None: it has handed that over.
    pub holder: Option<Holder>,
    /// Whether it answers clients.
    pub answers: bool,
}

impl LastOwner {
    /// Whether it has the vserver, and lives. A gateway that was started again has the name of the one before, and not what that served.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn is_there(&self, store: &dyn ClusterStore) -> Result<bool, StoreError> {
        let Some(holder) = &self.holder else { return Ok(false) };
        Ok(living(store, &holder.gateway)?.as_ref() == Some(holder))
    }
}

/// The gateway that has had a vserver last. None: none has.
///
/// # Errors
/// The store does not answer.
pub fn last_owner(store: &dyn ClusterStore, vserver: &str) -> Result<Option<LastOwner>, StoreError> {
    let group = group(vserver);
    let Some(owner) = store.owner(&group)? else { return Ok(None) };
    let records = store.records(&group, &owner)?;
    let written = |key| Ok::<_, StoreError>(unless_over(records.read(SERVED, key))?.flatten());
    let address = written(FROM)?.map(String::from_utf8).transpose()?;
    let holder = address.map(|address| Holder { gateway: owner.gateway.clone(), address });
    let answers = written(ANSWERS)?.is_some();
    Ok(Some(LastOwner { owner, holder, answers }))
}

/// Whether the owner of a group serves it.
enum Served {
    No,
    By(Holder),
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

    /// The gateway that had the vserver before and did not hand it over. It is fenced already.
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// The sessions with the storage that owners before have left, without the own one: each is to be ended before anything is served.
    pub fn left_sessions(&self) -> &[String] {
        &self.left.of_others
    }

    /// Writes down that a session that was left has been ended.
    ///
    /// # Errors
    /// The store does not answer, or the group has another owner already ([`NotOwner`]).
    pub fn session_has_ended(&self, session: &str) -> Result<(), StoreError> {
        self.store()?.write(&vec![LEFT.remove(session.as_bytes())].into()).map(drop)
    }

    /// Writes down, if it was left, that the session which this gateway had before has ended, or is the one that it uses.
    ///
    /// # Errors
    /// The same.
    pub fn own_session_has_ended(&self) -> Result<(), StoreError> {
        self.left.own.as_deref().map_or(Ok(()), |session| self.session_has_ended(session))
    }

    /// Writes down where the session with the storage comes from, in which the shares were opened: an address that the store can refuse.
    ///
    /// # Errors
    /// The same.
    pub fn session_comes_from(&self, address: &str) -> Result<(), StoreError> {
        self.store()?.write(&vec![SERVED.put(SESSION_FROM, address.as_bytes())].into()).map(drop)
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

    /// Writes down that clients are answered.
    ///
    /// # Errors
    /// The store does not answer, or the group has another owner already ([`NotOwner`]).
    pub fn answers(&self) -> Result<(), StoreError> {
        self.store()?.write(&vec![SERVED.put(ANSWERS, b"")].into()).map(drop)
    }

    /// Lets any gateway take the vserver, of which nothing is served here any more. Sessions that were left and have not been ended stay
    /// written down.
    ///
    /// # Errors
    /// The store does not answer, or the group has another owner already ([`NotOwner`]).
    pub fn end(&self) -> Result<(), StoreError> {
        let changes = [FROM, SESSION, SESSION_FROM, ANSWERS].map(|key| SERVED.remove(key)).to_vec();
        self.store()?.write(&changes.into()).map(drop)
    }
}
