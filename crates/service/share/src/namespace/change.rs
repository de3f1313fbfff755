//! A directory before and after a change of its names.

use cache::Watch;
use storage::{Attributes, FileKind, MayWait, Name, NodeRef, Protection, Wait, Want};

use super::Namespace;
use crate::Result;
use crate::operation::DirectoryReport;
use crate::security::Object;

/// A directory before and after a change, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct DirChange {
    /// Attributes before. None if they were not at hand because of a recent change by another caller.
    pub before: Option<Attributes>,
    /// Attributes after. None for clients that are not told them ([`DirectoryReport::Nothing`]).
    pub after: Option<Attributes>,
    /// Whether certainly no other change lies between the two ([`DirectoryReport::Change`]). This cannot be said of the
    /// first such change of a directory, nor for a store that does not report changes.
    pub is_atomic: bool,
}

/// A directory that is about to change.
pub(crate) struct Changing<'a> {
    /// Sees every change after its creation, so it is created first.
    watch: Watch,
    pub(crate) dir: &'a NodeRef,
    report: DirectoryReport,
    pub(crate) protection: Protection,
    /// Lent to the caller who changes it.
    pub(crate) may: MayWait<'a>,
}

impl<'a> Changing<'a> {
    /// Begins a change of a directory for a client that is told this about it.
    pub(crate) fn begin(report: DirectoryReport, dir: &'a NodeRef, may: MayWait<'a>) -> Result<Self> {
        if dir.kind() != FileKind::Directory {
            return Err(storage::Error::NotDirectory.into());
        }
        let watch = Watch::begin(&**dir, report == DirectoryReport::Change, may.view());
        let mut protection = dir.protection(Wait::May(may))?;
        if report == DirectoryReport::Change && protection.attributes.is_none() {
            // That requires both attributes.
            protection.attributes = Some(dir.attributes(Want::empty(), Wait::May(may))?);
        }
        Ok(Self { watch, dir, report, protection, may })
    }

    pub(crate) fn object(&self) -> Object<'_> {
        Object::from(&self.protection)
    }
}

impl Namespace {
    /// Ends a change of a directory: `removed` is gone, `added` is new. `own` counts further watches of this same caller.
    /// Returns what the client is told.
    pub(crate) fn changed(
        &self,
        changing: &Changing<'_>,
        removed: Option<Name<'_>>,
        added: Option<Name<'_>>,
        own: u64,
    ) -> Result<DirChange> {
        let Changing { dir, report, protection: Protection { attributes: before, .. }, watch, may } =
            changing;
        let (before, may) = (*before, *may);
        let by_time = self.folded.goes_by_time(dir.id());
        let after = if by_time || *report != DirectoryReport::Nothing {
            Some(dir.attributes(Want::empty(), Wait::May(may))?)
        } else {
            None
        };
        if by_time {
            let ctime = |attributes: Option<Attributes>| attributes.map(|attributes| attributes.ctime);
            self.folded.changed(dir.id(), ctime(before), ctime(after), removed, added);
        }
        let changes = [removed, added].iter().flatten().count() as u64;
        let is_told = *report == DirectoryReport::Change && before.is_some();
        Ok(DirChange { before, after, is_atomic: is_told && watch.saw_only(changes, own, may.view()) })
    }
}
