//! Content that no line may have.

use crate::words::{before, is_word, places, word_at, words};

/// The faults of a line of any file.
pub(super) fn faults(line: &str) -> impl Iterator<Item = &'static str> {
    let rules = [
        (names_a_machine(line), "a path of one machine"),
        (has_a_note(line), "a note to oneself"),
        (is_unfinished(line), "an unfinished function"),
        (silences(line), "silenced: use expect with a reason"),
    ];
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, what)| what)
}

/// Whether the line names a folder of one machine by an absolute path: not relative to a variable or to another folder.
fn names_a_machine(line: &str) -> bool {
    line.match_indices('/').any(|(at, _)| {
        let inner = before(line, at).is_some_and(|c| is_word(c) || "$}.".contains(c));
        let rest = &line[at + 1..];
        let folder = word_at(rest);
        let further = rest[folder.len()..].strip_prefix('/');
        let home = |further: &str| {
            let user = word_at(further);
            !user.is_empty() && further[user.len()..].starts_with('/')
        };
        !inner
            && further.is_some_and(|further| match folder {
                "work" | "farm" | "root" => true,
                "home" => home(further),
                _ => false,
            })
    })
}

fn has_a_note(line: &str) -> bool {
    words(line).any(|(_, word)| matches!(word, "TODO" | "FIXME" | "XXX"))
}

fn is_unfinished(line: &str) -> bool {
    ["todo!(", "unimplemented!("].iter().any(|call| places(line, call).next().is_some())
}

/// Whether a lint or a test is switched off without a reason.
fn silences(line: &str) -> bool {
    line.match_indices("#[").any(|(at, _)| {
        let attribute = &line[at + 2..];
        matches!(word_at(attribute), "allow" | "ignore") && !attribute.contains("reason")
    })
}

/// A meaningless name in a line of Rust.
pub(super) fn poor_name(line: &str) -> Option<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let names =
        words(code).filter(|(_, word)| matches!(*word, "struct" | "enum" | "trait" | "mod" | "fn" | "type"));
    let names = names.filter_map(|(at, word)| {
        let rest = &code[at + word.len()..];
        let name = rest.trim_start();
        (name.len() < rest.len()).then(|| word_at(name))
    });
    names.into_iter().find(|name| says_nothing(name))
}

fn says_nothing(name: &str) -> bool {
    let ends = ["Manager", "Helper", "Util", "Utils", "Common", "Misc"];
    let whole = ["util", "utils", "helper", "helpers", "common", "misc", "manager"];
    ends.iter().any(|end| name.ends_with(end))
        || whole.contains(&name)
        || name.strip_prefix("get_").is_some_and(|rest| !rest.is_empty() && rest != "mut")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<&'static str> {
        faults(line).collect()
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for line in ["cd /work/x", "\"/root/.cargo\"", "(/farm/a)", "~/home/anna/x"] {
            assert_eq!(found(line), ["a path of one machine"], "{line}");
        }
        for line in
            ["$HOME/work/x", "${top}/root/a", "a/work/b", "./root/x", "/home/*/x", "/workshop/", "/work"]
        {
            assert!(found(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn notes_and_unfinished_functions_are_found() {
        assert_eq!(found("// TODO: later"), ["a note to oneself"]);
        assert_eq!(found("FIXME XXX"), ["a note to oneself"]);
        assert_eq!(found("    todo!()"), ["an unfinished function"]);
        assert_eq!(found("unimplemented!(\"x\")"), ["an unfinished function"]);
        for line in ["TODOS", "XXXX", "my_todo!()", "todo()"] {
            assert!(found(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn silence_needs_a_reason() {
        assert_eq!(found("#[allow(dead_code)]"), ["silenced: use expect with a reason"]);
        assert_eq!(found("#[ignore]"), ["silenced: use expect with a reason"]);
        for line in ["#[ignore = \"a reason\"]", "#[expect(dead_code, reason = \"x\")]", "#[allowed]"] {
            assert!(found(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for (line, name) in [
            ("pub struct SessionManager;", "SessionManager"),
            ("mod util;", "util"),
            ("    pub(crate) fn  get_name() {}", "get_name"),
            ("const fn a(); enum Misc {}", "Misc"),
        ] {
            assert_eq!(poor_name(line), Some(name), "{line}");
        }
        for line in [
            "struct Managers;",
            "// struct Helper;",
            "fn get_()",
            "fn get_mut()",
            "let helper = 1;",
            "fn utility()",
        ] {
            assert_eq!(poor_name(line), None, "{line}");
        }
    }
}
