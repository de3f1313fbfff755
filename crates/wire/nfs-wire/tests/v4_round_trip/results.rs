//! The results of all operations.

use anabranch_nfs_wire::v4::access::Access;
use anabranch_nfs_wire::v4::compound::ResOp;
use anabranch_nfs_wire::v4::exchange_id::{ServerOwner, SsvInfo, StateProtectRes};
use anabranch_nfs_wire::v4::open::ResultFlags;
use anabranch_nfs_wire::v4::readdir::Listing;
use anabranch_nfs_wire::v4::status::Status;
use anabranch_nfs_wire::v4::types::{ClientId, NetAddr, OwnerId, Text};
use anabranch_nfs_wire::v4::{self, Operation};

use crate::seed::Seed;

impl Seed {
    pub(crate) fn session_results(&self) -> Vec<ResOp<'_>> {
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

    pub(crate) fn object_results(&self) -> Vec<ResOp<'_>> {
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

    pub(crate) fn state_results(&self) -> Vec<ResOp<'_>> {
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

    pub(crate) fn write_response(&self) -> v4::copy::WriteResponse {
        v4::copy::WriteResponse {
            callback_id: self.b[0].then(|| self.stateid()),
            count: self.n[0],
            committed: self.stable(),
            verifier: self.verifier(),
        }
    }

    pub(crate) fn data_results(&self) -> Vec<ResOp<'_>> {
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

    pub(crate) fn results(&self) -> Vec<ResOp<'_>> {
        [self.session_results(), self.object_results(), self.state_results(), self.data_results()].concat()
    }
}
