//! Words in text: runs of letters, digits and underscores.

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a text, each with its position.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + text[rest..].find(is_word)?;
        rest = begin + word_at(&text[begin..]).len();
        Some((begin, &text[begin..rest]))
    })
}

/// The word at the start of a text; may be empty.
pub(crate) fn word_at(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// The character before a position.
pub(crate) fn before(text: &str, at: usize) -> Option<char> {
    text[..at].chars().next_back()
}

/// The positions of `wanted` in a text, except at the end of a longer word.
pub(crate) fn places<'a>(text: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> {
    text.match_indices(wanted).map(|(at, _)| at).filter(|at| !before(text, *at).is_some_and(is_word))
}
