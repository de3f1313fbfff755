//! The operations of all versions of NFS.

use crate::operation::Operation;
use crate::{mount, nlm, v3, v4};

/// The procedures and operations that concern shares, as operations on them.
pub fn operations() -> impl Iterator<Item = &'static share::Operation> {
    fn counted<N>(rows: &'static [&'static Operation<N>]) -> impl Iterator<Item = &'static share::Operation> {
        rows.iter().filter(|row| row.is_counted).map(|row| &row.on_share)
    }
    let v4 = counted(v4::operation::OPERATIONS).chain([&v4::operation::OFFLOAD]);
    let v3 = counted(&v3::OPERATIONS).chain(counted(&mount::OPERATIONS)).chain(counted(&nlm::OPERATIONS));
    v3.chain(v4)
}
