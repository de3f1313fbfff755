//! Which change comes next: one that is possible in a tree.

use acl::{Ace, AceFlags, Sid};
use smb_wire::AccessMask;

use crate::chance::Chance;
use crate::model::{Change, Tree, is_at_or_below};

const NAMES: [&str; 7] = ["a", "b", "c", "d", "report.txt", "photo", "e"];
const STREAMS: [&str; 3] = ["zone", "tags", "summary"];
/// Where writes may begin, and how long they may be; also what is read at once stays below 64 KiB.
const OFFSET_MAX: usize = 40_000;
const LENGTH_MAX: usize = 12_000;
const DIRECTORIES_DEEP_MAX: usize = 3;

/// The next change, if chance hits one that is possible.
pub(crate) fn next(chance: &mut Chance, tree: &Tree) -> Option<Change> {
    let is_dir = |path: &str| tree.get(path).is_none_or(|node| node.is_dir());
    let files: Vec<String> = tree.keys().filter(|path| !is_dir(path)).cloned().collect();
    let all: Vec<String> = tree.keys().cloned().collect();
    match chance.below(20) {
        0..=2 => new_place(chance, tree).map(Change::MakeFile),
        3 => {
            let path = new_place(chance, tree)?;
            (path.split('/').count() <= DIRECTORIES_DEEP_MAX).then_some(Change::MakeDirectory(path))
        }
        4..=7 => {
            let (at, length) = (chance.below(OFFSET_MAX), 1 + chance.below(LENGTH_MAX));
            chance.pick(&files).map(|path| Change::Write(path, at, chance.bytes(length)))
        }
        8 => chance.pick(&files).map(|path| Change::Resize(path, chance.below(OFFSET_MAX))),
        9..=11 => rename(chance, tree, &all),
        12 => {
            let is_free =
                |path: &&String| !tree.keys().any(|other| other != *path && is_at_or_below(other, path));
            let free: Vec<String> = all.iter().filter(is_free).cloned().collect();
            chance.pick(&free).map(Change::Remove)
        }
        13 | 14 => {
            let (path, name) = (chance.pick(&files)?, chance.pick(&STREAMS)?.to_owned());
            let is_there = tree[&path].streams.contains_key(&name);
            let (at, length) = (chance.below(3000), 1 + chance.below(6000));
            Some(if is_there {
                Change::WriteStream(path, name, at, chance.bytes(length))
            } else {
                Change::MakeStream(path, name)
            })
        }
        15 => {
            let path = chance.pick(&files)?;
            let names: Vec<String> = tree[&path].streams.keys().cloned().collect();
            chance.pick(&names).map(|name| Change::RemoveStream(path, name))
        }
        16 | 17 => chance.pick(&all).map(|path| {
            let entries = entries(chance, is_dir(&path));
            Change::SetEntries(path, entries)
        }),
        _ => {
            let path = chance.pick(&all)?;
            let modes = if is_dir(&path) { [0o700, 0o755, 0o777] } else { [0o600, 0o644, 0o640] };
            chance.pick(&modes).map(|mode| Change::SetMode(path, mode))
        }
    }
}

/// A path where nothing is yet.
fn new_place(chance: &mut Chance, tree: &Tree) -> Option<String> {
    let path = place(chance, tree)?;
    (!tree.contains_key(&path)).then_some(path)
}

/// A path in a directory that is there.
fn place(chance: &mut Chance, tree: &Tree) -> Option<String> {
    let directories = tree.iter().filter(|(_, node)| node.is_dir()).map(|(path, _)| format!("{path}/"));
    let directories: Vec<String> = std::iter::once(String::new()).chain(directories).collect();
    Some(format!("{}{}", chance.pick(&directories)?, chance.pick(&NAMES)?))
}

/// Something moves to where nothing is, or a file takes the place of a file.
fn rename(chance: &mut Chance, tree: &Tree, all: &[String]) -> Option<Change> {
    let (from, to) = (chance.pick(all)?, place(chance, tree)?);
    let is_dir = tree[&from].is_dir();
    let is_possible =
        !is_at_or_below(&to, &from) && tree.get(&to).is_none_or(|there| !is_dir && !there.is_dir());
    is_possible.then_some(Change::Rename(from, to))
}

/// Somebody may not, everybody may: so that the clients of the history are never kept out.
fn entries(chance: &mut Chance, is_dir: bool) -> Vec<Ace> {
    let flags = if is_dir && chance.one_in(2) {
        AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT
    } else {
        AceFlags::empty()
    };
    let somebody = |chance: &mut Chance| Sid::of_user(u32::try_from(2000 + chance.below(5)).unwrap());
    let denied = Ace::deny(somebody(chance), AccessMask::WRITE_DATA, flags);
    let permitted = Ace::allow(somebody(chance), AccessMask::FILE_READ, flags);
    vec![denied, permitted, Ace::allow(Sid::EVERYONE, AccessMask::from_bits_retain(0x001F_01FF), flags)]
}
