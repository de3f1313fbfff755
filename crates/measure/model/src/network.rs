//! The machines of a model and their links, without a server.

use std::io;
use std::net::Ipv4Addr;

use crate::construction::{Construction, LinkLimit, LongWire, PORT, SERVER, SWITCH, construction};
use crate::description::Model;
use crate::forwarder::Forwarder;
use crate::machine::Machine;
use crate::observed::{Counters, Forwarded, Link};
use crate::tap::attach;
use crate::trouble::Trouble;

/// A client whose link has a forwarder.
#[derive(Debug)]
pub(crate) struct Wired<'a> {
    /// The number of the client, from 1.
    pub client: usize,
    pub name: &'a str,
    pub machine: &'a Machine,
    pub wire: &'a LongWire,
    pub forwarder: &'a Forwarder,
}

/// The machines of a model and their links. Dropping it ends the machines, and with them all that they have.
#[derive(Debug)]
pub(crate) struct Network {
    /// In the order of the long wires of the construction. They end before the machines.
    forwarders: Vec<Forwarder>,
    /// In the order of those of the construction.
    machines: Vec<Machine>,
    construction: Construction,
}

impl Network {
    /// Builds it.
    ///
    /// # Errors
    /// The program does not run as root, a program is missing, or the kernel lacks something that the model needs.
    pub(crate) fn build(model: &Model) -> Result<Self, Trouble> {
        if !rustix::process::geteuid().is_root() {
            return Err(Trouble::NotRoot);
        }
        let construction = construction(model);
        let machines: Vec<Machine> = construction
            .machines
            .iter()
            .map(|machine| Machine::make(&machine.name))
            .collect::<Result<_, _>>()?;
        let pids: Vec<u32> = machines.iter().map(Machine::pid).collect();
        for step in &construction.steps {
            if let Some(machine) = machines.get(step.machine) {
                machine.carry_out(step, &pids)?;
            }
        }
        let forwarders = construction
            .wires
            .iter()
            .map(|wire| {
                let name = construction.machines.get(wire.machine).map_or("", |machine| &machine.name);
                forwarder(&machines, name, wire)
                    .map_err(|e| Trouble::Forwarder { machine: name.to_owned(), why: e.to_string() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { machines, construction, forwarders })
    }

    /// The clients whose links have a delay or losses: their numbers from 1, names, machines, wires and forwarders.
    pub(crate) fn wires(&self) -> impl Iterator<Item = Wired<'_>> {
        let pairs = self.construction.wires.iter().zip(&self.forwarders);
        pairs.filter_map(|(wire, forwarder)| {
            let name = &self.construction.machines.get(wire.machine)?.name;
            let machine = self.machines.get(wire.machine)?;
            Some(Wired { client: wire.machine - SERVER, name, machine, wire, forwarder })
        })
    }

    /// What the forwarders have done until now.
    pub(crate) fn forwarded(&self) -> Vec<Forwarded> {
        self.wires().flat_map(|wired| wired.forwarded()).collect()
    }

    /// Frames are held and lost as the model says, or only what is chosen.
    pub(crate) fn behave(&self, is_held: bool, is_lossy: bool) {
        for forwarder in &self.forwarders {
            forwarder.hold(is_held);
            forwarder.lose(is_lossy);
        }
    }

    /// The machine of the server; there is always one.
    pub(crate) fn server(&self) -> Option<&Machine> {
        self.machines.get(SERVER)
    }

    pub(crate) fn server_address(&self) -> Ipv4Addr {
        let machine = self.construction.machines.get(SERVER);
        machine.and_then(|machine| machine.address).unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// The machines of the clients: their names, and their places.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (&str, &Machine)> {
        let names = self.construction.machines.iter().map(|machine| machine.name.as_str());
        names.zip(&self.machines).skip(SERVER + 1)
    }

    /// All links: those of the server and of the clients, in both directions, with their counters to come.
    pub(crate) fn links(&self) -> Vec<Link> {
        let machines = self.construction.machines.iter().enumerate().skip(SERVER);
        let link = |(at, name, is_out): (usize, &str, bool)| {
            let limit = self.construction.limits.iter().find(|l| l.machine == at && l.is_out == is_out);
            let LinkLimit { rate, bucket, .. } =
                limit.copied().unwrap_or(LinkLimit { machine: at, is_out, rate: 0, bucket: 0 });
            Link::new(name, is_out, limit.map(|_| (rate, bucket)))
        };
        machines
            .flat_map(|(at, machine)| [(at, machine.name.as_str(), true), (at, machine.name.as_str(), false)])
            .map(link)
            .collect()
    }

    /// The bytes that have passed each of [`Network::links`], as the switch counts them: there all of them end.
    pub(crate) fn counters(&self) -> Counters {
        let counted = self.machines.first().and_then(Machine::counters).unwrap_or_default();
        let of = |name: &str| counted.iter().find(|(known, ..)| known == name);
        let machines = self.construction.machines.iter().skip(SERVER);
        machines
            .flat_map(|machine| of(&machine.name).map_or([0, 0], |(_, received, sent)| [*received, *sent]))
            .collect()
    }
}

impl Wired<'_> {
    fn forwarded(&self) -> [Forwarded; 2] {
        let [out, into] = self.forwarder.counted();
        [("out", out), ("in", into)].map(|(direction, counted)| Forwarded {
            machine: self.name.to_owned(),
            direction,
            frames: counted.seen,
            lost: counted.lost,
            dropped: counted.dropped,
        })
    }
}

/// Forwards between a machine and the switch.
fn forwarder(machines: &[Machine], name: &str, wire: &LongWire) -> io::Result<Forwarder> {
    let at = |place: usize| machines.get(place).ok_or(io::ErrorKind::NotFound);
    let devices = [at(wire.machine)?.within(|| attach(PORT))?, at(SWITCH)?.within(|| attach(name))?];
    Forwarder::start(devices, wire.conditions, wire.seeds)
}
