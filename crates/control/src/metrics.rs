//! The accounting of the shares as Prometheus text (exposition format 0.0.4).

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use share::{Api, Cell, GrantCounts, HISTOGRAM_BUCKETS, Protocol, Share, bucket_limit};

type Counter = fn(&Cell) -> &AtomicU64;
type GrantCounter = fn(&GrantCounts) -> &AtomicU64;

/// One cell that has counted something, with its labels.
struct Counted<'a> {
    labels: String,
    cell: &'a Cell,
}

pub(crate) fn render(shares: &[Arc<Share>], up: Duration) -> String {
    let counted: Vec<Counted<'_>> = shares.iter().flat_map(|share| cells(share)).collect();
    let mut text = String::new();
    family(&mut text, "anabranch_build_info", "gauge", "The program's version.");
    line(&mut text, "anabranch_build_info", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), "1");
    family(&mut text, "anabranch_uptime_seconds", "gauge", "Time since the server started.");
    line(&mut text, "anabranch_uptime_seconds", "", &format!("{:.3}", up.as_secs_f64()));
    let counters: [(&str, &str, Counter); 3] = [
        ("anabranch_requests_total", "Requests answered.", |cell| &cell.calls),
        ("anabranch_request_errors_total", "Requests answered with an error.", |cell| &cell.errors),
        ("anabranch_request_bytes_total", "Payload bytes received and sent.", |cell| &cell.bytes),
    ];
    for (name, help, counter) in counters {
        family(&mut text, name, "counter", help);
        for one in &counted {
            line(&mut text, name, &one.labels, &counter(one.cell).load(Ordering::Relaxed).to_string());
        }
    }
    let grants: [(&str, &str, GrantCounter); 3] = [
        ("anabranch_grants_total", "Oplocks and leases given, or enlarged.", |counts| &counts.granted),
        ("anabranch_grant_breaks_total", "Clients told to give one back.", |counts| &counts.broken),
        ("anabranch_grants_revoked_total", "Grants taken from clients that did not answer.", |counts| {
            &counts.revoked
        }),
    ];
    for (name, help, counter) in grants {
        family(&mut text, name, "counter", help);
        for share in shares {
            let labels = format!("share=\"{}\"", escape(share.name()));
            let count = counter(share.grant_counts()).load(Ordering::Relaxed);
            line(&mut text, name, &labels, &count.to_string());
        }
    }
    let name = "anabranch_request_duration_seconds";
    family(&mut text, name, "histogram", "From the arrival of a request to its answer.");
    for one in &counted {
        histogram(&mut text, name, one);
    }
    text
}

fn cells(share: &Share) -> impl Iterator<Item = Counted<'_>> {
    let all = Protocol::ALL.iter().flat_map(|protocol| Api::ALL.iter().map(move |api| (*protocol, *api)));
    all.filter_map(move |(protocol, api)| {
        let cell = share.accounting().cell(api, protocol);
        (cell.calls.load(Ordering::Relaxed) > 0).then(|| Counted {
            labels: format!(
                "share=\"{}\",protocol=\"{}\",api=\"{}\"",
                escape(share.name()),
                protocol.name(),
                api.name()
            ),
            cell,
        })
    })
}

fn histogram(text: &mut String, name: &str, one: &Counted<'_>) {
    let mut sum = 0;
    for (index, bucket) in one.cell.latency.iter().enumerate().take(HISTOGRAM_BUCKETS) {
        sum += bucket.load(Ordering::Relaxed);
        let limit =
            bucket_limit(index).map_or_else(|| "+Inf".to_owned(), |limit| limit.as_secs_f64().to_string());
        line(text, &format!("{name}_bucket"), &format!("{},le=\"{limit}\"", one.labels), &sum.to_string());
    }
    let nanos = Duration::from_nanos(one.cell.nanos.load(Ordering::Relaxed));
    line(text, &format!("{name}_sum"), &one.labels, &nanos.as_secs_f64().to_string());
    // The sum of the buckets, and not `calls`: the two may be read a moment apart.
    line(text, &format!("{name}_count"), &one.labels, &sum.to_string());
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: &str) {
    let _ = if labels.is_empty() {
        writeln!(text, "{name} {value}")
    } else {
        writeln!(text, "{name}{{{labels}}} {value}")
    };
}

/// A label's value: backslash, quote and line feed are escaped.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use share::{Measure, Settings, ShareId};

    use super::*;

    #[test]
    fn what_was_counted_is_shown_and_what_was_not_is_left_out() {
        let store = Arc::new(storage::memory::MemoryStore::new());
        let share = Share::new(ShareId(1), Settings::new("da\"ta"), store);
        share.accounting().end(Measure::begin(Api::Read, Protocol::Smb), 4096, true);
        share.accounting().end(Measure::begin(Api::Read, Protocol::Smb), 0, false);
        let text = render(&[share], Duration::from_millis(1500));
        let labels = "share=\"da\\\"ta\",protocol=\"smb\",api=\"Read\"";
        for expected in [
            "anabranch_uptime_seconds 1.500\n".to_owned(),
            format!("anabranch_requests_total{{{labels}}} 2\n"),
            format!("anabranch_request_errors_total{{{labels}}} 1\n"),
            format!("anabranch_request_bytes_total{{{labels}}} 4096\n"),
            format!("anabranch_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2\n"),
            format!("anabranch_request_duration_seconds_count{{{labels}}} 2\n"),
            "le=\"0.000001\"".to_owned(),
            "anabranch_grants_revoked_total{share=\"da\\\"ta\"} 0\n".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected} is not in\n{text}");
        }
        assert!(!text.contains("Write") && !text.contains("nfs3"));
    }
}
