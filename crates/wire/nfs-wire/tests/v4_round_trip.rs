//! Any possible NFSv4 operation, result and callback is the same after it is encoded and decoded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use anabranch_nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use anabranch_nfs_wire::v4::access::Access;
use anabranch_nfs_wire::v4::acl::{Ace, AceFlags, AceMask, Acl41, AclFlags, AclSupport};
use anabranch_nfs_wire::v4::attr::{
    Attribute, AttributeSet, Attributes, AttributesBuf, ChangeAttrType, ChangePolicy, ModeMasked, ModeUmask,
    OpenArguments, Value,
};
use anabranch_nfs_wire::v4::callback;
use anabranch_nfs_wire::v4::compound::{self, ArgOp, ResOp};
use anabranch_nfs_wire::v4::create_session::ChannelAttributes;
use anabranch_nfs_wire::v4::exchange_id::{
    ClientOwner, ImplementationId, ProtectedOperations, ServerOwner, SsvInfo, SsvParameters,
    StateProtectArgs, StateProtectRes,
};
use anabranch_nfs_wire::v4::fs_locations::FsLocations;
use anabranch_nfs_wire::v4::open::{
    Claim, CreateHow, Delegation, DelegationType, How, ReadDelegation, ResultFlags, ShareAccess, ShareDeny,
    SpaceLimit, WhyNone, WriteDelegation,
};
use anabranch_nfs_wire::v4::readdir::Listing;
use anabranch_nfs_wire::v4::status::Status;
use anabranch_nfs_wire::v4::types::{
    Bitmap, ChangeInfo, ClientId, FileHandle, FileType, Fsid, GssHandles, Name, NetAddr, OwnerId,
    SecurityParameters, SessionId, SetTime, SpecData, StableHow, StateOwner, Stateid, StateidOther, Text,
    Time, Verifier,
};
use anabranch_nfs_wire::v4::{self, Operation};
use anabranch_nfs_wire::xdr::{Decode, Encode, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// The source of generated values.
#[derive(Debug)]
struct Seed {
    n: [u64; 4],
    w: [u32; 4],
    b: [bool; 4],
    data: Vec<u8>,
    short: Vec<u8>,
    opaque: [u8; 16],
    bits: u128,
    status: Status,
    values: AttributesBuf,
}

fn seed() -> impl Strategy<Value = Seed> {
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
    fn stateid(&self) -> Stateid {
        Stateid { seqid: self.w[0], other: StateidOther(*self.opaque.first_chunk().unwrap()) }
    }

    fn verifier(&self) -> Verifier {
        Verifier(*self.opaque.first_chunk().unwrap())
    }

    fn session_id(&self) -> SessionId {
        SessionId(self.opaque)
    }

    fn handle(&self) -> FileHandle<'_> {
        FileHandle(&self.short)
    }

    fn name(&self) -> Name<'_> {
        Name(&self.data)
    }

    fn text(&self) -> Text<'_> {
        Text(&self.short)
    }

    fn bitmap(&self) -> Bitmap {
        (0..Bitmap::NUMBERS).filter(|n| self.bits >> n & 1 == 1).fold(Bitmap::EMPTY, Bitmap::with)
    }

    fn set(&self) -> AttributeSet {
        AttributeSet(self.bitmap())
    }

    fn time(&self) -> Time {
        Time { seconds: self.n[0].cast_signed(), nanoseconds: self.w[1] }
    }

    fn owner(&self) -> StateOwner<'_> {
        StateOwner { client_id: ClientId(self.n[1]), owner: OwnerId(&self.short) }
    }

    fn change(&self) -> ChangeInfo {
        ChangeInfo { atomic: self.b[0], before: self.n[0], after: self.n[1] }
    }

    fn attributes(&self) -> Attributes<'_> {
        self.values.as_attributes()
    }

    fn stable(&self) -> StableHow {
        StableHow::try_from(self.w[2] % 3).unwrap()
    }

    fn device(&self) -> SpecData {
        SpecData { major: self.w[0], minor: self.w[1] }
    }

    fn ace(&self) -> Ace<'_> {
        Ace {
            ace_type: self.w[0],
            flags: AceFlags::from_bits_retain(self.w[1]),
            mask: AceMask::from_bits_retain(self.w[2]),
            who: self.text(),
        }
    }

    fn outcome(&self) -> Result<(), Status> {
        if self.b[3] { Ok(()) } else { Err(self.status) }
    }

    fn result<T>(&self, ok: T) -> Result<T, Status> {
        self.outcome().map(|()| ok)
    }

    /// A status without a body of its own, in a result where `other` has one.
    fn result_but<T, F: From<Status>>(&self, other: Status, ok: T) -> Result<T, F> {
        if self.b[3] || self.status == other { Ok(ok) } else { Err(self.status.into()) }
    }

    fn channel(&self) -> ChannelAttributes {
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

    fn security(&self) -> Vec<SecurityParameters<'_>> {
        let machine_name = MachineName(&self.short);
        let groups = Groups::new(&self.w).unwrap();
        let credential = AuthSys { stamp: self.w[0], machine_name, uid: self.w[1], gid: self.w[2], groups };
        let handles = GssHandles { service: self.w[3], from_server: &self.short, from_client: &self.data };
        vec![SecurityParameters::None, SecurityParameters::Sys(credential), SecurityParameters::Gss(handles)]
    }

    fn protected(&self) -> ProtectedOperations {
        ProtectedOperations { must_enforce: self.bitmap(), must_allow: Bitmap::of(&[self.w[0] % 128]) }
    }

    fn implementation(&self) -> Option<ImplementationId<'_>> {
        self.b[1].then(|| ImplementationId { domain: self.text(), name: Text(&self.data), date: self.time() })
    }

    #[expect(clippy::too_many_lines, reason = "a table: one line an attribute")]
    fn every_value(&self) -> Vec<Value<'static>> {
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

    fn claims(&self) -> Vec<Claim<'_>> {
        let delegation_type = DelegationType::try_from(self.w[0] % 4).unwrap();
        vec![
            Claim::Null(self.name()),
            Claim::Previous(delegation_type),
            Claim::DelegateCur(self.stateid(), self.name()),
            Claim::DelegatePrev(self.name()),
            Claim::Fh,
            Claim::DelegCurFh(self.stateid()),
            Claim::DelegPrevFh,
        ]
    }

    fn hows(&self) -> Vec<How<'_>> {
        vec![
            How::NoCreate,
            How::Create(CreateHow::Unchecked(self.attributes())),
            How::Create(CreateHow::Guarded(self.attributes())),
            How::Create(CreateHow::Exclusive(self.verifier())),
            How::Create(CreateHow::ExclusiveWithAttributes(self.verifier(), self.attributes())),
        ]
    }

    fn opens(&self) -> Vec<ArgOp<'_>> {
        let args = |how, claim| v4::open::Args {
            seqid: self.w[0],
            share_access: ShareAccess::from_bits_retain(self.w[1]),
            share_deny: ShareDeny::from_bits_retain(self.w[2]),
            owner: self.owner(),
            how,
            claim,
        };
        let by_claim = self.claims().into_iter().map(|claim| args(How::NoCreate, claim));
        let by_how = self.hows().into_iter().map(|how| args(how, Claim::Fh));
        by_claim.chain(by_how).map(ArgOp::Open).collect()
    }

    fn delegations(&self) -> Vec<Delegation<'_>> {
        let (stateid, recall, permissions) = (self.stateid(), self.b[0], self.ace());
        let limits = [
            SpaceLimit::FileBytes(self.n[0]),
            SpaceLimit::Blocks { blocks: self.w[0], bytes_per_block: self.w[1] },
        ];
        let mut all =
            vec![Delegation::None, Delegation::Read(ReadDelegation { stateid, recall, permissions })];
        all.extend(limits.map(|space_limit| {
            Delegation::Write(WriteDelegation { stateid, recall, space_limit, permissions })
        }));
        all.extend(
            [
                WhyNone::NotWanted,
                WhyNone::Contention { will_push: self.b[1] },
                WhyNone::Resource { will_signal: self.b[1] },
                WhyNone::TypeNotSupported,
                WhyNone::WriteNotSupported,
                WhyNone::UpgradeNotSupported,
                WhyNone::DowngradeNotSupported,
                WhyNone::Cancelled,
                WhyNone::IsDir,
            ]
            .map(Delegation::NoneExt),
        );
        all
    }

    fn session_arguments(&self) -> Vec<ArgOp<'_>> {
        let client_owner = ClientOwner { verifier: self.verifier(), owner_id: OwnerId(&self.data) };
        let ssv = SsvParameters {
            operations: self.protected(),
            hash_algorithms: vec![&self.short, &self.data],
            encryption_algorithms: vec![],
            window: self.w[0],
            gss_handles: self.w[1],
        };
        let ways = [
            StateProtectArgs::None,
            StateProtectArgs::MachineCredential(self.protected()),
            StateProtectArgs::Ssv(ssv),
        ];
        let mut all: Vec<_> = ways
            .map(|state_protect| {
                ArgOp::ExchangeId(v4::exchange_id::Args {
                    client_owner,
                    flags: v4::exchange_id::Flags::from_bits_retain(self.w[3]),
                    state_protect,
                    implementation: self.implementation(),
                })
            })
            .into();
        let session_id = self.session_id();
        let direction = v4::bind_conn_to_session::ClientDirection::Fore;
        all.extend([
            ArgOp::CreateSession(v4::create_session::Args {
                client_id: ClientId(self.n[0]),
                sequence_id: self.w[0],
                flags: v4::create_session::Flags::from_bits_retain(self.w[1]),
                fore_channel: self.channel(),
                back_channel: self.channel(),
                callback_program: self.w[2],
                callback_security: self.security(),
            }),
            ArgOp::Sequence(v4::sequence::Args {
                session_id,
                sequence_id: self.w[0],
                slot_id: self.w[1],
                highest_slot_id: self.w[2],
                cache_this: self.b[0],
            }),
            ArgOp::BindConnToSession(v4::bind_conn_to_session::Args {
                session_id,
                direction,
                use_rdma: self.b[0],
            }),
            ArgOp::BackchannelCtl(v4::backchannel_ctl::Args {
                callback_program: self.w[0],
                callback_security: self.security(),
            }),
            ArgOp::DestroySession(v4::destroy_session::Args { session_id }),
            ArgOp::SetClientId(v4::setclientid::Args {
                client: ClientOwner { verifier: self.verifier(), owner_id: OwnerId(&self.short) },
                callback: v4::setclientid::CallbackClient {
                    program: self.w[0],
                    location: NetAddr { netid: self.text(), address: Text(&self.data) },
                },
                callback_ident: self.w[1],
            }),
            ArgOp::SetClientIdConfirm(v4::setclientid_confirm::Args {
                client_id: ClientId(self.n[0]),
                confirm: self.verifier(),
            }),
            ArgOp::Renew(v4::renew::Args { client_id: ClientId(self.n[0]) }),
            ArgOp::DestroyClientId(v4::destroy_clientid::Args { client_id: ClientId(self.n[0]) }),
            ArgOp::ReclaimComplete(v4::reclaim_complete::Args { one_fs: self.b[0] }),
            ArgOp::SetSsv(v4::set_ssv::Args { ssv: &self.data, digest: &self.short }),
        ]);
        all
    }

    fn object_arguments(&self) -> Vec<ArgOp<'_>> {
        use v4::create::What;
        let (name, attributes) = (self.name(), self.attributes());
        let whats = [
            What::SymbolicLink(self.text()),
            What::BlockDevice(self.device()),
            What::CharacterDevice(self.device()),
            What::Socket,
            What::Fifo,
            What::Directory,
            What::Other(77),
        ];
        let mut all: Vec<_> =
            whats.map(|what| ArgOp::Create(v4::create::Args { what, name, attributes })).into();
        all.extend([
            ArgOp::Access(v4::access::Args { access: Access::from_bits_retain(self.w[0]) }),
            ArgOp::GetAttr(v4::getattr::Args { request: self.set() }),
            ArgOp::GetFh,
            ArgOp::Link(v4::link::Args { new_name: name }),
            ArgOp::Lookup(v4::lookup::Args { name }),
            ArgOp::LookupP,
            ArgOp::NVerify(v4::nverify::Args { attributes }),
            ArgOp::Verify(v4::verify::Args { attributes }),
            ArgOp::OpenAttr(v4::openattr::Args { create: self.b[0] }),
            ArgOp::PutFh(v4::putfh::Args { object: self.handle() }),
            ArgOp::PutPubFh,
            ArgOp::PutRootFh,
            ArgOp::SaveFh,
            ArgOp::RestoreFh,
            ArgOp::ReadDir(v4::readdir::Args {
                cookie: self.n[0],
                cookie_verifier: self.verifier(),
                dir_count: self.w[0],
                max_count: self.w[1],
                request: self.set(),
            }),
            ArgOp::ReadLink,
            ArgOp::Remove(v4::remove::Args { target: name }),
            ArgOp::Rename(v4::rename::Args { old_name: name, new_name: Name(&self.short) }),
            ArgOp::SecInfo(v4::secinfo::Args { name }),
            ArgOp::SecInfoNoName(v4::secinfo_no_name::Args { style: v4::secinfo_no_name::Style::Parent }),
            ArgOp::SetAttr(v4::setattr::Args { stateid: self.stateid(), attributes }),
            ArgOp::GetXattr(v4::getxattr::Args { name }),
            ArgOp::SetXattr(v4::setxattr::Args {
                option: v4::setxattr::SetOption::try_from(self.w[0] % 3).unwrap(),
                name,
                value: &self.short,
            }),
            ArgOp::ListXattrs(v4::listxattrs::Args { cookie: self.n[0], count: self.w[0] }),
            ArgOp::RemoveXattr(v4::removexattr::Args { name }),
        ]);
        all
    }

    fn state_arguments(&self) -> Vec<ArgOp<'_>> {
        use v4::lock::{LockType, Locker};
        let (stateid, offset, length) = (self.stateid(), self.n[0], self.n[1]);
        let lock_type = LockType::try_from(self.w[3] % 4 + 1).unwrap();
        let lockers = [
            Locker::New {
                open_seqid: self.w[0],
                open_stateid: stateid,
                lock_seqid: self.w[1],
                owner: self.owner(),
            },
            Locker::Existing { lock_stateid: stateid, lock_seqid: self.w[1] },
        ];
        let mut all = self.opens();
        all.extend(lockers.map(|locker| {
            ArgOp::Lock(v4::lock::Args { lock_type, reclaim: self.b[0], offset, length, locker })
        }));
        let claims = [
            v4::want_delegation::Claim::Previous(DelegationType::Read),
            v4::want_delegation::Claim::Fh,
            v4::want_delegation::Claim::DelegPrevFh,
        ];
        all.extend(claims.map(|claim| {
            let want = ShareAccess::from_bits_retain(self.w[0]);
            ArgOp::WantDelegation(v4::want_delegation::Args { want, claim })
        }));
        all.extend([
            ArgOp::Close(v4::close::Args { seqid: self.w[0], open_stateid: stateid }),
            ArgOp::DelegPurge(v4::delegpurge::Args { client_id: ClientId(self.n[0]) }),
            ArgOp::DelegReturn(v4::delegreturn::Args { stateid }),
            ArgOp::LockT(v4::lockt::Args { lock_type, offset, length, owner: self.owner() }),
            ArgOp::LockU(v4::locku::Args {
                lock_type,
                seqid: self.w[0],
                lock_stateid: stateid,
                offset,
                length,
            }),
            ArgOp::OpenConfirm(v4::open_confirm::Args { open_stateid: stateid, seqid: self.w[0] }),
            ArgOp::ReleaseLockOwner(v4::release_lockowner::Args { lock_owner: self.owner() }),
            ArgOp::OpenDowngrade(v4::open_downgrade::Args {
                open_stateid: stateid,
                seqid: self.w[0],
                share_access: ShareAccess::from_bits_retain(self.w[1]),
                share_deny: ShareDeny::from_bits_retain(self.w[2]),
            }),
            ArgOp::FreeStateid(v4::free_stateid::Args { stateid }),
            ArgOp::TestStateid(v4::test_stateid::Args { stateids: vec![stateid; (self.w[0] % 5) as usize] }),
            ArgOp::GetDirDelegation(v4::dir_delegation::Args {
                signal_available: self.b[0],
                notification_types: self.bitmap(),
                child_attributes_delay: self.time(),
                dir_attributes_delay: self.time(),
                child_attributes: self.set(),
                dir_attributes: self.set(),
            }),
        ]);
        all
    }

    fn data_arguments(&self) -> Vec<ArgOp<'_>> {
        use v4::copy::NetLoc;
        let (stateid, offset, length, count) = (self.stateid(), self.n[0], self.n[1], self.w[0]);
        let address = NetAddr { netid: Text(b"tcp"), address: self.text() };
        let servers = vec![NetLoc::Name(self.text()), NetLoc::Url(self.text()), NetLoc::NetAddr(address)];
        vec![
            ArgOp::Read(v4::read::Args { stateid, offset, count }),
            ArgOp::Write(v4::write::Args { stateid, offset, stable: self.stable(), data: &self.data }),
            ArgOp::Commit(v4::commit::Args { offset, count }),
            ArgOp::Allocate(v4::allocate::Args { stateid, offset, length }),
            ArgOp::Deallocate(v4::deallocate::Args { stateid, offset, length }),
            ArgOp::CopyNotify(v4::copy_notify::Args { stateid, destination: servers[2] }),
            ArgOp::Copy(v4::copy::Args {
                source_stateid: stateid,
                destination_stateid: Stateid::CURRENT,
                source_offset: self.n[0],
                destination_offset: self.n[1],
                count: self.n[2],
                consecutive: self.b[0],
                synchronous: self.b[1],
                source_servers: servers,
            }),
            ArgOp::Clone(v4::clone::Args {
                source_stateid: stateid,
                destination_stateid: Stateid::CURRENT,
                source_offset: self.n[0],
                destination_offset: self.n[1],
                count: self.n[2],
            }),
            ArgOp::IoAdvise(v4::io_advise::Args { stateid, offset, count: length, hints: self.bitmap() }),
            ArgOp::OffloadCancel(v4::offload_cancel::Args { stateid }),
            ArgOp::OffloadStatus(v4::offload_status::Args { stateid }),
            ArgOp::ReadPlus(v4::read_plus::Args { stateid, offset, count }),
            ArgOp::Seek(v4::seek::Args { stateid, offset, what: self.w[1] }),
        ]
    }

    fn arguments(&self) -> Vec<ArgOp<'_>> {
        [self.session_arguments(), self.object_arguments(), self.state_arguments(), self.data_arguments()]
            .concat()
    }

    fn session_results(&self) -> Vec<ResOp<'_>> {
        let session_id = self.session_id();
        let ssv = SsvInfo {
            operations: self.protected(),
            hash_algorithm: self.w[0],
            encryption_algorithm: self.w[1],
            ssv_bytes: self.w[2],
            window: self.w[3],
            handles: vec![&self.short],
        };
        let ways = [
            StateProtectRes::None,
            StateProtectRes::MachineCredential(self.protected()),
            StateProtectRes::Ssv(ssv),
        ];
        let mut all: Vec<_> = ways
            .map(|state_protect| {
                ResOp::ExchangeId(self.result(v4::exchange_id::ResOk {
                    client_id: ClientId(self.n[0]),
                    sequence_id: self.w[0],
                    flags: v4::exchange_id::Flags::from_bits_retain(self.w[1]),
                    state_protect,
                    server_owner: ServerOwner { minor_id: self.n[1], major_id: OwnerId(&self.data) },
                    server_scope: OwnerId(&self.short),
                    implementation: self.implementation(),
                }))
            })
            .into();
        all.extend([
            ResOp::CreateSession(self.result(v4::create_session::ResOk {
                session_id,
                sequence_id: self.w[0],
                flags: v4::create_session::Flags::from_bits_retain(self.w[1]),
                fore_channel: self.channel(),
                back_channel: self.channel(),
            })),
            ResOp::Sequence(self.result(v4::sequence::ResOk {
                session_id,
                sequence_id: self.w[0],
                slot_id: self.w[1],
                highest_slot_id: self.w[2],
                target_highest_slot_id: self.w[3],
                status_flags: v4::sequence::StatusFlags::from_bits_retain(self.w[0]),
            })),
            ResOp::BindConnToSession(self.result(v4::bind_conn_to_session::ResOk {
                session_id,
                direction: v4::bind_conn_to_session::ServerDirection::Both,
                use_rdma: self.b[0],
            })),
            ResOp::BackchannelCtl(self.outcome()),
            ResOp::DestroySession(self.outcome()),
            ResOp::DestroyClientId(self.outcome()),
            ResOp::ReclaimComplete(self.outcome()),
            ResOp::SetSsv(self.result(v4::set_ssv::ResOk { digest: &self.short })),
            ResOp::NotSupported(Operation::LayoutGet, self.status),
            ResOp::NotSupported(Operation::Illegal, Status::OpIllegal),
        ]);
        all
    }

    fn object_results(&self) -> Vec<ResOp<'_>> {
        use v4::secinfo::SecInfo;
        let (change, attributes) = (self.change(), self.attributes());
        let flavors = vec![SecInfo::Flavor(1), SecInfo::Gss { oid: &self.short, qop: self.w[0], service: 3 }];
        let entry = v4::readdir::Entry { cookie: self.n[0], name: self.name(), attributes };
        let listing = Listing { entries: vec![entry; (self.w[0] % 4) as usize], eof: self.b[0] };
        vec![
            ResOp::Access(self.result(v4::access::ResOk {
                supported: Access::from_bits_retain(self.w[0]),
                access: Access::from_bits_retain(self.w[1]),
            })),
            ResOp::Create(self.result(v4::create::ResOk { change, attributes_set: self.set() })),
            ResOp::GetAttr(self.result(v4::getattr::ResOk { attributes })),
            ResOp::GetFh(self.result(v4::getfh::ResOk { object: self.handle() })),
            ResOp::Link(self.result(v4::link::ResOk { change })),
            ResOp::Lookup(self.outcome()),
            ResOp::LookupP(self.outcome()),
            ResOp::NVerify(self.outcome()),
            ResOp::Verify(self.outcome()),
            ResOp::OpenAttr(self.outcome()),
            ResOp::PutFh(self.outcome()),
            ResOp::PutPubFh(self.outcome()),
            ResOp::PutRootFh(self.outcome()),
            ResOp::SaveFh(self.outcome()),
            ResOp::RestoreFh(self.outcome()),
            ResOp::ReadDir(self.result(v4::readdir::ResOk { cookie_verifier: self.verifier(), listing })),
            ResOp::ReadLink(self.result(v4::readlink::ResOk { link: self.text() })),
            ResOp::Remove(self.result(v4::remove::ResOk { change })),
            ResOp::Rename(self.result(v4::rename::ResOk { source_change: change, target_change: change })),
            ResOp::SecInfo(self.result(flavors.clone())),
            ResOp::SecInfoNoName(self.result(flavors)),
            ResOp::SetAttr(v4::setattr::Res { status: self.outcome(), attributes_set: self.set() }),
            ResOp::GetXattr(self.result(v4::getxattr::ResOk { value: &self.data })),
            ResOp::SetXattr(self.result(v4::setxattr::ResOk { change })),
            ResOp::ListXattrs(self.result(v4::listxattrs::ResOk {
                cookie: self.n[0],
                names: vec![self.name(); (self.w[0] % 4) as usize],
                eof: self.b[0],
            })),
            ResOp::RemoveXattr(self.result(v4::removexattr::ResOk { change })),
        ]
    }

    fn state_results(&self) -> Vec<ResOp<'_>> {
        use v4::dir_delegation::{Granted, ResOk};
        use v4::lock::{Denied, Failure, LockType};
        let (stateid, offset, length) = (self.stateid(), self.n[0], self.n[1]);
        let lock_type = LockType::try_from(self.w[3] % 4 + 1).unwrap();
        let denied = Failure::Denied(Denied { offset, length, lock_type, owner: self.owner() });
        let locked = v4::lock::ResOk { lock_stateid: stateid };
        let in_use = NetAddr { netid: self.text(), address: Text(&self.data) };
        let client = v4::setclientid::ResOk { client_id: ClientId(self.n[0]), confirm: self.verifier() };
        let granted = Granted {
            cookie_verifier: self.verifier(),
            stateid,
            notification_types: self.bitmap(),
            child_attributes: self.set(),
            dir_attributes: self.set(),
        };
        let mut all: Vec<_> = self
            .delegations()
            .into_iter()
            .flat_map(|delegation| {
                let ok = v4::open::ResOk {
                    stateid,
                    change: self.change(),
                    flags: ResultFlags::from_bits_retain(self.w[0]),
                    attributes_set: self.set(),
                    delegation,
                };
                [ResOp::Open(self.result(ok)), ResOp::WantDelegation(self.result(delegation))]
            })
            .collect();
        all.extend([
            ResOp::Close(self.result(v4::close::ResOk { open_stateid: stateid })),
            ResOp::DelegPurge(self.outcome()),
            ResOp::DelegReturn(self.outcome()),
            ResOp::Lock(Err(denied)),
            ResOp::Lock(self.result_but(Status::Denied, locked)),
            ResOp::LockT(Err(denied)),
            ResOp::LockT(self.result_but(Status::Denied, ())),
            ResOp::LockU(self.result(v4::locku::ResOk { lock_stateid: stateid })),
            ResOp::OpenConfirm(self.result(v4::open_confirm::ResOk { open_stateid: stateid })),
            ResOp::ReleaseLockOwner(self.outcome()),
            ResOp::Renew(self.outcome()),
            ResOp::SetClientId(Err(v4::setclientid::Failure::InUse(in_use))),
            ResOp::SetClientId(self.result_but(Status::ClidInUse, client)),
            ResOp::SetClientIdConfirm(self.outcome()),
            ResOp::OpenDowngrade(self.result(v4::open_downgrade::ResOk { open_stateid: stateid })),
            ResOp::FreeStateid(self.outcome()),
            ResOp::TestStateid(
                self.result(v4::test_stateid::ResOk { statuses: vec![Ok(()), self.outcome()] }),
            ),
            ResOp::GetDirDelegation(self.result(ResOk::Granted(granted))),
            ResOp::GetDirDelegation(self.result(ResOk::Unavailable { will_signal: self.b[0] })),
        ]);
        all
    }

    fn write_response(&self) -> v4::copy::WriteResponse {
        v4::copy::WriteResponse {
            callback_id: self.b[0].then(|| self.stateid()),
            count: self.n[0],
            committed: self.stable(),
            verifier: self.verifier(),
        }
    }

    fn data_results(&self) -> Vec<ResOp<'_>> {
        use v4::copy::{Failure, NetLoc, Requirements};
        use v4::read_plus::Content;
        let requirements = Requirements { consecutive: self.b[0], synchronous: self.b[1] };
        let copied = v4::copy::ResOk { response: self.write_response(), requirements };
        let contents = vec![
            Content::Data { offset: self.n[0], data: &self.data },
            Content::Hole { offset: self.n[1], length: self.n[2] },
        ];
        vec![
            ResOp::Read(self.result(v4::read::ResOk { eof: self.b[0], data: &self.data })),
            ResOp::Write(self.result(v4::write::ResOk {
                count: self.w[0],
                committed: self.stable(),
                verifier: self.verifier(),
            })),
            ResOp::Commit(self.result(v4::commit::ResOk { verifier: self.verifier() })),
            ResOp::Allocate(self.outcome()),
            ResOp::Deallocate(self.outcome()),
            ResOp::Clone(self.outcome()),
            ResOp::Copy(self.result_but(Status::OffloadNoReqs, copied)),
            ResOp::Copy(Err(Failure::Requirements(requirements))),
            ResOp::CopyNotify(self.result(v4::copy_notify::ResOk {
                lease_time: self.time(),
                stateid: self.stateid(),
                sources: vec![NetLoc::Name(self.text())],
            })),
            ResOp::IoAdvise(self.result(v4::io_advise::ResOk { hints: self.bitmap() })),
            ResOp::OffloadCancel(self.outcome()),
            ResOp::OffloadStatus(self.result(v4::offload_status::ResOk {
                copied_bytes: self.n[0],
                complete: self.b[0].then(|| self.outcome()),
            })),
            ResOp::ReadPlus(self.result(v4::read_plus::ResOk { eof: self.b[0], contents })),
            ResOp::Seek(self.result(v4::seek::ResOk { eof: self.b[0], offset: self.n[0] })),
        ]
    }

    fn results(&self) -> Vec<ResOp<'_>> {
        [self.session_results(), self.object_results(), self.state_results(), self.data_results()].concat()
    }

    fn callbacks(&self) -> Vec<callback::ArgOp<'_>> {
        let call = callback::ReferringCall { sequence_id: self.w[0], slot_id: self.w[1] };
        let calls = callback::ReferringCalls { session_id: self.session_id(), calls: vec![call; 2] };
        let any = callback::RecallAnyArgs { objects_to_keep: self.w[0], types: self.bitmap() };
        let (file, stateid) = (self.handle(), self.stateid());
        let failed = callback::OffloadInfo::Failed { status: self.status, copied_bytes: self.n[0] };
        let done = callback::OffloadInfo::Done(self.write_response());
        vec![
            callback::ArgOp::Sequence(callback::SequenceArgs {
                session_id: self.session_id(),
                sequence_id: self.w[0],
                slot_id: self.w[1],
                highest_slot_id: self.w[2],
                cache_this: self.b[0],
                referring_calls: vec![calls; (self.w[3] % 3) as usize],
            }),
            callback::ArgOp::GetAttr(callback::GetAttrArgs { file, request: self.set() }),
            callback::ArgOp::Recall(callback::RecallArgs { stateid, truncate: self.b[0], file }),
            callback::ArgOp::RecallAny(any),
            callback::ArgOp::RecallableObjAvail(any),
            callback::ArgOp::RecallSlot(callback::RecallSlotArgs { target_highest_slot_id: self.w[0] }),
            callback::ArgOp::WantsCancelled(callback::WantsCancelledArgs {
                contended: self.b[0],
                resourced: self.b[1],
            }),
            callback::ArgOp::NotifyLock(callback::NotifyLockArgs { file, lock_owner: self.owner() }),
            callback::ArgOp::Offload(callback::OffloadArgs { file, stateid, info: failed }),
            callback::ArgOp::Offload(callback::OffloadArgs { file, stateid, info: done }),
        ]
    }
}

/// Encodes operations as a COMPOUND and decodes them again.
fn through_a_compound(operations: &[ArgOp<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    compound::encode_args(&mut Writer::new(&mut bytes), "a tag", 2, operations);
    bytes
}

/// A COMPOUND's result with these results.
fn through_a_result(status: Result<(), Status>, results: &[ResOp<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let head = compound::ResultsHead::begin(&mut writer, Text(b"a tag"));
    results.iter().for_each(|result| result.encode(&mut writer));
    head.finish(&mut writer, status, u32::try_from(results.len()).unwrap());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn arguments(seed in seed()) {
        let operations = seed.arguments();
        let read = |bytes: &[u8]| {
            let args = compound::Args::from_bytes(bytes).unwrap();
            let mut operations = args.operations;
            let read: Vec<_> = operations.by_ref().map(|op| op.map_err(|bad| bad.status)).collect();
            assert!(operations.rest().is_empty());
            read.len()
        };
        let bytes = through_a_compound(&operations);
        let args = compound::Args::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = args.operations.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &operations);
        prop_assert_eq!(read(&bytes), operations.len());
        for operation in &operations {
            let bytes = through_a_compound(std::slice::from_ref(operation));
            let head = through_a_compound(&[]).len();
            for cut in (head..bytes.len()).step_by((bytes.len() - head) / 16 + 1) {
                let mut cut_off = compound::Args::from_bytes(&bytes[..cut]).unwrap().operations;
                prop_assert!(cut_off.next().unwrap().is_err(), "{:?} cut at {}", operation, cut);
            }
        }
    }

    /// RFC 7531: NFSv4.0 has no EXCLUSIVE4_1, no claim without a name but CLAIM_PREVIOUS, and no OPEN_DELEGATE_NONE_EXT.
    #[test]
    fn minor_version_0_has_fewer_ways_to_open(seed in seed()) {
        use v4::open::Args;
        for open in seed.opens() {
            let mut bytes = Vec::new();
            compound::encode_args(&mut Writer::new(&mut bytes), "", 0, std::slice::from_ref(&open));
            let read = compound::Args::from_bytes(&bytes).unwrap().operations.next().unwrap();
            let ArgOp::Open(Args { how, claim, .. }) = &open else { continue };
            let since_1 = matches!(how, How::Create(CreateHow::ExclusiveWithAttributes(..)))
                || matches!(claim, Claim::Fh | Claim::DelegCurFh(_) | Claim::DelegPrevFh)
                || matches!(claim, Claim::Previous(DelegationType::NoneExt));
            prop_assert_eq!(read.ok(), (!since_1).then_some(open));
        }
    }

    #[test]
    fn results(seed in seed()) {
        let results = seed.results();
        let bytes = through_a_result(seed.outcome(), &results);
        let res = compound::Res::from_bytes(&bytes).unwrap();
        prop_assert_eq!(res.status, seed.outcome());
        let decoded: Vec<_> = res.results.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &results);
        for result in &results {
            let bytes = result.encode_to_vec();
            for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
                prop_assert!(ResOp::from_bytes(&bytes[..cut]).is_err(), "{:?} cut at {}", result, cut);
            }
        }
    }

    #[test]
    fn callbacks(seed in seed()) {
        let operations = seed.callbacks();
        let mut bytes = Vec::new();
        callback::encode_compound(&mut Writer::new(&mut bytes), 1, &operations);
        let args = callback::CompoundArgs::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = args.operations.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &operations);

        let sequence = callback::SequenceResOk {
            session_id: seed.session_id(),
            sequence_id: seed.w[0],
            slot_id: seed.w[1],
            highest_slot_id: seed.w[2],
            target_highest_slot_id: seed.w[3],
        };
        let attributes = callback::GetAttrResOk { attributes: seed.attributes() };
        let res = callback::CompoundRes {
            status: seed.outcome(),
            tag: seed.text(),
            results: vec![
                callback::ResOp::Sequence(seed.result(sequence)),
                callback::ResOp::GetAttr(seed.result(attributes)),
                callback::ResOp::Other(callback::Operation::Recall, seed.outcome()),
            ],
        };
        let bytes = res.encode_to_vec();
        prop_assert_eq!(callback::CompoundRes::from_bytes(&bytes), Ok(res));
    }

    #[test]
    fn attribute_values(seed in seed()) {
        let values = seed.every_value();
        let buffer: AttributesBuf = values.iter().cloned().collect();
        let bytes = buffer.as_attributes().encode_to_vec();
        let attributes = Attributes::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = attributes.values().map(Result::unwrap).collect();
        prop_assert_eq!(decoded, values);
    }
}

/// The operations whose arguments are not decoded: pNFS, patterns, and those of NFSv4.0.
const NOT_SUPPORTED: [u32; 8] = [47, 48, 49, 50, 51, 64, 65, 70];

#[test]
fn these_are_all_operations_and_attributes() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let seed = seed().new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let missing = |covered: BTreeSet<u32>| {
        (3..=75).filter(|n| !covered.contains(n) && !NOT_SUPPORTED.contains(n)).collect::<Vec<_>>()
    };
    let arguments = seed.arguments().iter().map(|operation| operation.operation() as u32).collect();
    assert_eq!(missing(arguments), []);
    let results = seed.results().iter().map(|result| result.operation() as u32).collect();
    assert_eq!(missing(results), []);
    // fs_status, layout_hint, fs_locations_info, mdsthreshold, retention, sec_label
    let without_a_type = [61, 63, 67, 68, 69, 70, 71, 72, 80];
    let values: BTreeSet<_> = seed.every_value().iter().map(|value| value.attribute() as u32).collect();
    let missing: Vec<_> = (0..=82).filter(|n| !values.contains(n)).collect();
    assert_eq!(missing, without_a_type);
    assert!((0..=82).all(|number| Attribute::try_from(number).is_ok()));
}
