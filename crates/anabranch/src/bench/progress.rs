//! How far a run has come: one line on standard error, where that is a terminal.

use std::io::{IsTerminal, Write};

use load::bench::Progress;
use rustix::termios::tcgetwinsize;

use crate::print::duration;

/// Characters of the bar.
const WIDTH: usize = 24;
/// Columns where the terminal does not say how many it has.
const COLUMNS_DEFAULT: usize = 80;

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
            self.say(line(progress));
        }
    }

    /// Writes this line over the last.
    pub(crate) fn say(&self, line: String) {
        if self.terminal {
            // It is of no use to fail for the bar's sake.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", cut(line, columns()));
        }
    }

    /// The line is empty again.
    pub(crate) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn columns() -> usize {
    let size = tcgetwinsize(std::io::stderr()).ok().filter(|size| size.ws_col > 0);
    size.map_or(COLUMNS_DEFAULT, |size| usize::from(size.ws_col))
}

/// As much of a line as fits into these columns. The last one stays free, so that the line does not wrap: what wraps is not
/// written over.
fn cut(line: String, columns: usize) -> String {
    match line.char_indices().nth(columns.saturating_sub(1)) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
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

    #[test]
    fn the_line_fits_the_terminal() {
        assert_eq!(cut("abcdef".to_owned(), 80), "abcdef");
        assert_eq!(cut("abcdef".to_owned(), 7), "abcdef");
        assert_eq!(cut("abcdef".to_owned(), 6), "abcde");
        assert_eq!(cut("\u{e4}\u{f6}\u{fc}".to_owned(), 3), "\u{e4}\u{f6}");
        assert_eq!(cut("a".to_owned(), 0), "");
    }
}
