//! The places of a listener's connections: which connection may have one, and which gives way.
//!
//! Until three quarters are taken, an address may take any free place. The last quarter is for addresses that hold less
//! than a quarter of all places. A *stranger* is a connection whose client has not identified itself. Strangers take at
//! most three quarters of the places; the others are kept for clients that have identified themselves. When strangers
//! would take more, or no place is free, the oldest stranger gives way to the newcomer.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Origin;
use crate::notice::Notice;

/// How many connections a listener accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections of all clients together.
    pub max: usize,
    /// The most connections of one address. This replaces the rule that the last quarter is for addresses that hold
    /// less than a quarter.
    pub of_one_address: Option<usize>,
}

/// The connections of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupied {
    /// The name of the service.
    pub service: &'static str,
    /// The connections that have a place.
    pub connections: usize,
    /// The most that can have one.
    pub max: usize,
}

/// Shows how many connections each service has, and may have.
#[derive(Debug, Clone, Default)]
pub struct Occupancy(Arc<Mutex<Vec<Occupiable>>>);

/// The places of the services of one name.
#[derive(Debug)]
struct Occupiable {
    service: &'static str,
    places: Arc<Places>,
}

impl Occupancy {
    /// The places of the services of this name. The first of them says how many there are.
    pub(crate) fn places(&self, service: &'static str, limits: ConnectionLimits) -> Arc<Places> {
        let mut all = self.0.lock();
        if let Some(known) = all.iter().find(|known| known.service == service) {
            return Arc::clone(&known.places);
        }
        let places = Places::new(limits);
        all.push(Occupiable { service, places: Arc::clone(&places) });
        places
    }

    /// The connections of each service now, in the order in which the services began.
    #[must_use]
    pub fn now(&self) -> Vec<Occupied> {
        let occupied = |Occupiable { service, places }: &Occupiable| Occupied {
            service,
            connections: places.table.lock().held,
            max: places.limits.max,
        };
        self.0.lock().iter().map(occupied).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Places {
    limits: ConnectionLimits,
    /// Guards the table of places.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    by_origin: HashMap<Origin, usize>,
    /// The strangers in the order in which they connected.
    strangers: BTreeMap<u64, Stranger>,
    next: u64,
}

#[derive(Debug)]
struct Stranger {
    origin: Origin,
    gives_way: Arc<Notice>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("its address has as many connections as it may have")]
    Address,
    #[error("all places are taken by clients that have logged on")]
    All,
}

/// A connection's place, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    origin: Origin,
    gives_way: Arc<Notice>,
}

impl Places {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default() })
    }

    /// Takes a place for a newcomer, which is a stranger, from this address.
    ///
    /// # Errors
    /// There is no place for it.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let origin = Origin::from(address);
        let mut table = self.table.lock();
        if !self.may_have_another(&table, origin) {
            return Err(Full::Address);
        }
        let strangers_max = self.three_quarters();
        if table.held >= self.limits.max || table.strangers.len() >= strangers_max {
            table.displace_oldest();
        }
        if table.held >= self.limits.max {
            return Err(Full::All);
        }
        table.next += 1;
        table.held += 1;
        *table.by_origin.entry(origin).or_default() += 1;
        let place = Place {
            places: Arc::clone(self),
            number: table.next,
            origin,
            gives_way: Arc::new(Notice::default()),
        };
        table.strangers.insert(place.number, place.as_stranger());
        Ok(place)
    }

    fn may_have_another(&self, table: &Table, origin: Origin) -> bool {
        let own = table.by_origin.get(&origin).copied().unwrap_or(0);
        match self.limits.of_one_address {
            Some(max) => own < max,
            None => table.held < self.three_quarters() || own < self.limits.max / 4,
        }
    }

    fn three_quarters(&self) -> usize {
        self.limits.max - self.limits.max / 4
    }
}

impl Table {
    fn displace_oldest(&mut self) {
        if let Some((_, oldest)) = self.strangers.pop_first() {
            oldest.gives_way.give();
            self.leave(oldest.origin);
        }
    }

    fn leave(&mut self, origin: Origin) {
        self.held -= 1;
        if let Some(own) = self.by_origin.get_mut(&origin) {
            *own -= 1;
            if *own == 0 {
                self.by_origin.remove(&origin);
            }
        }
    }
}

impl Place {
    /// Notes that the client has identified itself, or is a stranger again.
    pub(crate) fn set_known(&self, known: bool) {
        let mut table = self.places.table.lock();
        if self.gives_way.is_given() {
            return;
        }
        if known {
            table.strangers.remove(&self.number);
        } else {
            table.strangers.insert(self.number, self.as_stranger());
        }
    }

    /// Resolves when the place is given to another connection.
    pub(crate) async fn given_away(&self) {
        self.gives_way.given().await;
    }

    fn as_stranger(&self) -> Stranger {
        Stranger { origin: self.origin, gives_way: Arc::clone(&self.gives_way) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table.lock();
        if !self.gives_way.is_given() {
            table.strangers.remove(&self.number);
            table.leave(self.origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(max: usize, of_one_address: Option<usize>) -> Arc<Places> {
        Places::new(ConnectionLimits { max, of_one_address })
    }

    fn take(places: &Arc<Places>, last: u8, count: usize) -> Vec<Place> {
        (0..count).map_while(|_| places.take([10, 0, 0, last].into()).ok()).collect()
    }

    fn know(held: &[Place]) {
        held.iter().for_each(|place| place.set_known(true));
    }

    fn displaced(held: &[Place]) -> usize {
        held.iter().filter(|place| place.gives_way.is_given()).count()
    }

    #[test]
    fn the_last_quarter_is_for_addresses_that_hold_less_than_a_quarter() {
        let places = places(100, None);
        let greedy = take(&places, 1, 200);
        know(&greedy);
        assert_eq!(greedy.len(), 75);
        let modest = take(&places, 2, 200);
        know(&modest);
        assert_eq!(modest.len(), 25);
        assert!(take(&places, 3, 1).is_empty(), "none is free, and nobody gives way");
        drop(greedy);
        assert_eq!(take(&places, 2, 200).len(), 50, "up to three quarters of all");
    }

    #[test]
    fn a_number_takes_the_place_of_the_rule() {
        let places = places(100, Some(90));
        let greedy = take(&places, 1, 200);
        know(&greedy);
        assert_eq!((greedy.len(), displaced(&greedy)), (200, 125), "strangers take three quarters");
        assert_eq!(places.table.lock().held, 75);
        assert_eq!(take(&places, 1, 200).len(), 15);
    }

    #[test]
    fn the_oldest_stranger_gives_way() {
        let places = places(100, None);
        let known = take(&places, 1, 20);
        know(&known);
        let strangers: Vec<Place> = (2..5).flat_map(|last| take(&places, last, 24)).collect();
        assert_eq!((strangers.len(), displaced(&strangers)), (72, 0));
        let few = take(&places, 9, 8);
        assert_eq!((few.len(), displaced(&strangers), displaced(&few)), (8, 5, 0), "75 strangers at most");
        assert!(strangers[..5].iter().all(|place| place.gives_way.is_given()), "the oldest");
        assert_eq!(displaced(&known), 0);
        know(&few);
        let table = places.table.lock();
        assert_eq!((table.held, table.strangers.len()), (95, 67));
    }

    #[test]
    fn the_newcomer_finds_a_place_while_there_are_strangers() {
        let places = places(16, None);
        let known: Vec<Place> = (1..6)
            .flat_map(|last| {
                let held = take(&places, last, 3);
                know(&held);
                held
            })
            .collect();
        assert_eq!((known.len(), displaced(&known)), (15, 0));
        let stranger = take(&places, 7, 1);
        assert_eq!(places.table.lock().held, 16);
        let newcomer = take(&places, 8, 1);
        assert_eq!((newcomer.len(), displaced(&stranger)), (1, 1));
        know(&newcomer);
        assert!(take(&places, 9, 1).is_empty());
        newcomer[0].set_known(false);
        assert_eq!((take(&places, 9, 1).len(), displaced(&newcomer)), (1, 1), "a stranger again");
    }

    #[test]
    fn what_is_dropped_is_free_and_what_gave_way_is_not_counted_twice() {
        let places = places(4, None);
        let first = take(&places, 1, 3);
        let second = take(&places, 2, 1);
        assert_eq!((first.len(), displaced(&first), second.len()), (3, 1, 1));
        drop((first, second));
        let table = places.table.lock();
        assert!(table.held == 0 && table.by_origin.is_empty() && table.strangers.is_empty());
    }
}
