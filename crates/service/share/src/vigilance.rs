//! Which clients replace the contents of files as ransomware does.
//!
//! This part knows no other part of a share, and never asks the store: [`crate::suspicion`] does.

use std::fmt::{Display, Formatter};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use accounting::Client;
use parking_lot::Mutex;
use ransomware::{Before, Count, Detector, First, Look, Now, Rule};
use storage::ObjectId;

use crate::Caller;
use crate::agreement::Opener;
use crate::logged::actor;

/// Who may be behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The name with which the user has logged on. None: the client stated a uid, or it is a guest.
    pub user: Option<String>,
    /// The user's uid.
    pub uid: u32,
    /// The client.
    pub machine: Client,
    /// The address from which the user logged on, where the client has another name.
    pub address: Option<IpAddr>,
}

impl Suspect {
    pub(crate) fn of(caller: &Caller) -> Self {
        let user = actor(caller).user.map(str::to_owned);
        let (uid, machine, address) = (caller.identity.uid(), caller.machine, caller.address);
        Self { user, uid, machine, address }
    }
}

impl Display for Suspect {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.user {
            Some(user) => f.write_str(user)?,
            None => write!(f, "uid {}", self.uid)?,
        }
        match self.address {
            Some(address) => write!(f, " at {address}"),
            None => write!(f, " at {}", self.machine),
        }
    }
}

/// A client replaces the contents of files as ransomware does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RansomwareAlarm {
    /// Its number, unique until the share is closed.
    pub number: u64,
    /// Who may be behind it. None: it is not known any more.
    pub suspect: Option<Suspect>,
    /// How long ago it was raised.
    pub age: Duration,
    /// What the client has done.
    pub count: Count,
    /// The suffix that files of several kinds have got, if it is one that nobody else uses.
    pub suffix: Option<String>,
    /// Whether the client is slowed to one operation a second.
    pub is_slowed: bool,
    /// For how long the snapshot is protected that is to be taken. None: none is.
    pub snapshot_protected_for: Option<Duration>,
}

type Raised = ransomware::Alarm<Opener, Suspect>;

/// What clients have done, and the alarms.
///
/// Locks: one guards the rule, one what clients have done, one the alarms that nobody has been told of. Each is taken alone.
#[derive(Debug)]
pub(crate) struct Vigilance {
    /// Whether there is a rule.
    is_on: AtomicBool,
    rule: Mutex<Option<Rule>>,
    detector: Mutex<Detector<Opener, ObjectId, Suspect>>,
    untold: Mutex<Vec<RansomwareAlarm>>,
}

impl Vigilance {
    pub(crate) fn new(rule: Option<Rule>) -> Self {
        Self {
            is_on: AtomicBool::new(rule.is_some()),
            rule: Mutex::new(rule),
            detector: Mutex::default(),
            untold: Mutex::default(),
        }
    }

    /// Whether clients are watched.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn rule(&self) -> Option<Rule> {
        *self.rule.lock()
    }

    /// Gives the share another rule. Without one, what clients have done is forgotten, and alarms end.
    pub(crate) fn set_rule(&self, rule: Option<Rule>) {
        *self.rule.lock() = rule;
        self.is_on.store(rule.is_some(), Ordering::Relaxed);
        if rule.is_none() {
            *self.detector.lock() = Detector::default();
        }
    }

    /// Now, if clients are watched.
    fn now(&self) -> Option<Now> {
        let rule = self.rule().filter(|_| self.is_on())?;
        Some(Now { at: Instant::now(), rule })
    }

    /// A client writes to a file. None unless what it writes is to be looked at.
    pub(crate) fn writes(&self, client: Opener, file: ObjectId) -> Option<First> {
        let now = self.now()?;
        self.detector.lock().writes(client, file, now)
    }

    /// What a client writes to a file looks random.
    pub(crate) fn noise(
        &self,
        by: (Opener, &Caller),
        file: ObjectId,
        before: Before<ObjectId>,
    ) -> Option<RansomwareAlarm> {
        let now = self.now()?;
        let raised = self.detector.lock().noise((by.0, Suspect::of(by.1)), file, before, now);
        self.raise(raised?, now)
    }

    /// A client empties a file that holds this.
    pub(crate) fn empties(&self, client: Opener, file: ObjectId, held: Look) {
        if let Some(now) = self.now() {
            self.detector.lock().empties(client, file, held, now);
        }
    }

    /// Whether it matters what the files held that the client removes from this directory.
    pub(crate) fn heeds_removals(&self, client: Opener, dir: ObjectId) -> bool {
        self.now().is_some_and(|now| self.detector.lock().heeds_removals(client, dir, now))
    }

    /// A client removes a file from this directory that held this.
    pub(crate) fn removes(&self, client: Opener, dir: ObjectId, held: Look) -> Option<RansomwareAlarm> {
        let now = self.now()?;
        let raised = self.detector.lock().removes(client, dir, held, now);
        self.raise(raised?, now)
    }

    /// Whether the client has made this file, which looks random.
    pub(crate) fn has_made(&self, client: Opener, file: ObjectId) -> bool {
        self.now().is_some_and(|now| self.detector.lock().has_made(client, file, now))
    }

    /// A client renames a file to this directory, perhaps in the place of another that held this.
    pub(crate) fn renames(
        &self,
        by: (Opener, &Caller),
        to: (ObjectId, ObjectId),
        names: (&[u8], &[u8]),
        replaced: Option<Look>,
    ) -> Option<RansomwareAlarm> {
        let now = self.now()?;
        let raised = self.detector.lock().renames((by.0, Suspect::of(by.1)), to, names, replaced, now);
        self.raise(raised?, now)
    }

    fn raise(&self, raised: Raised, now: Now) -> Option<RansomwareAlarm> {
        let alarm = told(raised, now);
        self.untold.lock().push(alarm.clone());
        Some(alarm)
    }

    /// The alarms that last.
    pub(crate) fn alarms(&self) -> Vec<RansomwareAlarm> {
        let Some(now) = self.now() else { return Vec::new() };
        let alarms = self.detector.lock().alarms(now.at);
        alarms.into_iter().map(|raised| told(raised, now)).collect()
    }

    /// The clients about which there are alarms.
    pub(crate) fn clients(&self) -> Vec<Opener> {
        let Some(now) = self.now() else { return Vec::new() };
        self.detector.lock().alarms(now.at).into_iter().map(|raised| raised.client).collect()
    }

    /// The alarms that were raised since this was last asked.
    pub(crate) fn take_untold(&self) -> Vec<RansomwareAlarm> {
        std::mem::take(&mut *self.untold.lock())
    }

    /// Ends an alarm. Returns whether there was one with this number.
    pub(crate) fn end(&self, number: u64) -> bool {
        self.detector.lock().end(number).is_some()
    }
}

fn told(raised: Raised, now: Now) -> RansomwareAlarm {
    RansomwareAlarm {
        number: raised.number,
        suspect: raised.who,
        age: now.at.saturating_duration_since(raised.since),
        count: raised.count,
        suffix: raised.suffix.map(|suffix| String::from_utf8_lossy(&suffix).into_owned()),
        is_slowed: now.rule.slow,
        snapshot_protected_for: now.rule.snapshot_protected_for(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_without_a_rule_watches_nobody_and_forgets() {
        let vigilance = Vigilance::new(Some(Rule::default()));
        let (client, file) = (Opener::named("client"), ObjectId { fs: 1, number: 2, snapshot: 0 });
        assert!(vigilance.is_on() && vigilance.writes(client, file).is_some());
        vigilance.set_rule(None);
        assert!(!vigilance.is_on() && vigilance.writes(client, file).is_none());
        vigilance.set_rule(Some(Rule::default()));
        assert!(vigilance.writes(client, file).is_some(), "it was forgotten");
        assert_eq!((vigilance.alarms(), vigilance.take_untold()), (Vec::new(), Vec::new()));
    }
}
