//! The hosts that hold locks by NLM, and what each holds.
//!
//! A host is a name together with the place that its calls come from, so no host can name another one and release its
//! locks. `A` is that place, as far as a client cannot choose it; `H` is an open file of the server, which lives as long as the
//! host holds anything in the file; `W` stops a wait.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::mem;
use std::time::{Duration, Instant};

use limits::HeldCount;

use crate::v4::stateid::FileKey;

/// The number of a host among those of this run. Its highest bit is set, so that it is never the number of an NFSv4 client:
/// both are the upper halves of the numbers of lock-owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostNumber(u32);

/// The highest bit.
const OF_HOSTS: u32 = 1 << 31;

impl HostNumber {
    /// The host of a lock-owner; None for a lock-owner of NFSv4.
    #[must_use]
    pub fn of_owner(owner: u64) -> Option<Self> {
        u32::try_from(owner >> 32).ok().filter(|number| number & OF_HOSTS != 0).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// How much hosts may hold. What is beyond is refused (NLM4_DENIED_NOLOCKS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimits {
    /// Hosts; the last quarter is for places with less than a quarter.
    pub hosts_max: usize,
    /// Owners of one host that hold locks at a time.
    pub owners_max: usize,
    /// Share reservations of one host.
    pub reservations_max: usize,
    /// Locks that are waited for by all hosts; the last quarter is for places with less than a quarter.
    pub waiting_max: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self { hosts_max: 4_096, owners_max: 16_384, reservations_max: 4_096, waiting_max: 4_096 }
    }
}

/// One of the [`HostLimits`] is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many {0}")]
pub struct TooMany(pub &'static str);

/// A lock as its host describes it. Two calls that describe the same lock mean the same wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Described {
    /// The file.
    pub file: FileKey,
    /// The number of the owner.
    pub owner: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes as in the call.
    pub length: u64,
    /// Whether the lock excludes all others.
    pub exclusive: bool,
}

/// What a host has held, for the server to close and stop.
#[derive(Debug)]
#[must_use = "what a host held must end"]
pub struct Freed<H, W> {
    /// The number of the host.
    pub host: HostNumber,
    /// The open files, with the owners that held locks in each.
    pub files: Vec<(H, Vec<u64>)>,
    /// The opens of share reservations.
    pub reservations: Vec<H>,
    /// The waits.
    pub waits: Vec<W>,
}

/// A host at one moment, for administrators.
#[derive(Debug, Clone)]
pub struct HostReport<A, H> {
    /// The number.
    pub number: HostNumber,
    /// The name by which the host calls itself.
    pub name: Box<[u8]>,
    /// The place.
    pub place: A,
    /// The open files in which the host holds locks, and those of its reservations.
    pub held: Vec<H>,
}

/// All hosts.
#[derive(Debug)]
pub struct Hosts<A, H, W> {
    limits: HostLimits,
    next: u32,
    by_name: HashMap<(A, Box<[u8]>), HostNumber>,
    hosts: HashMap<HostNumber, Host<A, H, W>>,
    /// Hosts by place.
    of_place: HeldCount<A>,
    /// Waits by place.
    waiting: HeldCount<A>,
}

#[derive(Debug)]
struct Host<A, H, W> {
    place: A,
    name: Box<[u8]>,
    /// The state of the host's status monitor; 0: unknown.
    state: u32,
    owners: Owners,
    files: HashMap<FileKey, HeldFile<H>>,
    reservations: HashMap<(FileKey, Box<[u8]>), H>,
    waits: Vec<(Described, Phase<W>)>,
    used: Instant,
}

/// How far a wait is.
#[derive(Debug)]
enum Phase<W> {
    /// Another lock is in the way.
    Waiting(W),
    /// The lock is taken, and the host is being told. It has not said that it knows.
    Granting,
}

/// A file in which a host holds locks, or is about to.
#[derive(Debug)]
struct HeldFile<H> {
    held: H,
    /// Calls that use the file now, and waits.
    uses: usize,
    owners: HashSet<u64>,
}

/// The owners of a host, by the names that it has for them.
#[derive(Debug, Default)]
struct Owners {
    next: u32,
    by_name: HashMap<Box<[u8]>, u64>,
    names: HashMap<u64, Owner>,
}

#[derive(Debug)]
struct Owner {
    name: Box<[u8]>,
    /// Files with locks of the owner, calls and waits.
    uses: usize,
}

impl Owners {
    fn take(&mut self, host: HostNumber, name: &[u8], most: usize) -> Result<u64, TooMany> {
        if let Some(number) = self.by_name.get(name) {
            let number = *number;
            self.keep(number);
            return Ok(number);
        }
        if self.names.len() >= most {
            return Err(TooMany("lock-owners of one host"));
        }
        let number = loop {
            self.next = self.next.wrapping_add(1);
            let number = u64::from(host.0) << 32 | u64::from(self.next);
            if !self.names.contains_key(&number) {
                break number;
            }
        };
        self.by_name.insert(name.into(), number);
        self.names.insert(number, Owner { name: name.into(), uses: 1 });
        Ok(number)
    }

    fn keep(&mut self, number: u64) {
        if let Some(owner) = self.names.get_mut(&number) {
            owner.uses = owner.uses.saturating_add(1);
        }
    }

    fn drop(&mut self, number: u64) {
        let Some(owner) = self.names.get_mut(&number) else { return };
        owner.uses = owner.uses.saturating_sub(1);
        if owner.uses == 0
            && let Some(owner) = self.names.remove(&number)
        {
            self.by_name.remove(&owner.name);
        }
    }
}

impl<A: Hash + Eq + Clone, H: Clone, W> Hosts<A, H, W> {
    /// No host.
    #[must_use]
    pub fn new(limits: HostLimits) -> Self {
        Self {
            limits,
            next: 0,
            by_name: HashMap::new(),
            hosts: HashMap::new(),
            of_place: HeldCount::default(),
            waiting: HeldCount::default(),
        }
    }

    /// The number of a known host.
    #[must_use]
    pub fn find(&self, place: &A, name: &[u8]) -> Option<HostNumber> {
        self.by_name.get(&(place.clone(), name.into())).copied()
    }

    /// The host of a call that takes a lock. If the state of its status monitor has changed, the host has restarted: what it
    /// held before is returned.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn enter(
        &mut self,
        place: &A,
        name: &[u8],
        state: u32,
        now: Instant,
    ) -> Result<(HostNumber, Option<Freed<H, W>>), TooMany> {
        let freed = match self.find(place, name) {
            Some(number) if self.hosts.get(&number).is_some_and(|host| host.has_restarted(state)) => {
                self.remove(number)
            }
            _ => None,
        };
        if let Some(number) = self.find(place, name) {
            if let Some(host) = self.hosts.get_mut(&number) {
                host.used = now;
                if state != 0 {
                    host.state = state;
                }
            }
            return Ok((number, freed));
        }
        if !self.of_place.may_take(place, self.limits.hosts_max) {
            return Err(TooMany("hosts"));
        }
        let number = self.unused();
        self.of_place.enter(place.clone());
        self.by_name.insert((place.clone(), name.into()), number);
        let host = Host {
            place: place.clone(),
            name: name.into(),
            state,
            owners: Owners::default(),
            files: HashMap::new(),
            reservations: HashMap::new(),
            waits: Vec::new(),
            used: now,
        };
        self.hosts.insert(number, host);
        Ok((number, freed))
    }

    fn unused(&mut self) -> HostNumber {
        loop {
            self.next = self.next.wrapping_add(1);
            let number = HostNumber(self.next | OF_HOSTS);
            if !self.hosts.contains_key(&number) {
                return number;
            }
        }
    }

    /// The number of an owner, which keeps it until [`Hosts::leave_owner`].
    ///
    /// # Errors
    /// [`TooMany`], also when the host is gone.
    pub fn enter_owner(&mut self, host: HostNumber, name: &[u8]) -> Result<u64, TooMany> {
        let most = self.limits.owners_max;
        let known = self.hosts.get_mut(&host).ok_or(TooMany("restarts"))?;
        known.owners.take(host, name, most)
    }

    /// A further use of a known owner.
    pub fn keep_owner(&mut self, host: HostNumber, owner: u64) {
        if let Some(host) = self.hosts.get_mut(&host) {
            host.owners.keep(owner);
        }
    }

    /// A use of an owner has ended.
    pub fn leave_owner(&mut self, host: HostNumber, owner: u64) {
        if let Some(host) = self.hosts.get_mut(&host) {
            host.owners.drop(owner);
        }
    }

    /// The number of a known owner.
    #[must_use]
    pub fn find_owner(&self, host: HostNumber, name: &[u8]) -> Option<u64> {
        self.hosts.get(&host)?.owners.by_name.get(name).copied()
    }

    /// The name of a known owner.
    #[must_use]
    pub fn owner_name(&self, owner: u64) -> Option<Box<[u8]>> {
        let host = self.hosts.get(&HostNumber::of_owner(owner)?)?;
        Some(host.owners.names.get(&owner)?.name.clone())
    }

    /// The open of a file in which the host holds locks. It stays until [`Hosts::leave_file`].
    pub fn use_file(&mut self, host: HostNumber, file: FileKey) -> Option<H> {
        let held = self.hosts.get_mut(&host)?.files.get_mut(&file)?;
        held.uses = held.uses.saturating_add(1);
        Some(held.held.clone())
    }

    /// Enters an open of a file for a call, or uses the one that another call has entered meanwhile. Returns the one to use.
    /// None: the host is gone.
    pub fn enter_file(&mut self, host: HostNumber, file: FileKey, held: &H) -> Option<H> {
        let files = &mut self.hosts.get_mut(&host)?.files;
        let entry = files.entry(file);
        let known = entry.or_insert_with(|| HeldFile { held: held.clone(), uses: 0, owners: HashSet::new() });
        known.uses = known.uses.saturating_add(1);
        Some(known.held.clone())
    }

    /// A use of a file has ended. Returns the open to close, if the host holds nothing there any more.
    pub fn leave_file(&mut self, host: HostNumber, file: FileKey) -> Option<H> {
        let files = &mut self.hosts.get_mut(&host)?.files;
        let held = files.get_mut(&file)?;
        held.uses = held.uses.saturating_sub(1);
        if held.uses > 0 || !held.owners.is_empty() {
            return None;
        }
        files.remove(&file).map(|held| held.held)
    }

    /// Notes whether an owner holds locks in a file that is in use. Returns whether the host is still there.
    pub fn note_locks(&mut self, host: HostNumber, file: FileKey, owner: u64, holds: bool) -> bool {
        let Some(known) = self.hosts.get_mut(&host) else { return false };
        let Some(held) = known.files.get_mut(&file) else { return false };
        match holds {
            true if held.owners.insert(owner) => known.owners.keep(owner),
            false if held.owners.remove(&owner) => known.owners.drop(owner),
            _ => {}
        }
        true
    }

    /// Enters a share reservation. Returns the open that it replaces; the given one if there are too many, or the host is gone.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn reserve(
        &mut self,
        host: HostNumber,
        file: FileKey,
        owner: &[u8],
        held: H,
    ) -> Result<Option<H>, TooMany> {
        let most = self.limits.reservations_max;
        let reservations = &mut self.hosts.get_mut(&host).ok_or(TooMany("restarts"))?.reservations;
        let key = (file, owner.into());
        if reservations.len() >= most && !reservations.contains_key(&key) {
            return Err(TooMany("share reservations of one host"));
        }
        Ok(reservations.insert(key, held))
    }

    /// Ends a share reservation. Returns its open.
    pub fn unreserve(&mut self, host: HostNumber, file: FileKey, owner: &[u8]) -> Option<H> {
        self.hosts.get_mut(&host)?.reservations.remove(&(file, owner.into()))
    }

    /// Enters a wait for a lock. Returns false if the same lock is waited for already.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn wait(&mut self, host: HostNumber, lock: Described, stop: W) -> Result<bool, TooMany> {
        let known = self.hosts.get_mut(&host).ok_or(TooMany("restarts"))?;
        if known.waits.iter().any(|(waiting, _)| *waiting == lock) {
            return Ok(false);
        }
        if !self.waiting.may_take(&known.place, self.limits.waiting_max) {
            return Err(TooMany("locks that are waited for"));
        }
        self.waiting.enter(known.place.clone());
        known.waits.push((lock, Phase::Waiting(stop)));
        Ok(true)
    }

    /// The lock that was waited for is taken, and the host is about to be told. Returns false if nobody waits for it any more.
    pub fn grant(&mut self, host: HostNumber, lock: &Described) -> bool {
        let known = self.hosts.get_mut(&host);
        let wait = known.and_then(|known| known.waits.iter_mut().find(|(waiting, _)| waiting == lock));
        match wait {
            Some((_, phase @ Phase::Waiting(_))) => {
                *phase = Phase::Granting;
                true
            }
            _ => false,
        }
    }

    /// The wait is given up. None: nobody waits for this lock, or it was granted already.
    pub fn cancel(&mut self, host: HostNumber, lock: &Described) -> Option<W> {
        let at = self.wait_for(host, |waiting| waiting == lock).next()?;
        let known = self.hosts.get(&host)?;
        if matches!(known.waits.get(at), Some((_, Phase::Granting))) {
            return None;
        }
        self.end_wait(host, at)
    }

    /// The host knows whether it has this range: it has asked again, or given the range up. Its waits for it end, even those of
    /// which it was about to be told. Returns what stops them.
    pub fn settle(&mut self, host: HostNumber, lock: &Described) -> Vec<W> {
        let same = |waiting: &Described| Described { exclusive: lock.exclusive, ..*waiting } == *lock;
        let places: Vec<_> = self.wait_for(host, same).collect();
        places.into_iter().rev().filter_map(|at| self.end_wait(host, at)).collect()
    }

    /// The host was told, or could not be. Returns false if it has settled the matter itself before.
    pub fn end_grant(&mut self, host: HostNumber, lock: &Described) -> bool {
        let at = self.wait_for(host, |waiting| waiting == lock).next();
        let is_open = at.is_some();
        if let Some(at) = at {
            drop(self.end_wait(host, at));
        }
        is_open
    }

    /// The places of such waits of a host.
    fn wait_for<'a>(
        &'a self,
        host: HostNumber,
        is_meant: impl Fn(&Described) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let waits = self.hosts.get(&host).map_or(&[][..], |known| &known.waits);
        waits.iter().enumerate().filter(move |(_, (lock, _))| is_meant(lock)).map(|(at, _)| at)
    }

    fn end_wait(&mut self, host: HostNumber, at: usize) -> Option<W> {
        let known = self.hosts.get_mut(&host)?;
        self.waiting.leave(&known.place);
        known.waits.swap_remove(at).1.stop()
    }

    /// A host says that it has restarted. Returns what it held; None if it is not known, or its state is known already: a
    /// message that came twice must not free what the host has locked since.
    pub fn restarted(&mut self, place: &A, name: &[u8], state: u32) -> Option<Freed<H, W>> {
        let number = self.find(place, name)?;
        let is_known = self.hosts.get(&number).is_some_and(|host| state != 0 && host.state == state);
        if is_known { None } else { self.remove(number) }
    }

    /// The names of the hosts of a place.
    #[must_use]
    pub fn names_at(&self, place: &A) -> Vec<Box<[u8]>> {
        let of_place = self.hosts.values().filter(|host| host.place == *place);
        of_place.map(|host| host.name.clone()).collect()
    }

    /// Removes a host. Returns what it held.
    pub fn remove(&mut self, number: HostNumber) -> Option<Freed<H, W>> {
        let host = self.hosts.remove(&number)?;
        host.waits.iter().for_each(|_| self.waiting.leave(&host.place));
        self.of_place.leave(&host.place);
        self.by_name.remove(&(host.place, host.name));
        Some(Freed {
            host: number,
            files: host
                .files
                .into_values()
                .map(|file| (file.held, file.owners.into_iter().collect()))
                .collect(),
            reservations: host.reservations.into_values().collect(),
            waits: host.waits.into_iter().filter_map(|(_, phase)| phase.stop()).collect(),
        })
    }

    /// Removes the hosts that hold nothing and have been silent for so long. Returns their places and names.
    pub fn forget_idle(&mut self, now: Instant, silent: Duration) -> Vec<(A, Box<[u8]>)> {
        let is_idle =
            |host: &Host<A, H, W>| host.is_empty() && now.saturating_duration_since(host.used) >= silent;
        let idle: Vec<_> =
            self.hosts.iter().filter(|(_, host)| is_idle(host)).map(|(number, _)| *number).collect();
        let mut gone = Vec::new();
        for number in idle {
            if let Some(host) = self.hosts.get(&number) {
                gone.push((host.place.clone(), host.name.clone()));
            }
            drop(self.remove(number));
        }
        gone
    }

    /// Takes the files and reservations that are no longer allowed, with the owners of their locks.
    pub fn take_files(&mut self, is_lost: impl Fn(&H) -> bool) -> Vec<(H, Vec<u64>)> {
        let mut taken = Vec::new();
        for host in self.hosts.values_mut() {
            let lost = host.files.iter().filter(|(_, file)| is_lost(&file.held));
            for key in lost.map(|(key, _)| *key).collect::<Vec<_>>() {
                let Some(mut file) = host.files.remove(&key) else { continue };
                let owners: Vec<_> = mem::take(&mut file.owners).into_iter().collect();
                owners.iter().for_each(|owner| host.owners.drop(*owner));
                taken.push((file.held, owners));
            }
            let reserved = host.reservations.extract_if(|_, held| is_lost(held));
            taken.extend(reserved.map(|(_, held)| (held, Vec::new())));
        }
        taken
    }

    /// All hosts.
    #[must_use]
    pub fn report(&self) -> Vec<HostReport<A, H>> {
        let report = |(number, host): (&HostNumber, &Host<A, H, W>)| HostReport {
            number: *number,
            name: host.name.clone(),
            place: host.place.clone(),
            held: host
                .files
                .values()
                .map(|file| &file.held)
                .chain(host.reservations.values())
                .cloned()
                .collect(),
        };
        self.hosts.iter().map(report).collect()
    }
}

impl<W> Phase<W> {
    fn stop(self) -> Option<W> {
        match self {
            Self::Waiting(stop) => Some(stop),
            Self::Granting => None,
        }
    }
}

impl<A, H, W> Host<A, H, W> {
    fn has_restarted(&self, state: u32) -> bool {
        self.state != 0 && state != 0 && self.state != state
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.reservations.is_empty() && self.waits.is_empty()
    }
}

#[cfg(test)]
mod tests;
