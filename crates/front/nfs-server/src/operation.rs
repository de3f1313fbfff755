//! The properties of an operation, known before it runs: a row beside its handler. Each protocol has a table of its
//! rows.

use nfs_wire::v4::Operation as Number;
use nfs_wire::{mount as mount_wire, nlm as nlm_wire, v3 as v3_wire};

use crate::front::{NFS3, NFS4};

/// Bytes of an NFSv4 result that consists only of a status: its operation and the status.
pub(crate) const STATUS_BYTES: usize = 8;

/// The properties of one operation. `N` is the type by which the protocol numbers operations.
#[derive(Debug)]
pub(crate) struct Operation<N> {
    pub(crate) number: N,
    /// The operation as one on a share.
    pub(crate) on_share: share::Operation,
    /// Whether it concerns a share, and is counted there.
    pub(crate) is_counted: bool,
    pub(crate) callers: Callers,
    /// Whether it changes something in a share. If so, it is refused where the caller may only read.
    pub(crate) changes: bool,
    /// NFSv3: whether a second run would find the changes of the first and return another result, or undo later writes
    /// by others. Such a call is finished even if its connection ends, and its reply is kept for repetitions. COMMIT
    /// has the same effect when it runs again. A COMPOUND of NFSv4 is always finished, and its reply is kept if the
    /// client asks for that.
    pub(crate) is_kept: bool,
    /// NFSv4: what the operation requires.
    pub(crate) needs: Needs,
    /// NFSv4: how many bytes of room the reply must have before the operation begins (RFC 8881 2.10.6.4): the most that
    /// its result can have, if the client must get the result. Other results are checked afterwards. NFSv3 and MOUNT have
    /// no such limit: counts in the arguments bound the results that can be long.
    pub(crate) result_bytes: usize,
}

/// Which callers may use an operation on a share, under the share's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Callers for whom the share is served.
    Members,
    /// Also callers that may only mount the share, on its top directory: for operations by which a client mounts. The
    /// client's superuser sends these for all users. They reveal that the object is a directory, and nothing of its
    /// contents.
    Mounting,
    /// All callers: the operation only handles filehandles, or gives up state of the client in a share that is not (or
    /// no longer) served to it. All other operations may fail with NFS4ERR_ACCESS (RFC 8881 15.2).
    Anybody,
}

/// What an operation of NFSv4 requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: the operation may stand alone in a COMPOUND, without SEQUENCE.
    Nothing,
    /// A session.
    Session,
    /// A session, and a current filehandle.
    FileHandle,
}

impl Operation<v3_wire::Procedure> {
    /// A procedure on an object of a share that changes nothing, with its name in metrics.
    pub(crate) const fn v3(number: v3_wire::Procedure, name: &'static str) -> Self {
        Self::on_share(number, share::Operation::new(&NFS3, number as usize, name))
    }
}

/// MOUNT's procedures come over connections of NFSv3, so their numbers begin after NFSv3's.
const MOUNT_NUMBERS: usize = 32;

impl Operation<mount_wire::Procedure> {
    /// A procedure on a share, with its name in metrics.
    pub(crate) const fn mount(number: mount_wire::Procedure, name: &'static str) -> Self {
        Self::on_share(number, share::Operation::new(&NFS3, MOUNT_NUMBERS + number as usize, name))
    }

    /// A procedure that concerns no share.
    pub(crate) const fn mount_of_no_share(number: mount_wire::Procedure) -> Self {
        Self { is_counted: false, callers: Callers::Anybody, ..Self::mount(number, "") }
    }
}

/// NFSv4's operations may come over a connection that NFSv3 uses too, so their numbers begin after MOUNT's.
const V4_NUMBERS: usize = 40;

/// NLM's procedures come over connections of NFSv3, and their numbers follow those of the work beside NFSv4 ([`beside`]).
const NLM_NUMBERS: usize = V4_NUMBERS + LAST_NUMBER + 3;

impl Operation<nlm_wire::Procedure> {
    /// A procedure on a file, with its place among these, and its name in metrics.
    pub(crate) const fn nlm(number: nlm_wire::Procedure, place: usize, name: &'static str) -> Self {
        Self::on_share(number, share::Operation::new(&NFS3, NLM_NUMBERS + place, name))
    }
}

impl Operation<Number> {
    /// An operation on an object of a share that changes nothing, with its name in metrics.
    pub(crate) const fn v4(number: Number, name: &'static str) -> Self {
        Self::on_share(number, share::Operation::new(&NFS4, V4_NUMBERS + of_protocol(number), name))
    }

    /// An operation that concerns no share.
    pub(crate) const fn v4_of_no_share(number: Number) -> Self {
        Self { is_counted: false, callers: Callers::Anybody, needs: Needs::Session, ..Self::v4(number, "") }
    }
}

/// Work for an NFSv4 client that is no operation of the protocol, with its name in metrics.
pub(crate) const fn beside(number: usize, name: &'static str) -> share::Operation {
    share::Operation::new(&NFS4, V4_NUMBERS + LAST_NUMBER + number, name)
}

/// The last operation that the protocol defines: REMOVEXATTR (RFC 8276 8.2).
const LAST_NUMBER: usize = 75;

/// The number of an operation in the protocol. All operations that the protocol does not define share one number (RFC
/// 8881 16.2.3, OP_ILLEGAL).
const fn of_protocol(number: Number) -> usize {
    if matches!(number, Number::Illegal) { 2 } else { number as usize }
}

impl<N> Operation<N> {
    const fn on_share(number: N, on_share: share::Operation) -> Self {
        Self {
            number,
            on_share,
            is_counted: true,
            callers: Callers::Members,
            changes: false,
            is_kept: false,
            needs: Needs::FileHandle,
            result_bytes: STATUS_BYTES,
        }
    }

    /// The same operation, which the access log has as one of this kind.
    pub(crate) const fn of_kind(self, kind: share::Kind) -> Self
    where
        N: Copy,
    {
        Self { on_share: self.on_share.of_kind(kind), ..self }
    }

    /// The same operation, which counts against the budget of a share in this way.
    pub(crate) const fn with(self, turn: share::Turn) -> Self
    where
        N: Copy,
    {
        Self { on_share: self.on_share.with(turn), ..self }
    }
}
