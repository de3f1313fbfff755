//! The attributes of an object, RFC 8881 section 5: which are supported, and their values.

use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::acl::AclSupport;
use nfs_wire::v4::attr::{
    Attribute as A, AttributeSet, ChangeAttrType, OpenArguments, Value, encode_attributes, open_want,
};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Bitmap, FileHandle, FileType, Fsid, NAME_BYTES_MAX, SpecData, Text, Time};
use nfs_wire::xdr::{Encode, Writer};
use share::{QuotaRoom, Share};
use storage::{Attributes, Capabilities, FileFlags, FileKind, Space, Timestamp, Want};

use super::acl::ReplyAcl;
use super::locations::Locations;
use super::owner::{Digits, Names, Owner};
use crate::attributes::MODE_BITS;
use crate::config::TRANSFER_BYTES_MAX;

/// The attributes that every object has, in every minor version.
const ALWAYS: AttributeSet = AttributeSet::REQUIRED.union(AttributeSet::of(&[
    A::CanSetTime,
    A::CaseInsensitive,
    A::CasePreserving,
    A::ChownRestricted,
    A::FileId,
    A::FilesAvail,
    A::FilesFree,
    A::FilesTotal,
    A::FsLocations,
    A::Homogeneous,
    A::MaxFileSize,
    A::MaxLink,
    A::MaxName,
    A::MaxRead,
    A::MaxWrite,
    A::Mode,
    A::NoTrunc,
    A::NumLinks,
    A::Owner,
    A::OwnerGroup,
    A::RawDev,
    A::SpaceAvail,
    A::SpaceFree,
    A::SpaceTotal,
    A::SpaceUsed,
    A::TimeAccess,
    A::TimeAccessSet,
    A::TimeDelta,
    A::TimeMetadata,
    A::TimeModify,
    A::TimeModifySet,
    A::MountedOnFileId,
    A::ModeSetMasked,
    A::FsCharsetCap,
]));

/// The attributes that are kept in extended attributes.
const WITH_XATTRS: AttributeSet =
    AttributeSet::of(&[A::Acl, A::AclSupport, A::Dacl, A::Hidden, A::System, A::TimeCreate]);

/// The attributes that are not in NFSv4.0: those after `mounted_on_fileid` (RFC 7530 5.6, 5.7; RFC 8881 5.7, table 3).
const SINCE_1: AttributeSet =
    AttributeSet::of(&[A::Dacl, A::ModeSetMasked, A::SuppattrExclcreat, A::FsCharsetCap]);

/// The attributes of NFSv4.2 (RFC 7862 12.2, RFC 8275, RFC 8276, RFC 9754).
const SINCE_2: AttributeSet =
    AttributeSet::of(&[A::ChangeAttrType, A::ModeUmask, A::XattrSupport, A::OpenArguments]);

/// The arguments that OPEN supports here (RFC 9754 3): no delegations of times, no delegation instead of the open, and
/// no CLAIM_DELEGATE_PREV (3) and CLAIM_DELEG_PREV_FH (6).
const OPEN_ARGUMENTS: OpenArguments = OpenArguments {
    access: Bitmap::of(&[1, 2, 3]),
    deny: Bitmap::of(&[0, 1, 2, 3]),
    want: Bitmap::of(&[open_want::ANY_DELEGATION, open_want::NO_DELEGATION, open_want::CANCEL]),
    claim: Bitmap::of(&[0, 1, 2, 4, 5]),
    create_mode: Bitmap::of(&[0, 1, 2, 3]),
};

/// The attributes that describe the whole store.
const OF_SPACE: AttributeSet = AttributeSet::of(&[
    A::CloneBlockSize,
    A::FilesAvail,
    A::FilesFree,
    A::FilesTotal,
    A::SpaceAvail,
    A::SpaceFree,
    A::SpaceTotal,
]);

/// The attributes of the nearest quota (RFC 8881 5.8.2.28 to 5.8.2.30), in a share that has quotas.
const OF_QUOTA: AttributeSet = AttributeSet::of(&[A::QuotaAvailHard, A::QuotaAvailSoft, A::QuotaUsed]);

/// The attributes that the store reads only on request.
const OF_FLAGS: AttributeSet = AttributeSet::of(&[A::Hidden, A::System, A::TimeCreate]);

/// The attributes that the holder of a write delegation changes before the store knows them.
const OF_WRITING: AttributeSet =
    AttributeSet::of(&[A::Change, A::Size, A::SpaceUsed, A::TimeMetadata, A::TimeModify]);

const OF_ACL: AttributeSet = AttributeSet::of(&[A::Acl, A::Dacl]);

/// FH4_PERSISTENT (RFC 8881 4.2.3).
const FH_PERSISTENT: u32 = 0;

/// FSCHARSET_CAP4_CONTAINS_NON_UTF8 (RFC 8881 14.4): NFSv3 clients and programs on the server make such names.
const CONTAINS_NON_UTF8: u32 = 1;

/// The most names of one object. Local file systems allow at least this many (ext4 allows 65,000, XFS 2^31 - 1).
const LINKS_MAX: u32 = 65_000;

/// The attributes that the objects of a file system support.
pub(super) fn supported(minor_version: u32, capabilities: Capabilities, has_quotas: bool) -> AttributeSet {
    let mut set = ALWAYS;
    if has_quotas {
        set = set.union(OF_QUOTA);
    }
    if capabilities.contains(Capabilities::XATTRS) {
        set = set.union(WITH_XATTRS);
    }
    if minor_version == 0 {
        set = set.difference(SINCE_1);
    }
    if minor_version >= 2 {
        set = set.union(SINCE_2);
        if capabilities.contains(Capabilities::CLONE) {
            set = set.with(A::CloneBlockSize);
        }
    }
    set
}

/// The attributes that the objects of a share support.
pub(super) fn supported_in(minor_version: u32, share: &Share) -> AttributeSet {
    supported(minor_version, share.capabilities(), share.has_quotas())
}

/// The attributes that an exclusive creation can set (RFC 8881 5.8.1.14): the verifier occupies the times.
pub(super) fn exclusive(supported: AttributeSet) -> AttributeSet {
    let taken = AttributeSet::of(&[A::TimeAccessSet, A::TimeModifySet, A::ModeSetMasked]);
    supported.intersection(AttributeSet::WRITABLE).difference(taken)
}

/// Refuses to return attributes that can only be set.
///
/// # Errors
/// [`Status::Inval`] (RFC 8881 5.5).
pub(super) fn check_readable(wanted: AttributeSet) -> Result<(), Status> {
    if wanted.intersection(AttributeSet::WRITE_ONLY).is_empty() { Ok(()) } else { Err(Status::Inval) }
}

/// What must be read to return these attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    pub(super) want: Want,
    /// Whether to ask another client that may have unwritten data.
    pub(super) written: bool,
    pub(super) space: bool,
    pub(super) acl: bool,
    pub(super) handle: bool,
    pub(super) locations: bool,
    pub(super) quota: bool,
}

impl Needs {
    pub(super) fn of(wanted: AttributeSet) -> Self {
        let any = |of: AttributeSet| !wanted.intersection(of).is_empty();
        let mut want = Want::empty();
        want.set(Want::FLAGS, any(OF_FLAGS));
        Self {
            want,
            written: any(OF_WRITING),
            space: any(OF_SPACE),
            acl: any(OF_ACL),
            handle: wanted.contains(A::FileHandle),
            locations: wanted.contains(A::FsLocations),
            quota: any(OF_QUOTA),
        }
    }
}

/// The values that are the same for all objects of a file system.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSystem {
    pub(super) fsid: Fsid,
    pub(super) supported: AttributeSet,
    pub(super) capabilities: Capabilities,
    pub(super) lease_seconds: u32,
    /// The size of the largest file.
    pub(super) file_bytes_max: u64,
    /// The space of the store, if wanted.
    pub(super) space: Option<Space>,
}

/// An object whose attributes are returned.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) fs: FileSystem,
    pub(super) attributes: Attributes,
    /// At the top of a share: the number of the directory below the mount point.
    pub(super) mounted_on: u64,
    pub(super) acl: Option<ReplyAcl>,
    pub(super) handle: Option<SignedHandle>,
    pub(super) locations: Option<Locations>,
    /// The room that the nearest quota leaves, if wanted; None also where no quota holds.
    pub(super) quota: Option<QuotaRoom>,
    /// Why a listing has no more attributes of it: rdattr_error.
    pub(super) error: Result<(), Status>,
    owner: Owner,
    group: Digits,
}

impl Subject {
    /// An object of such a file system. Its owner has a name if somebody knows it.
    pub(super) fn new(fs: FileSystem, attributes: Attributes, names: Names<'_>) -> Self {
        let (owner, group) = (Owner::of(attributes.uid, names), Digits::of(attributes.gid));
        Self {
            fs,
            mounted_on: attributes.id.number,
            attributes,
            acl: None,
            handle: None,
            locations: None,
            quota: None,
            error: Ok(()),
            owner,
            group,
        }
    }

    /// The value of an attribute, if the object has it.
    pub(super) fn value(&self, attribute: A) -> Option<Value<'_>> {
        if !self.fs.supported.contains(attribute) {
            return None;
        }
        self.of_object(attribute).or_else(|| self.of_file_system(attribute))
    }

    fn of_object(&self, attribute: A) -> Option<Value<'_>> {
        let object = &self.attributes;
        Some(match attribute {
            A::Type => Value::Type(file_type(object.kind)),
            A::Change => Value::Change(object.change()),
            A::Size => Value::Size(object.size),
            A::NamedAttr => Value::NamedAttr(false),
            A::RdattrError => Value::RdattrError(self.error),
            A::Acl => Value::Acl(self.acl.as_ref()?.acl()),
            A::Dacl => Value::Dacl(self.acl.as_ref()?.dacl()),
            A::FileHandle => Value::FileHandle(FileHandle(self.handle.as_ref()?.as_bytes())),
            A::FsLocations => self.locations.as_ref()?.value(),
            A::FileId => Value::FileId(object.id.number),
            A::MountedOnFileId => Value::MountedOnFileId(self.mounted_on),
            A::Hidden => Value::Hidden(self.has(FileFlags::HIDDEN)),
            A::System => Value::System(self.has(FileFlags::SYSTEM)),
            A::Mode => Value::Mode(object.mode & MODE_BITS),
            A::NumLinks => Value::NumLinks(object.links),
            A::Owner => Value::Owner(Text(self.owner.as_bytes())),
            A::OwnerGroup => Value::OwnerGroup(Text(self.group.as_bytes())),
            A::RawDev => Value::RawDev(SpecData { major: object.device.major, minor: object.device.minor }),
            A::SpaceUsed => Value::SpaceUsed(object.allocated),
            A::TimeAccess => Value::TimeAccess(time(object.atime)),
            A::TimeCreate => Value::TimeCreate(time(object.btime?)),
            A::TimeMetadata => Value::TimeMetadata(time(object.ctime)),
            A::TimeModify => Value::TimeModify(time(object.mtime)),
            A::QuotaAvailHard => Value::QuotaAvailHard(self.quota?.hard_left),
            A::QuotaAvailSoft => Value::QuotaAvailSoft(self.quota?.soft_left),
            A::QuotaUsed => Value::QuotaUsed(self.quota?.used),
            _ => return None,
        })
    }

    fn of_file_system(&self, attribute: A) -> Option<Value<'_>> {
        let fs = &self.fs;
        Some(match attribute {
            A::SupportedAttrs => Value::SupportedAttrs(fs.supported),
            A::SuppattrExclcreat => Value::SuppattrExclcreat(exclusive(fs.supported)),
            A::FhExpireType => Value::FhExpireType(FH_PERSISTENT),
            A::LinkSupport => Value::LinkSupport(true),
            A::SymlinkSupport => Value::SymlinkSupport(true),
            A::Fsid => Value::Fsid(fs.fsid),
            A::UniqueHandles => Value::UniqueHandles(true),
            A::LeaseTime => Value::LeaseTime(fs.lease_seconds),
            A::AclSupport => Value::AclSupport(AclSupport::ALLOW | AclSupport::DENY),
            A::CanSetTime => Value::CanSetTime(true),
            A::CaseInsensitive => Value::CaseInsensitive(false),
            A::CasePreserving => Value::CasePreserving(true),
            A::ChownRestricted => Value::ChownRestricted(true),
            A::Homogeneous => Value::Homogeneous(true),
            A::MaxFileSize => Value::MaxFileSize(fs.file_bytes_max),
            A::MaxLink => Value::MaxLink(LINKS_MAX),
            A::MaxName => Value::MaxName(u32::try_from(NAME_BYTES_MAX).unwrap_or(u32::MAX)),
            A::MaxRead => Value::MaxRead(u64::from(TRANSFER_BYTES_MAX)),
            A::MaxWrite => Value::MaxWrite(u64::from(TRANSFER_BYTES_MAX)),
            A::NoTrunc => Value::NoTrunc(true),
            A::TimeDelta => Value::TimeDelta(Time { seconds: 0, nanoseconds: 1 }),
            A::FsCharsetCap => Value::FsCharsetCap(CONTAINS_NON_UTF8),
            // RFC 7862 12.2.3: the kind of the `change` attribute here.
            A::ChangeAttrType => Value::ChangeAttrType(ChangeAttrType::TimeMetadata),
            A::OpenArguments => Value::OpenArguments(OPEN_ARGUMENTS),
            A::XattrSupport => Value::XattrSupport(fs.capabilities.contains(Capabilities::XATTRS)),
            A::CloneBlockSize => Value::CloneBlockSize(fs.space?.block),
            A::FilesAvail => Value::FilesAvail(fs.space?.files_free),
            A::FilesFree => Value::FilesFree(fs.space?.files_free),
            A::FilesTotal => Value::FilesTotal(fs.space?.files),
            A::SpaceAvail => Value::SpaceAvail(fs.space?.available),
            A::SpaceFree => Value::SpaceFree(fs.space?.free),
            A::SpaceTotal => Value::SpaceTotal(fs.space?.total),
            _ => return None,
        })
    }

    fn has(&self, flag: FileFlags) -> bool {
        self.attributes.flags.is_some_and(|flags| flags.contains(flag))
    }
}

/// The attributes of an object that a client asks for.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) wanted: AttributeSet,
    pub(super) subject: Subject,
}

impl Encode for Telling {
    fn encode(&self, writer: &mut Writer<'_>) {
        let wanted = self.wanted.intersection(self.subject.fs.supported);
        encode_attributes(writer, wanted, |attribute| self.subject.value(attribute));
    }
}

fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Regular => FileType::Regular,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::SymbolicLink,
        FileKind::Fifo => FileType::Fifo,
        FileKind::Socket => FileType::Socket,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::CharDevice => FileType::CharacterDevice,
    }
}

fn time(timestamp: Timestamp) -> Time {
    Time { seconds: timestamp.secs, nanoseconds: timestamp.nanos }
}

#[cfg(test)]
mod tests {
    use storage::{Device, ObjectId};

    use super::*;

    const ALL: Capabilities = Capabilities::all();

    fn subject(minor_version: u32, capabilities: Capabilities) -> Subject {
        let moment = Timestamp { secs: -1, nanos: 999_999_999 };
        let attributes = Attributes {
            id: ObjectId::live(7),
            kind: FileKind::Regular,
            mode: 0o170_4755,
            links: 2,
            uid: 1000,
            gid: 0,
            device: Device { major: 1, minor: 2 },
            size: 5,
            allocated: 4096,
            atime: moment,
            mtime: moment,
            ctime: Timestamp { secs: 1, nanos: 2 },
            btime: Some(moment),
            flags: Some(FileFlags::HIDDEN),
            ctime_set: None,
            changes_within_ctime: 0,
        };
        let space = Space { total: 1, free: 2, available: 3, files: 4, files_free: 5, block: 512 };
        let fs = FileSystem {
            fsid: Fsid { major: 1, minor: 0 },
            supported: supported(minor_version, capabilities, true),
            capabilities,
            lease_seconds: 90,
            file_bytes_max: 1 << 42,
            space: Some(space),
        };
        let handle = SignedHandle::new(b"handle");
        let acl = Some(ReplyAcl::of(&acl::SecurityDescriptor::default()));
        let locations =
            Some(Locations { share: Some("data".into()), addresses: vec!["10.0.0.1".to_owned()] });
        let quota = Some(QuotaRoom { hard_left: 9, soft_left: 8, used: 7 });
        Subject { acl, handle, locations, quota, ..Subject::new(fs, attributes, None) }
    }

    /// Each supported attribute either can only be set, or has a value of the right type.
    #[test]
    fn all_that_is_supported_has_a_value() {
        for (minor, capabilities) in
            [(0, ALL), (1, ALL), (2, ALL), (1, Capabilities::empty()), (2, Capabilities::empty())]
        {
            let subject = subject(minor, capabilities);
            for attribute in subject.fs.supported.iter() {
                let told = subject.value(attribute).map(|value| value.attribute());
                let set_only = AttributeSet::WRITE_ONLY.contains(attribute);
                assert_eq!(told, (!set_only).then_some(attribute));
            }
        }
    }

    #[test]
    fn minor_versions_have_attributes_of_their_own() {
        let since_2: Vec<_> = supported(2, ALL, true).difference(supported(1, ALL, true)).iter().collect();
        assert_eq!(
            since_2,
            [A::CloneBlockSize, A::ChangeAttrType, A::ModeUmask, A::XattrSupport, A::OpenArguments]
        );
        // RFC 7530 5.6, 5.7: numbers up to 55
        assert!(supported(0, ALL, true).iter().all(|attribute| attribute as u32 <= 55));
        let since_1: Vec<_> = supported(1, ALL, true).difference(supported(0, ALL, true)).iter().collect();
        assert!(since_1.iter().all(|attribute| *attribute as u32 > 55), "{since_1:?}");
        let kept: Vec<_> =
            supported(1, ALL, true).difference(supported(1, Capabilities::empty(), true)).iter().collect();
        let of_quota: Vec<_> = supported(1, ALL, true).difference(supported(1, ALL, false)).iter().collect();
        assert_eq!(of_quota, [A::QuotaAvailHard, A::QuotaAvailSoft, A::QuotaUsed]);
        assert_eq!(kept, [A::Acl, A::AclSupport, A::Hidden, A::System, A::TimeCreate, A::Dacl]);
        assert_eq!(subject(1, ALL).value(A::XattrSupport), None);
        assert_eq!(
            subject(2, Capabilities::empty()).value(A::XattrSupport),
            Some(Value::XattrSupport(false))
        );
    }

    #[test]
    fn values_are_the_objects() {
        let subject = subject(2, ALL);
        for value in [
            Value::Mode(0o4755),
            Value::Owner(Text(b"1000")),
            Value::OwnerGroup(Text(b"0")),
            Value::Change(1_000_000_002),
            Value::TimeModify(Time { seconds: -1, nanoseconds: 999_999_999 }),
            Value::Hidden(true),
            Value::System(false),
            Value::SpaceAvail(3),
            Value::MountedOnFileId(7),
            Value::QuotaAvailHard(9),
            Value::QuotaAvailSoft(8),
            Value::QuotaUsed(7),
        ] {
            assert_eq!(subject.value(value.attribute()), Some(value));
        }
    }

    #[test]
    fn the_verifier_of_an_exclusive_creation_needs_the_times() {
        let set = exclusive(supported(2, ALL, true));
        assert!(set.contains(A::Mode) && set.contains(A::Size) && set.contains(A::Acl));
        assert!(!set.contains(A::TimeAccessSet) && !set.contains(A::TimeModifySet) && !set.contains(A::Type));
    }

    #[test]
    fn only_what_is_wanted_is_looked_at() {
        let needs = Needs::of(AttributeSet::of(&[A::Mode, A::Size]));
        assert!(needs.want.is_empty() && !needs.space && !needs.acl && !needs.handle && !needs.locations);
        let all = [A::TimeCreate, A::SpaceFree, A::Dacl, A::FileHandle, A::FsLocations];
        let needs = Needs::of(AttributeSet::of(&all));
        assert!(needs.want == Want::FLAGS && needs.space && needs.acl && needs.handle && needs.locations);
    }
}
