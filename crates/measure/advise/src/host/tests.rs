//! Captured machines, and what is said of them.

use std::fs;
use std::path::Path;

use super::*;

/// Writes a fixture as files: `== PATH` begins a file, `== PATH/` is a directory, `== PATH -> TARGET` a link.
fn machine(fixture: &str) -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    for part in format!("\n{fixture}").split("\n== ").skip(1) {
        let (head, text) = part.split_once('\n').unwrap_or((part, ""));
        let (path, target) =
            head.split_once(" -> ").map_or((head, None), |(path, target)| (path, Some(target)));
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match target {
            Some(target) => link(&path, target),
            None if head.ends_with('/') => fs::create_dir_all(&path).unwrap(),
            None => fs::write(&path, text).unwrap(),
        }
    }
    let machine = Machine::captured(root.path().to_owned());
    (root, machine)
}

/// A device has files; where other links lead does not matter.
fn link(path: &Path, target: &str) {
    if path.ends_with("device") {
        fs::create_dir_all(path.parent().unwrap().join(target)).unwrap();
    }
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// What is said, a line each: the thing, the verdict, and the beginning of the text.
fn said(fixture: &str) -> Vec<(String, Verdict, String)> {
    let (_root, machine) = machine(fixture);
    examine(&machine).into_iter().map(|finding| (finding.about, finding.verdict, finding.text)).collect()
}

/// Each expected finding is there, in this order, and no other.
fn check(fixture: &str, expected: &[(&str, Verdict, &str)]) {
    let said = said(fixture);
    let holds =
        |((about, verdict, text), (a, v, t)): (&(String, Verdict, String), &(&str, Verdict, &str))| {
            about == a && verdict == v && text.contains(t)
        };
    assert!(said.len() == expected.len() && said.iter().zip(expected).all(holds), "{said:#?}");
}

use Verdict::{Green, Red, Yellow};

#[test]
fn the_kernels_own_clients() {
    check(
        include_str!("fixtures/kernel-client.txt"),
        &[
            ("UML", Green, "AES and VAES"),
            ("Linux 6.1", Green, "nconnect"),
            ("vec0", Yellow, "reports no speed"),
            ("vec0", Green, "segmentation"),
            ("cifs.ko", Green, "leases"),
            ("/mnt/s", Green, "4 channels"),
            ("/mnt/n", Green, "4 connections"),
            ("/mnt/n", Yellow, "reads 128 KiB ahead"),
            (
                "/mnt/n",
                Green,
                "8 requests were under way on its connections, and a session of this client has 64 slots",
            ),
            ("/mnt/n3", Green, "2 connections"),
            ("/mnt/n3", Yellow, "reads 128 KiB ahead"),
        ],
    );
}

#[test]
fn a_virtual_machine_that_has_mounted_nothing() {
    check(
        include_str!("fixtures/virtual-machine.txt"),
        &[
            ("AMD EPYC", Green, "AES and VAES"),
            ("Linux 6.18", Green, "nconnect"),
            ("eth0", Yellow, "reports no speed"),
            ("eth0", Red, "one receive queue for 2 processors"),
            ("eth0", Yellow, "there is no ethtool"),
            ("eth0", Yellow, "virtio_net goes through the hypervisor"),
        ],
    );
}

#[test]
fn a_machine_with_much_to_mend() {
    check(
        include_str!("fixtures/cloud.txt"),
        &[
            ("Some processor", Red, "no AES"),
            ("Linux 5.4", Yellow, "no SMB Multichannel"),
            ("eth0", Green, "50 Gbit/s"),
            ("eth0", Red, "2 receive queues, but processor 0 takes"),
            (
                "eth0",
                Red,
                "off, and the processor does it: tcp-segmentation-offload, generic-receive-offload",
            ),
            ("eth0", Green, "accelerated networking is on (enP1s0)"),
            ("eth1", Red, "100 Mbit/s carry 11 MiB/s"),
            ("eth1", Yellow, "RPS"),
            ("eth1", Yellow, "cannot: rx-checksumming"),
            ("eth1", Red, "accelerated networking is off"),
            ("cifs.ko", Red, "caches nothing"),
            ("/mnt/old", Yellow, "does not say how many"),
            ("/mnt/old", Red, "SMB 2.1"),
            ("/mnt/s", Red, "1 of 4 channels are disconnected"),
            ("/mnt/few", Red, "2 of the 4 channels"),
            ("/mnt/n", Red, "4 of the 8 connections"),
            ("/mnt/n", Yellow, "64 KiB at most"),
            ("/mnt/n", Green, "reads 15360 KiB ahead"),
            ("/mnt/n", Yellow, "70 requests were under way"),
            ("/mnt/n3", Red, "1 of the 8 connections"),
            ("/mnt/n3", Yellow, "reads 128 KiB ahead"),
            ("/mnt/n3", Yellow, "at most 16 requests"),
            ("/mnt/udp", Red, "UDP"),
        ],
    );
}

#[test]
fn what_is_red_and_can_be_mended_has_its_command() {
    for fixture in [include_str!("fixtures/virtual-machine.txt"), include_str!("fixtures/cloud.txt")] {
        let (_root, machine) = machine(fixture);
        let red = examine(&machine).into_iter().filter(|finding| finding.verdict == Red);
        // A processor and a link are replaced, not mended.
        for finding in red.filter(|f| !f.text.contains("AES") && !f.text.contains("Mbit/s")) {
            assert!(!finding.commands.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn an_empty_machine_is_not_spoken_of_and_nonsense_does_no_harm() {
    check("", &[]);
    let nonsense = "== proc/cpuinfo\n:::\n== proc/self/mountinfo\n1 2 - - -\n9 9 0:1 / / rw - nfs\n== proc/self/mountstats\nxprt:\n \
                    device  mounted on \n== proc/fs/cifs/DebugData\nExtra Channels: \nTCP status: \n) Address: \n\
                    == proc/sys/kernel/osrelease\nx.y\n== sys/class/net/eth0/type\n1\n== sys/class/net/eth0/device/x\n\
                    == sys/class/net/eth0/operstate\n\\\n";
    let (_root, machine) = machine(nonsense);
    assert!(examine(&machine).len() <= 3);
}

#[test]
fn this_machine_can_be_looked_at() {
    let findings = examine(&Machine::this());
    assert!(findings.iter().any(|finding| finding.about.starts_with("Linux ")), "{findings:?}");
}
