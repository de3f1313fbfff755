//! MOUNT: export list and root filehandles (RFC 1813 appendix I). Holds the table of the procedures, which have one
//! file each.

mod dump;
mod export;
mod mnt;
pub(crate) mod mounted;
pub(crate) mod run;
mod umnt;
mod umnt_all;

use nfs_wire::mount::Procedure;

use crate::operation::Operation;

/// A row for each procedure but NULL, in the order of their numbers.
pub(crate) const OPERATIONS: [&Operation<Procedure>; 5] =
    [&mnt::OPERATION, &dump::OPERATION, &umnt::OPERATION, &umnt_all::OPERATION, &export::OPERATION];

const _: () = {
    let mut place = 0;
    while place < OPERATIONS.len() {
        assert!(OPERATIONS[place].number as usize == place + 1);
        place += 1;
    }
};

/// The procedure with this number. None for NULL.
fn operation(number: u32) -> Option<&'static Operation<Procedure>> {
    OPERATIONS.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}
