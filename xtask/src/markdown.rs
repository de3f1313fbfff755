//! Tables and sections of pages.

use std::fs;
use std::path::Path;

/// A table without a final newline.
pub(crate) fn table<R: AsRef<[String]>>(heads: &[&str], rows: &[R]) -> String {
    let mut lines = vec![row(heads), format!("|{}", "---|".repeat(heads.len()))];
    lines.extend(rows.iter().map(|cells| row(cells.as_ref())));
    lines.join("\n")
}

/// A row of a table. An empty cell is written as one blank.
fn row<S: AsRef<str>>(cells: &[S]) -> String {
    let cells = cells.iter().map(|cell| match cell.as_ref() {
        "" => " |".to_owned(),
        cell => format!(" {cell} |"),
    });
    "|".to_owned() + &cells.collect::<String>()
}

/// Whether a goal was reached, as a word.
pub(crate) fn reached(yes: bool) -> &'static str {
    if yes { "reached" } else { "**missed**" }
}

/// Replaces the section with the same heading, or appends the section to the page. The rest of the page stays
/// unchanged.
pub(crate) fn write_section(page: &Path, section: &str) -> Result<(), String> {
    let problem = |e: std::io::Error| format!("{}: {e}", page.display());
    let text = match fs::read_to_string(page) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(problem)?,
    };
    fs::write(page, with_section(&text, section)).map_err(problem)
}

fn with_section(page: &str, section: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    for line in page.split_inclusive('\n') {
        match parts.last_mut() {
            Some(part) if !line.starts_with("# ") => part.push_str(line),
            _ => parts.push(line.to_owned()),
        }
    }
    match parts.iter_mut().find(|part| part.lines().next() == Some(heading)) {
        Some(old) => section.clone_into(old),
        None => parts.push(section.to_owned()),
    }
    let ended = parts.iter().map(|part| part.trim_end_matches('\n').to_owned() + "\n");
    ended.collect::<Vec<_>>().join("\n")
}

/// Puts a text between the marks `<!-- made by MAKER -->` and `<!-- end -->` of a page.
pub(crate) fn write_between_marks(page: &Path, maker: &str, text: &str) -> Result<(), String> {
    let name = page.display();
    let old = fs::read_to_string(page).map_err(|e| format!("{name}: {e}"))?;
    let new =
        between_marks(&old, maker, text).ok_or_else(|| format!("{name} has no part made by {maker}"))?;
    fs::write(page, new).map_err(|e| format!("{name}: {e}"))
}

fn between_marks(page: &str, maker: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- made by {maker} -->\n"), "<!-- end -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{text}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_heads_and_rows() {
        let rows = [["a", ""].map(str::to_owned)];
        assert_eq!(table(&["", "b"], &rows), "| | b |\n|---|---|\n| a | |");
    }

    #[test]
    fn a_section_takes_the_place_of_the_old_one() {
        let page = "# A\n\na\n\n# B\n\nb\n\n## C\n\n# D\n\nd\n";
        assert_eq!(with_section(page, "# B\n\nnew"), "# A\n\na\n\n# B\n\nnew\n\n# D\n\nd\n");
        assert_eq!(with_section("# A\n", "# B\n"), "# A\n\n# B\n");
        assert_eq!(with_section("", "# B\n"), "# B\n");
    }

    #[test]
    fn a_part_lies_between_marks() {
        let page = "x\n<!-- made by a -->\nold\n<!-- end -->\ny\n";
        let wanted = "x\n<!-- made by a -->\nnew\n<!-- end -->\ny\n";
        assert_eq!(between_marks(page, "a", "new").as_deref(), Some(wanted));
        assert_eq!(between_marks(page, "b", "new"), None);
    }
}
