//! The paths in a source file: those of its `use` declarations, and those written in full.

use crate::words::{before, is_word, word_at, words};

/// One name that a `use` declaration imports.
#[derive(Debug, PartialEq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    /// Whether the name is re-exported.
    pub(super) public: bool,
}

/// The imports of the `use` declarations of a source, and the source without them.
pub(super) fn split(source: &str) -> (Vec<Import>, String) {
    let (mut imports, mut rest, mut from) = (Vec::new(), String::new(), 0);
    let mut line = 0;
    while line < source.len() {
        if let Some(declaration) = Declaration::read(&source[line..]) {
            rest.push_str(&source[from..line]);
            from = line + declaration.length;
            let tree = declaration.tree.split_whitespace().collect::<Vec<_>>().join(" ");
            let public = declaration.public;
            imports.extend(leaves(&tree, &[]).into_iter().map(|(path, name)| Import { path, name, public }));
        }
        let next = from.max(line);
        line = source[next..].find('\n').map_or(source.len(), |end| next + end + 1);
    }
    rest.push_str(&source[from..]);
    (imports, rest)
}

/// A `use` declaration at the start of a line.
struct Declaration<'a> {
    public: bool,
    tree: &'a str,
    length: usize,
}

impl<'a> Declaration<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let begun = text.trim_start_matches([' ', '\t']);
        let shown = visibility(begun);
        let tree =
            shown.unwrap_or(begun).strip_prefix("use").filter(|t| t.starts_with(char::is_whitespace))?;
        let tree = tree.trim_start();
        let end = tree.find(';').filter(|end| *end > 0)?;
        let length = text.len() - tree.len() + end + 1;
        Some(Self { public: shown.is_some(), tree: &tree[..end], length })
    }
}

/// The rest of a text that begins with `pub` or `pub(...)`.
fn visibility(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1,
        None => rest,
    };
    let further = rest.trim_start_matches([' ', '\t']);
    (further.len() < rest.len()).then_some(further)
}

/// The paths of a use tree, each with its local name: `a::{b, c as d}` -> (a b, b), (a c, d).
fn leaves(tree: &str, prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let names = |path: &str| {
        let written = path.trim().split("::").filter(|name| !name.is_empty());
        [prefix, &written.map(str::to_owned).collect::<Vec<_>>()].concat()
    };
    if let Some((head, inner)) = tree.split_once('{') {
        let prefix = names(head.trim().trim_matches(':'));
        let inner = inner.rsplit_once('}').map_or("", |(inner, _)| inner);
        return parts(inner).into_iter().flat_map(|part| leaves(part, &prefix)).collect();
    }
    let tree = tree.trim();
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = names(path);
    if path.len() > 1 {
        path.pop_if(|last| last == "self");
    }
    let Some(last) = path.last() else { return Vec::new() };
    let name = if name.trim().is_empty() { last.clone() } else { name.trim().to_owned() };
    vec![(path, name)]
}

/// Splits at the commas outside of braces.
fn parts(inner: &str) -> Vec<&str> {
    let mut depth = 0;
    let outside = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    inner.split(outside).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Paths of at least two names that are written in full in a source.
pub(super) fn paths(source: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (begin, word) in words(source) {
        if before(source, begin).is_some_and(|c| c == ':' || c == '.') {
            continue;
        }
        let mut names = vec![word.to_owned()];
        let mut rest = &source[begin + word.len()..];
        while let Some(next) = rest.strip_prefix("::").filter(|next| next.starts_with(is_word)) {
            names.push(word_at(next).to_owned());
            rest = &next[word_at(next).len()..];
        }
        if names.len() > 1 {
            found.push(names);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(path: &str, name: &str, public: bool) -> Import {
        Import { path: path.split(' ').map(str::to_owned).collect(), name: name.to_owned(), public }
    }

    #[test]
    fn a_tree_has_leaves() {
        let (imports, rest) = split(
            "use a::{\n    b, c as d,\n    e::{self, f::*},\n};\npub(crate) use ::g::h; use not::this;\nx\n  pub use i::self;\n",
        );
        let wanted = [
            import("a b", "b", false),
            import("a c", "d", false),
            import("a e", "e", false),
            import("a e f *", "*", false),
            import("g h", "h", true),
            import("i", "i", true),
        ];
        assert_eq!(imports, wanted);
        assert_eq!(rest, "\n use not::this;\nx\n\n");
    }

    #[test]
    fn a_path_has_two_names_and_more() {
        let found = paths("f(a::b::<C>(), d.e::g, ::h::i, _j1::k)");
        assert_eq!(found, [vec!["a", "b"], vec!["_j1", "k"]]);
    }
}
