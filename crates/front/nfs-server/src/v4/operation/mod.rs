//! The table of the operations of NFSv4. Each has a file, with the name of its codec in [`nfs_wire::v4`].
//!
//! ```text
//! pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::ReadLink, "ReadLink");
//! pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<ResOk, Status>
//! ```
//!
//! Use `async` and `mut` only where they are needed. A handler whose failure contains more than a status returns the
//! result type of its codec (SETATTR, LOCK, COPY). A handler asks [`Compound`] for the current and the saved object
//! (`object`, `object_to_change`, `saved_object`, or `place` if it supports the pseudo file system), for the stateid
//! that the client means (`stateid`), for the client and the session, for `bytes` of its arguments without a copy, and
//! for a `data_buffer` to read into. It sets the new current object (`set_object`) and stateid (`set_stateid`), and
//! reports the payload that it `moved`. Errors of a share become statuses by [`status::v4`](crate::status::v4).
//!
//! In this file, the operation gets a row in [`OPERATIONS`], and in [`run`] an arm. Handlers whose futures are large
//! and that are not on the data path are boxed, so that the future of a READ stays small.
//!
//! [`Compound`]: super::compound::Compound

mod access;
mod allocate;
mod backchannel_ctl;
mod between;
mod bind_conn_to_session;
mod clone;
mod close;
mod commit;
mod copy;
mod create;
mod create_session;
mod data;
mod deallocate;
mod delegation;
mod delegreturn;
mod destroy_clientid;
mod destroy_session;
mod directory;
mod exchange_id;
mod free_stateid;
mod getattr;
mod getfh;
mod getxattr;
mod io_advise;
mod link;
mod listxattrs;
mod lock;
mod lockt;
mod locku;
mod lookup;
mod lookupp;
mod new_object;
mod nverify;
mod offload;
mod offload_cancel;
mod offload_status;
mod open;
mod open_confirm;
mod open_downgrade;
pub(super) mod putfh;
mod putpubfh;
mod putrootfh;
mod read;
mod read_plus;
mod readdir;
mod readlink;
mod reclaim_complete;
mod release_lockowner;
mod remove;
mod removexattr;
mod rename;
mod renew;
mod restorefh;
pub(super) mod run;
mod savefh;
mod secinfo;
mod secinfo_no_name;
mod seek;
mod setattr;
mod setclientid;
mod setclientid_confirm;
mod setxattr;
mod test_stateid;
mod verify;
mod want_delegation;
mod write;
mod xattr;

use nfs_wire::v4::Operation as Number;

pub(crate) use offload::OFFLOAD;

use super::sequence;
use crate::operation::Operation;

/// A row for each supported operation.
pub(crate) const OPERATIONS: &[&Operation<Number>] = &[
    &access::OPERATION,
    &allocate::OPERATION,
    &backchannel_ctl::OPERATION,
    &bind_conn_to_session::OPERATION,
    &clone::OPERATION,
    &close::OPERATION,
    &commit::OPERATION,
    &copy::OPERATION,
    &create::OPERATION,
    &create_session::OPERATION,
    &deallocate::OPERATION,
    &delegreturn::OPERATION,
    &destroy_clientid::OPERATION,
    &destroy_session::OPERATION,
    &exchange_id::OPERATION,
    &free_stateid::OPERATION,
    &getattr::OPERATION,
    &getfh::OPERATION,
    &getxattr::OPERATION,
    &io_advise::OPERATION,
    &link::OPERATION,
    &listxattrs::OPERATION,
    &lock::OPERATION,
    &lockt::OPERATION,
    &locku::OPERATION,
    &lookup::OPERATION,
    &lookupp::OPERATION,
    &nverify::OPERATION,
    &offload_cancel::OPERATION,
    &offload_status::OPERATION,
    &open::OPERATION,
    &open_confirm::OPERATION,
    &open_downgrade::OPERATION,
    &putfh::OPERATION,
    &putpubfh::OPERATION,
    &putrootfh::OPERATION,
    &read::OPERATION,
    &read_plus::OPERATION,
    &readdir::OPERATION,
    &readlink::OPERATION,
    &reclaim_complete::OPERATION,
    &release_lockowner::OPERATION,
    &remove::OPERATION,
    &removexattr::OPERATION,
    &rename::OPERATION,
    &renew::OPERATION,
    &restorefh::OPERATION,
    &savefh::OPERATION,
    &secinfo::OPERATION,
    &secinfo_no_name::OPERATION,
    &seek::OPERATION,
    &sequence::OPERATION,
    &setattr::OPERATION,
    &setclientid::OPERATION,
    &setclientid_confirm::OPERATION,
    &setxattr::OPERATION,
    &test_stateid::OPERATION,
    &verify::OPERATION,
    &want_delegation::OPERATION,
    &write::OPERATION,
];

/// All other operations.
const NOT_SUPPORTED: Operation<Number> = Operation::v4_of_no_share(Number::Illegal);

/// One more than the highest number.
const NUMBERS: usize = Number::RemoveXattr as usize + 1;

/// The rows by their numbers.
static BY_NUMBER: [&Operation<Number>; NUMBERS] = {
    let mut table: [&Operation<Number>; NUMBERS] = [&NOT_SUPPORTED; NUMBERS];
    let mut place = 0;
    while place < OPERATIONS.len() {
        let number = OPERATIONS[place].number as usize;
        assert!(matches!(table[number].number, Number::Illegal)); // each operation has one row
        table[number] = OPERATIONS[place];
        place += 1;
    }
    table
};

/// The row of the operation with this number.
pub(super) fn row(number: Number) -> &'static Operation<Number> {
    BY_NUMBER.get(number as usize).copied().unwrap_or(&NOT_SUPPORTED)
}
