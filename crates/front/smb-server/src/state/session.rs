//! Session: a user on a client, with the user's tree connects and opens. [MS-SMB2] 3.3.1.8.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use share::Share;
use smb_proto::channel::Channel;
use smb_proto::open::OpenTable;
use smb_proto::session::BindingRefusal;
use smb_wire::{FileId, NtStatus};

use crate::config::{Interface, Limits};
use crate::endpoint::Endpoint;
use crate::login::Login;
use crate::report::{self, InterfacesAsked, RefusedBinding};
use crate::signal::Signal;
use crate::state::durable::DurableOpens;
use crate::state::open::{Grant, Open};
use crate::status::Failure;
use crate::tree::Tree;

/// A channel over which nothing has arrived for this long may give way to a new one.
const SILENT: Duration = Duration::from_secs(5);
/// Within this time, no more channels give way than the session may have.
const GAVE_WAY_WINDOW: Duration = Duration::from_secs(60);

/// A session. Its channels may live on several shards, so everything that changes is behind locks. None of the locks is
/// held across an await or a call of a share.
#[derive(Debug)]
pub(crate) struct Session {
    /// Session.SessionId
    pub(crate) id: u64,
    /// Guards the protocol's state and the login.
    pub(crate) state: Mutex<SessionState>,
    /// Session.TreeConnectTable
    trees: Mutex<Trees>,
    /// Session.OpenTable
    opens: Mutex<OpenTable<Arc<Open>>>,
    /// Set when the session ends.
    pub(crate) ended: Signal,
}

/// The state that changes as a session authenticates; guarded by [`Session::state`].
#[derive(Debug)]
pub(crate) struct SessionState {
    /// The rules of the protocol.
    pub(crate) rules: smb_proto::session::Session,
    /// The user who has logged on; `None` before the first successful authentication.
    pub(crate) login: Option<Arc<Login>>,
    /// The connections of the channels, oldest first.
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    /// When channels have given way to others, during the last [`GAVE_WAY_WINDOW`].
    gave_way: Vec<Instant>,
    /// The interfaces that were reported to the client.
    pub(crate) interfaces_asked: Option<InterfacesAsked>,
    /// Bindings that were refused, one entry for each reason.
    pub(crate) refused_bindings: Vec<RefusedBinding>,
}

#[derive(Debug)]
struct Trees {
    by_id: HashMap<u32, Arc<Tree>>,
    next: u32,
    trees_max: usize,
}

impl SessionState {
    /// Tells each channel whether it is the only one, after their number has changed.
    fn count_channels(&self) {
        let several = self.endpoints.len() > 1;
        self.endpoints.iter().for_each(|endpoint| endpoint.set_one_of_several(several));
    }

    /// Removes the channel of this connection. Returns true if no channel is left.
    pub(crate) fn remove_channel(&mut self, connection: u64) -> bool {
        self.rules.channels.remove(connection);
        self.endpoints.retain(|endpoint| endpoint.connection != connection);
        self.count_channels();
        self.rules.channels.is_empty()
    }

    /// At the limit, makes a channel to the same address of the server as a new one give way to it, if nothing has
    /// arrived over it for [`SILENT`]. A channel from the client address of the new one is preferred. The client has
    /// most likely lost the old channel, and its TCP need not report that: Linux drops unsent data of closed sockets of
    /// its SMB client, and continues to acknowledge for them.
    ///
    /// A client that wants more channels than it may have would push its own idle ones out, in a circle. So no more
    /// channels give way in a minute than the session may have.
    fn make_room(&mut self, newcomer: &Endpoint) {
        if !self.rules.channels.is_full() {
            return;
        }
        self.gave_way.retain(|at| at.elapsed() < GAVE_WAY_WINDOW);
        if self.gave_way.len() >= self.rules.channels.channels_max() {
            return;
        }
        let silent = self
            .endpoints
            .iter()
            .filter(|known| known.peer.local.ip() == newcomer.peer.local.ip() && known.silence() >= SILENT);
        let lost = silent
            .max_by_key(|known| (known.peer.address.ip() == newcomer.peer.address.ip(), known.silence()));
        if let Some(lost) = lost.cloned() {
            tracing::info!(peer = %lost.peer.address, by = %newcomer.peer.address, "a silent channel gives way");
            self.remove_channel(lost.connection);
            self.gave_way.push(Instant::now());
            lost.close();
        }
    }
}

impl Session {
    /// A session whose first SESSION_SETUP has arrived.
    pub(crate) fn new(rules: smb_proto::session::Session, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            id: rules.id,
            state: Mutex::new(SessionState {
                rules,
                login: None,
                endpoints: Vec::new(),
                gave_way: Vec::new(),
                interfaces_asked: None,
                refused_bindings: Vec::new(),
            }),
            trees: Mutex::new(Trees {
                by_id: HashMap::new(),
                next: 0,
                trees_max: limits.trees_per_session_max,
            }),
            opens: Mutex::new(OpenTable::new(limits.opens_per_session_max)),
            ended: Signal::default(),
        })
    }

    /// The user who has logged on.
    pub(crate) fn login(&self) -> Option<Arc<Login>> {
        self.state.lock().login.clone()
    }

    /// Adds a further channel on the connection of this endpoint. A channel that was lost may give way to it.
    ///
    /// # Errors
    /// The session has ended, or has as many channels as it may have.
    pub(crate) fn bind(
        &self,
        channel: Channel,
        endpoint: &Arc<Endpoint>,
    ) -> Result<Arc<Channel>, BindingRefusal> {
        let mut state = self.state.lock();
        if self.ended.is_set() {
            return Err(BindingRefusal::Ended);
        }
        state.make_room(endpoint);
        let channel = state.rules.bind(channel)?;
        state.endpoints.push(Arc::clone(endpoint));
        state.count_channels();
        Ok(channel)
    }

    /// The number of channels.
    pub(crate) fn channel_count(&self) -> usize {
        self.state.lock().rules.channels.len()
    }

    /// Notes for the administrator that the client has asked for the server's interfaces and received these.
    pub(crate) fn interfaces_told(&self, told: &[Interface]) {
        self.state.lock().interfaces_asked = Some(InterfacesAsked {
            at: SystemTime::now(),
            addresses: told.len(),
            rss_addresses: told.iter().filter(|told| told.rss).count(),
        });
    }

    /// Notes for the administrator that a binding was refused. Returns how often that happened for this reason: Linux
    /// retries without a pause.
    pub(crate) fn binding_refused(&self, reason: BindingRefusal) -> u64 {
        let refused = &mut self.state.lock().refused_bindings;
        let last = SystemTime::now();
        if let Some(known) = refused.iter_mut().find(|refused| refused.reason == reason) {
            (known.count, known.last) = (known.count.saturating_add(1), last);
            return known.count;
        }
        refused.push(RefusedBinding { reason, count: 1, last });
        1
    }

    /// Adds a tree connect, which `make` makes for the new TreeId.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES at the limit.
    pub(crate) fn add_tree(&self, make: impl FnOnce(u32) -> Tree) -> Result<Arc<Tree>, Failure> {
        let mut trees = self.trees.lock();
        if trees.by_id.len() >= trees.trees_max {
            return Err(NtStatus::INSUFFICIENT_RESOURCES.into());
        }
        loop {
            trees.next = trees.next.wrapping_add(1);
            let id = trees.next;
            // 0 is not a valid TreeId, and all ones stands for no particular tree connect.
            if id != 0 && id != u32::MAX && !trees.by_id.contains_key(&id) {
                let tree = Arc::new(make(id));
                trees.by_id.insert(id, Arc::clone(&tree));
                return Ok(tree);
            }
        }
    }

    /// The tree connect with this TreeId.
    pub(crate) fn tree(&self, id: u32) -> Option<Arc<Tree>> {
        self.trees.lock().by_id.get(&id).cloned()
    }

    /// Ends a tree connect and closes what was opened through it. Returns false if it had already ended.
    pub(crate) async fn disconnect_tree(&self, tree: &Arc<Tree>) -> bool {
        if self.trees.lock().by_id.remove(&tree.id).is_none() {
            return false;
        }
        tree.end();
        let opens: Vec<Arc<Open>> = {
            let mut table = self.opens.lock();
            let ids: Vec<FileId> =
                table.iter().filter(|(_, open)| Arc::ptr_eq(&open.tree, tree)).map(|(id, _)| id).collect();
            ids.into_iter().filter_map(|id| table.remove(id)).collect()
        };
        close_all(opens).await;
        true
    }

    /// Ends the tree connects to this share.
    pub(crate) async fn disconnect_trees_to(&self, share: &Arc<Share>) {
        let trees: Vec<Arc<Tree>> =
            self.trees.lock().by_id.values().filter(|tree| tree.leads_to(share)).cloned().collect();
        for tree in trees {
            self.disconnect_tree(&tree).await;
        }
    }

    /// Ends the tree connects to this share that its rules would now admit differently.
    pub(crate) async fn reconsider_trees_to(&self, share: &Arc<Share>) {
        let Some(login) = self.login() else { return };
        let is_over = |tree: &&Arc<Tree>| tree.leads_to(share) && !tree.admitted.is_let_in(share, &login);
        let trees: Vec<Arc<Tree>> = self.trees.lock().by_id.values().filter(is_over).cloned().collect();
        for tree in trees {
            self.disconnect_tree(&tree).await;
        }
    }

    /// Enters an open.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES at the limit, STATUS_USER_SESSION_DELETED or STATUS_NETWORK_NAME_DELETED when the
    /// session or the tree connect has ended meanwhile.
    pub(crate) fn add_open(&self, open: &Arc<Open>) -> Result<(), Failure> {
        let mut opens = self.opens.lock();
        if self.ended.is_set() {
            return Err(NtStatus::USER_SESSION_DELETED.into());
        }
        if open.tree.has_ended() {
            return Err(NtStatus::NETWORK_NAME_DELETED.into());
        }
        opens.insert(open.id, Arc::clone(open)).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES.into())
    }

    /// The open with this identifier.
    pub(crate) fn open(&self, id: FileId) -> Option<Arc<Open>> {
        self.opens.lock().find(id).cloned()
    }

    /// Sends oplock breaks again, over another connection, that were sent over a connection that has ended.
    pub(crate) fn resend_breaks(&self, connection: u64) {
        for open in self.all_opens() {
            if let Some(Grant::Oplock(oplock)) = &*open.grant.lock() {
                oplock.resend(connection);
            }
        }
    }

    /// All opens of the session.
    pub(crate) fn all_opens(&self) -> Vec<Arc<Open>> {
        self.opens.lock().iter().map(|(_, open)| Arc::clone(open)).collect()
    }

    /// The connections of the session's channels, oldest first.
    pub(crate) fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        self.state.lock().endpoints.clone()
    }

    /// Removes an open from the table; the caller closes it.
    pub(crate) fn remove_open(&self, id: FileId) -> Option<Arc<Open>> {
        self.opens.lock().remove(id)
    }

    /// The session as an administrator sees it; `None` until a user has logged on.
    pub(crate) fn report(&self) -> Option<report::Session> {
        let (trees, opens) = (self.trees.lock().by_id.len(), self.opens.lock().len());
        let state = self.state.lock();
        let (rules, login) = (&state.rules, state.login.as_ref()?);
        Some(report::Session {
            id: self.id,
            user: login.user.clone(),
            principal: login.principal,
            since: login.since,
            mechanism: login.mechanism,
            expires: login.expires,
            client_guid: rules.client_guid.0,
            dialect: rules.dialect,
            signing_algorithm: rules.signing_algorithm,
            signing_required: login.signing_required,
            cipher: login.crypto.as_ref().and(rules.cipher),
            encryption_required: login.encrypt_data,
            client_multichannel: rules.client_multichannel,
            multichannel: rules.multichannel,
            channels_max: rules.channels.channels_max(),
            channels: state.endpoints.iter().map(|endpoint| endpoint.report()).collect(),
            interfaces_asked: state.interfaces_asked,
            refused_bindings: state.refused_bindings.clone(),
            trees,
            opens,
        })
    }

    /// Ends the session: nothing more is served, and its opens are kept if they outlive the session, and closed
    /// otherwise (3.3.5.6, 3.3.7.1). Ending it twice has no effect.
    pub(crate) async fn end(&self, durable: &DurableOpens) {
        let opens: Vec<Arc<Open>> = {
            let mut table = self.opens.lock();
            self.ended.set();
            table.drain().collect()
        };
        self.trees.lock().by_id.clear();
        let now = Instant::now();
        close_all(opens.into_iter().filter(|open| !durable.keep(open, now)).collect()).await;
    }
}

async fn close_all(opens: Vec<Arc<Open>>) {
    for open in opens {
        if let Err(failure) = open.close_unasked().await {
            tracing::warn!(path = open.path, status = %failure.status, "closing for a client that has gone");
        }
    }
}
