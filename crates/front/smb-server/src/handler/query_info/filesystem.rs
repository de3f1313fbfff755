//! File system information classes. [MS-SMB2] 3.3.5.20.2, [MS-FSA] 2.1.5.13.

use std::sync::Arc;

use share::{ReadOnly, Share};
use smb_wire::NtStatus;
use smb_wire::codec::Utf16;
use smb_wire::fscc::FsInfoClass;
use smb_wire::fscc::fs_info::{
    Attribute, Characteristics, DEVICE_DISK, Device, FileSystemAttributes, FullSize, ObjectId, SectorSize,
    SectorSizeFlags, Size, Volume,
};
use storage::{Capabilities, NAME_BYTES_MAX, Space, Want};

use super::Information;
use crate::attributes;
use crate::context::OnShare;
use crate::quotas;
use crate::snapshot;
use crate::state::open::Open;
use crate::status::Failure;

/// The sector size that clients see, in bytes.
const SECTOR_BYTES: u32 = 512;
/// The alignment that clients should use for large transfers, in bytes: a page.
const PHYSICAL_SECTOR_BYTES: u32 = 4096;

// The least room that the classes with a name need: the size of their structures in memory, with one character of the
// name and padding at the end ([MS-FSA] 2.1.5.13.5, 2.1.5.13.10).
const VOLUME_LEN_MIN: usize = 24;
const ATTRIBUTE_LEN_MIN: usize = 16;

/// Answers a class of [MS-FSCC] 2.5.
pub(super) async fn query(ctx: &OnShare<'_>, open: &Arc<Open>, class: u8) -> Result<Information, Failure> {
    let share = ctx.share;
    // The quotas of a share are no file, but what clients ask about the file system is the same.
    let node = open.local_open().map_or_else(|| share.root(), |file| file.node());
    Ok(match FsInfoClass::from(class) {
        FsInfoClass::Volume => volume(ctx).await?,
        FsInfoClass::Size => {
            let space = share.space(ctx.call, node).await?;
            Information::fixed(|out| size(&space).encode_into(out))
        }
        FsInfoClass::FullSize => {
            let space = share.space(ctx.call, node).await?;
            Information::fixed(|out| full_size(&space).encode_into(out))
        }
        FsInfoClass::Device => Information::fixed(|out| DISK.encode_into(out)),
        FsInfoClass::Attribute => {
            let is_of_snapshot = share.read_only(node.id()) == Some(ReadOnly::Snapshot);
            attribute(share, ctx.tree.is_read_only() || is_of_snapshot)?
        }
        FsInfoClass::ObjectId => Information::fixed(|out| object_id(ctx, share).encode_into(out)),
        FsInfoClass::SectorSize => Information::fixed(|out| sectors(share).encode_into(out)),
        FsInfoClass::Control => Information::fixed(|out| quotas::control(share).encode_into(out)),
        _ => return Err(NtStatus::INVALID_INFO_CLASS.into()),
    })
}

const DISK: Device = Device { device_type: DEVICE_DISK, characteristics: Characteristics::DEVICE_IS_MOUNTED };

/// Trimmed parts of files (FSCTL_FILE_LEVEL_TRIM) become holes, if the store has holes.
fn sectors(share: &Share) -> SectorSize {
    let mut flags = SectorSizeFlags::ALIGNED_DEVICE | SectorSizeFlags::PARTITION_ALIGNED_ON_DEVICE;
    flags.set(SectorSizeFlags::TRIM_ENABLED, share.capabilities().contains(Capabilities::PUNCH_HOLE));
    SectorSize {
        logical_bytes_per_sector: SECTOR_BYTES,
        physical_bytes_per_sector_for_atomicity: PHYSICAL_SECTOR_BYTES,
        physical_bytes_per_sector_for_performance: PHYSICAL_SECTOR_BYTES,
        effective_physical_bytes_per_sector_for_atomicity: PHYSICAL_SECTOR_BYTES,
        flags,
        byte_offset_for_sector_alignment: 0,
        byte_offset_for_partition_alignment: 0,
    }
}

async fn volume(ctx: &OnShare<'_>) -> Result<Information, Failure> {
    let share = ctx.share;
    let root = share.attributes(ctx.call, share.root(), Want::empty()).await?;
    let volume = Volume {
        volume_creation_time: attributes::creation_time(&root),
        volume_serial_number: snapshot::volume_number(share),
        supports_objects: false,
        volume_label: Utf16::from(share.name()),
    };
    Information::variable(VOLUME_LEN_MIN, |out| volume.encode_into(out))
}

/// The unit of allocation in sectors, and in bytes.
fn unit(space: &Space) -> (u32, u64) {
    let sectors = (space.block / SECTOR_BYTES).max(1);
    (sectors, u64::from(sectors).saturating_mul(u64::from(SECTOR_BYTES)))
}

fn size(space: &Space) -> Size {
    let (sectors_per_allocation_unit, bytes) = unit(space);
    Size {
        total_allocation_units: space.total / bytes,
        available_allocation_units: space.available / bytes,
        sectors_per_allocation_unit,
        bytes_per_sector: SECTOR_BYTES,
    }
}

fn full_size(space: &Space) -> FullSize {
    let (sectors_per_allocation_unit, bytes) = unit(space);
    FullSize {
        total_allocation_units: space.total / bytes,
        caller_available_allocation_units: space.available / bytes,
        actual_available_allocation_units: space.free / bytes,
        sectors_per_allocation_unit,
        bytes_per_sector: SECTOR_BYTES,
    }
}

fn attribute(share: &Share, is_read_only: bool) -> Result<Information, Failure> {
    // The store distinguishes names by case. Clients know from NTFS that lookups over this protocol do not.
    let mut can = FileSystemAttributes::CASE_SENSITIVE_SEARCH
        | FileSystemAttributes::CASE_PRESERVED_NAMES
        | FileSystemAttributes::UNICODE_ON_DISK
        | FileSystemAttributes::SUPPORTS_REPARSE_POINTS;
    let store = share.capabilities();
    can.set(FileSystemAttributes::SUPPORTS_SPARSE_FILES, store.contains(Capabilities::SPARSE));
    can.set(FileSystemAttributes::SUPPORTS_BLOCK_REFCOUNTING, store.contains(Capabilities::CLONE));
    can.set(FileSystemAttributes::NAMED_STREAMS, store.contains(Capabilities::STREAMS));
    can.set(FileSystemAttributes::VOLUME_QUOTAS, share.has_quotas());
    can.set(FileSystemAttributes::READ_ONLY_VOLUME, is_read_only);
    let answer = Attribute {
        file_system_attributes: can,
        maximum_component_name_length: u32::try_from(NAME_BYTES_MAX).unwrap_or(u32::MAX),
        // Clients check for this name before they use features of NTFS.
        file_system_name: Utf16::from("NTFS"),
    };
    Information::variable(ATTRIBUTE_LEN_MIN, |out| answer.encode_into(out))
}

/// The identifier consists of the server's name and the number of the volume, so it is the same after a restart.
fn object_id(ctx: &OnShare<'_>, share: &Share) -> ObjectId {
    let mut id = ctx.server.guid().0;
    for (byte, part) in id.iter_mut().zip(snapshot::volume_number(share).to_le_bytes()) {
        *byte ^= part;
    }
    ObjectId { object_id: smb_wire::Guid(id), extended_info: [0; 48] }
}
