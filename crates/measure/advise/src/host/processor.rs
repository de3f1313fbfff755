//! The processor and the kernel.

use std::collections::BTreeSet;

use super::super::advice::{Source, Verdict, document};
use super::{Finding, Machine};

/// AES-GCM, which SMB encrypts and signs with, goes through these; the wider ones take several blocks at once.
const AES_GCM: Source =
    Source::Manual("Intel SDM volume 1, 12.13 (AES-NI) and 15.5 (VAES); Arm ARM, FEAT_AES");

pub(super) fn examine(machine: &Machine) -> Vec<Finding> {
    processor(machine).into_iter().chain(kernel(machine)).collect()
}

fn processor(machine: &Machine) -> Option<Finding> {
    let cpuinfo = machine.text("proc/cpuinfo")?;
    let field = |name: &str| {
        let of_line = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        };
        cpuinfo.lines().find_map(of_line)
    };
    let flags = field("flags").or_else(|| field("Features"))?;
    let flags: BTreeSet<&str> = flags.split(' ').collect();
    let has = |names: &[&str]| names.iter().all(|name| flags.contains(name));
    let model = field("model name").unwrap_or_default();
    let about = if model.is_empty() { "processor" } else { &model };
    Some(if has(&["aes", "vaes", "vpclmulqdq"]) || has(&["aes", "pmull"]) {
        let text = if has(&["vaes"]) { "AES and VAES instructions" } else { "AES and PMULL instructions" };
        Finding::new(about, Verdict::Green, AES_GCM, text)
    } else if has(&["aes"]) {
        let text = "AES instructions without VAES: encryption and signing take more of the processor than on newer ones";
        Finding::new(about, Verdict::Yellow, AES_GCM, text)
    } else {
        let text = "no AES instructions: signing and encryption take most of the processor; use another type of machine, \
                    or have the hypervisor pass them on";
        Finding::new(about, Verdict::Red, AES_GCM, text)
    })
}

fn kernel(machine: &Machine) -> Option<Finding> {
    let version = machine.kernel()?;
    let about = format!("Linux {}.{}", version.0, version.1);
    Some(if version < (5, 3) {
        let text = "this kernel has no nconnect and no SMB Multichannel: use 5.5 or later";
        Finding::new(&about, Verdict::Red, document("3.08", 62), text)
    } else if version < (5, 5) {
        let text = "this kernel has no SMB Multichannel: use 5.5 or later for several channels over SMB";
        Finding::new(&about, Verdict::Yellow, Source::Manual("Linux 5.5, fs/cifs: multichannel"), text)
    } else {
        Finding::new(
            &about,
            Verdict::Green,
            document("3.08", 62),
            "the kernel has nconnect and SMB Multichannel",
        )
    })
}
