//! The modules of one crate, and their imports from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::circles::Arrows;
use super::source::{code, sources};
use super::uses::{self, Import};
use crate::words::words;

/// The path of a module: names from the crate's root, whose path is empty.
pub(super) type Module = Vec<String>;

/// Words before the name of an item.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

/// The items and the imports of one file.
#[derive(Default)]
struct File {
    items: BTreeSet<String>,
    /// The path for which each name stands, as written.
    names: BTreeMap<String, Vec<String>>,
    /// The modules from which all names are imported.
    globs: Vec<Vec<String>>,
    /// The paths that the file itself needs. Re-exports do not count.
    needs: Vec<Vec<String>>,
}

impl File {
    fn read(source: &str) -> Self {
        let (imports, rest) = uses::split(source);
        let mut file = Self { items: items(source), needs: uses::paths(&rest), ..Self::default() };
        for Import { path, name, public } in imports {
            if !public {
                file.needs.push(path.clone());
            }
            match path.split_last() {
                Some((last, module)) if last == "*" => file.globs.push(module.to_vec()),
                _ => drop(file.names.insert(name, path)),
            }
        }
        file
    }
}

/// The names of the items in a source, including nested ones.
fn items(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut last = ("", 0);
    for (at, word) in words(source) {
        let between = &source[last.1..at];
        let blank = !between.is_empty() && between.chars().all(char::is_whitespace);
        if blank && ITEMS.contains(&last.0)
            || last.0 == "macro_rules" && between.strip_prefix('!').is_some_and(|b| b.trim().is_empty())
        {
            found.insert(word.to_owned());
        }
        last = (word, at + word.len());
    }
    found
}

/// The files of a crate.
pub(super) struct Modules {
    files: BTreeMap<Module, File>,
}

impl Modules {
    /// Reads the files below the folder `src` of a crate.
    pub(super) fn read(src: &Path) -> Self {
        let read = |path: &Path| {
            let name = path.strip_prefix(src).unwrap_or(path).display().to_string();
            (name, fs::read_to_string(path).unwrap_or_default())
        };
        Self::of(sources(src).iter().map(|path| read(path)))
    }

    /// Makes modules of these paths and texts.
    pub(super) fn of<P: AsRef<str>, T: AsRef<str>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        let file = |text: &str| File::read(&(code(text).join("\n") + "\n"));
        let files = files.into_iter().map(|(path, text)| (module(path.as_ref()), file(text.as_ref())));
        Self { files: files.collect() }
    }

    /// The folder of `src` to which a file belongs: the one with its own name if that exists (`a.rs` belongs to `a/`).
    pub(super) fn folder<'a>(&self, module: &'a Module) -> &'a str {
        let Some(first) = module.first() else { return "" };
        let is_folder = self.files.keys().any(|other| other.len() > 1 && other[0] == *first);
        if is_folder { first } else { "" }
    }

    /// The modules from which each module imports, except itself.
    pub(super) fn arrows(&self) -> Arrows {
        let targets = |module: &Module, file: &File| {
            let found = file.needs.iter().filter_map(|path| self.file_of(module, path, &mut Vec::new()));
            found.filter(|target| target != module).collect()
        };
        self.files.iter().map(|(module, file)| (module.clone(), targets(module, file))).collect()
    }

    /// The module that defines the `path` used in `module`; None if the path does not belong to this crate.
    fn file_of(
        &self,
        module: &Module,
        path: &[String],
        asked: &mut Vec<(Module, Vec<String>)>,
    ) -> Option<Module> {
        let question = (module.clone(), path.to_vec());
        if asked.contains(&question) {
            return None;
        }
        let (mut at, mut rest) = (module.clone(), path);
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Module::new(), &rest[1..]),
            "self" | "super" => {
                while let Some(word) = rest.first().filter(|word| *word == "self" || *word == "super") {
                    if word == "super" {
                        at.pop();
                    }
                    rest = &rest[1..];
                }
            }
            first
                if !self.files.contains_key(&below(&at, first))
                    && !self.files[&at].names.contains_key(first) =>
            {
                return None;
            }
            _ => {}
        }
        while let Some(inner) =
            rest.first().map(|name| below(&at, name)).filter(|m| self.files.contains_key(m))
        {
            (at, rest) = (inner, &rest[1..]);
        }
        asked.push(question);
        let found = self.defined(at, rest, asked);
        asked.pop();
        found
    }

    /// The module that defines the first name of `rest`, as seen from `at`.
    fn defined(&self, at: Module, rest: &[String], asked: &mut Vec<(Module, Vec<String>)>) -> Option<Module> {
        let file = self.files.get(&at)?;
        let Some(name) = rest.first().filter(|name| *name != "*") else { return Some(at) };
        if let Some(path) = file.names.get(name) {
            // `use bytes::bytes`: a name of another crate
            if path.first() == Some(name) && !self.files.contains_key(&below(&at, name)) {
                return None;
            }
            return self.file_of(&at, &[path, &rest[1..]].concat(), asked);
        }
        if !file.items.contains(name) {
            for module in &file.globs {
                let found = self.file_of(&at, &[module, rest].concat(), asked);
                let has = |m: &Module| !m.is_empty() && self.files[m].items.contains(name);
                if found.as_ref().is_some_and(has) {
                    return found;
                }
            }
        }
        Some(at)
    }
}

fn below(module: &Module, name: &str) -> Module {
    [module.as_slice(), &[name.to_owned()]].concat()
}

/// The module of a file with this path below `src`.
fn module(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut names: Module = path.split('/').map(str::to_owned).collect();
    names.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_by_its_path() {
        assert_eq!(module("lib.rs"), Module::new());
        assert_eq!(module("a/mod.rs"), ["a"]);
        assert_eq!(module("a/one.rs"), ["a", "one"]);
    }

    #[test]
    fn items_have_names() {
        let found = items("pub const fn a() {}\nstruct B<T>;\nmacro_rules! c {}\nlet d = e;\n");
        assert_eq!(found, ["B", "a", "c", "fn"].map(str::to_owned).into());
    }

    #[test]
    fn what_is_passed_on_comes_from_where_it_is_defined() {
        let modules = Modules::of([
            ("lib.rs", "mod a;\nmod b;\npub use a::one::One;\npub(crate) use a::*;\n"),
            ("a/mod.rs", "mod one;\npub fn here() {}\n"),
            ("a/one.rs", "pub struct One;\n"),
            ("b.rs", "use crate::One;\nuse bytes::bytes;\nfn f() { crate::here(); std::mem::take(x); }\n"),
        ]);
        let arrows: Vec<_> = modules.arrows().remove(&vec!["b".to_owned()]).into_iter().flatten().collect();
        assert_eq!(arrows, [vec!["a".to_owned()], vec!["a".to_owned(), "one".to_owned()]]);
    }
}
