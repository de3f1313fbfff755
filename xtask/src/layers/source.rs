//! Source files, without comments, strings and tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::words::{is_word, places};

/// Prefixes of paths that use the clock, threads, sockets or files.
const IMPURE: [&str; 8] = [
    "Instant::now",
    "SystemTime::now",
    "std::thread",
    "std::net::Tcp",
    "std::net::Udp",
    "std::fs::",
    "thread::spawn",
    "thread::sleep",
];

/// The only file of a pure crate that may start threads, which may wait for a store.
const STARTS_THREADS: &str = "crates/store/storage/src/wait.rs";

/// Paths of the source files below a folder, without files of tests.
pub(super) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" && !folder.ends_with("tests") {
            found.push(path);
        }
    }
    found
}

/// The lines of a source without comments and strings. Lines of items that only tests have are empty.
pub(super) fn code(source: &str) -> Vec<String> {
    let mut item = Item::Kept;
    source.lines().map(|line| item.pass(without_strings(line))).collect()
}

/// The state of the reader: whether it is in an item that only tests have.
enum Item {
    Kept,
    /// `#[cfg(test)]` was read, but not yet the first line of its item.
    Announced,
    /// This line ends the item.
    Until(String),
}

impl Item {
    /// Passes a line on, or returns an empty one in its place.
    fn pass(&mut self, line: String) -> String {
        let last = match self {
            Self::Kept if line.trim() == "#[cfg(test)]" => {
                *self = Self::Announced;
                false
            }
            Self::Kept => return line,
            Self::Announced if line.ends_with('{') => {
                let indent = line.len() - line.trim_start().len();
                *self = Self::Until(format!("{}}}", &line[..indent]));
                false
            }
            Self::Announced => line.ends_with(';'),
            Self::Until(end) => line == *end,
        };
        if last {
            *self = Self::Kept;
        }
        String::new()
    }
}

/// A line without its comment and trailing blanks. Strings are empty.
fn without_strings(line: &str) -> String {
    let (mut plain, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('"') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let length = string_length(from);
        plain.push_str(if length.is_some() { "\"\"" } else { "\"" });
        rest = &from[length.unwrap_or(1)..];
    }
    plain.push_str(rest);
    plain.split("//").next().unwrap_or_default().trim_end().to_owned()
}

/// The length of the string, with its quotes, with which a text begins.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Uses of the clock, threads, sockets or files outside tests, in the sources below `folder`.
pub(super) fn impure_lines(folder: &Path, top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources(folder) {
        let source = fs::read_to_string(&path).unwrap_or_default();
        let lines = code(&source);
        let is_fault =
            |line: &str| is_impure(line) && !(path.ends_with(STARTS_THREADS) && line.contains("std::thread"));
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_fault(line)) {
            let shown = path.strip_prefix(top).unwrap_or(&path).display();
            found.push(format!("{shown}:{}: {}", number + 1, line.trim()));
        }
    }
    found
}

fn is_impure(line: &str) -> bool {
    // A longer word than `std::thread` is a different word.
    let whole =
        |wanted: &str, at: usize| wanted != "std::thread" || !line[at + wanted.len()..].starts_with(is_word);
    IMPURE.iter().any(|wanted| places(line, wanted).any(|at| whole(wanted, at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_no_code() {
        assert_eq!(code("let a = \"x // \\\" y\"; // std::fs::read\n  b  \n"), ["let a = \"\";", "  b"]);
        assert_eq!(code("let quote = '\"'; \"open\n"), ["let quote = '\"\"open"]);
    }

    #[test]
    fn items_of_tests_are_no_code() {
        let source = "a\n#[cfg(test)]\nmod tests;\nb\n    #[cfg(test)]\n    fn c() {\n        d\n    }\ne\n";
        assert_eq!(code(source), ["a", "", "", "b", "", "", "", "", "e"]);
    }

    #[test]
    fn clocks_threads_sockets_and_files_are_impure() {
        for line in [
            "Instant::now()",
            "let now = time::SystemTime::now();",
            "use std::thread;",
            "std::thread::spawn(f)",
            "std::net::TcpStream",
            "std::net::UdpSocket",
            "std::fs::read(path)",
            "thread::spawn(f)",
            "thread::sleep(time)",
        ] {
            assert!(is_impure(line), "{line}");
        }
        for line in ["MyInstant::now()", "std::threads", "std::net::IpAddr", "std::fs", "thread_spawn"] {
            assert!(!is_impure(line), "{line}");
        }
    }
}
