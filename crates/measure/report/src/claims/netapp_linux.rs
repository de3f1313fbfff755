//! "Azure NetApp Files: Linux benchmarks".

use super::super::claim::{AZURE_NETAPP_FILES, Claim, Figure, NETWORK, NONE, Test, TrendPosition, Way};
use super::super::range::Range;
use super::{KIB, MIB, by_block_size, by_writes, over_one, reads, writes};
use load::result::{Key, Mix};

const MIX_10: &[&str] = &["mix-10"];
const MIX_25: &[&str] = &["mix-25"];
const NCONNECT: &[&str] = &["nfs-nconnect"];

pub(super) const CLAIMS: &[Claim] = &[
    pure(
        "5.06",
        71,
        "4 KiB random reads, cache of the client included",
        "about 460,000 IOPS",
        MIX_10,
        |key| reads(key) && key.block_bytes == 4 * KIB,
        Range::about(460_000.0),
    ),
    pure(
        "5.06",
        71,
        "4 KiB random writes, cache of the client included",
        "about 130,000 IOPS",
        MIX_10,
        |key| writes(key) && key.block_bytes == 4 * KIB,
        Range::about(130_000.0),
    ),
    writes_by_reads(
        "5.06",
        71,
        "4 KiB: writes by reads, of its two figures",
        "0.28x (0.25x to 0.31x)",
        MIX_10,
        |key| writes(key) && key.block_bytes == 4 * KIB,
        0.283,
    ),
    pure(
        "5.07",
        81,
        "4 KiB random reads, cache excluded",
        "about 388,000 IOPS",
        MIX_25,
        |key| reads(key) && key.block_bytes == 4 * KIB,
        Range::about(388_000.0),
    ),
    pure(
        "5.07",
        81,
        "4 KiB random writes, cache excluded",
        "about 120,000 IOPS",
        MIX_25,
        |key| writes(key) && key.block_bytes == 4 * KIB,
        Range::about(120_000.0),
    ),
    writes_by_reads(
        "5.07",
        81,
        "4 KiB: writes by reads, of its two figures",
        "0.31x (0.28x to 0.34x)",
        MIX_25,
        |key| writes(key) && key.block_bytes == 4 * KIB,
        0.309,
    ),
    Claim {
        id: "5.07",
        line: 79,
        statement: "Without the client's cache: fewer IOPS than with it",
        figure: "writes 8 %, reads 17 % less",
        needs: NONE,
        test: Test::Untestable(NO_CACHE),
        note: "Its own figures, 460,000 and 388,000, are 15.7 % apart. fio's randrepeat, which it names, repeats the order of places, not the data.",
    },
    pure(
        "5.08",
        91,
        "8 KiB random reads, cache excluded",
        "about 293,000 IOPS",
        MIX_25,
        |key| reads(key) && key.block_bytes == 8 * KIB,
        Range::about(293_000.0),
    ),
    pure(
        "5.08",
        91,
        "8 KiB random writes, cache excluded",
        "about 111,000 IOPS",
        MIX_25,
        |key| writes(key) && key.block_bytes == 8 * KIB,
        Range::about(111_000.0),
    ),
    writes_by_reads(
        "5.08",
        91,
        "8 KiB: writes by reads, of its two figures",
        "0.38x (0.34x to 0.42x)",
        MIX_25,
        |key| writes(key) && key.block_bytes == 8 * KIB,
        0.379,
    ),
    Claim {
        id: "5.08",
        line: 89,
        statement: "8 KiB against 4 KiB: fewer IOPS",
        figure: "less (reads 0.76x, writes 0.93x by its figures)",
        needs: NONE,
        test: Test::Ratio {
            families: MIX_25,
            of: Figure::Rate,
            row: |key| key.block_bytes == 8 * KIB && (reads(key) || writes(key)),
            base: |key| Key { block_bytes: 4 * KIB, ..key.clone() },
            expected: Range::at_most(0.999),
        },
        note: "",
    },
    Claim {
        id: "5.09",
        line: 73,
        statement: "4 and 8 KiB: the more writes, the fewer IOPS in all",
        figure: "falls",
        needs: NONE,
        test: Test::Trend {
            families: &["mix-10", "mix-25"],
            of: Figure::Rate,
            place: |key| by_writes(key).filter(|_| key.block_bytes <= 8 * KIB),
            way: Way::Falls,
        },
        note: "",
    },
    nconnect(
        "5.10",
        111,
        "4 KiB, one client: nconnect brings more IOPS",
        "a gain (1.1x or more)",
        Figure::Rate,
        |key| many_connections(key) && key.block_bytes == 4 * KIB,
    ),
    nconnect(
        "5.10",
        111,
        "4 KiB, one client: nconnect brings less latency",
        "less (at most 0.9x)",
        Figure::Latency,
        |key| many_connections(key) && key.block_bytes == 4 * KIB,
    ),
    Claim {
        id: "5.11",
        line: 121,
        statement: "Larger reads and writes: more latency",
        figure: "rises",
        needs: NONE,
        test: Test::Trend {
            families: NCONNECT,
            of: Figure::Latency,
            place: |key| by_block_size(key).filter(|_| key.queue_depth == 64),
            way: Way::Rises,
        },
        note: "",
    },
    Claim {
        id: "5.12",
        line: 135,
        statement: "64 KiB sequential, cache included",
        figure: "about 4,500 MiB/s read, 1,600 MiB/s written",
        needs: NONE,
        test: Test::Untestable(NO_CACHE),
        note: "",
    },
    throughput(
        "5.13",
        143,
        "64 KiB sequential reads, cache excluded",
        "about 3,600 MiB/s",
        |key| reads(key) && sequential(key, 64),
        3600.0,
    ),
    throughput(
        "5.13",
        143,
        "64 KiB sequential writes, cache excluded",
        "about 2,400 MiB/s",
        |key| writes(key) && sequential(key, 64),
        2400.0,
    ),
    half_and_half(
        "5.13",
        143,
        "64 KiB sequential: half reads, half writes together reach what pure reads reach",
        "on a par (0.9x to 1.1x)",
        |key| half_writes(key) && sequential(key, 64),
        Range::new(0.9, 1.1),
    ),
    throughput(
        "5.14",
        153,
        "256 KiB sequential reads, cache excluded",
        "about 3,500 MiB/s",
        |key| reads(key) && sequential(key, 256),
        3500.0,
    ),
    throughput(
        "5.14",
        153,
        "256 KiB sequential writes, cache excluded",
        "about 2,500 MiB/s",
        |key| writes(key) && sequential(key, 256),
        2500.0,
    ),
    half_and_half(
        "5.14",
        153,
        "256 KiB sequential: half reads, half writes together reach more than pure reads",
        "more than 1x",
        |key| half_writes(key) && sequential(key, 256),
        Range::at_least(1.001),
    ),
    Claim {
        id: "5.15",
        line: 161,
        statement: "The client's cache helps reads; with more writes it is better without",
        figure: "no figure",
        needs: NONE,
        test: Test::Untestable(NO_CACHE),
        note: "",
    },
    Claim {
        id: "5.16",
        line: 171,
        statement: "The deeper the queue, the more IOPS",
        figure: "rises",
        needs: NONE,
        test: Test::Trend {
            families: NCONNECT,
            of: Figure::Rate,
            place: |key| {
                let with = Key { queue_depth: 0, ..key.clone() };
                (key.block_bytes == 64 * KIB).then(|| TrendPosition { with, at: key.queue_depth.into() })
            },
            way: Way::Rises,
        },
        note: "The text names 64 KiB and 4 KiB, random and sequential, for the same charts.",
    },
    nconnect(
        "5.16",
        171,
        "64 KiB, one client: nconnect brings more",
        "a gain (1.1x or more)",
        Figure::Rate,
        |key| many_connections(key) && key.block_bytes == 64 * KIB,
    ),
    nconnect(
        "5.16",
        171,
        "64 KiB, one client: nconnect brings less latency",
        "less (at most 0.9x)",
        Figure::Latency,
        |key| many_connections(key) && key.block_bytes == 64 * KIB,
    ),
];

const NO_CACHE: &str =
    "the clients here keep nothing; a mounted directory (`--target dir:`) has a client's cache";

fn many_connections(key: &Key) -> bool {
    matches!(key.connections, 4 | 8) && key.queue_depth == 64
}

fn half_writes(key: &Key) -> bool {
    key.mix == Mix::ReadPercent(50)
}

fn sequential(key: &Key, kib: u64) -> bool {
    !key.random && key.block_bytes == kib * KIB
}

const fn pure(
    id: &'static str,
    line: u32,
    statement: &'static str,
    figure: &'static str,
    families: &'static [&'static str],
    row: fn(&Key) -> bool,
    expected: Range,
) -> Claim {
    let test = Test::Absolute { families, of: Figure::Rate, row, expected };
    Claim { id, line, statement, figure, needs: AZURE_NETAPP_FILES, test, note: "" }
}

const fn throughput(
    id: &'static str,
    line: u32,
    statement: &'static str,
    figure: &'static str,
    row: fn(&Key) -> bool,
    mib: f64,
) -> Claim {
    let test =
        Test::Absolute { families: MIX_25, of: Figure::Throughput, row, expected: Range::about(mib * MIB) };
    Claim { id, line, statement, figure, needs: AZURE_NETAPP_FILES, test, note: "" }
}

const fn writes_by_reads(
    id: &'static str,
    line: u32,
    statement: &'static str,
    figure: &'static str,
    families: &'static [&'static str],
    row: fn(&Key) -> bool,
    ratio: f64,
) -> Claim {
    let test =
        Test::Ratio { families, of: Figure::Rate, row, base: pure_reads, expected: Range::about(ratio) };
    Claim { id, line, statement, figure, needs: NONE, test, note: "" }
}

const fn half_and_half(
    id: &'static str,
    line: u32,
    statement: &'static str,
    figure: &'static str,
    row: fn(&Key) -> bool,
    expected: Range,
) -> Claim {
    let test = Test::Ratio { families: MIX_25, of: Figure::Throughput, row, base: pure_reads, expected };
    Claim { id, line, statement, figure, needs: NONE, test, note: "" }
}

fn pure_reads(key: &Key) -> Key {
    Key { mix: Mix::ReadPercent(100), ..key.clone() }
}

const fn nconnect(
    id: &'static str,
    line: u32,
    statement: &'static str,
    figure: &'static str,
    of: Figure,
    row: fn(&Key) -> bool,
) -> Claim {
    let expected = match of {
        Figure::Latency => Range::at_most(0.9),
        Figure::Rate | Figure::Throughput => Range::at_least(1.1),
    };
    let test = Test::Ratio { families: NCONNECT, of, row, base: over_one, expected };
    Claim { id, line, statement, figure, needs: NETWORK, test, note: "No figure in the document." }
}
