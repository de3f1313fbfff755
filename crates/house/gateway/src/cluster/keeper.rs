//! The thread that does what the register says: it keeps the gateway's place, ends vservers that are to be elsewhere, begins those that
//! are to be here, and looks after the gateways that come after this one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use state::cluster::{GatewayRecord, LastOwner, Member, Register, Seen, VserverRecord, last_owner, living};

use super::beginnings::Beginnings;
use super::{Seat, Wake, placement, troubles};
use crate::problem::{Cause, Problem, Result};
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
        let wait = match keeper.pass(seat) {
            Ok(()) => LOOK,
            Err(problem) => {
                seat.note(Some(&problem));
                FAILED
            }
        };
        match woken.recv_timeout(wait) {
            Ok(Wake::Look) => keeper.read = None,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(wake) = woken.try_recv() {
            if wake == Wake::End {
                return;
            }
        }
    }
}

/// What the thread knows.
#[derive(Default)]
struct Keeper {
    /// When the register was read; None: it is to be read.
    read: Option<Instant>,
    gateways: Vec<Seen<GatewayRecord>>,
    vservers: Vec<Seen<VserverRecord>>,
    /// Since when this gateway has its place.
    since: Option<Instant>,
    /// The gateways that were there since then.
    seen: HashSet<String>,
    beginnings: Beginnings,
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

impl Keeper {
    fn pass(&mut self, seat: &Arc<Seat>) -> Result<()> {
        if seat.gives_up_lost_place() {
            // What begins finds by itself that the place is lost.
            let beginnings = std::mem::take(&mut self.beginnings);
            *self = Self { beginnings, ..Self::default() };
        }
        let Some(register) = seat.register()? else {
            let what = format!("nobody has made a cluster in the pool {}", seat.settings.pool);
            return Err(Problem::new(
                Cause::Settings,
                what,
                "Make it once, at any gateway: anabranch cluster init",
            ));
        };
        if self.read.is_none_or(|read| read.elapsed() >= READ) {
            if self.read.is_none() {
                self.beginnings.try_again();
            }
            self.read = Some(Instant::now());
            self.gateways = register.gateways().map_err(|error| seat.failed(&error))?;
            self.vservers = register.vservers().map_err(|error| seat.failed(&error))?;
        }
        if !self.gateways.iter().any(|seen| seen.record.name == seat.name()) {
            seat.leave_place();
            self.since = None;
            seat.note(None);
            return Ok(());
        }
        if !seat.host.has_place() {
            seat.take_place(&register)?;
            withdraw_left(&self.vservers);
            (self.since, self.seen) = (Some(Instant::now()), HashSet::new());
        }
        seat.note(None);
        self.look_after(seat, &register)?;
        self.end_others(seat, &register);
        self.begin_own(seat, &register)
    }

    /// Ends the vservers that are not to be here.
    fn end_others(&self, seat: &Arc<Seat>, register: &Arc<Register>) {
        let is_own = |name: &str| {
            self.vservers.iter().any(|seen| seen.record.name == name && seen.record.gateway == seat.name())
        };
        for (name, _) in seat.host.vservers.owners() {
            if is_own(&name) {
                continue;
            }
            match seat.host.end_vserver(&name) {
                Ok(_) => seat.tell(register),
                Err(problem) => {
                    tracing::error!("{problem}");
                    troubles::write(register, &name, Some((seat.name(), &problem)));
                }
            }
        }
    }

    /// Begins the vservers that are to be here.
    fn begin_own(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) -> Result<()> {
        self.beginnings.look();
        let vservers = &seat.host.vservers;
        for Seen { record, .. } in &self.vservers {
            let name = &*record.name;
            if record.gateway != seat.name() || !self.beginnings.may_begin(name) {
                continue;
            }
            // What begins is in the list before it is not under way any more.
            if vservers.is_under_way(name)
                || vservers.is_served(name)
                || seat.is_served_elsewhere(register, name)?
            {
                continue;
            }
            if let Err(error) = self.beginnings.begin(seat, register, record) {
                tracing::error!(vserver = name, "no thread to serve the vserver: {error}");
                self.beginnings.has_failed(name);
            }
        }
        Ok(())
    }

    /// Looks whether the gateways after this one are there, up to the first that is, and has others serve what those do not that are
    /// not.
    fn look_after(&mut self, seat: &Arc<Seat>, register: &Arc<Register>) -> Result<()> {
        let gateways: Vec<_> = self.gateways.iter().map(|seen| seen.record.clone()).collect();
        for other in placement::after(seat.name(), &gateways) {
            if seat.is_alive(register, other)? {
                self.seen.insert(other.to_owned());
                break;
            }
            let is_starting = self.since.is_none_or(|since| since.elapsed() < START);
            if is_starting && !self.seen.contains(other) {
                continue;
            }
            for n in 0..self.vservers.len() {
                let Some(seen) = self.vservers.get(n).filter(|seen| seen.record.gateway == other) else {
                    continue;
                };
                let records: Vec<_> = self.vservers.iter().map(|seen| seen.record.clone()).collect();
                let Some(to) = seat.open_gateway(register, &gateways, &records, other)? else { break };
                tracing::warn!(
                    vserver = seen.record.name,
                    "the gateway {other} does not hold its lease any more: the vserver comes to the gateway {to}"
                );
                let record = VserverRecord { gateway: to, ..seen.record.clone() };
                // Somebody who was faster has decided something else.
                register.change_vserver(seen, Some(&record)).map_err(|error| seat.failed(&error))?;
                let read = register.vservers().map_err(|error| seat.failed(&error))?;
                self.vservers = read;
                seat.tell(register);
            }
        }
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
    fn failed(&self, error: &state::store::StoreError) -> Problem {
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
            self.disconnect();
        }
        is_lost
    }

    /// Gives the place back, if there is one.
    fn leave_place(&self) {
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

    /// The gateway to which a vserver of another one comes. None: no gateway is there to which it may.
    pub(super) fn open_gateway(
        &self,
        register: &Arc<Register>,
        gateways: &[GatewayRecord],
        vservers: &[VserverRecord],
        not: &str,
    ) -> Result<Option<String>> {
        for gateway in placement::best_first(gateways, vservers, self.name()) {
            if gateway != not && self.is_alive(register, gateway)? {
                return Ok(Some(gateway.to_owned()));
            }
        }
        Ok(None)
    }

    /// Whether another gateway serves a vserver, and is there.
    fn is_served_elsewhere(&self, register: &Arc<Register>, vserver: &str) -> Result<bool> {
        let last = last_owner(&**register.store(), vserver).map_err(|error| self.failed(&error))?;
        match last {
            Some(LastOwner { owner, has_it: true, .. }) if owner.gateway != self.name() => {
                self.is_alive(register, &owner.gateway)
            }
            _ => Ok(false),
        }
    }
}
