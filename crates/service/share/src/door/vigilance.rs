//! The ransomware alarm of a share ([`crate::vigilance`]).

use ransomware::Rule;

use crate::{RansomwareAlarm, Share};

impl Share {
    /// When an alarm is raised. None: never.
    #[must_use]
    pub fn ransomware_rule(&self) -> Option<Rule> {
        self.vigilance.rule()
    }

    /// Sets when an alarm is raised. None: never; then alarms end.
    pub fn set_ransomware_rule(&self, rule: Option<Rule>) {
        self.vigilance.set_rule(rule);
        self.slows_suspects();
    }

    /// The alarms that last. An alarm ends an hour after the last sign, or by [`Share::end_ransomware_alarm`].
    #[must_use]
    pub fn ransomware_alarms(&self) -> Vec<RansomwareAlarm> {
        self.vigilance.alarms()
    }

    /// The alarms that were raised since this was last asked, for whoever acts on them. Clients whose alarms have ended are no
    /// longer slowed afterwards.
    #[must_use]
    pub fn take_ransomware_alarms(&self) -> Vec<RansomwareAlarm> {
        if self.vigilance.is_on() {
            self.slows_suspects();
        }
        self.vigilance.take_untold()
    }

    /// Ends an alarm: its client is no longer slowed, and what it has done is forgotten. Returns whether there was such an
    /// alarm.
    pub fn end_ransomware_alarm(&self, number: u64) -> bool {
        let was_there = self.vigilance.end(number);
        self.slows_suspects();
        was_there
    }
}
