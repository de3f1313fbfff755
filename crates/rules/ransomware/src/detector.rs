//! The clients of a share, and the alarms about them.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::client::{Client, Count, Note, Way};
use crate::look::Look;
use crate::rule::Rule;

/// Clients that are remembered.
const CLIENTS_MAX: usize = 256;
/// An alarm ends so long after its client spoilt the last file.
const QUIET: Duration = Duration::from_secs(3600);

/// An alarm about a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm<C> {
    /// Its number, unique in this detector.
    pub number: u64,
    /// The client.
    pub client: C,
    /// When it was raised.
    pub since: Instant,
    /// What the client has done.
    pub count: Count,
    /// The unusual suffix that files have got.
    pub suffix: Option<Vec<u8>>,
}

/// Counts what clients `C` do to files `F`.
#[derive(Debug)]
pub struct Detector<C, F> {
    clients: HashMap<C, Watched<F>>,
    /// How many alarms there were.
    raised: u64,
}

#[derive(Debug)]
struct Watched<F> {
    client: Client<F>,
    alarm: Option<(u64, Instant)>,
}

impl<C, F> Default for Detector<C, F> {
    fn default() -> Self {
        Self { clients: HashMap::new(), raised: 0 }
    }
}

/// What is to be known of the first write of a client to a file within the time of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// What the file held before the client emptied it, if it did and that is known.
    pub emptied: Option<Look>,
}

impl<C: Copy + Eq + Hash, F: Copy + Eq + Hash> Detector<C, F> {
    /// A client writes to a file. None unless what it writes is to be looked at ([`Detector::noise`]).
    pub fn writes(&mut self, client: C, file: F, rule: &Rule, now: Instant) -> Option<First> {
        let watched = self.client(client, now);
        let note = watched.note(file, now, rule.within);
        if !matches!(note, None | Some(Note::Emptied(_))) {
            return None;
        }
        watched.set_note(file, Note::Examined, now);
        let emptied = match note {
            Some(Note::Emptied(look)) => Some(look),
            _ => None,
        };
        Some(First { emptied })
    }

    /// What a client writes first to a file is noise. `before` is what was there, None if there was nothing. Returns an alarm if
    /// this raises one.
    pub fn noise(
        &mut self,
        client: C,
        file: F,
        before: Option<Look>,
        rule: &Rule,
        now: Instant,
    ) -> Option<Alarm<C>> {
        let watched = self.client(client, now);
        match before {
            _ if watched.note(file, now, rule.within) == Some(Note::Spoilt) => {}
            None => watched.makes(file, now),
            Some(Look::Noise) => {}
            Some(Look::Plain | Look::Known) => {
                watched.set_note(file, Note::Spoilt, now);
                watched.spoils(Way::Overwritten, now);
            }
        }
        self.judge(client, rule, now)
    }

    /// A client empties a file that holds this.
    pub fn empties(&mut self, client: C, file: F, held: Look, rule: &Rule, now: Instant) {
        let watched = self.client(client, now);
        if watched.note(file, now, rule.within).is_none() {
            watched.set_note(file, Note::Emptied(held), now);
        }
    }

    /// Whether it matters what the files held that the client removes ([`Detector::removes`]).
    pub fn heeds_removals(&mut self, client: C, rule: &Rule, now: Instant) -> bool {
        self.clients.get_mut(&client).is_some_and(|watched| watched.client.has_made(now, rule.within))
    }

    /// A client removes a file that held this. Returns an alarm if this raises one.
    pub fn removes(&mut self, client: C, held: Look, rule: &Rule, now: Instant) -> Option<Alarm<C>> {
        if held != Look::Noise {
            self.client(client, now).replaces(now, rule.within);
        }
        self.judge(client, rule, now)
    }

    /// Whether the client has made this file, which looks random: then it matters what a file held in whose place it comes
    /// ([`Detector::renames`]).
    #[must_use]
    pub fn has_made(&self, client: C, file: F, rule: &Rule, now: Instant) -> bool {
        let note = self.clients.get(&client).and_then(|watched| watched.client.note(file, now, rule.within));
        note == Some(Note::Made)
    }

    /// A client renames a file, perhaps in the place of another that held this. Returns an alarm if this raises one.
    pub fn renames(
        &mut self,
        client: C,
        file: F,
        names: (&[u8], &[u8]),
        replaced: Option<Look>,
        rule: &Rule,
        now: Instant,
    ) -> Option<Alarm<C>> {
        let watched = self.client(client, now);
        match (watched.note(file, now, rule.within), replaced) {
            (Some(Note::Made), Some(Look::Plain | Look::Known)) => {
                watched.set_note(file, Note::Spoilt, now);
                watched.replaces(now, rule.within);
            }
            // What it has just written it may name as it likes.
            (Some(_), _) => {}
            (None, _) => watched.renames(file, names, now, rule.within),
        }
        self.judge(client, rule, now)
    }

    /// The alarms that last. What clients have done whose last alarm has ended is forgotten.
    pub fn alarms(&mut self, now: Instant) -> Vec<Alarm<C>> {
        self.clients.retain(|_, Watched { client, .. }| {
            let last = client.spoilt_last.unwrap_or(client.last);
            now.saturating_duration_since(last) < QUIET
        });
        let alarm = |(client, watched): (&C, &Watched<F>)| {
            let (number, since) = watched.alarm?;
            let (count, suffix) = (watched.client.count, watched.client.suffix.clone());
            Some(Alarm { number, client: *client, since, count, suffix })
        };
        let mut alarms: Vec<_> = self.clients.iter().filter_map(alarm).collect();
        alarms.sort_by_key(|alarm| alarm.number);
        alarms
    }

    /// Ends an alarm, and forgets what its client has done. Returns the client.
    pub fn end(&mut self, number: u64) -> Option<C> {
        let has_it = |(_, watched): &(&C, &Watched<F>)| watched.alarm.is_some_and(|(of, _)| of == number);
        let client = self.clients.iter().find(has_it).map(|(client, _)| *client)?;
        self.clients.remove(&client);
        Some(client)
    }

    fn client(&mut self, client: C, now: Instant) -> &mut Client<F> {
        if !self.clients.contains_key(&client) && self.clients.len() >= CLIENTS_MAX {
            self.forget_one();
        }
        let new = || Watched { client: Client::new(now), alarm: None };
        let watched = self.clients.entry(client).or_insert_with(new);
        watched.client.last = now;
        &mut watched.client
    }

    /// Forgets the client that has done nothing for longest, rather one without an alarm.
    fn forget_one(&mut self) {
        let age = |(_, watched): &(&C, &Watched<F>)| (watched.alarm.is_some(), watched.client.last);
        if let Some(oldest) = self.clients.iter().min_by_key(age).map(|(client, _)| *client) {
            self.clients.remove(&oldest);
        }
    }

    /// Raises an alarm if the client has spoilt enough files, and there is none about it.
    fn judge(&mut self, client: C, rule: &Rule, now: Instant) -> Option<Alarm<C>> {
        let watched = self.clients.get_mut(&client)?;
        let is_enough = watched.client.spoilt(now, rule.within) >= rule.files as usize;
        if !is_enough || watched.alarm.is_some() {
            return None;
        }
        self.raised += 1;
        watched.alarm = Some((self.raised, now));
        let (count, suffix) = (watched.client.count, watched.client.suffix.clone());
        Some(Alarm { number: self.raised, client, since: now, count, suffix })
    }
}

#[cfg(test)]
mod tests;
