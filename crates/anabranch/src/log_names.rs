//! What is logged: `--log`, a level, or levels of parts of the program. The parts, by name.

use logging::{LEVELS, Names};

use crate::problem::{Cause, Problem, Result};

/// The parts of the program: the names of its crates without what they share.
const PARTS: [&str; 46] = [
    "access",
    "access_log",
    "accounting",
    "acl",
    "advise",
    "auth",
    "cache",
    "client",
    "compare",
    "control",
    "control_client",
    "directory",
    "discovery",
    "file_state",
    "gateway",
    "identity",
    "import",
    "kdc",
    "krb5",
    "limits",
    "live_advice",
    "load",
    "logging",
    "model",
    "net",
    "nfs_proto",
    "nfs_server",
    "nfs_wire",
    "peers",
    "quota",
    "ransomware",
    "replica",
    "replica_wire",
    "report",
    "schedule",
    "service_address",
    "share",
    "smb_proto",
    "smb_server",
    "smb_wire",
    "state",
    "storage",
    "storage_ceph",
    "storage_delay",
    "storage_local",
    "supervisor",
];

/// The name of the program, with which the names of all its crates begin.
const PROGRAM: &str = "anabranch";

/// Modules that were the program's own, and the crates that they are in now: filters that name them go on working.
const MOVED: [(&str, &str); 22] = [
    ("accounts", "anabranch_gateway::accounts"),
    ("administration", "anabranch_gateway::administration"),
    ("apart", "anabranch_gateway::apart"),
    ("burst_credits", "anabranch_state::burst_credits"),
    ("control_access", "anabranch_gateway::control_access"),
    ("control_tls", "anabranch_gateway::control_tls"),
    ("descriptors", "anabranch_gateway::descriptors"),
    ("directories", "anabranch_gateway::directories"),
    ("held_up", "anabranch_gateway::held_up"),
    ("identities", "anabranch_gateway::identities"),
    ("in_time", "anabranch_gateway::in_time"),
    ("name_service", "anabranch_gateway::name_service"),
    ("names", "anabranch_gateway::names"),
    ("nfs_clients", "anabranch_state::nfs_clients"),
    ("opening", "anabranch_gateway::opening"),
    ("persistent_opens", "anabranch_state::persistent_opens"),
    ("records", "anabranch_state::records"),
    ("serve", "anabranch_gateway::gateway"),
    ("serve", "anabranch_gateway::prepared"),
    ("serve", "anabranch_gateway::upkeep"),
    ("servers", "anabranch_gateway::servers"),
    ("state", "anabranch_state"),
];

/// The filter with the names that the program's parts have inside: `smb_server` is `anabranch_smb_server`.
///
/// # Errors
/// A level or a part that does not exist.
pub(crate) fn parse(wanted: &str) -> Result<String> {
    let names = Names { program: PROGRAM, parts: &PARTS, moved: &MOVED };
    names.filter(wanted).map_err(|unknown| {
        let advice = format!(
            "Give a level ({}), or a filter such as info,smb_server=debug. The parts are: {}; {PROGRAM} is all of them.",
            LEVELS.join(", "),
            PARTS.join(", ")
        );
        Problem::new(Cause::Settings, format!("the log filter {wanted:?}: {unknown}"), advice)
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn levels_and_parts_are_known_by_their_short_names() {
        for (given, filter) in [
            ("info", "info"),
            ("WARN", "warn"),
            ("info,smb_server=debug", "info,anabranch_smb_server=debug"),
            ("info, smb-server=trace , net=off", "info,anabranch_smb_server=trace,anabranch_net=off"),
            ("anabranch_share::cache=debug", "anabranch_share::cache=debug"),
            ("off,anabranch=debug", "off,anabranch=debug"),
            ("gateway=debug", "anabranch_gateway=debug"),
            ("anabranch::bench=warn", "anabranch::bench=warn"),
            (
                "anabranch::administration::reload=debug",
                "anabranch::administration::reload=debug,anabranch_gateway::administration::reload=debug",
            ),
            ("anabranch::state=off", "anabranch::state=off,anabranch_state=off"),
        ] {
            assert_eq!(parse(given).unwrap(), filter);
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for given in [
            "",
            "loud",
            "info,",
            "smb=debug",
            "smb_server",
            "smb_server=loud",
            "net::a[b]=info",
            "1",
            "info;x",
        ] {
            let problem = parse(given).unwrap_err();
            assert_eq!(problem.cause, Cause::Settings);
            assert!(
                problem.advice.contains("smb_server=debug") && problem.advice.contains("file_state"),
                "{given}: {problem}"
            );
        }
    }

    /// Crates of which nothing is in the program.
    const APART: [&str; 3] = ["planted", "rados", "simulation"];

    #[test]
    fn every_crate_of_the_program_is_a_part() {
        let within = |folder: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let layers = within(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let layers = layers.iter().filter(|layer| !layer.ends_with(PROGRAM));
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().replace('-', "_");
        let mut names: Vec<String> = layers.flat_map(|layer| within(layer)).map(name).collect();
        names.retain(|name| !APART.contains(&name.as_str()));
        names.sort();
        assert_eq!(names, PARTS);
    }
}
