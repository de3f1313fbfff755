//! What the server that runs says of the numbers of users of domains, and of those who are asked for users.

use std::fmt::Write;

use control::domain::{Domain, DomainRange, Lookups};

use crate::administrator;
use crate::asking::Asking;
use crate::print::{duration, harmless};
use crate::problem::Result;
use crate::table::render;

/// None: no server runs.
///
/// # Errors
/// It cannot be asked.
pub(super) fn ask(asking: &Asking) -> Result<Option<Domain>> {
    let Some(access) = administrator::server(asking)? else { return Ok(None) };
    Ok(Some(control_client::call(&access, "GET", "/v1/domain", None::<&()>)?))
}

/// By which rule users of domains have numbers.
pub(super) fn numbers(server: Option<&Domain>, problem: Option<&str>) -> String {
    let Some(domain) = server else {
        let problem = problem.unwrap_or("no server runs with this state directory");
        return format!("numbers    not known: {}\n", harmless(problem));
    };
    let mut text = format!("numbers    {}\n", harmless(&domain.rule));
    for DomainRange { sid, first, last } in &domain.domains {
        let range = match (first, last) {
            (Some(first), Some(last)) => format!(": {first} to {last}"),
            _ => String::new(),
        };
        let _ = writeln!(text, "domain     {}{range}", harmless(sid));
    }
    text
}

/// Those who are asked, and what is the matter.
pub(super) fn text(domain: &Domain) -> String {
    let mut text = String::new();
    if !domain.lookups.is_empty() {
        let rows: Vec<_> = domain.lookups.iter().map(row).collect();
        let titles = [
            "ASKED FOR",
            "OF",
            "LAST ANSWER",
            "FOUND",
            "ABSENT",
            "FAILED",
            "TIMED OUT",
            "KEPT",
            "OLD",
            "OLD USED",
        ];
        let _ = write!(text, "\n{}", render(titles, &rows));
    }
    for asked in &domain.lookups {
        if let (Some(ago), Some(why)) = (asked.failed_seconds_ago, &asked.failure) {
            let (subject, source, ago) = (&asked.subject, source(asked), duration(ago));
            let _ = writeln!(
                text,
                "{} of the {source} failed last {ago} ago: {}",
                harmless(subject),
                harmless(why)
            );
        }
    }
    for finding in &domain.findings {
        let _ = write!(text, "\n* {}\n  to do: {}\n", harmless(&finding.what), harmless(&finding.advice));
    }
    text
}

fn row(asked: &Lookups) -> [String; 10] {
    let answered =
        asked.answered_seconds_ago.map_or_else(|| "never".to_owned(), |ago| duration(ago) + " ago");
    let Lookups { found, absent, failed, timed_out, held, stale, stale_used, .. } = asked;
    let [found, absent, failed, timed_out, held, stale, stale_used] =
        [found, absent, failed, timed_out, held, stale, stale_used].map(u64::to_string);
    let (subject, source) = (harmless(&asked.subject), source(asked));
    [subject, source, answered, found, absent, failed, timed_out, held, stale, stale_used]
}

fn source(asked: &Lookups) -> String {
    harmless(&asked.source).replace('-', " ")
}

#[cfg(test)]
mod tests {
    use control::identities::TestFinding;

    use super::*;

    #[test]
    fn people_are_told_the_rule_who_is_asked_and_what_failed() {
        let lookups = Lookups {
            subject: "groups".to_owned(),
            source: "name-service".to_owned(),
            found: 7,
            stale_used: 4,
            failed_seconds_ago: Some(61),
            failure: Some("out\u{1b}".to_owned()),
            ..Lookups::default()
        };
        let range = |first| DomainRange { sid: "S-1-5-21-1-2-3".to_owned(), first, last: first };
        let domain = Domain {
            rule: "by some rule.".to_owned(),
            domains: vec![range(Some(9)), range(None)],
            lookups: vec![lookups],
            findings: vec![TestFinding { what: "it is".to_owned(), advice: "do".to_owned() }],
            ..Domain::default()
        };
        let rule = numbers(Some(&domain), None);
        assert_eq!(
            rule,
            "numbers    by some rule.\ndomain     S-1-5-21-1-2-3: 9 to 9\ndomain     S-1-5-21-1-2-3\n"
        );
        let text = text(&domain);
        for part in [
            "groups     name service  never        7 ",
            "groups of the name service failed last 1 min 1 s ago: out\\u001b\n",
            "\n* it is\n  to do: do\n",
        ] {
            assert!(text.contains(part), "{part:?}: {text}");
        }
        assert!(numbers(None, None).contains("no server runs"));
        assert!(numbers(None, Some("no\u{1b}")).contains("not known: no\\u001b"));
    }
}
