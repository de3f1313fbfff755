//! Anabranch beside its peers: a table of ratios, for people.

use std::fmt::Write as _;

use compare::{Measured, ratios};
use load::result::{Outcome, ResultFile};

use crate::bench::show;
use crate::table;

/// Each protocol: Anabranch beside the peer, or alone.
pub(super) fn render(measured: &[Measured]) -> String {
    let each = ratios::pairs(measured)
        .into_iter()
        .map(|(own, peer)| peer.map_or_else(|| show::render(own), |peer| beside(own, peer)));
    each.collect::<Vec<_>>().join("\n")
}

fn beside(own: &ResultFile, peer: &ResultFile) -> String {
    let mut text = format!(
        "{}: {} beside {}, {}, in turns\n{}\n\n",
        own.family,
        ratios::name(own),
        ratios::name(peer),
        own.environment.negotiated.dialect,
        ratios::method(own),
    );
    let (heads, rows) = ratios::table(own, peer);
    text.push_str(&table::render(heads.each_ref().map(String::as_str), &rows));
    for said in ratios::reservations(own, peer) {
        let _ = writeln!(text, "{said}");
    }
    if [own, peer].iter().any(|result| result.outcome == Outcome::Stopped) {
        text.push_str("stopped: these are the measurements until then\n");
    }
    text
}
