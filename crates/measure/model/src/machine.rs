//! A machine of a model: namespaces that a process holds.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::construction::{Step, Tool};
use crate::trouble::Trouble;

/// What the first process of a machine does: it says that the machine is made, and waits for the end of its input. That comes
/// when the program that made the machine has ended, however it did. `/dev/shm` is the machine's own.
const FIRST: &str = "echo \"$1\" >/proc/sys/kernel/hostname && mount -t tmpfs -o mode=0755 machine /dev/shm && echo made && exec cat";

/// A machine. It ends when this is dropped, with all processes, interfaces, mounts and files in memory that it has.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The process that has its namespaces, outside of them.
    child: Child,
}

impl Machine {
    pub(crate) fn make(name: &str) -> Result<Self, Trouble> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--propagation", "private", "--uts", "--pid", "--fork"]);
        command.args(["--kill-child", "--mount-proc", "sh", "-c", FIRST, "sh", name]);
        // Ctrl-C at a terminal is for the program, which then ends its machines.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| Trouble::no_program("unshare", "util-linux", &e))?;
        let mut machine = Self { child };
        let mut line = String::new();
        let said = machine.child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        if line == "made\n" {
            return Ok(machine);
        }
        let mut why = said.and_then(Result::err).map(|e| e.to_string()).unwrap_or_default();
        if let Some(mut errors) = machine.child.stderr.take() {
            machine.child.stdin.take();
            let _ = io::Read::read_to_string(&mut errors, &mut why);
        }
        Err(Trouble::NoNamespaces(why.trim().to_owned()))
    }

    /// The process that holds its namespaces.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The words before a program's name that start it in the machine.
    pub(crate) fn entering(&self) -> Vec<String> {
        let of = |namespace: &str| format!("/proc/{}/ns/{namespace}", self.pid());
        vec![
            "nsenter".to_owned(),
            format!("--net={}", of("net")),
            format!("--mount={}", of("mnt")),
            format!("--uts={}", of("uts")),
            format!("--pid={}", of("pid_for_children")),
            "--".to_owned(),
        ]
    }

    /// Does something in the machine's network, in a thread of its own: sockets and interfaces that are made there stay there.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let inside = || {
            let network = fs::File::open(format!("/proc/{}/ns/net", self.pid()))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        let ended = thread::scope(|scope| scope.spawn(inside).join());
        ended.unwrap_or_else(|_| Err(io::Error::other("a thread in a machine of a model has ended")))
    }

    /// The machine's `/dev/shm`, as this program sees it.
    pub(crate) fn memory(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/dev/shm", self.pid()))
    }

    /// Bytes that its interfaces have received and sent: by name.
    pub(crate) fn counters(&self) -> Option<Vec<(String, u64, u64)>> {
        Some(counters(&fs::read_to_string(format!("/proc/{}/net/dev", self.pid())).ok()?))
    }

    /// Carries out a step, in the machine's network and with the program's own view of processes.
    pub(crate) fn carry_out(&self, step: &Step, pids: &[u32]) -> Result<(), Trouble> {
        let lines: Vec<String> = step.lines.iter().map(|line| with_pids(line, pids)).collect();
        match step.tool {
            Tool::Ip => self.batch("ip", &lines, step),
            Tool::Tc => self.batch("tc", &lines, step),
            Tool::Sysctl => lines.iter().try_for_each(|line| self.set(line, step)),
        }
    }

    fn in_network(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.pid())).arg("--").arg(program);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn batch(&self, program: &'static str, lines: &[String], step: &Step) -> Result<(), Trouble> {
        let mut command = self.in_network(program);
        let started = command.args(["-batch", "-"]).spawn();
        let mut child = started.map_err(|e| Trouble::no_program("nsenter", "util-linux", &e))?;
        if let Some(mut input) = child.stdin.take() {
            // One that has ended says why itself.
            let _ = input.write_all((lines.join("\n") + "\n").as_bytes());
        }
        let output = child.wait_with_output().map_err(|e| Trouble::no_program(program, "iproute2", &e))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.code() == Some(127) {
            return Err(Trouble::no_program(program, "iproute2", &io::Error::other(said)));
        }
        Err(Trouble::Lacks { ability: step.needs, tool: program, said })
    }

    /// Sets the first of the alternatives that the kernel takes.
    fn set(&self, setting: &str, step: &Step) -> Result<(), Trouble> {
        let (name, values) = setting.split_once('=').unwrap_or((setting, ""));
        let mut said = String::new();
        for value in values.split('|') {
            let output = self.in_network("sysctl").arg("-qw").arg(format!("{name}={value}")).output();
            let output = output.map_err(|e| Trouble::no_program("nsenter", "util-linux", &e))?;
            if output.status.success() {
                return Ok(());
            }
            said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        }
        Err(Trouble::Lacks { ability: step.needs, tool: "sysctl", said })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The end of its input is what its first process waits for; all others of the machine end with that one.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// `@N` stands for the process that holds the machine N.
fn with_pids(line: &str, pids: &[u32]) -> String {
    let word = |word: &str| match word.strip_prefix('@').and_then(|n| pids.get(n.parse::<usize>().ok()?)) {
        Some(pid) => pid.to_string(),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The bytes received and sent of each interface, of `/proc/PID/net/dev` (proc(5)).
fn counters(text: &str) -> Vec<(String, u64, u64)> {
    let of = |line: &str| {
        let (name, figures) = line.split_once(':')?;
        let mut figures = figures.split_whitespace();
        let (received, sent) = (figures.next()?.parse().ok()?, figures.nth(7)?.parse().ok()?);
        Some((name.trim().to_owned(), received, sent))
    };
    text.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_take_their_places_in_commands() {
        assert_eq!(
            with_pids("link add a peer name port netns @2", &[7, 8, 9]),
            "link add a peer name port netns 9"
        );
        assert_eq!(with_pids("x @9 @", &[7]), "x @9 @");
    }

    #[test]
    fn counters_are_found_in_their_columns() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes packets\n  port:  512630    7761    0    0    0     0          0         0 164769044    7768    0    0    0     0       0          0\n";
        assert_eq!(counters(text), [("port".to_owned(), 512_630, 164_769_044)]);
    }
}
