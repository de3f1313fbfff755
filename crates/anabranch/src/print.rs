//! What commands print.

use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, Write};
use std::time::Duration;

use state::copies;

use crate::problem::{Cause, Problem, Result};

/// Prints text in which there may be what others say: the lines are ours, and what is in them is text.
pub(crate) fn print(text: &str) -> Result<()> {
    let text = text.split('\n').map(harmless).collect::<Vec<_>>().join("\n");
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|e| Problem::new(Cause::Asking, format!("cannot print: {e}"), "")),
    }
}

/// As JSON, for programs.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|e| Problem::new(Cause::Asking, format!("cannot write JSON: {e}"), ""))?;
    text.push('\n');
    Ok(text)
}

/// A time for people: its one or two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    copies::told(Duration::from_secs(seconds))
}

/// A number of bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = UNITS.iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let (whole, tenth) = (bytes / unit, bytes % unit * 10 / unit);
    if tenth == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenth} {name}") }
}

/// A time for people.
pub(crate) fn latency(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// A number of things: `1 channel`, `2 channels`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    counted_as(count, thing, &format!("{thing}s"))
}

/// The same, of things that are not named otherwise by an `s` alone: `1 directory`, `2 directories`.
pub(crate) fn counted_as<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let thing = if count == N::from(1) { one } else { many };
    format!("{count} {thing}")
}

/// Text of a client's: it cannot write to the terminal what it likes, nor turn what stands around it about. What is left
/// in JSON is escaped as there.
pub(crate) fn harmless(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) {
            let _ = write!(harmless, "\\u{:04x}", u32::from(c));
        } else {
            harmless.push(c);
        }
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (bytes(1023), bytes(1024), bytes(1536)),
            ("1023 B".into(), "1 KiB".into(), "1.5 KiB".into())
        );
        assert_eq!(bytes(100 << 40), "100 TiB");
        assert_eq!(
            (latency(0.000_25), latency(0.0025), latency(2.5)),
            ("250 us".into(), "2.50 ms".into(), "2.50 s".into())
        );
    }

    #[test]
    fn clients_do_not_write_to_the_terminal() {
        assert_eq!(harmless("/d\u{e4}ta\u{1b}[2J"), "/d\u{e4}ta\\u001b[2J");
        assert_eq!(harmless("a\u{9b}2J\u{202e}b"), "a\\u009b2J\\u202eb");
        // JSON leaves those above ASCII as they are.
        let text = json(&"a\u{9b}\u{7f}\n").unwrap();
        let printed: String = text.lines().map(harmless).collect();
        assert!(printed.is_ascii() && !printed.contains('\u{7f}'), "{printed:?}");
        assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), "a\u{9b}\u{7f}\n");
    }
}
