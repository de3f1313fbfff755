//! Programs that run before and after a snapshot.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How often a program is asked whether it has ended.
const EVERY: Duration = Duration::from_millis(20);

/// Runs a program with its arguments, and these variables beside those of the server. It has no input, and nobody reads what it prints. An
/// empty hook does nothing.
///
/// # Errors
/// It cannot be started, fails, or takes too long: then it is killed, with all that it has started.
pub(super) fn run(hook: &[String], variables: &[(&str, &str)], time: Duration) -> Result<(), String> {
    let Some((program, arguments)) = hook.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("{program} cannot be started: {e}"))?;
    match wait(&mut child, Instant::now() + time) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(format!("{program} failed: {status}")),
        Ok(None) => Err(format!("{program} took more than {} s, and was killed", time.as_secs())),
        Err(e) => Err(format!("{program}: {e}")),
    }
}

/// Waits for the end of a program until then. None: it has not ended, and was killed.
fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL); // it may have ended by itself
            }
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, variables: &[(&str, &str)], time: Duration) -> Result<(), String> {
        run(&["/bin/sh", "-c", script].map(str::to_owned), variables, time)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_hook_gets_its_variables_and_its_failure_is_told() {
        assert_eq!(run(&[], &[], MINUTE), Ok(()));
        assert_eq!(shell("test \"$A\" = 'b c' && ! read line", &[("A", "b c")], MINUTE), Ok(()));
        assert_eq!(shell("exit 3", &[], MINUTE), Err("/bin/sh failed: exit status: 3".to_owned()));
        let missing = run(&["/no/such/program".to_owned()], &[], MINUTE).unwrap_err();
        assert!(missing.starts_with("/no/such/program cannot be started: "), "{missing}");
    }

    #[test]
    fn a_hook_that_takes_too_long_is_killed_with_its_children() {
        let place = tempfile::tempdir().unwrap();
        let alive = place.path().join("alive");
        let script = format!("sleep 1000 & echo $! >'{}'; wait", alive.display());
        let said = shell(&script, &[], Duration::from_millis(500)).unwrap_err();
        assert_eq!(said, "/bin/sh took more than 0 s, and was killed");
        let Ok(pid) = std::fs::read_to_string(alive) else { return }; // it was killed before it began
        let status = format!("/proc/{}/status", pid.trim());
        let deadline = Instant::now() + MINUTE;
        let is_over = || std::fs::read_to_string(&status).map_or(true, |text| text.contains("State:\tZ"));
        while !is_over() {
            assert!(Instant::now() < deadline, "its child is alive");
            std::thread::sleep(EVERY);
        }
    }
}
