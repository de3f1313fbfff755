//! Which directories have quotas, and which of them holds for a path.
//!
//! A quota is for a path, whatever is there. Directories with a quota, and those above them, cannot be renamed through the
//! server, and no directory can be moved into or out of the reach of a quota; so the path of an object says which quota holds.

use quota::{Account, Subject};
use storage::NodeRef;

use super::QuotaSubject;

/// Paths with quotas, the longest first, and their numbers in the ledger.
#[derive(Debug, Default)]
pub(crate) struct Places {
    paths: Vec<(Vec<u8>, u64)>,
    /// The last number that was given.
    last: u64,
}

/// Whether `path` is below `above`, or is it.
fn is_within(path: &[u8], above: &[u8]) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

impl Places {
    /// The places of these quotas. A path that is known keeps its number.
    pub(super) fn with<'a>(&self, subjects: impl Iterator<Item = &'a QuotaSubject>) -> Self {
        let mut last = self.last;
        let mut paths: Vec<(Vec<u8>, u64)> = subjects
            .filter_map(|subject| match subject {
                QuotaSubject::Directory(path) => Some(path),
                _ => None,
            })
            .map(|path| {
                let known = self.number(path);
                last = known.unwrap_or(last + 1).max(last);
                (path.clone(), known.unwrap_or(last))
            })
            .collect();
        paths.sort_unstable_by_key(|(path, number)| (std::cmp::Reverse(path.len()), *number));
        Self { paths, last }
    }

    fn number(&self, path: &[u8]) -> Option<u64> {
        self.paths.iter().find(|(known, _)| known == path).map(|(_, number)| *number)
    }

    /// Whether any directory has a quota.
    pub(crate) fn are_there(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The quota that holds for an object at this path.
    pub(crate) fn above(&self, path: &[u8]) -> Option<u64> {
        self.paths.iter().find(|(above, _)| is_within(path, above)).map(|(_, number)| *number)
    }

    /// The quota that holds for an object, if the store knows where it is.
    pub(crate) fn of_node(&self, node: &NodeRef) -> Option<u64> {
        if self.are_there() { self.above(&node.path().ok()?) } else { None }
    }

    /// Whether there is a quota for this path or below it.
    pub(crate) fn are_within(&self, path: &[u8]) -> bool {
        self.paths.iter().any(|(known, _)| is_within(known, path))
    }

    /// What the ledger calls the subject of a quota; None for a directory without one.
    pub(super) fn subject(&self, subject: &QuotaSubject) -> Option<Subject> {
        Some(match subject {
            QuotaSubject::Directory(path) => Subject::Directory(self.number(path)?),
            QuotaSubject::User(uid) => Subject::User(*uid),
            QuotaSubject::Group(gid) => Subject::Group(*gid),
            QuotaSubject::EachUser => Subject::EachUser,
            QuotaSubject::EachGroup => Subject::EachGroup,
        })
    }

    /// Whose account it is; None for that of a directory without a quota.
    pub(super) fn subject_of(&self, account: Account) -> Option<QuotaSubject> {
        Some(match account {
            Account::Directory(number) => {
                let path = self.paths.iter().find(|(_, known)| *known == number);
                QuotaSubject::Directory(path?.0.clone())
            }
            Account::User(uid) => QuotaSubject::User(uid),
            Account::Group(gid) => QuotaSubject::Group(gid),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(of: &Places, paths: &[&str]) -> Places {
        let subjects: Vec<QuotaSubject> =
            paths.iter().map(|path| QuotaSubject::Directory(path.as_bytes().to_vec())).collect();
        of.with(subjects.iter().chain([&QuotaSubject::EachUser]))
    }

    #[test]
    fn the_nearest_quota_above_holds() {
        let places = places(&Places::default(), &["a", "a/b/c"]);
        let path = |number: Option<u64>| match places.subject_of(Account::Directory(number?))? {
            QuotaSubject::Directory(path) => String::from_utf8(path).ok(),
            _ => None,
        };
        for (of, above) in [
            ("a", Some("a")),
            ("a/file", Some("a")),
            ("a/b/cc", Some("a")),
            ("a/b/c", Some("a/b/c")),
            ("a/b/c/d/e", Some("a/b/c")),
            ("aa", None),
            ("", None),
        ] {
            assert_eq!(path(places.above(of.as_bytes())).as_deref(), above, "{of}");
        }
        assert!(places.are_within(b"") && places.are_within(b"a/b") && places.are_within(b"a/b/c"));
        assert!(!places.are_within(b"a/b/cc") && !places.are_within(b"a/b/c/d"));
    }

    #[test]
    fn a_quota_of_the_root_is_for_everything_and_numbers_stay() {
        let first = places(&Places::default(), &["", "a"]);
        let (root, a) = (first.above(b"x/y").unwrap(), first.above(b"a/y").unwrap());
        assert_ne!(root, a);
        let second = places(&first, &["a", "b"]);
        assert_eq!((second.above(b"a/y"), second.above(b"x")), (Some(a), None));
        assert!(![root, a].contains(&second.above(b"b").unwrap()));
    }
}
