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

/// When something happens, and the rule that holds then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The time.
    pub at: Instant,
    /// The rule.
    pub rule: Rule,
}

/// An alarm about a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm<C, W> {
    /// Its number, unique in this detector.
    pub number: u64,
    /// The client.
    pub client: C,
    /// Who used it when the last file came to count before the alarm.
    pub who: Option<W>,
    /// When it was raised.
    pub since: Instant,
    /// What the client has done.
    pub count: Count,
    /// The unusual suffix that files have got.
    pub suffix: Option<Vec<u8>>,
}

/// Counts what clients `C`, used by `W`, do to files `F`.
#[derive(Debug)]
pub struct Detector<C, F, W> {
    clients: HashMap<C, Watched<F, W>>,
    /// How many alarms there were.
    raised: u64,
}

#[derive(Debug)]
struct Watched<F, W> {
    client: Client<F>,
    who: Option<W>,
    alarm: Option<(u64, Instant)>,
}

impl<F, W: Clone> Watched<F, W> {
    /// Notes who used the client, if a file has come to count since so many did. Who does other things, or comes after the alarm, is not
    /// suspected.
    fn used_by(&mut self, who: W, counted: Count) {
        if self.client.count != counted && self.alarm.is_none() {
            self.who = Some(who);
        }
    }

    /// The alarm about this client, if there is one.
    fn told<C>(&self, client: C) -> Option<Alarm<C, W>> {
        let (number, since) = self.alarm?;
        let (count, suffix) = (self.client.count, self.client.suffix.clone());
        Some(Alarm { number, client, who: self.who.clone(), since, count, suffix })
    }
}

impl<C, F, W> Default for Detector<C, F, W> {
    fn default() -> Self {
        Self { clients: HashMap::new(), raised: 0 }
    }
}

/// What was there before a client wrote what looks random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before<F> {
    /// Nothing: the file is new, in this directory.
    Nothing(F),
    /// Something that looks so.
    Held(Look),
}

/// What is to be known of the first write of a client to a file within the time of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// What the file held before the client emptied it, if it did and that is known.
    pub emptied: Option<Look>,
}

impl<C: Copy + Eq + Hash, F: Copy + Eq + Hash, W: Clone> Detector<C, F, W> {
    /// A client writes to a file. None unless what it writes is to be looked at ([`Detector::noise`]).
    pub fn writes(&mut self, client: C, file: F, now: Now) -> Option<First> {
        let watched = self.client(client, now);
        let note = watched.note(file, now.at, now.rule.within);
        if !matches!(note, None | Some(Note::Emptied(_))) {
            return None;
        }
        watched.set_note(file, Note::Examined, now.at);
        let emptied = match note {
            Some(Note::Emptied(look)) => Some(look),
            _ => None,
        };
        Some(First { emptied })
    }

    /// What a client writes first to a file is noise. Returns an alarm if this raises one.
    pub fn noise(
        &mut self,
        (client, who): (C, W),
        file: F,
        before: Before<F>,
        now: Now,
    ) -> Option<Alarm<C, W>> {
        let watched = self.watched(client, now.at);
        let counted = watched.client.count;
        match before {
            _ if watched.client.note(file, now.at, now.rule.within) == Some(Note::Spoilt) => {}
            Before::Nothing(dir) => {
                watched.client.makes(file, dir, now.at);
                watched.who.get_or_insert_with(|| who.clone());
            }
            Before::Held(Look::Noise) => {}
            Before::Held(Look::Plain | Look::Known) => {
                watched.client.set_note(file, Note::Spoilt, now.at);
                watched.client.spoils(Way::Overwritten, now.at);
            }
        }
        watched.used_by(who, counted);
        self.judge(client, now)
    }

    /// A client empties a file that holds this.
    pub fn empties(&mut self, client: C, file: F, held: Look, now: Now) {
        let watched = self.client(client, now);
        if watched.note(file, now.at, now.rule.within).is_none() {
            watched.set_note(file, Note::Emptied(held), now.at);
        }
    }

    /// Whether it matters what the files held that the client removes from this directory ([`Detector::removes`]): whether it has
    /// made files there that look random.
    pub fn heeds_removals(&mut self, client: C, dir: F, now: Now) -> bool {
        let watched = self.clients.get_mut(&client);
        watched.is_some_and(|watched| watched.client.has_made(dir, now.at, now.rule.within))
    }

    /// A client removes a file from this directory that held this. Returns an alarm if this raises one.
    pub fn removes(&mut self, client: C, dir: F, held: Look, now: Now) -> Option<Alarm<C, W>> {
        if held != Look::Noise {
            self.client(client, now).replaces(dir, now.at, now.rule.within);
        }
        self.judge(client, now)
    }

    /// Whether the client has made this file, which looks random: then it matters what a file held in whose place it comes
    /// ([`Detector::renames`]).
    #[must_use]
    pub fn has_made(&self, client: C, file: F, now: Now) -> bool {
        let note =
            self.clients.get(&client).and_then(|watched| watched.client.note(file, now.at, now.rule.within));
        note == Some(Note::Made)
    }

    /// A client renames a file to this directory, perhaps in the place of another that held this. Returns an alarm if this raises one.
    pub fn renames(
        &mut self,
        (client, who): (C, W),
        (file, dir): (F, F),
        names: (&[u8], &[u8]),
        replaced: Option<Look>,
        now: Now,
    ) -> Option<Alarm<C, W>> {
        let watched = self.watched(client, now.at);
        let counted = watched.client.count;
        match (watched.client.note(file, now.at, now.rule.within), replaced) {
            (Some(Note::Made), Some(Look::Plain | Look::Known)) => {
                watched.client.set_note(file, Note::Spoilt, now.at);
                watched.client.replaces(dir, now.at, now.rule.within);
            }
            // What it has just written it may name as it likes.
            (Some(_), _) => {}
            (None, _) => watched.client.renames(file, names, now.at, now.rule.within),
        }
        watched.used_by(who, counted);
        self.judge(client, now)
    }

    /// The alarms that last. What clients have done whose last alarm has ended is forgotten.
    pub fn alarms(&mut self, now: Instant) -> Vec<Alarm<C, W>> {
        self.clients.retain(|_, Watched { client, .. }| {
            let last = client.spoilt_last.unwrap_or(client.last);
            now.saturating_duration_since(last) < QUIET
        });
        let mut alarms: Vec<_> =
            self.clients.iter().filter_map(|(client, watched)| watched.told(*client)).collect();
        alarms.sort_by_key(|alarm| alarm.number);
        alarms
    }

    /// Ends an alarm, and forgets what its client has done. Returns the client.
    pub fn end(&mut self, number: u64) -> Option<C> {
        let has_it = |(_, watched): &(&C, &Watched<F, W>)| watched.alarm.is_some_and(|(of, _)| of == number);
        let client = self.clients.iter().find(has_it).map(|(client, _)| *client)?;
        self.clients.remove(&client);
        Some(client)
    }

    fn client(&mut self, client: C, now: Now) -> &mut Client<F> {
        &mut self.watched(client, now.at).client
    }

    fn watched(&mut self, client: C, now: Instant) -> &mut Watched<F, W> {
        if !self.clients.contains_key(&client) && self.clients.len() >= CLIENTS_MAX {
            self.forget_one();
        }
        let new = || Watched { client: Client::new(now), who: None, alarm: None };
        let watched = self.clients.entry(client).or_insert_with(new);
        watched.client.last = now;
        watched
    }

    /// Forgets the client that has done nothing for longest, rather one without an alarm.
    fn forget_one(&mut self) {
        let age = |(_, watched): &(&C, &Watched<F, W>)| (watched.alarm.is_some(), watched.client.last);
        if let Some(oldest) = self.clients.iter().min_by_key(age).map(|(client, _)| *client) {
            self.clients.remove(&oldest);
        }
    }

    /// Raises an alarm if the client has spoilt enough files, and there is none about it.
    fn judge(&mut self, client: C, now: Now) -> Option<Alarm<C, W>> {
        let watched = self.clients.get_mut(&client)?;
        let is_enough = watched.client.spoilt(now.at, now.rule.within) >= now.rule.files as usize;
        if !is_enough || watched.alarm.is_some() {
            return None;
        }
        self.raised += 1;
        watched.alarm = Some((self.raised, now.at));
        watched.told(client)
    }
}

#[cfg(test)]
mod tests;
