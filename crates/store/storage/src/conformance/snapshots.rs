//! The suite that every provider of snapshots passes, beside the one that its store passes.
//!
//! ```ignore
//! /// None where the store cannot be made here, which the function has said.
//! fn subject() -> Option<MySubject> { .. }
//! storage::snapshot_conformance_tests!(subject);
//! ```

pub mod apart;
pub mod life;
pub mod pictures;
pub mod reverts;

use std::sync::Arc;

use super::{MAY, Subject};
use crate::{Handle, NodeRef, Result, Snapshot, Snapshots, Storage, Wait};

/// Makes a test of each check. The argument names a function in scope that returns a [`Subject`] whose store has snapshots, or
/// None where it has said that there can be none here.
#[macro_export]
macro_rules! snapshot_conformance_tests {
    ($make:ident) => {
        $crate::snapshot_conformance_tests! { @each @tests $make }
    };
    (@each $($then:tt)*) => {
        $crate::snapshot_conformance_tests! { $($then)*;
            pictures {
                keep_content_and_names, keep_attributes, keep_streams, keep_descriptors, keep_xattrs, keep_hard_links,
                keep_holes, keep_notes, keep_large_directories, of_nothing, of_what_was_answered, of_one_moment
            }
            apart {
                numbers_are_those_of_the_originals, handles_open_nothing_of_the_other, handles_survive_restarts,
                handles_lead_to_pictures,
                refuse_every_change, nodes_of_the_other_are_refused, show_nothing_to_clients, do_not_share_what_is_cached
            }
            life {
                listed_by_time, taken_in_one_second, named, unknown, removed_while_open, removed_and_taken_again,
                taken_of_a_full_store, taken_side_by_side, asked_for_a_path
            }
            reverts { bring_everything_back, keep_the_state_of_before, make_handles_stale, one_after_the_other }
        }
    };
    (@list; $($topic:ident { $($check:ident),* $(,)? })*) => {
        &[$($((concat!(stringify!($topic), "::", stringify!($check)), $topic::$check),)*)*]
    };
    (@tests $make:ident; $($topic:ident { $($check:ident),* $(,)? })*) => {
        $(
            mod $topic {
                $(
                    #[test]
                    fn $check() {
                        if let Some(mut subject) = super::$make() {
                            $crate::conformance::snapshots::$topic::$check(&mut subject);
                        }
                    }
                )*
            }
        )*
    };
}

/// All checks with their names, for programs that run them where a test cannot.
pub const CHECKS: &[(&str, super::Check)] = snapshot_conformance_tests!(@each @list);

/// The label in these checks.
const LABEL: &str = "check";

fn snapshots(subject: &dyn Subject) -> Arc<dyn Snapshots> {
    subject.store().snapshots().unwrap()
}

fn take(subject: &dyn Subject) -> Snapshot {
    snapshots(subject).take(LABEL, MAY).unwrap()
}

fn open(subject: &dyn Subject, snapshot: &Snapshot) -> Arc<dyn Storage> {
    snapshots(subject).open(snapshot.id, MAY).unwrap()
}

fn by_handle(store: &dyn Storage, handle: &Handle) -> Result<NodeRef> {
    store.by_handle(handle, Wait::May(MAY))
}
