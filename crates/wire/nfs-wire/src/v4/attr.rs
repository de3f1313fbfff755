//! Attributes and sets of attributes: RFC 8881 section 5 and 6, RFC 7862 12.2, RFC 8275 and RFC 8276 8.2.

use crate::v4::acl::{Ace, Acl41, AclSupport};
use crate::v4::fs_locations::FsLocations;
use crate::v4::status::Status;
use crate::v4::types::{Bitmap, FileHandle, FileType, Fsid, SetTime, SpecData, Text, Time};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// Declares the attributes: first those whose values have a type here; after the semicolon those without.
macro_rules! attributes {
    (
        $($(#[$meta:meta])* $name:ident = $number:literal ($value:ty),)+ ;
        $($(#[$bare_meta:meta])* $bare:ident = $bare_number:literal,)+
    ) => {
        xdr_enum! {
            /// The attributes by number.
            Attribute {
                $($(#[$meta])* $name = $number,)+
                $($(#[$bare_meta])* $bare = $bare_number,)+
            }
        }

        /// An attribute and its value.
        #[doc(alias = "fattr4")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Value<'a> {
            $($(#[$meta])* $name($value),)+
        }

        impl<'a> Value<'a> {
            /// Which attribute this is.
            #[must_use]
            pub fn attribute(&self) -> Attribute {
                match self {
                    $(Self::$name(_) => Attribute::$name,)+
                }
            }

            /// Decodes the value of `attribute`.
            ///
            /// # Errors
            /// [`Status::AttrNotSupp`] for an attribute whose values have no type here; [`Status::BadXdr`].
            pub fn decode(attribute: Attribute, reader: &mut Reader<'a>) -> Result<Self, Status> {
                match attribute {
                    $(Attribute::$name => Ok(Self::$name(Decode::decode(reader)?)),)+
                    $(Attribute::$bare => Err(Status::AttrNotSupp),)+
                }
            }
        }

        /// The value without the attribute's number.
        impl Encode for Value<'_> {
            fn encode(&self, writer: &mut Writer<'_>) {
                match self {
                    $(Self::$name(value) => value.encode(writer),)+
                }
            }
        }
    };
}

attributes! {
    /// RFC 8881 5.8.1.1: the attributes that the object's file system supports.
    SupportedAttrs = 0 (AttributeSet),
    /// RFC 8881 5.8.1.2: type.
    Type = 1 (FileType),
    /// RFC 8881 5.8.1.3: whether filehandles expire; 0 means never.
    FhExpireType = 2 (u32),
    /// RFC 8881 5.8.1.4: changes whenever data or attributes change.
    Change = 3 (u64),
    /// RFC 8881 5.8.1.5: size in bytes.
    Size = 4 (u64),
    /// RFC 8881 5.8.1.6: hard links.
    LinkSupport = 5 (bool),
    /// RFC 8881 5.8.1.7: symbolic links.
    SymlinkSupport = 6 (bool),
    /// RFC 8881 5.8.1.8: whether the object has named attributes.
    NamedAttr = 7 (bool),
    /// RFC 8881 5.8.1.9: file system.
    Fsid = 8 (Fsid),
    /// RFC 8881 5.8.1.10: two different filehandles always name two objects.
    UniqueHandles = 9 (bool),
    /// RFC 8881 5.8.1.11: lease period in seconds.
    LeaseTime = 10 (u32),
    /// RFC 8881 5.8.1.12: why READDIR could not return an entry's attributes.
    RdattrError = 11 (Result<(), Status>),
    /// RFC 8881 6.2.1: access control list.
    Acl = 12 (Vec<Ace<'a>>),
    /// RFC 8881 6.2.1.2: supported types of entries.
    AclSupport = 13 (AclSupport),
    /// RFC 8881 5.8.2.1: changed since the last backup.
    Archive = 14 (bool),
    /// RFC 8881 5.8.2.2: times can be set.
    CanSetTime = 15 (bool),
    /// RFC 8881 5.8.2.3: whether names that differ only in case are the same.
    CaseInsensitive = 16 (bool),
    /// RFC 8881 5.8.2.4: names keep their case.
    CasePreserving = 17 (bool),
    /// RFC 8881 5.8.2.6: only a privileged user may change an owner.
    ChownRestricted = 18 (bool),
    /// RFC 8881 5.8.1.13: filehandle.
    FileHandle = 19 (FileHandle<'a>),
    /// RFC 8881 5.8.2.7: number of the object in its file system.
    FileId = 20 (u64),
    /// RFC 8881 5.8.2.8: objects that the caller can still create.
    FilesAvail = 21 (u64),
    /// RFC 8881 5.8.2.9: objects that can still be created.
    FilesFree = 22 (u64),
    /// RFC 8881 5.8.2.10: objects that the file system can have.
    FilesTotal = 23 (u64),
    /// RFC 8881 5.8.2.12: other places of this file system.
    FsLocations = 24 (FsLocations<'a>),
    /// RFC 8881 5.8.2.15: hidden, as on Windows.
    Hidden = 25 (bool),
    /// RFC 8881 5.8.2.16: all objects of the file system have the same per-file-system attributes.
    Homogeneous = 26 (bool),
    /// RFC 8881 5.8.2.17: largest size of a file.
    MaxFileSize = 27 (u64),
    /// RFC 8881 5.8.2.18: the most hard links.
    MaxLink = 28 (u32),
    /// RFC 8881 5.8.2.19: longest name in bytes.
    MaxName = 29 (u32),
    /// RFC 8881 5.8.2.20: the most bytes of a READ.
    MaxRead = 30 (u64),
    /// RFC 8881 5.8.2.21: the most bytes of a WRITE.
    MaxWrite = 31 (u64),
    /// RFC 8881 5.8.2.22: media type.
    MimeType = 32 (Text<'a>),
    /// RFC 8881 6.2.4: permission bits.
    Mode = 33 (u32),
    /// RFC 8881 5.8.2.24: a name that is too long is an error.
    NoTrunc = 34 (bool),
    /// RFC 8881 5.8.2.25: number of hard links.
    NumLinks = 35 (u32),
    /// RFC 8881 5.8.2.26: owner.
    Owner = 36 (Text<'a>),
    /// RFC 8881 5.8.2.27: group.
    OwnerGroup = 37 (Text<'a>),
    /// RFC 8881 5.8.2.28: bytes up to the hard quota.
    QuotaAvailHard = 38 (u64),
    /// RFC 8881 5.8.2.29: bytes up to the soft quota.
    QuotaAvailSoft = 39 (u64),
    /// RFC 8881 5.8.2.30: bytes that count towards the quota.
    QuotaUsed = 40 (u64),
    /// RFC 8881 5.8.2.31: device number.
    RawDev = 41 (SpecData),
    /// RFC 8881 5.8.2.32: bytes that the caller can still use.
    SpaceAvail = 42 (u64),
    /// RFC 8881 5.8.2.33: free bytes.
    SpaceFree = 43 (u64),
    /// RFC 8881 5.8.2.34: bytes in total.
    SpaceTotal = 44 (u64),
    /// RFC 8881 5.8.2.35: bytes of storage that the object uses.
    SpaceUsed = 45 (u64),
    /// RFC 8881 5.8.2.36: a system file, as on Windows.
    System = 46 (bool),
    /// RFC 8881 5.8.2.37: last access.
    TimeAccess = 47 (Time),
    /// RFC 8881 5.8.2.38: sets the last access.
    TimeAccessSet = 48 (SetTime),
    /// RFC 8881 5.8.2.39: last backup.
    TimeBackup = 49 (Time),
    /// RFC 8881 5.8.2.40: creation.
    TimeCreate = 50 (Time),
    /// RFC 8881 5.8.2.41: granularity of times.
    TimeDelta = 51 (Time),
    /// RFC 8881 5.8.2.42: last change of the attributes.
    TimeMetadata = 52 (Time),
    /// RFC 8881 5.8.2.43: last change of the data.
    TimeModify = 53 (Time),
    /// RFC 8881 5.8.2.44: sets the last change of the data.
    TimeModifySet = 54 (SetTime),
    /// RFC 8881 5.8.2.23: number of the directory below a mount point.
    MountedOnFileId = 55 (u64),
    /// RFC 8881 5.11.1: delay of notifications about a directory.
    DirNotifDelay = 56 (Time),
    /// RFC 8881 5.11.2: delay of notifications about its entries.
    DirentNotifDelay = 57 (Time),
    /// RFC 8881 6.2.2: discretionary access control list.
    Dacl = 58 (Acl41<'a>),
    /// RFC 8881 6.2.3: system access control list.
    Sacl = 59 (Acl41<'a>),
    /// RFC 8881 5.8.2.5: the server's policies for the file system.
    ChangePolicy = 60 (ChangePolicy),
    /// RFC 8881 5.12.1: layouts of the file system.
    FsLayoutTypes = 62 (Vec<u32>),
    /// RFC 8881 5.12.5: layouts of the file.
    LayoutTypes = 64 (Vec<u32>),
    /// RFC 8881 5.12.3: block size of layouts.
    LayoutBlockSize = 65 (u32),
    /// RFC 8881 5.12.2: alignment of layouts.
    LayoutAlignment = 66 (u32),
    /// RFC 8881 5.13.5: administrative holds.
    RetentionHold = 73 (u64),
    /// RFC 8881 6.2.5: sets some permission bits.
    ModeSetMasked = 74 (ModeMasked),
    /// RFC 8881 5.8.1.14: what an exclusive creation can set.
    SuppattrExclcreat = 75 (AttributeSet),
    /// RFC 8881 5.8.2.11: character sets of names.
    FsCharsetCap = 76 (u32),
    /// RFC 7862 12.2.1: alignment of CLONE.
    CloneBlockSize = 77 (u32),
    /// RFC 7862 12.2.2: bytes that removing the file would free.
    SpaceFreed = 78 (u64),
    /// RFC 7862 12.2.3: how `change` is computed.
    ChangeAttrType = 79 (ChangeAttrType),
    /// RFC 8275: permission bits and umask of a new object.
    ModeUmask = 81 (ModeUmask),
    /// RFC 8276 8.2.1: extended attributes.
    XattrSupport = 82 (bool),
    /// RFC 9754 5: last access, according to the holder of a delegation.
    TimeDelegAccess = 84 (Time),
    /// RFC 9754 5: last change of the data, according to the holder of a delegation.
    TimeDelegModify = 85 (Time),
    /// RFC 9754 3: the supported arguments of an OPEN.
    OpenArguments = 86 (OpenArguments),
    ;
    /// RFC 8881 5.8.2.14: migration and replication.
    FsStatus = 61,
    /// RFC 8881 5.12.4: the layout that the client would like.
    LayoutHint = 63,
    /// RFC 8881 5.8.2.13: other places of this file system, in detail.
    FsLocationsInfo = 67,
    /// RFC 8881 5.12.6: when to ask for a layout.
    MdsThreshold = 68,
    /// RFC 8881 5.13.1: retention.
    RetentionGet = 69,
    /// RFC 8881 5.13.2: sets the retention.
    RetentionSet = 70,
    /// RFC 8881 5.13.3: event-based retention.
    RetentEvtGet = 71,
    /// RFC 8881 5.13.4: sets the event-based retention.
    RetentEvtSet = 72,
    /// RFC 7862 12.2.4: label of mandatory access control.
    SecLabel = 80,
}

/// A set of attributes. It may contain attributes that this crate does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeSet(pub Bitmap);

impl AttributeSet {
    /// The empty set.
    pub const EMPTY: Self = Self(Bitmap::EMPTY);

    /// The attributes that every server supports (RFC 8881 5.1, 5.6).
    pub const REQUIRED: Self = Self::of(&[
        Attribute::SupportedAttrs,
        Attribute::Type,
        Attribute::FhExpireType,
        Attribute::Change,
        Attribute::Size,
        Attribute::LinkSupport,
        Attribute::SymlinkSupport,
        Attribute::NamedAttr,
        Attribute::Fsid,
        Attribute::UniqueHandles,
        Attribute::LeaseTime,
        Attribute::RdattrError,
        Attribute::FileHandle,
        Attribute::SuppattrExclcreat,
    ]);

    /// Attributes that can be set but not read (access `W` in RFC 8881 5.7; RFC 8275): NFS4ERR_INVAL in a GETATTR.
    pub const WRITE_ONLY: Self = Self::of(&[
        Attribute::TimeAccessSet,
        Attribute::TimeModifySet,
        Attribute::LayoutHint,
        Attribute::RetentionSet,
        Attribute::RetentEvtSet,
        Attribute::ModeSetMasked,
        Attribute::ModeUmask,
    ]);

    /// Attributes that can be set (access `W` and `R W` in RFC 8881 5.6, 5.7 and RFC 7862 12.1). All others are
    /// NFS4ERR_INVAL in a SETATTR.
    pub const WRITABLE: Self = Self::WRITE_ONLY.union(Self::of(&[
        Attribute::Size,
        Attribute::Acl,
        Attribute::Archive,
        Attribute::Dacl,
        Attribute::Hidden,
        Attribute::MimeType,
        Attribute::Mode,
        Attribute::Owner,
        Attribute::OwnerGroup,
        Attribute::RetentionHold,
        Attribute::Sacl,
        Attribute::System,
        Attribute::TimeBackup,
        Attribute::TimeCreate,
        Attribute::SecLabel,
    ]));

    /// The set of these attributes.
    #[must_use]
    pub const fn of(attributes: &[Attribute]) -> Self {
        let mut set = Self::EMPTY;
        let mut rest = attributes;
        while let Some((attribute, after)) = rest.split_first() {
            set = set.with(*attribute);
            rest = after;
        }
        set
    }

    /// Whether `attribute` is in the set.
    #[must_use]
    pub const fn contains(self, attribute: Attribute) -> bool {
        self.0.contains(attribute as u32)
    }

    /// The set with `attribute`.
    #[must_use]
    pub const fn with(self, attribute: Attribute) -> Self {
        Self(self.0.with(attribute as u32))
    }

    /// The set without `attribute`.
    #[must_use]
    pub const fn without(self, attribute: Attribute) -> Self {
        Self(self.0.without(attribute as u32))
    }

    /// The numbers in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }

    /// The numbers in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0.intersection(other.0))
    }

    /// The numbers in this set that are not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0.difference(other.0))
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The known attributes of the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Attribute> {
        self.0.iter().filter_map(|number| Attribute::try_from(number).ok())
    }
}

impl FromIterator<Attribute> for AttributeSet {
    fn from_iter<I: IntoIterator<Item = Attribute>>(attributes: I) -> Self {
        attributes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl Encode for AttributeSet {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.0.encode(writer);
    }
}

impl Decode<'_> for AttributeSet {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Bitmap::decode(reader).map(Self)
    }
}

/// Attributes and their values as received. The values are decoded one after another.
#[doc(alias = "fattr4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes<'a> {
    /// The attributes.
    pub set: AttributeSet,
    /// Their values in ascending order of the attributes.
    pub values: &'a [u8],
}

xdr_struct!(Attributes<'a> { set, values });

impl<'a> Attributes<'a> {
    /// No attributes.
    pub const EMPTY: Self = Self { set: AttributeSet::EMPTY, values: &[] };

    /// The values, up to and including the first that cannot be decoded: [`Status::AttrNotSupp`] for an attribute
    /// without a type here, [`Status::BadXdr`] for a malformed value and for bytes after the last one.
    pub fn values(&self) -> impl Iterator<Item = Result<Value<'a>, Status>> + use<'a> {
        let mut reader = Reader::new(self.values);
        let mut numbers = Some(self.set.0.iter());
        std::iter::from_fn(move || {
            let item = match numbers.as_mut()?.next() {
                Some(number) => match Attribute::try_from(number) {
                    Ok(attribute) => Some(Value::decode(attribute, &mut reader)),
                    Err(_) => Some(Err(Status::AttrNotSupp)),
                },
                None => reader.finish().err().map(|error| Err(error.into())),
            };
            if !matches!(item, Some(Ok(_))) {
                numbers = None;
            }
            item
        })
    }

    /// The value of one attribute; `None` if it is missing or cannot be decoded.
    #[must_use]
    pub fn value(&self, attribute: Attribute) -> Option<Value<'a>> {
        self.values().map_while(Result::ok).find(|value| value.attribute() == attribute)
    }
}

/// Attributes that are assembled here: the arguments of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributesBuf {
    set: AttributeSet,
    values: Vec<u8>,
}

impl AttributesBuf {
    /// The attributes in wire form.
    #[must_use]
    pub fn as_attributes(&self) -> Attributes<'_> {
        Attributes { set: self.set, values: &self.values }
    }
}

/// In any order. If an attribute has two values, the first is used.
impl<'v> FromIterator<Value<'v>> for AttributesBuf {
    fn from_iter<I: IntoIterator<Item = Value<'v>>>(values: I) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|value| value.attribute() as u32);
        values.dedup_by_key(|value| value.attribute());
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        values.iter().for_each(|value| value.encode(&mut writer));
        Self { set: values.iter().map(Value::attribute).collect(), values: bytes }
    }
}

/// Writes attributes for a server: those of `wanted` for which `value` returns a value. Returns which ones.
///
/// A value of another attribute than the one asked for is left out.
pub fn encode_attributes<'v>(
    writer: &mut Writer<'_>,
    wanted: AttributeSet,
    mut value: impl FnMut(Attribute) -> Option<Value<'v>>,
) -> AttributeSet {
    let bitmap_at = writer.position();
    wanted.encode(writer);
    let length_at = writer.position();
    writer.u32(0);
    let start = writer.position();
    let mut answered = AttributeSet::EMPTY;
    for attribute in wanted.iter() {
        if let Some(value) = value(attribute).filter(|value| value.attribute() == attribute) {
            value.encode(writer);
            answered = answered.with(attribute);
        }
    }
    let length = writer.position().saturating_sub(start);
    writer.patch_u32(length_at, u32::try_from(length).unwrap_or(u32::MAX));
    if answered != wanted {
        answered.0.patch(writer, bitmap_at, length_at);
    }
    answered
}

xdr_enum! {
    /// How the change attribute is computed.
    #[doc(alias = "change_attr_type4")]
    ChangeAttrType {
        /// Grows with every change.
        MonotonicIncr = 0,
        /// Counts the changes.
        VersionCounter = 1,
        /// Counts the changes where no layout is held.
        VersionCounterNoPnfs = 2,
        /// It is the time of the last change of the attributes.
        TimeMetadata = 3,
        /// No guarantees.
        Undefined = 4,
    }
}

/// The arguments of an OPEN that a server supports, each as a set of numbers (RFC 9754 3).
#[doc(alias = "open_arguments4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenArguments {
    /// Access: the values of [`super::open::ShareAccess`] without a want.
    pub access: Bitmap,
    /// Denial: the values of [`super::open::ShareDeny`].
    pub deny: Bitmap,
    /// Wants, by [`open_want`].
    pub want: Bitmap,
    /// Claims, by their discriminants.
    pub claim: Bitmap,
    /// Ways to create a file, by their discriminants.
    pub create_mode: Bitmap,
}

xdr_struct!(OpenArguments { access, deny, want, claim, create_mode });

/// Numbers of the wants in [`OpenArguments`] (`open_args_share_access_want4`).
pub mod open_want {
    /// A delegation of one kind, or of any kind.
    #[doc(alias = "OPEN_ARGS_SHARE_ACCESS_WANT_ANY_DELEG")]
    pub const ANY_DELEGATION: u32 = 3;
    /// No delegation.
    #[doc(alias = "OPEN_ARGS_SHARE_ACCESS_WANT_NO_DELEG")]
    pub const NO_DELEGATION: u32 = 4;
    /// An earlier want is withdrawn.
    #[doc(alias = "OPEN_ARGS_SHARE_ACCESS_WANT_CANCEL")]
    pub const CANCEL: u32 = 5;
}

/// The server's policies for a file system.
#[doc(alias = "change_policy4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangePolicy {
    /// Major part.
    pub major: u64,
    /// Minor part.
    pub minor: u64,
}

xdr_struct!(ChangePolicy { major, minor });

/// Permission bits of which only some are to be set.
#[doc(alias = "mode_masked4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeMasked {
    /// The bits' values.
    pub value: u32,
    /// The bits to set.
    pub mask: u32,
}

xdr_struct!(ModeMasked { value, mask });

/// Permission bits of a new object, and the umask, which applies only where no list is inherited (RFC 8275).
#[doc(alias = "mode_umask4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeUmask {
    /// The bits as the program asked for them.
    pub mode: u32,
    /// The program's umask.
    pub umask: u32,
}

xdr_struct!(ModeUmask { mode, umask });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_writes_what_it_has_in_ascending_order() {
        let wanted =
            AttributeSet::of(&[Attribute::Mode, Attribute::Size, Attribute::Owner, Attribute::XattrSupport]);
        let mut buffer = b"reply".to_vec();
        let answered =
            encode_attributes(&mut Writer::new(&mut buffer), wanted, |attribute| match attribute {
                Attribute::Mode => Some(Value::Mode(0o644)),
                Attribute::Size => Some(Value::Size(5)),
                Attribute::Owner => Some(Value::Size(6)),
                _ => None,
            });
        assert_eq!(answered, AttributeSet::of(&[Attribute::Size, Attribute::Mode]));
        let attributes = Attributes::from_bytes(&buffer[5..]).unwrap();
        assert_eq!(attributes.set, answered);
        // RFC 8881 5.6, 5.7: size is a uint64_t, mode a uint32_t
        assert_eq!(attributes.values, [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x01, 0xa4]);
        let values: Vec<_> = attributes.values().collect();
        assert_eq!(values, [Ok(Value::Size(5)), Ok(Value::Mode(0o644))]);
        let all = |attribute| match attribute {
            Attribute::Size => Some(Value::Size(5)),
            _ => Some(Value::Mode(0o644)),
        };
        let mut other = Vec::new();
        encode_attributes(&mut Writer::new(&mut other), answered, all);
        assert_eq!(Attributes::from_bytes(&other).unwrap(), attributes);
    }

    #[test]
    fn values_end_with_the_first_that_is_wrong() {
        let set = AttributeSet::of(&[Attribute::Size, Attribute::FsStatus, Attribute::XattrSupport]);
        let unsupported = Attributes { set, values: &[0; 32] };
        let values: Vec<_> = unsupported.values().collect();
        assert_eq!(values, [Ok(Value::Size(0)), Err(Status::AttrNotSupp)]);

        let set = AttributeSet::of(&[Attribute::Size]);
        let cut_off = Attributes { set, values: &[0; 7] };
        assert_eq!(cut_off.values().collect::<Vec<_>>(), [Err(Status::BadXdr)]);
        let too_long = Attributes { set, values: &[0; 12] };
        assert_eq!(too_long.values().collect::<Vec<_>>(), [Ok(Value::Size(0)), Err(Status::BadXdr)]);
        let unknown = Attributes { set: AttributeSet(Bitmap::of(&[100])), values: &[] };
        assert_eq!(unknown.values().collect::<Vec<_>>(), [Err(Status::AttrNotSupp)]);
        assert_eq!(Attributes::EMPTY.values().count(), 0);
    }

    #[test]
    fn a_client_names_values_in_any_order() {
        let buffer: AttributesBuf = [Value::Mode(1), Value::Size(2), Value::Mode(3)].into_iter().collect();
        let attributes = buffer.as_attributes();
        assert_eq!(attributes.value(Attribute::Size), Some(Value::Size(2)));
        assert_eq!(attributes.value(Attribute::Mode), Some(Value::Mode(1)));
        assert_eq!(attributes.value(Attribute::Owner), None);
        assert_eq!(attributes.values().count(), 2);
    }

    #[test]
    fn required_and_writable_are_the_columns_of_the_tables() {
        // RFC 8881 table 2: 0 to 11, 19 and 75
        assert_eq!(AttributeSet::REQUIRED.0, Bitmap::of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19, 75]));
        // RFC 8881 tables 2 and 3, RFC 7862 table 4, RFC 8275 5: access "W" and "R W"
        let write_only = Bitmap::of(&[48, 54, 63, 70, 72, 74, 81]);
        let both = Bitmap::of(&[4, 12, 14, 58, 25, 32, 33, 36, 37, 73, 59, 46, 49, 50, 80]);
        assert_eq!(AttributeSet::WRITE_ONLY.0, write_only);
        assert_eq!(AttributeSet::WRITABLE.0, write_only.union(both));
    }
}
