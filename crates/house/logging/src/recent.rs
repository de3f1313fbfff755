//! The last lines of the log, kept in memory for those who cannot read standard error.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The most lines.
pub const LINES_MAX: usize = 1000;
/// The most bytes of all lines together.
const BYTES_MAX: usize = 256 << 10;
/// The most bytes of a line; the rest is left out.
const LINE_BYTES_MAX: usize = 4 << 10;

static RECENT: Recent = Recent::new();

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentLine {
    /// The number of the line since the program started; the first has number 1.
    pub number: u64,
    /// The line, without its end.
    pub text: String,
}

/// The last lines of the log that have a higher number than `after`, oldest first.
#[must_use]
pub fn recent_lines(after: u64) -> Vec<RecentLine> {
    RECENT.after(after)
}

/// Keeps a line.
pub(crate) fn keep(line: &[u8]) {
    RECENT.keep(line);
}

struct Recent {
    /// Guards the lines and their sums.
    kept: Mutex<Kept>,
}

struct Kept {
    lines: VecDeque<RecentLine>,
    bytes: usize,
    /// The number of the last line.
    last: u64,
}

impl Recent {
    const fn new() -> Self {
        Self { kept: Mutex::new(Kept { lines: VecDeque::new(), bytes: 0, last: 0 }) }
    }

    fn keep(&self, line: &[u8]) {
        let line = line.get(..LINE_BYTES_MAX).unwrap_or(line).trim_ascii_end();
        let text = String::from_utf8_lossy(line).into_owned();
        let mut kept = self.kept.lock();
        kept.last += 1;
        kept.bytes += text.len();
        let number = kept.last;
        kept.lines.push_back(RecentLine { number, text });
        while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.text.len();
        }
    }

    fn after(&self, after: u64) -> Vec<RecentLine> {
        let kept = self.kept.lock();
        kept.lines.iter().filter(|line| line.number > after).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_with_their_numbers() {
        let recent = Recent::new();
        for n in 1..=LINES_MAX + 3 {
            recent.keep(format!("line {n}\n").as_bytes());
        }
        let all = recent.after(0);
        assert_eq!((all.len(), all[0].number, all[0].text.as_str()), (LINES_MAX, 4, "line 4"));
        let last = LINES_MAX as u64 + 3;
        let since = recent.after(last - 1);
        assert_eq!(since, [RecentLine { number: last, text: format!("line {last}") }]);
        assert!(recent.after(last).is_empty());
    }

    #[test]
    fn long_lines_are_cut_and_push_others_out() {
        let recent = Recent::new();
        recent.keep(b"short");
        recent.keep(&vec![b'x'; LINE_BYTES_MAX + 1]);
        assert_eq!(recent.after(1)[0].text.len(), LINE_BYTES_MAX);
        assert_eq!(recent.after(0).len(), 2);
        for _ in 0..BYTES_MAX / LINE_BYTES_MAX {
            recent.keep(&[0xff; LINE_BYTES_MAX]);
        }
        let kept = recent.after(0);
        assert!(kept[0].number > 2 && kept.iter().map(|line| line.text.len()).sum::<usize>() <= BYTES_MAX);
    }
}
