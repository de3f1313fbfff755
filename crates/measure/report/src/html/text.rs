//! Text that is safe inside HTML.

use std::fmt;

/// Text of anybody's, shown as it is: inside an element or a quoted attribute.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_str(" ")?,
                // What turns text about, or is nothing that a page may hold.
                c if c.is_control() => f.write_str("&#65533;")?,
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    f.write_str("&#65533;")?;
                }
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_markup() {
        assert_eq!(
            Text("<b onclick='x'>\"a\" & b</b>\n\u{1b}[1m\u{202e}").to_string(),
            "&lt;b onclick=&#39;x&#39;&gt;&quot;a&quot; &amp; b&lt;/b&gt; &#65533;[1m&#65533;"
        );
    }
}
