//! The records of a stream.

use crate::bytes::{Malformed, Reader, Result, put_bytes, put_count, put_option};
use crate::object::decode_name;
use crate::{
    DATA_BYTES_MAX, DEPTH_MAX, HANDLE_BYTES_MAX, Kind, NAME_BYTES_MAX, Number, Object, Time, VALUE_BYTES_MAX,
    WANTED_MAX,
};

/// The version of this format, which the side that asks names.
pub const VERSION: u32 = 1;

/// The most bytes of a frame without its head: a path of the deepest directory.
pub const FRAME_BYTES_MAX: usize = (NAME_BYTES_MAX + 4) * DEPTH_MAX + 1024;

/// Kind and length.
const HEAD_BYTES: usize = 5;

/// A directory in which something is different.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directory {
    /// The names that lead to it.
    pub path: Vec<Vec<u8>>,
    /// Its number.
    pub number: Number,
    /// By which it can be asked for.
    pub handle: Vec<u8>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Its name.
    pub name: Vec<u8>,
    /// The type of the object.
    pub kind: Kind,
    /// Which object it is.
    pub number: Number,
    /// How many names the object has.
    pub links: u32,
    /// When it was changed last.
    pub ctime: Time,
    /// Another number after changes that the change time does not tell: those of named streams, and those of a call that wrote while a
    /// snapshot was taken.
    pub state: u64,
    /// By which it can be asked for.
    pub handle: Vec<u8>,
}

/// One state of an object: which changes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version {
    /// When the object was changed last.
    pub ctime: Time,
    /// [`Entry::state`]
    pub state: u64,
}

/// An object that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedObject {
    /// Its handle.
    pub handle: Vec<u8>,
    /// The version whose data the side that asks has: what is different from that is enough.
    pub has: Option<Version>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The objects.
    pub objects: Vec<WantedObject>,
}

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Something has left its place. What was in a directory has left before the directory itself.
    Departed {
        /// The names that led to it in the earlier snapshot.
        path: Vec<Vec<u8>>,
        /// What was there.
        number: Number,
    },
    /// A directory in which something is different. The directories above it come before it.
    Directory(Directory),
    /// An entry of the last directory.
    Entry(Entry),
    /// A name that the last directory does not have any more.
    Left {
        /// The name.
        name: Vec<u8>,
    },
    /// The last directory has no more entries, and no other names.
    DirectoryEnd,
    /// All other entries of the last directory are as they were.
    Rest,
    /// The next object that was asked for.
    Object(Object),
    /// An extended attribute of the last object.
    Xattr {
        /// Its name, without the `user.`.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// A named stream of the last object, whose data follows.
    Stream {
        /// Its name.
        name: Vec<u8>,
        /// Length of its data in bytes.
        size: u64,
    },
    /// Of the data of the last object, only what is different from the version that was said to be there follows. It comes before
    /// all data. What is between two pieces, up to the shorter size of both, is as it is there, and behind that a hole.
    Differences,
    /// Between the differences: a hole, where something else may be.
    Hole {
        /// Where it begins.
        offset: u64,
        /// How many bytes it has.
        length: u64,
    },
    /// Data of the last object or stream. What is between two of these is a hole, unless these are differences. Offsets ascend.
    Data {
        /// Where it begins.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The last object is complete.
    ObjectEnd,
    /// The next object that was asked for is not there.
    Gone,
    /// Nothing more follows, because of this.
    Failed(String),
    /// The stream is complete.
    End,
    /// Nothing is different here, and the side that says so goes on looking. It can be between any two records.
    Alive,
}

impl Record {
    /// Writes the record as a frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.tag(), 0, 0, 0, 0]);
        self.encode_rest(out);
        let length = u32::try_from(out.len() - start - HEAD_BYTES).unwrap_or(u32::MAX);
        if let Some(place) = out.get_mut(start + 1..start + HEAD_BYTES) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    fn tag(&self) -> u8 {
        match self {
            Self::End => 0,
            Self::Departed { .. } => 1,
            Self::Directory(_) => 2,
            Self::Entry(_) => 3,
            Self::DirectoryEnd => 4,
            Self::Object(_) => 5,
            Self::Xattr { .. } => 6,
            Self::Stream { .. } => 7,
            Self::Data { .. } => 8,
            Self::ObjectEnd => 9,
            Self::Gone => 10,
            Self::Failed(_) => 11,
            Self::Alive => 12,
            Self::Left { .. } => 13,
            Self::Rest => 14,
            Self::Differences => 15,
            Self::Hole { .. } => 16,
        }
    }

    fn encode_rest(&self, out: &mut Vec<u8>) {
        match self {
            Self::Departed { path, number } => {
                put_path(path, out);
                number.encode(out);
            }
            Self::Directory(Directory { path, number, handle }) => {
                put_path(path, out);
                number.encode(out);
                put_bytes(handle, out);
            }
            Self::Entry(entry) => entry.encode(out),
            Self::Object(object) => object.encode(out),
            Self::Xattr { name, value } => {
                put_bytes(name, out);
                put_bytes(value, out);
            }
            Self::Stream { name, size } => {
                put_bytes(name, out);
                out.extend_from_slice(&size.to_le_bytes());
            }
            Self::Data { offset, bytes } => {
                out.extend_from_slice(&offset.to_le_bytes());
                put_bytes(bytes, out);
            }
            Self::Left { name } => put_bytes(name, out),
            Self::Failed(why) => put_bytes(why.as_bytes(), out),
            Self::Hole { offset, length } => {
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(&length.to_le_bytes());
            }
            Self::Differences
            | Self::DirectoryEnd
            | Self::Rest
            | Self::ObjectEnd
            | Self::Gone
            | Self::End
            | Self::Alive => {}
        }
    }

    /// The record at the start of these bytes, and how many bytes it has. None: more bytes are needed.
    ///
    /// # Errors
    /// The bytes are no record.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [tag, a, b, c, d] = *head;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(Malformed::TooLong("a record"));
        }
        let Some(rest) = rest.get(..length) else { return Ok(None) };
        let mut from = Reader::new(rest);
        let record = Self::decode_rest(tag, &mut from)?;
        from.end()?;
        Ok(Some((record, HEAD_BYTES + length)))
    }

    fn decode_rest(tag: u8, from: &mut Reader<'_>) -> Result<Self> {
        Ok(match tag {
            0 => Self::End,
            1 => Self::Departed { path: decode_path(from)?, number: Number::decode(from)? },
            2 => Self::Directory(Directory {
                path: decode_path(from)?,
                number: Number::decode(from)?,
                handle: from.bytes(HANDLE_BYTES_MAX, "a handle")?,
            }),
            3 => Self::Entry(Entry::decode(from)?),
            4 => Self::DirectoryEnd,
            5 => Self::Object(Object::decode(from)?),
            6 => Self::Xattr { name: decode_name(from)?, value: from.bytes(VALUE_BYTES_MAX, "a value")? },
            7 => Self::Stream { name: decode_name(from)?, size: from.u64()? },
            8 => Self::Data { offset: from.u64()?, bytes: from.bytes(DATA_BYTES_MAX, "data")? },
            9 => Self::ObjectEnd,
            10 => Self::Gone,
            12 => Self::Alive,
            13 => Self::Left { name: decode_name(from)? },
            14 => Self::Rest,
            15 => Self::Differences,
            16 => Self::Hole { offset: from.u64()?, length: from.u64()? },
            11 => {
                let why = from.bytes(VALUE_BYTES_MAX, "a reason")?;
                Self::Failed(String::from_utf8(why).map_err(|_| Malformed::Invalid("a reason"))?)
            }
            _ => return Err(Malformed::Invalid("the kind of a record")),
        })
    }
}

impl Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(&self.name, out);
        self.kind.encode(out);
        self.number.encode(out);
        out.extend_from_slice(&self.links.to_le_bytes());
        self.ctime.encode(out);
        out.extend_from_slice(&self.state.to_le_bytes());
        put_bytes(&self.handle, out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            name: decode_name(from)?,
            kind: Kind::decode(from)?,
            number: Number::decode(from)?,
            links: from.u32()?,
            ctime: Time::decode(from)?,
            state: from.u64()?,
            handle: from.bytes(HANDLE_BYTES_MAX, "a handle")?,
        })
    }
}

impl Version {
    fn encode(self, out: &mut Vec<u8>) {
        self.ctime.encode(out);
        out.extend_from_slice(&self.state.to_le_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { ctime: Time::decode(from)?, state: from.u64()? })
    }
}

impl Wanted {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_count(self.objects.len(), &mut out);
        for WantedObject { handle, has } in &self.objects {
            put_bytes(handle, &mut out);
            put_option(*has, &mut out, Version::encode);
        }
        out
    }

    /// Decodes all of these bytes.
    ///
    /// # Errors
    /// They are something else, or ask for more than [`WANTED_MAX`] objects.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes);
        let count = from.count(WANTED_MAX, "what is asked for")?;
        let object = |from: &mut Reader<'_>| {
            let handle = from.bytes(HANDLE_BYTES_MAX, "a handle")?;
            Ok(WantedObject { handle, has: from.option(Version::decode)? })
        };
        let objects = (0..count).map(|_| object(&mut from)).collect::<Result<_>>()?;
        from.end()?;
        Ok(Self { objects })
    }
}

fn put_path(path: &[Vec<u8>], out: &mut Vec<u8>) {
    put_count(path.len(), out);
    path.iter().for_each(|name| put_bytes(name, out));
}

fn decode_path(from: &mut Reader<'_>) -> Result<Vec<Vec<u8>>> {
    let depth = from.count(DEPTH_MAX, "a path")?;
    (0..depth).map(|_| decode_name(from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Record> {
        let path = vec![b"a".to_vec(), vec![b'x'; NAME_BYTES_MAX]];
        let number = Number { fs: 3, number: u64::MAX };
        let time = Time { secs: -5, nanos: 999_999_999 };
        let object = Object {
            kind: Kind::CharDevice,
            mode: 0o7777,
            device: (1, 2),
            size: 1 << 40,
            btime: Some(time),
            flags: Some(0x20),
            link: b"to".to_vec(),
            descriptor: Some(vec![1; VALUE_BYTES_MAX]),
            ..Object::default()
        };
        let entry =
            Entry { name: b"n".to_vec(), kind: Kind::Symlink, number, ctime: time, ..Entry::default() };
        vec![
            Record::Departed { path: path.clone(), number },
            Record::Directory(Directory { path, number, handle: vec![7; HANDLE_BYTES_MAX] }),
            Record::Entry(entry),
            Record::Left { name: b"l".to_vec() },
            Record::DirectoryEnd,
            Record::Rest,
            Record::Object(object),
            Record::Xattr { name: b"x".to_vec(), value: Vec::new() },
            Record::Stream { name: b"s".to_vec(), size: 9 },
            Record::Differences,
            Record::Hole { offset: 7, length: 1 << 60 },
            Record::Data { offset: 1 << 50, bytes: vec![0; DATA_BYTES_MAX] },
            Record::ObjectEnd,
            Record::Gone,
            Record::Failed("full".to_owned()),
            Record::End,
        ]
    }

    #[test]
    fn records_follow_each_other_and_come_in_pieces() {
        let mut bytes = Vec::new();
        all().iter().for_each(|record| record.encode_into(&mut bytes));
        let (mut rest, mut read) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest).unwrap().unwrap();
            assert_eq!(Record::decode(&rest[..length - 1]), Ok(None));
            read.push(record);
            rest = &rest[length..];
        }
        assert_eq!(read, all());
    }

    #[test]
    fn what_is_longer_than_it_may_be_is_refused_before_it_arrives() {
        let length = u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_le_bytes();
        assert_eq!(Record::decode(&[&[8][..], &length].concat()), Err(Malformed::TooLong("a record")));
        let decoded = |record: &Record| {
            let mut bytes = Vec::new();
            record.encode_into(&mut bytes);
            Record::decode(&bytes).map(|_| ())
        };
        let data = Record::Data { offset: 0, bytes: vec![0; DATA_BYTES_MAX + 1] };
        assert_eq!(decoded(&data), Err(Malformed::TooLong("data")));
        let deep = Record::Departed { path: vec![b"a".to_vec(); DEPTH_MAX + 1], number: Number::default() };
        assert_eq!(decoded(&deep), Err(Malformed::TooLong("a path")));
        for name in [&b""[..], b"a\0", &[b'a'; NAME_BYTES_MAX + 1]] {
            assert!(decoded(&Record::Stream { name: name.to_vec(), size: 0 }).is_err());
        }
        let late = Record::Entry(Entry {
            name: b"a".to_vec(),
            ctime: Time { secs: 0, nanos: 1_000_000_000 },
            ..Entry::default()
        });
        assert_eq!(decoded(&late), Err(Malformed::Invalid("a time")));
        let object = WantedObject { handle: vec![1], has: Some(Version::default()) };
        let many = Wanted { objects: vec![object.clone(); WANTED_MAX + 1] }.encode();
        assert_eq!(Wanted::decode(&many), Err(Malformed::TooLong("what is asked for")));
        let some = Wanted { objects: vec![object; WANTED_MAX] };
        assert_eq!(Wanted::decode(&some.encode()), Ok(some));
    }

    /// A server of another version must be able to read this, so the bytes do not change by chance.
    #[test]
    fn the_bytes_are_those_of_the_description() {
        let mut bytes = Vec::new();
        Record::Data { offset: 2, bytes: b"ab".to_vec() }.encode_into(&mut bytes);
        assert_eq!(bytes, [8, 14, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'a', b'b']);
    }
}
