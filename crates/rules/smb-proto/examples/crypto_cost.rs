//! What signing and encryption cost per message on this machine:
//! `cargo run --release -p anabranch-smb-proto --example crypto_cost`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anabranch_smb_proto as smb_proto;
use smb_proto::dialect::{Cipher, SigningAlgorithm};
use smb_proto::encryption::{Opener, Sealer, TRANSFORM_HEADER_LEN};
use smb_proto::signing::{Sender, SigningKey};

const SIZES: [usize; 3] = [128, 4096, 65_536];

/// The best of several rounds: other work on the machine only ever adds.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn cost(mut once: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..20 {
            once();
        }
        best = best.min(start.elapsed() / 20);
    }
    best
}

fn show(what: &str, costs: &[Duration]) {
    let columns: Vec<String> =
        costs.iter().map(|cost| format!("{:>9.2} us", cost.as_secs_f64() * 1e6)).collect();
    println!("{what:<24}{}", columns.join(""));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<24}{}", "", SIZES.map(|size| format!("{size:>9} B ")).join(""));
    for algorithm in SigningAlgorithm::ALL {
        let key = SigningKey::new(algorithm, &[7; 16])?;
        let (mut sign, mut verify) = (Vec::new(), Vec::new());
        for size in SIZES {
            let mut message = vec![1; size];
            sign.push(cost(|| assert!(key.sign(black_box(&mut message), Sender::Server).is_ok())));
            verify.push(cost(|| assert!(key.verify(black_box(&mut message), Sender::Server).is_ok())));
        }
        show(&format!("{algorithm:?} sign"), &sign);
        show(&format!("{algorithm:?} verify"), &verify);
    }
    for cipher in Cipher::ALL {
        let key = vec![7; cipher.key_len()];
        let (sealer, opener) = (Sealer::new(cipher, &key, 1, [0; 4])?, Opener::new(cipher, &key)?);
        let (mut seal, mut open) = (Vec::new(), Vec::new());
        for size in SIZES {
            let mut frame = vec![1; TRANSFORM_HEADER_LEN + size];
            let sealing = cost(|| assert!(sealer.seal(black_box(&mut frame)).is_ok()));
            seal.push(sealing);
            // opening needs a freshly sealed frame each time: the difference is the cost of opening
            open.push(
                cost(|| {
                    assert!(sealer.seal(black_box(&mut frame)).is_ok());
                    assert!(opener.open(black_box(&mut frame)).is_ok());
                })
                .saturating_sub(sealing),
            );
        }
        show(&format!("{cipher:?} seal"), &seal);
        show(&format!("{cipher:?} open"), &open);
    }
    Ok(())
}
