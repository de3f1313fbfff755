//! COMPOUND, RFC 8881 16.2: a list of operations, carried out in sequence up to the first that fails.
//!
//! A server decodes the operations one at a time ([`Operations`]), so that an operation that cannot be decoded does not
//! prevent the earlier ones from being carried out and answered. It writes results after a head that it fills in at the
//! end ([`ResultsHead`]).

use crate::v4::status::{Status, decode_outcome};
use crate::v4::types::Text;
use crate::v4::{
    Operation, access, allocate, backchannel_ctl, bind_conn_to_session, clone, close, commit, copy,
    copy_notify, create, create_session, deallocate, delegpurge, delegreturn, destroy_clientid,
    destroy_session, dir_delegation, exchange_id, free_stateid, getattr, getfh, getxattr, io_advise, link,
    listxattrs, lock, lockt, locku, lookup, nverify, offload_cancel, offload_status, open, open_confirm,
    open_downgrade, openattr, putfh, read, read_plus, readdir, readlink, reclaim_complete, release_lockowner,
    remove, removexattr, rename, renew, secinfo, secinfo_no_name, seek, sequence, set_ssv, setattr,
    setclientid, setclientid_confirm, setxattr, test_stateid, verify, want_delegation, write,
};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError};

/// The longest accepted tag in bytes.
pub const TAG_BYTES_MAX: usize = 1024;

/// The arguments that precede the operations, and the operations, not decoded yet.
#[doc(alias = "COMPOUND4args")]
#[derive(Debug, Clone)]
pub struct Args<'a> {
    /// Has no effect; returned in the reply.
    pub tag: Text<'a>,
    /// The minor version, which decides which operations there are.
    pub minor_version: u32,
    /// The operations.
    pub operations: Operations<'a>,
}

/// Takes the rest of the message.
impl<'a> Decode<'a> for Args<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let tag = decode_tag(reader)?;
        let minor_version = reader.u32()?;
        let left = reader.u32()?;
        let rest = std::mem::replace(reader, Reader::new(&[]));
        Ok(Self { tag, minor_version, operations: Operations { left, minor_version, reader: rest } })
    }
}

pub(crate) fn decode_tag<'a>(reader: &mut Reader<'a>) -> Result<Text<'a>, XdrError> {
    reader.opaque(TAG_BYTES_MAX).map(Text)
}

/// Writes the arguments of a COMPOUND with these operations.
pub fn encode_args(writer: &mut Writer<'_>, tag: &str, minor_version: u32, operations: &[ArgOp<'_>]) {
    Text(tag.as_bytes()).encode(writer);
    writer.u32(minor_version);
    writer.length(operations.len());
    operations.iter().for_each(|operation| operation.encode(writer));
}

/// The operations of a COMPOUND. They are decoded one at a time, up to the first that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Operations<'a> {
    left: u32,
    minor_version: u32,
    reader: Reader<'a>,
}

/// Why an operation cannot be decoded, and how to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadOperation {
    /// The operation's number in the result: [`Operation::Illegal`] for one that does not exist.
    pub operation: u32,
    /// [`Status::OpIllegal`] or [`Status::BadXdr`].
    pub status: Status,
}

impl Encode for BadOperation {
    fn encode(&self, writer: &mut Writer<'_>) {
        match Operation::try_from(self.operation) {
            Ok(operation) => encode_failure(writer, operation, self.status),
            Err(_) => encode_failure(writer, Operation::Illegal, self.status),
        }
    }
}

impl<'a> Operations<'a> {
    /// How many operations have not been decoded yet, according to the client.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The next operation, without its arguments; `None` if there is none, or it does not belong to this minor version.
    #[must_use]
    pub fn peek(&self) -> Option<Operation> {
        let number = self.reader.clone().u32().ok().filter(|_| self.left > 0)?;
        Operation::in_minor_version(self.minor_version, number)
    }

    /// The bytes that have not been decoded yet: none after a well-formed COMPOUND.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<ArgOp<'a>, BadOperation>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = match self.reader.u32() {
            Ok(number) => match Operation::in_minor_version(self.minor_version, number) {
                Some(operation) => ArgOp::decode(operation, &mut self.reader)
                    .ok()
                    .filter(|args| args.is_of_minor_version(self.minor_version))
                    .ok_or(BadOperation { operation: number, status: Status::BadXdr }),
                // RFC 8881 16.2.3: the number in the result is that of OP_ILLEGAL
                None => Err(BadOperation { operation: Operation::Illegal as u32, status: Status::OpIllegal }),
            },
            Err(_) => Err(BadOperation { operation: Operation::Illegal as u32, status: Status::BadXdr }),
        };
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// The head of a COMPOUND's result, which is written first and filled in last.
#[derive(Debug, Clone, Copy)]
#[must_use = "the head is not right before `finish`"]
pub struct ResultsHead {
    status_at: usize,
    count_at: usize,
}

impl ResultsHead {
    /// Bytes of the head with a tag of this length.
    #[must_use]
    pub fn bytes(tag: Text<'_>) -> usize {
        tag.0.len().next_multiple_of(4).saturating_add(12)
    }

    /// Writes the head.
    pub fn begin(writer: &mut Writer<'_>, tag: Text<'_>) -> Self {
        let status_at = writer.position();
        writer.u32(0);
        tag.encode(writer);
        let count_at = writer.position();
        writer.u32(0);
        Self { status_at, count_at }
    }

    /// Fills in the last operation's status and the number of results that follow the head.
    pub fn finish(self, writer: &mut Writer<'_>, status: Result<(), Status>, count: u32) {
        writer.patch_u32(self.status_at, status.map_or_else(|status| status as u32, |()| 0));
        writer.patch_u32(self.count_at, count);
    }
}

/// Writes the result of a failed operation, with the body that a failure has: an empty set after SETATTR's status,
/// nothing after others.
///
/// A status with a body of its own (NFS4ERR_DENIED of LOCK and LOCKT, NFS4ERR_CLID_INUSE of SETCLIENTID,
/// NFS4ERR_OFFLOAD_NO_REQS of COPY) is written with that operation's result.
pub fn encode_failure(writer: &mut Writer<'_>, operation: Operation, status: Status) {
    operation.encode(writer);
    status.encode(writer);
    if operation == Operation::SetAttr {
        writer.u32(0);
    }
}

/// A COMPOUND's result as a client receives it: the head, and the results of the operations, not decoded yet.
#[doc(alias = "COMPOUND4res")]
#[derive(Debug, Clone)]
pub struct Res<'a> {
    /// The status of the last operation, or why there is none.
    pub status: Result<(), Status>,
    /// As in the arguments.
    pub tag: Text<'a>,
    /// The results of the operations up to the first that failed.
    pub results: Results<'a>,
}

/// Takes the rest of the message.
impl<'a> Decode<'a> for Res<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let status = decode_outcome(reader)?;
        let tag = decode_tag(reader)?;
        let left = reader.u32()?;
        let rest = std::mem::replace(reader, Reader::new(&[]));
        Ok(Self { status, tag, results: Results { left, reader: rest } })
    }
}

/// The results of a COMPOUND's operations. They are decoded one at a time, up to the first that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Results<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Results<'a> {
    /// How many results have not been decoded yet.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The bytes that have not been decoded yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Iterator for Results<'a> {
    type Item = Result<ResOp<'a>, XdrError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = ResOp::decode(&mut self.reader);
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// Common to the results of all operations.
trait Outcome {
    fn outcome(&self) -> Result<(), Status>;
}

impl<T> Outcome for Result<T, Status> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(|status| *status)
    }
}

impl<T> Outcome for Result<T, lock::Failure<'_>> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(lock::Failure::status)
    }
}

impl<T> Outcome for Result<T, setclientid::Failure<'_>> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(setclientid::Failure::status)
    }
}

impl<T> Outcome for Result<T, copy::Failure> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(copy::Failure::status)
    }
}

impl Outcome for setattr::Res {
    fn outcome(&self) -> Result<(), Status> {
        self.status
    }
}

/// Declares the operations: those with arguments, those without, and those whose arguments are not decoded here.
macro_rules! operations {
    (
        $($name:ident($args:ty) -> $res:ty,)+ ;
        $($bare:ident -> $bare_res:ty,)+ ;
        $($unread:ident),+
    ) => {
        /// An operation and its arguments.
        #[doc(alias = "nfs_argop4")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ArgOp<'a> {
            $(#[doc = concat!("[`Operation::", stringify!($name), "`].")] $name($args),)+
            $(#[doc = concat!("[`Operation::", stringify!($bare), "`].")] $bare,)+
            /// An operation that no server of this project supports. Its arguments are not decoded, so it is the last
            /// operation that can be: the answer is NFS4ERR_NOTSUPP, which ends the COMPOUND.
            NotSupported(Operation),
        }

        impl<'a> ArgOp<'a> {
            /// Decodes the arguments of `operation`.
            ///
            /// # Errors
            /// [`XdrError`] when the bytes are not arguments of this operation.
            pub fn decode(operation: Operation, reader: &mut Reader<'a>) -> Result<Self, XdrError> {
                Ok(match operation {
                    $(Operation::$name => Self::$name(Decode::decode(reader)?),)+
                    $(Operation::$bare => Self::$bare,)+
                    $(Operation::$unread)|+ => Self::NotSupported(operation),
                })
            }

            /// The operation's number.
            #[must_use]
            pub fn operation(&self) -> Operation {
                match self {
                    $(Self::$name(_) => Operation::$name,)+
                    $(Self::$bare => Operation::$bare,)+
                    Self::NotSupported(operation) => *operation,
                }
            }
        }

        impl Encode for ArgOp<'_> {
            fn encode(&self, writer: &mut Writer<'_>) {
                self.operation().encode(writer);
                match self {
                    $(Self::$name(args) => args.encode(writer),)+
                    $(Self::$bare => {})+
                    Self::NotSupported(_) => {}
                }
            }
        }

        /// An operation and its result.
        #[doc(alias = "nfs_resop4")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ResOp<'a> {
            $(#[doc = concat!("[`Operation::", stringify!($name), "`].")] $name($res),)+
            $(#[doc = concat!("[`Operation::", stringify!($bare), "`].")] $bare($bare_res),)+
            /// An operation that no server of this project supports, or an undefined one, and why it failed.
            NotSupported(Operation, Status),
        }

        impl ResOp<'_> {
            /// The operation's number.
            #[must_use]
            pub fn operation(&self) -> Operation {
                match self {
                    $(Self::$name(_) => Operation::$name,)+
                    $(Self::$bare(_) => Operation::$bare,)+
                    Self::NotSupported(operation, _) => *operation,
                }
            }

            /// The result's status.
            ///
            /// # Errors
            /// The status, if the operation failed.
            pub fn status(&self) -> Result<(), Status> {
                match self {
                    $(Self::$name(res) => res.outcome(),)+
                    $(Self::$bare(res) => res.outcome(),)+
                    Self::NotSupported(_, status) => Err(*status),
                }
            }
        }

        impl Encode for ResOp<'_> {
            fn encode(&self, writer: &mut Writer<'_>) {
                self.operation().encode(writer);
                match self {
                    $(Self::$name(res) => res.encode(writer),)+
                    $(Self::$bare(res) => res.encode(writer),)+
                    Self::NotSupported(_, status) => status.encode(writer),
                }
            }
        }

        impl<'a> Decode<'a> for ResOp<'a> {
            fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
                Ok(match Operation::decode(reader)? {
                    $(Operation::$name => Self::$name(Decode::decode(reader)?),)+
                    $(Operation::$bare => Self::$bare(Decode::decode(reader)?),)+
                    operation @ ($(Operation::$unread)|+) => {
                        Self::NotSupported(operation, Status::decode(reader)?)
                    }
                })
            }
        }
    };
}

operations! {
    Access(access::Args) -> access::Res,
    Close(close::Args) -> close::Res,
    Commit(commit::Args) -> commit::Res,
    Create(create::Args<'a>) -> create::Res,
    DelegPurge(delegpurge::Args) -> delegpurge::Res,
    DelegReturn(delegreturn::Args) -> delegreturn::Res,
    GetAttr(getattr::Args) -> getattr::Res<'a>,
    Link(link::Args<'a>) -> link::Res,
    Lock(lock::Args<'a>) -> lock::Res<'a>,
    LockT(lockt::Args<'a>) -> lockt::Res<'a>,
    LockU(locku::Args) -> locku::Res,
    Lookup(lookup::Args<'a>) -> lookup::Res,
    NVerify(nverify::Args<'a>) -> nverify::Res,
    Open(open::Args<'a>) -> open::Res<'a>,
    OpenAttr(openattr::Args) -> openattr::Res,
    OpenConfirm(open_confirm::Args) -> open_confirm::Res,
    OpenDowngrade(open_downgrade::Args) -> open_downgrade::Res,
    PutFh(putfh::Args<'a>) -> putfh::Res,
    Read(read::Args) -> read::Res<'a>,
    ReadDir(readdir::Args) -> readdir::Res<'a>,
    Remove(remove::Args<'a>) -> remove::Res,
    Rename(rename::Args<'a>) -> rename::Res,
    Renew(renew::Args) -> renew::Res,
    SecInfo(secinfo::Args<'a>) -> secinfo::Res<'a>,
    SetAttr(setattr::Args<'a>) -> setattr::Res,
    SetClientId(setclientid::Args<'a>) -> setclientid::Res<'a>,
    SetClientIdConfirm(setclientid_confirm::Args) -> setclientid_confirm::Res,
    Verify(verify::Args<'a>) -> verify::Res,
    Write(write::Args<'a>) -> write::Res,
    ReleaseLockOwner(release_lockowner::Args<'a>) -> release_lockowner::Res,
    BackchannelCtl(backchannel_ctl::Args<'a>) -> backchannel_ctl::Res,
    BindConnToSession(bind_conn_to_session::Args) -> bind_conn_to_session::Res,
    ExchangeId(exchange_id::Args<'a>) -> exchange_id::Res<'a>,
    CreateSession(create_session::Args<'a>) -> create_session::Res,
    DestroySession(destroy_session::Args) -> destroy_session::Res,
    FreeStateid(free_stateid::Args) -> free_stateid::Res,
    GetDirDelegation(dir_delegation::Args) -> dir_delegation::Res,
    SecInfoNoName(secinfo_no_name::Args) -> secinfo_no_name::Res<'a>,
    Sequence(sequence::Args) -> sequence::Res,
    SetSsv(set_ssv::Args<'a>) -> set_ssv::Res<'a>,
    TestStateid(test_stateid::Args) -> test_stateid::Res,
    WantDelegation(want_delegation::Args) -> want_delegation::Res<'a>,
    DestroyClientId(destroy_clientid::Args) -> destroy_clientid::Res,
    ReclaimComplete(reclaim_complete::Args) -> reclaim_complete::Res,
    Allocate(allocate::Args) -> allocate::Res,
    Copy(copy::Args<'a>) -> copy::Res,
    CopyNotify(copy_notify::Args<'a>) -> copy_notify::Res<'a>,
    Deallocate(deallocate::Args) -> deallocate::Res,
    IoAdvise(io_advise::Args) -> io_advise::Res,
    OffloadCancel(offload_cancel::Args) -> offload_cancel::Res,
    OffloadStatus(offload_status::Args) -> offload_status::Res,
    ReadPlus(read_plus::Args) -> read_plus::Res<'a>,
    Seek(seek::Args) -> seek::Res,
    Clone(clone::Args) -> clone::Res,
    GetXattr(getxattr::Args<'a>) -> getxattr::Res<'a>,
    SetXattr(setxattr::Args<'a>) -> setxattr::Res,
    ListXattrs(listxattrs::Args) -> listxattrs::Res<'a>,
    RemoveXattr(removexattr::Args<'a>) -> removexattr::Res,
    ;
    GetFh -> getfh::Res<'a>,
    LookupP -> Result<(), Status>,
    PutPubFh -> Result<(), Status>,
    PutRootFh -> Result<(), Status>,
    ReadLink -> readlink::Res<'a>,
    RestoreFh -> Result<(), Status>,
    SaveFh -> Result<(), Status>,
    ;
    GetDeviceInfo, GetDeviceList, LayoutCommit, LayoutGet, LayoutReturn, LayoutError, LayoutStats, WriteSame, Illegal
}

impl ArgOp<'_> {
    /// Whether the arguments have only values that the minor version defines.
    fn is_of_minor_version(&self, minor_version: u32) -> bool {
        match self {
            Self::Open(args) if minor_version == 0 => args.is_of_minor_version_0(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::types::{FileHandle, Name};

    fn compound(minor_version: u32, operations: &[ArgOp<'_>], tail: &[u8], more: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        encode_args(&mut writer, "tag", minor_version, operations);
        let count = u32::try_from(operations.len()).unwrap() + more;
        writer.patch_u32(12, count);
        bytes.extend_from_slice(tail);
        bytes
    }

    #[test]
    fn operations_in_front_of_a_bad_one_are_read() {
        let good = [
            ArgOp::PutFh(putfh::Args { object: FileHandle(b"handle") }),
            ArgOp::Lookup(lookup::Args { name: Name(b"name") }),
            ArgOp::GetFh,
        ];
        for (number, tail, operation, status) in [
            (2, &[0, 0, 0, 0][..], 10044, Status::OpIllegal),
            (2, &[0, 0, 0, 76], 10044, Status::OpIllegal),
            (1, &[0, 0, 0, 59], 10044, Status::OpIllegal),
            (0, &[0, 0, 0, 40], 10044, Status::OpIllegal),
            (1, &[0, 0, 0x27, 0x3c], 10044, Status::OpIllegal),
            (1, &[0, 0, 0, 15, 0, 0, 0, 9, 1], 15, Status::BadXdr),
            (1, &[0, 0, 0], 10044, Status::BadXdr),
            (1, &[], 10044, Status::BadXdr),
        ] {
            let bytes = compound(number, &good, tail, 2);
            let args = Args::from_bytes(&bytes).unwrap();
            assert_eq!((args.tag, args.minor_version, args.operations.left()), (Text(b"tag"), number, 5));
            assert_eq!(args.operations.peek(), Some(Operation::PutFh));
            let read: Vec<_> = args.operations.collect();
            let mut expected: Vec<_> = good.iter().cloned().map(Ok).collect();
            expected.push(Err(BadOperation { operation, status }));
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_compound_may_be_empty_and_leaves_what_follows() {
        let bytes = compound(1, &[], b"more", 0);
        let mut operations = Args::from_bytes(&bytes).unwrap().operations;
        assert_eq!(operations.peek(), None);
        assert_eq!(operations.next(), None);
        assert_eq!(operations.rest(), b"more");
    }

    #[test]
    fn a_count_without_operations_allocates_nothing() {
        let bytes = compound(1, &[], b"", u32::MAX);
        let operations = Args::from_bytes(&bytes).unwrap().operations;
        assert_eq!(operations.left(), u32::MAX);
        assert_eq!(operations.count(), 1);
    }

    #[test]
    fn a_tag_has_at_most_1024_bytes() {
        let args = |length| {
            let mut bytes = vec![b't'; length].as_slice().encode_to_vec();
            bytes.extend_from_slice(&[0; 8]);
            Args::from_bytes(&bytes).map(|args| args.tag.0.len())
        };
        assert_eq!(args(1024), Ok(1024));
        assert_eq!(args(1028), Err(XdrError::TooLong { length: 1028, limit: 1024 }));
    }

    #[test]
    fn a_head_is_filled_in_at_the_end() {
        let mut bytes = b"rpc ".to_vec();
        let mut writer = Writer::new(&mut bytes);
        let head = ResultsHead::begin(&mut writer, Text(b"tag"));
        assert_eq!(writer.position(), 4 + ResultsHead::bytes(Text(b"tag")));
        let results = [ResOp::PutRootFh(Ok(())), ResOp::SetAttr(Status::Perm.into())];
        results[0].encode(&mut writer);
        encode_failure(&mut writer, Operation::SetAttr, Status::Perm);
        head.finish(&mut writer, Err(Status::Perm), 2);
        let res = Res::from_bytes(&bytes[4..]).unwrap();
        assert_eq!((res.status, res.tag), (Err(Status::Perm), Text(b"tag")));
        let read: Vec<_> = res.results.map(Result::unwrap).collect();
        assert_eq!(read, results);
        assert_eq!(read[1].status(), Err(Status::Perm));
    }

    #[test]
    fn operations_nobody_reads_are_the_last() {
        let bytes = compound(2, &[ArgOp::NotSupported(Operation::LayoutGet)], &[0, 0, 0, 1], 0);
        let mut operations = Args::from_bytes(&bytes).unwrap().operations;
        assert_eq!(operations.next(), Some(Ok(ArgOp::NotSupported(Operation::LayoutGet))));
        assert_eq!(operations.next(), None);
    }
}
