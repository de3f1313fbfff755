//! The reply to a COMPOUND, result by result (RFC 8881 16.2).

use net::Buffer;
use nfs_wire::rpc::{AcceptStatus, Reply as RpcReply, ReplyBody};
use nfs_wire::v4::compound::{BadOperation, ResultsHead, encode_failure};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;
use nfs_wire::v4::{Operation, copy, lock, setattr, setclientid};
use nfs_wire::xdr::{Encode, Writer};

use crate::reply::{REPLY_HEADER_BYTES, mark};

/// Room for most replies, in bytes.
const REPLY_BYTES: usize = 800;

/// The reply so far.
pub(super) struct Reply {
    pub(super) buffer: Buffer,
    /// The place of the number of results.
    count_at: usize,
    count: u32,
    /// Where the last result begins.
    last_at: usize,
    pub(super) status: Result<(), Status>,
}

/// Common to the results of all operations.
pub(super) trait Outcome: Encode {
    fn outcome(&self) -> Result<(), Status>;
}

impl<T: Encode> Outcome for Result<T, Status> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(|status| *status)
    }
}

impl<T: Encode> Outcome for Result<T, lock::Failure<'_>> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(lock::Failure::status)
    }
}

impl Outcome for setclientid::Res<'_> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(setclientid::Failure::status)
    }
}

impl Outcome for copy::Res {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(copy::Failure::status)
    }
}

impl Outcome for setattr::Res {
    fn outcome(&self) -> Result<(), Status> {
        self.status
    }
}

impl Reply {
    pub(super) fn begin(xid: u32, tag: Text<'_>) -> Self {
        let mut buffer = Buffer::with_capacity(REPLY_BYTES);
        buffer.append_with(|bytes, _| {
            let mut writer = Writer::new(bytes);
            RpcReply { xid, body: ReplyBody::accepted(AcceptStatus::Success) }.encode(&mut writer);
            let _ = ResultsHead::begin(&mut writer, tag); // finished by position, because the buffer may be another one by then
        });
        let (count_at, last_at) = (buffer.len() - 4, buffer.len());
        Self { buffer, count_at, count: 0, last_at, status: Ok(()) }
    }

    /// The reply to a request that was answered before.
    pub(super) fn repeat(xid: u32, body: &[u8]) -> Buffer {
        let mut buffer = Buffer::with_capacity(REPLY_HEADER_BYTES + body.len());
        buffer.append_with(|bytes, _| {
            let header = RpcReply { xid, body: ReplyBody::accepted(AcceptStatus::Success) };
            header.encode(&mut Writer::new(bytes));
        });
        buffer.append(body);
        mark(buffer)
    }

    /// The number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the result of an operation.
    pub(super) fn end(&mut self, operation: Operation, result: &impl Outcome) {
        self.last_at = self.buffer.len();
        self.buffer.append_with(|bytes, _| {
            let mut writer = Writer::new(bytes);
            operation.encode(&mut writer);
            result.encode(&mut writer);
        });
        self.count = self.count.saturating_add(1);
        self.status = result.outcome();
    }

    /// Begins the next result.
    pub(super) fn begin_result(&mut self) {
        self.last_at = self.buffer.len();
    }

    /// Ends a result that was written since [`Reply::begin_result`].
    pub(super) fn end_written(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Writes the failure of an operation.
    pub(super) fn fail(&mut self, operation: Operation, status: Status) {
        self.last_at = self.buffer.len();
        self.buffer.append_with(|bytes, _| encode_failure(&mut Writer::new(bytes), operation, status));
        self.count = self.count.saturating_add(1);
        self.status = Err(status);
    }

    /// Writes the result of an operation that could not be decoded.
    pub(super) fn refuse(&mut self, bad: BadOperation) {
        self.buffer.append_with(|bytes, _| bad.encode(&mut Writer::new(bytes)));
        self.count = self.count.saturating_add(1);
        self.status = Err(bad.status);
    }

    /// Replaces the last result, which is too long, with a failure.
    pub(super) fn take_back(&mut self, operation: Operation, status: Status) {
        self.buffer.truncate(self.last_at);
        self.count = self.count.saturating_sub(1);
        self.fail(operation, status);
    }

    /// The last result: operation, status and the rest.
    pub(super) fn last_result(&self) -> &[u8] {
        &self.buffer[self.last_at..]
    }

    /// Writes the result of an operation that was run before.
    pub(super) fn put(&mut self, result: &[u8], status: Result<(), Status>) {
        self.last_at = self.buffer.len();
        self.buffer.append(result);
        self.count = self.count.saturating_add(1);
        self.status = status;
    }

    /// The body of the reply, for a repetition.
    pub(super) fn body(&mut self) -> &[u8] {
        self.settle();
        &self.buffer[REPLY_HEADER_BYTES..]
    }

    /// The complete reply.
    pub(super) fn finish(mut self) -> Buffer {
        self.settle();
        mark(self.buffer)
    }

    /// Fills in the values that are known last.
    fn settle(&mut self) {
        let status = self.status.map_or_else(|status| status as u32, |()| 0);
        self.buffer[REPLY_HEADER_BYTES..][..4].copy_from_slice(&status.to_be_bytes());
        self.buffer[self.count_at..][..4].copy_from_slice(&self.count.to_be_bytes());
    }
}
