//! The thread that does what the register says: it keeps the gateway's place, ends vservers that are to be elsewhere, begins those that
//! are to be here, and looks after the gateways that come after this one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use state::cluster::{GatewayRecord, Listed, Member, Register, Seen, VserverRecord, last_owner, living};

use super::accounts::Users;
use super::attempts::Attempts;
use super::carriers::Carriers;
use super::{Seat, Wake, changes, definition, keytabs, placement, share_changes};
use crate::problem::{Cause, Problem, Result, serving};
use crate::reach::VserverAddress;

/// How often the gateways are looked at that come after this one.
const LOOK: Duration = Duration::from_millis(250);
/// How often the register is read although nobody has said that it has changed.
const READ: Duration = Duration::from_secs(1);
/// How long to wait after a failure.
const FAILED: Duration = Duration::from_secs(1);
/// How long a gateway that was not seen yet may take to be there, before others have what it is to serve.
const START: Duration = Duration::from_secs(10);

/// Does what the register says until it is told to end.
pub(super) fn keep(seat: &Arc<Seat>, woken: &Receiver<Wake>) {
    let mut keeper = Keeper::default();
    loop {
        let (wait, problem) = match keeper.pass(seat) {
            Ok(problem) => (LOOK, problem),
            Err(problem) => (FAILED, Some(problem)),
        };
        seat.note(problem.as_ref());
        match woken.recv_timeout(wait) {
            Ok(Wake::Look) => keeper.read = None,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(wake) = woken.try_recv() {
            match wake {
                Wake::Look => keeper.read = None,
                Wake::End => return,
            }
        }
    }
}

/// A change of one vserver, by its name: how long to wait until it is tried again; None: it is done.
type Change = fn(&Arc<Seat>, &Arc<Register>, &str) -> Option<Duration>;

/// What the thread knows.
#[derive(Default)]
struct Keeper {
    /// When the register was read; None: it is to be read.
    read: Option<Instant>,
    gateways: Listed<GatewayRecord>,
    vservers: Listed<VserverRecord>,
    /// The users of the cluster; None: they were not read yet.
    users: Option<Users>,
    /// When the register was read the last time that it was asked whether they have changed.
    users_asked: Option<Instant>,
    /// Which records cannot be read, as far as the log says so.
    unreadable: HashSet<String>,
    /// Since when this gateway has its place.
    since: Option<Instant>,
    /// The gateways that were there since then.
    seen: HashSet<String>,
    carriers: Carriers,
    /// The vservers that begin here, and those that end.
    beginnings: Attempts,
    endings: Attempts,
    /// The vservers that are served here, and whose shares change.
    sharings: Attempts,
}

/// Takes away the addresses that a gateway on this machine has left which was killed: nothing is served here yet.
fn withdraw_left(vservers: &[Seen<VserverRecord>]) {
    let addresses = vservers.iter().flat_map(|seen| &seen.record.addresses);
    let addresses = addresses.filter_map(|text| text.parse::<VserverAddress>().ok()?.moving().cloned());
    match service_address::withdraw_left(&addresses.collect::<Vec<_>>()) {
        Ok(gone) => {
            for address in gone {
                tracing::info!("{address} was still here: a gateway that was killed had left it");
            }
        }
        Err(e) => tracing::error!("cannot take addresses of vservers away that a gateway has left: {e}"),
    }
}

/// Says which interfaces are cut off now, and were not before, and the other way round.
fn tell_changes(before: &[String], now: &[String], there: &BTreeMap<String, bool>) {
    for interface in now.iter().filter(|interface| !before.contains(*interface)) {
        let what = if there.contains_key(interface) { "has no carrier" } else { "is not there" };
        tracing::error!("the interface {interface} {what}: clients do not reach this gateway there");
    }
    for interface in before.iter().filter(|interface| !now.contains(*interface)) {
        // Else no vserver is to be there any more.
        if there.get(interface) == Some(&true) {
            tracing::info!("the interface {interface} has a carrier again");
        }
    }
}

impl Keeper {
    /// What stands in the way of a part of it, while the rest was done.
    ///
    /// # Errors
    /// Nothing can be done.
    fn pass(&mut self, seat: &Arc<Seat>) -> Result<Option<Problem>> {
        if seat.gives_up_lost_place() {
            // What begins finds by itself that the place is lost.
            let Self { carriers, beginnings, endings, sharings, .. } = std::mem::take(self);
            *self = Self { carriers, beginnings, endings, sharings, ..Self::default() };
        }
        let Some(register) = seat.register()? else {
            let what = format!("nobody has made a cluster in the pool {}", seat.settings.pool);
            return Err(Problem::new(
                Cause::Settings,
                what,
                "Make it once, at any gateway: anabranch cluster init",
            ));
        };
        self.read(seat, &register)?;
        if !self.is_member(seat.name()) {
            // The place is given back when nothing begins or ends any more.
            self.beginnings.look();
            self.endings.look();
            self.sharings.look();
            if !self.beginnings.is_empty() || !self.endings.is_empty() || !self.sharings.is_empty() {
                return Ok(None);
            }
            seat.leave_place();
            self.since = None;
            return Ok(None);
        }
        if !seat.host.has_place() {
            seat.take_place(&register)?;
            self.beginnings.look();
            // What begins or ends under the place before has addresses of its own, and takes them away itself.
            self.endings.look();
            if self.beginnings.is_empty() && self.endings.is_empty() {
                withdraw_left(&self.vservers.seen);
            }
            (self.since, self.seen) = (Some(Instant::now()), HashSet::new());
        }
        let accounts = self.look_at_users(seat, &register).err();
        let carriers = self.look_at_carriers(seat, &register).err();
        let after = self.look_after(seat, &register);
        let handed = if carriers.is_none() { self.hand_on(seat, &register) } else { None };
        self.end_others(seat, &register);
        // Whoever is to log on to a vserver must be known before it is served.
        let own = if seat.has_accounts() { self.begin_own(seat, &register) } else { None };
        self.change_shares(seat, &register);
        let keytabs = self.use_keytabs(seat, &register);
        Ok(accounts.or(carriers).or(after).or(handed).or(own).or(keytabs))
    }

    /// Has the vservers that are served here accept tickets with the keys that they have now. What stands in the way of one of them.
    fn use_keytabs(&self, seat: &Seat, register: &Register) -> Option<Problem> {
        let own = self.vservers.seen.iter().filter(|seen| seen.record.gateway == seat.name());
        let mut problem = None;
        for Seen { record, .. } in own {
            if let Err(error) = keytabs::look(&seat.host, register, record) {
                problem = problem.or_else(|| Some(seat.failed(&error).of_vserver(&record.name)));
            }
        }
        problem
    }

    /// Looks which interfaces for vservers have no carrier here, and says so in the register.
    fn look_at_carriers(&mut self, seat: &Seat, register: &Arc<Register>) -> Result<()> {
        let there = service_address::carriers().map_err(serving("cannot list the interfaces"))?;
        let wanted = self.vservers.seen.iter().flat_map(|seen| definition::interfaces(&seen.record));
        let cut_off = self.carriers.look(&wanted.collect(), &there, Instant::now());
        seat.cut_off.lock().clone_from(&cut_off);
        let Some(own) = self.gateways.seen.iter().find(|seen| seen.record.name == seat.name()) else {
            return Ok(());
        };
        if own.record.cut_off == cut_off {
            return Ok(());
        }
        let record = GatewayRecord { cut_off, ..own.record.clone() };
        let is_written = register.change_gateway(own, Some(&record)).map_err(|error| seat.failed(&error))?;
        // If somebody has changed it meanwhile, it is looked at again.
        if is_written {
            tell_changes(&own.record.cut_off, &record.cut_off, &there);
        }
        self.gateways = register.gateways().map_err(|error| seat.failed(&error))?;
        seat.tell(register);
        Ok(())
    }

    /// Has other gateways serve the vservers whose clients do not reach this one, and do reach another. What stands in the way of one.
    fn hand_on(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) -> Option<Problem> {
        let gateways: Vec<_> = self.gateways.seen.iter().map(|seen| seen.record.clone()).collect();
        let own = gateways.iter().find(|gateway| gateway.name == seat.name())?;
        let is_cut_off = |seen: &&Seen<VserverRecord>| {
            let record = &seen.record;
            record.gateway == seat.name()
                && placement::cut_off(own, record)
                    .is_some_and(|interface| self.carriers.is_gone(interface, Instant::now()))
                && !seat.host.vservers.is_under_way(&record.name)
        };
        let cut_off: Vec<_> = self.vservers.seen.iter().filter(is_cut_off).cloned().collect();
        let mut problem = None;
        for seen in cut_off {
            let reaching = placement::reaching(&gateways, &seen.record);
            let why = "is not reached by clients";
            if let Err(failed) = self.give_to_another(seat, register, &reaching, &seen, why) {
                problem = problem.or_else(|| Some(failed.of_vserver(&seen.record.name)));
            }
        }
        problem
    }

    /// Reads the register, if that is due, and says once which of its records cannot be read.
    fn read(&mut self, seat: &Seat, register: &Register) -> Result<()> {
        if self.read.is_some_and(|read| read.elapsed() < READ) {
            return Ok(());
        }
        if self.read.is_none() {
            self.beginnings.try_again();
            self.endings.try_again();
            self.sharings.try_again();
        }
        self.read = Some(Instant::now());
        self.gateways = register.gateways().map_err(|error| seat.failed(&error))?;
        self.vservers = register.vservers().map_err(|error| seat.failed(&error))?;
        let unreadable = self.gateways.unreadable.iter().chain(&self.vservers.unreadable);
        let unreadable: HashSet<_> = unreadable.map(|unreadable| unreadable.what.clone()).collect();
        for what in unreadable.difference(&self.unreadable) {
            tracing::error!("{what}: it stays as it is, and the others are looked after");
        }
        self.unreadable = unreadable;
        Ok(())
    }

    /// Whether a gateway is one of the cluster. One whose record cannot be read stays what it is.
    fn is_member(&self, name: &str) -> bool {
        self.gateways.seen.iter().any(|seen| seen.record.name == name)
            || self.gateways.unreadable(name).is_some()
    }

    /// Ends the vservers that are not to be here.
    fn end_others(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) {
        self.endings.look();
        let is_own = |name: &str| {
            let mut records = self.vservers.seen.iter().map(|seen| &seen.record);
            // One whose record cannot be read any more stays where it is.
            records.any(|record| record.name == name && record.gateway == seat.name())
                || self.vservers.unreadable(name).is_some()
        };
        let served = seat.host.vservers.owners().into_iter().map(|(name, _)| name);
        // What begins at this moment is ended when it has begun.
        let served = served.filter(|name| !is_own(name) && !seat.host.vservers.is_under_way(name));
        let served = served.map(|name| (name, changes::end as Change));
        let given_up = seat.host.vservers.given_up().into_iter();
        let given_up = given_up.filter(|name| !is_own(name) && !seat.host.vservers.is_under_way(name));
        let given_up = given_up.map(|name| (name, changes::let_go as Change));
        for (name, change) in served.chain(given_up).collect::<Vec<_>>() {
            if !self.endings.may_begin(&name) {
                continue;
            }
            let (seat, register, vserver) = (Arc::clone(seat), Arc::clone(register), name.clone());
            if let Err(error) = self.endings.begin(&name, move || change(&seat, &register, &vserver)) {
                tracing::error!(vserver = name, "no thread to end the vserver: {error}");
                self.endings.has_failed(&name);
            }
        }
    }

    /// Begins the vservers that are to be here. What stands in the way of one of them.
    fn begin_own(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) -> Option<Problem> {
        self.beginnings.look();
        let (vservers, mut problem) = (&seat.host.vservers, None);
        for Seen { record, .. } in &self.vservers.seen {
            let name = &*record.name;
            if record.gateway != seat.name() || !self.beginnings.may_begin(name) {
                continue;
            }
            // A vserver is entered in the list before it stops being under way.
            if vservers.is_under_way(name) || vservers.is_served(name) {
                continue;
            }
            match seat.is_served_elsewhere(register, name) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => {
                    problem = problem.or_else(|| Some(why.of_vserver(name)));
                    self.beginnings.has_failed(name);
                    continue;
                }
            }
            let (seat, register, begun) = (Arc::clone(seat), Arc::clone(register), record.clone());
            if let Err(error) = self.beginnings.begin(name, move || changes::serve(&seat, &register, &begun))
            {
                tracing::error!(vserver = name, "no thread to serve the vserver: {error}");
                self.beginnings.has_failed(name);
            }
        }
        problem
    }

    /// Has the vservers that are served here have the shares that they are to have.
    fn change_shares(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) {
        self.sharings.look();
        for Seen { record, .. } in &self.vservers.seen {
            let name = &*record.name;
            let is_due = record.gateway == seat.name() && share_changes::is_due(&seat.host, record);
            if !is_due || !self.sharings.may_begin(name) {
                continue;
            }
            let (seat, register, vserver) = (Arc::clone(seat), Arc::clone(register), name.to_owned());
            let make = move || share_changes::make(&seat, &register, &vserver);
            if let Err(error) = self.sharings.begin(name, make) {
                tracing::error!(vserver = name, "no thread to change the shares of the vserver: {error}");
                self.sharings.has_failed(name);
            }
        }
    }

    /// Has the vservers use the accounts as they are now. The users of the cluster are read if they have changed: each time that the
    /// register was read, that is asked.
    fn look_at_users(&mut self, seat: &Seat, register: &Register) -> Result<()> {
        if self.users_asked != self.read {
            let changes = register.user_changes().map_err(|error| seat.failed(&error))?;
            if self.users.as_ref().is_none_or(|users| users.changes != changes) {
                let users = Users::read(seat, register)?;
                for unreadable in &users.listed.unreadable {
                    tracing::error!("{}: nobody logs on to vservers under that name", unreadable.what);
                }
                self.users = Some(users);
            }
            self.users_asked = self.read;
        }
        self.users.as_ref().map_or(Ok(()), |users| seat.use_accounts(register, users))
    }

    /// Looks whether the gateways after this one are there, up to the first that is, and gives the vservers of those that
    /// are not there to others. What stands in the way of a part of it.
    fn look_after(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) -> Option<Problem> {
        let gateways: Vec<_> = self.gateways.seen.iter().map(|seen| seen.record.clone()).collect();
        let mut problem = None;
        for other in placement::after(seat.name(), &gateways) {
            match seat.is_alive(register, other) {
                Ok(true) => {
                    self.seen.insert(other.to_owned());
                    break;
                }
                Ok(false) => {}
                Err(why) => {
                    problem = problem.or(Some(why));
                    continue;
                }
            }
            let is_starting = self.since.is_none_or(|since| since.elapsed() < START);
            if is_starting && !self.seen.contains(other) {
                continue;
            }
            let of_other = self.vservers.seen.iter().filter(|seen| seen.record.gateway == other);
            let of_other: Vec<_> = of_other.cloned().collect();
            for seen in of_other {
                let name = &seen.record.name;
                let gone = "does not hold its lease any more";
                if let Err(why) = self.give_to_another(seat, register, &gateways, &seen, gone) {
                    problem = problem.or_else(|| Some(why.of_vserver(name)));
                }
            }
        }
        problem
    }

    /// Has one of these gateways serve a vserver of another, and says why.
    fn give_to_another(
        &mut self,
        seat: &Arc<Seat>,
        register: &Arc<Register>,
        gateways: &[GatewayRecord],
        seen: &Seen<VserverRecord>,
        why: &str,
    ) -> Result<()> {
        let records: Vec<_> = self.vservers.seen.iter().map(|seen| seen.record.clone()).collect();
        let other = &*seen.record.gateway;
        let to = seat.open_gateway(register, gateways, &seen.record, &records)?;
        let Some(to) = to else { return Ok(()) };
        let record = VserverRecord { gateway: to, ..seen.record.clone() };
        let is_changed = register.change_vserver(seen, Some(&record)).map_err(|error| seat.failed(&error))?;
        // If not, somebody who was faster has decided something else.
        if is_changed {
            tracing::warn!(
                vserver = record.name,
                "the gateway {other} {why}: the vserver comes to the gateway {}",
                record.gateway
            );
        }
        self.vservers = register.vservers().map_err(|error| seat.failed(&error))?;
        seat.tell(register);
        Ok(())
    }
}

impl Seat {
    /// Notes why this gateway cannot do its part, and says so once.
    fn note(&self, problem: Option<&Problem>) {
        let now = problem.map(|problem| problem.what.clone());
        let mut noted = self.problem.lock();
        if *noted != now {
            if let Some(problem) = problem {
                tracing::error!("{problem}");
            }
            *noted = now;
        }
    }

    /// The problem of a call to the store. The store is connected to anew if that may help.
    pub(super) fn failed(&self, error: &state::store::StoreError) -> Problem {
        if error.is::<state::cluster::Fenced>() {
            self.disconnect();
        }
        self.trouble(error)
    }

    /// Whether this gateway had a place, and has lost it. It is given up, with the connection, which may be fenced.
    fn gives_up_lost_place(&self) -> bool {
        let lost = self.host.membership.lock().take_if(|membership| !membership.holds());
        let is_lost = lost.is_some();
        if is_lost {
            self.host.vservers.abandon_all();
            drop(lost);
            self.host.of_cluster.forget();
            self.disconnect();
        }
        is_lost
    }

    /// Gives the place back, if there is one.
    fn leave_place(&self) {
        self.cut_off.lock().clear();
        let membership = self.host.membership.lock().take();
        if let Some(membership) = membership {
            self.host.vservers.end_all();
            membership.end();
            tracing::info!("the gateway {} has left its cluster", self.name());
        }
    }

    fn take_place(&self, register: &Arc<Register>) -> Result<()> {
        if self.host.membership.lock().is_some() {
            // It was lost a moment ago. It is given up first, with the connection by which it was held.
            return Err(Problem::new(
                Cause::Silent,
                "the place in the cluster was lost",
                "It is taken again by itself.",
            ));
        }
        let joined = Member::join(Arc::clone(register.store()), self.name(), &self.host.session);
        match joined.map_err(|error| self.failed(&error))? {
            Ok(member) => {
                self.host.join(Arc::new(member))?;
                tracing::info!("the gateway {} has its place in the cluster", self.name());
                Ok(())
            }
            Err(holder) => {
                let name = self.name();
                let at = if holder.address.is_empty() {
                    String::new()
                } else {
                    format!(", at {},", holder.address)
                };
                Err(Problem::new(
                    Cause::Settings,
                    format!("another gateway{at} has the name {name}"),
                    "If that is this server before its restart, its lease runs out within seconds. Else give one of the two another \
                     name: cluster-gateway.",
                ))
            }
        }
    }

    /// Whether a gateway holds its lease.
    pub(super) fn is_alive(&self, register: &Arc<Register>, gateway: &str) -> Result<bool> {
        if gateway == self.name() {
            return Ok(self.host.has_place());
        }
        let holder = living(&**register.store(), gateway).map_err(|error| self.failed(&error))?;
        Ok(holder.is_some())
    }

    /// The other gateway to which a vserver comes. None: no gateway is there to which it may.
    ///
    /// # Errors
    /// It is not known of some whether they are there, and none of the others is.
    pub(super) fn open_gateway(
        &self,
        register: &Arc<Register>,
        gateways: &[GatewayRecord],
        vserver: &VserverRecord,
        vservers: &[VserverRecord],
    ) -> Result<Option<String>> {
        let mut problem = None;
        for gateway in placement::best_first(gateways, vserver, vservers, self.name()) {
            if gateway == vserver.gateway {
                continue;
            }
            match self.is_alive(register, gateway) {
                Ok(true) => return Ok(Some(gateway.to_owned())),
                Ok(false) => {}
                Err(why) => problem = problem.or(Some(why)),
            }
        }
        problem.map_or(Ok(None), Err)
    }

    /// Whether another gateway serves a vserver, and is there.
    fn is_served_elsewhere(&self, register: &Arc<Register>, vserver: &str) -> Result<bool> {
        let last = last_owner(&**register.store(), vserver).map_err(|error| self.failed(&error))?;
        match last {
            Some(last) if last.owner.gateway != self.name() => {
                last.is_there(&**register.store()).map_err(|error| self.failed(&error))
            }
            _ => Ok(false),
        }
    }
}
