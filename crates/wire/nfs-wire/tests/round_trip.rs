//! Any possible value is the same after it is encoded and decoded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use anabranch_nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use anabranch_nfs_wire::gss;
use anabranch_nfs_wire::mount::{self, DirPath, ExportEntry, List, MntOk, MntRes, MountEntry};
use anabranch_nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, OpaqueAuth, Reply, ReplyBody};
use anabranch_nfs_wire::v3;
use anabranch_nfs_wire::v3::access::Access;
use anabranch_nfs_wire::v3::attr::{Attributes, SetAttributes, SetTime, WccAttributes, WccData};
use anabranch_nfs_wire::v3::create::How;
use anabranch_nfs_wire::v3::mknod::{OtherType, What};
use anabranch_nfs_wire::v3::readdir::Listing;
use anabranch_nfs_wire::v3::status::Status;
use anabranch_nfs_wire::v3::types::{
    CreatedOk, DirOpArgs, FileHandle, FileType, Name, Path, SpecData, StableHow, Time,
};
use anabranch_nfs_wire::xdr::{Decode, Encode, Failure, Reader};
use proptest::collection::vec;
use proptest::prelude::*;

fn handle() -> BoxedStrategy<FileHandle> {
    vec(any::<u8>(), 0..=64).prop_map(|bytes| FileHandle::new(&bytes).unwrap()).boxed()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

fn time() -> impl Strategy<Value = Time> {
    any::<(u32, u32)>().prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
}

fn device() -> impl Strategy<Value = SpecData> {
    any::<(u32, u32)>().prop_map(|(major, minor)| SpecData { major, minor })
}

fn attributes() -> BoxedStrategy<Attributes> {
    let numbers = any::<([u32; 4], [u64; 4])>();
    (1..=7_u32, numbers, device(), time(), time(), time())
        .prop_map(
            |(
                file_type,
                ([mode, links, uid, gid], [size, used, fsid, fileid]),
                rdev,
                atime,
                mtime,
                ctime,
            )| {
                let file_type = FileType::try_from(file_type).unwrap();
                Attributes {
                    file_type,
                    mode,
                    links,
                    uid,
                    gid,
                    size,
                    used,
                    rdev,
                    fsid,
                    fileid,
                    atime,
                    mtime,
                    ctime,
                }
            },
        )
        .boxed()
}

fn post() -> BoxedStrategy<Option<Attributes>> {
    proptest::option::of(attributes()).boxed()
}

fn wcc() -> BoxedStrategy<WccData> {
    let before =
        (any::<u64>(), time(), time()).prop_map(|(size, mtime, ctime)| WccAttributes { size, mtime, ctime });
    (proptest::option::of(before), post()).prop_map(|(before, after)| WccData { before, after }).boxed()
}

fn set_time() -> impl Strategy<Value = SetTime> {
    prop_oneof![Just(SetTime::DontChange), Just(SetTime::ServerTime), time().prop_map(SetTime::ClientTime)]
}

fn set() -> BoxedStrategy<SetAttributes> {
    (any::<[Option<u32>; 3]>(), any::<Option<u64>>(), set_time(), set_time())
        .prop_map(|([mode, uid, gid], size, atime, mtime)| SetAttributes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        })
        .boxed()
}

fn how() -> BoxedStrategy<How> {
    prop_oneof![
        set().prop_map(How::Unchecked),
        set().prop_map(How::Guarded),
        any::<[u8; 8]>().prop_map(How::Exclusive),
    ]
    .boxed()
}

fn what() -> BoxedStrategy<What> {
    prop_oneof![
        (set(), device()).prop_map(|(set, device)| What::BlockDevice(set, device)),
        (set(), device()).prop_map(|(set, device)| What::CharacterDevice(set, device)),
        set().prop_map(What::Socket),
        set().prop_map(What::Fifo),
        Just(What::Other(OtherType::Regular)),
        Just(What::Other(OtherType::Directory)),
        Just(What::Other(OtherType::SymbolicLink)),
    ]
    .boxed()
}

fn status() -> impl Strategy<Value = Status> {
    let all: Vec<_> = (1..=10_008).filter_map(|number| Status::try_from(number).ok()).collect();
    proptest::sample::select(all)
}

/// Either arm of a result.
fn result<T: std::fmt::Debug, B: std::fmt::Debug>(
    ok: impl Strategy<Value = T>,
    body: impl Strategy<Value = B>,
) -> impl Strategy<Value = Result<T, Failure<Status, B>>> {
    prop_oneof![ok.prop_map(Ok), (status(), body).prop_map(|(status, body)| Err(Failure { status, body })),]
}

macro_rules! same {
    ($type:ty, $value:expr) => {{
        let value: $type = $value;
        let encoded = value.encode_to_vec();
        prop_assert_eq!(encoded.len() % 4, 0);
        prop_assert_eq!(<$type>::from_bytes(&encoded), Ok(value));
        for cut in (0..encoded.len()).step_by(encoded.len() / 16 + 1) {
            prop_assert!(<$type>::from_bytes(&encoded[..cut]).is_err(), "cut at {}", cut);
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rpc_headers(
        numbers: [u32; 6],
        machine_name in vec(any::<u8>(), 0..=255),
        gids in vec(any::<u32>(), 0..=16),
        status in 1..=7_u32,
    ) {
        let [xid, program, version, procedure, uid, gid] = numbers;
        let groups = Groups::new(&gids).unwrap();
        let auth = AuthSys { stamp: 7, machine_name: MachineName(&machine_name), uid, gid, groups };
        same!(AuthSys<'_>, auth);
        let procedure_of_gss = gss::Procedure::try_from(status & 3).unwrap();
        let handle = gss::ContextHandle(&machine_name);
        let (sequence, service) = (uid, gid);
        same!(gss::Credential<'_>, gss::Credential { procedure: procedure_of_gss, sequence, service, handle });
        let token = gss::Token(&machine_name);
        same!(gss::InitArgs<'_>, gss::InitArgs { token });
        let (major, minor, sequence_window) = (uid, gid, xid);
        same!(gss::InitRes<'_>, gss::InitRes { handle, major, minor, sequence_window, token });
        same!(gss::Signed<'_>, gss::Signed { body: &machine_name, checksum: &machine_name });
        same!(gss::Sealed<'_>, gss::Sealed { body: &machine_name });
        let body = auth.encode_to_vec();
        let credential = OpaqueAuth { flavor: 1, body: &body };
        let call = Call { xid, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
        let encoded = call.encode_to_vec();
        let mut reader = Reader::new(&encoded);
        prop_assert_eq!(Call::decode(&mut reader), Ok(call));
        prop_assert!(reader.rest().is_empty());
        for body in [
            ReplyBody::accepted(AcceptStatus::Success),
            ReplyBody::accepted(AcceptStatus::ProgramMismatch { low: version, high: procedure }),
            ReplyBody::Accepted { verifier: credential, status: AcceptStatus::SystemError },
            ReplyBody::Denied(Denied::RpcMismatch { low: uid, high: gid }),
            ReplyBody::Denied(Denied::AuthError(AuthStatus::try_from(status).unwrap())),
        ] {
            same!(Reply<'_>, Reply { xid, body });
        }
    }

    #[test]
    fn mount_messages(
        file_handle in handle(),
        auth_flavors in vec(any::<u32>(), 0..=64),
        names in vec(vec(any::<u8>(), 0..=255), 0..5),
        path in vec(any::<u8>(), 0..=1024),
    ) {
        same!(MntRes, Ok(MntOk { file_handle, auth_flavors }));
        same!(MntRes, Err(Failure { status: mount::Status::Acces, body: () }));
        let directory = DirPath(&path);
        let names: Vec<_> = names.iter().map(|name| mount::Name(name)).collect();
        let mounts = names.iter().map(|host_name| MountEntry { host_name: *host_name, directory }).collect();
        same!(List<MountEntry<'_>>, List(mounts));
        same!(List<ExportEntry<'_>>, List(vec![ExportEntry { directory, groups: List(names) }]));
    }

    #[test]
    fn arguments_about_objects(
        object in handle(),
        new_attributes in set(),
        guard in proptest::option::of(time()),
        numbers: (u64, u32, u32),
        cookie_verifier: [u8; 8],
        data in bytes(),
        stable in 0..=2_u32,
    ) {
        let (offset, count, other) = numbers;
        same!(v3::getattr::Args, v3::getattr::Args { object });
        same!(v3::setattr::Args, v3::setattr::Args { object, new_attributes, guard });
        let access = Access::from_bits_retain(count);
        same!(v3::access::Args, v3::access::Args { object, access });
        same!(v3::readlink::Args, v3::readlink::Args { symlink: object });
        same!(v3::read::Args, v3::read::Args { file: object, offset, count });
        same!(v3::commit::Args, v3::commit::Args { file: object, offset, count });
        let stable = StableHow::try_from(stable).unwrap();
        same!(v3::write::Args<'_>, v3::write::Args { file: object, offset, count, stable, data: &data });
        same!(
            v3::readdir::Args,
            v3::readdir::Args { dir: object, cookie: offset, cookie_verifier, count }
        );
        same!(
            v3::readdirplus::Args,
            v3::readdirplus::Args {
                dir: object,
                cookie: offset,
                cookie_verifier,
                dir_count: count,
                max_count: other,
            }
        );
        same!(v3::fsstat::Args, v3::fsstat::Args { root: object });
        same!(v3::fsinfo::Args, v3::fsinfo::Args { root: object });
        same!(v3::pathconf::Args, v3::pathconf::Args { object });
    }

    #[test]
    fn arguments_about_names(
        dir in handle(),
        other in handle(),
        name in bytes(),
        text in bytes(),
        attributes in set(),
        how in how(),
        what in what(),
    ) {
        let place = DirOpArgs { dir, name: Name(&name) };
        let to = DirOpArgs { dir: other, name: Name(&text) };
        same!(v3::lookup::Args<'_>, v3::lookup::Args { what: place });
        same!(v3::create::Args<'_>, v3::create::Args { place, how });
        same!(v3::mkdir::Args<'_>, v3::mkdir::Args { place, attributes });
        same!(v3::symlink::Args<'_>, v3::symlink::Args { place, attributes, data: Path(&text) });
        same!(v3::mknod::Args<'_>, v3::mknod::Args { place, what });
        same!(v3::remove::Args<'_>, v3::remove::Args { object: place });
        same!(v3::rmdir::Args<'_>, v3::rmdir::Args { object: place });
        same!(v3::rename::Args<'_>, v3::rename::Args { from: place, to });
        same!(v3::link::Args<'_>, v3::link::Args { file: other, link: place });
    }

    #[test]
    fn results_about_objects(
        getattr in result(attributes(), Just(())),
        setattr in result(wcc(), wcc()),
        lookup in result((handle(), post(), post()), post()),
        one in result((post(), any::<[u32; 7]>(), any::<[u64; 6]>(), time()), post()),
        data in bytes(),
        verifier: [u8; 8],
        stable in 0..=2_u32,
    ) {
        same!(v3::getattr::Res, getattr.map(|object_attributes| v3::getattr::ResOk { object_attributes }));
        same!(v3::setattr::Res, setattr.map(|object_wcc| v3::setattr::ResOk { object_wcc }));
        same!(v3::commit::Res, setattr.map(|file_wcc| v3::commit::ResOk { file_wcc, verifier }));
        let committed = StableHow::try_from(stable).unwrap();
        same!(
            v3::write::Res,
            setattr.map(|file_wcc| v3::write::ResOk { file_wcc, count: stable, committed, verifier })
        );
        same!(
            v3::lookup::Res,
            lookup.map(|(object, object_attributes, dir_attributes)| v3::lookup::ResOk {
                object,
                object_attributes,
                dir_attributes,
            })
        );
        same!(
            v3::access::Res,
            one.map(|(object_attributes, [bits, ..], ..)| v3::access::ResOk {
                object_attributes,
                access: Access::from_bits_retain(bits),
            })
        );
        same!(
            v3::readlink::Res<'_>,
            one.map(|(symlink_attributes, ..)| v3::readlink::ResOk { symlink_attributes, data: Path(&data) })
        );
        same!(
            v3::read::Res<'_>,
            one.map(|(file_attributes, [count, eof, ..], ..)| v3::read::ResOk {
                file_attributes,
                count,
                eof: eof % 2 == 0,
                data: &data,
            })
        );
    }

    #[test]
    fn results_about_the_file_system(
        one in result((post(), any::<[u32; 8]>(), any::<[u64; 6]>(), time()), post()),
    ) {
        same!(
            v3::fsstat::Res,
            one.map(|(object_attributes, [invariant_seconds, ..], numbers, _)| {
                let [total_bytes, free_bytes, available_bytes, total_files, free_files, available_files] = numbers;
                v3::fsstat::ResOk {
                    object_attributes,
                    total_bytes,
                    free_bytes,
                    available_bytes,
                    total_files,
                    free_files,
                    available_files,
                    invariant_seconds,
                }
            })
        );
        same!(
            v3::fsinfo::Res,
            one.map(|(object_attributes, numbers, [file_bytes_max, ..], time_delta)| v3::fsinfo::ResOk {
                object_attributes,
                read_bytes_max: numbers[0],
                read_bytes_preferred: numbers[1],
                read_bytes_multiple: numbers[2],
                write_bytes_max: numbers[3],
                write_bytes_preferred: numbers[4],
                write_bytes_multiple: numbers[5],
                readdir_bytes_preferred: numbers[6],
                file_bytes_max,
                time_delta,
                properties: v3::fsinfo::Properties::from_bits_retain(numbers[7]),
            })
        );
        same!(
            v3::pathconf::Res,
            one.map(|(object_attributes, numbers, ..)| v3::pathconf::ResOk {
                object_attributes,
                links_max: numbers[0],
                name_bytes_max: numbers[1],
                no_trunc: numbers[2] % 2 == 0,
                chown_restricted: numbers[3] % 2 == 0,
                case_insensitive: numbers[4] % 2 == 0,
                case_preserving: numbers[5] % 2 == 0,
            })
        );
    }

    #[test]
    fn results_about_names(
        created in result((proptest::option::of(handle()), post(), wcc()), wcc()),
        rename in result((wcc(), wcc()), (wcc(), wcc())),
        link in result((post(), wcc()), (post(), wcc())),
    ) {
        same!(
            v3::create::Res,
            created.map(|(object, object_attributes, dir_wcc)| CreatedOk { object, object_attributes, dir_wcc })
        );
        same!(v3::remove::Res, created.map(|(.., dir_wcc)| v3::remove::ResOk { dir_wcc }));
        same!(v3::rmdir::Res, created.map(|(.., dir_wcc)| v3::rmdir::ResOk { dir_wcc }));
        let both = |(from_dir_wcc, to_dir_wcc)| v3::rename::DirsWcc { from_dir_wcc, to_dir_wcc };
        same!(
            v3::rename::Res,
            rename.map(both).map_err(|f| Failure { status: f.status, body: both(f.body) })
        );
        let both = |(file_attributes, link_dir_wcc)| v3::link::FileAndDir { file_attributes, link_dir_wcc };
        same!(
            v3::link::Res,
            link.map(both).map_err(|f| Failure { status: f.status, body: both(f.body) })
        );
    }

    #[test]
    fn listings(
        dir_attributes in post(),
        cookie_verifier: [u8; 8],
        entries in vec((any::<(u64, u64)>(), bytes(), post(), proptest::option::of(handle())), 0..8),
        eof: bool,
    ) {
        let plain = entries.iter().map(|((fileid, cookie), name, ..)| v3::readdir::Entry {
            fileid: *fileid,
            name: Name(name),
            cookie: *cookie,
        });
        let listing = Listing { entries: plain.collect(), eof };
        let ok = v3::readdir::ResOk { dir_attributes, cookie_verifier, listing };
        same!(v3::readdir::Res<'_>, Ok(ok));
        let plus = entries.iter().map(|((fileid, cookie), name, attributes, file_handle)| {
            v3::readdirplus::Entry {
                fileid: *fileid,
                name: Name(name),
                cookie: *cookie,
                attributes: *attributes,
                file_handle: *file_handle,
            }
        });
        let listing = Listing { entries: plus.collect(), eof };
        let ok = v3::readdirplus::ResOk { dir_attributes, cookie_verifier, listing };
        same!(v3::readdirplus::Res<'_>, Ok(ok));
    }
}
