//! The interrupts of an interface's receive queues, and the processors that take them.

use std::collections::BTreeSet;

use super::Machine;

/// The processors that take the interrupts of what an interface receives, as far as the kernel tells.
pub(super) fn receiving_cpus(machine: &Machine, interface: &str) -> BTreeSet<u32> {
    let device = machine.link(&format!("sys/class/net/{interface}/device")).unwrap_or_default();
    let table = machine.text("proc/interrupts").unwrap_or_default();
    let of_line = |line: &str| {
        let (number, rest) = line.trim().split_once(':')?;
        let name = rest.split_whitespace().last()?;
        is_receiving(name, interface, &device).then(|| number.to_owned())
    };
    table.lines().filter_map(of_line).flat_map(|number| cpus_of(machine, &number)).collect()
}

/// Drivers name their interrupts after the interface (`eth0-TxRx-1`, `eth0-rx-1`, `eth0`), after the virtio device
/// (`virtio2-input.1`) or after the PCI device (`mlx5_comp1@pci:0000:01:00.0`).
fn is_receiving(name: &str, interface: &str, device: &str) -> bool {
    let of_interface = name
        .strip_prefix(interface)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-') && !is_for_sending(rest));
    let of_device = !device.is_empty()
        && (name.strip_prefix(device).is_some_and(|rest| rest.starts_with("-input"))
            || name.split_once("comp").is_some_and(|(_, rest)| rest.ends_with(&format!("@pci:{device}"))));
    of_interface || of_device
}

/// `-tx-0`, but neither `-TxRx-0` nor `-Tx-Rx-0`.
fn is_for_sending(rest: &str) -> bool {
    let rest = rest.to_ascii_lowercase();
    rest.contains("tx") && !rest.contains("rx")
}

fn cpus_of(machine: &Machine, interrupt: &str) -> BTreeSet<u32> {
    let list = |name| machine.text(&format!("proc/irq/{interrupt}/{name}")).filter(|list| !list.is_empty());
    parse_list(&list("effective_affinity_list").or_else(|| list("smp_affinity_list")).unwrap_or_default())
}

/// Processors as the kernel lists them: `0-3,8`.
fn parse_list(list: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        // More processors than any machine has are no list of the kernel's.
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok().filter(|&last| last < 65_536)?))
    };
    list.split(',').filter_map(|part| range(part.trim())).flat_map(|(first, last)| first..=last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_drivers_are_known() {
        for (name, interface, device) in [
            ("eth0-TxRx-0", "eth0", "0000:01:00.0"),
            ("eth0-rx-3", "eth0", ""),
            ("eth0-Tx-Rx-7", "eth0", "0000:00:05.0"),
            ("vec0", "vec0", "uml-vector.0"),
            ("virtio2-input.0", "eth0", "virtio2"),
            ("mlx5_comp3@pci:0000:01:00.0", "enp1s0", "0000:01:00.0"),
        ] {
            assert!(is_receiving(name, interface, device), "{name}");
        }
        for (name, interface, device) in [
            ("eth0-tx-3", "eth0", ""),
            ("eth01-rx-3", "eth0", ""),
            ("virtio2-output.0", "eth0", "virtio2"),
            ("virtio21-input.0", "eth0", "virtio2"),
            ("virtio2-input.0", "eth0", ""),
            ("mlx5_async0@pci:0000:01:00.0", "enp1s0", "0000:01:00.0"),
        ] {
            assert!(!is_receiving(name, interface, device), "{name}");
        }
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(parse_list("0-2,8"), [0, 1, 2, 8].into());
        assert_eq!(parse_list(""), BTreeSet::new());
        assert_eq!(parse_list("0-4294967295,7"), [7].into());
    }
}
