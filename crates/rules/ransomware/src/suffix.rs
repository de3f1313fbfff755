//! Files of several kinds that get one and the same suffix.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Files of so many kinds (by their suffixes before) must have got the suffix. One kind is what a program does that renames
/// `.jpeg` to `.jpg`.
const KINDS: usize = 3;
/// Suffixes of one client that are remembered.
const SUFFIXES_MAX: usize = 16;
/// Files whose suffix may turn out to be one of ransomware.
const WAITING_MAX: usize = 64;
/// The longest suffix that is remembered, in bytes.
const BYTES_MAX: usize = 64;
/// Suffixes that people and programs give files of all kinds, and those of formats into which files are converted.
const USUAL: &[&[u8]] = &[
    b"bak",
    b"backup",
    b"old",
    b"orig",
    b"save",
    b"sav",
    b"tmp",
    b"temp",
    b"part",
    b"partial",
    b"new",
    b"done",
    b"del",
    b"deleted",
    b"removed",
    b"disabled",
    b"rej",
    b"swp",
    b"lock",
    b"gz",
    b"bz2",
    b"xz",
    b"zst",
    b"zip",
    b"7z",
    b"gpg",
    b"asc",
    b"age",
    b"txt",
    b"md",
    b"htm",
    b"html",
    b"xml",
    b"json",
    b"yml",
    b"yaml",
    b"csv",
    b"log",
    b"conf",
    b"ini",
    b"jpg",
    b"jpeg",
    b"png",
    b"pdf",
    b"doc",
    b"docx",
    b"xls",
    b"xlsx",
    b"ppt",
    b"pptx",
    b"odt",
    b"ods",
    b"mp3",
    b"mp4",
    b"mov",
    b"py",
    b"js",
    b"ts",
    b"css",
    b"java",
    b"c",
    b"h",
    b"rs",
    b"go",
    b"o",
    b"a",
    b"so",
];

/// The suffixes that a client has given files lately.
#[derive(Debug)]
pub(crate) struct Suffixes<F>(VecDeque<Given<F>>);

#[derive(Debug)]
struct Given<F> {
    suffix: Vec<u8>,
    last: Instant,
    /// The suffixes of before: [`KINDS`] at most.
    kinds: Vec<Vec<u8>>,
    /// Files that got it before it was given to files of so many kinds.
    waiting: Vec<F>,
}

/// Files that have got a suffix as ransomware gives it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marked<F> {
    pub(crate) suffix: Vec<u8>,
    pub(crate) files: Vec<F>,
}

impl<F> Default for Suffixes<F> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<F: Copy + Eq + Hash> Suffixes<F> {
    /// A file gets another name. Returns the files that count as marked from now on.
    pub(crate) fn renamed(
        &mut self,
        file: F,
        (from, to): (&[u8], &[u8]),
        (now, within): (Instant, Duration),
    ) -> Option<Marked<F>> {
        let suffix = suffix_of(to).filter(|suffix| !USUAL.contains(&&suffix[..]))?;
        let kind = suffix_of(from).unwrap_or_default();
        // A program that writes to another file first (`.name.Xa3f9Q`) gives the file the name that it is to have.
        let was_temporary = from.windows(to.len()).any(|part| part == to);
        if kind == suffix || was_temporary {
            return None;
        }
        self.0.retain(|given| now.saturating_duration_since(given.last) < within);
        let mut given = match self.0.iter().position(|given| given.suffix == suffix) {
            Some(at) => self.0.remove(at)?,
            None => Given { suffix, last: now, kinds: Vec::new(), waiting: Vec::new() },
        };
        given.last = now;
        if given.kinds.len() < KINDS && !given.kinds.contains(&kind) {
            given.kinds.push(kind);
        }
        if given.waiting.len() < WAITING_MAX {
            given.waiting.push(file);
        }
        let marked = (given.kinds.len() == KINDS)
            .then(|| Marked { suffix: given.suffix.clone(), files: std::mem::take(&mut given.waiting) });
        if self.0.len() == SUFFIXES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(given);
        marked
    }
}

/// What is behind the last dot of a name, in small letters (ASCII). None for a name without a suffix.
fn suffix_of(name: &[u8]) -> Option<Vec<u8>> {
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0)?;
    let suffix = name.get(dot + 1..)?;
    (1..=BYTES_MAX).contains(&suffix.len()).then(|| suffix.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    fn renamed(suffixes: &mut Suffixes<u32>, file: u32, from: &str, to: &str, now: Instant) -> Vec<u32> {
        let marked = suffixes.renamed(file, (from.as_bytes(), to.as_bytes()), (now, WITHIN));
        marked.map(|marked| marked.files).unwrap_or_default()
    }

    #[test]
    fn a_suffix_counts_when_files_of_three_kinds_have_it() {
        let (mut suffixes, now) = (Suffixes::default(), Instant::now());
        assert_eq!(renamed(&mut suffixes, 1, "a.docx", "a.docx.crypted", now), []);
        assert_eq!(renamed(&mut suffixes, 2, "b.docx", "b.crypted", now), []);
        assert_eq!(renamed(&mut suffixes, 3, "c.jpg", "c.jpg.CRYPTED", now), []);
        assert_eq!(renamed(&mut suffixes, 4, "README", "README.crypted", now), [1, 2, 3, 4]);
        assert_eq!(renamed(&mut suffixes, 5, "d.docx", "x5f3.crypted", now), [5]);
    }

    #[test]
    fn other_renames_do_not_count() {
        let (mut suffixes, now) = (Suffixes::default(), Instant::now());
        for (from, to) in [
            ("a.jpeg", "a.jpg"),
            ("b.jpeg", "b.jpg"),
            ("c.JPG", "c.jpg"),
            ("d.jpg", "e.jpg"),
            ("f.c", "f.c.bak"),
            ("g.h", "g.h.bak"),
            ("h.rs", "h.rs.bak"),
            ("i.docx", "i"),
            (".l.xyz.Xa3f9Q", "l.xyz"),
            (".m.xyz.b7Tq0L", "m.xyz"),
            (".n.xyz.9fGhWe", "n.xyz"),
            ("o.htm", "o.txt"),
            ("p.php", "p.txt"),
            ("q.md", "q.txt"),
            ("j.docx", ".hidden"),
            ("k.docx", "k."),
        ] {
            assert_eq!(renamed(&mut suffixes, 1, from, to, now), [], "{from} to {to}");
        }
    }

    #[test]
    fn a_suffix_is_forgotten_when_nothing_gets_it_any_more() {
        let (mut suffixes, now) = (Suffixes::default(), Instant::now());
        renamed(&mut suffixes, 1, "a.a", "a.x", now);
        renamed(&mut suffixes, 2, "b.b", "b.x", now + WITHIN / 2);
        assert_eq!(renamed(&mut suffixes, 3, "c.c", "c.x", now + WITHIN * 3 / 2), []);
    }

    #[test]
    fn so_many_suffixes_are_remembered_and_no_more() {
        let (mut suffixes, now) = (Suffixes::default(), Instant::now());
        for number in 0..1000 {
            renamed(&mut suffixes, number, "a.a", &format!("a.x{number}"), now);
        }
        assert_eq!(suffixes.0.len(), SUFFIXES_MAX);
    }
}
