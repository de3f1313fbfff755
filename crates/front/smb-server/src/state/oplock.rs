//! Oplocks: what the client may cache under one open. [MS-SMB2] 3.3.1.10 (Open.OplockLevel), 3.3.4.6.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use share::{Break, Caching, GrantHolder, Holder, Share};
use smb_wire::FileId;
use smb_wire::create::OplockLevel;
use smb_wire::oplock_break::{Notification, OplockBreak};

use crate::state::durable::DurableOpens;
use crate::state::session::Session;

/// The caching that a level allows.
pub(crate) fn caching_of(level: OplockLevel) -> Caching {
    match level {
        OplockLevel::LevelII => Caching::READ,
        OplockLevel::Exclusive => Caching::READ | Caching::WRITE,
        OplockLevel::Batch => Caching::all(),
        OplockLevel::None | OplockLevel::Lease | OplockLevel::Unknown(_) => Caching::empty(),
    }
}

/// The level that allows this caching.
pub(crate) fn level_of(caching: Caching) -> OplockLevel {
    if caching.contains(Caching::WRITE | Caching::HANDLE) {
        OplockLevel::Batch
    } else if caching.contains(Caching::WRITE) {
        OplockLevel::Exclusive
    } else if caching.contains(Caching::READ) {
        OplockLevel::LevelII
    } else {
        OplockLevel::None
    }
}

/// The file on which a grant is requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrantTarget<'a> {
    /// The share.
    pub(crate) share: &'a Arc<Share>,
    /// The number of the file.
    pub(crate) file: storage::ObjectId,
    /// Whether the file is a directory.
    pub(crate) is_directory: bool,
    /// Whether messages about the share are encrypted.
    pub(crate) share_encrypts: bool,
    /// The opens whose clients have no connection.
    pub(crate) durable: &'a Arc<DurableOpens>,
}

/// The outcome of sending a notification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    /// Whether a connection has accepted it.
    pub(crate) sent: bool,
    /// Whether the client knows of the grant.
    pub(crate) is_heard: bool,
}

/// The file of an existing grant, in a form that can be stored.
pub(crate) struct Site {
    /// The share, which refers to the holder of the grant.
    share: Weak<Share>,
    /// The number of the file.
    pub(crate) file: storage::ObjectId,
    /// Whether the file is a directory.
    pub(crate) is_directory: bool,
    /// Whether messages about the share are encrypted.
    pub(crate) share_encrypts: bool,
    /// The opens whose clients have no connection.
    durable: Weak<DurableOpens>,
}

impl Site {
    /// The site for a grant at this place.
    pub(crate) fn new(place: GrantTarget<'_>) -> Self {
        Self {
            share: Arc::downgrade(place.share),
            file: place.file,
            is_directory: place.is_directory,
            share_encrypts: place.share_encrypts,
            durable: Arc::downgrade(place.durable),
        }
    }

    /// The share; None: it is gone, and the grant with it.
    pub(crate) fn share(&self) -> Option<Arc<Share>> {
        self.share.upgrade()
    }

    /// Whether this is the place.
    pub(crate) fn is_at(&self, place: GrantTarget<'_>) -> bool {
        std::ptr::eq(self.share.as_ptr(), Arc::as_ptr(place.share)) && self.file == place.file
    }

    /// Has the share carry out a break without the holder.
    pub(crate) fn give_up(&self, holder: Holder) {
        if let Some(share) = self.share() {
            share.give_up(self.file, holder);
        }
    }

    /// Settles a break that was sent, or that no channel accepted. 3.3.4.6: "the server MUST complete the oplock break
    /// ... with SMB2_OPLOCK_LEVEL_NONE", 3.3.4.7; unless the break is left until the client is back, or until the opens
    /// that depend on the grant are closed. `acknowledged` is called if the client has nothing to acknowledge, or can
    /// no longer do so.
    ///
    /// A client that has never heard of the grant is not asked: no acknowledgment would come.
    pub(crate) fn settle(&self, told: &Break, delivery: Delivery, acknowledged: impl FnOnce()) {
        let Delivery { sent, is_heard } = delivery;
        let cannot_be_told = |table: Arc<DurableOpens>| {
            self.share().is_some_and(|share| table.cannot_be_told(&share, told.holder))
        };
        if !told.ack_required {
            acknowledged();
        } else if !is_heard || (!sent && !self.durable.upgrade().is_some_and(cannot_be_told)) {
            acknowledged();
            self.give_up(told.holder);
        }
    }
}

/// The oplock of an open, as the share sees it.
pub(crate) struct Oplock {
    site: Site,
    state: Mutex<MutableOplock>,
}

/// Shows only the file in a log, because the oplock reaches the whole server.
impl std::fmt::Debug for Oplock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Oplock").field("file", &self.site.file).finish_non_exhaustive()
    }
}

/// The state of an oplock that changes; guarded by [`Oplock::state`].
#[derive(Debug)]
struct MutableOplock {
    /// Open.FileId
    id: FileId,
    /// Open.Session
    session: Weak<Session>,
    /// The break that the client has to acknowledge.
    told: Option<PendingOplockBreak>,
    /// Whether the reply that grants the oplock was never sent. If so, the client cannot acknowledge a break.
    is_unheard: bool,
}

/// A break that the client has to acknowledge.
#[derive(Debug, Clone, Copy)]
struct PendingOplockBreak {
    level: OplockLevel,
    /// The connection over which it was sent, if it was.
    connection: Option<u64>,
}

impl Oplock {
    /// The oplock that an open with this identifier may get.
    pub(crate) fn new(id: FileId, session: Weak<Session>, place: &GrantTarget<'_>) -> Arc<Self> {
        let state = MutableOplock { id, session, told: None, is_unheard: false };
        Arc::new(Self { site: Site::new(*place), state: Mutex::new(state) })
    }

    /// Notes that the client has acknowledged a break.
    pub(crate) fn acknowledged(&self) {
        self.state.lock().told = None;
    }

    /// Notes that the reply that grants the oplock will never be sent: a break is carried out without the client,
    /// unless the client asks for the reply again.
    pub(crate) fn note_unheard(&self, holder: Holder) {
        let is_told = {
            let mut state = self.state.lock();
            state.is_unheard = true;
            state.told.is_some()
        };
        if is_told {
            self.acknowledged();
            self.site.give_up(holder);
        }
    }

    /// Notes that the reply that grants the oplock is sent (again).
    pub(crate) fn note_heard(&self) {
        self.state.lock().is_unheard = false;
    }

    /// Moves the open to another session, which receives breaks from now on, including one that has not been
    /// acknowledged.
    pub(crate) fn move_to(&self, id: FileId, session: &Arc<Session>) {
        let told = {
            let mut state = self.state.lock();
            state.id = id;
            state.session = Arc::downgrade(session);
            state.told
        };
        if let Some(told) = told {
            self.tell(told.level);
        }
    }

    /// Sends a break again that was sent over a connection that has ended.
    pub(crate) fn resend(&self, connection: u64) {
        let told = self.state.lock().told.filter(|told| told.connection == Some(connection));
        if let Some(told) = told {
            self.tell(told.level);
        }
    }

    /// Sends a break over the first channel that accepts it. Returns false when there is none: then the session in
    /// which the open continues gets it.
    fn tell(&self, level: OplockLevel) -> bool {
        loop {
            let (file_id, session) = {
                let mut state = self.state.lock();
                state.told = Some(PendingOplockBreak { level, connection: None });
                (state.id, state.session.clone())
            };
            let notification = Notification::Oplock(OplockBreak { oplock_level: level, file_id });
            let sent = session.upgrade().and_then(|s| s.notify(&notification, self.site.share_encrypts).ok());
            let mut state = self.state.lock();
            match sent {
                None if !state.session.ptr_eq(&session) => continue,
                None => return false,
                Some(endpoint) => {
                    // Unless the client has acknowledged it at once.
                    let Some(told) = &mut state.told else { return true };
                    told.connection = Some(endpoint.connection);
                    if endpoint.ended.is_set() {
                        // The connection ended before its number was stored, so no other code sends the break again.
                        continue;
                    }
                    return true;
                }
            }
        }
    }
}

impl GrantHolder for Oplock {
    fn shrink(&self, told: &Break) {
        let sent = self.tell(level_of(told.to));
        // Checked after sending: the code that sets this flag then looks for a break that was sent.
        let is_heard = !self.state.lock().is_unheard;
        self.site.settle(told, Delivery { sent, is_heard }, || self.acknowledged());
    }

    fn revoked(&self, _had: Caching) {
        self.acknowledged();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_what_they_cache() {
        for level in [OplockLevel::None, OplockLevel::LevelII, OplockLevel::Exclusive, OplockLevel::Batch] {
            assert_eq!(level_of(caching_of(level)), level);
        }
        assert_eq!(caching_of(OplockLevel::Lease), Caching::empty());
    }
}
