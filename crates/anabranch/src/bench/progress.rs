//! How far a run has come, on standard error where that is a terminal.

use std::io::{IsTerminal, Write};

use load::bench::Progress;

use crate::print::duration;

/// Characters of the bar.
const WIDTH: usize = 24;

/// A line that is written over.
pub(crate) struct Bar {
    terminal: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, progress: &Progress<'_>) {
        if self.terminal {
            // It is of no use to fail for the bar's sake.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(progress));
        }
    }

    /// The line is empty again.
    pub(crate) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(progress: &Progress<'_>) -> String {
    if progress.all == 0 {
        return progress.now.to_owned();
    }
    let full = WIDTH * progress.done.min(progress.all) / progress.all;
    let bar: String = (0..WIDTH).map(|at| if at < full { '#' } else { '.' }).collect();
    let left =
        duration(std::time::Duration::try_from_secs_f64(progress.seconds_left).map_or(0, |d| d.as_secs()));
    format!("[{bar}] {}/{} {left} left  {}", progress.done, progress.all, progress.now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows() {
        let at = |done| line(&Progress { now: "x", done, all: 4, seconds_left: 61.0 });
        assert_eq!(at(0), "[........................] 0/4 1 min 1 s left  x");
        assert_eq!(at(2), "[############............] 2/4 1 min 1 s left  x");
    }
}
