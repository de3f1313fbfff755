//! Captured messages of other implementations (testdata/SOURCES.md): this crate reads in them what tshark reads, and
//! encoding them again gives the same bytes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::{Display, Write};
use std::path::Path;

use anabranch_nfs_wire::auth_sys::AuthSys;
use anabranch_nfs_wire::mount::{self, DirPath, ExportEntry, List, MntRes, MountEntry};
use anabranch_nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody};
use anabranch_nfs_wire::v3::attr::{Attributes, SetAttributes, SetTime, WccAttributes, WccData};
use anabranch_nfs_wire::v3::types::{CreatedOk, DirOpArgs, FileHandle, SpecData, Time};
use anabranch_nfs_wire::v3::{self, Procedure};
use anabranch_nfs_wire::xdr::{Decode, Encode, Failure, Reader};

/// Fields under tshark's names.
#[derive(Default)]
struct Fields(String);

impl Fields {
    fn put(&mut self, name: &str, value: impl Display) {
        write!(self.0, " {name}={value}").unwrap();
    }

    fn hex(&mut self, name: &str, bytes: &[u8]) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.put(name, hex);
    }

    fn text(&mut self, name: &str, bytes: &[u8]) {
        self.put(name, String::from_utf8(bytes.to_vec()).unwrap());
    }

    fn time(&mut self, name: &str, time: Time) {
        self.put(&format!("nfs.{name}.sec"), time.seconds);
        self.put(&format!("nfs.{name}.nsec"), time.nanoseconds);
    }

    fn handle(&mut self, handle: &FileHandle) {
        self.hex("nfs.fhandle", handle.as_bytes());
    }

    fn place(&mut self, place: &DirOpArgs<'_>) {
        self.handle(&place.dir);
        self.text("nfs.name", place.name.0);
    }

    fn device(&mut self, device: SpecData) {
        self.put("nfs.specdata1", device.major);
        self.put("nfs.specdata2", device.minor);
    }

    fn attributes(&mut self, attributes: Option<&Attributes>) {
        let Some(a) = attributes else { return };
        self.put("nfs.fattr3.type", a.file_type as u32);
        self.put("nfs.mode3", a.mode);
        self.put("nfs.fattr3.nlink", a.links);
        self.put("nfs.fattr3.uid", a.uid);
        self.put("nfs.fattr3.gid", a.gid);
        self.put("nfs.fattr3.size", a.size);
        self.put("nfs.fattr3.used", a.used);
        self.device(a.rdev);
        self.hex("nfs.fattr3.fsid", &a.fsid.to_be_bytes());
        self.put("nfs.fattr3.fileid", a.fileid);
        self.time("atime", a.atime);
        self.time("mtime", a.mtime);
        self.time("ctime", a.ctime);
    }

    fn wcc(&mut self, wcc: &WccData) {
        if let Some(WccAttributes { size, mtime, ctime }) = wcc.before {
            self.put("nfs.wcc_attr.size", size);
            self.time("mtime", mtime);
            self.time("ctime", ctime);
        }
        self.attributes(wcc.after.as_ref());
    }

    fn set(&mut self, set: &SetAttributes) {
        let mut number = |name: &str, value: Option<u64>| value.into_iter().for_each(|v| self.put(name, v));
        number("nfs.mode3", set.mode.map(u64::from));
        number("nfs.uid3", set.uid.map(u64::from));
        number("nfs.gid3", set.gid.map(u64::from));
        number("nfs.set_size", set.size);
        for time in [set.atime, set.mtime] {
            if let SetTime::ClientTime(time) = time {
                self.time("atime", time); // sic
            }
        }
    }

    fn created(&mut self, created: &CreatedOk) {
        created.object.iter().for_each(|handle| self.handle(handle));
        self.attributes(created.object_attributes.as_ref());
        self.wcc(&created.dir_wcc);
    }

    /// The status, and the arm of the union that follows it.
    fn union<T, B>(
        &mut self,
        result: &Result<T, Failure<v3::status::Status, B>>,
        ok: impl FnOnce(&mut Self, &T),
        failed: impl FnOnce(&mut Self, &B),
    ) {
        match result {
            Ok(value) => {
                self.put("nfs.status3", 0);
                ok(self, value);
            }
            Err(failure) => {
                self.put("nfs.status3", failure.status as u32);
                failed(self, &failure.body);
            }
        }
    }
}

/// Decodes, records the fields, and encodes again.
fn tell<'a, T: Decode<'a> + Encode>(bytes: &'a [u8], tell: impl FnOnce(&T)) -> Vec<u8> {
    let value = T::from_bytes(bytes).unwrap();
    tell(&value);
    value.encode_to_vec()
}

fn told(attributes: &Option<Attributes>, f: &mut Fields) {
    f.attributes(attributes.as_ref());
}

fn v3_call(procedure: Procedure, args: &[u8], f: &mut Fields) -> Vec<u8> {
    use v3::create::How;
    use v3::mknod::What;
    match procedure {
        Procedure::Null => tell(args, |(): &()| {}),
        Procedure::GetAttr => tell(args, |a: &v3::getattr::Args| f.handle(&a.object)),
        Procedure::SetAttr => tell(args, |a: &v3::setattr::Args| {
            f.handle(&a.object);
            f.set(&a.new_attributes);
            f.put("nfs.sattrguard3", u32::from(a.guard.is_some()));
            a.guard.iter().for_each(|guard| f.time("ctime", *guard));
        }),
        Procedure::Lookup => tell(args, |a: &v3::lookup::Args<'_>| f.place(&a.what)),
        Procedure::Access => tell(args, |a: &v3::access::Args| {
            f.handle(&a.object);
            f.put("nfs.access_check", a.access.bits());
        }),
        Procedure::ReadLink => tell(args, |a: &v3::readlink::Args| f.handle(&a.symlink)),
        Procedure::Read => tell(args, |a: &v3::read::Args| {
            f.handle(&a.file);
            f.put("nfs.offset3", a.offset);
            f.put("nfs.count3", a.count);
        }),
        Procedure::Write => tell(args, |a: &v3::write::Args<'_>| {
            f.handle(&a.file);
            f.put("nfs.offset3", a.offset);
            f.put("nfs.count3", a.count);
            f.put("nfs.write.stable", a.stable as u32);
            f.hex("nfs.data", a.data);
        }),
        Procedure::Create => tell(args, |a: &v3::create::Args<'_>| {
            f.place(&a.place);
            match &a.how {
                How::Unchecked(set) => (f.put("nfs.createmode", 0), f.set(set)).1,
                How::Guarded(set) => (f.put("nfs.createmode", 1), f.set(set)).1,
                How::Exclusive(verifier) => (f.put("nfs.createmode", 2), f.hex("nfs.verifier", verifier)).1,
            }
        }),
        Procedure::MkDir => tell(args, |a: &v3::mkdir::Args<'_>| {
            f.place(&a.place);
            f.set(&a.attributes);
        }),
        Procedure::SymLink => tell(args, |a: &v3::symlink::Args<'_>| {
            f.place(&a.place);
            f.set(&a.attributes);
            f.text("nfs.symlink.to", a.data.0);
        }),
        Procedure::MkNod => tell(args, |a: &v3::mknod::Args<'_>| {
            f.place(&a.place);
            let (kind, set, device) = match &a.what {
                What::BlockDevice(set, device) => (3, set, Some(device)),
                What::CharacterDevice(set, device) => (4, set, Some(device)),
                What::Socket(set) => (6, set, None),
                What::Fifo(set) => (7, set, None),
                What::Other(other) => panic!("{other:?} was not captured"),
            };
            f.put("nfs.type", kind);
            f.set(set);
            device.into_iter().for_each(|device| f.device(*device));
        }),
        _ => v3_call_on_names(procedure, args, f),
    }
}

fn v3_call_on_names(procedure: Procedure, args: &[u8], f: &mut Fields) -> Vec<u8> {
    match procedure {
        Procedure::Remove => tell(args, |a: &v3::remove::Args<'_>| f.place(&a.object)),
        Procedure::RmDir => tell(args, |a: &v3::rmdir::Args<'_>| f.place(&a.object)),
        Procedure::Rename => tell(args, |a: &v3::rename::Args<'_>| {
            f.place(&a.from);
            f.place(&a.to);
        }),
        Procedure::Link => tell(args, |a: &v3::link::Args<'_>| {
            f.handle(&a.file);
            f.place(&a.link);
        }),
        Procedure::ReadDir => tell(args, |a: &v3::readdir::Args| {
            f.handle(&a.dir);
            f.put("nfs.cookie3", a.cookie);
            f.hex("nfs.verifier", &a.cookie_verifier);
            f.put("nfs.count3", a.count);
        }),
        Procedure::ReadDirPlus => tell(args, |a: &v3::readdirplus::Args| {
            f.handle(&a.dir);
            f.put("nfs.cookie3", a.cookie);
            f.hex("nfs.verifier", &a.cookie_verifier);
            f.put("nfs.count3_dircount", a.dir_count);
            f.put("nfs.count3_maxcount", a.max_count);
        }),
        Procedure::FsStat => tell(args, |a: &v3::fsstat::Args| f.handle(&a.root)),
        Procedure::FsInfo => tell(args, |a: &v3::fsinfo::Args| f.handle(&a.root)),
        Procedure::PathConf => tell(args, |a: &v3::pathconf::Args| f.handle(&a.object)),
        Procedure::Commit => tell(args, |a: &v3::commit::Args| {
            f.handle(&a.file);
            f.put("nfs.offset3", a.offset);
            f.put("nfs.count3", a.count);
        }),
        other => panic!("{} belongs above", other.name()),
    }
}

fn v3_reply(procedure: Procedure, results: &[u8], f: &mut Fields) -> Vec<u8> {
    let after = |f: &mut Fields, attributes: &Option<Attributes>| told(attributes, f);
    let wcc = |f: &mut Fields, wcc: &WccData| f.wcc(wcc);
    match procedure {
        Procedure::Null => tell(results, |(): &()| {}),
        Procedure::GetAttr => tell(results, |r: &v3::getattr::Res| {
            f.union(r, |f, ok| f.attributes(Some(&ok.object_attributes)), |_, ()| {});
        }),
        Procedure::SetAttr => tell(results, |r: &v3::setattr::Res| {
            f.union(r, |f, ok| f.wcc(&ok.object_wcc), wcc);
        }),
        Procedure::Lookup => tell(results, |r: &v3::lookup::Res| {
            let ok = |f: &mut Fields, ok: &v3::lookup::ResOk| {
                f.handle(&ok.object);
                told(&ok.object_attributes, f);
                told(&ok.dir_attributes, f);
            };
            f.union(r, ok, after);
        }),
        Procedure::Access => tell(results, |r: &v3::access::Res| {
            let ok = |f: &mut Fields, ok: &v3::access::ResOk| {
                told(&ok.object_attributes, f);
                f.put("nfs.access_rights", ok.access.bits());
            };
            f.union(r, ok, after);
        }),
        Procedure::ReadLink => tell(results, |r: &v3::readlink::Res<'_>| {
            let ok = |f: &mut Fields, ok: &v3::readlink::ResOk<'_>| {
                told(&ok.symlink_attributes, f);
                f.text("nfs.readlink.data", ok.data.0);
            };
            f.union(r, ok, after);
        }),
        Procedure::Read => tell(results, |r: &v3::read::Res<'_>| {
            let ok = |f: &mut Fields, ok: &v3::read::ResOk<'_>| {
                told(&ok.file_attributes, f);
                f.put("nfs.count3", ok.count);
                f.put("nfs.read.eof", u32::from(ok.eof));
                f.hex("nfs.data", ok.data);
            };
            f.union(r, ok, after);
        }),
        Procedure::Write => tell(results, |r: &v3::write::Res| {
            let ok = |f: &mut Fields, ok: &v3::write::ResOk| {
                f.wcc(&ok.file_wcc);
                f.put("nfs.count3", ok.count);
                f.put("nfs.write.committed", ok.committed as u32);
                f.hex("nfs.verifier", &ok.verifier);
            };
            f.union(r, ok, wcc);
        }),
        Procedure::Create | Procedure::MkDir | Procedure::SymLink | Procedure::MkNod => {
            tell(results, |r: &v3::create::Res| f.union(r, |f, ok| f.created(ok), wcc))
        }
        Procedure::Remove => tell(results, |r: &v3::remove::Res| f.union(r, |f, ok| f.wcc(&ok.dir_wcc), wcc)),
        Procedure::RmDir => tell(results, |r: &v3::rmdir::Res| f.union(r, |f, ok| f.wcc(&ok.dir_wcc), wcc)),
        Procedure::Commit => tell(results, |r: &v3::commit::Res| {
            let ok = |f: &mut Fields, ok: &v3::commit::ResOk| {
                f.wcc(&ok.file_wcc);
                f.hex("nfs.verifier", &ok.verifier);
            };
            f.union(r, ok, wcc);
        }),
        _ => v3_reply_on_directories(procedure, results, f),
    }
}

fn v3_reply_on_directories(procedure: Procedure, results: &[u8], f: &mut Fields) -> Vec<u8> {
    let after = |f: &mut Fields, attributes: &Option<Attributes>| told(attributes, f);
    match procedure {
        Procedure::Rename => tell(results, |r: &v3::rename::Res| {
            let both = |f: &mut Fields, dirs: &v3::rename::DirsWcc| {
                f.wcc(&dirs.from_dir_wcc);
                f.wcc(&dirs.to_dir_wcc);
            };
            f.union(r, both, both);
        }),
        Procedure::Link => tell(results, |r: &v3::link::Res| {
            let both = |f: &mut Fields, both: &v3::link::FileAndDir| {
                told(&both.file_attributes, f);
                f.wcc(&both.link_dir_wcc);
            };
            f.union(r, both, both);
        }),
        Procedure::ReadDir => tell(results, |r: &v3::readdir::Res<'_>| {
            let ok = |f: &mut Fields, ok: &v3::readdir::ResOk<'_>| {
                told(&ok.dir_attributes, f);
                f.hex("nfs.verifier", &ok.cookie_verifier);
                for entry in &ok.listing.entries {
                    f.put("nfs.readdir.entry3.fileid", entry.fileid);
                    f.text("nfs.readdir.entry3.name", entry.name.0);
                    f.put("nfs.readdir.entry3.cookie", entry.cookie);
                }
                f.put("nfs.readdir.eof", u32::from(ok.listing.eof));
            };
            f.union(r, ok, after);
        }),
        Procedure::ReadDirPlus => tell(results, |r: &v3::readdirplus::Res<'_>| {
            let ok = |f: &mut Fields, ok: &v3::readdirplus::ResOk<'_>| {
                told(&ok.dir_attributes, f);
                f.hex("nfs.verifier", &ok.cookie_verifier);
                for entry in &ok.listing.entries {
                    f.put("nfs.readdirplus.entry.fileid", entry.fileid);
                    f.text("nfs.readdirplus.entry.name", entry.name.0);
                    f.put("nfs.readdirplus.entry.cookie", entry.cookie);
                    told(&entry.attributes, f);
                    entry.file_handle.iter().for_each(|handle| f.handle(handle));
                }
                f.put("nfs.readdir.eof", u32::from(ok.listing.eof));
            };
            f.union(r, ok, after);
        }),
        Procedure::FsStat => tell(results, |r: &v3::fsstat::Res| {
            let ok = |f: &mut Fields, ok: &v3::fsstat::ResOk| {
                told(&ok.object_attributes, f);
                f.put("nfs.fsstat3_resok.tbytes", ok.total_bytes);
                f.put("nfs.fsstat3_resok.fbytes", ok.free_bytes);
                f.put("nfs.fsstat3_resok.abytes", ok.available_bytes);
                f.put("nfs.fsstat3_resok.tfiles", ok.total_files);
                f.put("nfs.fsstat3_resok.ffiles", ok.free_files);
                f.put("nfs.fsstat3_resok.afiles", ok.available_files);
                f.put("nfs.fsstat.invarsec", ok.invariant_seconds);
            };
            f.union(r, ok, after);
        }),
        Procedure::FsInfo => tell(results, |r: &v3::fsinfo::Res| f.union(r, fsinfo, after)),
        Procedure::PathConf => tell(results, |r: &v3::pathconf::Res| f.union(r, pathconf, after)),
        other => panic!("{} belongs above", other.name()),
    }
}

fn fsinfo(f: &mut Fields, ok: &v3::fsinfo::ResOk) {
    told(&ok.object_attributes, f);
    f.put("nfs.fsinfo.rtmax", ok.read_bytes_max);
    f.put("nfs.fsinfo.rtpref", ok.read_bytes_preferred);
    f.put("nfs.fsinfo.rtmult", ok.read_bytes_multiple);
    f.put("nfs.fsinfo.wtmax", ok.write_bytes_max);
    f.put("nfs.fsinfo.wtpref", ok.write_bytes_preferred);
    f.put("nfs.fsinfo.wtmult", ok.write_bytes_multiple);
    f.put("nfs.fsinfo.dtpref", ok.readdir_bytes_preferred);
    f.put("nfs.fsinfo.maxfilesize", ok.file_bytes_max);
    f.time("dtime", ok.time_delta);
    f.put("nfs.fsinfo.properties", ok.properties.bits());
}

fn pathconf(f: &mut Fields, ok: &v3::pathconf::ResOk) {
    told(&ok.object_attributes, f);
    f.put("nfs.pathconf.linkmax", ok.links_max);
    f.put("nfs.pathconf.name_max", ok.name_bytes_max);
    f.put("nfs.pathconf.no_trunc", u32::from(ok.no_trunc));
    f.put("nfs.pathconf.chown_restricted", u32::from(ok.chown_restricted));
    f.put("nfs.pathconf.case_insensitive", u32::from(ok.case_insensitive));
    f.put("nfs.pathconf.case_preserving", u32::from(ok.case_preserving));
}

fn mount_call(procedure: mount::Procedure, args: &[u8], f: &mut Fields) -> Vec<u8> {
    use mount::Procedure as P;
    match procedure {
        P::Mnt | P::Umnt => tell(args, |path: &DirPath<'_>| f.text("mount.path", path.0)),
        P::Null | P::Dump | P::UmntAll | P::Export => tell(args, |(): &()| {}),
    }
}

fn mount_reply(procedure: mount::Procedure, results: &[u8], f: &mut Fields) -> Vec<u8> {
    use mount::Procedure as P;
    match procedure {
        P::Null | P::Umnt | P::UmntAll => tell(results, |(): &()| {}),
        P::Mnt => tell(results, |r: &MntRes| match r {
            Ok(ok) => {
                f.put("mount.status", 0);
                f.handle(&ok.file_handle);
                ok.auth_flavors.iter().for_each(|flavor| f.put("mount.flavor", flavor));
            }
            Err(failure) => f.put("mount.status", failure.status as u32),
        }),
        P::Dump => tell(results, |list: &List<MountEntry<'_>>| assert_eq!(list.0, [])),
        P::Export => tell(results, |list: &List<ExportEntry<'_>>| {
            for export in &list.0 {
                f.text("mount.export.directory", export.directory.0);
                assert_eq!(export.groups.0, []);
            }
        }),
    }
}

/// The fields of a call, its bytes encoded again, and its program and procedure.
fn call(bytes: &[u8]) -> (Fields, Vec<u8>, (u32, u32)) {
    let mut reader = Reader::new(bytes);
    let call = Call::decode(&mut reader).unwrap();
    let auth = AuthSys::from_bytes(call.credential.body).unwrap();
    assert_eq!(auth.encode_to_vec(), call.credential.body);
    assert_eq!((call.version, call.verifier), (3, OpaqueAuth::NONE));
    let mut f = Fields::default();
    f.put("rpc.xid", call.xid);
    f.put("rpc.procedure", call.procedure);
    f.put("rpc.auth.stamp", auth.stamp);
    f.text("rpc.auth.machinename", auth.machine_name.0);
    f.put("rpc.auth.uid", auth.uid);
    f.put("rpc.auth.gid", auth.gid);
    auth.groups.as_slice().iter().for_each(|gid| f.put("rpc.auth.gid", gid));
    let args = match call.program {
        v3::PROGRAM => v3_call(call.procedure.try_into().unwrap(), reader.rest(), &mut f),
        mount::PROGRAM => mount_call(call.procedure.try_into().unwrap(), reader.rest(), &mut f),
        other => panic!("program {other}"),
    };
    (f, [call.encode_to_vec(), args].concat(), (call.program, call.procedure))
}

/// A reply to a call of this program and procedure.
fn reply(bytes: &[u8], (program, procedure): (u32, u32)) -> (Fields, Vec<u8>) {
    let mut reader = Reader::new(bytes);
    let reply = Reply::decode(&mut reader).unwrap();
    assert_eq!(reply.body, ReplyBody::accepted(AcceptStatus::Success));
    let mut f = Fields::default();
    f.put("rpc.xid", reply.xid);
    f.put("rpc.procedure", procedure);
    let results = match program {
        v3::PROGRAM => v3_reply(procedure.try_into().unwrap(), reader.rest(), &mut f),
        _ => mount_reply(procedure.try_into().unwrap(), reader.rest(), &mut f),
    };
    (f, [reply.encode_to_vec(), results].concat())
}

#[test]
fn captured_messages_are_read_as_tshark_reads_them_and_written_as_they_were() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let expected = std::fs::read_to_string(directory.join("tshark.tsv")).unwrap();
    let file = |name: &str| std::fs::read(directory.join(format!("{name}.bin"))).unwrap();
    let fields_of = |name: &str| {
        let mut lines = expected.lines().filter_map(|line| line.split_once('\t'));
        lines.find(|(message, _)| *message == name).unwrap_or_else(|| panic!("{name} is missing")).1
    };
    let calls = expected.lines().filter_map(|line| line.split_once(".call\t"));
    let (mut messages, mut procedures) = (0, std::collections::BTreeSet::new());
    for (case, _) in calls {
        let name = format!("{case}.call");
        let bytes = file(&name);
        let (fields, again, procedure) = call(&bytes);
        assert_eq!(fields.0.trim(), fields_of(&name), "{name}");
        assert!(again == bytes, "{name} is written differently");
        let name = format!("{case}.reply");
        let bytes = file(&name);
        let (fields, again) = reply(&bytes, procedure);
        assert_eq!(fields.0.trim(), fields_of(&name), "{name}");
        assert!(again == bytes, "{name} is written differently");
        messages += 2;
        procedures.insert(procedure);
    }
    assert_eq!(messages, expected.lines().count());
    assert_eq!(procedures.len(), 22 + 6, "every procedure of NFSv3 and of MOUNT was captured");
}
