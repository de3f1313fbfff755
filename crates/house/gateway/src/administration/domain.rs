//! By which rule users of domains have numbers, and how those do who are asked for users and groups.

use std::time::{Duration, Instant, SystemTime};

use acl::Sid;
use auth::Numbering;
use control::domain::{Domain, DomainRange, Lookups};
use control::identities::TestFinding;
use control::{Refusal, certificate_warning};

use super::identities::{of_server, rule};
use super::{Administration, Serving, refused};
use crate::kerberos::{IdMapping, Tickets};
use crate::lookups::{Subject, Tallied};

/// A question that each directory of a domain can answer: BUILTIN\Administrators. [MS-DTYP] 2.4.2.4.
const ADMINISTRATORS: &str = "S-1-5-32-544";

impl Administration {
    pub(super) fn of_domains(&self) -> Result<Domain, Refusal> {
        let serving = of_server(self.serving.as_ref())?;
        let tickets = serving.accounts.tickets();
        let mut findings: Vec<_> = certificate(serving, SystemTime::now()).into_iter().collect();
        findings.extend(directory(&tickets));
        findings.extend(refused::tickets(serving, SystemTime::now(), |_| true));
        let lookups = serving.accounts.lookups.at(Instant::now());
        findings.extend(lookups.iter().filter_map(of_name_service));
        let keytab = tickets.settings.keytab.as_ref();
        Ok(Domain {
            accepts_tickets: tickets.are_accepted,
            keytab: keytab.map(|file| file.display().to_string()),
            id_mapping: tickets.settings.id_mapping.name().to_owned(),
            rule: rule(&tickets),
            domains: ranges(&tickets),
            lookups: lookups.into_iter().filter_map(told).collect(),
            findings,
        })
    }
}

/// The domains that are known beforehand.
fn ranges(tickets: &Tickets) -> Vec<DomainRange> {
    match tickets.numbers.as_ref().map(|numbers| &numbers.numbering) {
        Some(Numbering::Formula(domains)) => {
            let range = |(domain, slice): &(Sid, share::Slice)| DomainRange {
                sid: domain.to_string(),
                first: Some(slice.first),
                last: Some(slice.last()),
            };
            domains.known().iter().map(range).collect()
        }
        Some(Numbering::Asked { domains, .. }) => {
            let asked = |domain: &Sid| DomainRange { sid: domain.to_string(), first: None, last: None };
            domains.iter().map(asked).collect()
        }
        None => Vec::new(),
    }
}

/// None: nobody asks this source any more.
fn told(tallied: Tallied) -> Option<Lookups> {
    let held = tallied.held?;
    let seconds = |ago: Duration| ago.as_secs();
    let count = |kept: usize| u64::try_from(kept).unwrap_or(u64::MAX);
    Some(Lookups {
        subject: tallied.subject.name().to_owned(),
        source: tallied.subject.source().to_owned(),
        found: tallied.found,
        absent: tallied.absent,
        failed: tallied.failed,
        timed_out: tallied.timed_out,
        refused: tallied.refused,
        stale_used: tallied.stale_used,
        held: count(held.fresh),
        stale: count(held.stale),
        answered_seconds_ago: tallied.answered.map(seconds),
        failed_seconds_ago: tallied.failure.as_ref().map(|(ago, _)| seconds(*ago)),
        failure: tallied.failure.map(|(_, why)| why),
    })
}

/// Whether the directory of the domain answers now. May wait for it.
fn directory(tickets: &Tickets) -> Option<TestFinding> {
    let error = tickets.directory()?.entries(&[ADMINISTRATORS.parse().ok()?]).err()?;
    let kept = match tickets.settings.id_mapping {
        IdMapping::Rfc2307 => "what it said before counts for 7 days",
        _ => "what it said before of names in shares counts for 24 hours",
    };
    Some(TestFinding { what: format!("{error}; {kept}"), advice: format!("{}.", error.advice) })
}

/// The name service could not answer, and has not since.
fn of_name_service(tallied: &Tallied) -> Option<TestFinding> {
    let (failed, why) = tallied.failure.as_ref()?;
    let is_over = tallied.answered.is_some_and(|answered| answered < *failed);
    let is_of_directory = matches!(tallied.subject, Subject::DirectoryNumbers | Subject::DirectoryNames);
    if is_over || tallied.held.is_none() || is_of_directory {
        return None;
    }
    Some(TestFinding {
        what: format!(
            "the name service of this machine cannot answer who has which {}: {why}",
            tallied.subject.name()
        ),
        advice: "See nsswitch.conf(5), and whether what it names runs (winbind, SSSD): getent passwd and getent group ask it."
            .to_owned(),
    })
}

/// The certificate of the control address is also that of NFS over TLS and of SMB over QUIC.
fn certificate(serving: &Serving, now: SystemTime) -> Option<TestFinding> {
    let expires = serving.identity.as_ref()?.expires()?;
    let what = certificate_warning(expires.duration_since(now).unwrap_or_default())?;
    Some(TestFinding {
        what: format!("{what}; NFS over TLS and SMB over QUIC have the same one, and clients refuse it then"),
        advice: "Put another one in its place (control-certificate, control-key), and have it read: anabranch reload"
            .to_owned(),
    })
}
