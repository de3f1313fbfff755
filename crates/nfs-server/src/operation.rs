//! What is known of an operation before it runs: a row that stands beside its handler. Each protocol has a table of its rows.

use share::Api;

/// Bytes of a result of NFSv4 that is only a status: its operation and the status.
pub(crate) const STATUS_BYTES: usize = 8;

/// A row. `N` is what its protocol numbers operations by.
#[derive(Debug)]
pub(crate) struct Operation<N> {
    pub(crate) number: N,
    /// Its name in metrics, and as what it counts against a share's budget. `None`: it is for no share.
    pub(crate) api: Option<Api>,
    pub(crate) for_whom: ForWhom,
    /// It changes something in a share: it is refused where the caller may only read.
    pub(crate) changes: bool,
    /// NFSv3: a second run would find changed already what the first has changed, and answer otherwise. So the call is finished
    /// even if its connection ends, and its reply is kept for repetitions. WRITE and COMMIT leave the same behind when they
    /// run again. A COMPOUND of NFSv4 is always finished, and kept if its client asks for it.
    pub(crate) is_kept: bool,
    /// NFSv4: what must be there before it.
    pub(crate) needs: Needs,
    /// NFSv4: for so many bytes there must be room in the reply before it begins (RFC 8881 2.10.6.4): the most that its result
    /// can have, if the client must be told it. Other results are looked at afterwards.
    pub(crate) result_bytes: usize,
}

/// Which callers may have an operation on a share, by the rules of the share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForWhom {
    /// Those that the share is for.
    Members,
    /// Also those that may only mount the share, on its top directory: it is one of the operations by which a client mounts.
    /// They are made by its superuser, for all of its users: they tell that it is a directory, and nothing of what is in it.
    Mounting,
    /// Anybody: it only holds filehandles, or gives back what a client has of a share that is not (or no longer) for it. All
    /// others may fail with NFS4ERR_ACCESS (RFC 8881 15.2).
    Anybody,
}

/// What must be there before an operation of NFSv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it may stand alone in a COMPOUND, without SEQUENCE.
    Nothing,
    /// A session.
    Session,
    /// A session, and a current filehandle.
    FileHandle,
}

impl<N> Operation<N> {
    /// One on an object of a share, which changes nothing.
    pub(crate) const fn of(number: N, api: Api) -> Self {
        Self {
            number,
            api: Some(api),
            for_whom: ForWhom::Members,
            changes: false,
            is_kept: false,
            needs: Needs::FileHandle,
            result_bytes: STATUS_BYTES,
        }
    }

    /// One that is for no share.
    pub(crate) const fn of_no_share(number: N) -> Self {
        Self {
            number,
            api: None,
            for_whom: ForWhom::Anybody,
            changes: false,
            is_kept: false,
            needs: Needs::Session,
            result_bytes: STATUS_BYTES,
        }
    }
}
