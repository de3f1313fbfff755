//! What needs no restoring: what has not changed since the snapshot, and what an earlier attempt has restored.

use std::collections::BTreeMap;
use std::time::Duration;

use storage::{Attributes, FileKind};

/// Which files need no restoring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The snapshot was not taken before this moment, since 1970.
    pub(super) taken: Duration,
    /// When the restoration was ordered, since 1970.
    pub(super) ordered: Duration,
    /// The store can set owners.
    pub(super) sets_owners: bool,
    /// The store keeps the birth times of files that it is given.
    pub(super) keeps_births: bool,
}

impl Known {
    /// Whether the present object is that of the snapshot, with all that it held: no client can set a change time. A change within
    /// the tick of the snapshot may not show.
    pub(super) fn is_unchanged(self, then: &Attributes, now: &Attributes) -> bool {
        then.id.number == now.id.number
            && then.id.fs == now.id.fs
            && then.kind == now.kind
            && then.size == now.size
            && then.ctime == now.ctime
            && then.ctime.is_settled_at(self.taken)
    }

    /// The same of the streams of an object, by their names: a change of a stream is none of its object.
    pub(super) fn are_unchanged(
        self,
        then: &BTreeMap<Vec<u8>, Attributes>,
        now: &BTreeMap<Vec<u8>, Attributes>,
    ) -> bool {
        then.keys().eq(now.keys())
            && then.values().zip(now.values()).all(|(then, now)| self.is_unchanged(then, now))
    }

    /// Whether the present object may be what an earlier attempt has made of that of the snapshot: another one, made since it was
    /// ordered, with the same length, times and owners. It may have more names by now. What else belongs to it is to be compared,
    /// since a client can change that without changing any of these.
    pub(super) fn may_be_restored(self, then: &Attributes, now: &Attributes) -> bool {
        let since = u64::try_from(now.ctime.secs)
            .is_ok_and(|secs| Duration::new(secs, now.ctime.nanos.min(999_999_999)) >= self.ordered);
        since
            && then.id.number != now.id.number
            && (then.kind, then.size, then.mtime) == (now.kind, now.size, now.mtime)
            && (!self.sets_owners || (then.uid, then.gid) == (now.uid, now.gid))
            && then.mode == now.mode
            && then.flags == now.flags
            && (!self.keeps_births || then.kind != FileKind::Regular || then.btime == now.btime)
    }

    /// The same of the streams of an object, by their names. No client can set their times of writing.
    pub(super) fn are_restored(
        then: &BTreeMap<Vec<u8>, Attributes>,
        now: &BTreeMap<Vec<u8>, Attributes>,
    ) -> bool {
        let written = |of: &Attributes| (of.size, of.mtime);
        then.keys().eq(now.keys()) && then.values().map(written).eq(now.values().map(written))
    }
}

#[cfg(test)]
mod tests {
    use storage::{Device, ObjectId, Timestamp};

    use super::*;

    const KNOWN: Known = Known {
        taken: Duration::from_secs(1000),
        ordered: Duration::from_secs(2000),
        sets_owners: true,
        keeps_births: true,
    };

    fn file(number: u64, ctime: i64) -> Attributes {
        let time = |secs| Timestamp { secs, nanos: 5 };
        Attributes {
            id: ObjectId::live(number),
            kind: FileKind::Regular,
            mode: 0o644,
            links: 1,
            uid: 7,
            gid: 8,
            device: Device::default(),
            size: 3,
            allocated: 4096,
            atime: time(1),
            mtime: time(100),
            ctime: time(ctime),
            btime: None,
            flags: None,
            ctime_set: None,
            changes_within_ctime: 0,
        }
    }

    #[test]
    fn a_file_is_unchanged_if_its_change_time_says_so() {
        let then = Attributes { id: ObjectId { snapshot: 4, ..ObjectId::live(9) }, ..file(9, 500) };
        assert!(KNOWN.is_unchanged(&then, &file(9, 500)));
        assert!(!KNOWN.is_unchanged(&then, &file(9, 501)), "whatever else is the same");
        assert!(!KNOWN.is_unchanged(&then, &file(10, 500)), "another file");
        // It was changed a moment before the snapshot, and perhaps a moment after it.
        assert!(!KNOWN.is_unchanged(&file(9, 1000), &file(9, 1000)));
        assert!(!KNOWN.is_unchanged(&file(9, 1500), &file(9, 1500)), "the clock was set back");
    }

    #[test]
    fn what_an_earlier_attempt_has_made_is_another_file_made_since() {
        let then = file(9, 500);
        assert!(KNOWN.may_be_restored(&then, &file(20, 2000)));
        assert!(!KNOWN.may_be_restored(&then, &file(20, 1999)), "whoever gave it the same times before");
        assert!(!KNOWN.may_be_restored(&then, &file(9, 2000)), "a changed file with its times set back");
        assert!(!KNOWN.may_be_restored(&then, &Attributes { size: 4, ..file(20, 2000) }));
        assert!(!KNOWN.may_be_restored(&then, &Attributes { uid: 0, ..file(20, 2000) }));
        let unprivileged = Known { sets_owners: false, ..KNOWN };
        assert!(unprivileged.may_be_restored(&then, &Attributes { uid: 0, ..file(20, 2000) }));
        assert!(!KNOWN.may_be_restored(&then, &Attributes { mtime: Timestamp::default(), ..file(20, 2000) }));
        let born = Attributes { btime: Some(Timestamp::default()), ..file(20, 2000) };
        assert!(!KNOWN.may_be_restored(&then, &born));
        assert!(Known { keeps_births: false, ..KNOWN }.may_be_restored(&then, &born));
        let link = |of| Attributes { kind: FileKind::Symlink, ..of };
        assert!(KNOWN.may_be_restored(&link(then), &link(born)), "nobody gives one a birth time");
    }

    #[test]
    fn streams_are_unchanged_if_each_is_and_there_are_no_others() {
        let streams = |ctimes: &[(&str, i64)]| {
            ctimes.iter().map(|(name, ctime)| (name.as_bytes().to_vec(), file(9, *ctime))).collect()
        };
        let then = streams(&[("a", 500), ("b", 600)]);
        assert!(KNOWN.are_unchanged(&then, &then));
        for now in [&[("a", 500)][..], &[("a", 500), ("c", 600)], &[("a", 500), ("b", 601)]] {
            assert!(!KNOWN.are_unchanged(&then, &streams(now)) && !KNOWN.are_unchanged(&streams(now), &then));
        }
        assert!(KNOWN.are_unchanged(&streams(&[]), &streams(&[])));
    }

    #[test]
    fn streams_are_restored_if_each_has_its_length_and_time_and_there_are_no_others() {
        let streams = |sizes: &[(&str, u64)]| {
            let stream = |size| Attributes { size, ..file(9, 500) };
            sizes.iter().map(|(name, size)| (name.as_bytes().to_vec(), stream(*size))).collect()
        };
        let then: BTreeMap<_, _> = streams(&[("a", 1), ("b", 2)]);
        let later =
            then.clone().into_iter().map(|(name, of)| (name, Attributes { id: ObjectId::live(77), ..of }));
        assert!(Known::are_restored(&then, &later.collect()));
        for now in [&[("a", 1)][..], &[("a", 1), ("c", 2)], &[("a", 1), ("b", 3)]] {
            assert!(!Known::are_restored(&then, &streams(now)) && !Known::are_restored(&streams(now), &then));
        }
        let mut written = then.clone();
        written.values_mut().for_each(|of| of.mtime.nanos += 1);
        assert!(!Known::are_restored(&then, &written));
    }
}
