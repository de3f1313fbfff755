//! A result in the form of fio's `json+` output, so that tools made for fio read it.
//!
//! Field names, units and the names of bins are those of fio 3.33 (`stat.c`: `add_ddir_status_json`, `plat_idx_to_val`,
//! `calc_clat_percentiles`). A row is a job, all its repetitions together. A latency here begins when an operation was due, so
//! `clat_ns` and `lat_ns` are the same and there is no `slat_ns`; `min` and `max` are the ends of the first and the last bin.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::histogram::{Histogram, bin_range};
use crate::result::{Key, Mix, Operation, Repetition, ResultFile, Row, Tally};

/// The percentiles that fio tells unless it is asked for others.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// All that fio writes into one file.
#[derive(Debug, Serialize)]
pub struct Output<'a> {
    /// Who has written it: not fio.
    #[serde(rename = "fio version")]
    version: &'a str,
    /// Seconds since 1970.
    timestamp: u64,
    jobs: Vec<Job<'a>>,
}

#[derive(Debug, Serialize)]
struct Job<'a> {
    jobname: String,
    groupid: usize,
    /// 1 where operations failed or data was wrong.
    error: u8,
    /// Seconds.
    elapsed: f64,
    #[serde(rename = "job options")]
    options: BTreeMap<&'static str, String>,
    read: Direction<'a>,
    write: Direction<'a>,
    trim: Direction<'a>,
    /// Milliseconds.
    job_runtime: u64,
}

/// Operations of one direction.
#[derive(Debug, Serialize)]
struct Direction<'a> {
    io_bytes: u64,
    io_kbytes: u64,
    /// Bytes a second.
    bw_bytes: u64,
    /// KiB a second.
    bw: u64,
    iops: f64,
    /// Milliseconds.
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Latency<'a>,
    clat_ns: Latency<'a>,
    lat_ns: Latency<'a>,
}

/// Nanoseconds.
#[derive(Debug, Default, Serialize)]
struct Latency<'a> {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Percentiles<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Bins<'a>>,
}

#[derive(Debug)]
struct Percentiles<'a>(&'a Histogram);

#[derive(Debug)]
struct Bins<'a>(&'a Histogram);

/// The reads and writes of each row, by direction.
#[derive(Debug)]
pub struct Merged<'a> {
    result: &'a ResultFile,
    rows: Vec<(&'a Row, [Tally; 2], f64)>,
}

impl<'a> Merged<'a> {
    /// Merges the repetitions of each row that moves data; the metadata workload has no form in fio.
    #[must_use]
    pub fn of(result: &'a ResultFile) -> Self {
        let with_data = result.rows.iter().filter(|row| row.key.mix != Mix::Metadata);
        let seconds = |row: &Row| row.repetitions.iter().map(|r| r.seconds).sum();
        let rows = with_data.map(|row| {
            (row, [Operation::Read, Operation::Write].map(|o| tally(&row.repetitions, o)), seconds(row))
        });
        Self { result, rows: rows.collect() }
    }

    /// The file that fio would have written.
    #[must_use]
    pub fn output(&self) -> Output<'_> {
        let jobs =
            self.rows.iter().enumerate().map(|(n, (row, tallies, seconds))| job(n, row, tallies, *seconds));
        Output { version: &self.result.program, timestamp: self.result.began, jobs: jobs.collect() }
    }
}

fn tally(repetitions: &[Repetition], operation: Operation) -> Tally {
    let mut sum = Tally::default();
    for tally in repetitions.iter().filter_map(|r| r.operations.get(&operation)) {
        sum.count += tally.count;
        sum.bytes += tally.bytes;
        sum.latency.merge(&tally.latency);
    }
    sum
}

fn job<'a>(number: usize, row: &Row, [read, write]: &'a [Tally; 2], seconds: f64) -> Job<'a> {
    let wrong = row.repetitions.iter().any(|r| r.errors + r.wrong_blocks > 0);
    Job {
        jobname: row.key.to_string(),
        groupid: number,
        error: wrong.into(),
        elapsed: seconds,
        options: options(&row.key),
        read: direction(Some(read), seconds),
        write: direction(Some(write), seconds),
        trim: direction(None, 0.0),
        job_runtime: milliseconds(seconds),
    }
}

/// The row in fio's words; threads are its jobs.
fn options(key: &Key) -> BTreeMap<&'static str, String> {
    let order = if key.random { "rand" } else { "" };
    let reads = match key.mix {
        Mix::ReadPercent(reads) => reads,
        Mix::Metadata => 0,
    };
    let direction = match reads {
        100 => "read",
        0 => "write",
        _ => "rw",
    };
    BTreeMap::from([
        ("rw", format!("{order}{direction}")),
        ("rwmixread", reads.to_string()),
        ("bs", key.block_bytes.to_string()),
        ("iodepth", key.queue_depth.to_string()),
        ("numjobs", key.threads.to_string()),
        ("nrfiles", key.files.to_string()),
    ])
}

fn direction(tally: Option<&Tally>, seconds: f64) -> Direction<'_> {
    let (count, bytes) = tally.map_or((0, 0), |tally| (tally.count, tally.bytes));
    let latency = tally.map(|tally| &tally.latency).filter(|latency| latency.total() > 0);
    let bytes_a_second = whole(per_second(bytes, seconds));
    Direction {
        io_bytes: bytes,
        io_kbytes: bytes >> 10,
        bw_bytes: bytes_a_second,
        bw: bytes_a_second >> 10,
        iops: per_second(count, seconds),
        runtime: milliseconds(seconds),
        total_ios: count,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: Latency::default(),
        clat_ns: latency.map_or_else(Latency::default, |histogram| Latency {
            percentile: Some(Percentiles(histogram)),
            bins: Some(Bins(histogram)),
            ..moments(histogram)
        }),
        lat_ns: latency.map_or_else(Latency::default, moments),
    }
}

fn moments(histogram: &Histogram) -> Latency<'_> {
    let mean = histogram.mean().unwrap_or(0.0);
    let squares: f64 =
        histogram.bins().map(|(bin, count)| (as_float(name(bin)) - mean).powi(2) * as_float(count)).sum();
    let last = histogram.bins().last().map(|(bin, _)| bin_range(bin));
    Latency {
        min: histogram.bins().next().map_or(0, |(bin, _)| bin_range(bin).0),
        max: last.map_or(0, |(low, width)| low + width - 1),
        mean,
        stddev: (squares / as_float(histogram.total().max(1))).sqrt(),
        count: histogram.total(),
        ..Latency::default()
    }
}

/// `plat_idx_to_val`: the value that fio names a bin by.
fn name(bin: usize) -> u64 {
    let (low, width) = bin_range(bin);
    low + width / 2
}

impl Serialize for Percentiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let at = |percent: &f64| Some((format!("{percent:.6}"), name(self.0.percentile_bin(*percent)?)));
        serializer.collect_map(PERCENTILES.iter().filter_map(at))
    }
}

impl Serialize for Bins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.bins().map(|(bin, count)| (name(bin), count)))
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { as_float(count) / seconds } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and far below 2^64"
)]
fn whole(figure: f64) -> u64 {
    figure as u64
}

fn milliseconds(seconds: f64) -> u64 {
    whole(seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of bins that fio 3.33 has written, with the latencies that lie in them.
    #[test]
    fn bins_have_the_names_that_fio_gives_them() {
        for (ns, named) in
            [(2250, 2256), (2280, 2288), (51_300, 51_456), (54_000, 54_016), (10_800_000, 10_813_440)]
        {
            let mut histogram = Histogram::default();
            histogram.add(ns);
            assert_eq!(serde_json::to_string(&Bins(&histogram)).unwrap(), format!("{{\"{named}\":1}}"));
        }
    }

    #[test]
    fn percentiles_are_of_all_and_bins_ascend() {
        let mut histogram = Histogram::default();
        (0..99).for_each(|_| histogram.add(1000));
        histogram.add(1_000_000);
        let said = serde_json::to_value(Percentiles(&histogram)).unwrap();
        assert_eq!((&said["50.000000"], &said["99.900000"]), (&1004.into(), &1_003_520.into()));
        assert_eq!(serde_json::to_string(&Bins(&histogram)).unwrap(), r#"{"1004":99,"1003520":1}"#);
    }
}
