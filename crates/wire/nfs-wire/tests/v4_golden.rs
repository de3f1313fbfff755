//! Captured NFSv4 messages of other implementations (testdata/SOURCES.md): this crate reads in them what tshark reads,
//! and encoding them again gives the same bytes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_nfs_wire::rpc::{AcceptStatus, Call, Reply, ReplyBody};
use anabranch_nfs_wire::v4;
use anabranch_nfs_wire::v4::attr::{Attribute, Attributes, AttributesBuf, Value};
use anabranch_nfs_wire::v4::compound::{self, ArgOp, ResOp, ResultsHead};
use anabranch_nfs_wire::v4::lock::Locker;
use anabranch_nfs_wire::v4::types::{FileHandle, Stateid};
use anabranch_nfs_wire::xdr::{Decode, Encode, Reader, Writer};

/// tshark's fields, each with its values in message order.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, Vec<String>>);

impl Fields {
    fn put(&mut self, name: &'static str, value: impl ToString) {
        self.0.entry(name).or_default().push(value.to_string());
    }

    fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        self.put(name, bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }

    fn handle(&mut self, handle: FileHandle<'_>) {
        self.hex("nfs.fhandle", handle.0);
    }

    fn stateid(&mut self, stateid: Stateid) {
        self.hex("nfs.stateid.other", &stateid.other.0);
    }

    /// A stateid, and the number of a request in the sequence of its owner (NFSv4.0).
    fn sequenced(&mut self, stateid: Stateid, seqid: u32) {
        self.stateid(stateid);
        self.put("nfs.seqid", seqid);
    }

    fn range(&mut self, offset: u64, length: u64) {
        self.put("nfs.offset4", offset);
        self.put("nfs.length4", length);
    }

    fn argument(&mut self, operation: &ArgOp<'_>) {
        self.put("nfs.opcode", operation.operation() as u32);
        match operation {
            ArgOp::PutFh(args) => self.handle(args.object),
            ArgOp::Open(args) => self.put("nfs.seqid", args.seqid),
            ArgOp::OpenConfirm(args) => self.sequenced(args.open_stateid, args.seqid),
            ArgOp::OpenDowngrade(args) => self.sequenced(args.open_stateid, args.seqid),
            ArgOp::Close(args) => self.sequenced(args.open_stateid, args.seqid),
            ArgOp::SetAttr(args) => self.stateid(args.stateid),
            ArgOp::FreeStateid(args) => self.stateid(args.stateid),
            ArgOp::Write(args) => {
                self.stateid(args.stateid);
                self.put("nfs.offset4", args.offset);
            }
            ArgOp::Read(args) => {
                self.stateid(args.stateid);
                self.put("nfs.offset4", args.offset);
                self.put("nfs.count4", args.count);
            }
            ArgOp::Seek(args) => {
                self.stateid(args.stateid);
                self.put("nfs.offset4", args.offset);
            }
            ArgOp::Commit(args) => {
                self.put("nfs.offset4", args.offset);
                self.put("nfs.count4", args.count);
            }
            ArgOp::Copy(args) => {
                self.stateid(args.source_stateid);
                self.stateid(args.destination_stateid);
                self.put("nfs.offset4", args.source_offset);
                self.range(args.destination_offset, args.count);
            }
            ArgOp::Clone(args) => {
                self.stateid(args.source_stateid);
                self.stateid(args.destination_stateid);
                self.put("nfs.offset4", args.source_offset);
                self.range(args.destination_offset, args.count);
            }
            ArgOp::Allocate(args) => {
                self.stateid(args.stateid);
                self.range(args.offset, args.length);
            }
            ArgOp::Deallocate(args) => {
                self.stateid(args.stateid);
                self.range(args.offset, args.length);
            }
            ArgOp::Lock(args) => {
                self.range(args.offset, args.length);
                match args.locker {
                    Locker::New { open_stateid, open_seqid, .. } => self.sequenced(open_stateid, open_seqid),
                    Locker::Existing { lock_stateid, .. } => self.stateid(lock_stateid),
                }
            }
            ArgOp::LockU(args) => {
                self.sequenced(args.lock_stateid, args.seqid);
                self.range(args.offset, args.length);
            }
            _ => {}
        }
    }

    fn result(&mut self, result: &ResOp<'_>) {
        self.put("nfs.opcode", result.operation() as u32);
        self.put("nfs.nfsstat4", result.status().map_or_else(|status| status as u32, |()| 0));
        match result {
            ResOp::GetFh(Ok(ok)) => self.handle(ok.object),
            ResOp::Open(Ok(ok)) => self.stateid(ok.stateid),
            ResOp::Lock(Ok(ok)) => self.stateid(ok.lock_stateid),
            ResOp::LockU(Ok(ok)) => self.stateid(ok.lock_stateid),
            ResOp::Write(Ok(ok)) => self.put("nfs.count4", ok.count),
            ResOp::Seek(Ok(ok)) => self.put("nfs.offset4", ok.offset),
            ResOp::ReadDir(Ok(ok)) => {
                for entry in &ok.listing.entries {
                    self.put("nfs.name", String::from_utf8(entry.name.0.to_vec()).unwrap());
                    same_attributes(&entry.attributes);
                    for value in entry.attributes.values() {
                        match value.unwrap() {
                            Value::FileHandle(handle) => self.handle(handle),
                            Value::RdattrError(status) => {
                                self.put("nfs.nfsstat4", status.map_or_else(|status| status as u32, |()| 0));
                            }
                            _ => {}
                        }
                    }
                }
            }
            ResOp::GetAttr(Ok(ok)) => {
                same_attributes(&ok.attributes);
                if let Some(Value::FileHandle(handle)) = ok.attributes.value(Attribute::FileHandle) {
                    self.handle(handle);
                }
            }
            _ => {}
        }
    }
}

/// Attributes are decoded completely and give the same bytes again.
fn same_attributes(attributes: &Attributes<'_>) {
    let buffer: AttributesBuf = attributes.values().map(Result::unwrap).collect();
    assert_eq!(buffer.as_attributes(), *attributes);
}

/// The length of the RPC header, the fields, and the message encoded again.
fn call(message: &[u8], fields: &mut Fields) -> Vec<u8> {
    let mut reader = Reader::new(message);
    let header = Call::decode(&mut reader).unwrap();
    assert_eq!((header.program, header.version, header.procedure), (v4::PROGRAM, v4::VERSION, 1));
    let args = compound::Args::decode(&mut reader).unwrap();
    let operations: Vec<_> = args.operations.map(Result::unwrap).collect();
    operations.iter().for_each(|operation| fields.argument(operation));
    let mut again = header.encode_to_vec();
    let tag = args.tag.as_str().unwrap();
    compound::encode_args(&mut Writer::new(&mut again), tag, args.minor_version, &operations);
    again
}

fn reply(message: &[u8], fields: &mut Fields) -> Vec<u8> {
    let mut reader = Reader::new(message);
    let header = Reply::decode(&mut reader).unwrap();
    assert_eq!(header.body, ReplyBody::accepted(AcceptStatus::Success));
    let res = compound::Res::decode(&mut reader).unwrap();
    fields.put("nfs.nfsstat4", res.status.map_or_else(|status| status as u32, |()| 0));
    let results: Vec<_> = res.results.map(Result::unwrap).collect();
    results.iter().for_each(|result| fields.result(result));
    let mut again = header.encode_to_vec();
    let mut writer = Writer::new(&mut again);
    let head = ResultsHead::begin(&mut writer, res.tag);
    results.iter().for_each(|result| result.encode(&mut writer));
    head.finish(&mut writer, res.status, u32::try_from(results.len()).unwrap());
    again
}

#[test]
fn messages_of_the_kernel_client_and_of_ganesha() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let table = std::fs::read_to_string(testdata.join("tshark-v4.tsv")).unwrap();
    for line in table.lines() {
        let mut columns = line.split('\t');
        let name = columns.next().unwrap();
        let message = std::fs::read(testdata.join(format!("{name}.bin"))).unwrap();
        let mut fields = Fields::default();
        let again =
            if name.ends_with(".call") { call(&message, &mut fields) } else { reply(&message, &mut fields) };
        for column in columns {
            let (field, expected) = column.split_once('=').unwrap();
            let expected: Vec<_> = expected.split('|').collect();
            let read = fields.0.get(field).unwrap_or_else(|| panic!("{name}: nothing read of {field}"));
            assert_eq!(*read, expected, "{name}: {field}");
        }
        assert_eq!(again, message, "{name} written again");
    }
    assert!(table.lines().count() > 50);
}
