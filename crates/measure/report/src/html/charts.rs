//! The charts. Their figures stand in the table above them.

use std::fmt::Write as _;

use super::super::{Chart, Report, Run};
use super::svg::{shape, svg};
use super::text::Text;

/// The charts of a result: of Anabranch's, and of others where none of Anabranch was measured. The other results stand in the
/// table.
pub(super) fn of_run(report: &Report, place: usize, run: &Run) -> String {
    let is_shown = run.is_of_anabranch() || !report.runs.iter().any(Run::is_of_anabranch);
    if run.charts.is_empty() || !is_shown {
        return String::new();
    }
    let mut text = format!(
        "<p class=\"quiet\"><small>{}: marks are medians, the lines through them 95 % intervals.</small></p><div class=\"charts\">\n",
        Text(&run.label)
    );
    for (n, chart) in run.charts.iter().enumerate() {
        text.push_str(&of(chart, &format!("{place}-{n}")));
    }
    text.push_str("</div>\n");
    text
}

fn of(chart: &Chart, id: &str) -> String {
    let mut text = format!(
        "<figure class=\"card\"><figcaption>{}<small>{}</small></figcaption>{}<ul class=\"legend\">",
        Text(&chart.title),
        Text(&chart.about),
        svg(chart, id)
    );
    for (n, series) in chart.series.iter().enumerate() {
        let _ = write!(
            text,
            "<li class=\"s{n}\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path class=\"mark\" d=\"{}\"/></svg><span>{}</span></li>",
            shape(n, 6.0, 6.0),
            Text(&series.name)
        );
    }
    text.push_str("</ul></figure>\n");
    text
}
