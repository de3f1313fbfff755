//! Lines of smb.conf(5), as `lib/util/tini.c` reads them: comments and blank lines left out, continued lines joined, runs of white
//! space as one character.

/// A line, and the number of the line on which it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
}

fn is_space(c: char) -> bool {
    // isspace(3) in the C locale.
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut physical = (1_usize..).zip(text.split('\n')).peekable();
    while let Some((number, first)) = physical.next() {
        let first = first.trim_start_matches(is_space);
        if first.is_empty() || first.starts_with(['#', ';']) {
            continue;
        }
        let mut line = String::new();
        squeeze(&mut line, first);
        // The last line of a file that does not end with a line break is not continued.
        while physical.peek().is_some() && take_continuation(&mut line) {
            if let Some((_, next)) = physical.next() {
                squeeze(&mut line, next);
            }
        }
        lines.push(Line { number, text: line });
    }
    lines
}

/// Appends, with the first character of each run of white space only.
fn squeeze(line: &mut String, more: &str) {
    for c in more.chars() {
        if !(is_space(c) && line.ends_with(is_space)) {
            line.push(c);
        }
    }
}

/// Takes the `\` at the end, which one white space may follow; false: there is none.
fn take_continuation(line: &mut String) -> bool {
    let end = line.strip_suffix(is_space).unwrap_or(line);
    let Some(end) = line.strip_suffix('\\').or_else(|| end.strip_suffix('\\')) else { return false };
    line.truncate(end.len());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, String)> {
        lines(text).into_iter().map(|Line { number, text }| (number, text)).collect()
    }

    #[test]
    fn comments_are_left_out_and_white_space_is_squeezed() {
        let text = "# a\n  ; b\n\n \t x  \t=  1 ; c\r\n[s]\n";
        assert_eq!(read(text), [(4, "x = 1 ; c\r".to_owned()), (5, "[s]".to_owned())]);
    }

    #[test]
    fn a_backslash_continues_a_line() {
        assert_eq!(read("a = b \\ \n  c\\\n;d\ne"), [(1, "a = b c;d".to_owned()), (4, "e".to_owned())]);
        assert_eq!(read("; a \\\nb"), [(2, "b".to_owned())]);
        assert_eq!(read("a = q\\"), [(1, "a = q\\".to_owned())]);
    }
}
