//! The suite that every store passes.
//!
//! A store's tests implement [`Subject`] and name a function that makes one:
//!
//! ```ignore
//! fn subject() -> MySubject { .. }
//! storage::conformance_tests!(subject);
//! ```
//!
//! Each check becomes a separate test. If a store lacks a feature ([`crate::Capabilities`]), its calls must return
//! [`crate::Error::NotSupported`], and the checks test for that.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

pub mod attributes;
pub mod concurrency;
pub mod data;
pub mod directories;
pub mod feeds;
pub mod handles;
pub mod kinds;
pub mod links;
pub mod names;
pub mod rename;
pub mod security;
pub mod snapshots;
pub mod sparse;
pub mod streams;
pub mod xattrs;

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    Attributes, Capabilities, MayWait, Name, NewKind, NewNode, Node, NodeRef, ObjectId, Stability, Storage,
    StreamName, Wait, Want,
};

/// An empty store to check, and what the checks cannot do themselves.
pub trait Subject {
    /// The store.
    fn store(&self) -> &dyn Storage;

    /// Closes the store and opens it again, as a restart of the server does. No node is held at that time. Does nothing
    /// for a store that does not outlive its value.
    fn restart(&mut self);

    /// Runs all jobs at the same time, each in its own thread.
    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]);

    /// Whether a check may fill the store: nobody else uses it, and it is small.
    fn may_be_filled(&self) -> bool {
        false
    }
}

/// Tells the others that a job has ended, also if it has failed: they go on until then.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a test of each check. The argument names a function in scope that returns a [`Subject`].
#[macro_export]
macro_rules! conformance_tests {
    ($make:ident) => {
        $crate::conformance_tests! { @each @tests $make }
    };
    (@each $($then:tt)*) => {
        $crate::conformance_tests! { $($then)*;
            names { any_bytes, longest, case_matters, taken, missing, in_what_is_no_directory }
            kinds { every_kind, symlinks_are_not_followed, symlink_texts, data_calls_need_data, wait_never }
            directories {
                lists_each_entry_once, goes_on_behind_each_cookie, cookies_survive_changes, big, parents,
                paths, counts_links, removed_while_held, removes_only_empty,
                removes_what_was_found
            }
            rename {
                moves, replaces_files, replaces_directories, never_replaces, kinds_must_match,
                not_into_itself, onto_its_other_name, missing_names
            }
            links { share_the_object, removed_while_held, not_to_directories, names_taken }
            data {
                reads_what_was_written, ends_at_the_size, changes_the_size, many_slices, every_stability,
                beyond_the_largest, empty_calls, copies_ranges, clones_ranges
            }
            sparse { finds_holes, punches_holes, reserves_space, extends_with_holes }
            attributes {
                new_objects_have_what_was_asked, changes_mode_and_owner, sets_times, changes_move_the_times,
                keeps_flags_and_birth_times, sets_nothing, refuses_what_does_not_apply, tells_space
            }
            xattrs { set_and_removed, modes, lists, limits, own_names_are_hidden, wrong_kinds }
            streams {
                hold_data_of_their_own, any_name, renamed, of_directories, belong_to_the_object, go_with_the_last_name,
                never_a_later_object, removed_while_held, survive_restarts, are_no_entries, sparse_and_large
            }
            security { stored_and_taken_away, in_force_for_its_mode, prepared_for_another_mode, not_of_every_kind }
            handles {
                find_the_object, survive_renames, survive_restarts, go_with_the_object,
                go_with_a_directory_that_is_held,
                never_name_a_later_object, malformed, of_every_kind, one_for_all_names
            }
            feeds { names, names_in_two_directories, the_directory_itself, moves, numbers, side_by_side }
            concurrency {
                one_creator_wins, renames_are_atomic, renames_over_links_are_atomic, writes_side_by_side, lists_while_changing,
                one_object_one_number
            }
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
                        $crate::conformance::$topic::$check(&mut super::$make());
                    }
                )*
            }
        )*
    };
}

/// A check: it panics if the store does not pass.
pub type Check = fn(&mut dyn Subject);

/// All checks with their names, for programs that run them where a test cannot.
pub const CHECKS: &[(&str, Check)] = conformance_tests!(@each @list);

/// Checks and tests may wait. Nothing else names this: `cargo xtask tidy` sees to it.
pub const MAY: MayWait<'static> = MayWait::IN_A_TEST;

/// The default owner of objects in these checks.
const OWNER: (u32, u32) = (1234, 2345);

fn name(bytes: &(impl AsRef<[u8]> + ?Sized)) -> Name<'_> {
    Name::new(bytes.as_ref()).unwrap()
}

fn new(kind: NewKind<'_>) -> NewNode<'_> {
    let mode = if kind == NewKind::Directory { 0o755 } else { 0o644 };
    NewNode { kind, mode, uid: OWNER.0, gid: OWNER.1 }
}

fn stream_name(bytes: &(impl AsRef<[u8]> + ?Sized)) -> StreamName<'_> {
    StreamName::new(bytes.as_ref()).unwrap()
}

fn file(dir: &NodeRef, at: &str) -> NodeRef {
    dir.create(name(at), &new(NewKind::Regular), MAY).unwrap()
}

fn directory(dir: &NodeRef, at: &str) -> NodeRef {
    dir.create(name(at), &new(NewKind::Directory), MAY).unwrap()
}

fn find(dir: &NodeRef, at: &str) -> crate::Result<NodeRef> {
    dir.lookup(name(at), Wait::May(MAY))
}

fn write(node: &dyn Node, offset: u64, data: &[u8]) {
    let count = node.write(offset, &[IoSlice::new(data)], Stability::Unstable, Wait::May(MAY)).unwrap();
    assert_eq!(count, data.len());
}

fn read(node: &dyn Node, offset: u64, count: usize) -> Vec<u8> {
    let mut into = vec![0xee; count];
    let count = node.read(offset, &mut into, Wait::May(MAY)).unwrap();
    into.truncate(count);
    into
}

fn attributes_of(node: &dyn Node) -> Attributes {
    node.attributes(Want::all(), Wait::May(MAY)).unwrap()
}

/// All entries of a directory after a cookie.
fn list(dir: &NodeRef, cookie: u64) -> Vec<(Vec<u8>, ObjectId, u64)> {
    let mut entries = Vec::new();
    let end = dir.read_dir(cookie, MAY, &mut |entry| {
        assert_ne!(entry.cookie, 0);
        entries.push((entry.name.to_vec(), entry.id, entry.cookie));
        ControlFlow::Continue(())
    });
    assert_eq!(end, Ok(true));
    entries
}

fn names(dir: &NodeRef) -> Vec<String> {
    let mut names: Vec<_> = list(dir, 0).into_iter().map(|e| String::from_utf8(e.0).unwrap()).collect();
    names.sort();
    names
}

fn has(subject: &dyn Subject, capability: Capabilities) -> bool {
    subject.store().capabilities().contains(capability)
}
