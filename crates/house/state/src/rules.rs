//! Who may use a share: from the form that the API and the state database have to that of the share, and back.

use control::shares::Rules as Written;
use share::{CLIENT_RULES_MAX, ClientRule, Protocols, RIGHTS_MAX, Right, Role, Rules};

/// Longest comment of a share, in bytes.
const COMMENT_BYTES_MAX: usize = 256;

/// The rules that are written so.
///
/// # Errors
/// What is wrong with one of them.
pub fn parse(written: &Written) -> Result<Rules, String> {
    let Written { protocols, clients, read, write } = written;
    let rights = [parse_rights(read, Role::Reader)?, parse_rights(write, Role::Contributor)?].concat();
    if rights.len() > RIGHTS_MAX {
        return Err(format!("a share has {RIGHTS_MAX} entries for users at most"));
    }
    Ok(Rules { protocols: parse_protocols(protocols)?, clients: parse_clients(clients)?, rights })
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
        let written = Written { protocols: vec!["nfs".to_owned()], clients, read, write };
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
            (Written { clients: vec!["*".to_owned(); CLIENT_RULES_MAX + 1], ..Written::default() }, "256"),
        ] {
            let refused = parse(&written).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
