//! Opens that outlive their connection: which do, for how long, and who may have them again.
//! [MS-SMB2] 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12, 3.3.5.9.13, 3.3.5.15.9, 3.3.7.1.
//!
//! A *durable* open is kept as long as its client may keep the handle after its application has closed it: while the open
//! has a batch oplock, or a lease that includes handle caching. Somebody who takes that away ends the open. A *resilient*
//! open is kept whatever is cached, and a *persistent* one outlives the server as well.

use std::time::Duration;

use smb_wire::{AccessMask, Guid, NtStatus};

#[cfg(test)]
mod tests;

/// What FSCTL_LMR_REQUEST_RESILIENCY and DH2Q may ask for, and what they get who leave it to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A durable open of the first version, which cannot say for how long (3.3.5.9.6: "an implementation specific value").
    pub durable: Duration,
    /// A durable or persistent open of the second version that says nothing.
    pub durable_v2: Duration,
    /// The longest that such an open gets: 300 seconds in 3.3.5.9.10.
    pub durable_v2_max: Duration,
    /// A resilient open that says nothing.
    pub resilient: Duration,
    /// MaxResiliencyTimeout: whoever asks for more gets nothing.
    pub resilient_max: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            durable: Duration::from_secs(120),
            durable_v2: Duration::from_secs(60),
            durable_v2_max: Duration::from_secs(300),
            resilient: Duration::from_secs(120),
            resilient_max: Duration::from_secs(300),
        }
    }
}

/// In which way an open outlives its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Open.IsDurable
    Durable,
    /// Open.IsResilient
    Resilient,
    /// Open.IsPersistent, and Open.IsDurable with it
    Persistent,
}

/// How an open outlives its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    /// In which way.
    pub kind: Kind,
    /// Open.DurableOpenTimeout, Open.ResiliencyTimeout: for how long, from the loss of the connection on.
    pub timeout: Duration,
}

/// The create contexts about durable opens that came with one CREATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST
    pub request: bool,
    /// SMB2_CREATE_DURABLE_HANDLE_RECONNECT
    pub reconnect: bool,
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
    pub request_v2: bool,
    /// SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
    pub reconnect_v2: bool,
}

impl Contexts {
    /// Whether they make sense together: a reconnection of the first version may repeat the request of the first version;
    /// otherwise each comes alone.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER (3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12).
    pub fn check(self) -> Result<(), NtStatus> {
        let first = self.request || self.reconnect;
        if (first && (self.request_v2 || self.reconnect_v2)) || (self.request_v2 && self.reconnect_v2) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        Ok(())
    }
}

/// What a CREATE asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST
    V1,
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
    V2 {
        /// For how many milliseconds; 0 leaves it to the server.
        timeout_ms: u32,
        /// SMB2_DHANDLE_FLAG_PERSISTENT
        persistent: bool,
    },
}

/// What a new open gets of what it asks for. [MS-SMB2] 3.3.5.9.6, 3.3.5.9.10.
///
/// `keeps_handle`: it was granted a batch oplock, or a lease with handle caching. `may_persist`: the share is continuously
/// available, and the connection has agreed on persistent handles. Directories are never durable.
pub fn grant(
    request: Request,
    keeps_handle: bool,
    is_directory: bool,
    may_persist: bool,
    timeouts: &Timeouts,
) -> Option<Durability> {
    if is_directory {
        return None;
    }
    let (kind, timeout) = match request {
        Request::V1 if keeps_handle => (Kind::Durable, timeouts.durable),
        Request::V2 { timeout_ms, persistent } if may_persist && persistent => {
            (Kind::Persistent, timeout_v2(timeout_ms, timeouts))
        }
        Request::V2 { timeout_ms, .. } if keeps_handle => (Kind::Durable, timeout_v2(timeout_ms, timeouts)),
        Request::V1 | Request::V2 { .. } => return None,
    };
    Some(Durability { kind, timeout })
}

fn timeout_v2(timeout_ms: u32, timeouts: &Timeouts) -> Duration {
    match timeout_ms {
        0 => timeouts.durable_v2,
        asked => Duration::from_millis(asked.into()).min(timeouts.durable_v2_max),
    }
}

/// What FSCTL_LMR_REQUEST_RESILIENCY makes of an open. [MS-SMB2] 3.3.5.15.9. A persistent open stays one: it is resilient
/// already.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for more time than there is.
pub fn resilient(
    before: Option<Durability>,
    timeout_ms: u32,
    timeouts: &Timeouts,
) -> Result<Durability, NtStatus> {
    let asked = Duration::from_millis(timeout_ms.into());
    if asked.as_secs() > timeouts.resilient_max.as_secs() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if let Some(persistent) = before.filter(|had| had.kind == Kind::Persistent) {
        return Ok(persistent);
    }
    let timeout = if timeout_ms == 0 { timeouts.resilient } else { asked };
    Ok(Durability { kind: Kind::Resilient, timeout })
}

impl Durability {
    /// Whether the open outlives the loss of its connection now. [MS-SMB2] 3.3.7.1.
    ///
    /// `keeps_handle`: it has a batch oplock, or a lease with handle caching, that is not being broken.
    pub fn survives(self, keeps_handle: bool) -> bool {
        self.kind != Kind::Durable || keeps_handle
    }
}

/// Whether a CREATE may be sent again with SMB2_FLAGS_REPLAY_OPERATION to have the open that it made: Open.IsReplayEligible
/// of a new open. [MS-SMB2] 3.3.5.9.10.
pub fn is_replay_eligible(kind: Option<Kind>, is_directory: bool, granted: AccessMask) -> bool {
    let touches_data = AccessMask::READ_DATA
        | AccessMask::EXECUTE
        | AccessMask::WRITE_DATA
        | AccessMask::APPEND_DATA
        | AccessMask::DELETE;
    kind == Some(Kind::Persistent) || (!is_directory && granted.intersects(touches_data))
}

/// Which lease, as far as a client must name it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Lease.LeaseKey
    pub key: [u8; 16],
    /// Lease.Version: 1 or 2
    pub version: u8,
}

/// What the server knows of an open that somebody wants to have again.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// How it outlives its connection, if it does.
    pub durability: Option<Durability>,
    /// Open.CreateGuid; zero without one
    pub create_guid: Guid,
    /// Open.ClientGuid
    pub client_guid: Guid,
    /// Open.DurableOwner
    pub owner: &'a str,
    /// Open.Lease
    pub lease: Option<LeaseName>,
    /// It has a batch oplock, or a lease with handle caching.
    pub keeps_handle: bool,
    /// Open.Lease.FileDeleteOnClose
    pub delete_on_close: bool,
}

/// How a client asks for an open that it had. Beside this the request says nothing that matters.
#[derive(Clone, Copy, Debug)]
pub struct Reconnect<'a> {
    /// The second version names the CREATE that made the open, and says whether that was persistent.
    pub v2: Option<ReconnectV2>,
    /// Connection.ClientGuid
    pub client_guid: Guid,
    /// The user of the session.
    pub user: &'a str,
    /// The lease of the request.
    pub lease: Option<LeaseName>,
    /// Whether the name of the request is the file's.
    pub names_file: bool,
}

/// What a reconnection of the second version says.
#[derive(Clone, Copy, Debug)]
pub struct ReconnectV2 {
    /// CreateGuid
    pub create_guid: Guid,
    /// SMB2_DHANDLE_FLAG_PERSISTENT
    pub persistent: bool,
}

/// Whether a client gets a disconnected open. [MS-SMB2] 3.3.5.9.7, 3.3.5.9.12. That it is disconnected at all (Open.Session
/// is NULL) is the caller's check, with STATUS_OBJECT_NAME_NOT_FOUND.
///
/// # Errors
/// STATUS_OBJECT_NAME_NOT_FOUND when it is not the open that the client means; STATUS_INVALID_PARAMETER for another file's
/// name (with a lease only: otherwise the name is ignored), or for an open that is not persistent; STATUS_ACCESS_DENIED for
/// another user.
pub fn check_reconnect(known: &Known<'_>, asked: &Reconnect<'_>) -> Result<(), NtStatus> {
    let durability = known.durability.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let is_persistent = durability.kind == Kind::Persistent;
    let other_client = known.lease.is_some() && known.client_guid != asked.client_guid;
    let other_create = asked.v2.is_some_and(|v2| v2.create_guid != known.create_guid);
    let forgets_persistence = is_persistent && asked.v2.is_some_and(|v2| !v2.persistent);
    // A lease of another key or version, none where there is one, one where there is none.
    let other_lease = known.lease != asked.lease;
    if other_client
        || other_create
        || forgets_persistence
        || other_lease
        || !durability.survives(known.keeps_handle)
    {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND);
    }
    let other_file = known.lease.is_some() && !known.delete_on_close && !asked.names_file;
    if other_file || (!is_persistent && asked.v2.is_some_and(|v2| v2.persistent)) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if known.owner == asked.user { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) }
}

/// A CREATE that was sent before, with the same CreateGuid, and has made an open.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// SMB2_FLAGS_REPLAY_OPERATION
    pub flagged: bool,
    /// The user of the session.
    pub user: &'a str,
    /// The lease of the request.
    pub lease: Option<LeaseName>,
    /// SMB2_DHANDLE_FLAG_PERSISTENT
    pub persistent: bool,
    /// Open.Session is another one. A disconnected open has none.
    pub other_session: bool,
}

/// Whether a CREATE gets the open that it has made before. [MS-SMB2] 3.3.5.9, 3.3.5.9.10.
///
/// # Errors
/// STATUS_DUPLICATE_OBJECTID for a request that is not marked as sent again, or comes on another session;
/// STATUS_ACCESS_DENIED for another user or lease; STATUS_INVALID_PARAMETER when the open is persistent and the request does
/// not say so.
pub fn check_replay(known: &Known<'_>, asked: &Replay<'_>) -> Result<(), NtStatus> {
    if !asked.flagged {
        return Err(NtStatus::DUPLICATE_OBJECTID);
    }
    let key = |lease: Option<LeaseName>| lease.map(|lease| lease.key);
    // An oplock instead of the lease is let pass: smb2.replay.replay-dhv2-lease-oplock shows it of Windows.
    let other_lease = asked.lease.is_some() && key(asked.lease) != key(known.lease);
    if known.owner != asked.user || other_lease {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if asked.other_session {
        return Err(NtStatus::DUPLICATE_OBJECTID);
    }
    let is_persistent = known.durability.is_some_and(|durability| durability.kind == Kind::Persistent);
    if is_persistent && !asked.persistent {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

/// AppInstanceVersionHigh and AppInstanceVersionLow.
pub type AppInstanceVersion = (u64, u64);

/// Whether an application that opens a file again on another client takes it from its earlier instance.
/// [MS-SMB2] 3.3.5.9.13. What has no version yields to everything; below SMB 3.1.1 there are none (`None`).
///
/// # Errors
/// STATUS_FILE_FORCED_CLOSED when the earlier instance is of the same or a later version.
pub fn check_app_instance(
    known: Option<AppInstanceVersion>,
    asked: Option<AppInstanceVersion>,
) -> Result<(), NtStatus> {
    match (known, asked) {
        (Some(known), Some(asked)) if known < asked => Ok(()),
        (Some(_), _) => Err(NtStatus::FILE_FORCED_CLOSED),
        (None, _) => Ok(()),
    }
}
