//! The contexts of a server. They belong to it and not to a connection: clients use one over all their connections.

use std::collections::HashMap;
use std::hash::Hash;

/// The server's name for a context. It is random, so that nobody guesses those of others.
pub type Handle = [u8; 16];

/// What a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// The most contexts.
    pub contexts_max: usize,
    /// The most contexts of one address. Each user of a machine has one at least.
    pub contexts_per_address: usize,
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self { contexts_max: 16_384, contexts_per_address: 2048 }
    }
}

/// Contexts that were dropped before their clients ended them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Their ticket had ended when a client wanted to use them.
    pub expired: u64,
    /// There were too many.
    pub displaced: u64,
}

/// Why a handle names no context that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// There is no such context: it was never made, or was dropped.
    Unknown,
    /// The ticket of the context has ended.
    Expired,
}

/// The contexts, with what the server knows of each, by their handles. `A` is what addresses are counted by.
#[derive(Debug)]
pub struct Contexts<A, T> {
    limits: ContextLimits,
    known: HashMap<Handle, Entry<A, T>>,
    /// How many of `known` each address has.
    of_address: HashMap<A, usize>,
    /// Counts look-ups.
    uses: u64,
    dropped: Dropped,
}

#[derive(Debug)]
struct Entry<A, T> {
    address: A,
    /// Seconds since 1970.
    ends: i64,
    /// The look-up that was the last one for this context.
    used: u64,
    value: T,
}

impl<A: Copy + Eq + Hash, T> Contexts<A, T> {
    /// No contexts.
    #[must_use]
    pub fn new(limits: ContextLimits) -> Self {
        Self {
            limits,
            known: HashMap::new(),
            of_address: HashMap::new(),
            uses: 0,
            dropped: Dropped::default(),
        }
    }

    /// The number of contexts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The most contexts that there can be.
    #[must_use]
    pub fn max(&self) -> usize {
        self.limits.contexts_max
    }

    /// Those that were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Enters a context of a client at this address, which ends at that time (seconds since 1970). If the address or the
    /// server has too many, the one goes that was not used for longest.
    pub fn enter(&mut self, handle: Handle, address: A, ends: i64, value: T) {
        self.remove(&handle);
        if self.of_address.get(&address).is_some_and(|count| *count >= self.limits.contexts_per_address) {
            self.drop_oldest(|entry| entry.address == address);
        }
        if self.known.len() >= self.limits.contexts_max {
            self.drop_oldest(|_| true);
        }
        let used = self.next_use();
        self.known.insert(handle, Entry { address, ends, used, value });
        let count = self.of_address.entry(address).or_default();
        *count = count.saturating_add(1);
    }

    /// The context of this name at the time `now` (seconds since 1970). One that has ended is dropped.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn find(&mut self, handle: &[u8], now: i64) -> Result<&T, Unusable> {
        let handle = Handle::try_from(handle).map_err(|_| Unusable::Unknown)?;
        let used = self.next_use();
        if self.known.get(&handle).ok_or(Unusable::Unknown)?.ends <= now {
            self.remove(&handle);
            self.dropped.expired = self.dropped.expired.saturating_add(1);
            return Err(Unusable::Expired);
        }
        let entry = self.known.get_mut(&handle).ok_or(Unusable::Unknown)?;
        entry.used = used;
        Ok(&entry.value)
    }

    /// What is known of each context that has not ended at the time `now` (seconds since 1970), with its address.
    pub fn present(&self, now: i64) -> impl Iterator<Item = (A, &T)> {
        self.known.values().filter(move |entry| entry.ends > now).map(|entry| (entry.address, &entry.value))
    }

    /// Drops a context.
    pub fn remove(&mut self, handle: &Handle) {
        let Some(entry) = self.known.remove(handle) else { return };
        if let Some(count) = self.of_address.get_mut(&entry.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_address.remove(&entry.address);
            }
        }
    }

    /// Drops the contexts of an address, and returns how many those were.
    pub fn remove_of(&mut self, address: A) -> usize {
        self.known.retain(|_, entry| entry.address != address);
        self.of_address.remove(&address).unwrap_or(0)
    }

    fn next_use(&mut self) -> u64 {
        self.uses = self.uses.wrapping_add(1);
        self.uses
    }

    fn drop_oldest(&mut self, of: impl Fn(&Entry<A, T>) -> bool) {
        let candidates = self.known.iter().filter(|(_, entry)| of(entry));
        let oldest = candidates.min_by_key(|(_, entry)| entry.used).map(|(handle, _)| *handle);
        if let Some(oldest) = oldest {
            self.remove(&oldest);
            self.dropped.displaced = self.dropped.displaced.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ContextLimits = ContextLimits { contexts_max: 4, contexts_per_address: 3 };

    fn handle(number: u8) -> Handle {
        [number; 16]
    }

    fn with(addresses: &[(u8, char)]) -> Contexts<char, u8> {
        let mut contexts = Contexts::new(LIMITS);
        addresses.iter().for_each(|(number, address)| {
            contexts.enter(handle(*number), *address, 100, *number);
        });
        contexts
    }

    fn known(contexts: &Contexts<char, u8>) -> Vec<u8> {
        let mut known: Vec<u8> = contexts.known.values().map(|entry| entry.value).collect();
        known.sort_unstable();
        known
    }

    #[test]
    fn a_context_is_found_until_its_ticket_ends() {
        let mut contexts = with(&[(1, 'a'), (2, 'b')]);
        assert_eq!(contexts.find(&handle(1), 99), Ok(&1));
        assert_eq!(contexts.find(&handle(3), 99), Err(Unusable::Unknown));
        assert_eq!(contexts.find(&[1; 15], 99), Err(Unusable::Unknown));
        assert_eq!(contexts.find(&[], 99), Err(Unusable::Unknown));
        assert_eq!(contexts.find(&handle(1), 100), Err(Unusable::Expired));
        assert_eq!(contexts.find(&handle(1), 100), Err(Unusable::Unknown));
        assert_eq!((contexts.len(), contexts.of_address.len()), (1, 1));
        assert_eq!(contexts.dropped(), Dropped { expired: 1, displaced: 0 });
    }

    #[test]
    fn an_address_that_has_too_many_loses_the_one_that_was_not_used_for_longest() {
        let mut contexts = with(&[(1, 'a'), (2, 'a'), (3, 'a')]);
        assert_eq!(known(&contexts), [1, 2, 3]);
        contexts.find(&handle(1), 0).unwrap();
        contexts.enter(handle(4), 'a', 100, 4);
        assert_eq!(known(&contexts), [1, 3, 4]);
        contexts.enter(handle(5), 'b', 100, 5);
        assert_eq!(known(&contexts), [1, 3, 4, 5], "another address takes no place of the first");
    }

    #[test]
    fn a_server_that_has_too_many_loses_the_one_that_was_not_used_for_longest() {
        let mut contexts = with(&[(1, 'a'), (2, 'b'), (3, 'a'), (4, 'c')]);
        contexts.find(&handle(1), 0).unwrap();
        contexts.enter(handle(5), 'c', 100, 5);
        assert_eq!(known(&contexts), [1, 3, 4, 5]);
        assert_eq!(contexts.of_address.get(&'b'), None);
        assert_eq!((contexts.dropped(), contexts.max()), (Dropped { expired: 0, displaced: 1 }, 4));
    }

    #[test]
    fn contexts_end_one_by_one_and_with_their_address() {
        let mut contexts = with(&[(1, 'a'), (2, 'a'), (3, 'b')]);
        contexts.enter(handle(2), 'a', 100, 7);
        assert_eq!(contexts.of_address[&'a'], 2, "a handle is counted once");
        contexts.remove(&handle(1));
        contexts.remove(&handle(1));
        assert_eq!((known(&contexts), contexts.of_address[&'a']), (vec![3, 7], 1));
        assert_eq!((contexts.remove_of('a'), contexts.remove_of('a')), (1, 0));
        assert_eq!(known(&contexts), [3]);
        contexts.remove(&handle(3));
        assert!(contexts.is_empty() && contexts.of_address.is_empty());
    }
}
