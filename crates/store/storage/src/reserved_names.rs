//! Names that do not exist for clients.

/// Names that clients cannot look up, list, create, remove or rename, in any directory and in any case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReservedNames {
    /// With case folded.
    folded: Vec<String>,
}

impl<S: AsRef<str>> FromIterator<S> for ReservedNames {
    fn from_iter<T: IntoIterator<Item = S>>(names: T) -> Self {
        Self { folded: names.into_iter().map(|name| folded(name.as_ref())).collect() }
    }
}

impl ReservedNames {
    /// Whether a name is reserved.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        !self.folded.is_empty()
            && std::str::from_utf8(name).is_ok_and(|name| self.folded.contains(&folded(name)))
    }
}

/// Folds case: names that differ only in case give the same result, even for letters with two lower-case forms.
fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reserved_whatever_their_case() {
        let ceph: ReservedNames = [".snap", ".\u{c4}lter"].into_iter().collect();
        for name in [".snap", ".SNAP", ".Snap", ".\u{17f}nap", ".\u{e4}LTER"] {
            assert!(ceph.has(name.as_bytes()), "{name}");
        }
        for name in [".snaps", "snap", ".snap ", "_snap", ".zfs"] {
            assert!(!ceph.has(name.as_bytes()), "{name}");
        }
        assert!(!ceph.has(b".sn\xffp") && !ReservedNames::default().has(b".snap"));
    }
}
