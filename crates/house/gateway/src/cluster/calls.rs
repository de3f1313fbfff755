//! What administrators ask of a gateway of a cluster. A command changes the register, and waits until the gateways that it concerns have
//! done their part.

use std::sync::Arc;
use std::time::{Duration, Instant};

use control::cluster::{
    CALL_MAX, Cluster, ClusterGateway, ClusterGateways, Drained, GatewayFigures, NewKeytab, NewVserver,
    ShareMove, Vserver, VserverMove, VserverShare, VserverShares, Vservers,
};
use control::shares::{NewShare, Share, ShareChange};
use control::users::{NewUser, User, UserChange, Users};
use control::{Refusal, RefusalKind};
use share::Terms;
use state::cluster::{
    GatewayRecord, LastOwner, Listed, Register, Seen, Unreadable, VserverRecord, VserverShareRecord,
    last_owner, living,
};
use state::store::StoreError;

use super::{Seat, definition, keytabs, placement, shares, troubles};
use crate::problem::Problem;

pub(super) type Result<T> = std::result::Result<T, Refusal>;

/// How long a gateway may take to take its place: the lease of a server before it may have to run out.
const JOIN: Duration = Duration::from_secs(8);
/// How long a vserver may take to be served, or to end.
pub(super) const MOVE: Duration = Duration::from_secs(40);
/// How long the vservers of a gateway that is drained are moved one after the other. What is left then is told.
const DRAIN: Duration = Duration::from_secs(60);
/// How long the rest of a call may take: some questions to the store, each of which it answers within seconds or not at all.
const REST: Duration = Duration::from_secs(60);
const _: () = assert!(MOVE.as_secs() + DRAIN.as_secs() + REST.as_secs() <= CALL_MAX.as_secs());
/// What to do about a record that cannot be read.
const LATER: &str =
    "It is damaged, or a later version of this program has written it: install that version here.";
/// How often to look whether that is so.
pub(super) const LOOK: Duration = Duration::from_millis(20);

pub(super) fn refused(kind: RefusalKind, what: impl Into<String>, advice: impl Into<String>) -> Refusal {
    Refusal::new(kind, what, advice)
}

pub(super) fn failed(Problem { what, advice, .. }: Problem) -> Refusal {
    refused(RefusalKind::Failed, what, advice)
}

fn no_gateway(name: &str) -> Refusal {
    let what = format!("there is no gateway {name} in the cluster");
    refused(RefusalKind::NotFound, what, "`anabranch cluster status` lists the gateways.")
}

fn not_there(name: &str) -> Refusal {
    let what = format!("the gateway {name} is not there");
    refused(
        RefusalKind::Busy,
        what,
        "Start it, or name another: `anabranch cluster status` lists the gateways.",
    )
}

fn no_carrier(gateway: &str, interface: &str) -> String {
    format!(
        "the interface {interface} of the gateway {gateway} has no carrier, or is not there: clients do not reach it"
    )
}

pub(super) fn too_quick() -> Refusal {
    refused(RefusalKind::Busy, "somebody has changed the same at this moment", "Look, and try again.")
}

fn not_all_moved(gateway: &str, moved: usize, left: usize) -> Refusal {
    let what = format!(
        "{left} vservers are left at the gateway {gateway}, to which no more come: {moved} have moved in {} s",
        DRAIN.as_secs()
    );
    refused(RefusalKind::Busy, what, format!("To go on: anabranch vserver drain {gateway}"))
}

fn unreadable(record: &Unreadable) -> Refusal {
    refused(RefusalKind::Failed, &record.what, LATER)
}

/// The record of this name, if there is one.
fn found_in<T>(listed: Listed<T>, is_it: impl Fn(&T) -> bool, name: &str) -> Result<Option<Seen<T>>> {
    if let Some(record) = listed.unreadable(name) {
        return Err(unreadable(record));
    }
    Ok(listed.seen.into_iter().find(|seen| is_it(&seen.record)))
}

impl Seat {
    pub(super) fn asked_register(&self) -> Result<Arc<Register>> {
        let register = self.register().map_err(failed)?;
        register.ok_or_else(|| {
            let what = format!("nobody has made a cluster in the pool {}", self.settings.pool);
            refused(RefusalKind::NotFound, what, "Make it once, at any gateway: anabranch cluster init")
        })
    }

    pub(super) fn no_answer(&self, error: &StoreError) -> Refusal {
        failed(self.trouble(error))
    }

    fn all_gateways(&self, register: &Register) -> Result<Listed<GatewayRecord>> {
        register.gateways().map_err(|error| self.no_answer(&error))
    }

    fn one_gateway(&self, register: &Register, name: &str) -> Result<Seen<GatewayRecord>> {
        found_in(self.all_gateways(register)?, |record| record.name == name, name)?
            .ok_or_else(|| no_gateway(name))
    }

    pub(super) fn all_vservers(&self, register: &Register) -> Result<Listed<VserverRecord>> {
        register.vservers().map_err(|error| self.no_answer(&error))
    }

    pub(super) fn one_vserver(&self, register: &Register, name: &str) -> Result<Seen<VserverRecord>> {
        found_in(self.all_vservers(register)?, |record| record.name == name, name)?.ok_or_else(|| {
            let what = format!("there is no vserver {name}");
            refused(RefusalKind::NotFound, what, "`anabranch vserver list` lists the vservers.")
        })
    }

    /// Who serves a vserver now, and in which epoch it was last served.
    pub(super) fn served_by(&self, register: &Register, name: &str) -> Result<(Option<String>, Option<u64>)> {
        let last = last_owner(&**register.store(), name).map_err(|error| self.no_answer(&error))?;
        Ok(match last {
            None => (None, None),
            Some(last) => {
                let is_there = last.is_there(&**register.store()).map_err(|error| self.no_answer(&error))?;
                let LastOwner { owner, answers, .. } = last;
                ((answers && is_there).then_some(owner.gateway), Some(owner.epoch))
            }
        })
    }

    pub(super) fn told(&self, register: &Register, record: &VserverRecord) -> Result<Vserver> {
        let (served_by, epoch) = self.served_by(register, &record.name)?;
        let trouble = register.trouble(&record.name).map_err(|error| self.no_answer(&error))?;
        let (keys, unusable) = keytabs::told(register.keytab(&record.name));
        let share = |VserverShareRecord { share, .. }: &VserverShareRecord| VserverShare {
            name: share.name.clone(),
            directory: share.directory.to_string_lossy().into_owned(),
            is_read_only: share.terms().contains(Terms::READ_ONLY),
            is_continuously_available: share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE),
            plan: share.plan.clone(),
        };
        Ok(Vserver {
            name: record.name.clone(),
            gateway: record.gateway.clone(),
            served_by,
            epoch,
            addresses: record.addresses.clone(),
            smb_port: record.smb,
            nfs_port: record.nfs,
            shares: record.shares.iter().map(share).collect(),
            has_keytab: keys.is_some(),
            keys: keys.unwrap_or_default(),
            problem: trouble.or(unusable).or(self.why_shares(register, &record.name, epoch)?),
        })
    }

    /// Checks that a vserver may come to a gateway.
    fn check_open(&self, register: &Arc<Register>, name: &str, vserver: &VserverRecord) -> Result<()> {
        let gateway = self.one_gateway(register, name)?.record;
        if gateway.is_drained {
            let what = format!("the gateway {name} is drained");
            let advice = format!("For vservers to come to it again: anabranch cluster join, at {name}");
            return Err(refused(RefusalKind::Busy, what, advice));
        }
        if !self.is_alive(register, name).map_err(failed)? {
            return Err(not_there(name));
        }
        if let Some(interface) = placement::cut_off(&gateway, vserver) {
            return Err(refused(
                RefusalKind::Busy,
                no_carrier(name, interface),
                "Name another gateway, or check the cable.",
            ));
        }
        Ok(())
    }

    /// Waits until the gateway serves the vserver. The refusal: it cannot.
    fn until_served(&self, register: &Register, record: &VserverRecord) -> Result<()> {
        let deadline = Instant::now() + MOVE;
        loop {
            let (by, _) = self.served_by(register, &record.name)?;
            if by.as_deref() == Some(&record.gateway) {
                return Ok(());
            }
            let trouble = register.trouble(&record.name).map_err(|error| self.no_answer(&error))?;
            // What another gateway has written may be older, or about its own part.
            if let Some(trouble) =
                trouble.as_ref().filter(|trouble| troubles::is_of(trouble, &record.gateway))
            {
                let what = format!("the vserver {} cannot be served: {trouble}", record.name);
                return Err(refused(RefusalKind::Busy, what, ""));
            }
            if Instant::now() >= deadline {
                let (name, gateway) = (&record.name, &record.gateway);
                let what = format!("the gateway {gateway} does not serve the vserver {name} yet");
                return Err(refused(
                    RefusalKind::Busy,
                    what,
                    trouble.as_deref().unwrap_or("Its log says why."),
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Has a gateway serve a vserver, or leaves it where it is.
    fn moved(&self, register: &Arc<Register>, seen: &Seen<VserverRecord>, to: &str) -> Result<Vserver> {
        let record = VserverRecord { gateway: to.to_owned(), ..seen.record.clone() };
        register.set_trouble(&record.name, None).map_err(|error| self.no_answer(&error))?;
        if record != seen.record {
            let is_changed = register.change_vserver(seen, Some(&record));
            if !is_changed.map_err(|error| self.no_answer(&error))? {
                return Err(too_quick());
            }
        }
        self.tell(register);
        let served = self.until_served(register, &record);
        if served.is_err() && record != seen.record {
            self.undo(register, &record, Some(&seen.record));
        }
        served?;
        self.told(register, &record)
    }

    /// Takes back what this call has written, unless somebody has changed it meanwhile.
    fn undo(&self, register: &Arc<Register>, written: &VserverRecord, before: Option<&VserverRecord>) {
        let seen = Seen::written(written.clone());
        match seen.and_then(|seen| register.change_vserver(&seen, before)) {
            Ok(true) => {
                if let Err(error) = register.set_trouble(&written.name, None) {
                    tracing::warn!("the trouble of the vserver {} stays written down: {error}", written.name);
                }
                self.tell(register);
            }
            Ok(false) => {}
            Err(error) => tracing::error!("what a command has changed is not taken back: {error}"),
        }
    }

    /// Checks that nobody has what a new vserver is to have.
    fn check_free(&self, register: &Register, new: &VserverRecord) -> Result<()> {
        let all = self.all_vservers(register)?;
        if let Some(record) = all.unreadable(&new.name) {
            return Err(unreadable(record));
        }
        for Seen { record, .. } in all.seen {
            if record.name == new.name {
                return Err(name_taken(&new.name));
            }
            if let Some(address) = definition::shared_address(new, &record) {
                let what = format!("the vserver {} has the address {address} on the same port", record.name);
                return Err(refused(RefusalKind::Invalid, what, "Give each vserver an address of its own."));
            }
            for VserverShareRecord { share, .. } in &new.shares {
                shares::check_apart(&share.name, &share.directory, &record)?;
            }
        }
        Ok(())
    }
}

fn name_taken(name: &str) -> Refusal {
    let what = format!("there is a vserver {name} already");
    refused(RefusalKind::NameTaken, what, "`anabranch vserver list` lists the vservers.")
}

impl ClusterGateways for Seat {
    fn figures(&self) -> GatewayFigures {
        let owners = self.host.vservers.owners();
        GatewayFigures {
            has_place: self.host.has_place(),
            cut_off: self.cut_off.lock().clone(),
            served: owners.into_iter().map(|(name, owner)| (name, owner.epoch)).collect(),
            takeovers: self.host.vservers.takeovers(),
        }
    }

    fn cluster(&self) -> Result<Cluster> {
        let register = self.asked_register()?;
        let (vservers, all) = (self.all_vservers(&register)?, self.all_gateways(&register)?);
        let mut problems: Vec<_> = self.problem.lock().clone().into_iter().collect();
        let users = register.users().map_err(|error| self.no_answer(&error))?.unreadable;
        let unreadable = all.unreadable.iter().chain(&vservers.unreadable).chain(&users);
        problems.extend(unreadable.map(|record| record.what.clone()));
        let mut gateways = Vec::new();
        for Seen { record, .. } in all.seen {
            let holder = living(&**register.store(), &record.name).unwrap_or_else(|error| {
                problems
                    .push(format!("it is not known whether the gateway {} is there: {error}", record.name));
                None
            });
            // What one that is not there has written may be over.
            if holder.is_some() {
                problems.extend(record.cut_off.iter().map(|interface| no_carrier(&record.name, interface)));
            }
            let is_of = |seen: &&Seen<VserverRecord>| seen.record.gateway == record.name;
            gateways.push(ClusterGateway {
                vservers: vservers.seen.iter().filter(is_of).map(|seen| seen.record.name.clone()).collect(),
                name: record.name,
                version: record.version,
                is_alive: holder.is_some(),
                address: holder.map(|holder| holder.address),
                is_drained: record.is_drained,
            });
        }
        Ok(Cluster {
            gateway: self.name().to_owned(),
            pool: self.settings.pool.clone(),
            has_place: self.host.has_place(),
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
            gateways,
        })
    }

    fn init(&self) -> Result<Cluster> {
        let store = self.store().map_err(failed)?;
        if Register::make(&store).map_err(|error| self.no_answer(&error))?.is_none() {
            let what = format!("there is a cluster in the pool {} already", self.settings.pool);
            return Err(refused(
                RefusalKind::NameTaken,
                what,
                "To be one of its gateways: anabranch cluster join",
            ));
        }
        tracing::info!("a cluster was made in the pool {}", self.settings.pool);
        self.join()
    }

    fn join(&self) -> Result<Cluster> {
        let register = self.asked_register()?;
        let seen = found_in(self.all_gateways(&register)?, |found| found.name == self.name(), self.name())?;
        let record = GatewayRecord {
            name: self.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_drained: false,
            cut_off: seen.as_ref().map_or_else(Vec::new, |seen| seen.record.cut_off.clone()),
        };
        let is_entered = match &seen {
            None => register.add_gateway(&record),
            Some(seen) if seen.record == record => Ok(true),
            Some(seen) => register.change_gateway(seen, Some(&record)),
        };
        if !is_entered.map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        self.tell(&register);
        let deadline = Instant::now() + JOIN;
        while !self.host.has_place() {
            if Instant::now() >= deadline {
                let why = self.problem.lock().clone();
                let why = why.unwrap_or_else(|| "the cluster does not answer".to_owned());
                return Err(refused(
                    RefusalKind::Busy,
                    format!("the gateway {} has no place: {why}", self.name()),
                    "Each gateway has a name of its own: cluster-gateway.",
                ));
            }
            std::thread::sleep(LOOK);
        }
        self.cluster()
    }

    fn leave(&self, gateway: &str) -> Result<Cluster> {
        let register = self.asked_register()?;
        let seen = self.one_gateway(&register, gateway)?;
        let of_it =
            self.all_vservers(&register)?.seen.into_iter().find(|seen| seen.record.gateway == gateway);
        if let Some(Seen { record, .. }) = of_it {
            let what = format!("the gateway {gateway} is to serve the vserver {}", record.name);
            let advice = format!("Move them first: anabranch vserver drain {gateway}");
            return Err(refused(RefusalKind::InUse, what, advice));
        }
        if gateway != self.name() && self.is_alive(&register, gateway).map_err(failed)? {
            let what = format!("the gateway {gateway} is there");
            return Err(refused(
                RefusalKind::InUse,
                what,
                "Have it leave by itself: anabranch cluster leave, there.",
            ));
        }
        if !register.change_gateway(&seen, None).map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        self.tell(&register);
        let deadline = Instant::now() + JOIN;
        while gateway == self.name() && self.host.has_place() {
            if Instant::now() >= deadline {
                let what = format!(
                    "the gateway {gateway} has left, and gives its place back when its vservers have ended"
                );
                return Err(refused(RefusalKind::Busy, what, "Its log says what it waits for."));
            }
            std::thread::sleep(LOOK);
        }
        self.cluster()
    }

    fn drain(&self, gateway: &str) -> Result<Drained> {
        let register = self.asked_register()?;
        let seen = self.one_gateway(&register, gateway)?;
        if !seen.record.is_drained {
            let drained = GatewayRecord { is_drained: true, ..seen.record.clone() };
            if !register.change_gateway(&seen, Some(&drained)).map_err(|error| self.no_answer(&error))? {
                return Err(too_quick());
            }
        }
        let (deadline, mut moved) = (Instant::now() + DRAIN, Vec::new());
        loop {
            let all = self.all_vservers(&register)?.seen;
            if Instant::now() >= deadline {
                let left = all.iter().filter(|seen| seen.record.gateway == gateway).count();
                if left > 0 {
                    return Err(not_all_moved(gateway, moved.len(), left));
                }
            }
            let Some(next) = all.iter().find(|seen| seen.record.gateway == gateway) else { break };
            let gateways: Vec<_> =
                self.all_gateways(&register)?.seen.into_iter().map(|seen| seen.record).collect();
            let records: Vec<_> = all.iter().map(|seen| seen.record.clone()).collect();
            let reaching = placement::reaching(&gateways, &next.record);
            let to = self.open_gateway(&register, &reaching, &next.record, &records).map_err(failed)?;
            let to = to.ok_or_else(|| {
                let what = format!("no other gateway is there to which the vservers of {gateway} may come");
                let advice = "Start one, or have one join that was drained: anabranch cluster join, there.";
                refused(RefusalKind::Busy, what, advice)
            })?;
            moved.push(self.moved(&register, next, &to)?);
        }
        Ok(Drained { gateway: gateway.to_owned(), vservers: moved })
    }

    fn vservers(&self) -> Result<Vservers> {
        let register = self.asked_register()?;
        let all = self.all_vservers(&register)?;
        let told = |seen: &Seen<VserverRecord>| {
            self.told(&register, &seen.record).unwrap_or_else(|refusal| Vserver {
                name: seen.record.name.clone(),
                gateway: seen.record.gateway.clone(),
                problem: Some(refusal.what),
                ..Vserver::default()
            })
        };
        let damaged = |unreadable: &Unreadable| Vserver {
            name: unreadable.name.clone(),
            problem: Some(unreadable.what.clone()),
            ..Vserver::default()
        };
        let mut vservers: Vec<_> = all.seen.iter().map(told).collect();
        vservers.extend(all.unreadable.iter().map(damaged));
        vservers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Vservers { vservers })
    }

    fn create_vserver(&self, new: &NewVserver) -> Result<Vserver> {
        let gateway = new.gateway.as_deref().unwrap_or_else(|| self.name());
        let record = definition::record_of(new, gateway)
            .map_err(|why| refused(RefusalKind::Invalid, why, "docs/cluster.md has the forms."))?;
        let register = self.asked_register()?;
        self.check_open(&register, gateway, &record)?;
        self.check_free(&register, &record)?;
        register.set_trouble(&record.name, None).map_err(|error| self.no_answer(&error))?;
        if !register.add_vserver(&record).map_err(|error| self.no_answer(&error))? {
            return Err(name_taken(&record.name));
        }
        self.tell(&register);
        if let Err(refusal) = self.until_served(&register, &record) {
            // What was never served is not kept.
            self.undo(&register, &record, None);
            return Err(refusal);
        }
        self.told(&register, &record)
    }

    fn move_vserver(&self, name: &str, VserverMove { gateway }: &VserverMove) -> Result<Vserver> {
        let register = self.asked_register()?;
        let seen = self.one_vserver(&register, name)?;
        self.check_open(&register, gateway, &seen.record)?;
        self.moved(&register, &seen, gateway)
    }

    fn set_keytab(&self, vserver: &str, NewKeytab { keytab }: &NewKeytab) -> Result<Vserver> {
        self.store_keytab(vserver, &keytab.0)
    }

    fn remove_keytab(&self, vserver: &str) -> Result<Vserver> {
        self.withdraw_keytab(vserver)
    }

    fn remove_vserver(&self, name: &str) -> Result<Vserver> {
        let register = self.asked_register()?;
        let seen = self.one_vserver(&register, name)?;
        let told = self.told(&register, &seen.record)?;
        self.check_nothing_comes_from(&register, name)?;
        if !register.change_vserver(&seen, None).map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        self.tell(&register);
        let deadline = Instant::now() + MOVE;
        while self.served_by(&register, name)?.0.is_some() {
            if Instant::now() >= deadline {
                let what = format!("the gateway {} does not end the vserver {name}", seen.record.gateway);
                return Err(refused(RefusalKind::Busy, what, "Its log says why."));
            }
            std::thread::sleep(LOOK);
        }
        self.forget_traces_to(&register, name);
        Ok(told)
    }

    fn vserver_shares(&self, vserver: &str) -> Result<VserverShares> {
        self.told_shares(vserver)
    }

    fn vserver_share(&self, vserver: &str, share: &str) -> Result<Share> {
        self.told_share(vserver, share)
    }

    fn add_vserver_share(&self, vserver: &str, new: &NewShare) -> Result<Share> {
        self.add_share(vserver, new)
    }

    fn change_vserver_share(&self, vserver: &str, share: &str, change: &ShareChange) -> Result<Share> {
        self.set_share(vserver, share, change)
    }

    fn remove_vserver_share(&self, vserver: &str, share: &str) -> Result<Share> {
        self.remove_share(vserver, share)
    }

    fn move_vserver_share(&self, vserver: &str, share: &str, to: &ShareMove) -> Result<Share> {
        self.move_share(vserver, share, &to.vserver)
    }

    fn users(&self) -> Result<Users> {
        self.told_users()
    }

    fn add_user(&self, new: &NewUser) -> Result<User> {
        self.enter_user(new)
    }

    fn change_user(&self, name: &str, change: &UserChange) -> Result<User> {
        self.set_user(name, change)
    }

    fn remove_user(&self, name: &str) -> Result<User> {
        self.end_user(name)
    }
}
