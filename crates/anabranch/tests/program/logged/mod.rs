//! What a server's log says. Its lines are written behind what they tell of.

use std::path::Path;
use std::time::{Duration, Instant};

/// The log, once these words are in it.
pub(crate) fn logged(log: &Path, words: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let said = std::fs::read_to_string(log).unwrap();
        if said.contains(words) {
            return said;
        }
        assert!(Instant::now() < deadline, "{words:?} is not in {said}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
