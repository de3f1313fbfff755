//! The form in which names are compared, regardless of case.

/// The form in which names are compared: each character in its simple upper case. Bytes that are not UTF-8 stay
/// unchanged.
pub fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_uppercase();
    }
    let Ok(text) = std::str::from_utf8(name) else { return name.to_vec() };
    text.chars().map(upper).collect::<String>().into_bytes()
}

/// The simple upper case of a character, one character for one, as in the table of NTFS (a sharp s stays).
fn upper(c: char) -> char {
    let mut full = c.to_uppercase();
    match (full.next(), full.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_one_character_to_one() {
        assert_eq!(fold(b"ReadMe.TXT"), b"README.TXT");
        assert_eq!(fold("stra\u{df}e".as_bytes()), "STRA\u{df}E".as_bytes());
        assert_eq!(fold("\u{e4}\u{f6}".as_bytes()), "\u{c4}\u{d6}".as_bytes());
        assert_eq!(fold(b"\xffa"), b"\xffa", "not UTF-8");
    }
}
