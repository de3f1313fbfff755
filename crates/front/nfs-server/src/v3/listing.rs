//! The common part of READDIR and READDIRPLUS: which entries to return, how many, and where the next call continues.

use nfs_wire::v3::readdir::{Entry, ListingWriter};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CookieVerifier, Name, ResWithAttributes};
use nfs_wire::v3::{attr::Attributes, readdirplus};
use nfs_wire::xdr::{Encode, Writer};
use share::Listing;
use storage::{NodeRef, ObjectId, Want};

use crate::call::Request;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::CalledObject;
use crate::server::ServerState;
use crate::{listing, snapshots, status};

/// Cookies stay valid while a directory changes, so nothing has to be verified (RFC 1813 3.3.16 allows it).
const COOKIE_VERIFIER: CookieVerifier = [0; 8];

/// Where a listing continues after `.`, after `..` and after the folder of snapshots. These cookies are positive for clients that take cookies for
/// signed numbers, and above the cookies of the directories of all local file systems.
const AFTER_FOLDER: u64 = 0x7fff_ffff_ffff_fffc;
const AFTER_DOT: u64 = 0x7fff_ffff_ffff_fffd;
const AFTER_DOT_DOT: u64 = 0x7fff_ffff_ffff_fffe;

/// The approximate size of an entry whose name has 16 bytes. It decides how many entries are asked of the share at a
/// time.
const ENTRY_BYTES: usize = 44;
const ENTRY_PLUS_BYTES: usize = 176;

/// What a client asks of a directory.
pub(super) struct Ask {
    pub(super) cookie: u64,
    /// The most bytes of the result.
    pub(super) bytes_max: u32,
    /// The most bytes of names, fileids and cookies, if attributes and filehandles are wanted too.
    pub(super) plus: Option<u32>,
}

/// A successful result, encoded.
pub(super) struct Encoded(Vec<u8>);

impl Encode for Encoded {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque_fixed(&self.0); // a multiple of four bytes: no padding follows
    }
}

pub(super) async fn list(
    request: &Request<'_>,
    dir: &CalledObject<'_>,
    ask: &Ask,
) -> ResWithAttributes<Encoded> {
    let _room = request.connection.outbox.room(bytes_max(ask), 0).await;
    match encode(&request.connection.server, dir, ask).await {
        Ok(encoded) => Ok(encoded),
        Err(status) => Err(dir.failed(status).await),
    }
}

fn bytes_max(ask: &Ask) -> usize {
    ask.bytes_max.min(TRANSFER_BYTES_MAX) as usize
}

async fn encode(server: &ServerState, dir: &CalledObject<'_>, ask: &Ask) -> Result<Encoded, Status> {
    let bytes_max = bytes_max(ask);
    if dir.is_folder {
        return encode_folder(server, dir, ask, bytes_max).await;
    }
    let batch = listing::batch(bytes_max, if ask.plus.is_some() { ENTRY_PLUS_BYTES } else { ENTRY_BYTES });
    let want = ask.plus.map(|_| Want::empty());
    let mut position = match ask.cookie {
        AFTER_DOT | AFTER_DOT_DOT | AFTER_FOLDER => 0,
        cookie => cookie,
    };
    let mut part = listing::next_part(dir, position, batch, want).await.map_err(status::of)?;
    let mut bytes = Vec::with_capacity(bytes_max.min(64 * 1024));
    let mut writer = Writer::new(&mut bytes);
    Some(dir.told(&part.dir)).encode(&mut writer);
    COOKIE_VERIFIER.encode(&mut writer);
    let listing = ListingWriter::new(&mut writer, 0, bytes_max);
    let mut page = Page { server, dir, listing, names_left: ask.plus.map(|max| max as usize), any: false };
    let parent = parent_of(dir, ask.cookie, &part).await;
    let mut fits = page.push_dots(ask.cookie, (&part.dir, parent));
    if fits && matches!(ask.cookie, 0 | AFTER_DOT | AFTER_DOT_DOT) && snapshots::is_shown(dir).await {
        let id = snapshots::folder_attributes(part.dir).id;
        fits = page.push(Item { name: snapshots::NAME, id, cookie: AFTER_FOLDER, node: None });
    }
    while fits {
        for entry in &part.entries {
            position = entry.cookie;
            let node = entry.node.as_ref().map(|(node, attributes)| (node, attributes));
            fits = page.push(Item { name: &entry.name, id: entry.id, cookie: entry.cookie, node });
            if !fits {
                break;
            }
        }
        if !fits || part.end {
            break;
        }
        part = listing::next_part(dir, position, batch, want).await.map_err(status::of)?;
    }
    if !fits && !page.any {
        return Err(Status::TooSmall);
    }
    page.listing.finish(fits);
    Ok(Encoded(bytes))
}

/// The listing of the folder of a directory's snapshots. Without attributes: each directory in it is of another file system, and
/// is opened when a client looks it up.
async fn encode_folder(
    server: &ServerState,
    folder: &CalledObject<'_>,
    ask: &Ask,
    bytes_max: usize,
) -> Result<Encoded, Status> {
    let listed = snapshots::list(folder).await.map_err(status::of)?;
    let of = folder.look().await?;
    let mut bytes = Vec::with_capacity(bytes_max.min(64 * 1024));
    let mut writer = Writer::new(&mut bytes);
    Some(folder.told(&of)).encode(&mut writer);
    COOKIE_VERIFIER.encode(&mut writer);
    let listing = ListingWriter::new(&mut writer, 0, bytes_max);
    let mut page =
        Page { server, dir: folder, listing, names_left: ask.plus.map(|max| max as usize), any: false };
    let dots = matches!(ask.cookie, 0 | AFTER_DOT);
    let mut fits = page.push_dots(ask.cookie, (&of, dots.then_some(of.id)));
    let after = if dots || ask.cookie == AFTER_DOT_DOT { 0 } else { ask.cookie };
    for (id, name) in listed.iter().filter(|(id, _)| snapshots::cookie(*id) > after) {
        let cookie = snapshots::cookie(*id);
        fits = fits && page.push(Item { name: name.as_bytes(), id: of.id, cookie, node: None });
    }
    if !fits && !page.any {
        return Err(Status::TooSmall);
    }
    page.listing.finish(fits);
    Ok(Encoded(bytes))
}

/// The number of the parent directory, for a client that has not received `..` yet.
async fn parent_of(dir: &CalledObject<'_>, cookie: u64, part: &Listing) -> Option<ObjectId> {
    if !matches!(cookie, 0 | AFTER_DOT) {
        return None;
    }
    Some(dir.share.parent_of(dir.call, &dir.node).await.unwrap_or(part.dir.id))
}

/// An entry to return.
struct Item<'a> {
    name: &'a [u8],
    id: ObjectId,
    cookie: u64,
    node: Option<(&'a NodeRef, &'a storage::Attributes)>,
}

/// A result that is being filled.
struct Page<'r, 'w, 'b> {
    server: &'r ServerState,
    dir: &'r CalledObject<'r>,
    listing: ListingWriter<'w, 'b>,
    /// For READDIRPLUS, the bytes that names, fileids and cookies may still take.
    names_left: Option<usize>,
    /// Whether the page has an entry.
    any: bool,
}

impl Page<'_, '_, '_> {
    /// Adds `.` and `..`, unless the client has received them. False when the page is full.
    fn push_dots(&mut self, cookie: u64, (of, parent): (&storage::Attributes, Option<ObjectId>)) -> bool {
        let dir = self.dir;
        if cookie == 0 {
            let node = Some((&dir.node, of));
            if !self.push(Item { name: b".", id: dir.seen(*of).id, cookie: AFTER_DOT, node }) {
                return false;
            }
        }
        if let Some(parent) = parent {
            return self.push(Item { name: b"..", id: parent, cookie: AFTER_DOT_DOT, node: None });
        }
        true
    }

    /// Adds an entry. False when the page is full.
    fn push(&mut self, item: Item<'_>) -> bool {
        let (fileid, name, cookie) = (item.id.number, Name(item.name), item.cookie);
        let fits = match self.names_left {
            None => self.listing.push(&Entry { fileid, name, cookie }),
            Some(left) => {
                let attributes: Option<Attributes> =
                    item.node.map(|(_, attributes)| self.dir.told(attributes));
                let handle = item
                    .node
                    .and_then(|(node, _)| self.dir.file_handle_of(&self.server.file_handles, node).ok());
                let entry = readdirplus::Entry { fileid, name, cookie, attributes, file_handle: handle };
                // The first entry is returned even if its name alone exceeds the limit of the client.
                let left = left.checked_sub(entry.directory_bytes());
                self.names_left = Some(left.unwrap_or(0));
                (left.is_some() || !self.any) && self.listing.push(&entry)
            }
        };
        self.any |= fits;
        fits
    }
}
