//! Log lines about requests that are refused. Whoever reaches the control address can cause them: of one kind about one address
//! there is one in 10 s, and it is short; the next one says how many were left out.

use std::fmt::{self, Write};
use std::net::SocketAddr;

use net::Repeats;

/// The most characters of what a line quotes from a request: targets and names have up to 16 KiB.
const QUOTED_MAX: usize = 200;

/// Which lines were written lately.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Repeats);

impl Complaints {
    /// Writes that a request `did` something for which it is refused, unless such a line was written a short while ago. `what` is the
    /// request, or its part that matters.
    pub(crate) fn warn(&self, peer: SocketAddr, did: &'static str, what: &dyn fmt::Display) {
        if let Some(left_out) = self.0.admit_from(peer, did) {
            let what = quoted(what);
            tracing::warn!(%peer, what, left_out, "a request to the control address {did}");
        }
    }

    /// Reports the lines that were left out and that no other line follows, for as long as it is polled.
    pub(crate) async fn tell_overdue(&self) {
        let write = |address: &str, did: &str, count| {
            tracing::warn!(
                address,
                "a request to the control address {did}: {count} more lines were left out"
            );
        };
        self.0.tell_overdue(write).await;
    }
}

/// The first characters of a text.
fn quoted(what: &dyn fmt::Display) -> String {
    let mut quoted = Quoted { text: String::new(), left: QUOTED_MAX };
    if write!(quoted, "{what}").is_err() {
        quoted.text.push_str("...");
    }
    quoted.text
}

/// Takes so many further characters, and refuses the rest.
struct Quoted {
    text: String,
    left: usize,
}

impl Write for Quoted {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_has_an_end() {
        let whole = "x".repeat(QUOTED_MAX);
        assert_eq!(quoted(&whole), whole);
        assert_eq!(quoted(&format_args!("{whole}\u{e4}")), format!("{whole}..."));
        assert_eq!(quoted(&"\u{e4}".repeat(16 << 10)).chars().count(), QUOTED_MAX + 3);
    }
}
