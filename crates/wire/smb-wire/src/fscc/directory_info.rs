//! Directory entries of QUERY_DIRECTORY: the directory classes of [MS-FSCC] 2.4.

use super::next_entry::{DoesNotFit, Entries, EntryWriter};
use super::{FileAttributes, FileInfoClass};
use crate::codec::{Field, Put, Reader, Utf16, WireError, put_zeros};
use crate::dtyp::FileTime;

/// The most bytes of a short name: 12 characters.
pub const SHORT_NAME_BYTES_MAX: usize = 24;

/// A directory entry. The class decides which of its fields are sent; the others are 0 after decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// Position in the directory; 0 unless the file system has such positions.
    pub file_index: u32,
    /// When the file was created.
    pub creation_time: FileTime,
    /// When the data was last read.
    pub last_access_time: FileTime,
    /// When the data was last written.
    pub last_write_time: FileTime,
    /// When data or attributes were last changed.
    pub change_time: FileTime,
    /// Size of the file in bytes.
    pub end_of_file: u64,
    /// Bytes allocated on disk.
    pub allocation_size: u64,
    /// The file's attributes.
    pub file_attributes: FileAttributes,
    /// Bytes of the extended attributes. With [`FileAttributes::REPARSE_POINT`], the classes without a field for the
    /// reparse tag have it here ([MS-FSCC] 2.4.8 and others).
    pub ea_size: u32,
    /// The reparse tag, in the classes that have a field for it.
    pub reparse_tag: u32,
    /// Identifies the file in its volume. The classes with 64 bits contain the lower half.
    pub file_id: u128,
    /// The 8.3 name, at most [`SHORT_NAME_BYTES_MAX`] bytes; empty where there is none.
    pub short_name: Utf16<'a>,
    /// The name.
    pub name: Utf16<'a>,
}

/// The fields of a class after the common ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Directory,
    Full,
    Both,
    Names,
    IdBoth,
    IdFull,
    IdExtd,
    IdExtdBoth,
    Id64Extd,
    Id64ExtdBoth,
    IdAllExtd,
    IdAllExtdBoth,
}

impl Layout {
    /// Whether the short name directly precedes the name.
    const fn ends_with_short_name(self) -> bool {
        matches!(self, Self::IdExtdBoth | Self::Id64ExtdBoth | Self::IdAllExtdBoth)
    }

    fn of(class: FileInfoClass) -> Result<Self, WireError> {
        match class {
            FileInfoClass::Directory => Ok(Self::Directory),
            FileInfoClass::FullDirectory => Ok(Self::Full),
            FileInfoClass::BothDirectory => Ok(Self::Both),
            FileInfoClass::Names => Ok(Self::Names),
            FileInfoClass::IdBothDirectory => Ok(Self::IdBoth),
            FileInfoClass::IdFullDirectory => Ok(Self::IdFull),
            FileInfoClass::IdExtdDirectory => Ok(Self::IdExtd),
            FileInfoClass::IdExtdBothDirectory => Ok(Self::IdExtdBoth),
            FileInfoClass::Id64ExtdDirectory => Ok(Self::Id64Extd),
            FileInfoClass::Id64ExtdBothDirectory => Ok(Self::Id64ExtdBoth),
            FileInfoClass::IdAllExtdDirectory => Ok(Self::IdAllExtd),
            FileInfoClass::IdAllExtdBothDirectory => Ok(Self::IdAllExtdBoth),
            _ => Err(WireError::Invalid("directory information class")),
        }
    }
}

/// Whether entries can have this class.
#[must_use]
pub fn is_directory_class(class: FileInfoClass) -> bool {
    Layout::of(class).is_ok()
}

/// Writes entries of one class into an output buffer.
#[derive(Debug)]
pub struct DirectoryWriter<'o> {
    entries: EntryWriter<'o>,
    layout: Layout,
}

impl<'o> DirectoryWriter<'o> {
    /// Starts a list of at most `limit` bytes at the end of `out`.
    ///
    /// # Errors
    /// [`WireError::Invalid`] when `class` is not a directory class (STATUS_INVALID_INFO_CLASS).
    pub fn new(class: FileInfoClass, out: &'o mut Vec<u8>, limit: usize) -> Result<Self, WireError> {
        Ok(Self { entries: EntryWriter::new(out, limit, 8), layout: Layout::of(class)? })
    }

    /// Whether there are no entries yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// [`DoesNotFit`]: the list is unchanged. For the first entry the server answers STATUS_INFO_LENGTH_MISMATCH or
    /// STATUS_BUFFER_OVERFLOW; for a later one, the entry belongs to the next response.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), DoesNotFit> {
        let layout = self.layout;
        self.entries.push(|out| entry.put(layout, out))
    }
}

/// The entries of a QUERY_DIRECTORY response.
///
/// # Errors
/// [`WireError::Invalid`] when `class` is not a directory class. An item is an error if its entry is malformed.
pub fn entries(
    class: FileInfoClass,
    list: &[u8],
) -> Result<impl Iterator<Item = Result<Entry<'_>, WireError>>, WireError> {
    let layout = Layout::of(class)?;
    Ok(Entries::new(list).map(move |entry| Entry::read(layout, entry?)))
}

impl<'a> Entry<'a> {
    /// Bytes of an entry of this class with a name of `name_bytes`, without padding.
    ///
    /// # Errors
    /// [`WireError::Invalid`] when `class` is not a directory class.
    pub fn byte_len(class: FileInfoClass, name_bytes: usize) -> Result<usize, WireError> {
        let fixed: usize = match Layout::of(class)? {
            Layout::Names => 12,
            Layout::Directory => 64,
            Layout::Full => 68,
            Layout::IdFull | Layout::Id64Extd => 80,
            Layout::IdExtd => 88,
            Layout::Both => 94,
            Layout::IdBoth => 104,
            Layout::Id64ExtdBoth => 106,
            Layout::IdAllExtd => 96,
            Layout::IdAllExtdBoth => 122,
            Layout::IdExtdBoth => 114,
        };
        Ok(fixed.saturating_add(name_bytes))
    }

    fn read(layout: Layout, entry: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(entry);
        r.skip(4)?;
        let mut this = Self { file_index: r.u32()?, ..Self::default() };
        if layout != Layout::Names {
            this.read_common(&mut r)?;
        }
        let name_length = r.len32()?;
        this.read_particular(layout, &mut r)?;
        this.name = Utf16::from_wire(r.bytes(name_length)?)?;
        Ok(this)
    }

    fn read_common(&mut self, r: &mut Reader<'a>) -> Result<(), WireError> {
        self.creation_time = FileTime::read(r)?;
        self.last_access_time = FileTime::read(r)?;
        self.last_write_time = FileTime::read(r)?;
        self.change_time = FileTime::read(r)?;
        self.end_of_file = r.u64()?;
        self.allocation_size = r.u64()?;
        self.file_attributes = FileAttributes::read(r)?;
        Ok(())
    }

    /// Reads the fields between `FileNameLength` and `FileName`.
    fn read_particular(&mut self, layout: Layout, r: &mut Reader<'a>) -> Result<(), WireError> {
        if matches!(layout, Layout::Directory | Layout::Names) {
            return Ok(());
        }
        self.ea_size = r.u32()?;
        match layout {
            Layout::Directory | Layout::Names | Layout::Full => {}
            Layout::Both => self.read_short_name(r)?,
            Layout::IdBoth => {
                self.read_short_name(r)?;
                r.skip(2)?;
                self.file_id = r.u64()?.into();
            }
            Layout::IdFull => {
                r.skip(4)?;
                self.file_id = r.u64()?.into();
            }
            Layout::IdExtd | Layout::IdExtdBoth => {
                self.reparse_tag = r.u32()?;
                self.file_id = Field::read(r)?;
            }
            Layout::Id64Extd | Layout::Id64ExtdBoth => {
                self.reparse_tag = r.u32()?;
                self.file_id = r.u64()?.into();
            }
            Layout::IdAllExtd | Layout::IdAllExtdBoth => {
                self.reparse_tag = r.u32()?;
                r.skip(8)?;
                self.file_id = Field::read(r)?;
            }
        }
        if layout.ends_with_short_name() {
            self.read_short_name(r)?;
        }
        Ok(())
    }

    fn read_short_name(&mut self, r: &mut Reader<'a>) -> Result<(), WireError> {
        let length = usize::from(r.u8()?);
        r.skip(1)?;
        let room = r.bytes(SHORT_NAME_BYTES_MAX)?;
        self.short_name = Utf16::from_wire(room.get(..length).ok_or(WireError::Invalid("ShortNameLength"))?)?;
        Ok(())
    }

    /// Appends the fields after `NextEntryOffset`.
    fn put(&self, layout: Layout, out: &mut Vec<u8>) {
        out.put_u32(self.file_index);
        if layout != Layout::Names {
            self.creation_time.put(out);
            self.last_access_time.put(out);
            self.last_write_time.put(out);
            self.change_time.put(out);
            out.put_u64(self.end_of_file);
            out.put_u64(self.allocation_size);
            out.put_u32(self.file_attributes.bits());
        }
        let length_at = out.len();
        out.put_u32(0);
        self.put_particular(layout, out);
        let name_at = out.len();
        self.name.encode_into(out);
        let name_length = u32::try_from(out.len().saturating_sub(name_at)).unwrap_or(u32::MAX);
        crate::codec::patch_u32(out, length_at, name_length);
    }

    fn put_particular(&self, layout: Layout, out: &mut Vec<u8>) {
        let [low_file_id, _] = split_file_id(self.file_id);
        if matches!(layout, Layout::Directory | Layout::Names) {
            return;
        }
        out.put_u32(self.ea_size);
        match layout {
            Layout::Directory | Layout::Names | Layout::Full => {}
            Layout::Both => self.put_short_name(out),
            Layout::IdBoth => {
                self.put_short_name(out);
                out.put_u16(0);
                out.put_u64(low_file_id);
            }
            Layout::IdFull => {
                out.put_u32(0);
                out.put_u64(low_file_id);
            }
            Layout::IdExtd | Layout::IdExtdBoth => {
                out.put_u32(self.reparse_tag);
                Field::put(&self.file_id, out);
            }
            Layout::Id64Extd | Layout::Id64ExtdBoth => {
                out.put_u32(self.reparse_tag);
                out.put_u64(low_file_id);
            }
            Layout::IdAllExtd | Layout::IdAllExtdBoth => {
                out.put_u32(self.reparse_tag);
                out.put_u64(low_file_id);
                Field::put(&self.file_id, out);
            }
        }
        if layout.ends_with_short_name() {
            self.put_short_name(out);
        }
    }

    /// A short name that is too long is omitted.
    fn put_short_name(&self, out: &mut Vec<u8>) {
        let length = self.short_name.byte_len();
        match u8::try_from(length) {
            Ok(byte) if length <= SHORT_NAME_BYTES_MAX => {
                out.put(&[byte, 0]);
                self.short_name.encode_into(out);
                put_zeros(out, SHORT_NAME_BYTES_MAX.saturating_sub(length));
            }
            _ => put_zeros(out, SHORT_NAME_BYTES_MAX.saturating_add(2)),
        }
    }
}

/// The lower and the upper half.
const fn split_file_id(file_id: u128) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = file_id.to_le_bytes();
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p])]
}
