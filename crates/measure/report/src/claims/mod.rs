//! The statements of the documents that a measurement can speak to, one file a document.
//!
//! What they say of features, settings and limits is not here: those are no measurements.

mod azure_files_nfs;
mod azure_files_smb;
mod netapp_linux;
mod netapp_smb;

use super::claim::{Claim, TrendPosition};
use load::result::{Key, Mix, Protocol};

/// A document.
pub(super) struct Document {
    /// The protocols that it is about.
    pub protocols: &'static [Protocol],
    /// Its claims, in its order.
    pub claims: &'static [Claim],
    /// Another document that says the same, and how it differs.
    pub also: &'static str,
}

const SMB: &[Protocol] = &[Protocol::Smb];
const NFS: &[Protocol] = &[Protocol::Nfs3, Protocol::Nfs41];

/// The documents, in their order; the fourth says what the first says.
pub(super) const DOCUMENTS: [Document; 4] = [
    Document {
        protocols: SMB,
        claims: azure_files_smb::CLAIMS,
        also: "Azure Files: SMB Multichannel, of 2020, has the same statements on Multichannel, under \"Performance comparison\" and \"Optimizing performance\".",
    },
    Document { protocols: SMB, claims: netapp_smb::CLAIMS, also: "" },
    Document { protocols: NFS, claims: azure_files_nfs::CLAIMS, also: "" },
    Document { protocols: NFS, claims: netapp_linux::CLAIMS, also: "" },
];

const KIB: u64 = 1024;
const MIB: f64 = 1024.0 * 1024.0;

fn reads(key: &Key) -> bool {
    key.mix == Mix::ReadPercent(100)
}

fn writes(key: &Key) -> bool {
    key.mix == Mix::ReadPercent(0)
}

/// The same over one channel or connection.
fn over_one(key: &Key) -> Key {
    Key { connections: 1, ..key.clone() }
}

/// The same over four.
fn over_four(key: &Key) -> Key {
    Key { connections: 4, ..key.clone() }
}

/// Block sizes that grow, the rest as it is, for pure reads and pure writes over one connection and over four.
fn by_block_size(key: &Key) -> Option<TrendPosition> {
    let wanted = (reads(key) || writes(key)) && matches!(key.connections, 1 | 4);
    wanted.then(|| TrendPosition { with: Key { block_bytes: 0, ..key.clone() }, at: key.block_bytes })
}

/// Writes that grow in a mix, from pure reads to pure writes.
fn by_writes(key: &Key) -> Option<TrendPosition> {
    let Mix::ReadPercent(reads) = key.mix else { return None };
    let with = Key { mix: Mix::ReadPercent(0), ..key.clone() };
    Some(TrendPosition { with, at: 100 - u64::from(reads.min(100)) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::claim::Test;
    use load::plan::{Extent, FAMILIES, family};

    fn claims() -> impl Iterator<Item = &'static Claim> {
        DOCUMENTS.iter().flat_map(|document| document.claims)
    }

    #[test]
    fn statements_are_of_their_document_and_said_once() {
        let mut seen = BTreeSet::new();
        for (number, document) in [1, 2, 3, 5].into_iter().zip(&DOCUMENTS) {
            for claim in document.claims {
                assert!(claim.id.starts_with(&format!("{number}.")), "{}", claim.id);
                assert!(seen.insert((claim.id, claim.statement)), "{} {}", claim.id, claim.statement);
                assert!(claim.line > 0 && !claim.figure.is_empty());
            }
        }
    }

    /// A statement whose family never makes its rows could not be tested by anything.
    #[test]
    fn each_test_finds_rows_in_its_families() {
        let of_documents =
            DOCUMENTS.iter().flat_map(|d| d.claims.iter().map(move |claim| (d.protocols, claim)));
        for (protocols, claim) in of_documents {
            for name in claim.test.families() {
                let family = family(name).unwrap();
                let found = protocols.iter().filter(|p| family.protocols.contains(p)).any(|protocol| {
                    let rows = family.plan(*protocol, &Extent::new(false)).rows;
                    let keys: Vec<_> = rows.into_iter().map(|row| row.key).collect();
                    finds(&claim.test, &keys)
                });
                assert!(found, "{} {}: {name}", claim.id, claim.statement);
            }
        }
    }

    fn finds(test: &Test, keys: &[Key]) -> bool {
        match test {
            Test::Ratio { row, base, .. } => {
                keys.iter().any(|k| row(k) && base(k) != *k && keys.contains(&base(k)))
            }
            Test::Absolute { row, .. } => keys.iter().any(row),
            Test::Trend { place, .. } => {
                let places: Vec<_> = keys.iter().filter_map(place).collect();
                places.iter().any(|a| places.iter().any(|b| a.with == b.with && a.at != b.at))
            }
            Test::Between { .. } => !keys.is_empty(),
            Test::Untestable(_) => true,
        }
    }

    #[test]
    fn every_family_but_the_limits_tests_a_statement() {
        let tested: BTreeSet<_> = claims().flat_map(|claim| claim.test.families()).copied().collect();
        let all = FAMILIES.iter().map(|family| family.name);
        let without: Vec<_> = all.filter(|name| !tested.contains(name)).collect();
        // What a plan lets through, what a client's cache hides, and what the documents show as images only.
        assert_eq!(without, ["scale-out", "cache-in", "cache-out", "limits"]);
    }
}
