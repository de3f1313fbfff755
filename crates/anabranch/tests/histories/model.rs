//! What a share holds, and what changes make of it.

use std::collections::BTreeMap;

use acl::{Ace, SecurityDescriptor};

/// The objects of a share by their paths, `a/b`; the root is not among them.
pub(crate) type Tree = BTreeMap<String, Node>;

/// The bytes of a file or a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// What it was before the one write under way when the server was killed: of that write any part may be done.
    before: Option<Vec<u8>>,
}

/// Who may do what with an object, as far as it is known yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Security {
    whole: Option<SecurityDescriptor>,
    /// The entries that a client has set.
    entries: Option<Vec<Ace>>,
}

/// A file or a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// None of a directory.
    pub(crate) data: Option<Content>,
    pub(crate) streams: BTreeMap<String, Content>,
    /// The permission bits, as far as they are known yet.
    mode: Option<u32>,
    security: Security,
}

/// What a client sees of an object: over NFS neither streams nor descriptors, over SMB no bits.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) streams: Option<BTreeMap<String, Vec<u8>>>,
    pub(crate) mode: Option<u32>,
    pub(crate) security: Option<SecurityDescriptor>,
}

/// What a client changes with one request.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    MakeFile(String),
    MakeDirectory(String),
    Write(String, usize, Vec<u8>),
    Resize(String, usize),
    Rename(String, String),
    Remove(String),
    MakeStream(String, String),
    WriteStream(String, String, usize, Vec<u8>),
    RemoveStream(String, String),
    SetEntries(String, Vec<Ace>),
    SetMode(String, u32),
}

impl Content {
    fn write(&mut self, at: usize, data: &[u8]) {
        self.before = Some(self.bytes.clone());
        let end = at + data.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at..end].copy_from_slice(data);
    }

    /// Each byte is that of before or that of afterwards, and so is the length, or it lies between the two.
    fn may_be(&self, seen: &[u8]) -> bool {
        let Some(before) = &self.before else { return self.bytes == seen };
        let lengths = before.len().min(self.bytes.len())..=before.len().max(self.bytes.len());
        let is_one = |(at, byte): (usize, &u8)| {
            self.bytes.get(at) == Some(byte) || before.get(at).unwrap_or(&0) == byte
        };
        lengths.contains(&seen.len()) && seen.iter().enumerate().all(is_one)
    }

    /// The write has been acknowledged.
    fn settle(&mut self) {
        self.before = None;
    }
}

impl Node {
    fn file() -> Self {
        Self { data: Some(Content::default()), ..Self::default() }
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.data.is_none()
    }

    /// How an object that a client sees differs from this one.
    fn difference(&self, seen: &Seen) -> Option<String> {
        let about = |content: &Content, seen: &[u8]| {
            let first = content.bytes.iter().zip(seen).position(|(a, b)| a != b);
            format!("{} bytes, not {}; the first that differs: {first:?}", seen.len(), content.bytes.len())
        };
        match (&self.data, &seen.data) {
            (Some(content), Some(seen)) if !content.may_be(seen) => return Some(about(content, seen)),
            (Some(_), Some(_)) | (None, None) => {}
            (content, _) => return Some(format!("directory: {}", content.is_some())),
        }
        if let Some(streams) = &seen.streams {
            if !streams.keys().eq(self.streams.keys()) {
                return Some(format!("streams {:?}, not {:?}", streams.keys(), self.streams.keys()));
            }
            let differs = |(name, content): (&String, &Content)| {
                let seen = &streams[name];
                (!content.may_be(seen)).then(|| format!("stream {name}: {}", about(content, seen)))
            };
            if let Some(difference) = self.streams.iter().find_map(differs) {
                return Some(difference);
            }
        }
        if let (Some(mode), Some(seen)) = (self.mode, seen.mode)
            && mode != seen
        {
            return Some(format!("mode {seen:o}, not {mode:o}"));
        }
        let seen = seen.security.as_ref()?;
        let entries = seen.dacl.as_ref().map(|list| &list.aces);
        let is_same = self.security.whole.as_ref().is_none_or(|whole| whole == seen)
            && self.security.entries.as_ref().is_none_or(|known| Some(known) == entries);
        (!is_same).then(|| format!("security {seen:?}, not {:?}", self.security))
    }

    fn learn(&mut self, seen: &Seen) {
        if let (Some(content), Some(seen)) = (&mut self.data, &seen.data) {
            *content = Content { bytes: seen.clone(), before: None };
        }
        if let Some(streams) = &seen.streams {
            let known = |(name, seen): (&String, &Vec<u8>)| {
                (name.clone(), Content { bytes: seen.clone(), before: None })
            };
            self.streams = streams.iter().map(known).collect();
        }
        self.mode = seen.mode.or(self.mode);
        if seen.security.is_some() {
            self.security = Security { whole: seen.security.clone(), entries: None };
        }
    }
}

/// How what a client sees differs from a tree.
pub(crate) fn difference(tree: &Tree, seen: &BTreeMap<String, Seen>) -> Option<String> {
    if !tree.keys().eq(seen.keys()) {
        let (missing, more): (Vec<_>, Vec<_>) = (
            tree.keys().filter(|path| !seen.contains_key(*path)).collect(),
            seen.keys().filter(|path| !tree.contains_key(*path)).collect(),
        );
        return Some(format!("missing: {missing:?}, too much: {more:?}"));
    }
    tree.iter().find_map(|(path, node)| node.difference(&seen[path]).map(|what| format!("{path}: {what}")))
}

/// What a tree leaves open is as a client sees it.
pub(crate) fn learn(tree: &mut Tree, seen: &BTreeMap<String, Seen>) {
    tree.iter_mut().for_each(|(path, node)| node.learn(&seen[path]));
}

/// Whether a path is another one or lies below it; all do below the root, which is empty.
pub(crate) fn is_at_or_below(path: &str, top: &str) -> bool {
    top.is_empty() || path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Change {
    /// Carries it out; it is possible in this tree. What of a write may be missing is known until [`acknowledge`].
    pub(crate) fn apply(&self, tree: &mut Tree) {
        let node = |tree: &mut Tree, path: &str, change: &mut dyn FnMut(&mut Node)| {
            change(tree.get_mut(path).unwrap());
        };
        match self {
            Self::MakeFile(path) => drop(tree.insert(path.clone(), Node::file())),
            Self::MakeDirectory(path) => drop(tree.insert(path.clone(), Node::default())),
            Self::Write(path, at, data) => {
                node(tree, path, &mut |node| node.data.as_mut().unwrap().write(*at, data));
            }
            Self::Resize(path, length) => {
                node(tree, path, &mut |node| node.data.as_mut().unwrap().bytes.resize(*length, 0));
            }
            Self::Rename(from, to) => {
                let moved = tree.extract_if(.., |path, _| is_at_or_below(path, from)).collect::<Vec<_>>();
                let moved =
                    moved.into_iter().map(|(path, node)| (format!("{to}{}", &path[from.len()..]), node));
                tree.extend(moved);
            }
            Self::Remove(path) => drop(tree.remove(path)),
            Self::MakeStream(path, name) => node(tree, path, &mut |node| {
                node.streams.insert(name.clone(), Content::default());
            }),
            Self::WriteStream(path, name, at, data) => {
                node(tree, path, &mut |node| node.streams.get_mut(name).unwrap().write(*at, data));
            }
            Self::RemoveStream(path, name) => node(tree, path, &mut |node| drop(node.streams.remove(name))),
            Self::SetEntries(path, entries) => node(tree, path, &mut |node| {
                node.security = Security { whole: None, entries: Some(entries.clone()) };
                node.mode = None;
            }),
            Self::SetMode(path, mode) => node(tree, path, &mut |node| {
                node.security = Security::default();
                node.mode = Some(*mode);
            }),
        }
    }
}

/// All that was asked is done.
pub(crate) fn acknowledge(tree: &mut Tree) {
    for node in tree.values_mut() {
        node.data.iter_mut().chain(node.streams.values_mut()).for_each(Content::settle);
    }
}

/// A tree into which a path of a snapshot is restored, with `--replace`, and whether anything was left alone (docs/restore.md).
pub(crate) fn restored(live: &Tree, snapshot: &Tree, top: &str) -> (Tree, bool) {
    let (mut tree, mut left_alone) = (live.clone(), Vec::<&str>::new());
    for (path, node) in snapshot.iter().filter(|(path, _)| is_at_or_below(path, top)) {
        if left_alone.iter().any(|above| is_at_or_below(path, above)) {
            continue;
        }
        if live.get(path).is_some_and(|there| there.is_dir() != node.is_dir()) {
            left_alone.push(path);
        } else {
            tree.insert(path.clone(), node.clone());
        }
    }
    (tree, !left_alone.is_empty())
}
