//! The storage of a model's server: its directory with a delay for each access, and how long accesses take.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use peers::Daemon;
use serde::Serialize;

use crate::delays::is_late;
use crate::machine::Machine;
use crate::trouble::Trouble;

/// Accesses of which the median counts.
const ACCESSES: usize = 11;
/// How often this is tried: other work may disturb once. The best try counts.
const TRIES: usize = 3;
/// Bytes of a read.
const BLOCK: usize = 4096;

/// How long the server's storage takes for an access, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StorageDelay {
    /// Which parameter this is: `data-delay` or `metadata-delay`.
    pub parameter: &'static str,
    /// The delay.
    pub delay_micros: u64,
    /// The median without the delay: what the file system that delays costs.
    pub without_micros: u64,
    /// The median with the delay.
    pub micros: u64,
    /// The delay is what was declared: what it adds.
    pub is_usable: bool,
}

/// How a program with a delay is started in the server's machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    pub(crate) machine: &'a Machine,
    /// This program.
    pub(crate) program: &'a Path,
    /// Where its memory is, as it sees it itself.
    pub(crate) home: &'a str,
}

impl Storage<'_> {
    /// Delays each access to a directory of the server's memory, for data and for metadata, until this is dropped. `name` is that of
    /// the directory there.
    pub(crate) fn delayed(&self, name: &Path, [data, metadata]: [Duration; 2]) -> Result<Daemon, Trouble> {
        let place = Path::new(self.home).join(name);
        let micros = [data, metadata].map(|delay| format!("{}us", delay.as_micros()));
        let entering = self.machine.entering();
        let mut arguments: Vec<&OsStr> = entering.iter().skip(1).map(OsStr::new).collect();
        arguments.extend([
            self.program.as_os_str(),
            OsStr::new("bench"),
            OsStr::new("delay"),
            place.as_os_str(),
        ]);
        arguments.extend(["--data", &micros[0], "--metadata", &micros[1]].map(OsStr::new));
        let nsenter = entering.first().map_or("nsenter", String::as_str);
        let log = self.machine.memory().join("delay-said");
        let started = Daemon::start("the delay of the storage", Path::new(nsenter), &arguments, &[], log);
        let ready = started.and_then(|daemon| {
            daemon.wait_until(|said| said.lines().any(|line| line.starts_with("ready ")).then_some(()))?;
            Ok(daemon)
        });
        ready.map_err(|e| Trouble::Server { what: e.what, advice: e.advice })
    }

    /// Measures how long reads and lookups take, without the delays and with them. Ends early when it is to stop.
    pub(crate) fn measure(
        &self,
        delays: [Duration; 2],
        stop: &AtomicBool,
    ) -> Result<Vec<StorageDelay>, Trouble> {
        let mut best =
            found(delays, self.medians("1-without", [Duration::ZERO; 2])?, self.medians("1", delays)?);
        for n in 2..=TRIES {
            if best.iter().all(|delay| delay.is_usable) || stop.load(Ordering::Relaxed) {
                break;
            }
            let without = self.medians(&format!("{n}-without"), [Duration::ZERO; 2])?;
            let again = found(delays, without, self.medians(&n.to_string(), delays)?);
            for (best, again) in best.iter_mut().zip(again) {
                if (!again.is_usable, again.micros) < (!best.is_usable, best.micros) {
                    *best = again;
                }
            }
        }
        Ok(best)
    }

    /// The medians of a read and of a lookup with these delays. They are measured in a directory of their own, which ends with the
    /// machine: what delayed it may have been killed and have left it unusable.
    fn medians(&self, which: &str, delays: [Duration; 2]) -> Result<[Duration; 2], Trouble> {
        let failed = |e: io::Error| Trouble::Calibrating(format!("the storage: {e}"));
        let name = format!("calibration-{which}");
        let directory = self.machine.memory().join(&name);
        fs::create_dir(&directory).map_err(failed)?;
        fs::write(directory.join("file"), [0; BLOCK]).map_err(failed)?;
        let _delaying = self.delayed(Path::new(&name), delays)?;
        medians(&directory).map_err(failed)
    }
}

/// The medians of a read and of a lookup.
fn medians(directory: &Path) -> io::Result<[Duration; 2]> {
    let file = File::open(directory.join("file"))?;
    let reads = timed(|_| file.read_exact_at(&mut [0; BLOCK], 0))?;
    let lookups = timed(|n| {
        // A name that nobody has asked for is in no cache.
        let missing = fs::symlink_metadata(directory.join(format!("missing-{n}")));
        missing.map_or(Ok(()), |_| Err(io::ErrorKind::AlreadyExists.into()))
    })?;
    Ok([reads, lookups])
}

fn timed(mut access: impl FnMut(usize) -> io::Result<()>) -> io::Result<Duration> {
    let mut times = Vec::with_capacity(ACCESSES);
    // The first one finds out what those after it know.
    for n in 0..=ACCESSES {
        let begun = Instant::now();
        access(n)?;
        times.push(begun.elapsed());
    }
    let after_the_first = times.get_mut(1..).unwrap_or_default();
    after_the_first.sort_unstable();
    Ok(after_the_first.get(ACCESSES / 2).copied().unwrap_or_default())
}

fn found(delays: [Duration; 2], without: [Duration; 2], with: [Duration; 2]) -> Vec<StorageDelay> {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let each = ["data-delay", "metadata-delay"].into_iter().zip(delays).zip(without.into_iter().zip(with));
    each.map(|((parameter, delay), (without, with))| StorageDelay {
        parameter,
        delay_micros: micros(delay),
        without_micros: micros(without),
        micros: micros(with),
        is_usable: with >= delay && !is_late(micros(delay), micros(with.saturating_sub(without))),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_that_takes_longer_is_unusable() {
        let millis = Duration::from_millis;
        let micros = Duration::from_micros;
        let delays = [millis(2), millis(10)];
        let usable =
            |with| found(delays, [micros(20); 2], with).iter().map(|one| one.is_usable).collect::<Vec<_>>();
        assert_eq!(usable([micros(2120), micros(10_520)]), [true, true]);
        assert_eq!(usable([micros(2121), micros(10_521)]), [false, false]);
        assert_eq!(usable([micros(1999), micros(25)]), [false, false], "the delay is not in force");
    }
}
