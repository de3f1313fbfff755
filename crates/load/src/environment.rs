//! This machine, as far as figures depend on it.

use std::fs;
use std::net::IpAddr;

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

fn interface(path: &std::path::Path) -> Option<Interface> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let host = this_host();
        assert!(!host.cpu.is_empty() && host.cpus > 0 && host.memory_bytes > 1 << 20, "{host:?}");
        assert!(host.kernel.starts_with("Linux "), "{host:?}");
        assert!(is_this_machine([127, 0, 0, 1].into()) && !is_this_machine([192, 0, 2, 1].into()));
    }
}
