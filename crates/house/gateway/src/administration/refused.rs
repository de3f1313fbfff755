//! Tickets that were refused lately, with what to do.

use std::time::{Duration, SystemTime};

use auth::{Reason, RefusedTicket};
use control::identities::TestFinding;
use state::copies;

use super::Serving;

/// For how long a refusal is told.
const TOLD: Duration = Duration::from_secs(60 * 60);
/// The most that are told.
const TOLD_MAX: usize = 5;

/// The tickets that were refused lately, and that `is_asked_for` selects.
pub(super) fn tickets(
    serving: &Serving,
    now: SystemTime,
    is_asked_for: impl Fn(&RefusedTicket) -> bool,
) -> Vec<TestFinding> {
    let of = |protocol: &'static str, refused: Vec<RefusedTicket>| {
        refused.into_iter().map(move |refused| (protocol, refused))
    };
    let all = of("SMB", serving.smb.refused_tickets()).chain(of("NFS", serving.nfs.refused_tickets()));
    let mut lately: Vec<_> = all
        .filter_map(|(protocol, refused)| {
            let ago = now.duration_since(refused.at).unwrap_or_default();
            (ago < TOLD && is_asked_for(&refused)).then_some((ago, protocol, refused))
        })
        .collect();
    lately.sort_by_key(|(ago, ..)| *ago);
    lately.iter().take(TOLD_MAX).map(|(ago, protocol, refused)| finding(*ago, protocol, refused)).collect()
}

/// Whether a reason is about the ticket itself, and not about whom it names.
pub(super) fn is_of_ticket(reason: Reason) -> bool {
    matches!(reason, Reason::Ticket(_) | Reason::TicketEnded { .. })
}

fn finding(ago: Duration, protocol: &str, refused: &RefusedTicket) -> TestFinding {
    let text = refused.reason.to_string();
    let text = text.strip_prefix("the ticket is refused: ").unwrap_or(&text);
    let (why, advice) = text.split_once(": ").unwrap_or((text, "the log has the address of the client"));
    let of = refused.client.as_deref().map(|client| format!(" of {client}")).unwrap_or_default();
    let to = refused.service.as_deref().map(|service| format!(" for {service}")).unwrap_or_default();
    let when = copies::told(Duration::from_secs(ago.as_secs()));
    TestFinding {
        what: format!("a ticket{of}{to} was refused over {protocol} {when} ago: {why}"),
        advice: advice.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whose_ticket_which_service_why_and_what_to_do() {
        let refused = |reason, client: Option<&str>| {
            let (client, service) = (client.map(str::to_owned), Some("cifs/nas@AD.TEST".to_owned()));
            let refused = RefusedTicket { client, service, reason, at: SystemTime::UNIX_EPOCH };
            finding(Duration::from_millis(61_900), "SMB", &refused)
        };
        let told = refused(Reason::Ticket(krb5::Reason::WrongKey), None);
        let what = "a ticket for cifs/nas@AD.TEST was refused over SMB 1 min 1 s ago: ";
        assert!(told.what.starts_with(what) && told.what.len() > what.len(), "{told:?}");
        assert!(told.advice.contains("export the keytab again"), "{told:?}");
        let told = refused(Reason::UnknownPrincipal, Some("bob@LAB.TEST"));
        assert!(told.what.starts_with("a ticket of bob@LAB.TEST for cifs/nas@AD.TEST was"), "{told:?}");
        assert!(told.advice.contains("anabranch user add"), "{told:?}");
    }
}
