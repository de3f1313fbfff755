//! Bytes of a hostile peer: nothing panics, and what decodes has the same value after it is encoded and decoded again.
//!
//! The corpus is the captured messages (testdata/SOURCES.md): calls unchanged, replies after a byte that tells their
//! procedure (`calls`: program and procedure are in the message). NFSv4 messages identify themselves.

use anabranch_nfs_wire::auth_sys::AuthSys;
use anabranch_nfs_wire::gss;
use anabranch_nfs_wire::mount::{self, DirPath, ExportEntry, List, MntRes, MountEntry};
use anabranch_nfs_wire::record_mark::{MARK_BYTES, Mark, Scan, reassemble, scan};
use anabranch_nfs_wire::rpc::{Call, Reply};
use anabranch_nfs_wire::v3::{self, Procedure};
use anabranch_nfs_wire::v4::attr::{Attributes, AttributesBuf};
use anabranch_nfs_wire::v4::compound::{self, ArgOp, ResOp};
use anabranch_nfs_wire::v4::{self, callback};
use anabranch_nfs_wire::xdr::{Decode, Encode, Reader, Writer};

/// Decodes and, if that succeeds, encodes and decodes again.
macro_rules! again {
    ($type:ty, $bytes:expr) => {
        if let Ok(value) = <$type>::from_bytes($bytes) {
            let encoded = value.encode_to_vec();
            assert_eq!(encoded.len(), $bytes.len());
            assert_eq!(<$type>::from_bytes(&encoded), Ok(value));
        }
    };
}

fn arguments(procedure: Procedure, bytes: &[u8]) {
    match procedure {
        Procedure::Null => again!((), bytes),
        Procedure::GetAttr => again!(v3::getattr::Args, bytes),
        Procedure::SetAttr => again!(v3::setattr::Args, bytes),
        Procedure::Lookup => again!(v3::lookup::Args<'_>, bytes),
        Procedure::Access => again!(v3::access::Args, bytes),
        Procedure::ReadLink => again!(v3::readlink::Args, bytes),
        Procedure::Read => again!(v3::read::Args, bytes),
        Procedure::Write => again!(v3::write::Args<'_>, bytes),
        Procedure::Create => again!(v3::create::Args<'_>, bytes),
        Procedure::MkDir => again!(v3::mkdir::Args<'_>, bytes),
        Procedure::SymLink => again!(v3::symlink::Args<'_>, bytes),
        Procedure::MkNod => again!(v3::mknod::Args<'_>, bytes),
        Procedure::Remove => again!(v3::remove::Args<'_>, bytes),
        Procedure::RmDir => again!(v3::rmdir::Args<'_>, bytes),
        Procedure::Rename => again!(v3::rename::Args<'_>, bytes),
        Procedure::Link => again!(v3::link::Args<'_>, bytes),
        Procedure::ReadDir => again!(v3::readdir::Args, bytes),
        Procedure::ReadDirPlus => again!(v3::readdirplus::Args, bytes),
        Procedure::FsStat => again!(v3::fsstat::Args, bytes),
        Procedure::FsInfo => again!(v3::fsinfo::Args, bytes),
        Procedure::PathConf => again!(v3::pathconf::Args, bytes),
        Procedure::Commit => again!(v3::commit::Args, bytes),
    }
}

fn results(procedure: Procedure, bytes: &[u8]) {
    match procedure {
        Procedure::Null => again!((), bytes),
        Procedure::GetAttr => again!(v3::getattr::Res, bytes),
        Procedure::SetAttr => again!(v3::setattr::Res, bytes),
        Procedure::Lookup => again!(v3::lookup::Res, bytes),
        Procedure::Access => again!(v3::access::Res, bytes),
        Procedure::ReadLink => again!(v3::readlink::Res<'_>, bytes),
        Procedure::Read => again!(v3::read::Res<'_>, bytes),
        Procedure::Write => again!(v3::write::Res, bytes),
        Procedure::Create => again!(v3::create::Res, bytes),
        Procedure::MkDir => again!(v3::mkdir::Res, bytes),
        Procedure::SymLink => again!(v3::symlink::Res, bytes),
        Procedure::MkNod => again!(v3::mknod::Res, bytes),
        Procedure::Remove => again!(v3::remove::Res, bytes),
        Procedure::RmDir => again!(v3::rmdir::Res, bytes),
        Procedure::Rename => again!(v3::rename::Res, bytes),
        Procedure::Link => again!(v3::link::Res, bytes),
        Procedure::ReadDir => again!(v3::readdir::Res<'_>, bytes),
        Procedure::ReadDirPlus => again!(v3::readdirplus::Res<'_>, bytes),
        Procedure::FsStat => again!(v3::fsstat::Res, bytes),
        Procedure::FsInfo => again!(v3::fsinfo::Res, bytes),
        Procedure::PathConf => again!(v3::pathconf::Res, bytes),
        Procedure::Commit => again!(v3::commit::Res, bytes),
    }
}

fn mount_results(procedure: mount::Procedure, bytes: &[u8]) {
    use mount::Procedure as P;
    match procedure {
        P::Mnt => again!(MntRes, bytes),
        P::Dump => again!(List<MountEntry<'_>>, bytes),
        P::Export => again!(List<ExportEntry<'_>>, bytes),
        P::Null | P::Umnt | P::UmntAll => again!((), bytes),
    }
}

/// What RPCSEC_GSS puts around arguments and results.
fn protected(bytes: &[u8]) {
    again!(gss::InitRes<'_>, bytes);
    again!(gss::Sealed<'_>, bytes);
    again!(gss::Signed<'_>, bytes);
    if let Ok(signed) = gss::Signed::from_bytes(bytes)
        && let Ok(numbered) = gss::Numbered::of(signed.body)
    {
        assert_eq!(numbered.data.len() + gss::Numbered::HEAD_BYTES, signed.body.len());
    }
}

#[test]
fn calls() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let Ok(call) = Call::decode(&mut reader) else { return };
        let header = bytes.len() - reader.rest().len();
        assert_eq!(call.encode_to_vec().len(), header);
        again!(AuthSys<'_>, call.credential.body);
        again!(gss::Credential<'_>, call.credential.body);
        again!(gss::InitArgs<'_>, reader.rest());
        protected(reader.rest());
        match call.program {
            mount::PROGRAM => again!(DirPath<'_>, reader.rest()),
            _ => {
                if let Ok(procedure) = Procedure::try_from(call.procedure) {
                    arguments(procedure, reader.rest());
                }
            }
        }
    });
}

#[test]
fn replies() {
    /// If the first byte is larger than this, it is a procedure of MOUNT.
    const MOUNT: u8 = 100;
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some((procedure, bytes)) = bytes.split_first() else { return };
        let mut reader = Reader::new(bytes);
        let Ok(reply) = Reply::decode(&mut reader) else { return };
        assert_eq!(reply.encode_to_vec().len(), bytes.len() - reader.rest().len());
        if let Ok(procedure) = Procedure::try_from(u32::from(*procedure)) {
            results(procedure, reader.rest());
        } else if let Ok(procedure) = mount::Procedure::try_from(u32::from(procedure.wrapping_sub(MOUNT))) {
            mount_results(procedure, reader.rest());
        }
    });
}

/// Attributes that can be decoded are the same after they are encoded again.
fn attributes(attributes: &Attributes<'_>) {
    let values: Vec<_> = attributes.values().map_while(Result::ok).collect();
    let buffer: AttributesBuf = values.iter().cloned().collect();
    let again: Vec<_> = buffer.as_attributes().values().map_while(Result::ok).collect();
    assert_eq!(again, values);
}

/// The attributes that an operation sets or compares.
fn attributes_of<'a>(operation: &ArgOp<'a>) -> Option<Attributes<'a>> {
    use v4::open::{CreateHow, How};
    match operation {
        ArgOp::Create(args) => Some(args.attributes),
        ArgOp::SetAttr(args) => Some(args.attributes),
        ArgOp::Verify(args) => Some(args.attributes),
        ArgOp::NVerify(args) => Some(args.attributes),
        ArgOp::Open(args) => match args.how {
            How::Create(CreateHow::Unchecked(attributes) | CreateHow::Guarded(attributes)) => {
                Some(attributes)
            }
            How::Create(CreateHow::ExclusiveWithAttributes(_, attributes)) => Some(attributes),
            How::Create(CreateHow::Exclusive(_)) | How::NoCreate => None,
        },
        _ => None,
    }
}

#[test]
fn v4_calls() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let Ok(call) = Call::decode(&mut reader) else { return };
        if call.program != v4::PROGRAM {
            let Ok(args) = callback::CompoundArgs::decode(&mut reader) else { return };
            let operations: Vec<_> = args.operations.map_while(Result::ok).collect();
            let mut encoded = Vec::new();
            callback::encode_compound(&mut Writer::new(&mut encoded), args.minor_version, &operations);
            let again = callback::CompoundArgs::from_bytes(&encoded).unwrap();
            assert_eq!(again.operations.map_while(Result::ok).collect::<Vec<_>>(), operations);
            return;
        }
        let Ok(args) = compound::Args::decode(&mut reader) else { return };
        let operations: Vec<_> = args.operations.clone().map_while(Result::ok).collect();
        // an operation takes at least four bytes of a message
        assert!(operations.len() <= bytes.len() / 4);
        operations.iter().filter_map(attributes_of).for_each(|found| attributes(&found));
        let mut encoded = Vec::new();
        compound::encode_args(&mut Writer::new(&mut encoded), "", args.minor_version, &operations);
        let again = compound::Args::from_bytes(&encoded).unwrap();
        assert_eq!(again.operations.map_while(Result::ok).collect::<Vec<_>>(), operations);
    });
}

#[test]
fn v4_replies() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        if Reply::decode(&mut reader).is_err() {
            return;
        }
        again!(callback::CompoundRes<'_>, reader.rest());
        let Ok(res) = compound::Res::decode(&mut reader) else { return };
        for result in res.results.map_while(Result::ok) {
            match &result {
                ResOp::GetAttr(Ok(ok)) => attributes(&ok.attributes),
                ResOp::ReadDir(Ok(ok)) => {
                    ok.listing.entries.iter().for_each(|entry| attributes(&entry.attributes))
                }
                _ => {}
            }
            assert_eq!(ResOp::from_bytes(&result.encode_to_vec()), Ok(result));
        }
    });
}

#[test]
fn records() {
    bolero::check!().for_each(|bytes: &[u8]| match scan(bytes, 4096) {
        Ok(Scan::Incomplete { needed }) => assert!(needed > bytes.len()),
        Ok(Scan::Whole { message }) => {
            assert_eq!(message.start, MARK_BYTES);
            assert_eq!(reassemble(bytes), bytes[message]);
        }
        Ok(Scan::Fragmented { consumed, length }) => {
            assert_eq!(reassemble(&bytes[..consumed]).len(), length);
        }
        Err(_) => {
            let mut first = [0; MARK_BYTES];
            first.copy_from_slice(&bytes[..MARK_BYTES]);
            assert!(Mark::from_bytes(first).length > 4096 || !Mark::from_bytes(first).last);
        }
    });
}
