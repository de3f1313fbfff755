//! New names: FileRenameInformation, FileLinkInformation and their Ex forms. [MS-FSA] 2.1.5.15.11, 2.1.5.15.6.

use share::{Access, Case, Found, Location, Reached, RenameHow, Share, Walk};
use smb_wire::codec::Utf16;
use smb_wire::fscc::file_info::{Rename, RenameFlags};
use smb_wire::{AccessMask, NtStatus};
use storage::{FileFlags, FileKind, NodeRef, Replace, Want};

use super::require;
use crate::attributes;
use crate::context::OnShare;
use crate::name::{Path, StreamPart, parse_stream_rename};
use crate::state::open::Open;
use crate::status::Failure;

/// Decodes FileRenameInformation or FileLinkInformation.
pub(super) fn decode(buffer: &[u8]) -> Result<Rename<'_>, Failure> {
    check(buffer, Rename::decode)
}

/// Decodes FileRenameInformationEx or FileLinkInformationEx.
pub(super) fn decode_ex(buffer: &[u8]) -> Result<Rename<'_>, Failure> {
    let wanted = check(buffer, Rename::decode_ex)?;
    if wanted.flags.contains(RenameFlags::POSIX_SEMANTICS) {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    Ok(wanted)
}

fn check<'a>(
    buffer: &'a [u8],
    decode: fn(&'a [u8]) -> Result<Rename<'a>, smb_wire::WireError>,
) -> Result<Rename<'a>, Failure> {
    if buffer.len() < Rename::FIXED_LEN {
        return Err(NtStatus::INFO_LENGTH_MISMATCH.into());
    }
    let wanted = decode(buffer)?;
    // [MS-FSCC] 2.4.42: "the RootDirectory field value was nonzero for a network operation"
    if wanted.root_directory != 0 || wanted.name.is_empty() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    Ok(wanted)
}

/// The place of a new name.
struct RenameTarget {
    dir: NodeRef,
    name: Vec<u8>,
    /// The object that already has the name.
    existing: Option<Found>,
}

impl RenameTarget {
    async fn find(ctx: &OnShare<'_>, name: &Utf16<'_>, is_directory: bool) -> Result<Self, Failure> {
        let text = name.decode()?;
        // A full path name may begin at the root of the share.
        let path = Path::parse(&Utf16::from(text.strip_prefix('\\').unwrap_or(&text)))?;
        if path.components.is_empty() {
            return Err(NtStatus::OBJECT_NAME_INVALID.into());
        }
        let path = path.below(ctx.tree.home.as_deref());
        if path.stream != StreamPart::None || (path.names_directory && !is_directory) {
            return Err(NtStatus::OBJECT_NAME_INVALID.into());
        }
        let mut parents = path.components;
        let name = parents.pop().ok_or(NtStatus::OBJECT_NAME_INVALID)?;
        let share = ctx.share;
        let trusted = usize::from(ctx.tree.home.is_some()); // the name of a home may be that of a link
        let dir = match share.reach(ctx.call, parents, trusted, Case::Insensitive, Want::empty()).await {
            Ok(Reached::End(Walk::Found(found))) if found.attributes.kind == FileKind::Directory => {
                found.node
            }
            // Only the reply to a CREATE can name a link on the way: clients follow links before they rename.
            Ok(_) | Err(share::Error::Storage(storage::Error::NotFound | storage::Error::NotDirectory)) => {
                return Err(NtStatus::OBJECT_PATH_NOT_FOUND.into());
            }
            Err(e) => return Err(e.into()),
        };
        let existing = match share.lookup(ctx.call, &dir, &name, Case::Insensitive, Want::FLAGS).await {
            Ok(found) => Some(found),
            Err(share::Error::Storage(storage::Error::NotFound)) => None,
            Err(e) => return Err(e.into()),
        };
        Ok(Self { dir, name, existing })
    }

    /// The object that already has the name, if it is not `node`.
    fn other(&self, node: &NodeRef) -> Option<&Found> {
        self.existing.as_ref().filter(|existing| existing.node.id() != node.id())
    }

    /// Refuses to replace an object that must stay: any object, unless the client asks for it; directories, read-only
    /// files, and files that a client has open and does not close when asked to ([MS-FSA] 2.1.4.2).
    async fn check_replaceable(
        &self,
        ctx: &OnShare<'_>,
        node: &NodeRef,
        flags: RenameFlags,
    ) -> Result<(), Failure> {
        let Some(other) = self.other(node) else { return Ok(()) };
        if !flags.contains(RenameFlags::REPLACE_IF_EXISTS) {
            return Err(NtStatus::OBJECT_NAME_COLLISION.into());
        }
        let read_only = attributes::flags(&other.attributes).contains(FileFlags::READONLY)
            && !flags.contains(RenameFlags::IGNORE_READONLY_ATTRIBUTE);
        let is_directory = other.attributes.kind == FileKind::Directory;
        if is_directory || read_only || ctx.share.stays_open(&other.node).await {
            return Err(NtStatus::ACCESS_DENIED.into());
        }
        Ok(())
    }
}

/// Renames the object.
pub(super) async fn rename(ctx: &OnShare<'_>, open: &Open, wanted: &Rename<'_>) -> Result<(), Failure> {
    require(open, AccessMask::DELETE)?;
    let share = ctx.share;
    if let Some(stream) = parse_stream_rename(&wanted.name.decode()?)? {
        return rename_stream(ctx, open, stream, wanted.flags).await;
    }
    let node = open.file()?.node();
    let target = RenameTarget::find(ctx, &wanted.name, open.is_directory).await?;
    // The root of the share has no name.
    let from = share.location(open.file()?).ok_or(NtStatus::INVALID_PARAMETER)?;
    // [MS-FSA] 2.1.5.15.11: neither an object that is being deleted, nor a directory with an open object below it. Clients
    // that keep files open there only for later use are asked to close them (2.1.4.2).
    if share.is_delete_pending(node) || share.has_open_streams(node) || open.file()?.file().is_some() {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    if open.is_directory && share.stays_open(node).await {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    target.check_replaceable(ctx, node, wanted.flags).await?;
    let replace =
        if wanted.flags.contains(RenameFlags::REPLACE_IF_EXISTS) { Replace::Yes } else { Replace::Never };
    let to = Location { parent: target.dir, name: target.name };
    let how = RenameHow { replace, case: Case::Insensitive, opened: Some(open.file()?.holder()) };
    ctx.call.works_under(open.file()?.directory());
    share.rename(ctx.call, from, to, how).await?;
    Ok(())
}

/// Gives the open stream another name. The share replaces an existing stream only if the client asks for that, the stream
/// is not open, and it is empty ([MS-FSA] 2.1.5.15.12.1). Naming the unnamed stream, or removing a stream's name, is not supported: the
/// data would have to move from one file of the store to another while it is open.
async fn rename_stream(
    ctx: &OnShare<'_>,
    open: &Open,
    to: StreamPart,
    flags: RenameFlags,
) -> Result<(), Failure> {
    if open.is_directory {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let file = open.file()?;
    let StreamPart::Named(name) = to else { return Err(NtStatus::NOT_SUPPORTED.into()) };
    if file.file().is_none() {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let replace = if flags.contains(RenameFlags::REPLACE_IF_EXISTS) { Replace::Yes } else { Replace::Never };
    Ok(ctx.share.rename_stream(ctx.call, file, &name, replace).await?)
}

/// Gives the object another name.
pub(super) async fn link(ctx: &OnShare<'_>, open: &Open, wanted: &Rename<'_>) -> Result<(), Failure> {
    if open.is_directory {
        return Err(NtStatus::FILE_IS_A_DIRECTORY.into());
    }
    if open.file()?.file().is_some() {
        return Err(NtStatus::INVALID_PARAMETER.into()); // [MS-FSA] 2.1.5.15.7: a stream has no links
    }
    if ctx.tree.is_read_only() {
        return Err(NtStatus::ACCESS_DENIED.into()); // no open of the target directory says whether a name may be added
    }
    let share = ctx.share;
    ctx.call.works_under(open.file()?.directory());
    let node = open.file()?.node();
    let target = RenameTarget::find(ctx, &wanted.name, false).await?;
    if share.is_delete_pending(node) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    target.check_replaceable(ctx, node, wanted.flags).await?;
    match target.other(node) {
        Some(other) => {
            // This precedes the removal of the object that has the name.
            check_linkable(share, node, &target.dir)?;
            let dir = share.found(ctx.call, &target.dir, Want::empty()).await?;
            if !share.maximal_access(ctx.caller(), &dir).contains(Access::ADD_FILE) {
                return Err(NtStatus::ACCESS_DENIED.into());
            }
            share.remove(ctx.call, &target.dir, &other.name, false).await?;
        }
        None if target.existing.is_some() && wanted.flags.contains(RenameFlags::REPLACE_IF_EXISTS) => {
            return Ok(()); // the object has this name already
        }
        None => {}
    }
    share
        .link(ctx.call, node, &target.dir, &target.name, Case::Insensitive, Some(open.file()?.holder()))
        .await?;
    Ok(())
}

/// Refuses a name whose creation would fail after the object that had it is gone: a name for an object that takes none,
/// or that belongs to another file system.
fn check_linkable(share: &Share, node: &NodeRef, dir: &NodeRef) -> Result<(), share::Error> {
    if let Some(why) = share.read_only(node.id()) {
        return Err(share::Error::ReadOnly(why));
    }
    if node.id().fs == dir.id().fs { Ok(()) } else { Err(storage::Error::CrossDevice.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(name: &str, root_directory: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = RenameFlags::POSIX_SEMANTICS;
        Rename { flags, root_directory, name: Utf16::from(name) }.encode_ex_into(&mut out).unwrap();
        out
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let refused = |buffer: &[u8]| decode(buffer).unwrap_err().status;
        let good = wire("x", 0);
        assert!(decode(&good).is_ok());
        assert_eq!(refused(&good[..19]), NtStatus::INFO_LENGTH_MISMATCH);
        assert_eq!(refused(&good[..21]), NtStatus::INVALID_PARAMETER, "the name is cut off");
        assert_eq!(refused(&wire("x", 1)), NtStatus::INVALID_PARAMETER);
        assert_eq!(refused(&wire("", 0)), NtStatus::INVALID_PARAMETER);
        assert_eq!(decode_ex(&good).unwrap_err().status, NtStatus::NOT_SUPPORTED);
    }
}
