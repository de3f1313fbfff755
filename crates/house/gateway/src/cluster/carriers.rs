//! Which interfaces of this gateway have no carrier, so that clients do not reach it there: a cable, or a port of a switch. It is believed
//! when it has been so for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a carrier is away until the interface counts as cut off: longer than a link takes that is set up anew.
const LOST: Duration = Duration::from_secs(1);
/// How long a carrier is back until the interface counts as whole: vservers do not follow a link that comes and goes.
const BACK: Duration = Duration::from_secs(3);
/// How long an interface counts as cut off until vservers leave: if a switch fails, all gateways say within this time that they are cut
/// off, and nothing is moved.
const AGREED: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    interfaces: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    is_cut_off: bool,
    since: Instant,
    /// Since when that is wrong.
    differs: Option<Instant>,
}

impl Carriers {
    /// Notes which interfaces there are now, and whether each has a carrier. Those of `wanted` that are cut off, or are not there.
    pub(super) fn look(
        &mut self,
        wanted: &BTreeSet<String>,
        there: &BTreeMap<String, bool>,
        now: Instant,
    ) -> Vec<String> {
        self.interfaces.retain(|interface, _| wanted.contains(interface));
        for interface in wanted {
            let is_cut_off = there.get(interface) != Some(&true);
            match self.interfaces.get_mut(interface) {
                Some(seen) => seen.note(is_cut_off, now),
                None => {
                    let seen = Seen { is_cut_off, since: now, differs: None };
                    self.interfaces.insert(interface.clone(), seen);
                }
            }
        }
        let cut_off = self.interfaces.iter().filter(|(_, seen)| seen.is_cut_off);
        cut_off.map(|(interface, _)| interface.clone()).collect()
    }

    /// Whether an interface is cut off at this moment, and has been for long enough that vservers leave.
    pub(super) fn is_gone(&self, interface: &str, now: Instant) -> bool {
        self.interfaces.get(interface).is_some_and(|seen| {
            let is_agreed = now.saturating_duration_since(seen.since) >= AGREED;
            seen.is_cut_off && seen.differs.is_none() && is_agreed
        })
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
            *self = Self { is_cut_off, since: now, differs: None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(interfaces: &[(&str, bool)]) -> BTreeMap<String, bool> {
        interfaces.iter().map(|(name, has_carrier)| ((*name).to_owned(), *has_carrier)).collect()
    }

    /// What a look at `eth0` says at this time: whether it is cut off, and whether vservers leave.
    fn look(carriers: &mut Carriers, now: Instant, has_carrier: bool) -> (bool, bool) {
        let wanted = BTreeSet::from(["eth0".to_owned()]);
        let cut_off = carriers.look(&wanted, &there(&[("eth0", has_carrier), ("eth1", false)]), now);
        (!cut_off.is_empty(), carriers.is_gone("eth0", now))
    }

    #[test]
    fn a_carrier_is_lost_and_back_when_it_has_been_so_for_a_while() {
        let (mut carriers, start) = (Carriers::default(), Instant::now());
        let mut at = |ms, has_carrier| look(&mut carriers, start + Duration::from_millis(ms), has_carrier);
        let (whole, cut_off, gone) = ((false, false), (true, false), (true, true));
        assert_eq!(at(0, true), whole);
        assert_eq!([at(100, false), at(1000, false)], [whole; 2], "it is not believed at once");
        assert_eq!([at(1050, true), at(1100, false), at(2000, false)], [whole; 3], "it has come and gone");
        assert_eq!([at(2100, false), at(3000, false), at(3100, false)], [cut_off, cut_off, gone]);
        assert_eq!([at(3200, true), at(5000, true)], [cut_off; 2], "at this moment it has one");
        assert_eq!([at(5100, false), at(5200, true), at(8100, true)], [gone, cut_off, cut_off]);
        assert_eq!(at(8200, true), whole);
    }

    #[test]
    fn what_is_seen_first_is_believed_and_what_is_not_there_is_cut_off() {
        let (mut carriers, now) = (Carriers::default(), Instant::now());
        let wanted = BTreeSet::from(["eth0".to_owned(), "eth9".to_owned()]);
        assert_eq!(carriers.look(&wanted, &there(&[("eth0", false)]), now), ["eth0", "eth9"]);
        assert_eq!(carriers.look(&wanted, &there(&[("eth0", true)]), now + BACK), ["eth0", "eth9"]);
        assert_eq!(carriers.look(&wanted, &there(&[("eth0", true)]), now + 2 * BACK), ["eth9"]);
        assert!(carriers.look(&BTreeSet::new(), &there(&[]), now + 2 * BACK).is_empty());
    }
}
