//! "Azure Files: NFS performance".

use super::super::claim::{Claim, Figure, NETWORK, NONE, Test};
use super::super::range::Range;
use super::{KIB, over_four, over_one, reads, writes};
use load::result::Key;

const NCONNECT: &[&str] = &["nfs-nconnect"];
const READ_AHEAD: &[&str] = &["nfs-readahead"];

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "3.02",
        line: 28,
        statement: "Read-ahead of 15 times rsize reads faster than that of 128 KiB, the default from Linux 5.4 on",
        figure: "a gain (1.1x or more)",
        needs: NONE,
        test: Test::Ratio {
            families: READ_AHEAD,
            of: Figure::Throughput,
            row: |key| read_ahead(key, "15xrsize"),
            base: with_default_read_ahead,
            expected: Range::at_least(1.1),
        },
        note: "No figure in the document. The family keeps as many reads under way as a kernel with that read-ahead.",
    },
    Claim {
        id: "3.03",
        line: 30,
        statement: "Read-ahead of 15 MiB reads faster than that of 128 KiB",
        figure: "a gain (1.1x or more)",
        needs: NONE,
        test: Test::Ratio {
            families: READ_AHEAD,
            of: Figure::Throughput,
            row: |key| read_ahead(key, "15MiB"),
            base: with_default_read_ahead,
            expected: Range::at_least(1.1),
        },
        note: "No figure in the document.",
    },
    Claim {
        id: "3.06",
        line: 52,
        statement: "With nconnect 6 to 7 clients reach what takes 20 without",
        figure: "10 GiB/s; 70 % of the clients saved",
        needs: NONE,
        test: Test::Untestable("needs 20 machines, and a share that lets 10 GiB/s through"),
        note: "",
    },
    nconnect(
        55,
        "nconnect, IOPS, writes of 64 KiB and 1,024 KiB",
        "3x (2.5x to 3.5x)",
        Figure::Rate,
        large_writes,
    ),
    nconnect(56, "nconnect, IOPS, reads of all sizes", "2x to 4x", Figure::Rate, all_reads),
    nconnect(
        57,
        "nconnect, throughput, writes of 64 KiB and 1,024 KiB",
        "3x (2.5x to 3.5x)",
        Figure::Throughput,
        large_writes,
    ),
    nconnect(58, "nconnect, throughput, reads of all sizes", "2x to 4x", Figure::Throughput, all_reads),
    Claim {
        id: "3.09",
        line: 79,
        statement: "More than four connections bring nothing over four, or hurt",
        figure: "no gain (at most 1.1x)",
        needs: NETWORK,
        test: Test::Ratio {
            families: NCONNECT,
            of: Figure::Rate,
            row: |key| matches!(key.connections, 8 | 16) && key.queue_depth == 64,
            base: over_four,
            expected: Range::at_most(1.1),
        },
        note: "",
    },
    Claim {
        id: "3.11",
        line: 87,
        statement: "Queues deeper than 64 bring nothing",
        figure: "no gain (at most 1.1x)",
        needs: NONE,
        test: Test::Ratio {
            families: NCONNECT,
            of: Figure::Rate,
            row: |key| key.queue_depth == 256,
            base: |key| Key { queue_depth: 64, ..key.clone() },
            expected: Range::at_most(1.1),
        },
        note: "",
    },
    Claim {
        id: "3.17",
        line: 133,
        statement: "Sequential reads and writes give results like random ones",
        figure: "similar",
        needs: NONE,
        test: Test::Untestable(
            "no family has the same rows in both orders; `anabranch bench job --sequential` makes them",
        ),
        note: "",
    },
    Claim {
        id: "3.18",
        line: 179,
        statement: "One thread, short queue, writes: nconnect is to be looked at closely",
        figure: "no gain (at most 1.1x)",
        needs: NONE,
        test: Test::Ratio {
            families: &["nfs-nconnect", "single-thread"],
            of: Figure::Rate,
            row: |key| key.connections == 4 && shallow(key) && writes(key),
            base: over_one,
            expected: Range::at_most(1.1),
        },
        note: "No figure in the document.",
    },
    Claim {
        id: "3.18",
        line: 180,
        statement: "One thread, short queue, small reads: nconnect is to be looked at closely",
        figure: "no gain (at most 1.1x)",
        needs: NONE,
        test: Test::Ratio {
            families: &["nfs-nconnect", "single-thread"],
            of: Figure::Rate,
            row: |key| key.connections == 4 && shallow(key) && reads(key) && key.block_bytes <= 16 * KIB,
            base: over_one,
            expected: Range::at_most(1.1),
        },
        note: "No figure in the document.",
    },
    Claim {
        id: "3.19",
        line: 184,
        statement: "Scenarios in green, yellow and red, with their latency",
        figure: "shown as an image only",
        needs: NONE,
        test: Test::Untestable("no figure is in the text"),
        note: "",
    },
];

const fn nconnect(
    line: u32,
    statement: &'static str,
    figure: &'static str,
    of: Figure,
    row: fn(&Key) -> bool,
) -> Claim {
    let three = line == 55 || line == 57;
    let expected = if three { Range::new(2.5, 3.5) } else { Range::new(2.0, 4.0) };
    let test = Test::Ratio { families: NCONNECT, of, row, base: over_one, expected };
    Claim { id: "3.07", line, statement, figure, needs: NETWORK, test, note: "" }
}

fn large_writes(key: &Key) -> bool {
    all_reads(&Key { mix: load::result::Mix::ReadPercent(100), ..key.clone() })
        && writes(key)
        && matches!(key.block_bytes, 0x1_0000 | 0x10_0000)
}

fn all_reads(key: &Key) -> bool {
    key.connections == 4 && key.queue_depth == 64 && reads(key)
}

fn shallow(key: &Key) -> bool {
    key.threads == 1 && key.queue_depth < 16
}

/// The name under which rows have their read-ahead.
const SETTING: &str = "readahead";

fn read_ahead(key: &Key, name: &str) -> bool {
    key.settings.get(SETTING).is_some_and(|is| is == name)
}

fn with_default_read_ahead(key: &Key) -> Key {
    let mut key = Key { block_bytes: 128 * KIB, queue_depth: 1, ..key.clone() };
    key.settings.insert(SETTING.to_owned(), "128KiB".to_owned());
    key
}
