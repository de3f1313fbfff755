//! The properties of an operation, known before it runs: a row beside its handler. Each protocol has a table of its
//! rows.

use share::Api;

/// Bytes of an NFSv4 result that consists only of a status: its operation and the status.
pub(crate) const STATUS_BYTES: usize = 8;

/// The properties of one operation. `N` is the type by which the protocol numbers operations.
#[derive(Debug)]
pub(crate) struct Operation<N> {
    pub(crate) number: N,
    /// The operation's name in metrics, which also decides how it counts against a share's budget. `None`: it concerns
    /// no share.
    pub(crate) api: Option<Api>,
    pub(crate) callers: Callers,
    /// Whether it changes something in a share. If so, it is refused where the caller may only read.
    pub(crate) changes: bool,
    /// NFSv3: whether a second run would find what the first has changed, and return another result. Such a call is
    /// finished even if its connection ends, and its reply is kept for repetitions. WRITE and COMMIT have the same
    /// effect when they run again. A COMPOUND of NFSv4 is always finished, and kept if its client asks for that.
    pub(crate) is_kept: bool,
    /// NFSv4: what the operation requires.
    pub(crate) needs: Needs,
    /// NFSv4: how many bytes of room the reply must have before the operation begins (RFC 8881 2.10.6.4): the most that
    /// its result can have, if the client must get the result. Other results are checked afterwards.
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
    /// Anybody: the operation only handles filehandles, or gives up what a client has in a share that is not (or no
    /// longer) served to it. All others may fail with NFS4ERR_ACCESS (RFC 8881 15.2).
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

impl<N> Operation<N> {
    /// An operation on an object of a share that changes nothing.
    pub(crate) const fn of(number: N, api: Api) -> Self {
        Self {
            number,
            api: Some(api),
            callers: Callers::Members,
            changes: false,
            is_kept: false,
            needs: Needs::FileHandle,
            result_bytes: STATUS_BYTES,
        }
    }

    /// An operation that concerns no share.
    pub(crate) const fn of_no_share(number: N) -> Self {
        Self {
            number,
            api: None,
            callers: Callers::Anybody,
            changes: false,
            is_kept: false,
            needs: Needs::Session,
            result_bytes: STATUS_BYTES,
        }
    }
}
