//! This machine, as far as figures depend on it.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::result::{Host, Interface};

/// What is known of this machine.
#[must_use]
pub fn this_host() -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let flags = field("flags").or_else(|| field("Features")).unwrap_or_default();
    let wanted = ["aes", "vaes", "pclmulqdq", "vpclmulqdq", "avx2", "avx512f", "sha_ni", "pmull", "sha2"];
    let uname = rustix::system::uname();
    Host {
        cpu: field("model name").unwrap_or_else(|| uname.machine().to_string_lossy().into_owned()),
        cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory(),
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        cpu_features: wanted
            .iter()
            .filter(|f| flags.split(' ').any(|flag| flag == **f))
            .map(|&f| f.to_owned())
            .collect(),
        interfaces: interfaces(),
    }
}

fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib << 10)
}

/// The network interfaces that are up, by `/sys/class/net`.
fn interfaces() -> Vec<Interface> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut found: Vec<Interface> = entries.filter_map(|entry| interface(&entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn interface(path: &Path) -> Option<Interface> {
    let read = |name: &str| fs::read_to_string(path.join(name)).ok().map(|text| text.trim().to_owned());
    let state = read("operstate")?;
    if state == "down" {
        return None;
    }
    let queues = fs::read_dir(path.join("queues")).into_iter().flatten().flatten();
    let receive = queues.filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count();
    let receive_queues = u32::try_from(receive).ok();
    Some(Interface {
        name: path.file_name()?.to_string_lossy().into_owned(),
        // Unknown is -1 there.
        speed_mbit: read("speed").and_then(|speed| speed.parse().ok()),
        receive_queues,
        rss: receive_queues.map(|queues| queues > 1),
        driver: fs::read_link(path.join("device/driver"))
            .ok()
            .and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned())),
        used: false,
    })
}

/// Whether an address is one of this machine: a socket can be bound to it.
#[must_use]
pub fn is_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
}

/// The interface over which the way to an address goes, by the kernel's main table of routes. `None` where it has none.
#[must_use]
pub fn way_to(address: IpAddr) -> Option<String> {
    if is_this_machine(address) {
        return Some("lo".to_owned());
    }
    let read = |file: &str| fs::read_to_string(Path::new("/proc/net").join(file)).unwrap_or_default();
    match address {
        IpAddr::V4(address) => {
            longest(read("route").lines().filter_map(route), u128::from(address.to_bits()))
        }
        IpAddr::V6(address) => longest(read("ipv6_route").lines().filter_map(route6), address.to_bits()),
    }
}

/// A destination, its mask, and the interface.
type Route = (u128, u128, String);

fn longest(routes: impl Iterator<Item = Route>, address: u128) -> Option<String> {
    let fitting = routes.filter(|(destination, mask, _)| address & mask == *destination);
    fitting.max_by_key(|(_, mask, _)| mask.count_ones()).map(|(_, _, interface)| interface)
}

/// proc(5), `/proc/net/route`: interface, destination, gateway, flags, references, use, metric, mask; addresses as the
/// processor's numbers that have the bytes of the network's order.
fn route(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| Some(u32::from_be(u32::from_str_radix(fields.get(at)?, 16).ok()?).into());
    Some((number(1)?, number(7)?, (*fields.first()?).to_owned()))
}

/// `/proc/net/ipv6_route`: destination, bits of its mask, six more, and the interface. Flags (the ninth) with `RTF_REJECT`
/// lead nowhere.
fn route6(line: &str) -> Option<Route> {
    const RTF_REJECT: u32 = 0x200;
    let fields: Vec<&str> = line.split_whitespace().collect();
    let destination = u128::from_str_radix(fields.first()?, 16).ok()?;
    let bits = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    (flags & RTF_REJECT == 0).then(|| Some((destination, mask, (*fields.get(9)?).to_owned())))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_route_is_the_way() {
        let lines = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                     eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n\
                     eth2 0002000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        let way =
            |address: [u8; 4]| longest(lines.lines().filter_map(route), u32::from_be_bytes(address).into());
        let of = |name: &str| Some(name.to_owned());
        assert_eq!((way([10, 0, 2, 9]), way([10, 9, 2, 9])), (of("eth2"), of("eth1")));
        assert_eq!(way([192, 0, 2, 1]), of("eth0"));
        let six = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 0 400 1 0 00000001 eth0\n\
                   00000000000000000000000000000000 00 00000000000000000000000000000000 00 0 fff 1 0 00200200 lo\n";
        let way = |address: &str| {
            let address: std::net::Ipv6Addr = address.parse().unwrap();
            longest(six.lines().filter_map(route6), address.to_bits())
        };
        assert_eq!((way("fd00::7"), way("2001:db8::1")), (of("eth0"), None));
        assert_eq!(way_to([127, 0, 0, 1].into()), of("lo"));
    }

    #[test]
    fn this_machine_is_known() {
        let host = this_host();
        assert!(!host.cpu.is_empty() && host.cpus > 0 && host.memory_bytes > 1 << 20, "{host:?}");
        assert!(host.kernel.starts_with("Linux "), "{host:?}");
        assert!(is_this_machine([127, 0, 0, 1].into()) && !is_this_machine([192, 0, 2, 1].into()));
    }
}
