//! NFS version 3: the table of its procedures. Each has a file, with the name of its codec in [`nfs_wire::v3`].
//!
//! ```text
//! pub(super) const OPERATION: Operation<Procedure> = Operation::v3(Procedure::ReadLink, "ReadLink");
//! pub(super) async fn handle(request: &Request<'_>, object: &CalledObject<'_>, args: Args) -> Res
//! ```
//!
//! The runner ([`run`]) finds the object with which the arguments begin, and waits for the call's turn in the budget of
//! its share.

mod access;
mod commit;
mod create;
mod for_object;
mod fsinfo;
mod fsstat;
mod getattr;
mod link;
mod listing;
mod lookup;
mod mkdir;
mod mknod;
mod new_object;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod remove;
mod rename;
mod rmdir;
pub(crate) mod run;
mod setattr;
mod symlink;
mod write;

use nfs_wire::v3::Procedure;

use crate::operation::Operation;

/// A row for each procedure but NULL, in the order of their numbers.
pub(crate) const OPERATIONS: [&Operation<Procedure>; 21] = [
    &getattr::OPERATION,
    &setattr::OPERATION,
    &lookup::OPERATION,
    &access::OPERATION,
    &readlink::OPERATION,
    &read::OPERATION,
    &write::OPERATION,
    &create::OPERATION,
    &mkdir::OPERATION,
    &symlink::OPERATION,
    &mknod::OPERATION,
    &remove::OPERATION,
    &rmdir::OPERATION,
    &rename::OPERATION,
    &link::OPERATION,
    &readdir::OPERATION,
    &readdirplus::OPERATION,
    &fsstat::OPERATION,
    &fsinfo::OPERATION,
    &pathconf::OPERATION,
    &commit::OPERATION,
];

const _: () = {
    let mut place = 0;
    while place < OPERATIONS.len() {
        assert!(OPERATIONS[place].number as usize == place + 1);
        place += 1;
    }
};

/// The procedure with this number. None for NULL.
pub(crate) fn operation(number: u32) -> Option<&'static Operation<Procedure>> {
    OPERATIONS.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}
