//! The parameters of smb.conf(5): names, synonyms, and what becomes of each.

mod topics;

use crate::note::Grade;

/// Where a parameter may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In `[global]` only.
    Server,
    /// In every section.
    Share,
    /// Samba does not know the parameter, and ignores it.
    Unknown,
}

/// Other names, without white space, and the canonical name. `!`: a boolean that is turned around.
const SYNONYMS: [(&str, &str); 38] = [
    ("preload", "auto services"),
    ("binddnsdirectory", "binddns dir"),
    ("browsable", "browseable"),
    ("casesignames", "case sensitive"),
    ("createmode", "create mask"),
    ("default", "default service"),
    ("directorymode", "directory mask"),
    ("enablespoolss", "!disable spoolss"),
    ("group", "force group"),
    ("public", "guest ok"),
    ("onlyguest", "guest only"),
    ("allowhosts", "hosts allow"),
    ("denyhosts", "hosts deny"),
    ("winbindgid", "idmap gid"),
    ("winbinduid", "idmap uid"),
    ("ldappasswordsync", "ldap passwd sync"),
    ("lockdir", "lock directory"),
    ("debuglevel", "log level"),
    ("socketaddress", "nbt client socket address"),
    ("directory", "path"),
    ("exec", "preexec"),
    ("preferedmaster", "preferred master"),
    ("printok", "printable"),
    ("printcap", "printcap name"),
    ("printer", "printer name"),
    ("privatedirectory", "private dir"),
    ("root", "root directory"),
    ("rootdir", "root directory"),
    ("maxprotocol", "server max protocol"),
    ("protocol", "server max protocol"),
    ("minprotocol", "server min protocol"),
    ("unixextensions", "smb1 unix extensions"),
    ("smbencrypt", "server smb encrypt"),
    ("debugtimestamp", "timestamp logs"),
    ("vfsobject", "vfs objects"),
    ("writable", "!read only"),
    ("writeok", "!read only"),
    ("writeable", "!read only"),
];

/// Parameters that are carried over, or that say something about what is.
const CARRIED: [(&str, Scope, bool); 39] = [
    ("path", Scope::Share, false),
    ("comment", Scope::Share, false),
    ("browseable", Scope::Share, true),
    ("available", Scope::Share, true),
    ("-valid", Scope::Share, true),
    ("read only", Scope::Share, true),
    ("guest ok", Scope::Share, true),
    ("guest only", Scope::Share, true),
    ("valid users", Scope::Share, false),
    ("invalid users", Scope::Share, false),
    ("read list", Scope::Share, false),
    ("write list", Scope::Share, false),
    ("hosts allow", Scope::Share, false),
    ("hosts deny", Scope::Share, false),
    ("server smb encrypt", Scope::Share, false),
    ("hide unreadable", Scope::Share, true),
    ("access based share enum", Scope::Share, true),
    ("veto files", Scope::Share, false),
    ("printable", Scope::Share, true),
    ("vfs objects", Scope::Share, false),
    ("preexec close", Scope::Share, true),
    ("root preexec close", Scope::Share, true),
    ("msdfs proxy", Scope::Share, false),
    ("create mask", Scope::Share, false),
    ("directory mask", Scope::Share, false),
    ("copy", Scope::Share, false),
    ("include", Scope::Share, false),
    ("config file", Scope::Server, false),
    ("recycle:repository", Scope::Share, false),
    ("recycle:exclude", Scope::Share, false),
    ("recycle:exclude_dir", Scope::Share, false),
    ("recycle:maxsize", Scope::Share, false),
    ("root directory", Scope::Server, false),
    ("server signing", Scope::Server, false),
    ("interfaces", Scope::Server, false),
    ("bind interfaces only", Scope::Server, true),
    ("smb ports", Scope::Server, false),
    ("server multi channel support", Scope::Server, true),
    ("server min protocol", Scope::Server, false),
];

/// The canonical name of a name without white space, and whether its values are turned around.
pub(super) fn canonical(squashed: &str) -> (String, bool) {
    if let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == squashed) {
        return (name.trim_start_matches('!').to_owned(), name.starts_with('!'));
    }
    let is_it = |name: &&str| name.chars().filter(|c| *c != ' ').eq(squashed.chars());
    let names = CARRIED.iter().map(|(name, ..)| *name).chain(topics::names());
    let name = names.into_iter().find(is_it).map_or_else(|| squashed.to_owned(), str::to_owned);
    (name, false)
}

/// Where a parameter may stand.
pub(super) fn scope(name: &str) -> Scope {
    if let Some((_, scope, _)) = CARRIED.iter().find(|(carried, ..)| *carried == name) {
        return *scope;
    }
    // Parameters of modules have a colon, and may stand anywhere.
    if name.contains(':') {
        return Scope::Share;
    }
    topics::scope(name).unwrap_or(Scope::Unknown)
}

/// Whether a parameter that is carried over is a boolean.
pub(super) fn is_boolean(name: &str) -> bool {
    CARRIED.iter().any(|(carried, _, is_boolean)| *carried == name && *is_boolean)
}

/// What it means that a parameter is left out; None: it is carried over.
pub(super) fn fate(name: &str, value: &str) -> Option<(Grade, &'static str)> {
    if CARRIED.iter().any(|(carried, ..)| *carried == name) {
        return None;
    }
    Some(topics::fate(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_synonyms_and_no_white_space() {
        for (name, expected) in [
            ("public", ("guest ok", false)),
            ("writable", ("read only", true)),
            ("readonly", ("read only", false)),
            ("guestok", ("guest ok", false)),
            ("smbencrypt", ("server smb encrypt", false)),
            ("workgroup", ("workgroup", false)),
            ("recycle:repository", ("recycle:repository", false)),
        ] {
            assert_eq!(canonical(name), (expected.0.to_owned(), expected.1), "{name}");
        }
        assert_eq!(scope("workgroup"), Scope::Server);
        assert_eq!(scope("read only"), Scope::Share);
        assert_eq!((scope("nonsense"), scope("x:y")), (Scope::Unknown, Scope::Share));
    }
}
