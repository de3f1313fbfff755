//! Converts between attributes of the storage and those of [MS-FSCC].

use smb_wire::FileTime;
use smb_wire::fscc::FileAttributes;
use smb_wire::fscc::file_info::{Basic, NetworkOpen, Standard};
use smb_wire::fscc::reparse::tag;
use storage::{Attributes, FileFlags, FileKind, Timestamp};

/// A time of the storage as a FILETIME, truncated to 100 nanoseconds.
pub(crate) fn file_time(time: Timestamp) -> FileTime {
    FileTime::from_unix(time.secs, time.nanos)
}

/// A FILETIME as a time of the storage.
pub(crate) fn timestamp(time: FileTime) -> Timestamp {
    let (secs, nanos) = time.to_unix();
    Timestamp { secs, nanos }
}

/// When the object was created. If the store does not know that, its earliest known time.
pub(crate) fn creation_time(attributes: &Attributes) -> FileTime {
    file_time(
        attributes.btime.unwrap_or_else(|| attributes.mtime.min(attributes.ctime).min(attributes.atime)),
    )
}

/// When the object last changed in any way, or the time that a client has set.
pub(crate) fn change_time(attributes: &Attributes) -> FileTime {
    file_time(attributes.ctime_set.unwrap_or(attributes.ctime))
}

/// The flags of an object. A file whose flags were never set has the archive flag, like a new file.
pub(crate) fn flags(attributes: &Attributes) -> FileFlags {
    let is_dir = attributes.kind == FileKind::Directory;
    attributes.flags.unwrap_or(if is_dir { FileFlags::empty() } else { FileFlags::ARCHIVE })
}

/// The attributes of [MS-FSCC] 2.6.
pub(crate) fn file_attributes(attributes: &Attributes) -> FileAttributes {
    let mut result = FileAttributes::from_bits_retain(flags(attributes).bits());
    result.set(FileAttributes::DIRECTORY, attributes.kind == FileKind::Directory);
    result.set(FileAttributes::REPARSE_POINT, attributes.kind == FileKind::Symlink);
    if result.is_empty() { FileAttributes::NORMAL } else { result }
}

/// The reparse tag of an object; 0 without one. Each symbolic link has the tag of Windows' own, whatever made it.
pub(crate) fn reparse_tag(attributes: &Attributes) -> u32 {
    if attributes.kind == FileKind::Symlink { tag::SYMLINK } else { 0 }
}

/// The flags that are kept of the attributes that a client sends. Bits that it may not set are ignored.
pub(crate) fn file_flags(attributes: FileAttributes) -> FileFlags {
    FileFlags::from_bits_truncate(attributes.bits()).difference(FileFlags::SPARSE)
}

/// Bytes allocated on disk; for clients a directory has none.
pub(crate) fn allocation_size(attributes: &Attributes) -> u64 {
    if attributes.kind == FileKind::Directory { 0 } else { attributes.allocated }
}

/// Bytes of data; for clients a directory has none.
pub(crate) fn end_of_file(attributes: &Attributes) -> u64 {
    if attributes.kind == FileKind::Directory { 0 } else { attributes.size }
}

/// FileBasicInformation.
pub(crate) fn basic(attributes: &Attributes) -> Basic {
    Basic {
        creation_time: creation_time(attributes),
        last_access_time: file_time(attributes.atime),
        last_write_time: file_time(attributes.mtime),
        change_time: change_time(attributes),
        file_attributes: file_attributes(attributes),
    }
}

/// FileStandardInformation. The link count of a file that is to be deleted is reported as one less.
pub(crate) fn standard(attributes: &Attributes, delete_pending: bool) -> Standard {
    let is_dir = attributes.kind == FileKind::Directory;
    let links = if is_dir { 1 } else { attributes.links };
    Standard {
        allocation_size: allocation_size(attributes),
        end_of_file: end_of_file(attributes),
        number_of_links: links.saturating_sub(u32::from(delete_pending)),
        delete_pending,
        directory: is_dir,
    }
}

/// FileNetworkOpenInformation, which CREATE and CLOSE also return.
pub(crate) fn network_open(attributes: &Attributes) -> NetworkOpen {
    let basic = basic(attributes);
    NetworkOpen {
        creation_time: basic.creation_time,
        last_access_time: basic.last_access_time,
        last_write_time: basic.last_write_time,
        change_time: basic.change_time,
        allocation_size: allocation_size(attributes),
        end_of_file: end_of_file(attributes),
        file_attributes: basic.file_attributes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{Device, ObjectId};

    fn object(kind: FileKind, flags: Option<FileFlags>) -> Attributes {
        Attributes {
            id: ObjectId::live(7),
            kind,
            mode: 0o644,
            links: 2,
            uid: 1,
            gid: 1,
            device: Device::default(),
            size: 10,
            allocated: 4096,
            atime: Timestamp { secs: 3, nanos: 0 },
            mtime: Timestamp { secs: 2, nanos: 0 },
            ctime: Timestamp { secs: 4, nanos: 0 },
            btime: None,
            flags,
            ctime_set: None,
            changes_within_ctime: 0,
        }
    }

    #[test]
    fn attributes_have_defaults() {
        use FileKind::{Directory, Regular};
        assert_eq!(file_attributes(&object(Regular, None)), FileAttributes::ARCHIVE);
        assert_eq!(file_attributes(&object(Directory, None)), FileAttributes::DIRECTORY);
        assert_eq!(file_attributes(&object(Regular, Some(FileFlags::empty()))), FileAttributes::NORMAL);
        let link = object(FileKind::Symlink, None);
        assert_eq!(file_attributes(&link), FileAttributes::ARCHIVE | FileAttributes::REPARSE_POINT);
        assert_eq!([reparse_tag(&link), reparse_tag(&object(Directory, None))], [0xA000_000C, 0]);
        let hidden = file_attributes(&object(Directory, Some(FileFlags::HIDDEN)));
        assert_eq!(hidden, FileAttributes::DIRECTORY | FileAttributes::HIDDEN);
    }

    #[test]
    fn only_what_a_client_may_set_is_kept() {
        let sent = FileAttributes::DIRECTORY | FileAttributes::HIDDEN | FileAttributes::SPARSE_FILE;
        assert_eq!(file_flags(sent), FileFlags::HIDDEN);
        assert_eq!(file_flags(FileAttributes::NORMAL), FileFlags::empty());
    }

    #[test]
    fn sizes_links_and_times() {
        let file = object(FileKind::Regular, None);
        assert_eq!(standard(&file, true).number_of_links, 1);
        assert_eq!(standard(&file, false).allocation_size, 4096);
        assert_eq!(standard(&object(FileKind::Directory, None), false).end_of_file, 0);
        assert_eq!(creation_time(&file), FileTime::from_unix(2, 0), "the earliest known");
        assert_eq!(
            timestamp(file_time(Timestamp { secs: -5, nanos: 700 })),
            Timestamp { secs: -5, nanos: 700 }
        );
    }
}
