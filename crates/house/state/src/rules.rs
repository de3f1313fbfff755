//! Who may use a share: from the form that the API and the state database have to that of the share, and back.

use control::shares::Rules as Written;
use share::{
    CLIENT_RULES_MAX, ClientRule, Protocols, RIGHTS_MAX, RansomwareRule, RansomwareRuleError, RecycleBin,
    RecycleBinError, Right, Role, Rules, Terms,
};

/// Longest comment of a share, in bytes.
const COMMENT_BYTES_MAX: usize = 256;

/// The flavors of NFS by the names that mount(8) has for them.
pub const NFS_SECURITY: [(&str, Terms); 4] = [
    ("sys", Terms::RPC_SYS),
    ("krb5", Terms::RPC_KRB5),
    ("krb5i", Terms::RPC_KRB5I),
    ("krb5p", Terms::RPC_KRB5P),
];

/// The flavors of these names. All of them are the same as none.
///
/// # Errors
/// Which one does not exist.
pub fn parse_nfs_security(names: &[String]) -> Result<Terms, String> {
    let mut terms = Terms::empty();
    for name in names {
        let known = NFS_SECURITY.iter().find(|(known, _)| known == name);
        let wrong = || format!("{name:?} is no security of NFS: expected sys, krb5, krb5i or krb5p");
        terms |= known.map(|(_, term)| *term).ok_or_else(wrong)?;
    }
    Ok(if terms == Terms::RPC_FLAVORS { Terms::empty() } else { terms })
}

/// The names of the flavors with which NFS clients may use a share.
pub fn write_nfs_security(terms: Terms) -> Vec<String> {
    let is_any = !terms.intersects(Terms::RPC_FLAVORS);
    let flavors = NFS_SECURITY.iter().filter(|(_, term)| is_any || terms.contains(*term));
    flavors.map(|(name, _)| (*name).to_owned()).collect()
}

/// Who says in which groups users of NFS are, by the names of the setting `nfs-groups`.
const NFS_GROUPS: [(&str, Terms); 2] =
    [("client", Terms::GROUPS_OF_CLIENT), ("server", Terms::GROUPS_OF_SERVER)];

/// Who says in which groups users of NFS are. Empty: the setting of the server counts.
///
/// # Errors
/// There is no such word.
pub fn parse_nfs_groups(word: &str) -> Result<Terms, String> {
    if word.is_empty() {
        return Ok(Terms::empty());
    }
    let known = NFS_GROUPS.iter().find(|(known, _)| *known == word);
    known.map(|(_, term)| *term).ok_or_else(|| {
        format!("{word:?} says groups of no user of NFS: expected client or server, or \"\" for what the server's nfs-groups says")
    })
}

/// The same in a word; empty: the setting of the server counts.
#[must_use]
pub fn write_nfs_groups(terms: Terms) -> String {
    let said = NFS_GROUPS.iter().find(|(_, term)| terms.contains(*term));
    said.map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// Whether NFS clients find earlier versions in `.snapshot`, by the names of the setting `nfs-snapshots`.
const NFS_SNAPSHOTS: [(&str, Terms); 3] =
    [("shown", Terms::SNAPSHOT_FOLDERS), ("hidden", Terms::SNAPSHOT_FOLDER), ("off", Terms::empty())];

/// Whether NFS clients find earlier versions in `.snapshot`. Empty: off.
///
/// # Errors
/// There is no such word.
pub fn parse_nfs_snapshots(word: &str) -> Result<Terms, String> {
    if word.is_empty() {
        return Ok(Terms::empty());
    }
    let known = NFS_SNAPSHOTS.iter().find(|(known, _)| *known == word);
    known.map(|(_, terms)| *terms).ok_or_else(|| {
        format!("{word:?} says nothing about snapshots for NFS clients: expected off, hidden or shown")
    })
}

/// The same in a word.
#[must_use]
pub fn write_nfs_snapshots(terms: Terms) -> String {
    let said = NFS_SNAPSHOTS.iter().find(|(_, known)| terms.contains(*known));
    said.map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// When the ransomware alarm of a share is raised, as it is written. Empty: as usual.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_ransomware_alarm(text: &str) -> Result<Option<RansomwareRule>, String> {
    match text.trim() {
        "" => Ok(Some(RansomwareRule::default())),
        "off" => Ok(None),
        text => text.parse().map(Some).map_err(|e: RansomwareRuleError| format!("ransomware-alarm: {e}")),
    }
}

/// The same in words.
#[must_use]
pub fn write_ransomware_alarm(rule: Option<RansomwareRule>) -> String {
    rule.map_or_else(|| "off".to_owned(), |rule| rule.to_string())
}

/// The recycle bin of a share, as it is written. Empty: none.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_recycle_bin(text: &str) -> Result<Option<RecycleBin>, String> {
    match text.trim() {
        "" | "off" => Ok(None),
        text => text.parse().map(Some).map_err(|e: RecycleBinError| format!("recycle-bin: {e}")),
    }
}

/// The same in words.
#[must_use]
pub fn write_recycle_bin(bin: Option<&RecycleBin>) -> String {
    bin.map_or_else(|| "off".to_owned(), RecycleBin::to_string)
}

/// Refuses terms that keep out all NFS clients.
///
/// # Errors
/// What does not go together, and what to do.
pub fn check_nfs_security(terms: Terms) -> Result<(), String> {
    let flavors = terms & Terms::RPC_FLAVORS;
    let is_reached_by_tls = terms.contains(Terms::TLS) || !terms.contains(Terms::ENCRYPTED);
    if flavors.is_empty() || flavors.contains(Terms::RPC_KRB5P) || is_reached_by_tls {
        return Ok(());
    }
    Err("it is encrypted, and nfs-security has no krb5p: NFS clients could use it with TLS alone. Say tls-required, or add krb5p"
        .to_owned())
}

/// The rules that are written so.
///
/// # Errors
/// What is wrong with one of them.
pub fn parse(written: &Written) -> Result<Rules, String> {
    let mut rights = Vec::new();
    for role in Role::ALL {
        rights.extend(parse_rights(written.list(role), role)?);
    }
    if rights.len() > RIGHTS_MAX {
        return Err(format!("a share has {RIGHTS_MAX} entries for users at most"));
    }
    let default_role = parse_default_role(written)?;
    let (protocols, clients) = (parse_protocols(&written.protocols)?, parse_clients(&written.clients)?);
    let rules = Rules { protocols, clients, rights, default_role };
    rules.check_roles().map_err(|refused| refused.to_string())?;
    Ok(rules)
}

/// The role of users who are in no list; None: what the lists say.
///
/// # Errors
/// It is no role, or nobody could use the share.
fn parse_default_role(written: &Written) -> Result<Option<Role>, String> {
    let names = || Role::ALL.map(Role::name).join(", ");
    match written.default_role.as_str() {
        "" => Ok(None),
        "none" if Role::ALL.iter().all(|role| written.list(*role).is_empty()) => Err(
            "with default-role none and no list of users, nobody could use the share: name users or groups, or leave default-role              out to admit everybody"
                .to_owned(),
        ),
        "none" => Ok(None),
        name => {
            let role = Role::ALL.into_iter().find(|role| role.name() == name);
            role.map(Some).ok_or_else(|| format!("{name:?} is not a role: expected none, {}", names()))
        }
    }
}

/// The protocols of these names; all of them where none is named.
///
/// # Errors
/// Which one does not exist.
fn parse_protocols(names: &[String]) -> Result<Protocols, String> {
    if names.is_empty() { Ok(Protocols::all()) } else { names.join(",").parse() }
}

/// The entries for clients that are written so.
///
/// # Errors
/// Which one cannot be, or that there are too many.
fn parse_clients(rules: &[String]) -> Result<Vec<ClientRule>, String> {
    if rules.len() > CLIENT_RULES_MAX {
        return Err(format!("a share has {CLIENT_RULES_MAX} entries for clients at most"));
    }
    rules.iter().map(|rule| rule.parse().map_err(|e| format!("client {rule:?}: {e}"))).collect()
}

fn parse_rights(names: &[String], role: Role) -> Result<Vec<Right>, String> {
    let right = |name: &String| name.parse().map(|who| Right { who, role }).map_err(|e| format!("{e}"));
    names.iter().map(right).collect()
}

/// Whether clients can be told this of a share. [MS-SRVS] 2.2.4.23 has no limit; Windows shows so much.
///
/// # Errors
/// Why not.
pub fn check_comment(comment: &str) -> Result<(), String> {
    let fits = comment.len() <= COMMENT_BYTES_MAX && !comment.chars().any(char::is_control);
    let what = || format!("the comment has more than {COMMENT_BYTES_MAX} bytes or control characters");
    if fits { Ok(()) } else { Err(what()) }
}

/// As they are written.
pub fn write(rules: &Rules) -> Written {
    Written {
        protocols: write_protocols(rules.protocols),
        clients: rules.clients.iter().map(ToString::to_string).collect(),
        read: write_rights(&rules.rights, Role::Reader),
        write: write_rights(&rules.rights, Role::Contributor),
        elevated: write_rights(&rules.rights, Role::Elevated),
        admin: write_rights(&rules.rights, Role::Admin),
        default_role: rules.default_role.map_or("", Role::name).to_owned(),
    }
}

fn write_rights(rights: &[Right], role: Role) -> Vec<String> {
    rights.iter().filter(|right| right.role == role).map(|right| right.who.to_string()).collect()
}

/// The names of protocols.
pub fn write_protocols(protocols: Protocols) -> Vec<String> {
    protocols.to_string().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_the_same() {
        let clients = vec!["10.0.0.0/8 access=ro squash=all".to_owned(), "* access=rw".to_owned()];
        let (read, write) = (vec!["anna".to_owned(), "@staff".to_owned()], vec!["otto".to_owned()]);
        let (elevated, admin) = (vec!["S-1-5-21-1-2-3-1110".to_owned()], vec!["eva".to_owned()]);
        let protocols = vec!["nfs".to_owned()];
        let default_role = String::new();
        let mut written = Written { protocols, clients, read, write, elevated, admin, default_role };
        assert_eq!(super::write(&parse(&written).unwrap()), written);
        written.default_role = "none".to_owned();
        assert_eq!(parse(&written).unwrap().default_role, None);
        (written.read, written.default_role) = (Vec::new(), "reader".to_owned());
        assert_eq!(super::write(&parse(&written).unwrap()), written);
        assert_eq!(parse(&Written::default()).unwrap(), Rules::default());
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_words() {
        for (written, why) in [
            (Written { protocols: vec!["ftp".to_owned()], ..Written::default() }, "ftp"),
            (Written { clients: vec!["10.0.0.0/8 access=no".to_owned()], ..Written::default() }, "access"),
            (Written { read: vec!["a b".to_owned()], ..Written::default() }, "names nobody"),
            (Written { write: vec!["a".to_owned(); RIGHTS_MAX + 1], ..Written::default() }, "1024"),
            (Written { default_role: "owner".to_owned(), ..Written::default() }, "not a role"),
            (Written { default_role: "none".to_owned(), ..Written::default() }, "nobody could use"),
            (
                Written {
                    default_role: "contributor".to_owned(),
                    read: vec!["anna".to_owned()],
                    ..Written::default()
                },
                "`read` is without effect",
            ),
            (Written { clients: vec!["*".to_owned(); CLIENT_RULES_MAX + 1], ..Written::default() }, "256"),
        ] {
            let refused = parse(&written).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
