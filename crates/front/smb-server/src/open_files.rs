//! What clients have open, for administrators, and its end on their order.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use share::{OpenKey, ShareId};

use crate::logged::Ended;
use crate::report::OpenFile;
use crate::server::Server;
use crate::state::open::Open;
use crate::state::session::Session;

impl Server {
    /// The files and directories that clients have open, including those that are kept for clients without a connection.
    #[must_use]
    pub fn open_files(&self) -> Vec<OpenFile> {
        let of_sessions = self.all_sessions();
        let of_sessions = of_sessions.iter().flat_map(|session| of_session(session));
        of_sessions.chain(self.durable.all_disconnected().iter().filter_map(kept)).collect()
    }

    /// [MS-SMB2] 3.3.4.17: closes an open of a file, as its client would. Returns false if no client has such an open.
    pub async fn close_file(&self, share: ShareId, key: OpenKey) -> bool {
        for session in self.all_sessions() {
            let found = session.all_opens().into_iter().find(|open| open.is_of(share, key));
            // The client may close it at the same time.
            let Some(open) = found.and_then(|open| session.remove_open(open.id)) else { continue };
            if let Err(failure) = open.close_unasked().await {
                tracing::debug!("{} was closed but not deleted: {}", open.path, failure.status);
            }
            return true;
        }
        let is_kept = self.durable.all_disconnected().iter().any(|open| open.is_of(share, key));
        self.durable.close_disconnected_if(|open| open.is_of(share, key)).await;
        is_kept
    }

    /// [MS-SMB2] 3.3.4.12: ends the sessions that `is_meant` selects by their identifier and the addresses of their clients.
    /// Their opens are closed, including those that would outlive a session, and their connections end. Returns the number
    /// of sessions.
    pub async fn end_sessions(&self, is_meant: impl Fn(u64, &[IpAddr]) -> bool) -> usize {
        let mut ended = 0;
        for session in self.all_sessions() {
            let endpoints = session.endpoints();
            let addresses: Vec<IpAddr> =
                endpoints.iter().map(|endpoint| endpoint.peer.address.ip().to_canonical()).collect();
            if session.login().is_none() || !is_meant(session.id, &addresses) {
                continue;
            }
            let opens: HashSet<u64> = session.all_opens().iter().map(|open| open.id.persistent).collect();
            self.remove_session(session.id, Ended::Administered);
            session.end(&self.durable).await;
            self.durable.close_disconnected_if(|open| opens.contains(&open.id.persistent)).await;
            endpoints.iter().for_each(|endpoint| endpoint.close());
            ended += 1;
        }
        ended
    }
}

impl Open {
    /// Whether this is an open of the share, and has this number there.
    fn is_of(&self, of: ShareId, key: OpenKey) -> bool {
        self.on_share().is_some_and(|(share, open)| share.id() == of && open.key() == key)
    }

    fn report(&self, session: Option<u64>, user: &str, client: Option<IpAddr>) -> Option<OpenFile> {
        let (share, open) = self.on_share()?;
        Some(OpenFile {
            session,
            user: user.to_owned(),
            client,
            share: Arc::clone(share),
            open: Arc::clone(open),
            name: self.path.clone(),
            is_directory: self.is_directory,
        })
    }
}

fn of_session(session: &Session) -> Vec<OpenFile> {
    let Some(login) = session.login() else { return Vec::new() };
    let client = session.endpoints().first().map(|endpoint| endpoint.peer.address.ip().to_canonical());
    let opens = session.all_opens();
    opens.iter().filter_map(|open| open.report(Some(session.id), &login.user, client)).collect()
}

/// An open that is kept for a client without a connection.
fn kept(open: &Arc<Open>) -> Option<OpenFile> {
    let owner = open.durable.get().map_or("", |durable| &durable.origin.owner);
    open.report(None, owner, None)
}
