//! Links of pages to files and headings, and pages that a source mentions.

use std::collections::BTreeSet;

use super::Texts;
use crate::words::{before, is_word, word_at};

/// Links to files and headings that do not exist, and missing pages of docs that a text mentions.
pub(super) fn faults(path: &str, text: &str, texts: &Texts<'_>) -> Vec<String> {
    let missing = pages(text).into_iter().filter(|page| !texts.paths.contains(*page));
    let mut wrong: Vec<_> = missing.map(|page| format!("names {page}, which is not there")).collect();
    if !path.ends_with(".md") {
        return wrong;
    }
    for target in targets(text) {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
        if !texts.paths.contains(&file) && !texts.top.join(&file).is_dir() {
            wrong.push(format!("links to {target}: no such file"));
        } else if !anchor.is_empty() && file.ends_with(".md") && !has_heading(&file, anchor, texts) {
            wrong.push(format!("links to {target}: no such heading"));
        }
    }
    wrong
}

/// Pages below `docs` that a text mentions by their paths from the top.
fn pages(text: &str) -> BTreeSet<&str> {
    let of_path = |c: char| is_word(c) || c == '/' || c == '-';
    let named = text.match_indices("docs/").filter_map(|(at, folder)| {
        if before(text, at).is_some_and(|c| of_path(c) || c == '.') {
            return None;
        }
        let rest = &text[at + folder.len()..];
        let name = rest.find(|c| !of_path(c)).filter(|length| *length > 0)?;
        rest[name..].starts_with(".md").then(|| &text[at..at + folder.len() + name + ".md".len()])
    });
    named.collect()
}

/// The targets of the links of a page, except those to other sites.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    page.match_indices("](").filter_map(|(at, mark)| {
        let rest = &page[at + mark.len()..];
        let scheme = word_at(rest);
        if !scheme.is_empty() && rest[scheme.len()..].starts_with(':') {
            return None;
        }
        let end = rest.find(|c: char| c == ')' || c.is_whitespace()).filter(|end| *end > 0)?;
        rest[end..].starts_with(')').then(|| &rest[..end])
    })
}

/// The path from the top for a `file` that a page names relative to itself.
fn beside(page: &str, file: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names = Vec::new();
    for name in folder.split('/').chain(file.split('/')) {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

fn has_heading(page: &str, anchor: &str, texts: &Texts<'_>) -> bool {
    let raw = texts.read(page).unwrap_or_default();
    let text = String::from_utf8_lossy(&raw);
    text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line.trim_start_matches('#')) == anchor)
}

/// The anchor that a heading of a page has.
fn slug(heading: &str) -> String {
    let mut plain = String::new();
    let lower = heading.trim().to_lowercase();
    let mut rest = lower.as_str();
    while let Some(c) = rest.chars().next() {
        // Only the text of a link counts.
        if let Some((_, after)) = rest.strip_prefix("](").and_then(|link| link.split_once(')')) {
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            ' ' => plain.push('-'),
            c if is_word(c) || c == '-' => plain.push(c),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_docs() {
        let text = "see docs/a-b/c.md and `docs/d.md#e`, not docs/e, x/docs/f.md, ../docs/g.md or docs/.md";
        assert_eq!(pages(text).into_iter().collect::<Vec<_>>(), ["docs/a-b/c.md", "docs/d.md"]);
    }

    #[test]
    fn targets_are_those_of_this_site() {
        let text = "[a](b.md) [c](https://d) [e](#f) [g]() [h](i j) [k](l/m#n)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["b.md", "#f", "l/m#n"]);
    }

    #[test]
    fn a_path_is_beside_its_page() {
        assert_eq!(beside("docs/adr/a.md", "../b.md"), "docs/b.md");
        assert_eq!(beside("README.md", "./docs//a.md"), "docs/a.md");
        assert_eq!(beside("a.md", "../b.md"), "../b.md");
    }

    #[test]
    fn a_heading_has_an_anchor() {
        assert_eq!(slug(" What `a_b` *costs*: 4.1, [see](there.md) [here] "), "what-a_b-costs-41-see-here");
    }
}
