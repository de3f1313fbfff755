//! Feeds: what has changed in a directory is reported by the next [`Feed::drain`], whoever has changed it.

use std::sync::Arc;

use acl::SecurityDescriptor;

use super::{MAY, OWNER, Subject, directory, file, find, name};
use crate::{
    Capabilities, Error, Feed, Node, NodeRef, ObservedId, Replace, SetAttributes, SetTime, Timestamp,
    Uncertain, XattrMode,
};

/// A feed, and an empty directory that it follows. None for a store without feeds.
fn followed(subject: &dyn Subject) -> Option<(Arc<dyn Feed>, NodeRef, ObservedId)> {
    let feed = match subject.store().feed() {
        Ok(feed) => feed,
        Err(error) => {
            assert_eq!(error, Error::NotSupported);
            return None;
        }
    };
    let dir = directory(&subject.store().root(), "followed");
    let number = feed.follow(&dir).unwrap();
    drain(&*feed);
    Some((feed, dir, number))
}

/// What is uncertain now: names as they are, the directory itself as `.`, and a move of it as `..`.
fn drain(feed: &dyn Feed) -> Vec<(ObservedId, String)> {
    let mut all = Vec::new();
    feed.drain(&mut |uncertain| match uncertain {
        Uncertain::Name { dir, name, .. } => all.push((dir, String::from_utf8(name.to_vec()).unwrap())),
        Uncertain::Itself(dir) => all.push((dir, ".".to_owned())),
        Uncertain::Moved(dir) => all.push((dir, "..".to_owned())),
        Uncertain::All => panic!("so few changes are not lost"),
    });
    all
}

/// Checks that exactly these names of the directory are uncertain now, in any order.
fn expect(feed: &dyn Feed, dir: ObservedId, names: &[&str]) {
    let mut told: Vec<String> =
        drain(feed).into_iter().filter(|(of, _)| *of == dir).map(|(_, what)| what).collect();
    told.sort();
    told.dedup();
    assert_eq!(told, names);
}

/// Each change of a name.
pub fn names(subject: &mut dyn Subject) {
    let Some((feed, dir, number)) = followed(subject) else { return };
    let one = file(&dir, "one");
    expect(&*feed, number, &["one"]);
    dir.link(name("two"), &*one, MAY).unwrap();
    expect(&*feed, number, &["two"]);
    dir.rename(name("two"), &*dir, name("three"), Replace::Never, MAY).unwrap();
    expect(&*feed, number, &["three", "two"]);
    file(&dir, "four");
    dir.rename(name("three"), &*dir, name("four"), Replace::Yes, MAY).unwrap();
    expect(&*feed, number, &["four", "three"]);
    dir.remove_file(name("one"), MAY).unwrap();
    expect(&*feed, number, &["one"]);
    directory(&dir, "inner");
    dir.remove_dir(name("inner"), MAY).unwrap();
    expect(&*feed, number, &["inner"]);
    find(&dir, "four").unwrap();
    expect(&*feed, number, &[]);
}

/// A name that is moved between two directories changes both.
pub fn names_in_two_directories(subject: &mut dyn Subject) {
    let Some((feed, dir, number)) = followed(subject) else { return };
    let other = directory(&subject.store().root(), "other");
    let second = feed.follow(&other).unwrap();
    file(&dir, "file");
    dir.rename(name("file"), &*other, name("moved"), Replace::Never, MAY).unwrap();
    let all = drain(&*feed);
    let is_told = |dir, name: &str| all.contains(&(dir, name.to_owned()));
    assert!(is_told(number, "file") && is_told(second, "moved"), "{all:?}");
}

/// Attributes, descriptors and extended attributes of the directory; not those of its files.
pub fn the_directory_itself(subject: &mut dyn Subject) {
    let Some((feed, dir, number)) = followed(subject) else { return };
    let set = |node: &dyn Node, set: SetAttributes| node.set_attributes(&set, MAY).unwrap();
    set(&*dir, SetAttributes { mode: Some(0o711), ..SetAttributes::default() });
    expect(&*feed, number, &["."]);
    let time = Timestamp { secs: 1_234_567_890, nanos: 0 };
    set(&*dir, SetAttributes { mtime: Some(SetTime::To(time)), ..SetAttributes::default() });
    expect(&*feed, number, &["."]);
    let capabilities = subject.store().capabilities();
    if capabilities.contains(Capabilities::XATTRS) {
        dir.set_xattr(b"key", b"value", XattrMode::Set, MAY).unwrap();
        expect(&*feed, number, &["."]);
        let descriptor = SecurityDescriptor::of_mode(0o750, true, OWNER.0, OWNER.1);
        dir.set_security(Some(descriptor), MAY).unwrap();
        expect(&*feed, number, &["."]);
    }
    let inside = file(&dir, "file");
    expect(&*feed, number, &["file"]);
    set(&*inside, SetAttributes { mode: Some(0o600), ..SetAttributes::default() });
    expect(&*feed, number, &[]);
}

/// A directory that is moved has another parent.
pub fn moves(subject: &mut dyn Subject) {
    let Some((feed, dir, number)) = followed(subject) else { return };
    let inner = directory(&dir, "inner");
    let second = feed.follow(&inner).unwrap();
    drain(&*feed);
    dir.rename(name("inner"), &*subject.store().root(), name("outer"), Replace::Never, MAY).unwrap();
    let mut gone = false;
    let mut moved = false;
    feed.drain(&mut |uncertain| match uncertain {
        Uncertain::Name { dir, name: b"inner", is_dir_gone, .. } => gone |= dir == number && is_dir_gone,
        Uncertain::Moved(dir) => moved |= dir == second,
        _ => {}
    });
    assert!(gone && moved);
}

/// A directory is followed until the caller no longer wants that, under a number that is never given again.
pub fn numbers(subject: &mut dyn Subject) {
    let Some((feed, dir, first)) = followed(subject) else { return };
    let second = feed.follow(&dir).unwrap();
    assert!(second != first && feed.is_followed(second) && !feed.is_followed(first));
    file(&dir, "one");
    assert_eq!(drain(&*feed), [(second, "one".to_owned())]);
    feed.unfollow(second);
    file(&dir, "two");
    assert!(drain(&*feed).is_empty() && !feed.is_followed(second));
    let third = feed.follow(&dir).unwrap();
    assert!(third != first && third != second);
    assert_eq!(feed.follow(&file(&dir, "three")).unwrap_err(), Error::NotDirectory);
}

/// Each feed of a store reports what happens, however many there are.
pub fn side_by_side(subject: &mut dyn Subject) {
    let Some((one, dir, first)) = followed(subject) else { return };
    let Ok(other) = subject.store().feed() else { return };
    let second = other.follow(&dir).unwrap();
    file(&dir, "file");
    expect(&*one, first, &["file"]);
    expect(&*other, second, &["file"]);
    drop(one);
    dir.remove_file(name("file"), MAY).unwrap();
    expect(&*other, second, &["file"]);
}
