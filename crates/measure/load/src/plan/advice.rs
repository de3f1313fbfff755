//! What `anabranch advise` measures: few rows, each kind of work with one connection and with four.

use super::{Extent, Plan, PlannedRow, key};
use crate::result::{Key, Mix, Protocol};
use crate::security::securities;

const KIB: u64 = 1024;

/// Half a minute for all of its rows, with six repetitions.
#[must_use]
pub fn advice_extent() -> Extent {
    Extent { quick: false, repetitions: 6, ramp_seconds: 0.1, seconds: 0.3, file_bytes: 16 << 20 }
}

/// Works that the documents' advice tells apart, by one connection and by four; over SMB also what signing and encryption cost.
#[must_use]
pub fn advice(protocol: Protocol) -> Plan {
    let works = if protocol == Protocol::Smb { smb_works() } else { nfs_works() };
    let mut rows = Vec::new();
    for work in works {
        rows.extend([1, 4].map(|connections| row(Key { connections, ..work.clone() })));
    }
    let mut plan = of_rows(rows);
    plan.compare_with(|other| Key { connections: 1, ..other.clone() });
    if protocol == Protocol::Smb {
        plan.rows.extend(protected());
        let mut security = of_rows(plan.rows.clone());
        security.compare_with(|other| {
            let mut key = other.clone();
            key.settings.entry("security".to_owned()).and_modify(|name| "none".clone_into(name));
            key
        });
        plan.comparisons.extend(security.comparisons);
    }
    plan
}

/// One row of reads and one of names, to see what a share's settings do to them.
#[must_use]
pub fn settings() -> Plan {
    let reads = Key { files: 4, threads: 8, queue_depth: 4, ..key(1, 4 * KIB, 100) };
    let names = Key { mix: Mix::Metadata, threads: 4, random: false, ..key(1, 0, 0) };
    of_rows(vec![row(reads), row(names)])
}

/// One row alone.
#[must_use]
pub fn alone(key: Key) -> Plan {
    of_rows(vec![row(key)])
}

fn smb_works() -> [Key; 3] {
    [
        Key { files: 4, threads: 8, queue_depth: 4, ..key(1, 64 * KIB, 100) },
        Key { threads: 8, ..key(1, 4 * KIB, 100) },
        key(1, 4 * KIB, 100),
    ]
}

fn nfs_works() -> [Key; 3] {
    [
        Key { files: 4, queue_depth: 64, ..key(1, 64 * KIB, 100) },
        Key { files: 4, queue_depth: 16, ..key(1, 64 * KIB, 0) },
        key(1, 4 * KIB, 100),
    ]
}

fn protected() -> Vec<PlannedRow> {
    let wanted = ["none", "AES-128-CMAC", "AES-128-GCM"];
    let of_name = |(name, security): (&str, _)| {
        let mut key = Key { files: 4, threads: 4, queue_depth: 8, ..key(1, 64 * KIB, 100) };
        key.settings.insert("security".to_owned(), name.to_owned());
        PlannedRow { key, documents: vec!["2.16"], security: Some(security) }
    };
    securities().into_iter().filter(|(name, _)| wanted.contains(name)).map(of_name).collect()
}

fn row(key: Key) -> PlannedRow {
    PlannedRow { key, documents: Vec::new(), security: None }
}

fn of_rows(rows: Vec<PlannedRow>) -> Plan {
    Plan {
        family: "advice".to_owned(),
        documents: Vec::new(),
        rows,
        comparisons: Vec::new(),
        not_honoured: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_is_held_against_one_connection_and_each_protection_against_none() {
        for (protocol, rows, comparisons) in
            [(Protocol::Smb, 9, 5), (Protocol::Nfs3, 6, 3), (Protocol::Nfs41, 6, 3)]
        {
            let plan = advice(protocol);
            assert_eq!((plan.rows.len(), plan.comparisons.len()), (rows, comparisons), "{protocol:?}");
            for (base, other) in &plan.comparisons {
                let [base, other] = [base, other].map(|n| &plan.rows[*n].key);
                let security = |key: &Key| key.settings.get("security").cloned();
                assert!(
                    base.connections == 1
                        && (other.connections == 4 || security(base) == Some("none".to_owned()))
                );
                assert_ne!(base, other);
            }
            let extent = advice_extent();
            let passes = f64::from(extent.repetitions + 1) * f64::from(u32::try_from(rows).unwrap());
            assert!(passes * (extent.seconds + extent.ramp_seconds + 0.05) < 30.0, "half a minute");
        }
    }
}
