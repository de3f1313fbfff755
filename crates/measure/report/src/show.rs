//! What HTML and Markdown say in the same words.

use super::claim::Figure;
use super::evidence::{Case, Judgement};
use super::judge::{Finding, Obstacle};
use super::run::{Run, RunRow};
use super::units;
use super::words::{self, counted};
use super::{Beside, BesideRow, Report};
use load::result::{Host, Outcome};
use load::statistics::{Conclusion, Estimate, Ratio};

impl Judgement {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
            Self::TooNoisy => "too noisy",
            Self::CannotBeTested => "cannot be tested here",
        }
    }
}

/// A ratio with its interval, whatever it means.
fn ratio(of: &Ratio) -> String {
    match of.ratio.interval {
        Some([low, high]) => {
            format!("{} ({} to {})", units::ratio(of.ratio.median), units::ratio(low), units::ratio(high))
        }
        None => units::ratio(of.ratio.median),
    }
}

/// A figure with its interval.
fn estimate(of: Figure, value: &Estimate) -> String {
    let figure = |value| units::figure(of, value);
    match value.interval {
        Some([low, high]) => format!("{} ({} to {})", figure(value.median), figure(low), figure(high)),
        None => figure(value.median),
    }
}

impl Case {
    /// The row's figure with its interval.
    pub(super) fn figure_measured(&self) -> String {
        estimate(self.figure, &self.measured)
    }

    /// The ratio with its interval.
    pub(super) fn ratio_in_words(&self) -> String {
        self.ratio.as_ref().map_or_else(|| "-".to_owned(), ratio)
    }
}

impl Finding {
    /// What was measured, in a line.
    pub(super) fn measured(&self) -> String {
        if let [one] = self.cases.as_slice() {
            return if one.ratio.is_some() { one.ratio_in_words() } else { one.figure_measured() };
        }
        let medians =
            self.cases.iter().map(|case| case.ratio.map_or(case.measured.median, |r| r.ratio.median));
        let (low, high) = (medians.clone().fold(f64::INFINITY, f64::min), medians.fold(0.0, f64::max));
        let Some(first) = self.cases.first() else { return "-".to_owned() };
        let shown = |value| {
            if first.ratio.is_some() { units::ratio(value) } else { units::figure(first.figure, value) }
        };
        let rows = counted(u32::try_from(self.cases.len()).unwrap_or(u32::MAX), "row");
        format!("{} to {} in {rows}", shown(low), shown(high))
    }
}

impl BesideRow {
    /// The ratio, or that there is none to speak of.
    pub(super) fn ratio_in_words(&self) -> String {
        match &self.ratio {
            Some(of) => match of.conclusion() {
                Conclusion::NoEffect => format!("no measurable effect, {}", ratio(of)),
                Conclusion::TooNoisy => format!("too noisy to tell, {}", ratio(of)),
                Conclusion::Higher | Conclusion::Lower => ratio(of),
            },
            None => "-".to_owned(),
        }
    }
}

impl BesideRow {
    /// CPU time of the servers for each operation: of the base, and of the other.
    pub(super) fn cpu_in_words(&self) -> String {
        let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), units::time);
        match (self.base_cpu_us, self.other_cpu_us) {
            (None, None) => "-".to_owned(),
            (base, other) => format!("{}, {}", time(base), time(other)),
        }
    }
}

impl Beside {
    /// How the two were compared.
    pub(super) fn how(&self) -> &'static str {
        if self.rows.iter().all(|row| row.in_turns) {
            "They took turns: compared repetition by repetition."
        } else {
            "Measured one after the other: the interval is as wide as the ends of both make it, and whatever else changed between them is in it."
        }
    }
}

/// What must be known of two results before they are compared: they are of shares with different plans.
pub(super) fn plans(base: &Run, other: &Run) -> Option<String> {
    let of = |run: &Run| run.environment.settings.get("plan").cloned();
    let plan = |plan: Option<String>| {
        plan.map_or_else(|| "has no plan".to_owned(), |plan| format!("has the plan {plan}"))
    };
    (of(base) != of(other)).then(|| {
        format!(
            "This compares plans, not servers: the share of {} {}, that of {} {}.",
            other.label,
            plan(of(other)),
            base.label,
            plan(of(base))
        )
    })
}

impl RunRow {
    /// Figures: rate, interval, throughput, percentiles, CPU time of client and server, the rate by that of its base.
    pub(super) fn cells(&self) -> [String; 9] {
        let none = || "-".to_owned();
        let measure = &self.measure;
        let interval = measure.rate.interval.map_or_else(none, |[low, high]| {
            format!("{} - {}", units::significant(low), units::significant(high))
        });
        let time = |us: Option<f64>| us.map_or_else(none, units::time);
        [
            units::significant(measure.rate.median),
            interval,
            measure.throughput.map_or_else(none, |t| units::figure(Figure::Throughput, t.median)),
            time(self.latency.map(|l| l.p50_us)),
            time(self.latency.map(|l| l.p99_us)),
            time(self.latency.map(|l| l.p999_us)),
            time(measure.client_cpu_us.map(|e| e.median)),
            time(measure.server_cpu_us.map(|e| e.median)),
            self.against.map_or_else(none, |ratio| ratio.to_string()),
        ]
    }
}

impl Run {
    /// Dialect, protection, connections and sizes.
    pub(super) fn agreed_on(&self) -> String {
        let negotiated = &self.environment.negotiated;
        let mut parts = Vec::new();
        if negotiated.dialect.is_empty() {
            parts.push(words::protocol(self.environment.protocol).to_owned());
        } else {
            parts.push(negotiated.dialect.clone());
        }
        parts.extend(negotiated.signing.iter().map(|algorithm| format!("signed with {algorithm}")));
        parts.extend(negotiated.cipher.iter().map(|cipher| format!("encrypted with {cipher}")));
        if negotiated.connections > 0 {
            let most = words::connections(self.environment.protocol, negotiated.connections);
            parts.push(match negotiated.connections_asked {
                Some(asked) => format!("{most} of {asked} asked for"),
                None => format!("up to {most}"),
            });
        }
        parts.extend(negotiated.requests_max.map(|most| format!("{most} requests under way")));
        parts.join(", ")
    }

    /// The smallest request without a load.
    pub(super) fn round_trip(&self) -> String {
        self.environment.round_trip_us.map_or_else(|| "-".to_owned(), units::time)
    }

    /// How much of it there is.
    pub(super) fn extent(&self) -> String {
        let method = &self.method;
        let mut parts = vec![
            counted(u32::try_from(self.rows.len()).unwrap_or(u32::MAX), "row"),
            format!(
                "{} of {} s",
                counted(method.repetitions, "repetition"),
                units::significant(method.seconds)
            ),
        ];
        parts.push(match self.outcome {
            Outcome::Complete => "complete".to_owned(),
            Outcome::Stopped => "stopped early".to_owned(),
            Outcome::Failed => "failed".to_owned(),
        });
        if method.quick {
            parts.push("quick".to_owned());
        }
        if !method.data_checked {
            parts.push("what was read was not checked".to_owned());
        }
        parts.join(", ")
    }

    /// What went wrong, and what was not honoured.
    pub(super) fn told(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.outcome {
            Outcome::Complete => {}
            Outcome::Stopped => {
                lines.push("It was stopped: these are the rows that were measured until then.".to_owned())
            }
            Outcome::Failed if self.rows.is_empty() => {
                lines.push("It failed: nothing was measured.".to_owned())
            }
            Outcome::Failed => {
                lines.push("It failed: these are the rows that were measured until then.".to_owned())
            }
        }
        lines.extend(self.problems.iter().map(|problem| match problem.count {
            0 | 1 => problem.text.clone(),
            times => format!("{} ({times} times)", problem.text),
        }));
        lines.extend(self.rows.iter().filter_map(RunRow::trouble));
        lines.extend(self.not_honoured.iter().map(|line| format!("not honoured: {line}")));
        lines
    }
}

impl RunRow {
    fn trouble(&self) -> Option<String> {
        let counts = [
            (self.errors, "operations failed"),
            (self.wrong_blocks, "blocks came back with wrong bytes"),
            (self.reconnects, "connections were made again"),
        ];
        let parts: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        (!parts.is_empty()).then(|| format!("{}: {}", self.row, parts.join(", ")))
    }
}

impl Report {
    /// Why what cannot be tested cannot be.
    pub(super) fn obstacles(&self) -> String {
        let of = |obstacle| self.findings().filter(|finding| finding.obstacle == Some(obstacle)).count();
        let counts = [
            (of(Obstacle::Conditions), "about a network or a service that was not there"),
            (of(Obstacle::Noise), "inside the noise"),
            (of(Obstacle::NotMeasured), "not measured"),
            (of(Obstacle::Untestable), "without a figure or a way to measure it"),
        ];
        let told = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        told.collect::<Vec<_>>().join(", ")
    }

    /// What a reader must know before reading a figure: in a word, and in sentences.
    pub(super) fn warnings(&self) -> Vec<(&'static str, String)> {
        let of = |is: fn(&Run) -> bool| self.runs.iter().filter(|run| is(run)).count();
        let which = |count: usize| {
            if count == self.runs.len() {
                "All results".to_owned()
            } else {
                format!("{count} of {} results", self.runs.len())
            }
        };
        let notes = [
            (
                "loopback",
                of(|run| run.environment.loopback),
                "loopback. Client and server are one machine and share its CPUs; there is no NIC and no link. Ratios that do not come from a network hold, absolute figures say nothing about one.",
            ),
            (
                "quick",
                of(|run| run.method.quick),
                "quick. Few and short repetitions show a direction, no more.",
            ),
            (
                "partial",
                of(|run| run.outcome != Outcome::Complete),
                "partial. What went wrong is told with the results.",
            ),
        ];
        let there = notes.into_iter().filter(|(_, count, _)| *count > 0);
        there.map(|(name, count, note)| (name, format!("{}: {note}", which(count)))).collect()
    }

    /// The machines that made the load, each once, with what figures depend on.
    pub(super) fn clients(&self) -> Vec<(String, Vec<(&'static str, String)>)> {
        let mut hosts: Vec<&Host> = Vec::new();
        for run in &self.runs {
            if !hosts.contains(&&run.environment.client) {
                hosts.push(&run.environment.client);
            }
        }
        let title =
            |n: usize| if hosts.len() == 1 { "Client".to_owned() } else { format!("Client {}", n + 1) };
        hosts.iter().enumerate().map(|(n, host)| (title(n), self.facts(host))).collect()
    }

    fn facts(&self, host: &Host) -> Vec<(&'static str, String)> {
        let of_host = || self.runs.iter().filter(|run| run.environment.client == *host);
        let distinct = |values: Vec<String>| {
            let mut seen: Vec<String> = Vec::new();
            for value in values {
                if !seen.contains(&value) {
                    seen.push(value);
                }
            }
            seen.join("; ")
        };
        let settings = of_host()
            .flat_map(|run| &run.environment.settings)
            // Side by side says which results these are.
            .filter(|(name, _)| *name != "in turns with")
            .map(|(name, value)| format!("{name} {value}"));
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let memory = units::bytes(host.memory_bytes as f64);
        let facts = [
            ("CPU", format!("{}, {}", host.cpu, counted(host.cpus, "logical CPU"))),
            ("CPU features", host.cpu_features.join(", ")),
            ("Memory", memory),
            ("Kernel", host.kernel.clone()),
            ("Interfaces", host.interfaces.iter().map(interface).collect::<Vec<_>>().join("; ")),
            ("Measured with", distinct(of_host().map(|run| run.program.clone()).collect())),
            ("Servers", distinct(of_host().filter_map(|run| run.environment.server.clone()).collect())),
            ("Other", distinct(settings.collect())),
        ];
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

fn interface(interface: &load::result::Interface) -> String {
    let mut parts = vec![interface.name.clone()];
    parts.extend(interface.speed_mbit.map(|speed| format!("{speed} Mbit/s")));
    parts.extend(interface.receive_queues.map(|queues| counted(queues, "receive queue")));
    parts.extend(interface.rss.map(|rss| if rss { "RSS" } else { "no RSS" }.to_owned()));
    parts.extend(interface.used.then(|| "used".to_owned()));
    parts.join(", ")
}
