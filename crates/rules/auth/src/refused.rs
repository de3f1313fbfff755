//! Tickets that were refused lately, for those who ask why nobody can log on.

use std::collections::VecDeque;
use std::mem::Discriminant;
use std::time::SystemTime;

use crate::failure::Reason;

/// The most refusals that are remembered.
const REMEMBERED_MAX: usize = 32;
/// The most bytes of a name that are remembered: whoever shows a ticket chooses the name of the service.
const NAME_BYTES_MAX: usize = 256;

/// A ticket that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTicket {
    /// The user: `alice@EXAMPLE.ORG`; None: the ticket could not be opened.
    pub client: Option<String>,
    /// The service that the ticket is for.
    pub service: Option<String>,
    /// Why it was refused.
    pub reason: Reason,
    /// When the last such ticket came.
    pub at: SystemTime,
}

/// The last refused tickets, those for the same reason of the same user for the same service once.
#[derive(Debug, Default)]
pub struct RefusedTickets(VecDeque<RefusedTicket>);

impl RefusedTickets {
    /// Remembers a refusal.
    pub fn note(&mut self, refused: RefusedTicket) {
        let RefusedTicket { client, service, reason, at } = refused;
        let refused = RefusedTicket { client: client.map(cut), service: service.map(cut), reason, at };
        let is_same = |before: &RefusedTicket| {
            kind(&before.reason) == kind(&refused.reason)
                && before.client == refused.client
                && before.service == refused.service
        };
        self.0.retain(|before| !is_same(before));
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(refused);
    }

    /// All of them, the last one first.
    #[must_use]
    pub fn last_first(&self) -> Vec<RefusedTicket> {
        self.0.iter().rev().cloned().collect()
    }
}

/// Tells reasons apart, whatever they say of times and versions.
fn kind(reason: &Reason) -> (Discriminant<Reason>, &'static str) {
    let of_ticket = match reason {
        Reason::Ticket(reason) => reason.label(),
        _ => "",
    };
    (std::mem::discriminant(reason), of_ticket)
}

fn cut(mut name: String) -> String {
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(service: &str, reason: Reason, seconds: u64) -> RefusedTicket {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        RefusedTicket { client: None, service: Some(service.to_owned()), reason, at }
    }

    #[test]
    fn the_last_refusals_are_remembered_each_kind_once() {
        let mut tickets = RefusedTickets::default();
        for n in 0..40 {
            tickets.note(refused(&format!("cifs/{n}"), Reason::NoSid, n));
        }
        tickets.note(refused("cifs/39", Reason::OtherDomain, 40));
        tickets.note(refused("cifs/38", Reason::NoSid, 41));
        let last = tickets.last_first();
        assert_eq!(last.len(), REMEMBERED_MAX);
        assert_eq!(last[0], refused("cifs/38", Reason::NoSid, 41));
        assert_eq!(last[1], refused("cifs/39", Reason::OtherDomain, 40));
        assert_eq!(last[2], refused("cifs/39", Reason::NoSid, 39));
        assert_eq!(last[3], refused("cifs/37", Reason::NoSid, 37));
        for (reason, at) in
            [(krb5::Reason::WrongKey, 50), (krb5::Reason::Replayed, 51), (krb5::Reason::WrongKey, 52)]
        {
            tickets.note(refused("cifs/1", Reason::Ticket(reason), at));
        }
        let times = tickets.last_first().iter().take(3).map(|ticket| ticket.at).collect::<Vec<_>>();
        assert_eq!(times, [52, 51, 41].map(|at| refused("", Reason::NoSid, at).at));
    }

    #[test]
    fn names_are_cut() {
        let mut tickets = RefusedTickets::default();
        tickets.note(refused(&"\u{e4}".repeat(200), Reason::NoSid, 0));
        assert_eq!(tickets.last_first()[0].service.as_ref().unwrap().len(), 256);
        tickets.note(refused(&format!("a{}", "\u{e4}".repeat(200)), Reason::NoSid, 0));
        assert_eq!(tickets.last_first()[0].service.as_ref().unwrap().len(), 255);
    }
}
