//! JSON in which nothing that a client chooses can forge a line, or command a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

/// Compact JSON that also escapes the characters that `serde_json` leaves as they are, and that end a line for some readers,
/// control a terminal, or change the direction of the text: the controls from U+007F to U+009F, U+2028, U+2029, and the
/// bidirectional controls of Unicode (UAX 9, section 2).
struct Escaping;

fn is_escaped(character: char) -> bool {
    matches!(character,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((place, character)) = rest.char_indices().find(|(_, character)| is_escaped(*character))
        {
            let (plain, after) = rest.split_at(place);
            CompactFormatter.write_string_fragment(writer, plain)?;
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = after.get(character.len_utf8()..).unwrap_or_default();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// The value as one line of JSON, without its end.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(512);
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut line, Escaping));
    debug_assert!(written.is_ok(), "a structure of texts and numbers is JSON, and memory takes it");
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_plain_character_is_escaped() {
        for (text, expected) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\r\u{0}", r#""a\nb\r\u0000""#),
            ("\u{1b}[2J\u{9b}2J\u{7f}", r#""\u001b[2J\u009b2J\u007f""#),
            ("\u{2028}\u{202e}gpj.exe\u{2069}", r#""\u2028\u202egpj.exe\u2069""#),
            ("Gr\u{fc}\u{df}e \u{1f600}", "\"Gr\u{fc}\u{df}e \u{1f600}\""),
        ] {
            assert_eq!(String::from_utf8(json(&text)).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn every_text_is_one_line_and_is_read_back(text in any::<String>()) {
            let line = String::from_utf8(json(&text)).unwrap();
            prop_assert!(!line.chars().any(|c| c.is_control() || is_escaped(c)), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }
    }
}
