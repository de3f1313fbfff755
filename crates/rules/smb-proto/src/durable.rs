//! Opens that outlive their connection: which opens do, for how long, and who may reclaim them. [MS-SMB2] 3.3.5.9.6,
//! 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12, 3.3.5.9.13, 3.3.5.15.9, 3.3.7.1.
//!
//! A *durable* open is kept as long as its client may cache the handle after the application has closed it: while the
//! open has a batch oplock, or a lease that includes handle caching. A break of that caching ends the open. A
//! *resilient* open is kept whatever is cached, and a *persistent* open also outlives the server.

use std::time::Duration;

use smb_wire::{AccessMask, Guid, NtStatus, Sid};

#[cfg(test)]
mod tests;

/// The limits of what FSCTL_LMR_REQUEST_RESILIENCY and DH2Q may ask for, and the values for clients that leave the time
/// to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a durable open of version 1, which cannot ask for a time (3.3.5.9.6: "an implementation specific value").
    pub durable: Duration,
    /// For a durable or persistent open of version 2 that asks for no time.
    pub durable_v2: Duration,
    /// The longest time for an open of version 2: 300 seconds in 3.3.5.9.10.
    pub durable_v2_max: Duration,
    /// For a resilient open that asks for no time.
    pub resilient: Duration,
    /// MaxResiliencyTimeout: a request for more fails.
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

/// The kind of open that outlives its connection.
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
    /// The kind of open.
    pub kind: Kind,
    /// Open.DurableOpenTimeout, Open.ResiliencyTimeout: how long the open is kept after the connection is lost.
    pub timeout: Duration,
}

/// The create contexts for durable opens that came with one CREATE.
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
    /// Checks that the contexts are compatible: a reconnect of version 1 may come with a request of version 1;
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
        /// The time in milliseconds; 0 leaves it to the server.
        timeout_ms: u32,
        /// SMB2_DHANDLE_FLAG_PERSISTENT
        persistent: bool,
    },
}

/// How much of what it asks for a new open gets. [MS-SMB2] 3.3.5.9.6, 3.3.5.9.10.
///
/// `keeps_handle`: the open was granted a batch oplock, or a lease with handle caching. `may_persist`: the share is
/// continuously available, and the connection has negotiated persistent handles. Directories are never durable.
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

/// The effect of FSCTL_LMR_REQUEST_RESILIENCY on an open. [MS-SMB2] 3.3.5.15.9. A persistent open stays persistent: it
/// already has resiliency.
///
/// # Errors
/// STATUS_INVALID_PARAMETER if the request asks for more time than is allowed.
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
    /// Whether the open would outlive the loss of its connection now. [MS-SMB2] 3.3.7.1.
    ///
    /// `keeps_handle`: the open has a batch oplock, or a lease with handle caching, that is not being broken.
    pub fn survives(self, keeps_handle: bool) -> bool {
        self.kind != Kind::Durable || keeps_handle
    }
}

/// Whether a client may repeat the CREATE with SMB2_FLAGS_REPLAY_OPERATION to get the open that it made:
/// Open.IsReplayEligible of a new open. [MS-SMB2] 3.3.5.9.10.
pub fn is_replay_eligible(kind: Option<Kind>, is_directory: bool, granted: AccessMask) -> bool {
    let touches_data = AccessMask::READ_DATA
        | AccessMask::EXECUTE
        | AccessMask::WRITE_DATA
        | AccessMask::APPEND_DATA
        | AccessMask::DELETE;
    kind == Some(Kind::Persistent) || (!is_directory && granted.intersects(touches_data))
}

/// Identifies a lease, as far as a client must name it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Lease.LeaseKey
    pub key: [u8; 16],
    /// Lease.Version: 1 or 2
    pub version: u8,
}

/// Who has made an open, or asks for it: the user of a security context. [MS-SMB2] 3.3.1.10: "Open.DurableOwner: A security
/// descriptor that holds the original opener of the open."
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The user's name
    pub name: &'a str,
    /// The user's SID, which no other user has or will have, whatever the names and numbers
    pub sid: Option<Sid>,
}

impl User<'_> {
    /// Whether both are the same user. Names decide only where a SID is missing: in a server without a state directory, and of
    /// opens that a version before 0.2.0 has written down.
    fn is(&self, other: &Self) -> bool {
        match (self.sid, other.sid) {
            (Some(own), Some(other)) => own == other,
            _ => self.name == other.name,
        }
    }
}

/// What the server knows of an open that a client wants to reclaim.
#[derive(Clone, Copy, Debug)]
pub struct KnownOpen<'a> {
    /// How the open outlives its connection, if it does.
    pub durability: Option<Durability>,
    /// Open.CreateGuid; zero without one
    pub create_guid: Guid,
    /// Open.ClientGuid
    pub client_guid: Guid,
    /// Open.DurableOwner
    pub owner: User<'a>,
    /// Open.Lease
    pub lease: Option<LeaseName>,
    /// The open has a batch oplock, or a lease with handle caching.
    pub keeps_handle: bool,
    /// Open.Lease.FileDeleteOnClose
    pub delete_on_close: bool,
}

/// How a client asks for an open that it had. The rest of the request does not matter.
#[derive(Clone, Copy, Debug)]
pub struct Reconnect<'a> {
    /// Version 2 names the CREATE that made the open, and says whether the open was persistent.
    pub v2: Option<ReconnectV2>,
    /// Connection.ClientGuid
    pub client_guid: Guid,
    /// The user of the session.
    pub user: User<'a>,
    /// The lease of the request.
    pub lease: Option<LeaseName>,
    /// Whether the request gives the file's name.
    pub names_file: bool,
}

/// The contents of a reconnect of version 2.
#[derive(Clone, Copy, Debug)]
pub struct ReconnectV2 {
    /// CreateGuid
    pub create_guid: Guid,
    /// SMB2_DHANDLE_FLAG_PERSISTENT
    pub persistent: bool,
}

/// Checks whether a client may reclaim a disconnected open. [MS-SMB2] 3.3.5.9.7, 3.3.5.9.12. The caller checks that the
/// open is disconnected (Open.Session is NULL); if not, the status is STATUS_OBJECT_NAME_NOT_FOUND.
///
/// # Errors
/// STATUS_OBJECT_NAME_NOT_FOUND when this is not the open that the client means; STATUS_INVALID_PARAMETER when the
/// request names another file (only with a lease: otherwise the name is ignored), or when the open is not persistent;
/// STATUS_ACCESS_DENIED for another user.
pub fn check_reconnect(known: &KnownOpen<'_>, asked: &Reconnect<'_>) -> Result<(), NtStatus> {
    let durability = known.durability.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let is_persistent = durability.kind == Kind::Persistent;
    let other_client = known.lease.is_some() && known.client_guid != asked.client_guid;
    let other_create = asked.v2.is_some_and(|v2| v2.create_guid != known.create_guid);
    let forgets_persistence = is_persistent && asked.v2.is_some_and(|v2| !v2.persistent);
    // A lease with another key or version, a missing lease, or an unexpected one.
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
    if known.owner.is(&asked.user) { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) }
}

/// A CREATE with the CreateGuid of an earlier CREATE that has made an open.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// SMB2_FLAGS_REPLAY_OPERATION
    pub flagged: bool,
    /// The user of the session.
    pub user: User<'a>,
    /// The lease of the request.
    pub lease: Option<LeaseName>,
    /// SMB2_DHANDLE_FLAG_PERSISTENT
    pub persistent: bool,
    /// Open.Session is another session. A disconnected open has none.
    pub other_session: bool,
}

/// Checks whether a CREATE gets the open that the client made before. [MS-SMB2] 3.3.5.9, 3.3.5.9.10.
///
/// # Errors
/// STATUS_DUPLICATE_OBJECTID for a request that is not marked as a replay, or comes on another session;
/// STATUS_ACCESS_DENIED for another user or lease; STATUS_INVALID_PARAMETER when the open is persistent and the request
/// does not say so.
pub fn check_replay(known: &KnownOpen<'_>, asked: &Replay<'_>) -> Result<(), NtStatus> {
    if !asked.flagged {
        return Err(NtStatus::DUPLICATE_OBJECTID);
    }
    let key = |lease: Option<LeaseName>| lease.map(|lease| lease.key);
    // A request with an oplock instead of the lease is accepted: smb2.replay.replay-dhv2-lease-oplock shows that
    // Windows does that.
    let other_lease = asked.lease.is_some() && key(asked.lease) != key(known.lease);
    if !known.owner.is(&asked.user) || other_lease {
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

/// Whether an application that opens a file again on another client takes the file from its earlier instance. [MS-SMB2]
/// 3.3.5.9.13. An instance without a version yields to any other; below SMB 3.1.1 there are no versions (`None`).
///
/// # Errors
/// STATUS_FILE_FORCED_CLOSED when the earlier instance has the same or a later version.
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
