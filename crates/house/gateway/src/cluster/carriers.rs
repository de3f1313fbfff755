//! Which interfaces of this gateway have no carrier, so that clients do not reach it there: a cable, or a port of a switch. It is believed
//! when it has been so for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a carrier is away until the interface counts as cut off: longer than a link takes that is set up anew.
const LOST: Duration = Duration::from_secs(1);
/// How long a carrier is back until the interface counts as whole: vservers do not follow a link that comes and goes.
const BACK: Duration = Duration::from_secs(3);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    interfaces: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    is_cut_off: bool,
    /// Since when that is wrong.
    differs: Option<Instant>,
}

impl Carriers {
    /// Notes which interfaces there are now, and whether each has a carrier. Those of `wanted` that are cut off. One that was never there
    /// is not: whoever needs it says so.
    pub(super) fn look(
        &mut self,
        wanted: &BTreeSet<String>,
        there: &BTreeMap<String, bool>,
        now: Instant,
    ) -> Vec<String> {
        self.interfaces.retain(|interface, _| wanted.contains(interface));
        for interface in wanted {
            let has_carrier = there.get(interface).copied();
            match self.interfaces.get_mut(interface) {
                Some(seen) => seen.note(has_carrier != Some(true), now),
                None => {
                    if let Some(has_carrier) = has_carrier {
                        let seen = Seen { is_cut_off: !has_carrier, differs: None };
                        self.interfaces.insert(interface.clone(), seen);
                    }
                }
            }
        }
        let cut_off = self.interfaces.iter().filter(|(_, seen)| seen.is_cut_off);
        cut_off.map(|(interface, _)| interface.clone()).collect()
    }
}

impl Seen {
    fn note(&mut self, is_cut_off: bool, now: Instant) {
        if is_cut_off == self.is_cut_off {
            self.differs = None;
            return;
        }
        let since = *self.differs.get_or_insert(now);
        let patience = if is_cut_off { LOST } else { BACK };
        if now.saturating_duration_since(since) >= patience {
            *self = Self { is_cut_off, differs: None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(interfaces: &[(&str, bool)]) -> BTreeMap<String, bool> {
        interfaces.iter().map(|(name, has_carrier)| ((*name).to_owned(), *has_carrier)).collect()
    }

    #[test]
    fn a_carrier_is_lost_and_back_when_it_has_been_so_for_a_while() {
        let (mut carriers, start) = (Carriers::default(), Instant::now());
        let wanted = BTreeSet::from(["eth0".to_owned()]);
        let mut look = |ms: u64, has_carrier| {
            let now = start + Duration::from_millis(ms);
            !carriers.look(&wanted, &there(&[("eth0", has_carrier), ("eth1", false)]), now).is_empty()
        };
        assert!(!look(0, true));
        assert!(!look(100, false) && !look(1000, false), "it is not believed at once");
        assert!(!look(1050, true) && !look(1100, false) && !look(2000, false), "it has come and gone");
        assert!(look(2100, false));
        assert!(look(2200, true) && look(4000, true) && look(4100, false) && look(4200, true));
        assert!(look(7100, true) && !look(7200, true));
    }

    #[test]
    fn what_is_seen_first_is_believed_and_what_was_never_there_is_not_missed() {
        let (mut carriers, now) = (Carriers::default(), Instant::now());
        let wanted = BTreeSet::from(["eth0".to_owned(), "eth9".to_owned()]);
        assert_eq!(carriers.look(&wanted, &there(&[("eth0", false)]), now), ["eth0"]);
        assert!(carriers.look(&wanted, &there(&[("eth0", true)]), now + BACK).contains(&"eth0".to_owned()));
        assert!(carriers.look(&wanted, &there(&[("eth0", true)]), now + 2 * BACK).is_empty());
        assert!(carriers.look(&wanted, &there(&[]), now + 3 * BACK).is_empty());
        assert_eq!(carriers.look(&wanted, &there(&[]), now + 3 * BACK + LOST), ["eth0"], "it is gone");
    }
}
