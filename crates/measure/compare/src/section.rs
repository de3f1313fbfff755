//! A section of a Markdown document for each protocol: Anabranch beside its peer. The rest of the document stays as it is.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use load::result::{Outcome, ResultFile};
use load::whole_file;
use report::moment;

use crate::contest::Measured;
use crate::error::{Error, Result};
use crate::ratios;

/// Puts the sections into the document: each in the place of the one with its heading, else at the end.
///
/// # Errors
/// Not everything was measured, or nothing beside Anabranch, or the document cannot be read or written: it is as it was, then.
pub fn write(document: &Path, measured: &[Measured]) -> Result<()> {
    let failed = |why: &dyn std::fmt::Display| Error::NotWritten {
        document: document.to_owned(),
        why: why.to_string(),
    };
    if measured.iter().any(|measured| measured.result.outcome != Outcome::Complete) {
        return Err(failed(&"not everything was measured"));
    }
    let pairs = ratios::pairs(measured);
    let beside: Vec<_> = pairs.iter().filter_map(|(own, peer)| peer.map(|peer| (*own, peer))).collect();
    if beside.is_empty() {
        return Err(failed(&"Anabranch was measured alone"));
    }
    let old = fs::read_to_string(document).or_else(|e| match e.kind() {
        ErrorKind::NotFound => Ok(String::new()),
        _ => Err(failed(&e)),
    })?;
    let section = |text: String, (own, peer)| replaced(&text, &heading(own, peer), &body(own, peer));
    let new = beside.into_iter().fold(old, section);
    whole_file::write(document, &new).map_err(|e| failed(&e))
}

/// No version is in it: the section is found again when that is another one.
fn heading(own: &ResultFile, peer: &ResultFile) -> String {
    let dialect = &own.environment.negotiated.dialect;
    format!("# Anabranch beside {}, {dialect}: {}", ratios::short(peer), own.family)
}

fn body(own: &ResultFile, peer: &ResultFile) -> String {
    let host = &own.environment.client;
    let mut text = format!(
        "Made by `anabranch bench peers {} --over {}`: {} beside {}, in turns.\n\
         {}. Rates are operations per second. CPU is the server's CPU time per operation, in\n\
         microseconds. Both are medians. A ratio is Anabranch's figure divided by the other server's: the median of the ratios of\n\
         neighbouring repetitions.\n\n\
         * {}; {} x {}, {}; server and client on this machine\n",
        own.family,
        own.environment.protocol.name(),
        ratios::name(own),
        ratios::name(peer),
        ratios::method(own),
        moment(own.began),
        host.cpus,
        host.cpu,
        host.kernel,
    );
    for setting in ["files on", "tcp congestion control"] {
        if let Some(value) = own.environment.settings.get(setting) {
            let _ = writeln!(text, "* {setting}: {value}");
        }
    }
    for said in ratios::reservations(own, peer) {
        let _ = writeln!(text, "* {said}");
    }
    let (heads, rows) = ratios::table(own, peer);
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let _ = write!(text, "\n{}{}\n", line(&heads), "|---".repeat(heads.len()) + "|");
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

/// The document with this section, which goes on to the next heading of its rank.
fn replaced(document: &str, heading: &str, body: &str) -> String {
    let mut text = String::new();
    let (mut is_told, mut is_old) = (false, false);
    let mut is_code = false;
    for line in document.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with("# ") && !is_code {
            is_old = line == heading;
            if is_old && !is_told {
                let _ = write!(text, "{heading}\n\n{body}\n");
                is_told = true;
            }
        }
        if !is_old {
            text.push_str(line);
            text.push('\n');
        }
    }
    if !is_told {
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        let _ = write!(text, "{gap}{heading}\n\n{body}");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let document = "# One\n\na\n\n# Two\n\n## Part\n\nold\n\n```sh\n# One\n```\n\n# Three\n\nc\n";
        let new = replaced(document, "# Two", "new\n");
        assert_eq!(new, "# One\n\na\n\n# Two\n\nnew\n\n# Three\n\nc\n");
        assert_eq!(replaced(&new, "# Two", "new\n"), new, "again");
        assert_eq!(replaced(&new, "# Three", "d\n"), "# One\n\na\n\n# Two\n\nnew\n\n# Three\n\nd\n");
        assert_eq!(replaced(document, "# One", "b\n").matches("# One").count(), 1 + 1, "code is no heading");
    }

    #[test]
    fn a_section_that_is_not_there_is_added() {
        assert_eq!(replaced("", "# One", "a\n"), "# One\n\na\n");
        assert_eq!(replaced("text\n", "# One", "a\n"), "text\n\n# One\n\na\n");
        assert_eq!(replaced("# One more\n\nb\n", "# One", "a\n"), "# One more\n\nb\n\n# One\n\na\n");
    }
}
