//! "Azure Files: SMB performance".

use super::super::claim::{AZURE_FILES, Claim, Figure, NETWORK, NONE, Test, Way};
use super::super::range::Range;
use super::{KIB, by_block_size, over_one, reads, writes};

const MULTIFILE: &[&str] = &["smb-mc-multifile"];
const SINGLE_FILE: &[&str] = &["smb-mc-singlefile"];
const SINGLE_THREAD: &[&str] = &["single-thread"];
/// Average reads and writes above this are large (lines 86, 123).
const LARGE: u64 = 16 * KIB;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "1.04",
        line: 18,
        statement: "Multichannel pays more, the more files share the load",
        figure: "no figure",
        needs: NONE,
        test: Test::Untestable(
            "one file and ten are two families; the document gives no figure to hold them against",
        ),
        note: "",
    },
    Claim {
        id: "1.10",
        line: 28,
        statement: "Larger reads and writes: more throughput",
        figure: "rises",
        needs: NONE,
        test: Test::Trend {
            families: MULTIFILE,
            of: Figure::Throughput,
            place: by_block_size,
            way: Way::Rises,
        },
        note: "",
    },
    Claim {
        id: "1.10",
        line: 28,
        statement: "Larger reads and writes: more latency",
        figure: "rises",
        needs: NONE,
        test: Test::Trend { families: MULTIFILE, of: Figure::Latency, place: by_block_size, way: Way::Rises },
        note: "",
    },
    Claim {
        id: "1.10",
        line: 28,
        statement: "Larger reads and writes: fewer IOPS",
        figure: "falls",
        needs: NONE,
        test: Test::Trend { families: MULTIFILE, of: Figure::Rate, place: by_block_size, way: Way::Falls },
        note: "",
    },
    Claim {
        id: "1.14",
        line: 46,
        statement: "Multichannel usually does not help one thread",
        figure: "no gain (at most 1.1x)",
        needs: NONE,
        test: Test::Ratio {
            families: SINGLE_THREAD,
            of: Figure::Rate,
            row: |key| key.connections == 4,
            base: over_one,
            expected: Range::at_most(1.1),
        },
        note: "",
    },
    Claim {
        id: "1.20",
        line: 85,
        statement: "Several threads on several files: Multichannel multiplies IOPS and throughput",
        figure: "2x to 4x",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.random,
            base: over_one,
            expected: Range::new(2.0, 4.0),
        },
        note: "",
    },
    Claim {
        id: "1.21",
        line: 86,
        statement: "Several threads on one file, reads and writes above 16 KiB: Multichannel pays",
        figure: "a gain (1.1x or more)",
        needs: NETWORK,
        test: Test::Ratio {
            families: SINGLE_FILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.block_bytes > LARGE && key.random,
            base: over_one,
            expected: Range::at_least(1.1),
        },
        note: "No figure in the document; it calls 10 % slight, so a gain is more than that.",
    },
    Claim {
        id: "1.21",
        line: 86,
        statement: "Several threads on one file, small reads and writes: Multichannel costs a little",
        figure: "about 10 % less (0.85x to 0.95x)",
        needs: NONE,
        test: Test::Ratio {
            families: SINGLE_FILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.block_bytes <= LARGE,
            base: over_one,
            expected: Range::new(0.85, 0.95),
        },
        note: "",
    },
    Claim {
        id: "1.22",
        line: 87,
        statement: "One thread: Multichannel costs a little",
        figure: "about 10 % less (0.85x to 0.95x)",
        needs: NONE,
        test: Test::Ratio {
            families: SINGLE_THREAD,
            of: Figure::Rate,
            row: |key| key.connections == 4 && (key.files == 1 || key.block_bytes <= LARGE),
            base: over_one,
            expected: Range::new(0.85, 0.95),
        },
        note: "The heading says several threads by a slip of translation; the text, and the document of 2020, say one.",
    },
    Claim {
        id: "1.22",
        line: 87,
        statement: "One thread on several files, above 16 KiB: Multichannel helps a little",
        figure: "slight gain (1x to 1.15x)",
        needs: NONE,
        test: Test::Ratio {
            families: SINGLE_THREAD,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.files > 1 && key.block_bytes > LARGE,
            base: over_one,
            expected: Range::new(1.0, 1.15),
        },
        note: "",
    },
    Claim {
        id: "1.25",
        line: 106,
        statement: "Ten files, one NIC, reads: four channels against one",
        figure: "2x to 3x",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && reads(key) && key.random,
            base: over_one,
            expected: Range::new(2.0, 3.0),
        },
        note: "The text says depth 10; the document's command has 640 operations under way (8 threads a file, 8 each, 10 files). The family has 64.",
    },
    Claim {
        id: "1.25",
        line: 106,
        statement: "Ten files, one NIC, writes: four channels against one",
        figure: "3x to 4x",
        needs: NETWORK,
        test: Test::Ratio {
            families: MULTIFILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && writes(key) && key.random,
            base: over_one,
            expected: Range::new(3.0, 4.0),
        },
        note: "",
    },
    Claim {
        id: "1.26",
        line: 108,
        statement: "Reads over four channels go beyond the virtual machine's limit",
        figure: "more than 2.7 GiB/s",
        needs: AZURE_FILES,
        test: Test::Absolute {
            families: MULTIFILE,
            of: Figure::Throughput,
            row: |key| key.connections == 4 && reads(key) && key.block_bytes >= 1024 * KIB,
            expected: Range::at_least(2.7 * GIB),
        },
        note: "The limit of 16,000 Mbit/s is 1.86 GiB/s; the document writes 2 GiB/s, and MBps elsewhere.",
    },
    Claim {
        id: "1.28",
        line: 123,
        statement: "One file of 128 GiB, above 16 KiB: significant gains, reads and writes",
        figure: "a gain (1.1x or more)",
        needs: NETWORK,
        test: Test::Ratio {
            families: SINGLE_FILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.block_bytes > LARGE && key.random,
            base: over_one,
            expected: Range::at_least(1.1),
        },
        note: "The family's file is smaller.",
    },
    Claim {
        id: "1.28",
        line: 124,
        statement: "One file of 128 GiB, small reads and writes: a slight loss",
        figure: "about 10 % less (0.85x to 0.95x)",
        needs: NONE,
        test: Test::Ratio {
            families: SINGLE_FILE,
            of: Figure::Rate,
            row: |key| key.connections == 4 && key.block_bytes <= LARGE,
            base: over_one,
            expected: Range::new(0.85, 0.95),
        },
        note: "The family's file is smaller.",
    },
    metadata_caching(
        166,
        "Metadata caching: less latency",
        "30 % less or better (at most 0.7x)",
        Figure::Latency,
    ),
    metadata_caching(172, "Metadata caching: more IOPS", "60 % more or better (1.6x or more)", Figure::Rate),
    Claim {
        id: "1.33",
        line: 178,
        statement: "Metadata caching: more network throughput",
        figure: "60 % more or better",
        needs: NONE,
        test: Test::Untestable("the metadata family moves no data"),
        note: "",
    },
];

const fn metadata_caching(line: u32, statement: &'static str, figure: &'static str, of: Figure) -> Claim {
    let expected = match of {
        Figure::Latency => Range::at_most(0.7),
        Figure::Rate | Figure::Throughput => Range::at_least(1.6),
    };
    Claim {
        id: "1.33",
        line,
        statement,
        figure,
        needs: NONE,
        test: Test::Between {
            families: &["metadata"],
            of,
            note: "metadata-cache",
            base: "off",
            other: "on",
            expected,
        },
        note: "",
    }
}
