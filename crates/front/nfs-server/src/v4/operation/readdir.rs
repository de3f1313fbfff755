//! READDIR, RFC 8881 18.23.

use std::sync::Arc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::attr::{Attribute, AttributeSet, Value, encode_attributes};
use nfs_wire::v4::readdir::{Args, ListingWriter};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Verifier};
use nfs_wire::xdr::{Encode, Writer, padding};
use share::{Gone, Share, ShareId};
use storage::{Attributes, NodeRef};

use super::directory;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::Object;
use crate::operation::Operation;
use crate::v4::absent::Absent;
use crate::v4::attributes::{self, FileSystem, Needs, Telling};
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::{describe, pseudo_fs};
use crate::{listing, snapshots, status};

/// Cookies stay valid while a directory changes, so nothing has to be verified.
const COOKIE_VERIFIER: Verifier = Verifier([0; 8]);

/// RFC 8881 18.23.3: "cookie values of zero, 1, and 2 are to be considered reserved". Where a directory itself uses 1
/// and 2, clients get these values instead. They are positive for clients that take cookies for signed numbers, and
/// above the cookies of the directories of all local file systems.
const INSTEAD: [(u64, u64); 2] = [(1, 0x7fff_ffff_ffff_fffd), (2, 0x7fff_ffff_ffff_fffe)];

/// Where a listing continues after the folder of snapshots.
const AFTER_FOLDER: u64 = 0x7fff_ffff_ffff_fffc;

/// The approximate size of an entry whose name has 16 bytes. It decides how many entries are asked of the share at a
/// time.
const BARE_ENTRY_BYTES: usize = 64;
const ENTRY_BYTES: usize = 256;

/// The result for an empty directory, as far as `maxcount` counts it: the verifier, no entry, and the end (RFC 8881 18.23.3).
const EMPTY_BYTES: usize = 8 + 4 + 4;

/// Bytes of the operation's number and its status, in front of a successful result.
const FRONT_BYTES: usize = 8;

/// The attributes of an entry that are known without reading its object.
const OF_ENTRY: AttributeSet =
    AttributeSet::of(&[Attribute::FileId, Attribute::MountedOnFileId, Attribute::RdattrError]);

/// A successful result, encoded.
pub(super) struct Encoded(Vec<u8>);

impl Encode for Encoded {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque_fixed(&self.0); // a multiple of four bytes: no padding follows
    }
}

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::ReadDir, "ReadDir");

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<Encoded, Status> {
    attributes::check_readable(args.request)?;
    if INSTEAD.iter().any(|(reserved, _)| *reserved == args.cookie) {
        return Err(Status::BadCookie);
    }
    if args.cookie != 0 && args.cookie_verifier != COOKIE_VERIFIER {
        return Err(Status::NotSame);
    }
    let room = c.room().saturating_sub(FRONT_BYTES).min(TRANSFER_BYTES_MAX as usize);
    let bytes_max = usize::try_from(args.max_count).unwrap_or(usize::MAX).min(room);
    if bytes_max < EMPTY_BYTES {
        return Err(Status::TooSmall);
    }
    c.take_room(bytes_max).await;
    let mut bytes = Vec::with_capacity(bytes_max.min(64 * 1024));
    let mut writer = Writer::new(&mut bytes);
    COOKIE_VERIFIER.encode(&mut writer);
    let names_left = (args.dir_count > 0).then(|| usize::try_from(args.dir_count).unwrap_or(usize::MAX));
    let mut page = Page {
        wanted: args.request,
        listing: ListingWriter::new(&mut writer, 0, bytes_max),
        names_left,
        any: false,
    };
    let eof = match c.place()? {
        Place::Absent(_) => return Err(Status::Moved),
        Place::Root => list_root(c, args.cookie, &mut page).await?,
        Place::Object(folder) if folder.is_folder => list_folder(folder, args.cookie, &mut page).await?,
        Place::Object(dir) => list(c, dir, args.cookie, bytes_max, &mut page).await?,
    };
    if !eof && !page.any {
        return Err(Status::TooSmall);
    }
    page.listing.finish(eof);
    Ok(Encoded(bytes))
}

/// Lists a directory. Returns whether its end was reached.
async fn list(
    c: &Compound<'_>,
    dir: &Object,
    cookie: u64,
    bytes_max: usize,
    page: &mut Page<'_, '_>,
) -> Result<bool, Status> {
    directory::check(dir)?;
    let needs = Needs::of(page.wanted);
    let fs = describe::file_system(c, dir, &needs).await?;
    let is_bare = page.wanted.intersection(fs.supported).difference(OF_ENTRY).is_empty();
    let want = (!is_bare).then_some(needs.want);
    let batch = listing::batch(bytes_max, if is_bare { BARE_ENTRY_BYTES } else { ENTRY_BYTES });
    let mut position = if cookie == AFTER_FOLDER { 0 } else { of_directory(cookie) };
    if cookie == 0 && snapshots::is_shown(dir).await {
        let of = dir.share.attributes(&dir.call, &dir.node, needs.want).await.map_err(status::v4)?;
        let folder = dir.folder();
        if let Some(about) = look(c, &folder, fs, (&dir.node, of), &needs, page.wanted).await?
            && !page.push(snapshots::NAME, AFTER_FOLDER, &about)
        {
            return Ok(false);
        }
    }
    loop {
        let part = listing::next_part(dir, position, batch, want).await.map_err(status::v4)?;
        for entry in &part.entries {
            position = entry.cookie;
            let about = match &entry.node {
                None => About::Entry(entry.id.number),
                Some((node, seen)) => match look(c, dir, fs, (node, *seen), &needs, page.wanted).await? {
                    Some(about) => about,
                    None => continue, // the object has just been removed
                },
            };
            if !page.push(&entry.name, of_client(entry.cookie), &about) {
                return Ok(false);
            }
        }
        if part.end {
            return Ok(true);
        }
    }
}

/// Lists the folder of a directory's snapshots. Each directory in it is of another file system, and is opened when a client looks it
/// up: here its number is told, and nothing else.
async fn list_folder(folder: &Object, cookie: u64, page: &mut Page<'_, '_>) -> Result<bool, Status> {
    let about = About::Entry(folder.node.id().number);
    let listed = snapshots::list(folder).await.map_err(status::v4)?;
    let mut rest = listed.iter().filter(|(id, _)| snapshots::cookie(*id) > cookie);
    Ok(rest.all(|(id, name)| page.push(name.as_bytes(), snapshots::cookie(*id), &about)))
}

/// An entry of the root.
enum RootEntry {
    Share(Arc<Share>),
    /// A share that another server has.
    Gone(Arc<Gone>),
}

impl RootEntry {
    fn id(&self) -> ShareId {
        match self {
            Self::Share(share) => share.id(),
            Self::Gone(gone) => gone.id,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Share(share) => share.name(),
            Self::Gone(gone) => &gone.name,
        }
    }

    fn cookie(&self) -> u64 {
        describe::entry_id(self.id()).saturating_add(1)
    }
}

/// Lists the shares that the client may use, in the order of their numbers, so that a share that comes or goes does not
/// move others.
async fn list_root(c: &Compound<'_>, cookie: u64, page: &mut Page<'_, '_>) -> Result<bool, Status> {
    let needs = Needs::of(page.wanted);
    let shares = pseudo_fs::shares(c).into_iter().map(RootEntry::Share);
    let mut entries: Vec<_> = shares.chain(pseudo_fs::absent(c).into_iter().map(RootEntry::Gone)).collect();
    entries.sort_by_key(RootEntry::id);
    for entry in entries.iter().filter(|entry| entry.cookie() > cookie) {
        let name = entry.name().as_bytes();
        let about = match entry {
            RootEntry::Share(_) => about_share(c, name, &needs, page.wanted).await?,
            RootEntry::Gone(gone) => {
                let telling = Absent::top(Arc::clone(gone)).entry(c, page.wanted);
                telling.map(|telling| About::Object(Box::new(telling)))
            }
        };
        let Some(about) = about else { continue };
        if !page.push(name, entry.cookie(), &about) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What to return for a share; nothing if it is gone, or not for this client.
async fn about_share(
    c: &Compound<'_>,
    name: &[u8],
    needs: &Needs,
    wanted: AttributeSet,
) -> Result<Option<About>, Status> {
    let Ok(Place::Object(top)) = pseudo_fs::lookup(c, name).await else { return Ok(None) };
    match look_at_top(c, &top, needs, wanted).await {
        Err(status) => failed(status, wanted).map(Some),
        about => about,
    }
}

async fn look_at_top(
    c: &Compound<'_>,
    top: &Object,
    needs: &Needs,
    wanted: AttributeSet,
) -> Result<Option<About>, Status> {
    let fs = describe::file_system(c, top, needs).await?;
    let seen = top.share.attributes(&top.call, &top.node, needs.want).await.map_err(status::v4)?;
    look(c, top, fs, (&top.node, seen), needs, wanted).await
}

/// The attributes to return for an object; nothing if it is gone.
async fn look(
    c: &Compound<'_>,
    of: &Object,
    fs: FileSystem,
    (node, seen): (&NodeRef, Attributes),
    needs: &Needs,
    wanted: AttributeSet,
) -> Result<Option<About>, Status> {
    match describe::describe(c, of, fs, node, seen, needs).await {
        Ok(subject) => Ok(Some(About::Object(Box::new(Telling { wanted, subject })))),
        Err(Status::Stale | Status::NoEnt) => Ok(None),
        Err(status) => failed(status, wanted).map(Some),
    }
}

/// 18.23.3: an entry says why it has no attributes, if the client wants to know; otherwise the call fails.
fn failed(status: Status, wanted: AttributeSet) -> Result<About, Status> {
    if wanted.contains(Attribute::RdattrError) { Ok(About::Failed(status)) } else { Err(status) }
}

fn of_directory(cookie: u64) -> u64 {
    INSTEAD.iter().find(|(_, instead)| *instead == cookie).map_or(cookie, |(reserved, _)| *reserved)
}

fn of_client(cookie: u64) -> u64 {
    INSTEAD.iter().find(|(reserved, _)| *reserved == cookie).map_or(cookie, |(_, instead)| *instead)
}

/// The part of an entry that describes its object.
enum About {
    /// The number of the entry.
    Entry(u64),
    Object(Box<Telling>),
    Failed(Status),
}

/// An entry with the requested attributes.
struct ReplyEntry<'a> {
    cookie: u64,
    name: &'a [u8],
    about: &'a About,
    wanted: AttributeSet,
}

impl Encode for ReplyEntry<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u64(self.cookie);
        Name(self.name).encode(writer);
        match self.about {
            About::Object(telling) => telling.encode(writer),
            About::Entry(id) => {
                let wanted = self.wanted.intersection(OF_ENTRY);
                encode_attributes(writer, wanted, |attribute| match attribute {
                    Attribute::FileId => Some(Value::FileId(*id)),
                    Attribute::MountedOnFileId => Some(Value::MountedOnFileId(*id)),
                    _ => Some(Value::RdattrError(Ok(()))),
                });
            }
            About::Failed(status) => {
                let wanted = AttributeSet::of(&[Attribute::RdattrError]);
                encode_attributes(writer, wanted, |_| Some(Value::RdattrError(Err(*status))));
            }
        }
    }
}

/// A result that is being filled.
struct Page<'w, 'b> {
    wanted: AttributeSet,
    listing: ListingWriter<'w, 'b>,
    /// The bytes that names and cookies may still take, if the client sets a limit.
    names_left: Option<usize>,
    /// Whether the page has an entry.
    any: bool,
}

impl Page<'_, '_> {
    /// Adds an entry. False when the page is full.
    fn push(&mut self, name: &[u8], cookie: u64, about: &About) -> bool {
        if let Some(left) = self.names_left {
            let left = left.checked_sub(8 + 4 + name.len() + padding(name.len()));
            // The first entry is returned even if its name alone exceeds the limit of the client.
            if left.is_none() && self.any {
                return false;
            }
            self.names_left = Some(left.unwrap_or(0));
        }
        let fits = self.listing.push(&ReplyEntry { cookie, name, about, wanted: self.wanted });
        self.any |= fits;
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_cookies_are_told_as_others() {
        for (reserved, instead) in INSTEAD {
            assert!(i64::try_from(instead).is_ok());
            assert_eq!((of_client(reserved), of_directory(instead)), (instead, reserved));
        }
        for other in [0, 3, u64::MAX] {
            assert_eq!((of_client(other), of_directory(other)), (other, other));
        }
    }

    #[test]
    fn who_does_not_ask_why_an_entry_failed_gets_nothing() {
        let wanted = AttributeSet::of(&[Attribute::RdattrError, Attribute::Acl]);
        assert!(matches!(failed(Status::Io, wanted), Ok(About::Failed(Status::Io))));
        assert!(matches!(failed(Status::Io, AttributeSet::EMPTY), Err(Status::Io)));
    }

    #[test]
    fn a_hint_about_names_leaves_room_for_one() {
        let pushed = |names_left| {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            let listing = ListingWriter::new(&mut writer, 0, 4096);
            let mut page = Page { wanted: AttributeSet::EMPTY, listing, names_left, any: false };
            (0..5).take_while(|number| page.push(b"four", 3 + number, &About::Entry(7))).count()
        };
        // 8 + 4 + 4 bytes a name
        assert_eq!([None, Some(1), Some(16), Some(31), Some(32)].map(pushed), [5, 1, 1, 1, 2]);
    }
}
