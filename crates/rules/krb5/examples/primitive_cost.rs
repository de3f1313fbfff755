//! What the bare primitives need for one block of data: `cargo xtask bench nfs-security`.
//!
//! Prints a line for each: its name and the median of its times in nanoseconds. The primitives are those of the library
//! alone, one call for the whole block; TLS has a record for each 16 KiB.
//!
//!     primitive_cost BYTES TIMES
#![expect(clippy::unwrap_used, reason = "a program for measuring")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_256, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::hmac;

/// The most bytes of a record. RFC 8446 5.1.
const TLS_RECORD: usize = 16 << 10;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let (bytes, times) = (arguments.next().unwrap(), arguments.next().unwrap());
    let mut block = vec![7; bytes];
    for (name, algorithm) in
        [("aes256-sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY), ("aes256-sha384", hmac::HMAC_SHA384)]
    {
        let key = hmac::Key::new(algorithm, &[1; 32]);
        print(&format!("checksum {name}"), times, &mut || _ = black_box(hmac::sign(&key, &block)));
        let cbc =
            PaddedBlockEncryptingKey::cbc_pkcs7(UnboundCipherKey::new(&AES_256, &[2; 32]).unwrap()).unwrap();
        print(&format!("encryption {name}"), times, &mut || {
            black_box(cbc.encrypt(&mut block).unwrap());
            // the padding
            block.truncate(bytes);
            black_box(hmac::sign(&key, &block));
        });
    }
    let gcm = LessSafeKey::new(UnboundKey::new(&aead::AES_256_GCM, &[3; 32]).unwrap());
    print("encryption TLS", times, &mut || {
        for (record, number) in block.chunks_mut(TLS_RECORD).zip(0_u32..) {
            let mut nonce = [0; 12];
            nonce[..4].copy_from_slice(&number.to_be_bytes());
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = gcm.seal_in_place_separate_tag(nonce, Aad::empty(), record).unwrap();
            black_box(tag.as_ref());
        }
    });
}

fn print(name: &str, times: usize, work: &mut dyn FnMut()) {
    let mut taken: Vec<_> = (0..times)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_nanos()
        })
        .collect();
    taken.sort_unstable();
    println!("{name}\t{}", taken[times / 2]);
}
