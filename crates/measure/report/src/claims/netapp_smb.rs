//! "Azure NetApp Files: SMB performance".

use super::super::claim::{Claim, Figure, NETWORK, NONE, Test, TrendPosition, Way};
use super::super::range::Range;
use super::{KIB, over_four, over_one, reads, writes};
use load::result::{Key, Mix};

const MULTIFILE: &[&str] = &["smb-mc-multifile"];
const SECURITY: &[&str] = &["smb-security"];

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "2.03",
        line: 18,
        statement: "One connection limits what one client reaches; several do not",
        figure: "a gain (1.1x or more)",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.random,
            base: over_one,
            expected: Range::at_least(1.1),
        },
        note: "No figure in the document.",
    },
    Claim {
        id: "2.04",
        line: 26,
        statement: "4 KiB at random places: eight and sixteen channels bring nothing over four",
        figure: "negligible (0.9x to 1.1x)",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Rate,
            row: |key| matches!(key.connections, 8 | 16) && key.block_bytes == 4 * KIB && key.random,
            base: over_four,
            expected: Range::new(0.9, 1.1),
        },
        note: "",
    },
    Claim {
        id: "2.07",
        line: 38,
        statement: "64 KiB sequential reads: more channels bring more at each step beyond four",
        figure: "rises at each step",
        needs: NETWORK,
        test: Test::Trend {
            families: MULTIFILE,
            of: Figure::Throughput,
            place: |key| sequential_beyond_four(key).filter(|_| reads(key)),
            way: Way::RisesEachTime,
        },
        note: "",
    },
    Claim {
        id: "2.07",
        line: 38,
        statement: "64 KiB sequential writes: no more beyond four channels, as the machine's egress is capped",
        figure: "the same (0.9x to 1.1x)",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Throughput,
            row: |key| writes(key) && key.connections > 4 && sequential_beyond_four(key).is_some(),
            base: over_four,
            expected: Range::new(0.9, 1.1),
        },
        note: "",
    },
    Claim {
        id: "2.10",
        line: 54,
        statement: "Signing: what is left of sequential reads over one channel",
        figure: "875 to about 250 MiB/s (0.26x to 0.31x)",
        needs: NONE,
        test: Test::Ratio {
            families: SECURITY,
            of: Figure::Throughput,
            row: |key| {
                let signed = security(key, &["HMAC-SHA256", "AES-128-CMAC", "AES-128-GMAC"]);
                signed && reads(key) && key.block_bytes >= 64 * KIB
            },
            base: unprotected,
            expected: Range::new(0.26, 0.31),
        },
        note: "The document does not name the algorithm. The family reads at random places, which costs a signature the same.",
    },
    Claim {
        id: "2.11",
        line: 62,
        statement: "One client, reads to writes in steps of 10 %, 4 KiB random and sequential",
        figure: "shown as images only",
        needs: NONE,
        test: Test::Untestable("no figure is in the text; the measured mix is among the charts"),
        note: "",
    },
    Claim {
        id: "2.12",
        line: 72,
        statement: "Five clients, each process on its own file",
        figure: "shown as images only",
        needs: NONE,
        test: Test::Untestable("no figure is in the text; the measured scale-out is among the charts"),
        note: "",
    },
    Claim {
        id: "2.16",
        line: 115,
        statement: "Encryption: reads and writes",
        figure: "10 to 15 % less (0.85x to 0.9x)",
        needs: NONE,
        test: Test::Ratio {
            families: SECURITY,
            of: Figure::Throughput,
            row: |key| key.mix != Mix::Metadata && security(key, &["AES-128-CCM", "AES-128-GCM"]),
            base: unprotected,
            expected: Range::new(0.85, 0.9),
        },
        note: "SMB 3.0 has CCM, 3.1.1 has GCM. The document counts the storage's side only; this is both sides.",
    },
    Claim {
        id: "2.16",
        line: 116,
        statement: "Encryption: work heavy on metadata",
        figure: "5 % less (0.925x to 0.975x)",
        needs: NONE,
        test: Test::Ratio {
            families: SECURITY,
            of: Figure::Rate,
            row: |key| key.mix == Mix::Metadata && security(key, &["AES-128-CCM", "AES-128-GCM"]),
            base: unprotected,
            expected: Range::new(0.925, 0.975),
        },
        note: "",
    },
];

fn sequential_beyond_four(key: &Key) -> Option<TrendPosition> {
    let wanted = !key.random && key.block_bytes == 64 * KIB && key.connections >= 4;
    wanted.then(|| TrendPosition { with: Key { connections: 0, ..key.clone() }, at: key.connections.into() })
}

/// The name under which rows have how messages are protected.
const SETTING: &str = "security";

fn security(key: &Key, names: &[&str]) -> bool {
    key.settings.get(SETTING).is_some_and(|name| names.contains(&name.as_str()))
}

fn unprotected(key: &Key) -> Key {
    let mut key = key.clone();
    key.settings.insert(SETTING.to_owned(), "none".to_owned());
    key
}
