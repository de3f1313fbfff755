//! The phrases that the glossary of CONTRIBUTING.md does not allow.

use super::Texts;
use crate::words::{before, is_word};

const PAGE: &str = "CONTRIBUTING.md";
/// Pages that may use these phrases: that of the glossary itself, and that of the past.
const UNCHECKED: [&str; 2] = [PAGE, "CHANGELOG.md"];
/// The sources of this check, whose tests have such phrases.
const OWN: &str = "xtask/src/tidy/";

/// The phrases of two or more words in the last column. Single words also have other meanings.
pub(super) struct Glossary {
    phrases: Vec<String>,
}

impl Glossary {
    pub(super) fn read(texts: &Texts<'_>) -> Result<Self, String> {
        let phrases = phrases(&String::from_utf8_lossy(&texts.read(PAGE)?));
        if phrases.is_empty() {
            return Err(format!("{PAGE}: the glossary forbids no phrase: has its form changed?"));
        }
        Ok(Self { phrases })
    }

    /// The places where a page, or a comment or message of a source, uses a phrase or its plural. Code has no phrases.
    pub(super) fn faults(&self, path: &str, text: &str) -> Vec<String> {
        let is_checked = path.ends_with(".md") || path.ends_with(".rs");
        if !is_checked || UNCHECKED.contains(&path) || path.starts_with(OWN) {
            return Vec::new();
        }
        let (mut wrong, mut at) = (Vec::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            let begins = is_word(c) && !before(text, at).is_some_and(is_word);
            let length = self.phrases.iter().filter(|_| begins).find_map(|p| length(&text[at..], p));
            if let Some(length) = length {
                let line = text[..at].matches('\n').count() + 1;
                let phrase = text[at..at + length].split_whitespace().collect::<Vec<_>>().join(" ");
                wrong.push(format!("line {line}: the glossary does not allow \"{phrase}\""));
            }
            at += length.unwrap_or_else(|| c.len_utf8());
        }
        wrong
    }
}

fn phrases(page: &str) -> Vec<String> {
    let section = page.split_once("## Glossary").map_or("", |(_, section)| section);
    let section = section.split("\n## ").next().unwrap_or_default();
    // Skip the heading and the line below it.
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.trim_matches(['|', ' ']).split('|').collect::<Vec<_>>());
    let last = cells.filter(|cells| cells.len() == 3).map(|cells| cells[2]);
    let phrases = last.flat_map(|cell| cell.split(',')).map(str::trim);
    phrases.filter(|phrase| phrase.contains(' ') && !phrase.contains('(')).map(str::to_owned).collect()
}

/// The length of a phrase at the start of a text, in any case and with any whitespace between its words.
fn length(text: &str, phrase: &str) -> Option<usize> {
    let mut rest = text;
    for (index, word) in phrase.split(' ').enumerate() {
        if index > 0 {
            let next = rest.trim_start();
            rest = (next.len() < rest.len()).then_some(next)?;
        }
        let begin = rest.get(..word.len()).filter(|begin| begin.eq_ignore_ascii_case(word))?;
        rest = &rest[begin.len()..];
    }
    let plural = rest.strip_prefix(['s', 'S']);
    let end = [plural, Some(rest)].into_iter().flatten().find(|rest| !rest.starts_with(is_word))?;
    Some(text.len() - end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRIBUTING: &str = "# A\n\n## Glossary\n\nWords:\n\n| term | meaning | do not write |\n|---|---|---|\n\
        | open | a file | handle |\n| admit | let | let in, take |\n| lease time | x | lease (alone) |\n\
        | user | a uid | |\n| filehandle | x | file handle |\n\n## After\n\n| a | b | c d |\n";

    fn found(text: &str) -> Vec<String> {
        Glossary { phrases: phrases(CONTRIBUTING) }.faults("docs/a.md", text)
    }

    #[test]
    fn phrases_of_words_are_taken_from_the_last_column() {
        assert_eq!(phrases(CONTRIBUTING), ["let in", "file handle"]);
        assert!(phrases("# A\n").is_empty());
    }

    #[test]
    fn phrases_are_found_across_lines_and_in_the_plural() {
        let wanted = [
            "line 1: the glossary does not allow \"Let in\"",
            "line 1: the glossary does not allow \"file handles\"",
            "line 3: the glossary does not allow \"file handle\"",
        ];
        assert_eq!(found("Let in: file handles.\n\na file\n  handle"), wanted);
        assert!(found("outlet in, let inside, filehandle, profile handle, file handler").is_empty());
    }

    #[test]
    fn the_glossary_itself_is_free() {
        let glossary = Glossary { phrases: phrases(CONTRIBUTING) };
        assert!(glossary.faults(PAGE, "let in").is_empty());
        assert!(glossary.faults("xtask/src/tidy/tests.rs", "let in").is_empty());
        assert!(glossary.faults("a.sh", "let in").is_empty());
    }

    #[test]
    fn comments_and_messages_of_sources_are_checked_and_code_is_not() {
        let glossary = Glossary { phrases: phrases(CONTRIBUTING) };
        let found = |text| glossary.faults("crates/a.rs", text).len();
        assert_eq!((found("// let in\n"), found("say(\"a file handle\");")), (1, 1));
        assert_eq!(found("let in_use = file_handle(let_in);"), 0);
    }
}
