//! What is said of an object.

use crate::bytes::{Malformed, Reader, Result, put_bytes, put_option};
use crate::{NAME_BYTES_MAX, VALUE_BYTES_MAX};

/// The number by which an object is known as long as it exists, in all snapshots of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Number {
    /// The file system within the share.
    pub fs: u32,
    /// The number in this file system.
    pub number: u64,
}

/// A moment: seconds since 1970-01-01 UTC and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub secs: i64,
    /// Nanoseconds past the second, below 1,000,000,000.
    pub nanos: u32,
}

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// A file with data.
    #[default]
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// The name of a socket.
    Socket,
    /// The name of a block device.
    BlockDevice,
    /// The name of a character device.
    CharDevice,
}

const KINDS: [Kind; 7] = [
    Kind::Regular,
    Kind::Directory,
    Kind::Symlink,
    Kind::Fifo,
    Kind::Socket,
    Kind::BlockDevice,
    Kind::CharDevice,
];

/// All of an object but its data, its extended attributes and its streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object {
    /// The type of the object.
    pub kind: Kind,
    /// The low 12 bits of a POSIX mode.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// For a device, the numbers of its driver and its unit.
    pub device: (u32, u32),
    /// Length of the data in bytes.
    pub size: u64,
    /// Last read.
    pub atime: Time,
    /// Last write.
    pub mtime: Time,
    /// Creation.
    pub btime: Option<Time>,
    /// The flags of SMB clients, [MS-FSCC] 2.6.
    pub flags: Option<u32>,
    /// The change time that an SMB client has set.
    pub ctime: Option<Time>,
    /// The text of a symbolic link; otherwise empty.
    pub link: Vec<u8>,
    /// The security descriptor, [MS-DTYP] 2.4.6.
    pub descriptor: Option<Vec<u8>>,
}

impl Number {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fs.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { fs: from.u32()?, number: from.u64()? })
    }
}

impl Time {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.secs.to_le_bytes());
        out.extend_from_slice(&self.nanos.to_le_bytes());
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Self> {
        let time = Self { secs: from.i64()?, nanos: from.u32()? };
        if time.nanos < 1_000_000_000 { Ok(time) } else { Err(Malformed::Invalid("a time")) }
    }
}

impl Kind {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let at = KINDS.iter().position(|kind| *kind == self).unwrap_or_default();
        out.push(u8::try_from(at).unwrap_or_default());
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Self> {
        KINDS.get(usize::from(from.u8()?)).copied().ok_or(Malformed::Invalid("a kind"))
    }
}

impl Object {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.kind.encode(out);
        for number in [self.mode, self.uid, self.gid, self.device.0, self.device.1] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.size.to_le_bytes());
        self.atime.encode(out);
        self.mtime.encode(out);
        put_option(self.btime, out, Time::encode);
        put_option(self.flags, out, |flags, out| out.extend_from_slice(&flags.to_le_bytes()));
        put_option(self.ctime, out, Time::encode);
        put_bytes(&self.link, out);
        put_option(self.descriptor.as_deref(), out, put_bytes);
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            kind: Kind::decode(from)?,
            mode: from.u32()?,
            uid: from.u32()?,
            gid: from.u32()?,
            device: (from.u32()?, from.u32()?),
            size: from.u64()?,
            atime: Time::decode(from)?,
            mtime: Time::decode(from)?,
            btime: from.option(Time::decode)?,
            flags: from.option(Reader::u32)?,
            ctime: from.option(Time::decode)?,
            link: from.bytes(VALUE_BYTES_MAX, "a link")?,
            descriptor: from.option(|from| from.bytes(VALUE_BYTES_MAX, "a descriptor"))?,
        })
    }
}

/// A name of an entry, a stream or an extended attribute: never empty, and without a zero byte.
pub(crate) fn decode_name(from: &mut Reader<'_>) -> Result<Vec<u8>> {
    let name = from.bytes(NAME_BYTES_MAX, "a name")?;
    if name.is_empty() || name.contains(&0) { Err(Malformed::Invalid("a name")) } else { Ok(name) }
}
