//! Charts as inline SVG: lines over an axis, or bars for what has no order.

use std::fmt::Write as _;

use super::super::chart::{Chart, Point, Series};
use super::super::claim::Figure;
use super::scale::{Scale, mark};
use super::text::Text;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 250.0;
/// Room for what stands beside the lines.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const BAR: f64 = 15.0;
/// Room for the names beside the bars.
const NAMES: f64 = 108.0;

/// A chart. `id` is one of its own in the page.
pub(super) fn svg(chart: &Chart, id: &str) -> String {
    let (height, body) = if chart.unordered { bars(chart) } else { (HEIGHT, lines(chart)) };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"c{id}t c{id}d\"><title id=\"c{id}t\">{}</title><desc id=\"c{id}d\">{}; the figures stand in the table.</desc>{body}</svg>",
        Text(&chart.title),
        Text(&chart.about),
    )
}

/// The unit of an axis, and what figures are divided by.
fn unit(of: Figure, largest: f64) -> (&'static str, f64) {
    match of {
        Figure::Rate => ("operations a second", 1.0),
        Figure::Throughput => ("MiB/s", 1024.0 * 1024.0),
        Figure::Latency if largest >= 10_000.0 => ("ms", 1000.0),
        Figure::Latency => ("us", 1.0),
    }
}

fn points(chart: &Chart) -> impl Iterator<Item = Point> + Clone {
    chart.series.iter().flat_map(|series| series.points.iter().flatten().copied())
}

/// All figures of a chart, with the ends of their intervals.
fn figures(chart: &Chart) -> impl Iterator<Item = f64> + Clone {
    points(chart).flat_map(|p| std::iter::once(p.value).chain(p.interval.into_iter().flatten()))
}

fn lines(chart: &Chart) -> String {
    let (unit, by) = unit(chart.y, figures(chart).fold(0.0, f64::max));
    let scale = Scale::of(figures(chart).map(move |f| f / by));
    let y = |figure: f64| HEIGHT - BOTTOM - scale.place(figure / by) * (HEIGHT - TOP - BOTTOM);
    let mut text = format!("<text class=\"unit\" x=\"2\" y=\"12\">{unit}{}</text>", scale.in_words());
    for tick in scale.ticks() {
        let at = y(tick * by);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"tick\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            mark(tick)
        );
    }
    let x = |n: usize| across(n, chart.ticks.len());
    for (n, tick) in chart.ticks.iter().enumerate() {
        let _ = write!(
            text,
            "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            x(n),
            HEIGHT - BOTTOM + 17.0,
            Text(tick)
        );
    }
    let _ = write!(
        text,
        "<text class=\"unit\" text-anchor=\"middle\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 6.0,
        Text(chart.x)
    );
    for (n, series) in chart.series.iter().enumerate() {
        let aside = beside(n, chart.series.len());
        text.push_str(&line(series, n, &|at| x(at) + aside, &y));
    }
    text
}

/// How far the marks of a series are moved, so that intervals do not hide each other.
#[expect(clippy::cast_precision_loss, reason = "a handful of series")]
fn beside(n: usize, count: usize) -> f64 {
    (n as f64 - (count as f64 - 1.0) / 2.0) * 3.0
}

/// The place of a tick on the horizontal axis.
#[expect(clippy::cast_precision_loss, reason = "a handful of ticks")]
fn across(n: usize, count: usize) -> f64 {
    let room = WIDTH - LEFT - RIGHT;
    LEFT + room * (n as f64 + 0.5) / count.max(1) as f64
}

fn line(series: &Series, n: usize, x: &impl Fn(usize) -> f64, y: &impl Fn(f64) -> f64) -> String {
    let there = || series.points.iter().enumerate().filter_map(|(at, point)| Some((at, (*point)?)));
    let path: Vec<String> = there().map(|(at, p)| format!("{:.1},{:.1}", x(at), y(p.value))).collect();
    let mut text = format!("<g class=\"s{n}\"><polyline class=\"line\" points=\"{}\"/>", path.join(" "));
    for (at, point) in there() {
        let (px, py) = (x(at), y(point.value));
        if let Some([low, high]) = point.interval {
            let (low, high) = (y(low), y(high));
            let _ = write!(text, "<path class=\"span\" d=\"M{px:.0} {low:.1}V{high:.1}\"/>");
        }
        let _ = write!(text, "<path class=\"mark\" d=\"{}\"/>", shape(n, px, py));
    }
    text.push_str("</g>");
    text
}

/// The mark of a series: told apart by its shape as well as by its colour.
pub(super) fn shape(series: usize, x: f64, y: f64) -> String {
    match series % 4 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.6 8h-9.2z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of bars")]
fn bars(chart: &Chart) -> (f64, String) {
    let (unit, by) = unit(chart.y, figures(chart).fold(0.0, f64::max));
    let scale = Scale::from_nought(figures(chart).map(|f| f / by));
    let group = BAR * chart.series.len() as f64 + 10.0;
    let bottom = TOP + group * chart.ticks.len() as f64;
    let x = |figure: f64| NAMES + scale.place(figure / by) * (WIDTH - NAMES - RIGHT - 8.0);
    let mut text = format!("<text class=\"unit\" x=\"{NAMES}\" y=\"12\">{unit}</text>");
    for tick in scale.ticks() {
        let at = x(tick * by);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom:.0}\"/><text class=\"tick\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.0}\">{}</text>",
            bottom + 15.0,
            mark(tick)
        );
    }
    for (at, tick) in chart.ticks.iter().enumerate() {
        let top = TOP + group * at as f64 + 5.0;
        let _ = write!(
            text,
            "<text class=\"tick\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            NAMES - 8.0,
            top + (group - 10.0) / 2.0 + 4.0,
            Text(tick)
        );
        for (n, series) in chart.series.iter().enumerate() {
            let Some(point) = series.points.get(at).copied().flatten() else { continue };
            let (y, end) = (top + BAR * n as f64, x(point.value));
            let _ = write!(
                text,
                "<g class=\"s{n}\"><rect class=\"bar\" x=\"{NAMES}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                y + 1.0,
                (end - NAMES).max(0.5),
                BAR - 2.0
            );
            if let Some([low, high]) = point.interval {
                let middle = y + BAR / 2.0;
                let _ =
                    write!(text, "<path class=\"whisker\" d=\"M{:.1} {middle:.1}H{:.1}\"/>", x(low), x(high));
            }
            text.push_str("</g>");
        }
    }
    (bottom + 24.0, text)
}
