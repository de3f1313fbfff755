//! File information classes. [MS-SMB2] 3.3.5.20.1, [MS-FSA] 2.1.5.12.

use std::sync::Arc;

use smb_proto::dialect::Dialect;
use smb_wire::codec::Utf16;
use smb_wire::create::CreateOptions;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{
    Access, Alignment, All, AttributeTag, Compression, Ea, Id, Internal, Mode, Name, Position, StandardLink,
    Stream, stream_writer,
};
use smb_wire::query_info::{QueryInfoFlags, Request};
use smb_wire::{AccessMask, NtStatus};
use storage::{Attributes, FileKind, NodeRef, StreamEntry, Want};

use super::Information;
use crate::attributes;
use crate::context::OnShare;
use crate::extended_attributes::{self, WantedAttributes};
use crate::name::path_to_client;
use crate::state::open::Open;
use crate::status::Failure;

/// The options that FileModeInformation shows ([MS-FSCC] 2.4.26).
const MODE_OPTIONS: CreateOptions = CreateOptions::WRITE_THROUGH
    .union(CreateOptions::SEQUENTIAL_ONLY)
    .union(CreateOptions::NO_INTERMEDIATE_BUFFERING)
    .union(CreateOptions::SYNCHRONOUS_IO_ALERT)
    .union(CreateOptions::SYNCHRONOUS_IO_NONALERT)
    .union(CreateOptions::DELETE_ON_CLOSE);

// The least room that the classes with a name need: the size of their structures in memory, with one character of the
// name and padding at the end ([MS-FSA] 2.1.5.12.3, 2.1.5.12.29).
const ALL_LEN_MIN: usize = 104;
const NAME_LEN_MIN: usize = 8;
const STREAM_LEN_MIN: usize = 32;

/// Answers a class of [MS-FSCC] 2.4.
pub(super) async fn query(
    ctx: &OnShare<'_>,
    open: &Arc<Open>,
    request: &Request<'_>,
) -> Result<Information, Failure> {
    let class = FileInfoClass::from(request.info_class);
    check_access(open, class)?;
    let file = open.file()?;
    let node = file.node();
    let attributes = ctx.share.present_attributes(ctx.call, node, Want::FLAGS).await?;
    let pending = ctx.share.is_delete_pending(node);
    Ok(match class {
        FileInfoClass::Basic => Information::fixed(|out| attributes::basic(&attributes).encode_into(out)),
        FileInfoClass::Standard => {
            Information::fixed(|out| attributes::standard(&attributes, pending).encode_into(out))
        }
        FileInfoClass::Internal => Information::fixed(|out| internal(&attributes).encode_into(out)),
        FileInfoClass::Ea => {
            let ea = ea(ctx, node).await?;
            Information::fixed(|out| ea.encode_into(out))
        }
        FileInfoClass::Access => Information::fixed(|out| access(open).encode_into(out)),
        FileInfoClass::Position => Information::fixed(|out| position(open).encode_into(out)),
        FileInfoClass::Mode => Information::fixed(|out| mode(open).encode_into(out)),
        FileInfoClass::Alignment => Information::fixed(|out| BYTE_ALIGNED.encode_into(out)),
        FileInfoClass::All => all(ctx, open, &attributes, pending, ea(ctx, node).await?)?,
        FileInfoClass::NormalizedName => normalized_name(ctx, open)?,
        FileInfoClass::AlternateName => alternate_name(ctx, open)?,
        FileInfoClass::Stream => streams(ctx, file).await?,
        FileInfoClass::Compression => Information::fixed(|out| compression(&attributes).encode_into(out)),
        FileInfoClass::NetworkOpen => {
            Information::fixed(|out| attributes::network_open(&attributes).encode_into(out))
        }
        FileInfoClass::AttributeTag => Information::fixed(|out| attribute_tag(&attributes).encode_into(out)),
        FileInfoClass::Id => Information::fixed(|out| id(ctx, &attributes).encode_into(out)),
        FileInfoClass::StandardLink => {
            Information::fixed(|out| standard_link(&attributes, pending).encode_into(out))
        }
        FileInfoClass::FullEa => full_ea(ctx, node, request).await?,
        _ => return Err(NtStatus::INVALID_INFO_CLASS.into()),
    })
}

/// [MS-FSA] 2.1.5.12: checks the access that the open needs for a class. The other classes need none.
fn check_access(open: &Open, class: FileInfoClass) -> Result<(), Failure> {
    let needed = match class {
        FileInfoClass::Basic
        | FileInfoClass::All
        | FileInfoClass::NetworkOpen
        | FileInfoClass::AttributeTag => AccessMask::READ_ATTRIBUTES,
        FileInfoClass::FullEa => AccessMask::READ_EA,
        _ => AccessMask::empty(),
    };
    if open.granted_access.contains(needed) { Ok(()) } else { Err(NtStatus::ACCESS_DENIED.into()) }
}

const BYTE_ALIGNED: Alignment = Alignment { alignment_requirement: 0 };

fn internal(attributes: &Attributes) -> Internal {
    Internal { index_number: attributes.id.number }
}

fn access(open: &Open) -> Access {
    Access { access_flags: open.granted_access }
}

fn position(open: &Open) -> Position {
    Position { current_byte_offset: open.state.lock().position }
}

fn mode(open: &Open) -> Mode {
    let set = open.state.lock().mode;
    Mode { mode: set.unwrap_or_else(|| open.create_options.intersection(MODE_OPTIONS).bits()) }
}

fn attribute_tag(attributes: &Attributes) -> AttributeTag {
    AttributeTag {
        file_attributes: attributes::file_attributes(attributes),
        reparse_tag: attributes::reparse_tag(attributes),
    }
}

fn id(ctx: &OnShare<'_>, attributes: &Attributes) -> Id {
    Id { volume_serial_number: u64::from(ctx.share.id().0), file_id: u128::from(attributes.id.number) }
}

fn standard_link(attributes: &Attributes, delete_pending: bool) -> StandardLink {
    let standard = attributes::standard(attributes, delete_pending);
    StandardLink {
        number_of_accessible_links: standard.number_of_links,
        total_number_of_links: attributes.links,
        delete_pending,
        directory: standard.directory,
    }
}

fn compression(attributes: &Attributes) -> Compression {
    Compression {
        compressed_file_size: attributes::end_of_file(attributes),
        compression_format: 0,
        compression_unit_shift: 0,
        chunk_shift: 0,
        cluster_shift: 0,
    }
}

/// The current path of the object from the root of the tree connect, with backslashes and none in front. If the object no
/// longer has a name there, the path by which it was opened.
fn share_path(open: &Open) -> String {
    let path = open.file().ok().and_then(|file| file.node().path().ok());
    let path = path.and_then(|path| open.tree.path_from_root(path));
    let opened_by = || {
        let root = open.tree.path_in_share("");
        open.path.strip_prefix(&root).unwrap_or(&open.path).trim_start_matches('\\').to_owned()
    };
    path.map_or_else(opened_by, |path| path_to_client(&path))
}

/// The text after the file's name when one of its streams is open.
fn stream_suffix(ctx: &OnShare<'_>, open: &Open) -> Result<String, Failure> {
    let stream = ctx.share.stream_name(open.file()?);
    Ok(stream.map_or_else(String::new, |name| format!(":{}", String::from_utf8_lossy(&name))))
}

async fn ea(ctx: &OnShare<'_>, node: &NodeRef) -> Result<Ea, Failure> {
    let all = ctx.share.extended_attributes(ctx.call, node).await?;
    Ok(Ea { ea_size: extended_attributes::size(&all) })
}

/// [MS-FSA] 2.1.5.12.12.
async fn full_ea(ctx: &OnShare<'_>, node: &NodeRef, request: &Request<'_>) -> Result<Information, Failure> {
    let all = ctx.share.extended_attributes(ctx.call, node).await?;
    let wanted = WantedAttributes {
        names: request.input_buffer,
        single: request.flags.contains(QueryInfoFlags::RETURN_SINGLE_ENTRY),
        limit: usize::try_from(request.output_buffer_length).unwrap_or(usize::MAX),
    };
    let (data, more) = extended_attributes::encode(&all, wanted)?;
    if more {
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    Ok(Information { data, fixed: 0 })
}

fn all(
    ctx: &OnShare<'_>,
    open: &Open,
    attributes: &Attributes,
    pending: bool,
    ea: Ea,
) -> Result<Information, Failure> {
    let name = format!("\\{}{}", share_path(open), stream_suffix(ctx, open)?);
    let all = All {
        basic: attributes::basic(attributes),
        standard: attributes::standard(attributes, pending),
        internal: internal(attributes),
        ea,
        access: access(open),
        position: position(open),
        mode: mode(open),
        alignment: BYTE_ALIGNED,
        name: Name { name: Utf16::from(name.as_str()) },
    };
    Information::variable(ALL_LEN_MIN, |out| all.encode_into(out))
}

/// [MS-SMB2] 2.2.37: FileNormalizedNameInformation belongs to SMB 3.1.1.
fn normalized_name(ctx: &OnShare<'_>, open: &Open) -> Result<Information, Failure> {
    if ctx.connection.dialect() != Some(Dialect::Smb311) {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let name = share_path(open) + &stream_suffix(ctx, open)?;
    Information::variable(NAME_LEN_MIN, |out| Name { name: Utf16::from(name.as_str()) }.encode_into(out))
}

/// The 8.3 name. A name that is an 8.3 name already is returned unchanged.
fn alternate_name(ctx: &OnShare<'_>, open: &Open) -> Result<Information, Failure> {
    let location = ctx.share.location(open.file()?).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let name = share::short_name(&location.name).unwrap_or(location.name);
    let name = String::from_utf8(name).map_err(|_| NtStatus::OBJECT_NAME_NOT_FOUND)?;
    Information::variable(NAME_LEN_MIN, |out| Name { name: Utf16::from(name.as_str()) }.encode_into(out))
}

/// The streams of the file, whichever of them is open. The unnamed stream comes first; a directory does not have it.
async fn streams(ctx: &OnShare<'_>, open: &Arc<share::Open>) -> Result<Information, Failure> {
    let share = ctx.share;
    let file = open.file().unwrap_or(open).node();
    let of_file = share.attributes(ctx.call, file, Want::empty()).await?;
    let mut data = Vec::new();
    let mut list = stream_writer(&mut data, usize::MAX);
    let unnamed = (of_file.kind != FileKind::Directory).then(|| StreamEntry {
        name: Vec::new(),
        size: of_file.size,
        allocated: of_file.allocated,
    });
    for entry in unnamed.into_iter().chain(share.streams(ctx.call, file).await?) {
        let Ok(name) = String::from_utf8(entry.name) else { continue };
        let name = format!(":{name}:$DATA");
        let stream = Stream {
            stream_size: entry.size,
            stream_allocation_size: entry.allocated,
            name: Utf16::from(name.as_str()),
        };
        stream.push(&mut list).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    }
    Ok(Information { data, fixed: STREAM_LEN_MIN })
}
