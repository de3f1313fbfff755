//! Bytes of a hostile peer: nothing panics, and what decodes has the same bytes when it is encoded again.

use anabranch_replica_wire::{Record, Wanted};

#[test]
fn records() {
    bolero::check!().for_each(|bytes: &[u8]| {
        if let Ok(Some((record, length))) = Record::decode(bytes) {
            let mut again = Vec::new();
            record.encode_into(&mut again);
            assert_eq!(again, bytes[..length]);
        }
    });
}

#[test]
fn wanted() {
    bolero::check!().for_each(|bytes: &[u8]| {
        if let Ok(wanted) = Wanted::decode(bytes) {
            assert_eq!(wanted.encode(), bytes);
        }
    });
}
