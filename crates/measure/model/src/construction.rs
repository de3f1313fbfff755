//! The commands that build a model, as data.
//!
//! Each machine has namespaces of its own, which its first process holds: when that ends, the kernel removes its interfaces,
//! its mounts and its processes. So there are no commands that remove anything, and nothing is left whatever ends the program.
//!
//! The links go from each machine to a switch, a bridge in namespaces of its own. Only what is sent is limited: `out` of a
//! machine where it sends, `in` of a machine where the switch sends to it.

use std::net::Ipv4Addr;

use crate::description::Model;
use crate::quantity::Rate;
use crate::wire::Conditions;

/// The first machine, with one end of each link.
pub(crate) const SWITCH: usize = 0;
/// The machine of the server.
pub(crate) const SERVER: usize = 1;
/// The interface of a machine.
pub(crate) const PORT: &str = "port";
/// The bridge of the switch.
const BRIDGE: &str = "middle";
/// Connections that are told apart where each has a limit: their ports begin here.
const FIRST_PORT: u16 = 32768;
/// So many, by the last eight bits of a client's port.
const FLOWS: u16 = 256;
/// The class that all flows of a link share; those of the flows are below it, that of all else is after them.
const ALL: u16 = 0xfff;
/// What may wait for a link: so long, at its rate. What is more is dropped.
const QUEUE_MS: u32 = 50;

/// A model as it is built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Construction {
    /// The machines: the switch, the server, the clients.
    pub machines: Vec<Machine>,
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// The links that have a limit.
    pub limits: Vec<LinkLimit>,
    /// The links that a forwarder carries, between tap devices that have the names of the other interfaces.
    pub wires: Vec<LongWire>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its name, which is also that of its interface in the switch.
    pub name: String,
    /// Its address; the switch has none.
    pub address: Option<Ipv4Addr>,
}

/// Commands for one tool in one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The machine, by its place.
    pub machine: usize,
    /// What carries them out.
    pub tool: Tool,
    /// The commands, one a line; `@N` stands for the process that holds the machine N.
    pub lines: Vec<String>,
    /// What the kernel must have for them.
    pub needs: Ability,
}

/// What carries out commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `ip -batch -`
    Ip,
    /// `tc -batch -`
    Tc,
    /// `sysctl -w`, each line a setting; alternatives for one setting are separated by `|`.
    Sysctl,
}

/// A link with a delay, losses, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LongWire {
    /// The machine at its end, by its place.
    pub machine: usize,
    /// What happens to frames, in each direction.
    pub conditions: Conditions,
    /// For what the machine sends, and for what it receives.
    pub seeds: [u64; 2],
}

/// What a kernel has or lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Pairs of virtual interfaces.
    Veth,
    /// Bridges.
    Bridge,
    /// The token bucket: the limit of a link.
    Tbf,
    /// The hierarchy of token buckets with filters by port: the limit of each connection.
    Htb,
    /// Interfaces whose frames a program forwards.
    Tap,
    /// Settings of TCP in a namespace.
    Settings,
}

/// The limit of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkLimit {
    /// The machine, by its place.
    pub machine: usize,
    /// What it sends; otherwise what it receives.
    pub is_out: bool,
    /// Bytes a second: of all connections together.
    pub rate: u64,
    /// Bytes that may pass at once after a rest.
    pub bucket: u64,
}

impl Ability {
    /// What it is, with the kernel's name for it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Veth => "pairs of virtual interfaces (veth, CONFIG_VETH)",
            Self::Bridge => "bridges (CONFIG_BRIDGE)",
            Self::Tbf => "the limit of a link (tc tbf, CONFIG_NET_SCH_TBF)",
            Self::Htb => {
                "the limit of each connection (tc htb with u32 filters, CONFIG_NET_SCH_HTB and CONFIG_NET_CLS_U32)"
            }
            Self::Tap => "the delay of a link (tap devices, /dev/net/tun, CONFIG_TUN)",
            Self::Settings => "settings of TCP for a namespace (net.ipv4)",
        }
    }
}

/// The bytes that pass at once after a rest: a millisecond of the rate, and not less than some packets.
pub(crate) fn bucket(rate: u64) -> u64 {
    (rate / 1000).max(8000)
}

/// The commands for a model.
#[must_use]
pub(crate) fn construction(model: &Model) -> Construction {
    let scale = *model.scale.as_ref();
    let built = |rate: &Option<Rate>| rate.as_ref().map(|rate| rate.at_scale(scale));
    // 198.18.0.0/15 is for measurements of networks (RFC 2544, appendix C.2.2; RFC 6890 2.2.2).
    let address = |third: u8, fourth: u8| Some(Ipv4Addr::new(198, 18, third, fourth));
    let mut build = Builder::new();
    let server = build.machine("server".to_owned(), address(0, 1), None);
    build.link(server, true, built(&model.server.out), None);
    build.link(server, false, built(&model.server.into), None);
    for (number, (name, client)) in (1..).zip(model.machines()) {
        let wire = client.conditions();
        let machine = build.machine(name, address(1, number), wire.map(|wire| (wire, model.seed)));
        build.link(machine, true, built(&client.out), built(&client.flow));
        build.link(machine, false, built(&client.into), built(&client.flow));
        if client.flow.is_some() {
            // As many ports as there are classes, so that no two connections share one; a port that was used is free again.
            let last = FIRST_PORT + FLOWS - 1;
            let ports = format!("net.ipv4.ip_local_port_range={FIRST_PORT} {last}");
            build.settings(machine, &[ports, "net.ipv4.tcp_tw_reuse=1".to_owned()]);
        }
    }
    build.ask_again();
    build.construction
}

struct Builder {
    construction: Construction,
}

impl Builder {
    /// With the switch.
    fn new() -> Self {
        let machines = vec![Machine { name: "switch".to_owned(), address: None }];
        let (steps, limits, wires) = (Vec::new(), Vec::new(), Vec::new());
        let mut build = Self { construction: Construction { machines, steps, limits, wires } };
        let lines = vec![format!("link add {BRIDGE} type bridge"), format!("link set {BRIDGE} up")];
        build.step(SWITCH, Tool::Ip, lines, Ability::Bridge);
        build
    }

    fn step(&mut self, machine: usize, tool: Tool, lines: Vec<String>, needs: Ability) {
        self.construction.steps.push(Step { machine, tool, lines, needs });
    }

    fn settings(&mut self, machine: usize, settings: &[String]) {
        self.step(machine, Tool::Sysctl, settings.to_vec(), Ability::Settings);
    }

    /// A machine with a link to the switch; a wire has conditions, and the seed of the model.
    fn machine(&mut self, name: String, address: Option<Ipv4Addr>, wire: Option<(Conditions, u64)>) -> usize {
        let at = self.construction.machines.len();
        if let Some((conditions, seed)) = wire {
            let tap = |name: &str| vec![format!("tuntap add dev {name} mode tap")];
            self.step(SWITCH, Tool::Ip, tap(&name), Ability::Tap);
            self.step(at, Tool::Ip, tap(PORT), Ability::Tap);
            // Far from each other, so that no link has the losses of another one.
            let seed =
                |direction: u64| seed.wrapping_mul(1 << 20).wrapping_add(2 * at as u64 + direction) << 20;
            let seeds = [seed(0), seed(1)];
            self.construction.wires.push(LongWire { machine: at, conditions, seeds });
        } else {
            let pair = format!("link add {name} type veth peer name {PORT} netns @{at}");
            self.step(SWITCH, Tool::Ip, vec![pair], Ability::Veth);
        }
        let of_switch = vec![format!("link set {name} master {BRIDGE}"), format!("link set {name} up")];
        self.step(SWITCH, Tool::Ip, of_switch, Ability::Bridge);
        let mut own = vec!["link set lo up".to_owned(), format!("link set {PORT} up")];
        own.extend(address.map(|address| format!("addr add {address}/16 dev {PORT}")));
        self.step(at, Tool::Ip, own, Ability::Veth);
        // Neither paces by timers of its own, as bbr does.
        self.settings(at, &["net.ipv4.tcp_congestion_control=cubic|reno".to_owned()]);
        self.construction.machines.push(Machine { name, address });
        at
    }

    /// Where frames may be lost, the question for a neighbour's address may be, too, more than the three times that it is asked.
    fn ask_again(&mut self) {
        let wired: Vec<usize> = self.construction.wires.iter().map(|wire| wire.machine).collect();
        for machine in wired.first().map(|_| SERVER).into_iter().chain(wired.iter().copied()) {
            let setting = |kind: &str| format!("net.ipv4.neigh.{PORT}.{kind}_solicit=20");
            self.settings(machine, &["mcast", "ucast"].map(setting));
        }
    }

    /// The limits of a link in one direction: of all together, of each connection.
    fn link(&mut self, machine: usize, is_out: bool, rate: Option<u64>, flow: Option<u64>) {
        let device = self.construction.machines.get(machine).map_or("", |machine| &machine.name).to_owned();
        let (at, device) = if is_out { (machine, PORT.to_owned()) } else { (SWITCH, device) };
        match (rate, flow) {
            (None, None) => return,
            (Some(rate), None) => self.step(at, Tool::Tc, vec![all_together(&device, rate)], Ability::Tbf),
            (rate, Some(flow)) => {
                self.step(at, Tool::Tc, each_connection(&device, is_out, rate, flow), Ability::Htb);
            }
        }
        if let Some(rate) = rate {
            let limit = LinkLimit { machine, is_out, rate, bucket: bucket(rate) };
            self.construction.limits.push(limit);
        }
    }
}

fn all_together(device: &str, rate: u64) -> String {
    let bucket = bucket(rate);
    format!("qdisc add dev {device} root tbf rate {rate}bps burst {bucket}b latency {QUEUE_MS}ms")
}

/// A class for each port of the client, found by the last eight bits of it. A class may use what its connection may use; where
/// there is a limit of all together, they have it from a class above them.
fn each_connection(device: &str, is_out: bool, all: Option<u64>, flow: u64) -> Vec<String> {
    // tc takes no link without a rate; this one is more than any of this machine.
    const UNLIMITED: u64 = 100_000_000_000;
    let rest = 2 * FLOWS;
    let sum = all.unwrap_or(UNLIMITED);
    let class = |parent: &str, class: u16, own: u64, most: u64| {
        let bucket = bucket(most);
        format!(
            "class add dev {device} parent {parent} classid 1:{class:x} htb rate {own}bps ceil {most}bps burst {bucket}b cburst {bucket}b quantum 1514"
        )
    };
    // What a class has for itself, so that it is not starved: the sum is far below the limit of all together.
    let own = |most: u64| (sum.min(most) / (4 * u64::from(FLOWS))).max(1000).min(most);
    let parent = format!("1:{ALL:x}");
    let mut lines = vec![
        format!("qdisc add dev {device} root handle 1: htb default {rest:x}"),
        class("1:", ALL, sum, sum),
        class(&parent, rest, own(sum), sum),
        format!("filter add dev {device} parent 1: prio 1 handle 2: protocol ip u32 divisor {FLOWS}"),
    ];
    for number in 0..FLOWS {
        let of_flow = FLOWS + number;
        lines.push(class(&parent, of_flow, own(flow), flow));
        lines.push(format!(
            "filter add dev {device} parent 1: prio 1 protocol ip u32 ht 2:{number:x}: match ip protocol 6 0xff flowid 1:{of_flow:x}"
        ));
    }
    // The ports of TCP follow the 20 bytes of an IPv4 header without options: first that of the sender (RFC 9293 3.1).
    let mask = if is_out { "0x00ff0000" } else { "0x000000ff" };
    lines.push(format!(
        "filter add dev {device} parent 1: prio 1 protocol ip u32 ht 800:: match ip protocol 6 0xff hashkey mask {mask} at 20 link 2:"
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn built(client: &str, server: &str) -> Construction {
        let text = format!(
            "name = \"x\"\nabout = \"y\"\nscale = 10\n[[client]]\nname = \"vm\"\n{client}\n[server]\n{server}\n"
        );
        construction(&read(&text).unwrap())
    }

    fn lines(construction: &Construction, tool: Tool, machine: usize) -> Vec<&str> {
        let steps = construction.steps.iter().filter(|step| step.tool == tool && step.machine == machine);
        steps.flat_map(|step| step.lines.iter().map(String::as_str)).collect()
    }

    #[test]
    fn each_machine_has_a_link_to_the_switch() {
        let construction = built("count = 2", "");
        let names: Vec<_> = construction.machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["switch", "server", "vm-1", "vm-2"]);
        assert_eq!(construction.machines[3].address, Some(Ipv4Addr::new(198, 18, 1, 2)));
        let of_switch = lines(&construction, Tool::Ip, SWITCH);
        assert!(of_switch.contains(&"link add vm-2 type veth peer name port netns @3"), "{of_switch:?}");
        assert!(lines(&construction, Tool::Ip, 3).contains(&"addr add 198.18.1.2/16 dev port"));
        assert!(construction.limits.is_empty() && lines(&construction, Tool::Tc, SWITCH).is_empty());
    }

    #[test]
    fn a_machine_with_a_delay_has_tap_devices_instead() {
        let construction = built("count = 2\ndelay = \"2 ms\"\nloss = 0.1\nout = \"80 MB/s\"", "");
        let (of_switch, own) = (lines(&construction, Tool::Ip, SWITCH), lines(&construction, Tool::Ip, 2));
        assert!(of_switch.contains(&"tuntap add dev vm-1 mode tap"), "{of_switch:?}");
        assert_eq!(own[..3], ["tuntap add dev port mode tap", "link set lo up", "link set port up"]);
        assert!(!of_switch.iter().any(|line| line.contains("veth") && line.contains("vm-")), "{of_switch:?}");
        let wires: Vec<_> = construction.wires.iter().map(|wire| (wire.machine, wire.conditions)).collect();
        let conditions = Conditions { delay: std::time::Duration::from_millis(2), loss: 0.1 };
        assert_eq!(wires, [(2, conditions), (3, conditions)]);
        let mut seeds: Vec<u64> = construction.wires.iter().flat_map(|wire| wire.seeds).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 4);
        assert_eq!(lines(&construction, Tool::Tc, 2).len(), 1);
    }

    #[test]
    fn only_what_is_sent_is_limited() {
        let construction = built("out = \"80 MB/s\"", "in = \"100 MB/s\"");
        let of_client = "qdisc add dev port root tbf rate 8000000bps burst 8000b latency 50ms";
        let of_switch = "qdisc add dev server root tbf rate 10000000bps burst 10000b latency 50ms";
        assert_eq!(lines(&construction, Tool::Tc, 2), [of_client]);
        assert_eq!(lines(&construction, Tool::Tc, SWITCH), [of_switch]);
        let limits: Vec<_> =
            construction.limits.iter().map(|l| (l.machine, l.is_out, l.rate, l.bucket)).collect();
        assert_eq!(limits, [(SERVER, false, 10_000_000, 10_000), (2, true, 8_000_000, 8000)]);
    }

    #[test]
    fn each_port_of_a_client_has_a_class_in_both_directions() {
        let construction = built("flow = \"50 MB/s\"\nout = \"200 MB/s\"", "");
        for (machine, mask) in [(2, "0x00ff0000"), (SWITCH, "0x000000ff")] {
            let lines = lines(&construction, Tool::Tc, machine);
            let flows = lines.iter().filter(|line| line.contains(" ceil 5000000bps "));
            assert_eq!(flows.count(), 256);
            assert!(lines.last().unwrap().contains(&format!("hashkey mask {mask} at 20 link 2:")));
        }
        // What the classes have for themselves is less than what they have together.
        let own: u64 = lines(&construction, Tool::Tc, 2)
            .iter()
            .filter(|line| line.contains("parent 1:fff "))
            .filter_map(|line| line.split(" rate ").nth(1)?.split("bps").next()?.parse::<u64>().ok())
            .sum();
        assert!(own < 20_000_000, "{own}");
        let settings = lines(&construction, Tool::Sysctl, 2);
        assert!(settings.contains(&"net.ipv4.ip_local_port_range=32768 33023"), "{settings:?}");
        assert_eq!(construction.limits.iter().map(|limit| limit.is_out).collect::<Vec<_>>(), [true]);
    }
}
