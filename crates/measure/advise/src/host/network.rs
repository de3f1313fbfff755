//! Network interfaces: what they carry, what takes it, and what the card does by itself.

use super::super::advice::{Source, Verdict, document};
use super::interrupts::receiving_cpus;
use super::{Finding, Machine};

/// ARPHRD_ETHER of if_arp.h.
const ETHERNET: u64 = 1;
/// Megabits a second.
const FAST: u64 = 10_000;
const SLOW: u64 = 1_000;
/// More processors than this take one client's packets to no use.
const QUEUES_MAX: usize = 8;

/// Settings of `ethtool -k` that should be on.
const OFFLOADS: [(&str, &str); 4] = [
    ("tcp-segmentation-offload", "tso"),
    ("generic-receive-offload", "gro"),
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
];

pub(super) fn examine(machine: &Machine) -> Vec<Finding> {
    let names = machine.names("sys/class/net");
    let of_interface = |name: &String| {
        let all = [
            speed(machine, name),
            queues(machine, name),
            offloads(machine, name),
            virtual_function(machine, name),
        ];
        all.into_iter().flatten()
    };
    names.iter().filter(|name| carries(machine, name)).flat_map(of_interface).collect()
}

/// Whether it is an Ethernet interface with a device behind it that is up, and not one behind another (`master`).
fn carries(machine: &Machine, name: &str) -> bool {
    let path = format!("sys/class/net/{name}");
    machine.number(&format!("{path}/type")) == Some(ETHERNET)
        && machine.has(&format!("{path}/device"))
        && !machine.has(&format!("{path}/master"))
        && machine.text(&format!("{path}/operstate")).is_some_and(|state| state != "down")
}

fn speed(machine: &Machine, name: &str) -> Option<Finding> {
    let told = machine.text(&format!("sys/class/net/{name}/speed"));
    let source = document("3.10", 83);
    // An unknown speed is -1.
    Some(match told.and_then(|speed| speed.parse::<u64>().ok()).filter(|&speed| speed > 0) {
        None => Finding::new(
            name,
            Verdict::Yellow,
            source,
            "the driver reports no speed: the hypervisor sets the limit (Azure: the expected bandwidth of the machine's size)",
        ),
        Some(speed) if speed >= FAST => {
            Finding::new(name, Verdict::Green, source, format!("{} Gbit/s", speed / 1000))
        }
        Some(speed) => {
            let verdict = if speed < SLOW { Verdict::Red } else { Verdict::Yellow };
            let text = format!(
                "{speed} Mbit/s carry {} MiB/s at most: size the machine by what it is to carry",
                speed * 1_000_000 / 8 / (1 << 20)
            );
            Finding::new(name, verdict, source, text)
        }
    })
}

/// Receive side scaling: the queues and the processors behind them.
fn queues(machine: &Machine, name: &str) -> Option<Finding> {
    let queues = machine.names(&format!("sys/class/net/{name}/queues"));
    let queues: Vec<&String> = queues.iter().filter(|queue| queue.starts_with("rx-")).collect();
    let (count, cpus) = (queues.len(), machine.cpus());
    let source = document("2.18", 130);
    if count == 0 {
        return None;
    }
    if cpus == 1 {
        return Some(Finding::new(
            name,
            Verdict::Green,
            source,
            "one processor handles all traffic: RSS changes nothing",
        ));
    }
    let wanted = cpus.min(QUEUES_MAX);
    if count == 1 {
        let mask = format!("sys/class/net/{name}/queues/{}/rps_cpus", queues.first()?);
        let spread =
            machine.text(&mask).is_some_and(|mask| mask.chars().any(|c| c.is_ascii_hexdigit() && c != '0'));
        let more = format!("ethtool -L {name} combined {wanted}");
        return Some(if spread {
            let text = "one receive queue, spread over processors by software (RPS): RSS costs less";
            Finding::new(name, Verdict::Yellow, source, text).mend(more)
        } else {
            let text = format!(
                "one receive queue for {cpus} processors: one of them handles the traffic of all channels"
            );
            Finding::new(name, Verdict::Red, source, text).mend(more)
        });
    }
    let taking = receiving_cpus(machine, name);
    Some(match taking.len() {
        1 => {
            let cpu = taking.first().copied().unwrap_or_default();
            let text =
                format!("{count} receive queues, but processor {cpu} takes the interrupts of all of them");
            Finding::new(name, Verdict::Red, source, text).mend("systemctl enable --now irqbalance")
        }
        0 => Finding::new(name, Verdict::Green, source, format!("{count} receive queues")),
        n => Finding::new(name, Verdict::Green, source, format!("{count} receive queues on {n} processors")),
    })
}

fn offloads(machine: &Machine, name: &str) -> Option<Finding> {
    let source = Source::Manual("ethtool(8), -k");
    let Some(told) = machine.offloads(name) else {
        let text = "the offloads of the card are not known: there is no ethtool";
        return Some(Finding::new(name, Verdict::Yellow, source, text).mend("apt-get install ethtool"));
    };
    let state = |setting: &str| {
        let of_line = |line: &str| line.trim().strip_prefix(setting)?.strip_prefix(": ").map(str::to_owned);
        told.lines().find_map(of_line)
    };
    let off = |(long, _): &(&str, &str)| state(long).is_some_and(|state| state.starts_with("off"));
    let (fixed, loose): (Vec<_>, Vec<_>) = OFFLOADS
        .into_iter()
        .filter(off)
        .partition(|(long, _)| state(long).is_some_and(|state| state.contains("[fixed]")));
    let listed = |some: &[(&str, &str)]| some.iter().map(|(long, _)| *long).collect::<Vec<_>>().join(", ");
    Some(if !loose.is_empty() {
        let on = loose.iter().map(|(_, short)| format!(" {short} on")).collect::<String>();
        let text = format!("off, and the processor does it: {}", listed(&loose));
        Finding::new(name, Verdict::Red, source, text).mend(format!("ethtool -K {name}{on}"))
    } else if !fixed.is_empty() {
        Finding::new(
            name,
            Verdict::Yellow,
            source,
            format!("the card or its driver cannot: {}", listed(&fixed)),
        )
    } else {
        Finding::new(name, Verdict::Green, source, "segmentation, receive offload and checksums are on")
    })
}

/// SR-IOV: whether packets pass by the hypervisor's switch.
fn virtual_function(machine: &Machine, name: &str) -> Option<Finding> {
    let source = document("2.17", 120);
    let driver = machine.link(&format!("sys/class/net/{name}/device/driver"))?;
    let behind =
        |other: &String| machine.link(&format!("sys/class/net/{other}/master")).as_deref() == Some(name);
    let text = match driver.as_str() {
        "hv_netvsc" => match machine.names("sys/class/net").iter().find(|other| behind(other)) {
            Some(function) => format!("accelerated networking is on ({function})"),
            None => {
                let text = "accelerated networking is off: every packet goes through the hypervisor's switch";
                let command = "az network nic update --resource-group GROUP --name NIC --accelerated-networking true   # with the machine deallocated";
                return Some(Finding::new(name, Verdict::Red, source, text).mend(command));
            }
        },
        "virtio_net" | "vmxnet3" | "vif" => {
            let text = format!(
                "{driver} goes through the hypervisor: a virtual function of the card (SR-IOV) costs less, where there is one"
            );
            return Some(Finding::new(name, Verdict::Yellow, source, text));
        }
        "ena" | "gve" | "mana" => format!("the cloud's own card ({driver})"),
        _ if machine.has(&format!("sys/class/net/{name}/device/physfn")) => {
            format!("a virtual function of the card ({driver}, SR-IOV)")
        }
        _ => return None,
    };
    Some(Finding::new(name, Verdict::Green, source, text))
}
