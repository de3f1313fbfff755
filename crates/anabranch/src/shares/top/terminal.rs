//! The terminal: its size, and keys that take effect without Enter.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::View;

/// Rows and columns where the terminal does not say how many it has.
const SIZE_DEFAULT: (usize, usize) = (24, 80);

/// The rows of a table, with so many lines around it, and the columns that the terminal has.
pub(super) fn size(other_lines: usize) -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let (rows, columns) =
        size.map_or(SIZE_DEFAULT, |size| (usize::from(size.ws_row), usize::from(size.ws_col)));
    (rows.saturating_sub(other_lines).max(1), columns)
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Show(View),
}

/// The keys of the terminal, until this is dropped.
pub(super) struct Keys {
    before: Termios,
}

impl Keys {
    /// None: standard input is not a terminal.
    pub(super) fn start() -> Option<Self> {
        let stdin = io::stdin();
        let before = isatty(&stdin).then(|| tcgetattr(&stdin).ok()).flatten()?;
        let mut raw = before.clone();
        // Ctrl-C is a key like the others: the terminal is given back as it was.
        raw.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }

    /// Waits for a key that means something, for this time at most.
    pub(super) fn wait(&self, time: Duration) -> Option<Key> {
        let end = Instant::now() + time;
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            let stdin = io::stdin();
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            let left = Timespec::try_from(left).ok()?;
            match poll(&mut polled, Some(&left)) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Some(Key::Quit),
            }
            let mut byte = [0];
            match read(&stdin, &mut byte) {
                Ok(1) => {}
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                // The terminal has gone.
                Ok(_) | Err(_) => return Some(Key::Quit),
            }
            if let Some(key) = meaning(byte[0]) {
                return Some(key);
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn meaning(byte: u8) -> Option<Key> {
    /// Ctrl-C and Ctrl-D.
    const ENDS: [u8; 2] = [3, 4];
    match byte {
        b'q' | b'Q' => Some(Key::Quit),
        _ if ENDS.contains(&byte) => Some(Key::Quit),
        b'o' | b'O' => Some(Key::Show(View::Operations)),
        b'c' | b'C' => Some(Key::Show(View::Clients)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_meanings() {
        assert_eq!([b'q', 3, 4].map(meaning), [Some(Key::Quit); 3]);
        assert_eq!(meaning(b'c'), Some(Key::Show(View::Clients)));
        assert_eq!(meaning(b'o'), Some(Key::Show(View::Operations)));
        assert_eq!(meaning(b'x'), None);
    }
}
