//! The section of a page.

use serde_json::{Map, Value};

use crate::bench::figures::median;
use crate::bench::fsload::{Column, Figures, Ratios, column};
use crate::bench::machine;
use crate::markdown::{reached, table};

/// Goals: of the rate and the latency if the store is slow, of the CPU if it is quick, and of names.
const RATE: f64 = 1.6;
const LATENCY: f64 = 0.7;
const LOCAL_CPU: f64 = 1.05;
const NAMES: f64 = 1.5;

const CACHE_HEADS: [&str; 11] = [
    "",
    "without, 1/s",
    "with, 1/s",
    "ratio",
    "without, p50 us",
    "with, p50 us",
    "ratio",
    "without, CPU us",
    "with, CPU us",
    "ratio",
    "goal",
];
const NAMES_HEADS: [&str; 8] =
    ["", "ten, p50 us", "a million, p50 us", "ratio", "ten, CPU us", "a million, CPU us", "ratio", "goal"];

type Row = Map<String, Value>;

pub(super) fn section(rows: &[Row]) -> Result<String, String> {
    let mut parts = Vec::new();
    let mut seen = Vec::new();
    for added in rows.iter().filter(|row| row["what"] == "cache").map(|row| &row["added"]) {
        if !seen.contains(&added) {
            seen.push(added);
            parts.push(cache(rows, added));
        }
    }
    parts.extend(names(rows));
    Ok(format!(
        "# What the metadata cache is worth\n\n\
         Made by `cargo xtask bench metadata`: two shares of one server, one with `metadata-cache = false`, in turns, over one or four\n\
         connections of `tests/peers/fsload` on the loopback. A ratio is the median of the ratios of neighbouring runs, with the smallest and the\n\
         greatest of them; the other figures are medians. CPU is the server's CPU time per operation.\n\n\
         * {}\n\
         * commit {}\n\n{}",
        machine::described()?,
        machine::commit()?,
        parts.join("\n"),
    ))
}

fn cache(rows: &[Row], added: &Value) -> String {
    let those: Vec<_> = rows.iter().filter(|row| row["what"] == "cache" && row["added"] == *added).collect();
    let cells: Vec<_> = those.iter().map(|row| cache_cells(row, *added != 0)).collect();
    let (place, goal) = if *added == 0 {
        ("On the local disk".to_owned(), format!("CPU <= {LOCAL_CPU:.2}"))
    } else {
        let place = format!("With {added} us added to each metadata call of the storage");
        (place, format!("rate >= {RATE:.2} and p50 <= {LATENCY:.2}"))
    };
    let one = those[0];
    format!(
        "## {place}\n\n{} runs of {} s, depth {}. Goal: {goal}.\n\n{}\n",
        one["runs"],
        seconds(one),
        one["depth"],
        table(&CACHE_HEADS, &cells)
    )
}

fn cache_cells(row: &Row, slow: bool) -> Vec<String> {
    let columns = [(Column::Rate, 0), (Column::P50, 0), (Column::Cpu, 1)];
    let (mut cells, [rate, latency, cpu]) = compared(row, ["off", "on"], columns);
    let is_reached =
        if slow { rate.median() >= RATE && latency.median() <= LATENCY } else { cpu.median() <= LOCAL_CPU };
    cells.push(reached(is_reached).to_owned());
    cells
}

fn names(rows: &[Row]) -> Option<String> {
    let those: Vec<_> = rows.iter().filter(|row| row["what"] == "names").collect();
    let runs = those.iter().map(|row| format!("{}: runs of {} s, {}", work(row), seconds(row), row["runs"]));
    let runs = runs.collect::<Vec<_>>().join("; ");
    let cells: Vec<_> = those.iter().map(|row| names_cells(row)).collect();
    (!those.is_empty()).then(|| {
        format!(
            "## A name in a directory of 10 and of 1,000,000\n\n\
             Random files on tmpfs, at depth 1: SMB opens each file by its name in capitals and closes it, NFSv3 looks it up. Samba serves the same\n\
             directory. Goal: the cost with a million names is at most {NAMES:.1} times the cost with ten. {runs}.\n\n{}\n",
            table(&NAMES_HEADS, &cells)
        )
    })
}

fn names_cells(row: &Row) -> Vec<String> {
    let (mut cells, [latency, _]) = compared(row, ["ten", "million"], [(Column::P50, 0), (Column::Cpu, 1)]);
    let ours = !work(row).starts_with("Samba");
    cells.push(if ours { reached(latency.median() <= NAMES) } else { "" }.to_owned());
    cells
}

/// The medians of both sides and their ratio, column by column, with this many digits; and the ratios.
fn compared<const N: usize>(
    row: &Row,
    sides: [&str; 2],
    columns: [(Column, usize); N],
) -> (Vec<String>, [Ratios; N]) {
    let runs = sides
        .map(|side| row[side].as_array().into_iter().flatten().map(Figures::from_json).collect::<Vec<_>>());
    let mut cells = vec![work(row).to_owned()];
    let ratios = columns.map(|(which, digits)| {
        cells.extend(runs.each_ref().map(|runs| format!("{:.digits$}", median(&column(runs, which)))));
        let ratios = Ratios::of(&runs[1], &runs[0], which);
        cells.push(ratios.shown());
        ratios
    });
    (cells, ratios)
}

fn work(row: &Row) -> &str {
    row["work"].as_str().unwrap_or_default()
}

/// A number, possibly in text form.
fn seconds(row: &Row) -> String {
    row["secs"]
        .as_f64()
        .map_or_else(|| row["secs"].as_str().unwrap_or_default().to_owned(), |secs| secs.to_string())
}
