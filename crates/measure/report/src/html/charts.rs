//! The charts, each with its figures as a table.

use std::fmt::Write as _;

use super::super::units::figure;
use super::super::{Chart, Report, Run};
use super::svg::{shape, svg};
use super::text::Text;
use super::{heading, number, part};

pub(super) fn section(report: &Report) -> String {
    let mut text = heading("charts");
    text.push_str("<p class=\"quiet\">Marks are medians, the lines through them 95 % intervals. Point at a mark to read it; the figures stand below each chart.</p>\n");
    let mut id = 0;
    for run in report.runs.iter().filter(|run| !run.charts.is_empty()) {
        let mut inside = String::from("<div class=\"charts\">\n");
        for chart in &run.charts {
            inside.push_str(&of(chart, id));
            id += 1;
        }
        inside.push_str("</div>\n");
        let open = run.is_of_anabranch() || !report.runs.iter().any(Run::is_of_anabranch);
        text.push_str(&part(report, run, &number(run.charts.len(), "chart"), open, &inside));
    }
    if id == 0 {
        text.push_str("<p>No result has rows that vary one thing.</p>\n");
    }
    text
}

fn of(chart: &Chart, id: usize) -> String {
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
    text.push_str("</ul>");
    text.push_str(&table(chart));
    text.push_str("</figure>\n");
    text
}

fn table(chart: &Chart) -> String {
    let mut text = format!(
        "<details><summary>Figures</summary><div class=\"wide\"><table><thead><tr><th scope=\"col\">{}</th>",
        Text(chart.x)
    );
    chart.series.iter().for_each(|series| {
        let _ = write!(text, "<th scope=\"col\" class=\"n\">{}</th>", Text(&series.name));
    });
    text.push_str("</tr></thead><tbody>");
    for (n, tick) in chart.ticks.iter().enumerate() {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", Text(tick));
        for series in &chart.series {
            let point = series.points.get(n).copied().flatten();
            let value = point.map_or_else(|| "-".to_owned(), |point| figure(chart.y, point.value));
            let _ = write!(text, "<td class=\"n\">{}</td>", Text(&value));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div></details>");
    text
}
