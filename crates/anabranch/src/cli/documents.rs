//! Every command line that the user's pages show is one that the program takes. (`tests/documents.rs` holds what they are said to
//! print against what they print.)

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// What may stand in front of the program on a line: a wrapper, or whose command a piece of advice is.
const BEFORE: [&[&str]; 3] = [&[], &["scripts/own-loopback"], &["on", "server"]];

fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().path()).filter(is_page).collect();
    pages.push(top.join("README.md"));
    pages.sort();
    pages
}

/// The commands of a line as a shell reads it: words with quotes, up to a comment; what is optional is given.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => break,
            (None, '[' | ']') => {}
            (None, ' ' | ';') => {
                if is_word {
                    commands.last_mut().unwrap().push(std::mem::take(&mut word));
                    is_word = false;
                }
                if c == ';' {
                    commands.push(vec![]);
                }
            }
            (None, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        commands.last_mut().unwrap().push(word);
    }
    commands
}

/// The command lines of the program in a command, if it is one: from the name of the program on.
fn of_program(words: &[String]) -> Option<Vec<String>> {
    let (before, line) = words.split_at(words.iter().position(|word| word == "anabranch")?);
    let is_known = BEFORE.iter().any(|known| before == *known);
    // Redirections are the shell's.
    let words = line.iter().filter(|word| !word.contains('>'));
    let given = |word: &String| match word.as_str() {
        // A target that is left out stands elsewhere on the page.
        "..." => "smb://USER:PASSWORD@HOST/SHARE".to_owned(),
        "ADDR:PORT" => "127.0.0.1:8080".to_owned(),
        // The password is that of the variable ANABRANCH_PASSWORD.
        other => other.replace("smb://USER@", "smb://USER:PASSWORD@"),
    };
    is_known.then(|| words.map(given).collect())
}

/// The commands of a page that are set off as such.
fn set_off(page: &str) -> Vec<Vec<String>> {
    let joined = page.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.map(|line| line.trim_start()).map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines.flat_map(commands).filter_map(|words| of_program(&words)).collect()
}

/// Those within the text.
fn within_text(page: &str) -> Vec<Vec<String>> {
    let text: String = page.lines().filter(|line| !line.starts_with("    ")).collect::<Vec<_>>().join(" ");
    let code = text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("anabranch "));
    // Several in one, or one of which a part is left out.
    let is_whole = |code: &&str| !code.contains('|') && !code.contains("...");
    code.filter(is_whole).flat_map(commands).filter_map(|words| of_program(&words)).collect()
}

/// What the parser says of a command line, other than that it is fine.
fn refused(line: &[String]) -> Option<ErrorKind> {
    let refused = Cli::try_parse_from(line).err()?.kind();
    (!matches!(refused, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)).then_some(refused)
}

/// What is within the text may name a command, or a flag, without what must go with it.
fn is_name(line: &[String], refused: ErrorKind) -> bool {
    match refused {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue => line.last().is_some_and(|word| word.starts_with("--")),
        _ => false,
    }
}

#[test]
fn every_command_line_that_the_pages_show_is_taken() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (set_off, within_text) = (set_off(&text), within_text(&text));
        count += set_off.len() + within_text.len();
        let set_off = set_off.into_iter().map(|line| (refused(&line), line));
        let within = within_text
            .into_iter()
            .map(|line| (refused(&line).filter(|refused| !is_name(&line, *refused)), line));
        let refused = set_off.chain(within).filter_map(|(refused, line)| Some((refused?, line)));
        wrong.extend(refused.map(|(why, line)| format!("{}: {}: {why}", page.display(), line.join(" "))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count} command lines");
}

#[test]
fn lines_are_read_as_a_shell_reads_them() {
    let read = |line: &str| commands(line).iter().filter_map(|words| of_program(words)).collect::<Vec<_>>();
    assert_eq!(
        read(r#"anabranch a --plan "b c=1" 'd e' 2>f   # g; h"#),
        [["anabranch", "a", "--plan", "b c=1", "d e"]]
    );
    assert_eq!(
        read("anabranch a; scripts/own-loopback anabranch b [--c]"),
        [vec!["anabranch", "a"], vec!["anabranch", "b", "--c"]]
    );
    assert!(read("The same: anabranch b").is_empty());
}
