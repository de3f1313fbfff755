//! Who is asked for users and groups, and the contexts of NFS clients with tickets.

use share::bucket_limit;

use super::Text;
use crate::counters::{ContextCounts, LookupCounts};

pub(super) fn write_lookups(text: &mut Text, lookups: &[LookupCounts]) {
    let labels = |of: &LookupCounts| format!("subject=\"{}\",source=\"{}\"", of.subject, of.source);
    let help = "Questions about users and groups, by what the source answered.";
    text.family("anabranch_lookups_total", "counter", help);
    for of in lookups {
        for (outcome, count) in [("found", of.found), ("absent", of.absent), ("failed", of.failed)] {
            text.line("", &format!("{},outcome=\"{outcome}\"", labels(of)), count);
        }
    }
    let limit = |n| bucket_limit(n).map(|limit| limit.as_secs_f64().to_string());
    text.family(
        "anabranch_lookup_duration_seconds",
        "histogram",
        "Time that the source took for a question.",
    );
    for of in lookups {
        text.histogram(&labels(of), &of.durations, limit, of.time.as_secs_f64());
    }
    let help = "How often somebody got no answer of the source in time.";
    text.family("anabranch_lookups_unanswered_total", "counter", help);
    for of in lookups {
        for (reason, count) in [("timeout", of.timed_out), ("overload", of.refused)] {
            text.line("", &format!("{},reason=\"{reason}\"", labels(of)), count);
        }
    }
    let help = "How often somebody got an old answer, because no other came.";
    text.family("anabranch_lookups_stale_total", "counter", help);
    for of in lookups {
        text.line("", &labels(of), of.stale_used);
    }
    text.family("anabranch_lookup_answers", "gauge", "Answers that are kept.");
    for of in lookups {
        for (state, count) in [("fresh", of.fresh), ("stale", of.stale)] {
            text.line("", &format!("{},state=\"{state}\"", labels(of)), count);
        }
    }
}

pub(super) fn write_contexts(text: &mut Text, contexts: &ContextCounts) {
    let ContextCounts { present, max, begun, refused, expired, displaced, calls } = contexts;
    text.family("anabranch_nfs_contexts", "gauge", "Contexts of RPCSEC_GSS that are kept.");
    text.line("", "", present);
    text.family("anabranch_nfs_contexts_limit", "gauge", "Contexts that can be kept.");
    text.line("", "", max);
    let help = "Tickets with which NFS clients wanted to begin a context.";
    text.family("anabranch_nfs_contexts_total", "counter", help);
    for (result, count) in [("success", begun), ("failure", refused)] {
        text.line("", &format!("result=\"{result}\""), count);
    }
    let help = "Contexts that ended before their clients ended them.";
    text.family("anabranch_nfs_contexts_dropped_total", "counter", help);
    for (reason, count) in [("expired", expired), ("limit", displaced)] {
        text.line("", &format!("reason=\"{reason}\""), count);
    }
    text.family("anabranch_nfs_context_calls_total", "counter", "NFS calls with a context, by their flavor.");
    for (flavor, count) in ["krb5", "krb5i", "krb5p"].into_iter().zip(calls) {
        text.line("", &format!("flavor=\"{flavor}\""), count);
    }
}
