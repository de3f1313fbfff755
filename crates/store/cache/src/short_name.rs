//! 8.3 names ([MS-FSCC] 2.1.5.2.1), for programs that cannot handle longer ones.
//!
//! Short names are not stored. The short name of a file is computed from its long name: `AJ~0F3KZ.TXT` consists of the first
//! letters of `a journey.text` and a hash of the whole name. It refers to that file unless another file really has this
//! name. A file that a program has created by its short name is found by the long name too.

use crate::fold::fold;

/// Characters allowed in a short name besides letters and digits.
const SPECIAL: &[u8] = b"!#$%&'()-@^_`{}~";
/// Most characters before the tilde.
const PREFIX_MAX: usize = 2;
/// Characters of the hash, after the tilde.
const HASH_DIGITS: usize = 5;
const EXTENSION_MAX: usize = 3;
const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || SPECIAL.contains(&byte)
}

/// Whether a name is an 8.3 name, regardless of the case of its letters.
#[must_use]
pub fn is_short_name(name: &[u8]) -> bool {
    let fits = |part: &[u8], max: usize| {
        !part.is_empty() && part.len() <= max && part.iter().all(|b| is_allowed(*b))
    };
    match name.iter().position(|b| *b == b'.').and_then(|dot| name.split_at_checked(dot)) {
        Some((base, extension)) => {
            fits(base, 8) && fits(extension.get(1..).unwrap_or_default(), EXTENSION_MAX)
        }
        None => fits(name, 8),
    }
}

/// The short name for a long name; None if the name is an 8.3 name already.
#[must_use]
pub fn short_name(name: &[u8]) -> Option<Vec<u8>> {
    if is_short_name(name) {
        return None;
    }
    let folded = fold(name);
    let dot = folded.iter().rposition(|b| *b == b'.').filter(|dot| *dot > 0);
    let (base, extension) = dot.and_then(|dot| folded.split_at_checked(dot)).unwrap_or((&folded, b""));
    let letters = |part: &[u8], max: usize| -> Vec<u8> {
        part.iter().copied().filter(|b| b.is_ascii_alphanumeric() || *b == b'_').take(max).collect()
    };
    let mut short = letters(base, PREFIX_MAX);
    short.push(b'~');
    short.extend_from_slice(&digits(hash(&folded)));
    let extension = letters(extension, EXTENSION_MAX);
    if !extension.is_empty() {
        short.push(b'.');
        short.extend_from_slice(&extension);
    }
    Some(short)
}

/// Whether a name looks like one that [`short_name`] makes.
pub(crate) fn is_made(folded: &[u8]) -> bool {
    let base = folded.split(|b| *b == b'.').next().unwrap_or_default();
    let tilde = base.len().checked_sub(HASH_DIGITS + 1).filter(|at| *at <= PREFIX_MAX);
    let tilde = tilde.and_then(|at| base.split_at_checked(at));
    is_short_name(folded) && tilde.is_some_and(|(_, behind)| behind.first() == Some(&b'~'))
}

/// FNV-1a, of 64 bits: the same in every version of the server.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn digits(mut number: u64) -> [u8; HASH_DIGITS] {
    // The low bits of the hash depend on only a few bits of the last byte.
    number ^= number >> 32;
    std::array::from_fn(|_| {
        let digit = usize::try_from(number % 36).unwrap_or(0);
        number /= 36;
        DIGITS.get(digit).copied().unwrap_or(b'0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_have_eight_characters_and_three() {
        for name in ["a", "README", "bufsize.txt", "12345678.123", "A~1.B"] {
            assert!(is_short_name(name.as_bytes()), "{name}");
        }
        for name in ["", "123456789", "a.1234", "a.b.c", ".a", "a.", "a b", "a+b", "\u{e9}"] {
            assert!(!is_short_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn long_names_have_short_ones_that_stay() {
        let short = |name: &str| short_name(name.as_bytes()).map(|short| String::from_utf8(short).unwrap());
        assert_eq!(short("README.TXT"), None);
        let expected = short("A journey.text").unwrap();
        assert!(expected.starts_with("AJ~") && expected.ends_with(".TEX"), "{expected}");
        assert_eq!(short("a JOURNEY.TEXT").unwrap(), expected, "whatever the case");
        assert_ne!(short("A journey.texts").unwrap(), expected);
        // Clients store short names: a new version of the server must make the same ones.
        assert_eq!(short("a long name.html").unwrap(), "AL~4FH36.HTM");
        for name in [".profile", "a.b.c", "...", "\u{e4}\u{f6}", "name.", "x~y~z~long name", "12345678.1234"]
        {
            let short = short(name).unwrap();
            assert!(is_short_name(short.as_bytes()) && is_made(short.as_bytes()), "{name}: {short}");
        }
    }

    #[test]
    fn few_collide() {
        let mut all = std::collections::HashSet::new();
        for number in 0..20_000 {
            all.insert(short_name(format!("file number {number}.txt").as_bytes()).unwrap());
        }
        assert!(all.len() > 19_990, "{}", all.len());
    }

    #[test]
    fn made_names_are_told_from_others() {
        for name in [&b"~00000"[..], b"A~00000", b"AB~ZZZZZ.TXT"] {
            assert!(is_made(name), "{name:?}");
        }
        for name in [&b"PROGRA~1"[..], b"AB~0000", b"ABC~0000", b"A~00000.TEXT", b"~", b""] {
            assert!(!is_made(name), "{name:?}");
        }
    }
}
