//! CPU time: that of this process, and that of a server on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// CPU time that this process has used, in seconds.
#[expect(clippy::unnecessary_wraps, reason = "as the server's")]
pub(crate) fn own_cpu() -> Option<f64> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// A server that runs on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its process ID; those that it has started belong to it.
    pub pid: u32,
}

impl ServerProcess {
    /// CPU time of the process and all those that it has started, in seconds. `None` where nobody can tell.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let all = processes();
        let mut sum = cpu_of(self.pid, all.get(&self.pid)?);
        let mut parents = vec![self.pid];
        while let Some(parent) = parents.pop() {
            for (pid, process) in all.iter().filter(|(_, process)| process.parent == parent) {
                sum += cpu_of(*pid, process);
                parents.push(*pid);
            }
        }
        Some(sum)
    }
}

/// In nanoseconds where the kernel tells of each thread, or else in its ticks, which are hundredths of a second.
#[expect(clippy::cast_precision_loss, reason = "seconds")]
fn cpu_of(pid: u32, process: &Process) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let times: Option<Vec<u64>> = tasks.map(|task| scheduled(&task.path())).collect();
    match times {
        Some(times) if !times.is_empty() => times.iter().sum::<u64>() as f64 / 1e9,
        _ => process.ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
    }
}

/// Documentation/scheduler/sched-stats.rst, `/proc/PID/task/TID/schedstat`: first the time on a CPU, in nanoseconds. A thread
/// that has just ended has none.
fn scheduled(task: &Path) -> Option<u64> {
    match fs::read_to_string(task.join("schedstat")) {
        Ok(text) => text.split_whitespace().next()?.parse().ok(),
        Err(_) if !task.exists() => Some(0),
        Err(_) => None,
    }
}

struct Process {
    parent: u32,
    ticks: u64,
}

fn processes() -> BTreeMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect()
}

/// proc(5), `/proc/PID/stat`: fields 4 (ppid), 14 and 15 (utime and stime in clock ticks), after the name in parentheses.
fn process(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process { parent: u32::try_from(number(4)?).ok()?, ticks: number(14)? + number(15)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_time_and_has_a_parent() {
        let all = processes();
        assert!(all.contains_key(&std::process::id()));
        assert!(own_cpu().unwrap() > 0.0);
        let of_process = ServerProcess { pid: std::process::id() }.cpu_seconds().unwrap();
        assert!(
            of_process > 0.0 && of_process < own_cpu().unwrap() + 0.02,
            "threads that have ended may be missing"
        );
        assert_eq!(ServerProcess { pid: u32::MAX }.cpu_seconds(), None);
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_is_no_trouble() {
        let stat = "7 (a b) c) S 5 7 7 0 -1 0 1 2 3 4 100 23 9 9 20 0 1 0 9 0";
        let process = process(stat).unwrap();
        assert_eq!((process.parent, process.ticks), (5, 123));
    }
}
