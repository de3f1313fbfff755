//! The n-fold of RFC 3961 5.1.

/// Stretches or folds `input` to the length of `output`.
///
/// RFC 3961 5.1: copies of the input, each rotated to the right by 13 bits more than the one before, are joined until
/// their length is a multiple of both lengths; pieces of the length of the output are then added in ones' complement: what is
/// carried out at the left comes in at the right.
#[expect(clippy::arithmetic_side_effects, reason = "lengths of a few bytes, which the server chooses")]
pub(super) fn nfold(input: &[u8], output: &mut [u8]) {
    output.fill(0);
    if input.is_empty() || output.is_empty() {
        return;
    }
    let total = input.len() / common_divisor(input.len(), output.len()) * output.len();
    let mut carry = 0;
    for at in (0..total).rev() {
        carry += u32::from(rotated(input, at));
        carry = add(output, at % output.len(), carry);
    }
    for at in (0..output.len()).rev() {
        carry = add(output, at, carry);
    }
}

/// Adds to a byte of the output; the carry.
fn add(output: &mut [u8], at: usize, value: u32) -> u32 {
    let Some(byte) = output.get_mut(at) else { return 0 };
    let [low, rest @ ..] = value.saturating_add(u32::from(*byte)).to_le_bytes();
    *byte = low;
    let [a, b, c] = rest;
    u32::from_le_bytes([a, b, c, 0])
}

/// The byte at this place of the joined, rotated copies.
#[expect(clippy::arithmetic_side_effects, reason = "lengths of a few bytes, which the server chooses")]
fn rotated(input: &[u8], at: usize) -> u8 {
    let (copy, place) = (at / input.len(), at % input.len());
    let bits = input.len() * 8;
    // a copy that is rotated to the right by r bits has at bit b what the input has at b - r
    let from = (place * 8 + bits - (copy * 13) % bits) % bits;
    let byte = |number: usize| u16::from(input.get(number % input.len()).copied().unwrap_or(0));
    let [_, pair] = ((byte(from / 8) << 8 | byte(from / 8 + 1)) << (from % 8) >> 8).to_be_bytes();
    pair
}

fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3961 A.1.
    #[test]
    fn the_vectors_of_the_specification() {
        let vectors: [(&[u8], &str); 11] = [
            (b"012345", "be072631276b1955"),
            (b"password", "78a07b6caf85fa"),
            (b"Rough Consensus, and Running Code", "bb6ed30870b7f0e0"),
            (b"password", "59e4a8ca7c0385c3c37b3f6d2000247cb6e6bd5b3e"),
            (b"MASSACHVSETTS INSTITVTE OF TECHNOLOGY", "db3b0d8f0b061e603282b308a50841229ad798fab9540c1b"),
            (b"Q", "518a54a2 15a8452a 518a54a2 15a8452a 518a54a2 15"),
            (b"ba", "fb25d531 ae897449 9f52fd92 ea9857c4 ba24cf29 7e"),
            (b"kerberos", "6b65726265726f73"),
            (b"kerberos", "6b65726265726f737b9b5b2b93132b93"),
            (b"kerberos", "8372c236344e5f1550cd0747e15d62ca7a5a3bcea4"),
            (b"kerberos", "6b65726265726f737b9b5b2b93132b935c9bdcdad95c9899c4cae4dee6d6cae4"),
        ];
        for (input, expected) in vectors {
            let expected = crate::crypto::hex(expected);
            let mut output = vec![0xff; expected.len()];
            nfold(input, &mut output);
            assert_eq!(output, expected, "{}", String::from_utf8_lossy(input));
        }
    }
}
