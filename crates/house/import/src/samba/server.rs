//! `[global]` becomes the settings of the server.

use std::net::IpAddr;

use access::Network;

use super::parse::Section;
use super::value::{self, Requirement};
use crate::clients;
use crate::draft::quoted;
use crate::note::{Grade, Note, Notes};

/// Ports of SMB over TCP, and over NetBIOS.
const SMB_PORT: u16 = 445;
const NETBIOS_PORT: u16 = 139;

/// The lines of the settings.
pub(super) fn settings(global: &Section, notes: &mut Notes) -> Vec<String> {
    let mut note = |grade, parameter: &str, why: &str| {
        let Some(setting) = global.settings.get(parameter) else { return };
        notes.add(Note {
            grade,
            place: setting.place.clone(),
            section: global.name.clone(),
            parameter: setting.written.clone(),
            value: setting.value.clone(),
            why: why.to_owned(),
        });
    };
    let mut lines = vec!["nfs = \"off\" # Samba serves no NFS".to_owned()];
    lines.extend(listen(global, &mut note));
    lines.extend(interfaces(global, &mut note));
    if let Some(signing) = global.value("server signing").and_then(value::requirement) {
        lines.extend(signing_line(signing));
    }
    match global.value("server smb encrypt").and_then(value::requirement) {
        Some(Requirement::Required) => lines.push("smb-encryption = \"required\"".to_owned()),
        Some(Requirement::Off) => lines.push("smb-encryption = \"off\"".to_owned()),
        Some(Requirement::Desired) => {
            let why = "clients decide whether they encrypt; `smb-encryption = \"required\"` refuses those that do not";
            note(Grade::NoCounterpart, "server smb encrypt", why);
        }
        Some(Requirement::Default | Requirement::IfRequired) | None => {}
    }
    if !global.is_on("server multi channel support", true) {
        lines.push("max-channels = 1".to_owned());
    }
    if let Some(protocol) = global.value("server min protocol") {
        let (grade, why) = min_protocol(protocol);
        note(grade, "server min protocol", why);
    }
    lines
}

/// "For the SMB2 protocol, by design, signing cannot be disabled."
fn signing_line(signing: Requirement) -> Option<String> {
    let word = match signing {
        Requirement::Required => "required",
        Requirement::Off | Requirement::IfRequired | Requirement::Desired => "enabled",
        Requirement::Default => return None,
    };
    Some(format!("smb-signing = {}", quoted(word)))
}

fn min_protocol(protocol: &str) -> (Grade, &'static str) {
    match protocol.to_ascii_uppercase().as_str() {
        "SMB2" | "SMB2_02" | "SMB2_FF" | "DEFAULT" => {
            (Grade::NotNeeded, "SMB 2.0.2 is the oldest version here")
        }
        "SMB2_10" | "SMB3" | "SMB3_00" | "SMB3_02" | "SMB3_11" => (
            Grade::ChangesAccess,
            "clients of SMB 2.0.2 and newer are admitted; `smb-encryption = \"required\"` refuses those without SMB 3",
        ),
        _ => (Grade::ChangesAccess, "SMB 2.0.2 is the oldest version here: older clients cannot connect"),
    }
}

/// An entry of `interfaces`: the interface or network, and what follows a semicolon.
struct Interface {
    address: Option<IpAddr>,
    options: String,
}

impl Interface {
    /// An address with or without a mask; a network or the name of an interface stands for addresses that are not known here.
    fn new(entry: &str) -> Self {
        let (name, options) = entry.split_once(';').unwrap_or((entry, ""));
        let address = match clients::network(name) {
            _ if name == "lo" => Some(IpAddr::from([127, 0, 0, 1])),
            Some(Network::Prefix { address, bits }) => Some(address).filter(|_| !is_network(address, bits)),
            _ => None,
        };
        Self { address, options: options.to_owned() }
    }
}

/// Whether the address has only zeros after its prefix, and so is none of a machine.
fn is_network(address: IpAddr, bits: u8) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits().checked_shl(bits.into()) == Some(0),
        IpAddr::V6(address) => address.to_bits().checked_shl(bits.into()) == Some(0),
    }
}

fn entries(global: &Section) -> Vec<Interface> {
    let text = global.value("interfaces").unwrap_or_default();
    value::list(text).iter().map(|entry| Interface::new(entry)).collect()
}

/// Where SMB listens.
fn listen(global: &Section, note: &mut impl FnMut(Grade, &str, &str)) -> Option<String> {
    let ports: Vec<u16> = global.list("smb ports").iter().filter_map(|port| port.parse().ok()).collect();
    let port = ports.iter().copied().find(|port| !matches!(*port, 0 | NETBIOS_PORT)).unwrap_or(SMB_PORT);
    if ports == [NETBIOS_PORT] {
        note(Grade::ChangesAccess, "smb ports", "SMB is served on port 445, and not over NetBIOS");
    }
    let is_bound = global.is_on("bind interfaces only", false);
    if !is_bound {
        return (port != SMB_PORT).then(|| format!("smb = \"0.0.0.0:{port}\""));
    }
    let interfaces = entries(global);
    let addresses: Vec<IpAddr> = interfaces.iter().filter_map(|interface| interface.address).collect();
    let known: Vec<&IpAddr> = addresses.iter().filter(|address| !address.is_loopback()).collect();
    let at = |address: IpAddr| std::net::SocketAddr::new(address, port);
    let (address, remark) = match (
        known.as_slice(),
        interfaces.iter().all(|interface| interface.address.is_some()),
    ) {
        ([only], true) => (**only, ""),
        ([first, ..], _) => {
            note(
                Grade::ChangesAccess,
                "interfaces",
                "SMB listens on the first address only; change `smb` if others are needed",
            );
            (**first, " # the first of the addresses in `interfaces`")
        }
        ([], _) => {
            let why = "which addresses these are is not known here: SMB listens on loopback only, until `smb` says where";
            note(Grade::ChangesAccess, "interfaces", why);
            (IpAddr::from([127, 0, 0, 1]), " # the address of an interface in `interfaces` belongs here")
        }
    };
    Some(format!("smb = {}{remark}", quoted(&at(address).to_string())))
}

/// What Multichannel clients are told.
fn interfaces(global: &Section, note: &mut impl FnMut(Grade, &str, &str)) -> Option<String> {
    let interfaces = entries(global);
    if interfaces.iter().all(|interface| interface.options.is_empty()) {
        if !interfaces.is_empty() && !global.is_on("bind interfaces only", false) {
            note(Grade::NotNeeded, "interfaces", "clients are told the addresses that the system reports");
        }
        return None;
    }
    let written: Option<Vec<String>> = interfaces.iter().map(announced).collect();
    let Some(written) = written else {
        let why =
            "clients are told what the system reports; smb-interface overrides it by address, not by name";
        note(Grade::NoCounterpart, "interfaces", why);
        return None;
    };
    let written: Vec<String> = written.iter().map(|interface| quoted(interface)).collect();
    Some(format!("smb-interface = [{}]", written.join(", ")))
}

/// `ADDR[;speed=BITS][;rss]`; None: not for this interface.
fn announced(interface: &Interface) -> Option<String> {
    let mut text = interface.address?.to_string();
    for option in interface.options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option.split_once('=')? {
            ("speed", speed) => {
                let speed: u64 = speed.parse().ok()?;
                text.push_str(&format!(";speed={speed}"));
            }
            ("capability", capability) if capability.eq_ignore_ascii_case("RSS") => text.push_str(";rss"),
            _ => return None,
        }
    }
    Some(text)
}
