//! Options of a client in exports(5), as `parseopts` of `support/nfs/exports.c` reads them.

use access::Squash;

use crate::clients::Admitted;
use crate::note::Grade;

/// What may differ by the flavor of security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags {
    read_only: bool,
    insecure: bool,
    root_squash: bool,
    all_squash: bool,
}

/// The options of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    flags: Flags,
    /// Flavors in their order, with what holds for each.
    flavors: Vec<(String, Flags)>,
    /// Why no client that only states its users is admitted.
    pub(super) refused: Option<String>,
    /// Why the export is not served.
    pub(super) closed: Option<String>,
    /// What was left out.
    pub(super) left_out: Vec<(Grade, String, &'static str)>,
}

impl Default for Options {
    /// "ro", "root_squash" and "secure" are the defaults.
    fn default() -> Self {
        let flags = Flags { read_only: true, insecure: false, root_squash: true, all_squash: false };
        Self { flags, flavors: Vec::new(), refused: None, closed: None, left_out: Vec::new() }
    }
}

const BUILT_IN: &str = "the server does it anyway, or needs it not";
const SQUASHED: &str = "squashed users are nobody here (uid and gid 65534)";
const MOUNTS: &str = "file systems that are mounted below the directory are not served: make shares of them";

impl Options {
    /// Adds a list of options, separated by commas.
    pub(super) fn add(&mut self, list: &str) {
        let mut active: Vec<usize> = Vec::new();
        for option in list.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            if let Some(flavors) = option.strip_prefix("sec=") {
                active = flavors.split(':').filter_map(|flavor| self.flavor(flavor)).collect();
            } else if let Some(set) = flag(option) {
                set(&mut self.flags);
                for index in &active {
                    if let Some((_, flags)) = self.flavors.get_mut(*index) {
                        set(flags);
                    }
                }
            } else {
                self.other(option);
            }
        }
    }

    fn flavor(&mut self, flavor: &str) -> Option<usize> {
        let flavor = if flavor == "unix" { "sys" } else { flavor };
        if let Some(known) = self.flavors.iter().position(|(known, _)| known == flavor) {
            return Some(known);
        }
        self.flavors.push((flavor.to_owned(), self.flags));
        self.flavors.len().checked_sub(1)
    }

    fn other(&mut self, option: &str) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let mut left = |grade, why| self.left_out.push((grade, option.to_owned(), why));
        match name {
            "sync" | "wdelay" | "no_wdelay" | "hide" | "nocrossmnt" | "no_crossmnt" | "no_subtree_check"
            | "auth_nlm" | "secure_locks" | "acl" | "no_pnfs" | "no_security_label" => {}
            "async" => left(Grade::NotNeeded, "the server replies as NFS requires it"),
            "subtree_check" | "insecure_locks" | "no_auth_nlm" | "nordirplus" => {
                left(Grade::NotNeeded, BUILT_IN)
            }
            "nohide" | "crossmnt" => left(Grade::NoCounterpart, MOUNTS),
            "no_acl" | "pnfs" | "security_label" | "replicas" => {
                left(Grade::NoCounterpart, "nothing here does the same")
            }
            "fsid" if matches!(value, "0" | "root") => {
                left(Grade::NotNeeded, "the root of NFSv4 lists all shares: clients mount HOST:/NAME");
            }
            "fsid" => left(Grade::NotNeeded, "the server gives its shares numbers of their own"),
            "anonuid" | "anongid" if matches!(value, "65534" | "-2" | "4294967294") => {}
            "anonuid" | "anongid" => left(Grade::ChangesAccess, SQUASHED),
            "mp" | "mountpoint" => {
                self.closed =
                    Some("the directory is exported only while a file system is mounted there".to_owned());
            }
            "refer" => self.closed = Some("clients are sent to another server".to_owned()),
            "xprtsec" if value.split(':').any(|policy| policy == "none") => {}
            "xprtsec" => self.refused = Some("NFS over TLS is not served".to_owned()),
            _ => self.refused = Some(format!("the option {option} is unknown here, and may restrict access")),
        }
    }

    /// How a client that states its users (AUTH_SYS) is admitted; else why not.
    pub(super) fn admitted(&self) -> Result<Admitted, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let flags = if self.flavors.is_empty() {
            self.flags
        } else {
            let sys = self.flavors.iter().find(|(flavor, _)| flavor == "sys");
            let (_, flags) = sys.ok_or(
                "the client must use Kerberos, which `nfs-security` of a share asks of all its clients",
            )?;
            Flags { insecure: self.flags.insecure, ..*flags }
        };
        let squash = match flags {
            Flags { all_squash: true, .. } => Squash::All,
            Flags { root_squash: true, .. } => Squash::Root,
            _ => Squash::None,
        };
        Ok(Admitted { read_only: flags.read_only, squash: Some(squash), secure_port: !flags.insecure })
    }
}

fn flag(option: &str) -> Option<fn(&mut Flags)> {
    Some(match option {
        "ro" => |flags| flags.read_only = true,
        "rw" => |flags| flags.read_only = false,
        "secure" => |flags| flags.insecure = false,
        "insecure" => |flags| flags.insecure = true,
        "root_squash" => |flags| flags.root_squash = true,
        "no_root_squash" => |flags| flags.root_squash = false,
        "all_squash" => |flags| flags.all_squash = true,
        "no_all_squash" => |flags| flags.all_squash = false,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> String {
        let mut options = Options::default();
        options.add(list);
        match options.admitted() {
            Ok(Admitted { read_only, squash, secure_port }) => {
                let access = if read_only { "ro" } else { "rw" };
                format!("{access} {} {}", squash.unwrap(), if secure_port { "secure" } else { "insecure" })
            }
            Err(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn options_are_those_of_nfs_utils() {
        for (list, expected) in [
            ("", "ro root secure"),
            ("rw,sync,no_subtree_check", "rw root secure"),
            ("rw,no_root_squash,insecure", "rw none insecure"),
            ("rw,all_squash,anonuid=150,anongid=100", "rw all secure"),
            ("no_root_squash,all_squash", "ro all secure"),
            ("rw,ro", "ro root secure"),
            ("sec=sys,rw", "rw root secure"),
            ("sec=krb5:sys,rw", "rw root secure"),
            ("rw,sec=krb5p", "refused"),
            ("sec=krb5p,rw,sec=sys,ro", "ro root secure"),
            ("ro,sec=krb5i,rw,sec=sys", "rw root secure"),
            ("rw,xprtsec=mtls", "refused"),
            ("rw,xprtsec=none:tls", "rw root secure"),
            ("rw,squash_uids=1", "refused"),
        ] {
            assert_eq!(of(list), expected, "{list}");
        }
    }
}
