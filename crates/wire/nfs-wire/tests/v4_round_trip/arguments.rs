//! The arguments of all operations, and callbacks.

use anabranch_nfs_wire::v4::access::Access;
use anabranch_nfs_wire::v4::callback;
use anabranch_nfs_wire::v4::compound::ArgOp;
use anabranch_nfs_wire::v4::exchange_id::{ClientOwner, SsvParameters, StateProtectArgs};
use anabranch_nfs_wire::v4::open::{
    Claim, CreateHow, Delegation, DelegationType, How, ReadDelegation, ShareAccess, ShareDeny, SpaceLimit,
    WhyNone, WriteDelegation,
};
use anabranch_nfs_wire::v4::types::{ClientId, Name, NetAddr, OwnerId, Stateid, Text};
use anabranch_nfs_wire::v4::{self};

use crate::seed::Seed;

impl Seed {
    pub(crate) fn claims(&self) -> Vec<Claim<'_>> {
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

    pub(crate) fn hows(&self) -> Vec<How<'_>> {
        vec![
            How::NoCreate,
            How::Create(CreateHow::Unchecked(self.attributes())),
            How::Create(CreateHow::Guarded(self.attributes())),
            How::Create(CreateHow::Exclusive(self.verifier())),
            How::Create(CreateHow::ExclusiveWithAttributes(self.verifier(), self.attributes())),
        ]
    }

    pub(crate) fn opens(&self) -> Vec<ArgOp<'_>> {
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

    pub(crate) fn delegations(&self) -> Vec<Delegation<'_>> {
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

    pub(crate) fn session_arguments(&self) -> Vec<ArgOp<'_>> {
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

    pub(crate) fn object_arguments(&self) -> Vec<ArgOp<'_>> {
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

    pub(crate) fn state_arguments(&self) -> Vec<ArgOp<'_>> {
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

    pub(crate) fn data_arguments(&self) -> Vec<ArgOp<'_>> {
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

    pub(crate) fn arguments(&self) -> Vec<ArgOp<'_>> {
        [self.session_arguments(), self.object_arguments(), self.state_arguments(), self.data_arguments()]
            .concat()
    }

    pub(crate) fn callbacks(&self) -> Vec<callback::ArgOp<'_>> {
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
