//! Words of exports(5), as `support/nfs/xio.c` reads them.

/// A word, and the line on which it ends; or the end of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word { line: usize, bytes: Vec<u8> },
    End,
}

struct Scanner<'a> {
    rest: &'a [u8],
    line: usize,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        // A line break after a backslash, and what indents the next line, are one space.
        if *first == b'\\' && rest.first() == Some(&b'\n') {
            self.line = self.line.saturating_add(1);
            let next = rest.get(1..).unwrap_or_default();
            let blanks = next.iter().take_while(|b| matches!(**b, b' ' | b'\t')).count();
            self.rest = next.get(blanks..).unwrap_or_default();
            return Some(b' ');
        }
        self.rest = rest;
        if *first == b'\n' {
            self.line = self.line.saturating_add(1);
        }
        Some(*first)
    }

    fn skip_blanks_and_comment(&mut self) {
        loop {
            match self.rest {
                [b' ' | b'\t' | b'\r' | 0xb | 0xc, ..] => drop(self.next()),
                [b'\\', b'\n', ..] => drop(self.next()),
                [b'#', ..] => {
                    let end = self.rest.iter().position(|b| *b == b'\n').unwrap_or(self.rest.len());
                    self.rest = self.rest.get(end..).unwrap_or_default();
                }
                _ => return,
            }
        }
    }

    /// Up to white space outside quotes; `\040` is the byte of this octal number.
    fn word(&mut self) -> Token {
        let (mut bytes, mut is_quoted) = (Vec::new(), false);
        let line = self.line;
        while let Some(byte) = self.rest.first() {
            if *byte == b'\n' && !is_quoted {
                break;
            }
            let Some(byte) = self.next() else { break };
            if byte.is_ascii_whitespace() && !is_quoted {
                break;
            }
            if byte == b'"' {
                is_quoted = !is_quoted;
                continue;
            }
            bytes.push(byte);
            unescape(&mut bytes);
        }
        Token::Word { line, bytes }
    }
}

/// Turns `\NNN` at the end into the byte that it stands for.
fn unescape(bytes: &mut Vec<u8>) {
    let Some([b'\\', digits @ ..]) = bytes.last_chunk::<4>() else { return };
    let digit = |sum: Option<u16>, digit: &u8| {
        let digit = u16::from(digit.checked_sub(b'0').filter(|digit| *digit < 8)?);
        sum?.checked_mul(8)?.checked_add(digit)
    };
    let Some(byte) = digits.iter().fold(Some(0), digit).and_then(|sum| u8::try_from(sum).ok()) else {
        return;
    };
    bytes.truncate(bytes.len().saturating_sub(4));
    bytes.push(byte);
}

/// The words of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut scanner = Scanner { rest: text.as_bytes(), line: 1 };
    let mut tokens = Vec::new();
    loop {
        scanner.skip_blanks_and_comment();
        match scanner.rest.first() {
            None => break,
            Some(b'\n') => {
                scanner.next();
                tokens.push(Token::End);
            }
            Some(_) => tokens.push(scanner.word()),
        }
    }
    tokens.push(Token::End);
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let word = |token| match token {
            Token::Word { line, bytes } => format!("{line}:{}", String::from_utf8(bytes).unwrap()),
            Token::End => "-".to_owned(),
        };
        tokens(text).into_iter().map(word).collect()
    }

    #[test]
    fn words_are_quoted_escaped_and_continued() {
        assert_eq!(
            words("# a\n/a\\040b host(rw) # c\n\"/c d\" \\\n  h(ro)\n/e#f *"),
            ["-", "2:/a b", "2:host(rw)", "-", "3:/c d", "4:h(ro)", "-", "5:/e#f", "5:*", "-"]
        );
        assert_eq!(words("/a\\400\\08\\303\\274 \"x"), ["1:/a\\400\\08\u{fc}", "1:x", "-"]);
    }
}
