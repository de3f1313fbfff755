//! The source of generated values, and the values that many operations have.

use anabranch_nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use anabranch_nfs_wire::v4::acl::{Ace, AceFlags, AceMask, Acl41, AclFlags, AclSupport};
use anabranch_nfs_wire::v4::attr::{
    AttributeSet, Attributes, AttributesBuf, ChangeAttrType, ChangePolicy, ModeMasked, ModeUmask,
    OpenArguments, Value,
};
use anabranch_nfs_wire::v4::create_session::ChannelAttributes;
use anabranch_nfs_wire::v4::exchange_id::{ImplementationId, ProtectedOperations};
use anabranch_nfs_wire::v4::fs_locations::FsLocations;
use anabranch_nfs_wire::v4::status::Status;
use anabranch_nfs_wire::v4::types::{
    Bitmap, ChangeInfo, ClientId, FileHandle, FileType, Fsid, GssHandles, Name, OwnerId, SecurityParameters,
    SessionId, SetTime, SpecData, StableHow, StateOwner, Stateid, StateidOther, Text, Time, Verifier,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) n: [u64; 4],
    pub(crate) w: [u32; 4],
    pub(crate) b: [bool; 4],
    pub(crate) data: Vec<u8>,
    pub(crate) short: Vec<u8>,
    pub(crate) opaque: [u8; 16],
    pub(crate) bits: u128,
    pub(crate) status: Status,
    pub(crate) values: AttributesBuf,
}

pub(crate) fn seed() -> impl Strategy<Value = Seed> {
    let all: Vec<_> = (1..=10_100).filter_map(|number| Status::try_from(number).ok()).collect();
    let numbers = (any::<[u64; 4]>(), any::<[u32; 4]>(), any::<[bool; 4]>());
    let bytes = (vec(any::<u8>(), 0..300), vec(any::<u8>(), 0..=128), any::<[u8; 16]>());
    let values = vec(any::<(prop::sample::Index, u64)>(), 0..12);
    (numbers, bytes, any::<u128>(), proptest::sample::select(all), values).prop_map(
        |((n, w, b), (data, short, opaque), bits, status, values)| {
            let mut seed =
                Seed { n, w, b, data, short, opaque, bits, status, values: AttributesBuf::default() };
            let every = seed.every_value();
            seed.values = values.iter().map(|(index, _)| index.get(&every).clone()).collect();
            seed
        },
    )
}

impl Seed {
    pub(crate) fn stateid(&self) -> Stateid {
        Stateid { seqid: self.w[0], other: StateidOther(*self.opaque.first_chunk().unwrap()) }
    }

    pub(crate) fn verifier(&self) -> Verifier {
        Verifier(*self.opaque.first_chunk().unwrap())
    }

    pub(crate) fn session_id(&self) -> SessionId {
        SessionId(self.opaque)
    }

    pub(crate) fn handle(&self) -> FileHandle<'_> {
        FileHandle(&self.short)
    }

    pub(crate) fn name(&self) -> Name<'_> {
        Name(&self.data)
    }

    pub(crate) fn text(&self) -> Text<'_> {
        Text(&self.short)
    }

    pub(crate) fn bitmap(&self) -> Bitmap {
        (0..Bitmap::NUMBERS).filter(|n| self.bits >> n & 1 == 1).fold(Bitmap::EMPTY, Bitmap::with)
    }

    pub(crate) fn set(&self) -> AttributeSet {
        AttributeSet(self.bitmap())
    }

    pub(crate) fn time(&self) -> Time {
        Time { seconds: self.n[0].cast_signed(), nanoseconds: self.w[1] }
    }

    pub(crate) fn owner(&self) -> StateOwner<'_> {
        StateOwner { client_id: ClientId(self.n[1]), owner: OwnerId(&self.short) }
    }

    pub(crate) fn change(&self) -> ChangeInfo {
        ChangeInfo { atomic: self.b[0], before: self.n[0], after: self.n[1] }
    }

    pub(crate) fn attributes(&self) -> Attributes<'_> {
        self.values.as_attributes()
    }

    pub(crate) fn stable(&self) -> StableHow {
        StableHow::try_from(self.w[2] % 3).unwrap()
    }

    pub(crate) fn device(&self) -> SpecData {
        SpecData { major: self.w[0], minor: self.w[1] }
    }

    pub(crate) fn ace(&self) -> Ace<'_> {
        Ace {
            ace_type: self.w[0],
            flags: AceFlags::from_bits_retain(self.w[1]),
            mask: AceMask::from_bits_retain(self.w[2]),
            who: self.text(),
        }
    }

    pub(crate) fn outcome(&self) -> Result<(), Status> {
        if self.b[3] { Ok(()) } else { Err(self.status) }
    }

    pub(crate) fn result<T>(&self, ok: T) -> Result<T, Status> {
        self.outcome().map(|()| ok)
    }

    /// A status without a body of its own, in a result where `other` has one.
    pub(crate) fn result_but<T, F: From<Status>>(&self, other: Status, ok: T) -> Result<T, F> {
        if self.b[3] || self.status == other { Ok(ok) } else { Err(self.status.into()) }
    }

    pub(crate) fn channel(&self) -> ChannelAttributes {
        let [header_pad_bytes, request_bytes_max, response_bytes_max, response_cached_bytes_max] = self.w;
        ChannelAttributes {
            header_pad_bytes,
            request_bytes_max,
            response_bytes_max,
            response_cached_bytes_max,
            operations_max: self.w[0],
            requests_max: self.w[1],
            rdma_ird: self.b[0].then_some(self.w[2]),
        }
    }

    pub(crate) fn security(&self) -> Vec<SecurityParameters<'_>> {
        let machine_name = MachineName(&self.short);
        let groups = Groups::new(&self.w).unwrap();
        let credential = AuthSys { stamp: self.w[0], machine_name, uid: self.w[1], gid: self.w[2], groups };
        let handles = GssHandles { service: self.w[3], from_server: &self.short, from_client: &self.data };
        vec![SecurityParameters::None, SecurityParameters::Sys(credential), SecurityParameters::Gss(handles)]
    }

    pub(crate) fn protected(&self) -> ProtectedOperations {
        ProtectedOperations { must_enforce: self.bitmap(), must_allow: Bitmap::of(&[self.w[0] % 128]) }
    }

    pub(crate) fn implementation(&self) -> Option<ImplementationId<'_>> {
        self.b[1].then(|| ImplementationId { domain: self.text(), name: Text(&self.data), date: self.time() })
    }

    #[expect(clippy::too_many_lines, reason = "a table: one line an attribute")]
    pub(crate) fn every_value(&self) -> Vec<Value<'static>> {
        // Values that are borrowed must be static here, so they have names.
        const WHO: Text<'static> = Text(b"who@example.org");
        let (n, w, b) = (&self.n, &self.w, &self.b);
        let ace = Ace {
            ace_type: w[0],
            flags: AceFlags::from_bits_retain(w[1]),
            mask: AceMask::from_bits_retain(w[2]),
            who: WHO,
        };
        let aces = vec![ace; (w[3] % 4) as usize];
        let acl = Acl41 { flags: AclFlags::from_bits_retain(w[1]), aces: aces.clone() };
        let set_time = if b[0] { SetTime::ServerTime } else { SetTime::ClientTime(self.time()) };
        vec![
            Value::SupportedAttrs(self.set()),
            Value::Type(FileType::try_from(w[0] % 9 + 1).unwrap()),
            Value::FhExpireType(w[0]),
            Value::Change(n[0]),
            Value::Size(n[1]),
            Value::LinkSupport(b[0]),
            Value::SymlinkSupport(b[1]),
            Value::NamedAttr(b[2]),
            Value::Fsid(Fsid { major: n[0], minor: n[1] }),
            Value::UniqueHandles(b[3]),
            Value::LeaseTime(w[1]),
            Value::RdattrError(self.outcome()),
            Value::Acl(aces),
            Value::AclSupport(AclSupport::from_bits_retain(w[2])),
            Value::Archive(b[0]),
            Value::CanSetTime(b[1]),
            Value::CaseInsensitive(b[2]),
            Value::CasePreserving(b[3]),
            Value::ChownRestricted(b[0]),
            Value::FileHandle(FileHandle(b"a handle")),
            Value::FileId(n[2]),
            Value::FilesAvail(n[3]),
            Value::FilesFree(n[0]),
            Value::FilesTotal(n[1]),
            Value::FsLocations(FsLocations { root: vec![], locations: vec![] }),
            Value::Hidden(b[1]),
            Value::Homogeneous(b[2]),
            Value::MaxFileSize(n[2]),
            Value::MaxLink(w[0]),
            Value::MaxName(w[1]),
            Value::MaxRead(n[3]),
            Value::MaxWrite(n[0]),
            Value::MimeType(WHO),
            Value::Mode(w[2]),
            Value::NoTrunc(b[3]),
            Value::NumLinks(w[3]),
            Value::Owner(WHO),
            Value::OwnerGroup(WHO),
            Value::QuotaAvailHard(n[1]),
            Value::QuotaAvailSoft(n[2]),
            Value::QuotaUsed(n[3]),
            Value::RawDev(self.device()),
            Value::SpaceAvail(n[0]),
            Value::SpaceFree(n[1]),
            Value::SpaceTotal(n[2]),
            Value::SpaceUsed(n[3]),
            Value::System(b[0]),
            Value::TimeAccess(self.time()),
            Value::TimeAccessSet(set_time),
            Value::TimeBackup(self.time()),
            Value::TimeCreate(self.time()),
            Value::TimeDelta(self.time()),
            Value::TimeMetadata(self.time()),
            Value::TimeModify(self.time()),
            Value::TimeModifySet(set_time),
            Value::MountedOnFileId(n[0]),
            Value::DirNotifDelay(self.time()),
            Value::DirentNotifDelay(self.time()),
            Value::Dacl(acl.clone()),
            Value::Sacl(acl),
            Value::ChangePolicy(ChangePolicy { major: n[0], minor: n[1] }),
            Value::FsLayoutTypes(w.to_vec()),
            Value::LayoutTypes(w.to_vec()),
            Value::LayoutBlockSize(w[0]),
            Value::LayoutAlignment(w[1]),
            Value::RetentionHold(n[0]),
            Value::ModeSetMasked(ModeMasked { value: w[0], mask: w[1] }),
            Value::SuppattrExclcreat(self.set()),
            Value::FsCharsetCap(w[0]),
            Value::CloneBlockSize(w[1]),
            Value::SpaceFreed(n[0]),
            Value::ChangeAttrType(ChangeAttrType::try_from(w[0] % 5).unwrap()),
            Value::ModeUmask(ModeUmask { mode: w[0], umask: w[1] }),
            Value::XattrSupport(b[0]),
            Value::TimeDelegAccess(self.time()),
            Value::TimeDelegModify(self.time()),
            Value::OpenArguments(OpenArguments {
                access: self.set().0,
                deny: self.set().0,
                want: self.set().0,
                claim: self.set().0,
                create_mode: self.set().0,
            }),
        ]
    }
}
