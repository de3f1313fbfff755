//! The families: the documents' tables as rows.

use super::{Extent, Plan, PlannedRow, key};
use crate::result::{Key, Mix, Protocol};
use crate::security::securities;

/// A family.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// The protocols that it can be measured over.
    pub protocols: &'static [Protocol],
    /// Its rows have several clients: they may be several processes.
    pub has_clients: bool,
    documents: &'static [&'static str],
    plan: fn(Protocol, &Extent) -> Built,
}

/// Rows, and what each is held against.
type Built = (Vec<PlannedRow>, Option<fn(&Key) -> Key>);

const SMB: &[Protocol] = &[Protocol::Smb];
const NFS: &[Protocol] = &[Protocol::Nfs3, Protocol::Nfs41];
const ALL: &[Protocol] = &[Protocol::Smb, Protocol::Nfs3, Protocol::Nfs41, Protocol::Directory];
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// All families, in the order of the documents.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "smb-mc-multifile",
        about: "SMB Multichannel, several threads on ten files",
        protocols: SMB,
        has_clients: false,
        documents: &["1.20", "1.25", "1.26", "1.27", "2.04", "2.07"],
        plan: |_, extent| {
            let (mut rows, base) = multichannel(extent, 10, &["1.20", "1.25", "1.27", "2.04"]);
            rows.extend(sequential(extent));
            (rows, base)
        },
    },
    Family {
        name: "smb-mc-singlefile",
        about: "SMB Multichannel, several threads on one file",
        protocols: SMB,
        has_clients: false,
        documents: &["1.21", "1.28"],
        plan: |_, extent| multichannel(extent, 1, &["1.21", "1.28"]),
    },
    Family {
        name: "single-thread",
        about: "one operation at a time, over one connection and over four",
        protocols: &[Protocol::Smb, Protocol::Nfs3, Protocol::Nfs41],
        has_clients: false,
        documents: &["1.22", "3.18"],
        plan: |protocol, extent| single_thread(protocol, extent),
    },
    Family {
        name: "smb-security",
        about: "what signing and encryption cost, data and metadata",
        protocols: SMB,
        has_clients: false,
        documents: &["2.10", "2.16"],
        plan: |_, extent| security(extent),
    },
    Family {
        name: "mix-10",
        about: "4 KiB random, from reads to writes in steps of 10 %",
        protocols: ALL,
        has_clients: false,
        documents: &["2.11", "5.06", "5.09"],
        plan: |_, extent| {
            mixes(extent, if extent.quick { 50 } else { 10 }, &[4 * KIB], &["2.11", "5.06", "5.09"])
        },
    },
    Family {
        name: "mix-25",
        about: "4 and 8 KiB random, 64 and 256 KiB sequential, from reads to writes in steps of 25 %",
        protocols: ALL,
        has_clients: false,
        documents: &["5.07", "5.08", "5.12", "5.13", "5.14"],
        plan: |_, extent| {
            let blocks: &[u64] =
                if extent.quick { &[8 * KIB] } else { &[4 * KIB, 8 * KIB, 64 * KIB, 256 * KIB] };
            let documents = &["5.07", "5.08", "5.13", "5.14"];
            mixes(extent, if extent.quick { 50 } else { 25 }, blocks, documents)
        },
    },
    Family {
        name: "scale-out",
        about: "more and more clients, each a session of its own",
        protocols: &[Protocol::Smb, Protocol::Nfs3, Protocol::Nfs41],
        has_clients: true,
        documents: &["2.12", "3.06", "5.01"],
        plan: |_, extent| scale_out(extent),
    },
    Family {
        name: "nfs-nconnect",
        about: "connections of one NFS client, by block size and queue depth",
        protocols: NFS,
        has_clients: false,
        documents: &["3.07", "3.09", "3.11", "3.16", "3.18", "5.10", "5.16"],
        plan: |_, extent| nconnect(extent),
    },
    Family {
        name: "nfs-readahead",
        about: "sequential reads with as much under way as read-ahead of 128 KiB, 15 x rsize and 15 MiB puts there",
        protocols: NFS,
        has_clients: false,
        documents: &["3.02", "3.03", "3.04"],
        plan: |_, extent| readahead(extent),
    },
    Family {
        name: "cache-in",
        about: "random reads of a working set that fits into every cache",
        protocols: ALL,
        has_clients: false,
        documents: &["5.05", "5.06", "5.12"],
        plan: |_, extent| cache(extent, "in"),
    },
    Family {
        name: "cache-out",
        about: "random reads of all files, which should be larger than the server's memory (--file-size)",
        protocols: ALL,
        has_clients: false,
        documents: &["5.05", "5.07", "5.13"],
        plan: |_, extent| cache(extent, "out"),
    },
    Family {
        name: "metadata",
        about: "create, open, close, stat, list and delete",
        protocols: ALL,
        has_clients: false,
        documents: &["1.29", "1.31", "1.33"],
        plan: |_, extent| metadata(extent),
    },
    Family {
        name: "limits",
        about: "as much as a share lets through: IOPS, throughput, a single file, metadata",
        protocols: ALL,
        has_clients: false,
        documents: &["1.05", "1.06"],
        plan: |_, extent| limits(extent),
    },
];

/// The family of a name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

impl Family {
    /// Its rows for a protocol.
    #[must_use]
    pub fn plan(&self, protocol: Protocol, extent: &Extent) -> Plan {
        let (rows, base) = (self.plan)(protocol, extent);
        let documents = self.documents.iter().map(|&d| d.to_owned()).collect();
        let mut plan = Plan {
            family: self.name.to_owned(),
            documents,
            rows,
            comparisons: Vec::new(),
            not_honoured: Vec::new(),
        };
        if let Some(base) = base {
            plan.compare_with(base);
        }
        plan
    }
}

fn row(key: Key, documents: &[&'static str]) -> PlannedRow {
    PlannedRow { key, documents: documents.to_vec(), security: None }
}

/// Each combination of three lists.
fn sweep(
    connections: &[u32],
    blocks: &[u64],
    reads: &[u8],
    make: impl Fn(Key) -> PlannedRow,
) -> Vec<PlannedRow> {
    let mut rows = Vec::new();
    for &block in blocks {
        for &reads in reads {
            rows.extend(connections.iter().map(|&connections| make(key(connections, block, reads))));
        }
    }
    rows
}

fn one_connection(other: &Key) -> Key {
    Key { connections: 1, ..other.clone() }
}

fn multichannel(extent: &Extent, files: u32, documents: &[&'static str]) -> Built {
    let channels: &[u32] = if extent.quick { &[1, 4] } else { &[1, 2, 4, 8, 16] };
    let blocks = if extent.quick { vec![4 * KIB, 64 * KIB] } else { vec![4 * KIB, 64 * KIB, MIB] };
    let rows = sweep(channels, &blocks, &[100, 0], |key| {
        row(Key { files, threads: 8, queue_depth: 8, ..key }, documents)
    });
    (rows, Some(one_connection))
}

/// More channels for sequential work (2.07).
fn sequential(extent: &Extent) -> Vec<PlannedRow> {
    let channels: &[u32] = if extent.quick { &[] } else { &[1, 2, 4, 8, 16] };
    sweep(channels, &[64 * KIB], &[100, 0], |key| {
        row(Key { random: false, files: 10, threads: 8, queue_depth: 8, ..key }, &["2.07"])
    })
}

fn single_thread(protocol: Protocol, extent: &Extent) -> Built {
    let documents = if protocol == Protocol::Smb { ["1.22"] } else { ["3.18"] };
    let blocks = if extent.quick { vec![4 * KIB] } else { vec![4 * KIB, 64 * KIB] };
    let mut rows = Vec::new();
    for files in [1, 10] {
        rows.extend(sweep(&[1, 4], &blocks, &[100, 0], |key| row(Key { files, ..key }, &documents)));
    }
    (rows, Some(one_connection))
}

fn security(extent: &Extent) -> Built {
    let mut rows = Vec::new();
    let left_out = ["HMAC-SHA256", "AES-128-CCM", "AES-256-CCM"];
    for (name, security) in
        securities().into_iter().filter(|(name, _)| !extent.quick || !left_out.contains(name))
    {
        // Small and large ones where it is what clients of today agree on.
        let all_sizes = !extent.quick && ["none", "AES-128-GMAC", "AES-128-GCM"].contains(&name);
        let blocks: &[u64] = if all_sizes { &[4 * KIB, 64 * KIB, MIB] } else { &[64 * KIB] };
        let data = blocks.iter().flat_map(|&block| [key(1, block, 100), key(1, block, 0)]);
        let data = data.map(|k| Key { files: 4, threads: 4, queue_depth: 8, ..k });
        let names = Key { mix: Mix::Metadata, threads: 8, random: false, ..key(1, 0, 0) };
        for mut key in data.chain([names]) {
            let document = if security.encrypt { "2.16" } else { "2.10" };
            key.settings.insert("security".to_owned(), name.to_owned());
            rows.push(PlannedRow { key, documents: vec![document], security: Some(security.clone()) });
        }
    }
    let base = |other: &Key| {
        let mut key = other.clone();
        key.settings.insert("security".to_owned(), "none".to_owned());
        key
    };
    (rows, Some(base))
}

fn mixes(extent: &Extent, step: u8, blocks: &[u64], documents: &[&'static str]) -> Built {
    let reads: Vec<u8> = (0..=100).rev().step_by(step.into()).collect();
    let threads = if extent.quick { 8 } else { 16 };
    // High throughput is sequential there (5.11), high IOPS random.
    let random = |key: &Key| key.block_bytes < 64 * KIB;
    let make = |key| row(Key { random: random(&key), files: 4, threads, queue_depth: 4, ..key }, documents);
    (sweep(&[4], blocks, &reads, make), None)
}

fn scale_out(extent: &Extent) -> Built {
    let clients: &[u32] = if extent.quick { &[1, 4] } else { &[1, 2, 4, 8] };
    let blocks = if extent.quick { vec![4 * KIB] } else { vec![4 * KIB, 64 * KIB] };
    let mut rows = Vec::new();
    for &clients in clients {
        let make = |key| {
            row(Key { clients, files: 8, threads: 4 * clients, queue_depth: 4, ..key }, &["2.12", "5.01"])
        };
        rows.extend(sweep(&[1], &blocks, &[100, 0], make));
    }
    (rows, Some(|other| Key { clients: 1, threads: 4, ..other.clone() }))
}

fn nconnect(extent: &Extent) -> Built {
    let connections: &[u32] = if extent.quick { &[1, 4] } else { &[1, 2, 4, 8, 16] };
    let deep: &[u64] = if extent.quick { &[4 * KIB, 64 * KIB] } else { &[4 * KIB, 8 * KIB, 64 * KIB, MIB] };
    let shallow: &[u64] = if extent.quick { &[4 * KIB] } else { &[4 * KIB, 64 * KIB] };
    let documents = ["3.07", "3.09", "3.16", "5.10"];
    let mut rows =
        sweep(connections, deep, &[100, 0], |key| row(Key { files: 4, queue_depth: 64, ..key }, &documents));
    rows.extend(sweep(connections, shallow, &[100, 0], |key| {
        row(Key { files: 4, queue_depth: 1, ..key }, &["3.18"])
    }));
    if !extent.quick {
        rows.extend(sweep(&[1, 4], &[4 * KIB], &[100], |key| {
            row(Key { files: 4, queue_depth: 256, ..key }, &["3.11"])
        }));
    }
    (rows, Some(one_connection))
}

/// A kernel keeps as many reads of rsize under way as fit into its read-ahead.
fn readahead(_: &Extent) -> Built {
    const RSIZE: u64 = 256 * KIB;
    let rows = [("128KiB", 128 * KIB, 1), ("15xrsize", RSIZE, 15), ("15MiB", RSIZE, 60)].map(
        |(name, block, depth)| {
            let mut key = Key { random: false, queue_depth: depth, ..key(1, block, 100) };
            key.settings.insert("readahead".to_owned(), name.to_owned());
            row(key, &["3.02", "3.03"])
        },
    );
    let base = |other: &Key| {
        let mut key = Key { block_bytes: 128 * KIB, queue_depth: 1, ..other.clone() };
        key.settings.insert("readahead".to_owned(), "128KiB".to_owned());
        key
    };
    (rows.to_vec(), Some(base))
}

fn cache(extent: &Extent, which: &'static str) -> Built {
    let blocks = if extent.quick { vec![4 * KIB] } else { vec![4 * KIB, 8 * KIB, 64 * KIB] };
    let files = if which == "in" { 1 } else { 10 };
    let rows = sweep(&[4], &blocks, &[100], |key| {
        let mut key = Key { files, threads: 8, queue_depth: 8, ..key };
        key.settings.insert("cache".to_owned(), which.to_owned());
        row(key, &["5.05"])
    });
    (rows, None)
}

fn metadata(extent: &Extent) -> Built {
    let threads: &[u32] = if extent.quick { &[1, 16] } else { &[1, 8, 32] };
    let of = |threads: &u32| {
        row(Key { mix: Mix::Metadata, random: false, threads: *threads, ..key(1, 0, 0) }, &["1.29", "1.33"])
    };
    (threads.iter().map(of).collect(), None)
}

fn limits(_: &Extent) -> Built {
    let data = |connections, block, reads, files| {
        row(Key { files, threads: 8, queue_depth: 8, ..key(connections, block, reads) }, &["1.05"])
    };
    let names = row(Key { mix: Mix::Metadata, random: false, threads: 16, ..key(1, 0, 0) }, &["1.05"]);
    let rows = vec![
        data(4, 4 * KIB, 100, 10),
        data(4, 4 * KIB, 0, 10),
        data(4, MIB, 100, 10),
        data(4, MIB, 0, 10),
        data(4, 4 * KIB, 100, 1),
        data(4, MIB, 100, 1),
        names,
    ];
    (rows, None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_different_and_held_against_rows_that_there_are() {
        for family in FAMILIES {
            for (quick, protocol) in [true, false].into_iter().zip(family.protocols.iter().cycle()) {
                let plan = family.plan(*protocol, &Extent::new(quick));
                let keys: BTreeSet<_> = plan.rows.iter().map(|row| &row.key).collect();
                assert_eq!(keys.len(), plan.rows.len(), "{}", family.name);
                assert!(plan.rows.iter().all(|row| !row.documents.is_empty()));
                assert!(plan.comparisons.iter().all(|(base, other)| base != other));
            }
        }
    }

    #[test]
    fn rows_that_are_left_keep_their_comparisons() {
        let mut plan = family("smb-mc-multifile").unwrap().plan(Protocol::Smb, &Extent::new(false));
        plan.retain(|key| [1, 4].contains(&key.connections) && key.block_bytes == 64 * KIB && key.random);
        assert_eq!((plan.rows.len(), plan.comparisons.len()), (4, 2));
        assert!(plan.comparisons.iter().all(|(base, other)| {
            let (base, other) = (&plan.rows[*base].key, &plan.rows[*other].key);
            (base.connections, other.connections, &base.mix) == (1, 4, &other.mix)
        }));
        plan.retain(|key| key.connections == 4);
        assert_eq!((plan.rows.len(), plan.comparisons.len()), (2, 0));
    }

    #[test]
    fn channels_are_held_against_one() {
        let plan = family("smb-mc-multifile").unwrap().plan(Protocol::Smb, &Extent::new(false));
        assert_eq!((plan.rows.len(), plan.comparisons.len()), (40, 32));
        assert!(plan.comparisons.iter().all(|(base, other)| {
            let (base, other) = (&plan.rows[*base].key, &plan.rows[*other].key);
            base.connections == 1
                && other.connections > 1
                && base.block_bytes == other.block_bytes
                && base.mix == other.mix
        }));
    }
}
