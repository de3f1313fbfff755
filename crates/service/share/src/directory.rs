//! Listing directories.

use std::ops::ControlFlow;
use std::sync::Arc;

use file_state::Access;
use storage::{Attributes, FileKind, MayWait, Name, NodeRef, ObjectId, Wait, Want};

use crate::schedule::Work;
use crate::security::Object;
use crate::security::permission;
use crate::{Call, Caller, Found, Result, Share, Terms};

/// One entry of a listing.
#[derive(Debug, Clone)]
pub struct ListingEntry {
    /// The name of the entry.
    pub name: Vec<u8>,
    /// The file number of the entry.
    pub id: ObjectId,
    /// The kind of the object, if the directory itself tells it.
    pub kind: Option<FileKind>,
    /// The cookie to continue after this entry.
    pub cookie: u64,
    /// The object, if it was asked for and still exists.
    pub node: Option<(NodeRef, Attributes)>,
}

/// A part of a directory.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The entries, without `.` and `..`.
    pub entries: Vec<ListingEntry>,
    /// Whether the listing reaches the end of the directory.
    pub end: bool,
    /// The directory's own attributes.
    pub dir: Attributes,
    /// The cookie to continue after the last entry that was examined, included or not.
    pub cookie: u64,
}

/// What to do with an entry, decided by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Include it.
    Take,
    /// Leave it out.
    Skip,
    /// Leave it out, and end the listing.
    Stop,
}

impl Share {
    /// Whether listings show this object to the caller.
    #[must_use]
    pub fn is_listed(&self, caller: &Caller, found: &Found) -> bool {
        !self.terms().contains(Terms::ACCESS_BASED_ENUMERATION)
            || permission::is_listed(&caller.identity, found.object())
    }

    /// Lists up to `count_max` entries after `cookie` (0: from the start). With `want`, each entry comes with its object and
    /// attributes, and entries that vanish meanwhile are left out.
    ///
    /// # Errors
    /// [`crate::Error::AccessDenied`], [`storage::Error::NotDirectory`].
    pub async fn list(
        self: &Arc<Self>,
        call: &Call,
        dir: &NodeRef,
        cookie: u64,
        count_max: usize,
        want: Option<Want>,
    ) -> Result<Listing> {
        let mut count = 0;
        let pick = move |_: &[u8]| {
            count += 1;
            if count > count_max { Pick::Stop } else { Pick::Take }
        };
        self.list_picked(call, dir, cookie, want, pick).await
    }

    /// Lists the entries after `cookie` that `pick` takes, until `pick` stops: as [`Share::list`], for callers that choose
    /// by name. Only entries that are taken are looked up.
    ///
    /// # Errors
    /// As [`Share::list`].
    pub async fn list_picked(
        self: &Arc<Self>,
        call: &Call,
        dir: &NodeRef,
        cookie: u64,
        want: Option<Want>,
        mut pick: impl FnMut(&[u8]) -> Pick + Send + 'static,
    ) -> Result<Listing> {
        let (caller, dir) = (call.caller.clone(), Arc::clone(dir));
        let hides = self.terms().contains(Terms::ACCESS_BASED_ENUMERATION);
        let listing = self.run(call, Work::Metadata, move |_, may| {
            let mut listing = list_now(&caller, &dir, cookie, want, &mut pick, may)?;
            if hides {
                listing.entries.retain(|entry| is_shown(&caller, &dir, entry, may));
            }
            Ok(listing)
        });
        let mut listing = listing.await?;
        if let Some(want) = want {
            self.list_as_written(call, &mut listing.entries, want).await?;
        }
        Ok(listing)
    }
}

fn list_now(
    caller: &Caller,
    dir: &NodeRef,
    mut cookie: u64,
    want: Option<Want>,
    pick: &mut dyn FnMut(&[u8]) -> Pick,
    may: MayWait<'_>,
) -> Result<Listing> {
    let attributes = dir.attributes(Want::empty(), Wait::May(may))?;
    if attributes.kind != FileKind::Directory {
        return Err(storage::Error::NotDirectory.into());
    }
    let security = dir.security(&attributes, Wait::May(may))?;
    let guard = Object::new(&attributes, security.as_deref());
    permission::check(&caller.identity, guard, Access::LIST_DIRECTORY)?;
    let mut entries = Vec::new();
    let end = dir.read_dir(cookie, may, &mut |entry| {
        match pick(entry.name) {
            Pick::Stop => return ControlFlow::Break(()),
            Pick::Skip => {}
            Pick::Take => entries.push(ListingEntry {
                name: entry.name.to_vec(),
                id: entry.id,
                kind: entry.kind,
                cookie: entry.cookie,
                node: None,
            }),
        }
        cookie = entry.cookie;
        ControlFlow::Continue(())
    })?;
    if let Some(want) = want {
        entries.retain_mut(|entry| {
            entry.node = look(dir, &entry.name, want, may);
            entry.node.is_some()
        });
    }
    Ok(Listing { entries, end, dir: attributes, cookie })
}

/// Whether the caller may read the object of an entry.
fn is_shown(caller: &Caller, dir: &NodeRef, entry: &ListingEntry, may: MayWait<'_>) -> bool {
    let Some((node, attributes)) = entry.node.clone().or_else(|| look(dir, &entry.name, Want::empty(), may))
    else {
        return false;
    };
    let Ok(security) = node.security(&attributes, Wait::May(may)) else { return false };
    permission::is_listed(&caller.identity, Object::new(&attributes, security.as_deref()))
}

fn look(dir: &NodeRef, name: &[u8], want: Want, may: MayWait<'_>) -> Option<(NodeRef, Attributes)> {
    dir.lookup_attributes(Name::new(name).ok()?, want, Wait::May(may)).ok()
}
