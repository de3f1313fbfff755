//! Runs of fsload, the load generator of tests/peers.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::figures::{ends, median};
use super::program::{self, behind, number};
use super::words;
use crate::command::said;

/// A figure of a run, in the order in which fsload prints them.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// Operations a second.
    Rate,
    /// MiB a second.
    Mib,
    /// Latencies in microseconds.
    P50,
    P99,
    /// CPU of the server, in microseconds per operation.
    Cpu,
    /// CPU of the load generator, in microseconds per operation.
    Client = 6,
    /// Requests a second.
    Requests,
}

/// The figures of a run.
pub(super) struct Figures(Vec<f64>);

impl Figures {
    pub(super) fn of(&self, column: Column) -> f64 {
        self.0.get(column as usize).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn to_json(&self) -> Value {
        self.0.clone().into()
    }

    pub(super) fn from_json(value: &Value) -> Self {
        Self(value.as_array().into_iter().flatten().map(number).collect())
    }
}

pub(super) struct Fsload {
    program: PathBuf,
}

impl Fsload {
    pub(super) fn build() -> Result<Self, String> {
        Ok(Self { program: program::fsload()? })
    }

    /// Begins a load, with `before` in front of its command.
    pub(super) fn begin(&self, before: &str, load: &str) -> Result<Load, String> {
        let mut command = behind(&words(before), &self.program);
        command.args(words(load)).args(["tsv=1", "label=x"]);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Load { process: process.map_err(|e| format!("{}: {e}", self.program.display()))? })
    }

    pub(super) fn run(&self, before: &str, load: &str) -> Result<Figures, String> {
        self.begin(before, load)?.figures()
    }

    /// The cost of the cryptography alone: microseconds of a core per MiB, by name.
    pub(super) fn crypto(&self, before: &str) -> Result<Vec<(String, f64)>, String> {
        let printed = said(behind(&words(before), &self.program).args(["crypto", "bs=64k"]))?;
        let costs = printed.split_whitespace().filter_map(|word| word.split_once('='));
        Ok(costs.filter_map(|(name, cost)| Some((name.to_owned(), cost.parse().ok()?))).collect())
    }
}

/// A load that has begun.
pub(super) struct Load {
    process: Child,
}

impl Load {
    /// Waits for its end.
    pub(super) fn figures(self) -> Result<Figures, String> {
        let done = self.process.wait_with_output().map_err(|e| format!("a load generator: {e}"))?;
        let printed = String::from_utf8_lossy(&done.stdout);
        let figures: Vec<f64> =
            printed.trim().split('\t').skip(1).filter_map(|field| field.parse().ok()).collect();
        if done.status.success() && figures.len() > Column::Requests as usize {
            Ok(Figures(figures))
        } else {
            let said = String::from_utf8_lossy(&done.stderr);
            Err(format!(
                "FAIL a load generator failed: {}: {}",
                done.status,
                said.lines().last().unwrap_or_default()
            ))
        }
    }
}

/// The figures of one column.
pub(super) fn column(runs: &[Figures], column: Column) -> Vec<f64> {
    runs.iter().map(|figures| figures.of(column)).collect()
}

/// The ratios of runs that were measured side by side.
pub(super) struct Ratios(Vec<f64>);

impl Ratios {
    pub(super) fn of(runs: &[Figures], by: &[Figures], which: Column) -> Self {
        let pairs = column(runs, which).into_iter().zip(column(by, which));
        Self(pairs.filter(|(_, by)| *by != 0.0).map(|(of, by)| of / by).collect())
    }

    pub(super) fn median(&self) -> f64 {
        median(&self.0)
    }

    /// The median, the least and the greatest.
    pub(super) fn shown(&self) -> String {
        if self.0.is_empty() {
            return "-".to_owned();
        }
        let (least, greatest) = ends(&self.0);
        format!("{:.2} ({least:.2} - {greatest:.2})", self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rates: &[f64]) -> Vec<Figures> {
        rates.iter().map(|rate| Figures(vec![*rate; 8])).collect()
    }

    #[test]
    fn ratios_are_those_of_neighbours() {
        let ratios = Ratios::of(&runs(&[2.0, 9.0, 1.0]), &runs(&[1.0, 3.0, 0.0]), Column::Cpu);
        assert_eq!(ratios.shown(), "2.50 (2.00 - 3.00)");
        assert_eq!(Ratios::of(&[], &[], Column::Cpu).shown(), "-");
    }

    #[test]
    fn figures_are_kept_as_json() {
        let figures = Figures(vec![1.0, 2.5]);
        assert_eq!(figures.to_json().to_string(), "[1.0,2.5]");
        assert!((Figures::from_json(&figures.to_json()).of(Column::Mib) - 2.5).abs() < 1e-9);
    }
}
