//! Records as keys and values of an omap.
//!
//! A key is the table's name, NUL, and the record's key, numbers with their highest byte first. NUL and the byte after it are written as
//! two bytes each, in the same order, because librados takes where a listing begins as a C string. A value has one byte before it:
//! a comparison cannot tell an empty value from none.

use state::store::{Form, Table};

/// Before each value.
const VALUE: u8 = b'=';

fn escaped(bytes: impl IntoIterator<Item = u8>) -> impl Iterator<Item = u8> {
    bytes.into_iter().flat_map(|byte| match byte {
        0 | 1 => [Some(1), Some(byte + 1)].into_iter().flatten(),
        _ => [Some(byte), None].into_iter().flatten(),
    })
}

/// None: these are not escaped bytes.
fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.iter();
    let mut found = Vec::new();
    while let Some(&byte) = bytes.next() {
        found.push(match byte {
            0 => return None,
            1 => bytes.next().filter(|second| matches!(second, 1 | 2))? - 1,
            _ => byte,
        });
    }
    Some(found)
}

fn in_order(table: Table, key: &[u8]) -> Vec<u8> {
    let mut key = key.to_vec();
    if table.form == Form::NumberToBytes {
        key.reverse();
    }
    key
}

/// How the keys of all records of a table begin.
pub(crate) fn beginning(table: Table) -> Vec<u8> {
    escaped(table.name.bytes().chain([0])).collect()
}

/// The key of a record.
pub(crate) fn of_record(table: Table, key: &[u8]) -> Vec<u8> {
    let mut found = beginning(table);
    found.extend(escaped(in_order(table, key)));
    found
}

/// The record's key in its table. None: the key is of no record of this table.
pub(crate) fn key_in(table: Table, key: &[u8]) -> Option<Vec<u8>> {
    let rest = key.strip_prefix(&beginning(table)[..])?;
    unescaped(rest).map(|key| in_order(table, &key))
}

/// All keys of a table: from the first on, and before the second. Names of tables are ASCII.
pub(crate) fn range(table: &str) -> [Vec<u8>; 2] {
    // No name has a byte 1, so nothing else lies between the byte 0 that ends this one and the byte 1.
    [0, 1].map(|end| escaped(table.bytes().chain([end])).collect())
}

/// A value as it is kept.
pub(crate) fn kept(value: &[u8]) -> Vec<u8> {
    [&[VALUE], value].concat()
}

/// The value of what is kept. None: it is none.
pub(crate) fn value_of(kept: &[u8]) -> Option<Vec<u8>> {
    kept.strip_prefix(&[VALUE]).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Table = Table { name: "bytes", form: Form::BytesToNothing };
    const NUMBERS: Table = Table { name: "numbers", form: Form::NumberToBytes };

    #[test]
    fn a_key_comes_back_and_has_no_nul() {
        for first in 0..=255 {
            for second in 0..=255 {
                let key = [first, second];
                let kept = of_record(BYTES, &key);
                assert!(!kept.contains(&0));
                assert_eq!(key_in(BYTES, &kept).unwrap(), key);
            }
        }
        assert_eq!(key_in(BYTES, &of_record(BYTES, b"")).unwrap(), b"");
    }

    #[test]
    fn keys_keep_their_order() {
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for byte in [0, 1, 2, 3, 254, 255] {
            keys.push(vec![byte]);
            keys.extend([0, 1, 2, 255].map(|second| vec![byte, second]));
        }
        keys.sort();
        assert!(keys.iter().map(|key| of_record(BYTES, key)).is_sorted());
        let numbers = [0, 1, 2, 255, 256, 257, 65_535, 65_536, 1 << 32, u64::MAX];
        assert!(numbers.iter().map(|number| of_record(NUMBERS, &u64::to_le_bytes(*number))).is_sorted());
    }

    #[test]
    fn a_range_has_one_table_and_no_other() {
        let key = |name, key: &[u8]| of_record(Table { name, form: Form::TextToBytes }, key);
        let [first, end] = range("text");
        for inside in [key("text", b""), key("text", &[0; 9]), key("text", &[255; 9])] {
            assert!(first <= inside && inside < end, "{inside:?}");
        }
        let others = [key("tex", &[255; 9]), key("tey", b""), key("u", b"")];
        for outside in others.into_iter().chain([key("texts", b""), key("text.a", b"k")]) {
            assert!(outside < first || end <= outside, "{outside:?}");
        }
    }

    #[test]
    fn what_is_no_key_of_the_table_is_not_taken_for_one() {
        assert_eq!(key_in(BYTES, b"bytes"), None);
        assert_eq!(key_in(BYTES, &of_record(NUMBERS, &[0; 8])), None);
        for damaged in [&b"\x00"[..], b"\x01", b"\x01\x00", b"\x01\x03"] {
            assert_eq!(key_in(BYTES, &[&beginning(BYTES), damaged].concat()), None, "{damaged:?}");
        }
        assert_eq!(value_of(b""), None);
        assert_eq!(value_of(&kept(b"")).unwrap(), b"");
    }
}
