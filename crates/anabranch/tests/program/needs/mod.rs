//! What a test needs beside the program, and what becomes of the test where that is missing.

use std::io::{self, Write};

/// What came of running a program that `scripts/install-test-deps` installs. A missing one fails the test where `CI` is set, as in
/// `scripts/test`; elsewhere the test says so and ends.
pub(crate) fn installed<T>(program: &str, ran: io::Result<T>) -> Option<T> {
    if let Err(e) = &ran {
        assert!(std::env::var_os("CI").is_none(), "{program}: {e} (scripts/install-test-deps installs it)");
        not_tested(&format!("{program}: {e}"));
    }
    ran.ok()
}

/// Says that the test, or the rest of it, is not run here. This goes past libtest, which shows nothing that a test prints if it
/// passes; `scripts/test` repeats it.
pub(crate) fn not_tested(why: &str) {
    let thread = std::thread::current();
    let line = format!("not tested: {}: {}\n", thread.name().unwrap_or("?"), why.trim_end());
    let _ = io::stderr().write_all(line.as_bytes()); // one write, so that other tests' lines do not get into this one
}
