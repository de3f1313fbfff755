//! The callback program, RFC 8881 section 20 and RFC 7862 16: requests that a server sends to a client, over
//! connections that the client opened.

use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::compound::{self, BadOperation};
use crate::v4::copy::WriteResponse;
use crate::v4::status::{Status, decode_outcome};
use crate::v4::types::{Bitmap, FileHandle, SessionId, StateOwner, Stateid, Text};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The version of the callback program. The client chooses the program's number (CREATE_SESSION).
pub const VERSION: u32 = 1;
/// The procedure that does nothing.
pub const PROCEDURE_NULL: u32 = 0;
/// The procedure that carries operations.
pub const PROCEDURE_COMPOUND: u32 = 1;

xdr_enum! {
    /// The callback operations, RFC 8881 20 and RFC 7862 16.
    #[doc(alias = "nfs_cb_opnum4")]
    Operation {
        /// 20.1: attributes that the holder of a write delegation has changed.
        GetAttr = 3,
        /// 20.2: return a delegation.
        Recall = 4,
        /// 20.3: return layouts.
        LayoutRecall = 5,
        /// 20.4: changes of a directory.
        Notify = 6,
        /// 20.5: a delegation that the client wanted.
        PushDeleg = 7,
        /// 20.6: return some delegations.
        RecallAny = 8,
        /// 20.7: delegations are available again.
        RecallableObjAvail = 9,
        /// 20.8: use fewer slots.
        RecallSlot = 10,
        /// 20.9: the slot that the callback uses.
        Sequence = 11,
        /// 20.10: wants are cancelled.
        WantsCancelled = 12,
        /// 20.11: a lock may be available now.
        NotifyLock = 13,
        /// 20.12: changes of devices.
        NotifyDeviceId = 14,
        /// RFC 7862 16.1: a copy has ended.
        Offload = 15,
        /// 20.13: no such operation.
        Illegal = 10044,
    }
}

/// The arguments of a CB_COMPOUND, without the operations.
#[doc(alias = "CB_COMPOUND4args")]
#[derive(Debug, Clone)]
pub struct CompoundArgs<'a> {
    /// Has no effect; returned in the reply.
    pub tag: Text<'a>,
    /// The session's minor version.
    pub minor_version: u32,
    /// Used by NFSv4.0 only.
    pub callback_ident: u32,
    /// The operations.
    pub operations: Operations<'a>,
}

impl<'a> Decode<'a> for CompoundArgs<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(Self {
            tag: compound::decode_tag(reader)?,
            minor_version: reader.u32()?,
            callback_ident: reader.u32()?,
            operations: Operations {
                left: reader.u32()?,
                reader: std::mem::replace(reader, Reader::new(&[])),
            },
        })
    }
}

/// Writes the arguments of a CB_COMPOUND with these operations.
pub fn encode_compound(writer: &mut Writer<'_>, minor_version: u32, operations: &[ArgOp<'_>]) {
    Text(b"").encode(writer);
    writer.u32(minor_version);
    writer.u32(0);
    writer.length(operations.len());
    operations.iter().for_each(|operation| operation.encode(writer));
}

/// The operations as a client receives them. They are decoded one at a time, up to the first that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Operations<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<ArgOp<'a>, BadOperation>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let number = self.reader.u32();
        let item = match number.as_ref().map(|number| Operation::try_from(*number)) {
            Ok(Ok(operation)) => {
                ArgOp::decode(operation, &mut self.reader).map_err(|status| (operation, status))
            }
            Ok(Err(_)) => Err((Operation::Illegal, Status::OpIllegal)),
            Err(_) => Err((Operation::Illegal, Status::BadXdr)),
        };
        if item.is_err() {
            self.left = 0;
        }
        Some(item.map_err(|(operation, status)| BadOperation { operation: operation as u32, status }))
    }
}

/// An operation and its arguments.
#[doc(alias = "nfs_cb_argop4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgOp<'a> {
    /// CB_GETATTR.
    GetAttr(GetAttrArgs<'a>),
    /// CB_RECALL.
    Recall(RecallArgs<'a>),
    /// CB_RECALL_ANY.
    RecallAny(RecallAnyArgs),
    /// CB_RECALLABLE_OBJ_AVAIL.
    RecallableObjAvail(RecallAnyArgs),
    /// CB_RECALL_SLOT.
    RecallSlot(RecallSlotArgs),
    /// CB_SEQUENCE.
    Sequence(SequenceArgs),
    /// CB_WANTS_CANCELLED.
    WantsCancelled(WantsCancelledArgs),
    /// CB_NOTIFY_LOCK.
    NotifyLock(NotifyLockArgs<'a>),
    /// CB_OFFLOAD.
    Offload(OffloadArgs<'a>),
}

impl<'a> ArgOp<'a> {
    fn decode(operation: Operation, reader: &mut Reader<'a>) -> Result<Self, Status> {
        Ok(match operation {
            Operation::GetAttr => Self::GetAttr(Decode::decode(reader)?),
            Operation::Recall => Self::Recall(Decode::decode(reader)?),
            Operation::RecallAny => Self::RecallAny(Decode::decode(reader)?),
            Operation::RecallableObjAvail => Self::RecallableObjAvail(Decode::decode(reader)?),
            Operation::RecallSlot => Self::RecallSlot(Decode::decode(reader)?),
            Operation::Sequence => Self::Sequence(Decode::decode(reader)?),
            Operation::WantsCancelled => Self::WantsCancelled(Decode::decode(reader)?),
            Operation::NotifyLock => Self::NotifyLock(Decode::decode(reader)?),
            Operation::Offload => Self::Offload(Decode::decode(reader)?),
            Operation::LayoutRecall
            | Operation::Notify
            | Operation::PushDeleg
            | Operation::NotifyDeviceId => return Err(Status::NotSupp),
            Operation::Illegal => return Err(Status::OpIllegal),
        })
    }

    /// The operation's number.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::GetAttr(_) => Operation::GetAttr,
            Self::Recall(_) => Operation::Recall,
            Self::RecallAny(_) => Operation::RecallAny,
            Self::RecallableObjAvail(_) => Operation::RecallableObjAvail,
            Self::RecallSlot(_) => Operation::RecallSlot,
            Self::Sequence(_) => Operation::Sequence,
            Self::WantsCancelled(_) => Operation::WantsCancelled,
            Self::NotifyLock(_) => Operation::NotifyLock,
            Self::Offload(_) => Operation::Offload,
        }
    }
}

impl Encode for ArgOp<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.operation().encode(writer);
        match self {
            Self::GetAttr(args) => args.encode(writer),
            Self::Recall(args) => args.encode(writer),
            Self::RecallAny(args) | Self::RecallableObjAvail(args) => args.encode(writer),
            Self::RecallSlot(args) => args.encode(writer),
            Self::Sequence(args) => args.encode(writer),
            Self::WantsCancelled(args) => args.encode(writer),
            Self::NotifyLock(args) => args.encode(writer),
            Self::Offload(args) => args.encode(writer),
        }
    }
}

/// The complete result of a CB_COMPOUND, which is short.
#[doc(alias = "CB_COMPOUND4res")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundRes<'a> {
    /// The status of the last operation.
    pub status: Result<(), Status>,
    /// As in the arguments.
    pub tag: Text<'a>,
    /// The results of the operations up to the first that failed.
    pub results: Vec<ResOp<'a>>,
}

xdr_struct!(CompoundRes<'a> { status, tag, results });

/// An operation and its result.
#[doc(alias = "nfs_cb_resop4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResOp<'a> {
    /// CB_SEQUENCE.
    Sequence(Result<SequenceResOk, Status>),
    /// CB_GETATTR.
    GetAttr(Result<GetAttrResOk<'a>, Status>),
    /// Any other operation, whose result is its status.
    Other(Operation, Result<(), Status>),
}

impl ResOp<'_> {
    /// The result's status.
    ///
    /// # Errors
    /// The status, if the operation failed.
    pub fn status(&self) -> Result<(), Status> {
        match self {
            Self::Sequence(result) => result.map(|_| ()),
            Self::GetAttr(result) => result.map(|_| ()),
            Self::Other(_, status) => *status,
        }
    }
}

impl Encode for ResOp<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Sequence(result) => {
                Operation::Sequence.encode(writer);
                result.encode(writer);
            }
            Self::GetAttr(result) => {
                Operation::GetAttr.encode(writer);
                result.encode(writer);
            }
            Self::Other(operation, status) => {
                operation.encode(writer);
                status.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for ResOp<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(match Operation::decode(reader)? {
            Operation::Sequence => Self::Sequence(Decode::decode(reader)?),
            Operation::GetAttr => Self::GetAttr(Decode::decode(reader)?),
            operation => Self::Other(operation, decode_outcome(reader)?),
        })
    }
}

/// CB_SEQUENCE, RFC 8881 20.9.
#[doc(alias = "CB_SEQUENCE4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceArgs {
    /// The session.
    pub session_id: SessionId,
    /// One more than in the slot's previous request, or the same in a retry.
    pub sequence_id: u32,
    /// The slot of the back channel.
    pub slot_id: u32,
    /// The highest slot with a callback outstanding.
    pub highest_slot_id: u32,
    /// Whether the reply must be kept for a retry.
    pub cache_this: bool,
    /// Requests whose replies this callback may have overtaken (2.10.6.3).
    pub referring_calls: Vec<ReferringCalls>,
}

xdr_struct!(SequenceArgs { session_id, sequence_id, slot_id, highest_slot_id, cache_this, referring_calls });

/// Requests of a session.
#[doc(alias = "referring_call_list4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferringCalls {
    /// The session.
    pub session_id: SessionId,
    /// The requests.
    pub calls: Vec<ReferringCall>,
}

xdr_struct!(ReferringCalls { session_id, calls });

/// A request.
#[doc(alias = "referring_call4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferringCall {
    /// The sequence ID of the request.
    pub sequence_id: u32,
    /// The slot of the request.
    pub slot_id: u32,
}

xdr_struct!(ReferringCall { sequence_id, slot_id });

/// CB_SEQUENCE's success.
#[doc(alias = "CB_SEQUENCE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceResOk {
    /// As in the arguments.
    pub session_id: SessionId,
    /// As in the arguments.
    pub sequence_id: u32,
    /// As in the arguments.
    pub slot_id: u32,
    /// The highest slot that the client accepts.
    pub highest_slot_id: u32,
    /// The highest slot that the client wants the server to use.
    pub target_highest_slot_id: u32,
}

xdr_struct!(SequenceResOk { session_id, sequence_id, slot_id, highest_slot_id, target_highest_slot_id });

/// CB_GETATTR, RFC 8881 20.1.
#[doc(alias = "CB_GETATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetAttrArgs<'a> {
    /// The file.
    pub file: FileHandle<'a>,
    /// The attributes asked for: size and change.
    pub request: AttributeSet,
}

xdr_struct!(GetAttrArgs<'a> { file, request });

/// CB_GETATTR's success.
#[doc(alias = "CB_GETATTR4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetAttrResOk<'a> {
    /// The attributes that were asked for.
    pub attributes: Attributes<'a>,
}

xdr_struct!(GetAttrResOk<'a> { attributes });

/// CB_RECALL, RFC 8881 20.2.
#[doc(alias = "CB_RECALL4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallArgs<'a> {
    /// The delegation.
    pub stateid: Stateid,
    /// Whether the file is about to be truncated to length zero, so that its data need not be written.
    pub truncate: bool,
    /// The file.
    pub file: FileHandle<'a>,
}

xdr_struct!(RecallArgs<'a> { stateid, truncate, file });

/// CB_RECALL_ANY and CB_RECALLABLE_OBJ_AVAIL, RFC 8881 20.6 and 20.7.
#[doc(alias = "CB_RECALL_ANY4args")]
#[doc(alias = "CB_RECALLABLE_OBJ_AVAIL4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallAnyArgs {
    /// How many delegations or layouts the client may keep.
    pub objects_to_keep: u32,
    /// The types concerned: [`recallable`].
    pub types: Bitmap,
}

xdr_struct!(RecallAnyArgs { objects_to_keep, types });

/// Types of recallable objects, RFC 8881 20.6.
pub mod recallable {
    /// Read delegations.
    #[doc(alias = "RCA4_TYPE_MASK_RDATA_DLG")]
    pub const READ_DELEGATION: u32 = 0;
    /// Write delegations.
    #[doc(alias = "RCA4_TYPE_MASK_WDATA_DLG")]
    pub const WRITE_DELEGATION: u32 = 1;
    /// Delegations of directories.
    #[doc(alias = "RCA4_TYPE_MASK_DIR_DLG")]
    pub const DIRECTORY_DELEGATION: u32 = 2;
}

/// CB_RECALL_SLOT, RFC 8881 20.8.
#[doc(alias = "CB_RECALL_SLOT4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallSlotArgs {
    /// The highest slot that the client may continue to use.
    pub target_highest_slot_id: u32,
}

xdr_struct!(RecallSlotArgs { target_highest_slot_id });

/// CB_WANTS_CANCELLED, RFC 8881 20.10.
#[doc(alias = "CB_WANTS_CANCELLED4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantsCancelledArgs {
    /// Wants that wait for other clients.
    pub contended: bool,
    /// Wants that wait for resources.
    pub resourced: bool,
}

xdr_struct!(WantsCancelledArgs { contended, resourced });

/// CB_NOTIFY_LOCK, RFC 8881 20.11.
#[doc(alias = "CB_NOTIFY_LOCK4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyLockArgs<'a> {
    /// The file.
    pub file: FileHandle<'a>,
    /// The owner whose lock was refused before.
    pub lock_owner: StateOwner<'a>,
}

xdr_struct!(NotifyLockArgs<'a> { file, lock_owner });

/// CB_OFFLOAD, RFC 7862 16.1.
#[doc(alias = "CB_OFFLOAD4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffloadArgs<'a> {
    /// The destination file.
    pub file: FileHandle<'a>,
    /// The stateid that COPY returned.
    pub stateid: Stateid,
    /// The outcome.
    pub info: OffloadInfo,
}

xdr_struct!(OffloadArgs<'a> { file, stateid, info });

/// The outcome of a copy.
#[doc(alias = "offload_info4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffloadInfo {
    /// The copy is complete.
    Done(WriteResponse),
    /// The copy failed.
    Failed {
        /// The error.
        status: Status,
        /// How many bytes were copied before.
        copied_bytes: u64,
    },
}

impl Encode for OffloadInfo {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Done(response) => {
                writer.u32(0);
                response.encode(writer);
            }
            Self::Failed { status, copied_bytes } => {
                status.encode(writer);
                writer.u64(*copied_bytes);
            }
        }
    }
}

impl Decode<'_> for OffloadInfo {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match decode_outcome(reader)? {
            Ok(()) => WriteResponse::decode(reader).map(Self::Done),
            Err(status) => Ok(Self::Failed { status, copied_bytes: reader.u64()? }),
        }
    }
}
