//! What a gateway is told about vservers: to take its place among gateways, to serve one, to end it here.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::{NewListeners, Term};
use parking_lot::Mutex;
use state::ServerRecords;
use state::cluster::{Begun, Claim, Followed, Member, Owner, Ownership};

use crate::administration::Administration;
use crate::lent::Lent;
use crate::membership::Membership;
use crate::name_service::System;
use crate::names::NameLookup;
use crate::of_cluster::OfCluster;
use crate::problem::{Cause, Problem, Result, serving};
use crate::reach::{Reach, Reached};
use crate::settings::MovedShare;
use crate::ticket_keys::ServerKeys;
use crate::vserver::{Own, Vserver};
use crate::vserver_shares::{VserverOpener, VserverShare};
use crate::vservers::{Served, Vservers, check_vserver_name, ips, lost};
use crate::{cephfs, moved};

/// A vserver that a gateway is to serve.
#[derive(Debug)]
pub struct NewVserver {
    /// Its name, which [`check_vserver_name`] accepts.
    pub name: String,
    /// Its shares.
    pub shares: Vec<VserverShare>,
    /// Shares that come to it later. It is served without them.
    pub coming: Vec<VserverShare>,
    /// Where clients find it.
    pub reach: Reach,
}

/// What a vserver is served with.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) lent: Arc<Lent>,
    pub(crate) keys: ServerKeys,
    /// Its shares, and those that have gone to others, if others could change them until it was owned.
    pub(crate) shares: Option<(Vec<VserverShare>, Vec<MovedShare>)>,
}

/// What a gateway has for vservers: what they have in common, their list, and its place among other gateways.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) vservers: Arc<Vservers>,
    /// Guards the place among others; None: it has none.
    pub(crate) membership: Mutex<Option<Membership>>,
    /// What the servers of this process have in common.
    pub(crate) lent: Arc<Lent>,
    /// The same for vservers of a cluster, whose accounts are its own.
    pub(crate) of_cluster: OfCluster,
    pub(crate) administration: Arc<Administration>,
    pub(crate) listeners: NewListeners,
    /// By which the storage knows this gateway.
    pub(crate) session: String,
}

impl Host {
    pub(crate) fn join(&self, member: Arc<Member>) -> Result<()> {
        let mut membership = self.membership.lock();
        if membership.as_ref().is_some_and(Membership::holds) {
            return Err(Problem::new(Cause::Settings, "this gateway has a place among others already", ""));
        }
        if let Some(lost) = membership.take() {
            self.vservers.abandon_all();
            drop(lost);
        }
        let begun = Membership::begin(member, Arc::clone(&self.vservers));
        *membership = Some(begun.map_err(serving("cannot start a thread"))?);
        Ok(())
    }

    /// Whether it has a place among others.
    pub(crate) fn has_place(&self) -> bool {
        self.membership.lock().as_ref().is_some_and(Membership::holds)
    }

    /// Serves a vserver. `given` says what it is served with; it is asked when the vserver is owned, because it may wait: what was given
    /// under a place that is lost meanwhile is not served under another one.
    pub(crate) fn serve_vserver(&self, new: NewVserver, given: impl FnOnce() -> Result<Given>) -> Result<()> {
        check_vserver_name(&new.name).map_err(|why| Problem::new(Cause::Settings, why, ""))?;
        let _alone = self.vservers.alone(&new.name).ok_or_else(|| under_way(&new.name))?;
        let begun = Instant::now();
        let (ownership, member) = self.own(&new.name, is_in_cephfs(&new))?;
        let owned_in = begun.elapsed();
        // It may wait for a metadata server, so nothing is held meanwhile that others need.
        let ended = timed(|| self.end_left_sessions(&ownership, &new));
        let entered = ended.and_then(|((), session)| {
            let phases = Phases { session, ..Phases::default() };
            self.enter_vserver(&ownership, &member, (new, given()?), phases)
        });
        let (sockets, mut phases) = entered.inspect_err(|_| self.try_to_let_go(&ownership))?;
        // Nothing else waits for a name service that does not answer.
        let names = self.vservers.with(ownership.vserver(), |served| served.names.clone());
        if let Some(names) = names {
            names.look_again();
        }
        let listening = self.listen(&ownership, &member, sockets, &mut phases);
        listening.inspect_err(|_| self.take_back(&ownership, &member))?;
        self.tell_phases(&ownership, owned_in, phases);
        let (vserver, epoch) = (ownership.vserver(), ownership.owner().epoch);
        tracing::info!(vserver, epoch, "serving the vserver");
        self.administration.allot_opens();
        Ok(())
    }

    /// Whether this is the place that the gateway has among others now.
    fn has(&self, place: &Arc<Member>) -> bool {
        self.term(place).is_some()
    }

    /// Until when vservers are served under this place. None: the gateway does not have it any more.
    fn term(&self, place: &Arc<Member>) -> Option<Term> {
        let membership = self.membership.lock();
        let now = membership.as_ref().filter(|now| Arc::ptr_eq(&now.member, place) && now.holds());
        now.map(Membership::term)
    }

    /// Has a vserver in the list answer clients, if the place is there still under which it is owned. Whoever loses the place after that
    /// ends what is in the list.
    fn listen(
        &self,
        ownership: &Ownership,
        member: &Arc<Member>,
        NewSockets { smb, nfs }: NewSockets,
        phases: &mut Phases,
    ) -> Result<()> {
        let name = ownership.vserver();
        let term = self.term(member).ok_or_else(|| no_place(name))?;
        let listening = self.vservers.with(name, |served| {
            timed(|| {
                served.vserver.listen(smb.into_iter().map(Into::into).collect(), nfs)?;
                served.raised.announce(move || !term.is_over());
                Ok(())
            })
        });
        let ((), took) = listening.ok_or_else(|| no_place(name))??;
        phases.servers += took;
        ownership.answers().map_err(|error| lost(name, &error))?;
        if !self.vservers.is_served(name) || !self.has(member) {
            return Err(no_place(name));
        }
        Ok(())
    }

    /// Takes a vserver out of the list that cannot be served. Any gateway may have it, unless the place was lost: then another one may
    /// have it already.
    fn take_back(&self, ownership: &Ownership, member: &Arc<Member>) {
        let name = ownership.vserver();
        let Some(Served { vserver, raised, .. }) = self.vservers.take(name) else {
            return self.vservers.note_given_up(name);
        };
        drop(raised);
        if !self.has(member) {
            vserver.abandon();
            return self.vservers.note_given_up(name);
        }
        if !vserver.give_up() {
            self.vservers.note_unfinished(name);
        }
        self.try_to_let_go(ownership);
    }

    fn try_to_let_go(&self, ownership: &Ownership) {
        if let Err(problem) = self.let_go(ownership) {
            tracing::error!("{problem}");
        }
    }

    /// Lets any gateway have a vserver that is not served here. The session that the process before had is struck off if it has ended:
    /// whoever serves the vserver next would end the one in which others are served here.
    ///
    /// # Errors
    /// Those of [`Vservers::let_go`].
    fn let_go(&self, ownership: &Ownership) -> Result<()> {
        if self.administration.ceph().was_mounted()
            && let Err(error) = ownership.own_session_has_ended()
        {
            tracing::warn!("{}", lost(ownership.vserver(), &error));
        }
        self.vservers.let_go(ownership)
    }

    /// The ownership of a vserver that nobody serves, and the place under which it is owned.
    fn own(&self, name: &str, has_session: bool) -> Result<(Arc<Ownership>, Arc<Member>)> {
        let membership = self.membership.lock();
        let held = membership.as_ref().filter(|membership| membership.holds());
        let member = held.map(|membership| Arc::clone(&membership.member)).ok_or_else(|| no_place(name))?;
        drop(membership);
        let is_given_up = self.vservers.take_given_up(name);
        match member.claim(Claim { vserver: name, has_session, is_given_up }) {
            Err(error) => {
                // It may be owned all the same.
                self.vservers.note_given_up(name);
                Err(lost(name, &error))
            }
            Ok(Begun::Owned(ownership)) => Ok((Arc::new(ownership), member)),
            Ok(Begun::By(Owner { gateway, .. })) => {
                let what = format!("the vserver {name} is served by the gateway {gateway}");
                Err(Problem::new(Cause::Silent, what, "That gateway has to end it first."))
            }
        }
    }

    /// Enters a vserver in the list that accepts no connections yet.
    fn enter_vserver(
        &self,
        ownership: &Arc<Ownership>,
        member: &Arc<Member>,
        (mut new, Given { lent, keys, shares }): (NewVserver, Given),
        mut phases: Phases,
    ) -> Result<(NewSockets, Phases)> {
        let _one = self.vservers.beginning.lock();
        let name = ownership.vserver();
        let records = ownership.records().map_err(|error| lost(name, &error))?;
        let (shares, gone) = shares.unwrap_or((new.shares, Vec::new()));
        new.shares = shares;
        let opener = self.opener(records.clone(), new.shares.len());
        let session = is_in_cephfs(&new).then(|| self.administration.ceph().session());
        let apart = self.administration.apart()?;
        let ((table, directories), took) = timed(|| opener.open_all(&new.shares, apart))?;
        phases.shares = took;
        moved::tell(&table, &records, &gone, |_| false)?;
        if session.is_some() {
            ownership.own_session_has_ended().map_err(|error| lost(name, &error))?;
            if let Some(address) = self.administration.ceph().address() {
                ownership.session_comes_from(&address).map_err(|error| lost(name, &error))?;
            }
        }
        // Without the place, another gateway may have its addresses.
        let term = self.term(member).ok_or_else(|| no_place(name))?;
        let (Reached { smb, nfs, raised }, took) = timed(|| new.reach.begin())?;
        phases.address = took;
        let own = Own {
            name: name.to_ascii_uppercase(),
            records,
            shares: table,
            smb: ips(&addresses(&smb)?),
            nfs: ips(&addresses(&nfs)?),
            has_network_locks: false,
            has_own_sids: Arc::ptr_eq(&lent, &self.lent),
            keys,
        };
        let (vserver, took) = timed(|| Vserver::new(&lent, own, self.listeners.make(term)))?;
        phases.servers = took;
        let (shares, changed) = (Arc::clone(&vserver.shares), vserver.servers.changed());
        let names = NameLookup::start(shares, Arc::clone(&lent.accounts), None, System, changed);
        let names = names.map_err(serving("cannot start a thread"))?;
        let (ownership, shares) = (Arc::clone(ownership), new.shares);
        self.vservers.enter(Served {
            ownership,
            vserver,
            shares,
            directories,
            names,
            share_changes: None,
            session,
            raised,
        });
        Ok((NewSockets { smb, nfs }, phases))
    }

    /// What opens shares of a vserver with these records, so many more than there are.
    pub(crate) fn opener(&self, records: ServerRecords, more: usize) -> VserverOpener {
        VserverOpener {
            records,
            ceph: self.administration.ceph(),
            gateway: self.session.clone(),
            opens_max: self.administration.opens_with(more),
            access_log: self.lent.access_log.clone(),
            silent: Arc::clone(&self.administration.silent),
        }
    }

    /// Ends what gateways before have left in the storage: they may not write there any more. What cannot be ended stays written down for
    /// whoever serves the vserver next.
    fn end_left_sessions(&self, ownership: &Ownership, new: &NewVserver) -> Result<()> {
        if !is_in_cephfs(new) {
            return Ok(());
        }
        for session in ownership.left_sessions() {
            self.administration.ceph().end_session(session)?;
            ownership.session_has_ended(session).map_err(|error| lost(ownership.vserver(), &error))?;
        }
        Ok(())
    }

    /// Says in the log how long each phase of a takeover took, and notes it for the metrics.
    fn tell_phases(&self, ownership: &Ownership, owned_in: Duration, phases: Phases) {
        let Some(Followed { gateway, fenced_in, .. }) = ownership.followed() else { return };
        let Phases { session, shares, address, servers } = phases;
        let own = owned_in.saturating_sub(*fenced_in);
        tracing::warn!(
            vserver = ownership.vserver(),
            epoch = ownership.owner().epoch,
            fence_ms = fenced_in.as_millis(),
            own_ms = own.as_millis(),
            session_ms = session.as_millis(),
            shares_ms = shares.as_millis(),
            address_ms = address.as_millis(),
            servers_ms = servers.as_millis(),
            "the vserver was taken over from the gateway {gateway}, which does not hold its lease any more"
        );
        let all = [*fenced_in, own, session, shares, address, servers];
        let phases = ["fence", "own", "session", "shares", "address", "servers"].into_iter().zip(all);
        self.vservers.note_takeover(ownership.vserver(), phases.collect());
    }

    pub(crate) fn end_vserver(&self, name: &str) -> Result<bool> {
        let _alone = self.vservers.alone(name).ok_or_else(|| under_way(name))?;
        self.vservers.check_finished(name)?;
        let Some(served) = self.vservers.take(name) else { return Ok(false) };
        self.vservers.end(served)?;
        self.administration.allot_opens();
        Ok(true)
    }

    /// Lets any gateway have a vserver that was given up here. False: something begins or ends it.
    pub(crate) fn let_go_given_up(&self, name: &str) -> Result<bool> {
        let Some(_alone) = self.vservers.alone(name) else { return Ok(false) };
        let (ownership, _) = self.own(name, false)?;
        self.let_go(&ownership)?;
        Ok(true)
    }
}

/// The sockets at which a vserver is to listen.
struct NewSockets {
    smb: Vec<TcpListener>,
    nfs: Vec<TcpListener>,
}

/// How long the beginning of a vserver took, by what was done.
#[derive(Debug, Default)]
struct Phases {
    session: Duration,
    shares: Duration,
    address: Duration,
    servers: Duration,
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let begun = Instant::now();
    let done = work()?;
    Ok((done, begun.elapsed()))
}

fn is_in_cephfs(new: &NewVserver) -> bool {
    new.shares.iter().chain(&new.coming).any(|share| cephfs::path_of(&share.directory).is_some())
}

fn under_way(name: &str) -> Problem {
    Problem::new(Cause::Silent, format!("the vserver {name} begins or ends here already"), "")
}

fn no_place(name: &str) -> Problem {
    let what = format!("the vserver {name} cannot be served: this gateway has no place among others");
    Problem::new(Cause::Serving, what, "")
}

fn addresses(listeners: &[TcpListener]) -> Result<Vec<SocketAddr>> {
    let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
    listeners.iter().map(of).collect()
}
