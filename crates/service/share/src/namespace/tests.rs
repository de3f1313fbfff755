//! Names, without a share.

use std::time::Duration;

use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{NewKind, NewNode};

use super::*;
use crate::operation::DirectoryReport;

const OWNER: u32 = 1000;

fn user(uid: u32) -> Identity {
    Identity::unix(uid, uid, Vec::new())
}

/// The names of an empty store, and its root.
fn namespace() -> (Namespace, NodeRef) {
    let settings =
        cache::Settings { is_on: false, bytes_max: cache::BYTES_MAX, quick: Duration::from_micros(20) };
    let layer = cache::Layer::over(Arc::new(MemoryStore::new()), &settings);
    let root = layer.store.root();
    (Namespace::new(Arc::clone(&root), layer.names), root)
}

/// Makes an object of [`OWNER`].
fn make(dir: &NodeRef, name: &str, kind: NewKind<'_>, mode: u32) -> NodeRef {
    let new = NewNode { kind, mode, uid: OWNER, gid: OWNER };
    dir.create(Name::new(name.as_bytes()).unwrap(), &new, MAY).unwrap()
}

/// Walks a path with the names between slashes; the name that was found, or what else came of it.
fn walked(namespace: &Namespace, who: &Identity, path: &str, case: Case) -> Attempt<String> {
    let path = path.split('/').map(|name| name.as_bytes().to_vec()).collect();
    let lookup = Lookup { who, case, effort: Effort::Whole, want: Want::empty(), epoch: Epoch::default() };
    let (what, name) = match namespace.walk(path, &lookup, MAY)? {
        Walk::Found(found) => ("found", found.name),
        Walk::Missing { name, .. } => ("missing", name),
    };
    Ok(format!("{what} {}", String::from_utf8_lossy(&name)))
}

/// As [`walked`], for the superuser; the error as it is printed.
fn walk(namespace: &Namespace, path: &str, case: Case) -> String {
    walked(namespace, &user(0), path, case).unwrap_or_else(|stopped| format!("{stopped:?}"))
}

#[test]
fn an_exact_name_is_preferred_to_one_that_differs_in_case() {
    let (namespace, root) = namespace();
    for name in ["One", "ONE", "Two"] {
        make(&root, name, NewKind::Regular, 0o644);
    }
    let any = |path| walk(&namespace, path, Case::Insensitive);
    assert_eq!([any("ONE"), any("One")], ["found ONE", "found One"]);
    assert_eq!([any("tWO"), any("three")], ["found Two", "missing three"]);
    assert_eq!(walk(&namespace, "tWO", Case::Sensitive), "missing tWO");
}

#[test]
fn links_are_followed_inside_the_share_only() {
    let (namespace, root) = namespace();
    let dir = make(&root, "dir", NewKind::Directory, 0o755);
    make(&dir, "file", NewKind::Regular, 0o644);
    for (name, target) in [("in", "dir/file"), ("up", "../../dir/file"), ("out", "/etc"), ("loop", "loop")] {
        make(&root, name, NewKind::Symlink(target.as_bytes()), 0o777);
    }
    let walk = |path| walk(&namespace, path, Case::Sensitive);
    assert_eq!([walk("in"), walk("up")], ["found file", "found file"], "`..` of the root is the root");
    assert!(walk("out").contains("AccessDenied"), "{}", walk("out"));
    assert!(walk("loop").contains("SymlinkLoop"), "{}", walk("loop"));
    assert!(walk("in/file").contains("NotDirectory"), "{}", walk("in/file"));
    assert!(walk("none/file").contains("NotFound"), "{}", walk("none/file"));
}

/// Where a path leads of which only the first `trusted` names may be links.
fn reach(namespace: &Namespace, path: &str, trusted: usize) -> String {
    let path = path.split('/').map(|name| name.as_bytes().to_vec()).collect();
    let (who, case) = (&user(0), Case::Sensitive);
    let lookup = Lookup { who, case, effort: Effort::Whole, want: Want::empty(), epoch: Epoch::default() };
    match namespace.reach(path, trusted, &lookup, MAY) {
        Ok(Reached::End(Walk::Found(found))) => {
            format!("{:?} {}", found.node.kind(), String::from_utf8_lossy(&found.name))
        }
        Ok(Reached::End(Walk::Missing { name, .. })) => format!("missing {}", String::from_utf8_lossy(&name)),
        Ok(Reached::Link { link, behind }) => {
            format!("{} and {behind}", String::from_utf8_lossy(&link.read_link(MAY).unwrap()))
        }
        Err(stopped) => format!("{stopped:?}"),
    }
}

#[test]
fn a_walk_stops_at_a_link_that_the_server_has_not_chosen() {
    let (namespace, root) = namespace();
    let dir = make(&root, "dir", NewKind::Directory, 0o755);
    make(&dir, "file", NewKind::Regular, 0o644);
    make(&dir, "up", NewKind::Symlink(b"../dir"), 0o777);
    for (name, target) in [("home", "link"), ("link", "dir"), ("out", "/etc"), ("loop", "loop")] {
        make(&root, name, NewKind::Symlink(target.as_bytes()), 0o777);
    }
    let reach = |path, trusted| reach(&namespace, path, trusted);
    assert_eq!([reach("dir/file", 0), reach("dir/none", 0)], ["Regular file", "missing none"]);
    // A link at the end is found itself, wherever it leads.
    for name in ["link", "out", "loop", "dir/up"] {
        assert_eq!(reach(name, 0), format!("Symlink {}", name.trim_start_matches("dir/")));
    }
    assert_eq!(reach("link/file", 0), "dir and 1");
    assert_eq!(reach("dir/up/up/file", 0), "../dir and 2");
    assert_eq!([reach("out/passwd", 0), reach("loop/x/y", 0)], ["/etc and 1", "loop and 2"]);
    // The server's own names are followed, with the links that they lead over, and nothing after them.
    assert_eq!(reach("home/file", 1), "Regular file");
    assert_eq!(reach("home/up", 1), "Symlink up");
    assert_eq!(reach("home/up/file", 1), "../dir and 1");
    assert_eq!(reach("home", 1), "Directory dir");
    assert!(reach("out/passwd", 1).contains("AccessDenied"));
}

#[test]
fn a_path_of_too_many_names_is_refused() {
    let (namespace, _) = namespace();
    let path = |count: usize| vec!["."; count].join("/");
    assert!(walk(&namespace, &path(COMPONENTS_MAX), Case::Sensitive).starts_with("found"));
    assert!(walk(&namespace, &path(COMPONENTS_MAX + 1), Case::Sensitive).contains("NameTooLong"));
}

#[test]
fn names_are_found_in_directories_that_the_user_may_search() {
    let (namespace, root) = namespace();
    let dir = make(&root, "private", NewKind::Directory, 0o700);
    make(&dir, "file", NewKind::Regular, 0o666);
    let walked = |uid| walked(&namespace, &user(uid), "private/file", Case::Sensitive);
    assert_eq!(walked(OWNER).unwrap(), "found file");
    assert!(matches!(walked(1001), Err(crate::attempt::Stopped::Failed(Error::AccessDenied))));
}

#[test]
fn a_name_that_differs_only_in_case_is_taken() {
    let (namespace, root) = namespace();
    make(&root, "One", NewKind::Regular, 0o644);
    let changing = Changing::begin(DirectoryReport::Nothing, &root, MAY).unwrap();
    let is_free = |name: &[u8], case| {
        namespace.check_free(&changing, Name::new(name).unwrap(), case, Effort::Whole).is_ok()
    };
    assert!(!is_free(b"ONE", Case::Insensitive) && is_free(b"Other", Case::Insensitive));
    assert!(is_free(b"ONE", Case::Sensitive));
}

#[test]
fn an_object_is_located_by_the_path_that_the_store_knows() {
    let (namespace, root) = namespace();
    let dir = make(&root, "dir", NewKind::Directory, 0o755);
    let file = make(&dir, "file", NewKind::Regular, 0o644);
    let found = namespace.locate(&file, MAY).unwrap();
    assert_eq!((found.parent.id(), found.name), (dir.id(), b"file".to_vec()));
    assert!(namespace.locate(&root, MAY).is_none());
}
