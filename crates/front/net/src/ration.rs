//! The memory that strangers may hold: incomplete frames, and replies that they do not take.
//!
//! A few KiB each are free. Beyond that all strangers share one budget, and each address may use part of it. Memory is
//! requested for a whole frame at a time, so that of several incomplete frames, some are completed. The last quarter is
//! for addresses that hold little, and freed memory goes first to an address that holds nothing; within an address, to the
//! connection whose large frame was refused first. A connection that is refused has to wait. If that takes long, the largest of
//! those that have held their memory for long is disconnected: one of this address, or one of the address that holds most. A client
//! that has identified itself holds nothing here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Origin;
use crate::notice::Notice;

/// Bytes that each stranger may hold without asking.
pub(crate) const FREE_BYTES: usize = 4 * 1024;
/// Bytes of all strangers together.
pub const STRANGERS_BYTES_MAX: usize = 16 << 20;
/// Bytes of all strangers from one address: more than three of the largest NFS calls.
pub const STRANGERS_OF_ORIGIN_BYTES_MAX: usize = 4 << 20;
/// The last quarter is for addresses that hold no more than this: one such call.
const LATE_ORIGIN_BYTES_MAX: usize = (1 << 20) + 64 * 1024;
/// What a connection may hold beside a large frame: TLS, QUIC, small frames.
const SMALL_BYTES: usize = 128 * 1024;
/// How long a refused connection waits before another one is disconnected.
const REFUSED_PATIENCE: Duration = Duration::from_secs(2);
/// How long nobody is disconnected for what it holds. The largest frames of well-behaved clients are complete by then, also if several
/// come side by side over a slow link: four in 10 s need 4 Mbit/s.
const HELD_FOR: Duration = Duration::from_secs(10);
/// An address that holds nothing and was refused, or a connection whose large frame was refused, is served first, if it asks again within
/// this time.
const FIRST_FOR: Duration = Duration::from_secs(1);
/// How often to look among all addresses for somebody to be disconnected.
const LOOK: Duration = Duration::from_millis(100);

/// The budget of all strangers, whatever their protocol.
#[derive(Debug, Default)]
pub(crate) struct Rations {
    /// Guards the table of holders.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    /// The part of it that is held by connections that were told to end.
    going: usize,
    origins: HashMap<Origin, Held>,
    /// An address that holds nothing, was refused and is served first, and when it last asked.
    first: Option<(Origin, Instant)>,
    /// When it was last looked for somebody to be disconnected among all addresses.
    looked: Option<Instant>,
    next: u64,
}

/// The memory that an address holds.
#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// The part of it that is held by connections that were told to end.
    going: usize,
    /// The other connections, by how much they hold.
    holders: BTreeMap<(usize, u64), Holder>,
    /// The connection whose large frame was refused first and is served first, and when it last asked.
    first: Option<(u64, Instant)>,
}

#[derive(Debug)]
struct Holder {
    /// Since when it holds a large frame, or something small.
    since: Instant,
    stopped: Arc<Notice>,
}

/// The memory that one connection holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct Ration {
    rations: Arc<Rations>,
    origin: Origin,
    number: u64,
    bytes: usize,
    /// When the connection was first refused since its last success.
    refused: Option<Instant>,
    stopped: Arc<Notice>,
}

impl Rations {
    /// The ration of a new connection, which holds nothing yet.
    pub(crate) fn open(self: &Arc<Self>, origin: Origin) -> Ration {
        let number = {
            let mut table = self.table.lock();
            table.next += 1;
            table.next
        };
        Ration { rations: Arc::clone(self), origin, number, bytes: 0, refused: None, stopped: Arc::default() }
    }
}

impl Ration {
    /// Asks to hold this many bytes, including the free ones, instead of what the connection holds.
    pub(crate) fn ask(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(FREE_BYTES);
        if bytes != self.bytes {
            return self.ask_at(bytes, Instant::now());
        }
        self.refused = None;
        !self.stopped.is_given()
    }

    fn ask_at(&mut self, bytes: usize, now: Instant) -> bool {
        let mut table = self.rations.table.lock();
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 && (self.stopped.is_given() || !table.has_room(self, more, now)) {
            let since = now.saturating_duration_since(*self.refused.get_or_insert(now));
            if since >= REFUSED_PATIENCE {
                table.make_room(self.origin, more, now);
            }
            return false;
        }
        table.change(self, bytes, now);
        self.bytes = bytes;
        self.refused = None;
        !self.stopped.is_given()
    }

    /// Frees the memory, because the client has identified itself and no longer counts as a stranger.
    pub(crate) fn release(&mut self) {
        if self.bytes > 0 {
            self.rations.table.lock().change(self, 0, Instant::now());
            self.bytes = 0;
        }
    }

    /// The signal that tells the connection to end.
    pub(crate) fn stopped(&self) -> Arc<Notice> {
        Arc::clone(&self.stopped)
    }
}

impl Drop for Ration {
    fn drop(&mut self) {
        self.release();
    }
}

impl Table {
    /// Whether a connection may hold this many more bytes. One that holds a large frame already may be in the middle of it: the others
    /// wait until it comes to its end.
    fn has_room(&mut self, ration: &Ration, more: usize, now: Instant) -> bool {
        let own = self.held_by(ration.origin);
        let begins = ration.bytes <= SMALL_BYTES && ration.bytes.saturating_add(more) > SMALL_BYTES;
        let is_turn = |held: &Held| held.is_turn_of(ration.number, now);
        let is_its_turn = !begins || self.origins.get(&ration.origin).is_none_or(is_turn);
        let has_room = is_its_turn
            && own.saturating_add(more) <= STRANGERS_OF_ORIGIN_BYTES_MAX
            && self.may_have(ration.origin, own, more, now);
        if begins
            && is_its_turn
            && let Some(held) = self.origins.get_mut(&ration.origin)
        {
            held.first = (!has_room).then_some((ration.number, now));
        }
        has_room
    }

    /// Tells a connection to end that has held its memory for long, unless enough memory is about to become free already. It is one of
    /// this address if the address has used up its own part, otherwise one of the address that holds most.
    fn make_room(&mut self, origin: Origin, more: usize, now: Instant) {
        let own = self.origins.get(&origin);
        if own.is_some_and(|held| held.bytes.saturating_add(more) > STRANGERS_OF_ORIGIN_BYTES_MAX) {
            if own.is_some_and(|held| held.going < more) {
                self.stop_one_of(origin, now);
            }
        } else if self.going < more && self.may_look(now) {
            let of_long = self.origins.iter().filter(|(_, held)| held.long_holder(now).is_some());
            let most = of_long.max_by_key(|(_, held)| held.bytes - held.going).map(|(origin, _)| *origin);
            if let Some(most) = most {
                self.stop_one_of(most, now);
            }
        }
    }

    fn may_look(&mut self, now: Instant) -> bool {
        let is_due = self.looked.is_none_or(|at| now.saturating_duration_since(at) >= LOOK);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    fn held_by(&self, origin: Origin) -> usize {
        self.origins.get(&origin).map_or(0, |held| held.bytes)
    }

    /// Whether this much of the budget is left for an address that holds `own` bytes.
    fn may_have(&mut self, origin: Origin, own: usize, more: usize, now: Instant) -> bool {
        let held = self.held.saturating_add(more);
        let others_come_first = self
            .first
            .is_some_and(|(first, at)| first != origin && now.saturating_duration_since(at) < FIRST_FOR);
        let is_late = others_come_first || held > STRANGERS_BYTES_MAX - STRANGERS_BYTES_MAX / 4;
        let is_modest = !others_come_first && own.saturating_add(more) <= LATE_ORIGIN_BYTES_MAX;
        let has_room = held <= STRANGERS_BYTES_MAX && (!is_late || is_modest);
        if !others_come_first && (own == 0 || has_room) {
            self.first = (!has_room).then_some((origin, now));
        }
        has_room
    }

    /// Tells the largest connection of an address to end, of those that have held their memory for long.
    fn stop_one_of(&mut self, origin: Origin, now: Instant) {
        let Some(held) = self.origins.get_mut(&origin) else { return };
        let Some(place) = held.long_holder(now) else { return };
        if let Some(largest) = held.holders.remove(&place) {
            let (bytes, _) = place;
            largest.stopped.give();
            held.going += bytes;
            self.going += bytes;
        }
    }

    /// Sets the number of bytes that the connection holds.
    fn change(&mut self, ration: &Ration, bytes: usize, now: Instant) {
        let is_going = ration.stopped.is_given();
        let held = self.origins.entry(ration.origin).or_default();
        let before = held.holders.remove(&(ration.bytes, ration.number));
        held.bytes = held.bytes - ration.bytes + bytes;
        self.held = self.held - ration.bytes + bytes;
        if is_going {
            held.going = held.going - ration.bytes + bytes;
            self.going = self.going - ration.bytes + bytes;
        } else if bytes > 0 {
            let new = Holder { since: now, stopped: Arc::clone(&ration.stopped) };
            let is_as_before = (ration.bytes > SMALL_BYTES) == (bytes > SMALL_BYTES);
            held.holders.insert((bytes, ration.number), before.filter(|_| is_as_before).unwrap_or(new));
        }
        if held.bytes == 0 {
            self.origins.remove(&ration.origin);
        }
    }
}

impl Held {
    /// Whether no other connection of the address is served before this one.
    fn is_turn_of(&self, number: u64, now: Instant) -> bool {
        self.first.is_none_or(|(first, at)| first == number || now.saturating_duration_since(at) >= FIRST_FOR)
    }

    /// The largest of the connections that have held their memory for long. Where some hold large frames, it is one of these: to
    /// disconnect those that hold little would free little.
    fn long_holder(&self, now: Instant) -> Option<(usize, u64)> {
        let is_long = |holder: &Holder| now.saturating_duration_since(holder.since) >= HELD_FOR;
        let ((largest, _), _) = self.holders.last_key_value()?;
        let least = if *largest > SMALL_BYTES { SMALL_BYTES + 1 } else { 0 };
        let candidates = self.holders.range((least, 0)..).rev();
        candidates.into_iter().find(|(_, holder)| is_long(holder)).map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const MIB: usize = 1 << 20;

    fn from(rations: &Arc<Rations>, last: u8) -> Ration {
        rations.open(IpAddr::from([10, 0, 0, last]).into())
    }

    fn holding(rations: &Arc<Rations>, last: u8, bytes: usize) -> Ration {
        let mut ration = from(rations, last);
        assert!(ration.ask(bytes + FREE_BYTES));
        ration
    }

    fn is_stopped(ration: &Ration) -> bool {
        ration.stopped.is_given()
    }

    #[test]
    fn a_little_is_free() {
        let rations = Arc::new(Rations::default());
        let _full: Vec<_> = (0..3).map(|last| holding(&rations, last, 4 * MIB)).collect();
        let _others: Vec<_> = (3..7).map(|last| holding(&rations, last, MIB)).collect();
        let mut small = from(&rations, 9);
        assert!(small.ask(FREE_BYTES) && !small.ask(FREE_BYTES + 1) && small.ask(100));
        assert_eq!(rations.table.lock().held, STRANGERS_BYTES_MAX);
    }

    /// Asks in vain until others have held their memory for long.
    fn ask_in_vain(ration: &mut Ration, bytes: usize) {
        let now = Instant::now();
        assert!(!ration.ask_at(bytes, now) && !ration.ask_at(bytes, now + HELD_FOR));
    }

    #[test]
    fn an_address_has_a_part_and_its_largest_holder_has_to_go() {
        let rations = Arc::new(Rations::default());
        let other = holding(&rations, 2, 2 * MIB);
        let small: Vec<_> = (0..2).map(|_| holding(&rations, 1, MIB / 2)).collect();
        let large = holding(&rations, 1, 3 * MIB);
        let mut asking = from(&rations, 1);
        assert!(!asking.ask(MIB) && !is_stopped(&large), "it may come to its end");
        ask_in_vain(&mut asking, MIB);
        ask_in_vain(&mut asking, MIB);
        assert!(is_stopped(&large) && !small.iter().chain([&other, &asking]).any(is_stopped));
        drop(large);
        assert!(asking.ask(MIB));
        assert_eq!(rations.table.lock().going, 0);
    }

    #[test]
    fn who_has_not_held_for_long_stays() {
        let rations = Arc::new(Rations::default());
        let (old, new) = (holding(&rations, 1, MIB), holding(&rations, 1, 3 * MIB));
        let now = Instant::now();
        rations
            .table
            .lock()
            .origins
            .get_mut(&old.origin)
            .unwrap()
            .holders
            .get_mut(&(MIB, old.number))
            .unwrap()
            .since = now.checked_sub(HELD_FOR).unwrap();
        let mut asking = from(&rations, 1);
        assert!(!asking.ask_at(MIB, now) && !asking.ask_at(MIB, now + REFUSED_PATIENCE));
        assert!(is_stopped(&old) && !is_stopped(&new));
    }

    #[test]
    fn each_large_frame_has_its_time_and_who_holds_little_stays_beside_it() {
        let rations = Arc::new(Rations::default());
        let [mut busy, mut quiet] =
            [holding(&rations, 1, SMALL_BYTES / 2), holding(&rations, 1, SMALL_BYTES / 2)];
        let begun = Instant::now();
        let later = begun + HELD_FOR;
        assert!(busy.ask_at(3 * MIB, later), "a large frame begins");
        let mut asking = from(&rations, 1);
        assert!(!asking.ask_at(2 * MIB, later) && !asking.ask_at(2 * MIB, later + REFUSED_PATIENCE));
        assert!(!is_stopped(&busy) && !is_stopped(&quiet));
        assert!(!asking.ask_at(2 * MIB, later + HELD_FOR) && is_stopped(&busy) && !is_stopped(&quiet));
        assert!(quiet.ask(0));
    }

    #[test]
    fn an_address_whose_frames_are_short_shields_no_other() {
        let rations = Arc::new(Rations::default());
        let long = holding(&rations, 2, 3 * MIB);
        let others: Vec<_> = (3..5).map(|last| holding(&rations, last, 4 * MIB)).collect();
        let later = Instant::now() + HELD_FOR;
        let mut short = from(&rations, 1);
        assert!(short.ask_at(MIB, later));
        let _late: Vec<_> = (10..14).map(|last| holding(&rations, last, MIB)).collect();
        let mut asking = from(&rations, 9);
        assert!(!asking.ask_at(MIB, later) && !asking.ask_at(MIB, later + REFUSED_PATIENCE));
        assert!(
            !is_stopped(&short) && others.iter().chain([&long]).filter(|one| is_stopped(one)).count() == 1
        );
    }

    #[test]
    fn within_an_address_who_was_refused_first_is_served_first() {
        let rations = Arc::new(Rations::default());
        let mut busy = holding(&rations, 1, 3 * MIB + MIB / 2);
        let [mut first, mut second] = [from(&rations, 1), from(&rations, 1)];
        let mut small = from(&rations, 1);
        let now = Instant::now();
        assert!(!first.ask_at(MIB, now), "too much for its address");
        assert!(!second.ask_at(MIB / 4, now), "the first waits");
        assert!(busy.ask_at(3 * MIB + MIB / 2 + 2 * FREE_BYTES, now), "it may be in the middle of a frame");
        assert!(small.ask_at(SMALL_BYTES, now), "it does not wait for large ones");
        assert!(busy.ask_at(SMALL_BYTES, now) && first.ask_at(MIB, now) && second.ask_at(MIB / 4, now));
        assert!(!busy.ask_at(3 * MIB, now) && second.ask_at(0, now) && !second.ask_at(MIB / 4, now));
        assert!(second.ask_at(MIB / 4, now + FIRST_FOR), "who was refused has not asked again");
    }

    #[test]
    fn the_last_quarter_is_for_addresses_that_hold_little_and_the_largest_holder_of_all_has_to_go() {
        let rations = Arc::new(Rations::default());
        let full: Vec<_> = (1..4).map(|last| holding(&rations, last, 4 * MIB)).collect();
        let modest = holding(&rations, 9, MIB);
        let mut asking = from(&rations, 9);
        assert!(!asking.ask(MIB), "its address has one already");
        ask_in_vain(&mut asking, MIB);
        assert_eq!(full.iter().filter(|ration| is_stopped(ration)).count(), 1);
        ask_in_vain(&mut asking, MIB);
        assert!(!is_stopped(&modest) && !is_stopped(&asking));
        assert_eq!(full.iter().filter(|ration| is_stopped(ration)).count(), 1, "that is enough");
        let _others: Vec<_> = (10..13).map(|last| holding(&rations, last, MIB)).collect();
        assert_eq!(rations.table.lock().held, STRANGERS_BYTES_MAX);
    }

    #[test]
    fn what_becomes_free_is_first_for_an_address_that_holds_nothing() {
        let rations = Arc::new(Rations::default());
        let mut full: Vec<_> = (1..4).map(|last| holding(&rations, last, 4 * MIB)).collect();
        let _others: Vec<_> = (10..14).map(|last| holding(&rations, last, MIB)).collect();
        let [first, second] = [20, 21].map(|last| Origin::from(IpAddr::from([10, 0, 0, last])));
        let (now, later) = (Instant::now(), Instant::now() + 2 * FIRST_FOR);
        let ask = |origin, at| rations.table.lock().may_have(origin, 0, MIB, at);
        assert!(!ask(first, now) && !ask(second, now));
        full.pop();
        assert!(!ask(second, now) && ask(first, now) && ask(second, now));
        let _more: Vec<_> = (30..34).map(|last| holding(&rations, last, MIB)).collect();
        assert!(!ask(first, now));
        full.pop();
        assert!(!ask(second, now) && ask(second, later), "the first has not asked again");
    }

    #[test]
    fn who_is_known_holds_nothing_here_and_who_goes_gets_nothing() {
        let rations = Arc::new(Rations::default());
        let mut large = holding(&rations, 1, 4 * MIB);
        ask_in_vain(&mut from(&rations, 1), MIB);
        assert!(is_stopped(&large));
        assert!(!large.ask(4 * MIB + 2 * FREE_BYTES) && !large.ask(4 * MIB + FREE_BYTES) && !large.ask(MIB));
        large.release();
        let table = rations.table.lock();
        assert!(table.held == 0 && table.going == 0 && table.origins.is_empty());
    }
}
