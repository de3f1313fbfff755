//! The machines of a model and their links, without a server.

use std::net::Ipv4Addr;

use crate::construction::{Construction, LinkLimit, SERVER, construction};
use crate::description::Model;
use crate::machine::Machine;
use crate::observed::{Counters, Link};
use crate::trouble::Trouble;

/// The machines of a model and their links. Dropping it ends the machines, and with them all that they have.
#[derive(Debug)]
pub(crate) struct Network {
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
        Ok(Self { machines, construction })
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
