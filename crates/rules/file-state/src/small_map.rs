//! A map that mostly has one entry.
//!
//! Nearly every file has one open at a time, under one grant. Such a map allocates nothing and hashes nothing; with
//! thousands of entries a lookup is still one in a tree.

use std::collections::BTreeMap;

/// A map in the order of its keys. The entry with the least key is kept in place, all others in a tree.
#[derive(Debug, Clone)]
pub struct SmallMap<K, V> {
    /// `None` only while there are no others.
    least: Option<(K, V)>,
    others: BTreeMap<K, V>,
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self { least: None, others: BTreeMap::new() }
    }
}

impl<K: Ord, V> SmallMap<K, V> {
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.others.len().saturating_add(usize::from(self.least.is_some()))
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.least.is_none()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        match &self.least {
            Some((least, value)) if least == key => Some(value),
            _ => self.others.get(key),
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.least {
            Some((least, value)) if least == key => Some(value),
            _ => self.others.get_mut(key),
        }
    }

    /// Enters a value. Returns the one that the key had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match &mut self.least {
            None => {
                self.least = Some((key, value));
                None
            }
            Some((least, had)) if *least == key => Some(std::mem::replace(had, value)),
            Some((least, _)) if *least < key => self.others.insert(key, value),
            Some(least) => {
                let (key, value) = std::mem::replace(least, (key, value));
                self.others.insert(key, value)
            }
        }
    }

    /// Removes a key. Returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if self.least.as_ref().is_none_or(|(least, _)| least != key) {
            return self.others.remove(key);
        }
        let removed = std::mem::replace(&mut self.least, self.others.pop_first());
        removed.map(|(_, value)| value)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.least.iter().map(|(_, value)| value).chain(self.others.values())
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.least.iter_mut().map(|(_, value)| value).chain(self.others.values_mut())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u8..4, 0_u8..6, 0_u8..), 0..60)) {
            let (mut small, mut model) = (SmallMap::default(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(small.remove(&key), model.remove(&key)),
                    2 if value < 64 => small.values_mut().chain(model.values_mut()).for_each(|of| *of = value),
                    1 => {
                        let (a, b) = (small.get_mut(&key), model.get_mut(&key));
                        prop_assert_eq!(&a, &b);
                        a.into_iter().chain(b).for_each(|of| *of = value);
                    }
                    _ => prop_assert_eq!(small.insert(key, value), model.insert(key, value)),
                }
                prop_assert_eq!((small.len(), small.is_empty()), (model.len(), model.is_empty()));
                prop_assert!((0..6).all(|key| small.get(&key) == model.get(&key)));
                prop_assert!(small.values().eq(model.values()), "in the order of the keys");
            }
        }
    }
}
