//! Import circles: sets of files in which each file imports from each other one, directly or indirectly.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Module, Modules};

/// The imports: for each module, the modules that it imports from.
pub(super) type Arrows = BTreeMap<Module, BTreeSet<Module>>;

/// All circles, including those inside one folder.
pub(super) fn circles(arrows: &Arrows) -> Vec<Vec<Module>> {
    let mut search =
        Search { arrows, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for module in arrows.keys() {
        if !search.index.contains_key(module) {
            search.visit(module);
        }
    }
    search.found
}

/// The circles whose files do not all lie in one folder.
pub(super) fn crossing(modules: &Modules) -> Vec<Vec<Module>> {
    let mut found = circles(&modules.arrows());
    found.retain(|circle| folders(circle, modules).len() > 1);
    found
}

/// The folders of `src` in which a circle lies.
pub(super) fn folders<'a>(circle: &'a [Module], modules: &Modules) -> BTreeSet<&'a str> {
    circle.iter().map(|module| modules.folder(module)).collect()
}

/// A circle in the form in which it is printed.
pub(super) fn shown(circle: &[Module]) -> String {
    let names = circle.iter().map(|m| if m.is_empty() { "(root)".to_owned() } else { m.join("::") });
    names.collect::<Vec<_>>().join(", ")
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    arrows: &'a Arrows,
    index: BTreeMap<&'a Module, usize>,
    low: BTreeMap<&'a Module, usize>,
    stack: Vec<&'a Module>,
    found: Vec<Vec<Module>>,
}

impl<'a> Search<'a> {
    /// The lowest index on the stack that is reached from a module.
    fn visit(&mut self, module: &'a Module) -> usize {
        let (index, depth) = (self.index.len(), self.stack.len());
        let mut low = index;
        self.index.insert(module, index);
        self.low.insert(module, index);
        self.stack.push(module);
        for other in self.arrows.get(module).into_iter().flatten() {
            if !self.index.contains_key(other) {
                low = low.min(self.visit(other));
            } else if self.stack.contains(&other) {
                low = low.min(self.index[other]);
            }
        }
        if low == index {
            let mut circle: Vec<Module> = self.stack.drain(depth..).cloned().collect();
            circle.sort();
            self.found.extend((circle.len() > 1).then_some(circle));
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 6] = [
        ("lib.rs", "mod a;\npub mod b;\npub use a::one::One;\n"),
        ("a/mod.rs", "pub mod one;\npub mod two;\n"),
        ("a/one.rs", "use super::two::Two;\npub struct One;\n"),
        ("a/two.rs", "use super::one::One;\npub struct Two;\n"),
        (
            "b.rs",
            "#[cfg(test)]\nmod tests;\nuse crate::{One, a::two};\npub fn b() {}\n\
             #[cfg(test)]\nmod more {\n    use crate::c;\n}\n",
        ),
        ("c.rs", "use crate::b;\n"),
    ];

    fn all_shown(circles: &[Vec<Module>]) -> Vec<String> {
        circles.iter().map(|circle| shown(circle)).collect()
    }

    #[test]
    fn a_circle_inside_a_folder_crosses_none() {
        let modules = Modules::of(FILES);
        assert_eq!(all_shown(&circles(&modules.arrows())), ["a::one, a::two"]);
        assert!(crossing(&modules).is_empty());
    }

    #[test]
    fn a_circle_that_crosses_a_folder_is_found() {
        let planted = ("a/two.rs", "pub struct Two;\nfn two() { crate::b::b() }\n");
        let modules = Modules::of(FILES.map(|file| if file.0 == planted.0 { planted } else { file }));
        assert_eq!(all_shown(&crossing(&modules)), ["a::one, a::two, b"]);
    }
}
