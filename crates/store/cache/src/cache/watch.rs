//! Whether a directory was changed by others during a change by a caller.

use std::sync::Arc;

use storage::{Node, ObjectId, ObservedId, View};

use super::{Cache, Directory, Purpose};

/// Watches a directory from before a caller first reads it until after the caller has changed it. Every change of a followed
/// directory is reported, and so counted. The kernel may merge the changes of two callers within this process, which would
/// hide them from each other. So the callers are counted too.
#[derive(Debug)]
pub struct Watch(Option<Watched>);

#[derive(Debug)]
struct Watched {
    cache: Arc<Cache>,
    dir: ObjectId,
    observed: ObservedId,
    /// The number of changes reported before, and of callers that had begun to change the directory.
    changes: u64,
    begun: u64,
    is_alone: bool,
}

impl Watch {
    /// Begins a watch. A directory that is not followed, or whose store reports nothing, cannot be watched. With
    /// `wants_to_know` it is followed from the second time on.
    pub fn begin(dir: &dyn Node, wants_to_know: bool, view: View<'_>) -> Self {
        let Some((cache, node)) = super::node::behind(dir) else { return Self(None) };
        if wants_to_know && cache.follow(node, Purpose::Watch) {
            cache.settle(view);
        }
        let watched = cache.with(dir.id(), |directory: &mut Directory| {
            if wants_to_know {
                directory.watch();
            }
            let is_alone = directory.changing == 0;
            directory.changing = directory.changing.saturating_add(1);
            directory.begun = directory.begun.wrapping_add(1);
            (directory.observed, directory.changes, directory.begun, is_alone)
        });
        Self(watched.map(|(observed, changes, begun, is_alone)| {
            let cache = Arc::clone(cache);
            Watched { cache, dir: dir.id(), observed, changes, begun, is_alone }
        }))
    }

    /// Whether only these changes have been reported since; `own` other watches of the same directory belong to the caller.
    pub fn saw_only(&self, changes: u64, own: u64, view: View<'_>) -> bool {
        let Some(watched) = &self.0 else { return false };
        watched.cache.settle(view);
        let seen = watched.cache.with(watched.dir, |directory| {
            directory.observed == watched.observed
                && directory.changes == watched.changes.wrapping_add(changes)
                && directory.begun == watched.begun.wrapping_add(own)
        });
        watched.is_alone && seen == Some(true)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.cache.with(self.dir, |directory| {
            if directory.observed == self.observed {
                debug_assert!(directory.changing > 0, "this change of the directory was counted");
                directory.changing = directory.changing.saturating_sub(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::{NewKind, NewNode, NodeRef, Replace, Storage, Wait, Want};
    use storage_local::{LocalOptions, LocalStore};

    use super::*;
    use crate::layer::{Layer, Settings};

    fn name(name: &str) -> storage::Name<'_> {
        storage::Name::new(name.as_bytes()).unwrap()
    }

    fn change(dir: &NodeRef) -> u64 {
        dir.attributes(Want::empty(), Wait::May(MAY)).unwrap().change()
    }

    /// A followed directory behind a cache, and where it is.
    fn followed() -> (NodeRef, Arc<dyn Storage>, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn Storage> =
            Arc::new(LocalStore::open(place.path(), LocalOptions::default()).unwrap());
        let Layer { store, .. } = Layer::over(store, &Settings { bytes_max: 1 << 20, ..Settings::default() });
        std::fs::create_dir(place.path().join("d")).unwrap();
        let dir = store.root().lookup(name("d"), Wait::May(MAY)).unwrap();
        assert!(!Watch::begin(&*dir, true, View::FRESH).saw_only(0, 0, View::FRESH), "nobody follows it yet");
        for _ in 0..2 {
            change(&dir);
        }
        (dir, store, place)
    }

    fn make(dir: &NodeRef, file: &str) {
        let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
        dir.create(name(file), &new, MAY).unwrap();
    }

    #[test]
    fn what_the_caller_does_alone_is_all_that_is_seen() {
        let (dir, store, _place) = followed();
        let root = store.root();
        change(&root);
        let does = |changes, what: &dyn Fn()| {
            let (watch, before) = (Watch::begin(&*dir, true, View::FRESH), change(&dir));
            what();
            assert_ne!(change(&dir), before);
            assert!(watch.saw_only(changes, 0, View::FRESH));
            assert!(!watch.saw_only(changes + 1, 0, View::FRESH));
        };
        does(1, &|| make(&dir, "a"));
        does(1, &|| dir.link(name("b"), &*dir.lookup(name("a"), Wait::May(MAY)).unwrap(), MAY).unwrap());
        does(2, &|| dir.rename(name("a"), &*dir, name("c"), Replace::Yes, MAY).unwrap());
        does(1, &|| dir.rename(name("c"), &*root, name("c"), Replace::Yes, MAY).unwrap());
        does(1, &|| root.rename(name("c"), &*dir, name("e"), Replace::Yes, MAY).unwrap());
        does(1, &|| dir.remove_file(name("b"), MAY).unwrap());
        let (outer, inner) = (Watch::begin(&*dir, true, View::FRESH), Watch::begin(&*dir, true, View::FRESH));
        make(&dir, "x");
        assert!(outer.saw_only(1, 1, View::FRESH), "the caller's own");
        assert!(
            !outer.saw_only(1, 0, View::FRESH) && !inner.saw_only(1, 0, View::FRESH),
            "two callers at a time"
        );
    }

    #[test]
    fn what_others_do_meanwhile_is_seen_whatever_it_is() {
        let (dir, _store, place) = followed();
        let at = |file: &str| place.path().join("d").join(file);
        make(&dir, "a");
        let others: [(&str, &dyn Fn()); 6] = [
            ("make", &|| std::fs::write(at("y"), b"").unwrap()),
            ("remove", &|| std::fs::remove_file(at("y")).unwrap()),
            ("make and remove", &|| {
                std::fs::write(at("z"), b"").unwrap();
                std::fs::remove_file(at("z")).unwrap();
            }),
            ("the same name", &|| {
                std::fs::remove_file(at("x")).unwrap();
                std::fs::write(at("x"), b"").unwrap();
            }),
            ("replace", &|| std::fs::rename(at("a"), at("x")).unwrap()),
            ("attributes", &|| {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
                std::fs::set_permissions(place.path().join("d"), mode).unwrap();
            }),
        ];
        for (what, other) in others {
            let (watch, before) = (Watch::begin(&*dir, true, View::FRESH), change(&dir));
            make(&dir, "x");
            let own = change(&dir);
            other();
            assert_ne!(change(&dir), own, "{what}: a tick of the clock may hold both");
            assert!(!watch.saw_only(1, 0, View::FRESH) && own != before, "{what}");
            dir.remove_file(name("x"), MAY).unwrap();
        }
    }
}
